"""Bad workers are found by their results, checks, clocks and stamps; honest ones are not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
import run_bad_workers

from orchestrator import contract
from orchestrator.testmatch import orders, worker_review

GAMES = 100


def review() -> worker_review.WorkerReview:
    """Return a review of a match with checks."""
    return worker_review.WorkerReview(run_bad_workers.Everything().spec.model_copy(update=SHORT))


SHORT = {"games": GAMES}


def check(token: str, number: int, move: str = "e4") -> dict[str, Any]:
    """Return a check as the journal has it; without a token it is a lane's."""
    whose = {"attempt": f"{token}/b"} if token else {"hall": "main", "attempt": "main.a-1"}
    told = {"game": orders.LAST_GAME + number, "host": f"{token}/box", "pgn": f"1. {move} *"}
    return {**told, **whose, "result": "1/2-1/2", "ending": contract.Ending.MAX_MOVES}


def game(token: str, number: int = 1, **other: Any) -> dict[str, Any]:
    """Return a drawn game as the journal has it."""
    told = {"game": number, "host": f"{token}/box", "hall": "", "attempt": f"{token}/b"}
    return {**told, "result": "1/2-1/2", "ending": contract.Ending.STALEMATE, **other}


def rules(one: worker_review.WorkerReview) -> dict[str, str]:
    """Return who is found, by which rule."""
    return {finding.token: finding.rule for finding in one.findings()}


@pytest.mark.parametrize(
    ("told", "found"),
    [
        # (token, check, move): lanes have no token
        ([("", 1, "e4"), ("", 1, "e4"), ("", 2, "e4"), ("", 2, "e4")], {"bad": "checks"}),
        ([("", 1, "e4"), ("", 1, "e4")], {}),  # one alone condemns nobody
        ([("", 1, "e4"), ("", 2, "e4")], {}),  # nor does a lane that played once
        ([("", 1, "e4"), ("", 1, "c4"), ("", 2, "e4"), ("", 2, "c4")], {}),  # no engine for checks
        ([(name, n, "e4") for name in "abc" for n in (1, 2)], {"bad": "checks"}),  # no lanes there
        ([(name, n, "e4") for name in "ab" for n in (1, 2)], {}),
    ],
)
def test_checks_show_another_build(told: list[tuple[str, int, str]], found: dict[str, str]) -> None:
    """Two that go otherwise than twice in lanes, or than three other owners agree upon."""
    one = review()
    for number in (1, 2):
        one.check(check("bad", number, "d4"))
    for token, number, move in told:
        one.check(check(token, number, move))
    assert rules(one) == found


def test_checks_that_most_workers_fail_say_nothing() -> None:
    """Then the engine does not repeat its moves on their machines; one bad owner of one is bad."""
    one = review()
    for number in (1, 2):
        for token in ("", "", "x", "y"):
            one.check(check(token, number, "d4" if token else "e4"))
    assert rules(one) == {}
    assert one.unreliable()


def clock(
    minute: int, boot: float, day: float = 0.0, way: Sequence[float] = (0.0,) * 100
) -> dict[str, Any]:
    """Return a worker's clock, so much ahead after some minutes.

    ``way`` is how long each request is under way, and its answer, in ms.
    """

    def shown(at_ms: float) -> int:
        return round(at_ms * (1 + boot))

    sent, before = 61_000 * minute, 61_000 * (minute - 1)
    told: dict[str, Any] = {
        "process": "p",
        "at_ms": round(sent + way[minute]),
        "boot_ms": shown(sent),
    }
    if minute:
        came = before + way[minute - 1]
        told["heard"] = {"at_ms": round(came), "boot_ms": shown(came + way[minute - 1])}
    return {"clock": {**told, "day_ms": round(told["boot_ms"] + day)}}


@pytest.mark.parametrize(
    ("ahead", "found"), [(0.0, {}), (0.01, {}), (-0.1, {"t": "clock"}), (0.1, {"t": "clock"})]
)
def test_a_wrong_clock_is_found_in_minutes(ahead: float, found: dict[str, str]) -> None:
    """Fast or slow at three looks, each from one answer to another."""
    one = review()
    for minute in range(9):
        one.game(game("t", minute + 1, **clock(minute, ahead)))
    assert rules(one) == found


def test_no_delay_looks_like_a_clock() -> None:
    """Requests and answers are half a minute under way, now and then, or slower and slower."""
    dice = random.Random(3)
    for at in range(50):
        longest = dice.choice([1_000, 5_000, 30_000])
        ways = [dice.random() ** dice.choice([1, 8]) * longest for _ in range(60)]
        for way in (ways, sorted(ways), sorted(ways, reverse=True)):
            one = review()
            for minute in range(60):
                one.game(game("t", minute + 1, **clock(minute, 0.0, way=way)))
            assert rules(one) == {}, at


@pytest.mark.parametrize("ahead", [-0.1, 0.1])
def test_a_wrong_clock_is_found_behind_a_slow_link(ahead: float) -> None:
    """A look lasts until it tells: what five seconds of delay leave open, some minutes do not."""
    one = review()
    for minute in range(60):
        one.game(game("t", minute + 1, **clock(minute, ahead, way=(5_000.0,) * 60)))
    assert rules(one) == {"t": "clock"}


def test_a_worker_of_before_tells_too_little_to_be_judged_by_its_clock() -> None:
    """Without what it had heard, delay and clock cannot be told apart; nor by an answer to come."""
    one = review()
    for minute in range(9):
        old = clock(minute, -0.1)["clock"]
        old.pop("heard", None)
        one.game(game("t", minute + 1, clock=old))
        ahead = clock(minute, -0.1)["clock"] | {"heard": {"at_ms": 1 << 50, "boot_ms": 0}}
        one.game(game("u", minute + 1, clock=ahead))
    assert rules(one) == {}


def test_a_clock_that_is_set_or_stood_still_once_is_no_crime() -> None:
    """The day's clock measures nothing; a machine that slept is back in time."""
    one = review()
    for minute in range(18):
        stood = clock(minute, 0.0, day=5_000.0 * minute)
        for figures, later in ((stood["clock"], 9), (stood["clock"].get("heard"), 10)):
            if figures:
                figures["boot_ms"] -= 600_000 * (minute >= later) - 600_000
        one.game(game("t", minute + 1, **stood))
    assert rules(one) == {}
    assert one.reviews()[0].clock_steps == 7, "at each look"


@pytest.mark.parametrize(("repeated", "found"), [(5, {}), (60, {"t": "stamps"})])
def test_times_that_no_clock_shows(repeated: int, found: dict[str, str]) -> None:
    """Three games of mostly repeated thinking times."""
    one = review()
    stamps = {"plies": 80, "repeated": repeated, "overhead_ns": 80_000_000}
    for number in range(1, 4):
        one.game(game("t", number, stamps=stamps))
    assert rules(one) == found
    assert one.reviews()[0].overhead_ms == 1.0


def test_a_pardon_forgets_everything_and_a_condemned_owner_is_found_once() -> None:
    """What is played after a pardon counts against him anew."""
    one = review()
    for number in (1, 2):
        for token in ("", "", "bad"):
            one.check(check(token, number, "d4" if token else "e4"))
    assert rules(one) == {"bad": "checks"}
    one.condemn("bad", "why")
    assert [(row.state, row.reason) for row in one.reviews()] == [("condemned", "why")]
    one.check(check("bad", 1, "d4"))
    assert rules(one) == {}
    one.pardon("bad")
    one.check(check("bad", 1, "d4"))
    assert rules(one) == {}
    one.check(check("bad", 2, "d4"))
    assert rules(one) == {"bad": "checks"}


def test_bad_workers_of_simulated_tests() -> None:
    """Those who cannot play the builds are found without a game; no honest one is."""
    found = run_bad_workers.Tests(run_bad_workers.Everything(), 3, 40).run(4)
    assert found.false_alarms == 0
    assert found.accepted == 0
    for name in ("another binary", "made-up wins"):
        assert found.games[name]
        assert not any(found.games[name])
    assert max(found.games["made-up, repeated times"]) <= 2 * worker_review.STAMPED_GAMES


def test_a_check_is_short_new_and_the_same_for_all() -> None:
    """It has an event of its own, so engines of its own; its number lies behind all games."""
    spec = run_bad_workers.Everything().spec.model_copy(update=SHORT)
    assert spec.checks == orders.CHECKS
    first = spec.order(orders.LAST_GAME + 1)
    assert (first.number, first.event) == (orders.LAST_GAME + 1, "m-check-1")
    assert first.control("white").nodes == first.control("black").nodes == 1
    assert first.adjudication.max_moves == orders.CHECK_MOVES
    assert spec.order(orders.LAST_GAME + 2).white == first.black
    with pytest.raises(ValueError, match="no game"):
        spec.order(orders.LAST_GAME + orders.CHECKS + 1)
    with pytest.raises(ValueError, match="no game"):
        spec.model_copy(update={"check_nodes": 0}).order(orders.LAST_GAME + 1)
