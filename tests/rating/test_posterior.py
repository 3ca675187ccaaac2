"""What games say of engines on top of a first guess, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.rating import likelihood_of_superiority, logistic

WIDE = {
    "a": likelihood_of_superiority.Guess(3000, 2000),
    "b": likelihood_of_superiority.Guess(3000, 2000),
}
SURE = (0.0, 0.001)  # no white advantage, for certain


def level(wins: int, draws: int) -> dict[tuple[str, str, str], int]:
    """Return games of two equal engines: so many wins of each, so many draws, both colours."""
    half = {"1-0": wins // 2, "0-1": wins // 2, "1/2-1/2": draws // 2}
    return {(w, b, result): n for w, b in ("ab", "ba") for result, n in half.items()}


@pytest.mark.parametrize(("wins", "draws"), [(400, 0), (200, 400), (50, 700)])
def test_the_error_of_a_lead_is_that_of_its_score(wins: int, draws: int) -> None:
    """Fisher information a game: the slope of the score, squared, by the score's variance.

    At equal strength the slope is beta/4, the variance 1/4 less a quarter of the draw rate: draws
    tell more than wins and losses of the same mean.
    """
    games = level(wins, draws)
    found = likelihood_of_superiority.after(games, WIDE, SURE)
    number = sum(games.values())
    rate = (draws + likelihood_of_superiority.DRAWS_WORTH * likelihood_of_superiority.DRAWS) / (
        number + likelihood_of_superiority.DRAWS_WORTH
    )
    variance = 1 / 4 - rate / 4
    error = (number * (logistic.BETA / 4) ** 2 / variance) ** -0.5
    lead = found.covariance
    assert found.place[0] == pytest.approx(found.place[1])
    told = (lead[0, 0] + lead[1, 1] - 2 * lead[0, 1]) ** 0.5
    assert told == pytest.approx(error, rel=0.01)


def test_without_games_the_first_guess_stands() -> None:
    """Ratings, errors and the draw rate are the guess's own."""
    found = likelihood_of_superiority.after(
        {},
        {
            "a": likelihood_of_superiority.Guess(3100, 40),
            "b": likelihood_of_superiority.Guess(2900, 60),
        },
    )
    assert found.place.tolist() == [3100, 2900, likelihood_of_superiority.WHITE[0]]
    errors = np.sqrt(np.diag(found.covariance))
    assert errors.tolist() == pytest.approx([40, 60, likelihood_of_superiority.WHITE[1]])
    assert found.draws == pytest.approx(likelihood_of_superiority.DRAWS)


def test_a_draw_rate_of_nothing_draws_nothing() -> None:
    """A list with ``--draws 0`` is a list: wins and losses alone."""
    table = logistic.outcomes(np.array([0.0, 100.0]), 0.0)
    assert np.isfinite(table).all()
    assert table[:, 1].tolist() == [logistic.TINY] * 2
    assert table[:, 0].tolist() == pytest.approx(logistic.expected(np.array([0.0, 100.0])).tolist())
