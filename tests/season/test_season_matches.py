"""Extensions of a drawn match, and the openings of every kind of event."""

from __future__ import annotations

import itertools
from pathlib import Path

import chess
import driver
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season.fold import entries, events, openings, orders
from orchestrator.season.formats import base, match
from orchestrator.season.spec import model

DRAW = ("1/2-1/2", driver.Ending.THREEFOLD)
RAPID = '{ games = 4, time_control = "25+10", openings = "season" }'
BLITZ = '{ games = 2, time_control = "3+2", openings = "season", repeat = true }'
ENGINES = 4
LEAGUE_GAMES = ENGINES * (ENGINES - 1)


def text(*extensions: str, games: int = 4) -> str:
    """Return a league and a match with extensions."""
    more = f"games = {games}, extensions = [{', '.join(extensions)}]"
    return driver.season_text(ENGINES).replace("games = 4", more)


def play(tmp_path: Path, season: str, wins: int | None, lines: int = 32) -> driver.Driver:
    """Play a season whose match is drawn but for game ``wins`` (from 1, won by White)."""

    def results(game: events.Game) -> driver.Verdict:
        if game.event == "league":
            return driver.by_name(game)
        return ("1-0", driver.Ending.CHECKMATE) if game.number == wins else DRAW

    return driver.Driver.launched(driver.load(tmp_path, season, lines), results).play()


def final_games(played: driver.Driver) -> list[events.Game]:
    """Return the games of the match in their order."""
    state = played.state
    return [state.games[game] for game in state.events["final"].order]


def test_a_decided_match_is_played_to_its_last_game(tmp_path: Path) -> None:
    """S16-8b: a match that is won early has all its games, and no extension."""
    played = play(tmp_path, text(RAPID, BLITZ, games=8), wins=1)
    assert len(final_games(played)) == 8
    assert played.state.champion == final_games(played)[0].white


def test_a_drawn_match_goes_on_with_rapid_and_blitz(tmp_path: Path) -> None:
    """S16-8c/d: the rapid set in full, then blitz sets until a set has a winner."""
    played = play(tmp_path, text(RAPID, BLITZ), wins=12)
    games = final_games(played)
    assert len(games) == 4 + 4 + 2 + 2
    controls = [str(orders.game_order(played.state, game.id).time_control) for game in games]
    assert controls == ["3600+5"] * 4 + ["1500+10"] * 4 + ["180+2"] * 4
    assert played.state.champion == games[11].white


def test_a_rapid_set_is_played_in_full(tmp_path: Path) -> None:
    """S16-8c: all games of the set are played though its first one decides."""
    assert len(final_games(play(tmp_path, text(RAPID, BLITZ), wins=5))) == 4 + 4


def test_sets_use_openings_played_earlier_in_the_season(tmp_path: Path) -> None:
    """S16-8c/d: drawn from those of the season's other events, in pairs, without repeats."""
    played = play(tmp_path, text(RAPID, BLITZ), wins=20)
    games = final_games(played)
    earlier = {played.state.games[game].opening for game in played.state.events["league"].order}
    pairs = list(zip(games[4::2], games[5::2], strict=True))
    assert all((a.book, a.opening) == (b.book, b.opening) for a, b in pairs)
    assert all((a.white, a.black) == (b.black, b.white) for a, b in pairs)
    drawn = [first.opening for first, _ in pairs]
    assert set(drawn) <= earlier
    assert len(earlier) == LEAGUE_GAMES // 2
    assert len(set(drawn[: len(earlier)])) == len(drawn[: len(earlier)])


@pytest.mark.parametrize(("games", "wins"), [(4, 11), (2, 7)])
def test_more_games_until_a_winner_emerges(tmp_path: Path, games: int, wins: int) -> None:
    """N1: 4 more games at a time; FRC-2i: pairs until one is won, on new openings."""
    extension = f"{{ games = {games}, repeat = true }}"
    played = play(tmp_path, text(extension), wins=wins)
    found = final_games(played)
    assert len(found) == 4 + -(-(wins - 4) // games) * games
    assert [game.opening for game in found[::2]] == [game.opening for game in found[1::2]]
    numbers = [game.opening for game in found[::2]]
    assert len(set(numbers)) == len(numbers)  # CUP-4b: the whole book before any repeats
    controls = {orders.game_order(played.state, game.id).time_control for game in found}
    assert len(controls) == 1


def test_only_the_last_extension_repeats(tmp_path: Path) -> None:
    """A set that repeats without end cannot be followed by another one."""
    with pytest.raises(errors.SeasonFileError, match="last of the extensions"):
        driver.load(tmp_path, text(BLITZ, RAPID))


@given(st.lists(st.sampled_from([(2, 0), (1, 1), (0, 2)]), min_size=40, max_size=40))
def test_extensions_end_with_the_first_decided_set(results: list[tuple[int, int]]) -> None:
    """Sets of the announced lengths follow until the match is no longer level."""
    extensions = (
        model.Extension(games=4),
        model.Extension(games=2),
        model.Extension(games=6, repeat=True),
    )
    schedule, games = match.Match(2, extensions=extensions), list[base.Game]()
    ends = list(itertools.accumulate([2, 4, 2, *[6] * 5]))
    while len(games) < ends[-1]:
        played = base.History(len(games) // 2, games.copy)
        pairing = schedule.pair(len(games) // 2, played)
        level = sum(
            a - b if n % 2 == 0 else b - a for n, (a, b) in enumerate(results[: len(games)])
        )
        over = len(games) in ends and level != 0
        assert schedule.complete(len(games) // 2, played) == over == (pairing is None)
        if pairing is None:
            return
        for board in pairing.boards:
            games.append(base.Game(board.white, board.black, pairing.round, results[len(games)]))


def test_a_cut_match_goes_on_alike(tmp_path: Path) -> None:
    """Cut anywhere in the extensions, the journal goes on to the same games."""
    played = play(tmp_path, text(RAPID, BLITZ), wins=20)
    pairings = [e.data for e in played.journal if e.kind == entries.GAMES_PAIRED]
    for cut in range(len(played.journal) - 40, len(played.journal), 7):
        again = driver.Driver.replayed(played.journal[:cut], played.results).play()
        assert [e.data for e in again.journal if e.kind == entries.GAMES_PAIRED] == pairings


# -- openings ------------------------------------------------------------------------


def test_chess960_positions_are_drawn_by_lot(tmp_path: Path) -> None:
    """FRC-4a: another start position for each pair, the same for the reverse game."""
    season = driver.season_text(ENGINES).replace(
        'entrants = "roster"\ntime_control = "30+5"\nbook = "short"',
        'entrants = "roster"\ntime_control = "30+5"\nvariant = "fischerandom"',
    )
    loaded = driver.load(tmp_path, season)
    played, other = (driver.Driver.launched(loaded, seed=s).play() for s in ("one", "two"))
    league = [played.state.games[game] for game in played.state.events["league"].order]
    starts = [game.start for game in league]
    assert starts[:6] == starts[6:]
    assert len(set(starts)) == 6
    assert starts != [g.start for g in other.state.games.values() if g.event == "league"]
    order = orders.game_order(played.state, league[0].id)
    assert order.variant == "fischerandom"
    assert chess.Board(order.opening.fen or "", chess960=True).chess960_pos() == starts[0]
    assert orders.game_order(played.state, "final.1").variant == "standard"


@given(st.integers(0, openings.CHESS960 - 1))
def test_a_start_position_is_that_of_its_number(number: int) -> None:
    """The FEN is a legal Chess960 start with all four castlings, written KQkq."""
    board = chess.Board(openings.start_position(number).fen or "", chess960=True)
    assert board.chess960_pos() == number
    assert board.is_valid()
    assert " KQkq " in (openings.start_position(number).fen or "")


def test_the_start_position_stands_once_among_the_openings(tmp_path: Path) -> None:
    """S16-8a: different openings, among them the start position once, each in two games."""
    season = driver.season_text(ENGINES).replace(
        "games = 4 }", "games = 12 }\nstart_position = true"
    )
    played = driver.Driver.launched(driver.load(tmp_path, season, lines=6 + 5)).play()
    found = [orders.game_order(played.state, game.id).opening for game in final_games(played)]
    assert found[::2] == found[1::2]
    assert found[::2].count(contract.Opening()) == 1
    assert len({opening.fen for opening in found}) == 6


def test_the_start_position_needs_a_book(tmp_path: Path) -> None:
    """One start position among openings that no book holds is refused."""
    season = driver.season_text(ENGINES).replace(
        'time_control = "60+5"\nbook = "short"', 'time_control = "60+5"\nstart_position = true'
    )
    with pytest.raises(errors.SeasonFileError, match="without a book"):
        driver.load(tmp_path, season)
