"""``-tournament adaptive``: what is dealt hangs on seed and results, not on when games end."""

from __future__ import annotations

import pathlib
import random

import pytest
import table

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.testmatch import match_journal, standings
from worker_cpu.match import adaptive_schedule, arguments, schedule

NAMES = ("A", "B", "C", "D")
PLAN = schedule.Plan(4, "adaptive", budget=60, confidence=0.8, within=40)


def result(slot: schedule.Slot) -> match_journal.Result:
    """Return a game's result: a function of the game, the earlier engine mostly the better one."""
    luck = random.Random(f"{slot.number}/{slot.white}").random()
    better: contract.Result = "1-0" if slot.white < slot.black else "0-1"
    return match_journal.Result(
        number=slot.number,
        round=slot.round,
        white=NAMES[slot.white],
        black=NAMES[slot.black],
        opening=slot.opening,
        result="1/2-1/2" if luck < 0.3 else better,
        ending=contract.Ending.CHECKMATE,
        loser=None,
        details="",
        note="",
        plies=1,
        started_ms=0,
        ended_ms=0,
        pair=slot.pair,
    )


def play(
    seed: int, lanes: int, luck: int, stop: int = 10**6
) -> tuple[dict[int, match_journal.Result], adaptive_schedule.Dealer, list[schedule.Slot]]:
    """Play on so many lanes, games ending in an order that chance decides, to an end or a stop."""
    table_of = standings.Standings(NAMES, adaptive=True)
    dealer = adaptive_schedule.Dealer(PLAN, seed, lanes, table_of)
    return _played_on(table_of, dealer, {}, dealer.more(), lanes, luck, stop)


def _played_on(
    table_of: standings.Standings,
    dealer: adaptive_schedule.Dealer,
    done: dict[int, match_journal.Result],
    queue: list[schedule.Slot],
    lanes: int,
    luck: int,
    stop: int,
) -> tuple[dict[int, match_journal.Result], adaptive_schedule.Dealer, list[schedule.Slot]]:
    chance, running = random.Random(luck), list[schedule.Slot]()
    while (queue or running) and len(done) < stop:
        while queue and len(running) < lanes:
            running.append(queue.pop(0))
        slot = running.pop(chance.randrange(len(running)))
        done[slot.number] = result(slot)
        table_of.add(slot, done[slot.number])
        if len(queue) < lanes:
            queue += dealer.more()
    return done, dealer, queue


def test_the_games_are_the_same_in_whichever_order_they_end() -> None:
    """Three lanes, games that end anyhow: one schedule, and pairs with both colours."""
    one, dealer, _ = play(1, 3, luck=1)
    assert one == play(1, 3, luck=2)[0]
    assert any(one != play(seed, 3, luck=1)[0] for seed in (2, 3, 4))
    assert dealer.complete
    assert len(one) < PLAN.budget
    for number in range(1, len(one), 2):
        first, second = one[number], one[number + 1]
        assert (first.white, first.black, first.opening) == (
            second.black,
            second.white,
            second.opening,
        )


@pytest.mark.parametrize("stop", [1, 5, 12, 19])
def test_a_match_that_is_resumed_deals_what_it_would_have_dealt(stop: int) -> None:
    """Wherever it was stopped, with games in flight: in the end the same games."""
    whole, *_ = play(1, 3, luck=1)
    done, *_ = play(1, 3, luck=5, stop=stop)
    table_of = standings.Standings(NAMES, adaptive=True)
    dealer = adaptive_schedule.Dealer(PLAN, 1, 3, table_of)
    for number, finished in done.items():
        table_of.white_points[number] = standings.HALF_POINTS[finished.result]
    slots = dealer.resumed(done)
    for slot in slots:
        if slot.number in done:
            table_of.add(slot, done[slot.number])
    missing = [slot for slot in slots if slot.number not in done]
    found, *_ = _played_on(table_of, dealer, done, [*missing, *dealer.more()], 3, 9, 10**6)
    assert found == whole


ENGINES = [word for name in "abc" for word in ("-engine", "cmd=sh", f"name={name}", "tc=1")]


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ("-tournament adaptive -games 4 -rounds 3", "-games: all games, or -rounds"),
        ("-tournament adaptive -noswap", "colours exchanged"),
        ("-tournament adaptive -games 2", "more of them"),
        ("-until ordered=0.95", "-tournament adaptive beside it"),
        ("-tournament adaptive -until ordered=95", "below 1"),
        ("-tournament adaptive -until within=-1", "0 Elo or more"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_write(words: str, refused: str) -> None:
    """Each with its switch."""
    with pytest.raises(errors.UsageError, match=refused):
        arguments.read([*ENGINES, *words.split()])


@pytest.mark.parametrize(
    ("words", "budget", "confidence"),
    [
        ("-games 101", 100, 0.0),
        ("-games 2 -rounds 5 -repeat", 30, 0.0),
        ("-rounds 5 -until within=10", 30, 0.95),
        ("", 3_000, 0.95),
    ],
)
def test_a_budget_is_all_games_or_those_of_a_round_robin(
    words: str, budget: int, confidence: float
) -> None:
    """Without one the match ends when its list is in order."""
    plan = arguments.read([*ENGINES, "-tournament", "adaptive", *words.split()]).plan
    assert (plan.budget, plan.confidence, plan.games) == (budget, confidence, 2)


def test_a_match_ranks_its_engines_and_goes_on(tmp_path: pathlib.Path) -> None:
    """The whole command: table, order, what it saved; then more games from the journal."""
    engines = [*table.mating("good", "Good"), *table.mating("bad", "Bad")]
    words = [*engines, *table.mating("bad", "Worse"), "-each", "tc=10+0.1", "-srand", "3"]
    words += ["-tournament", "adaptive", "-pgnout", "g.pgn"]
    out = table.play(tmp_path, *words, "-games", "6").stdout
    assert "Match of 3 engines: at most 6 games" in out
    assert "Order: " in out
    found = table.run_json(tmp_path, *words, "-games", "8", "-resume")
    assert (found["complete"], found["played"], found["games"]) == (True, 8, 8)
    assert 0 < found["order"]["wrong"] < 0.5
