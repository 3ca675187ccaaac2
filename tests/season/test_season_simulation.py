"""Whole seasons under virtual time, each counted again by ``recount``.

FARM_SEASONS says with how many seeds each season is played (`make seasons`: 200).
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import resource
import time
from collections import Counter
from pathlib import Path

import driver
import pytest
import recount
from click import testing

import orchestrator
from orchestrator import chances, commands, contract, errors, simulation
from orchestrator.rating import elo
from orchestrator.season import entries, files, model, state, verify

SEASONS = Path(orchestrator.__file__).parent / "seasons"
SEEDS = int(os.environ.get("FARM_SEASONS", "3"))
CUTS = 3
GAMES = 2_000
LEAGUE = 317 if "FARM_SEASONS" in os.environ else 40  # engines of the scale test

# Quiet games, drawish ones that leave ties, engines and hosts that break down.
CHANCES = (
    chances.Chances(),
    chances.Chances(draw=0.95, white_elo=0, crash=0, time_loss=0),
    chances.Chances(crash=0.02, time_loss=0.01, interruption=0.05),
)


@functools.cache
def loaded(name: str) -> files.Loaded:
    """Read a season file once."""
    return files.load(SEASONS / f"{name}.toml")


def simulated(name: str, seed: int) -> simulation.Simulation:
    """Play a season; its seed also says of which kind its games are."""
    played = simulation.Simulation.launched(loaded(name), seed, CHANCES[seed % len(CHANCES)])
    return played.run()


@pytest.mark.parametrize("name", recount.SEASONS)
def test_every_season_is_played_to_the_champion_that_a_recount_finds(name: str) -> None:
    """Games, matches, disqualifications, ties and promotions follow the rulebook."""
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        played = simulated(name, seed)
        found = recount.check(name, [entry.line() for entry in played.journal])
        _count(seen, played, found)
        _check_gates(played)
    print(f"\n{name}, {SEEDS} seeds:", ", ".join(f"{w} {n}" for w, n in sorted(seen.items())))


def _count(
    seen: Counter[str], played: simulation.Simulation, found: dict[str, recount.Event]
) -> None:
    for event in found.values():
        seen.update(f"by {row['decided_by'] or 'nothing'}" for row in event.rows)
    for entry in played.journal:
        if entry.kind == entries.GATE_OPENED:
            seen[f"gate {entry.data['event']}"] += 1
        if entry.kind == entries.DECISION_NEEDED:
            seen[f"decision {entry.data['decision']}"] += 1
        if entry.kind in {entries.ENGINE_EXCLUDED, entries.ATTEMPT_ENDED}:
            seen[entry.kind] += 1


def _check_gates(played: simulation.Simulation) -> None:
    """Every gate opened at its deadline, once, before its event started."""
    times = {
        (entry.kind, entry.data["event"]): entry.at_ms
        for entry in played.journal
        if entry.kind in {entries.GATE_OPENED, entries.EVENT_STARTED}
    }
    for event in played.state.events.values():
        opened = times.get((entries.GATE_OPENED, event.id))
        assert (opened is None) == (event.spec.break_ms is None)
        if opened is not None:
            assert (event.opens_at_ms or 0) <= opened <= times[entries.EVENT_STARTED, event.id]


@pytest.mark.parametrize("name", recount.SEASONS)
def test_a_season_cut_anywhere_goes_on_the_same(name: str) -> None:
    """The journal alone decides what follows, to the byte; the empty cut is a second run."""
    whole = simulated(name, 2)
    content = simulation.journal_bytes(whole.journal)
    assert simulation.journal_bytes(simulated(name, 2).journal) == content
    for cut in range(1, CUTS + 1):
        kept = whole.journal[: 1 + cut * (len(whole.journal) - 1) // (CUTS + 1)]
        again = simulation.Simulation(kept, whole.chances).run()
        assert simulation.journal_bytes(again.journal) == content


def test_a_small_season_cut_at_every_entry_goes_on_the_same(tmp_path: Path) -> None:
    """Also in the middle of a game, of an interruption, of a batch of pairings."""
    rough = chances.Chances(crash=0.1, interruption=0.3)
    small = driver.load(tmp_path, driver.season_text())
    whole = simulation.Simulation.launched(small, 11, rough).run()
    assert any(entry.kind == entries.ATTEMPT_ENDED for entry in whole.journal)
    for cut in range(1, len(whole.journal)):
        again = simulation.Simulation(whole.journal[:cut], rough).run()
        assert again.journal == whole.journal


def test_another_seed_is_another_season() -> None:
    """Results and draws follow from the seed."""
    first, second = (simulation.facts(simulated("cup", seed)) for seed in (0, 3))
    assert first["journal_sha256"] != second["journal_sha256"]


@pytest.mark.parametrize(("white", "black"), [(3000, 3000), (3100, 3000), (2900, 3200)])
def test_the_mean_score_is_that_of_the_ratings(white: int, black: int) -> None:
    """Draws cost nobody points; without breakdowns only rating and first move count."""
    quiet = chances.Chances(crash=0, time_loss=0, white_elo=30)
    engines = [
        contract.EngineSpec(id=f"e{n}", name=f"Engine {n}", command=("engine",), rating=rating)
        for n, rating in enumerate((white, black))
    ]
    control = contract.TimeControl.parse("30+5")
    taken = Counter(
        chances.draw(quiet, "seed", str(n), engines[0], engines[1], control).outcome.result
        for n in range(GAMES)
    )
    score = (taken["1-0"] + taken["1/2-1/2"] / 2) / GAMES
    assert abs(score - elo.expected(white + 30 - black)) < 0.03


def test_an_engine_that_breaks_down_loses(tmp_path: Path) -> None:
    """Rates may differ by engine; crashes are counted."""
    rates = chances.Chances(crashes={"e2": 0.95}, crash=0, time_loss=0)
    small = driver.load(tmp_path, driver.season_text(4, 3))
    played = simulation.Simulation.launched(small, 5, rates).run()
    last = played.state.events["league"].rows[-1]
    assert last.engine == "e2"
    assert last.tiebreaks[model.Criterion.CRASHES] > 12


def test_a_big_league_costs_the_same_by_game_from_first_to_last(tmp_path: Path) -> None:
    """Decided game by game, drawn, ranked and folded; the figures are printed, not judged."""
    text = driver.season_text(LEAGUE).replace('"short.epd"', '"short.epd"\nrepeat = true')
    big = simulation.Simulation.launched(driver.load(tmp_path, text), 1)
    games, began, times = LEAGUE * (LEAGUE - 1), time.process_time(), []
    for tenth in range(1, 11):
        while big.state.seq < tenth * 2 * games // 10:
            big.step()
        times.append(time.process_time())
    big.run()
    spent = [end - start for start, end in itertools.pairwise((began, *times))]
    began = time.process_time()
    assert state.fold(big.journal).champion == big.state.champion != ""
    assert big.state.events["league"].tally.games == games
    folded = time.process_time() - began
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    each = ", ".join(f"{10_000 * seconds / games:.3f}" for seconds in spent)
    print(f"\n{games} games: ms a result in each tenth {each}; fold {folded:.2f} s; {used:.0f} MB")


def test_the_command_writes_what_anyone_can_verify(tmp_path: Path) -> None:
    """The published journal of a simulated season passes ``verify-draws``."""
    path = tmp_path / "journal.jsonl"
    arguments = ["simulate", "cup", "--seed", "4", "--json", "--journal", str(path)]
    done = testing.CliRunner().invoke(commands.farm, arguments)
    assert done.exit_code == 0, done.output
    facts = json.loads(done.output)
    assert list(facts)[:6] == [
        "season",
        "seed",
        "champion",
        "games",
        "virtual_days",
        "journal_sha256",
    ]
    journal = path.read_text().splitlines()
    again = [contract.Entry.from_line(line) for line in journal]
    assert verify.verify(again, loaded("cup")).mismatches == ()
    assert facts["games"] == sum(event["games"] for event in facts["events"])
    table = testing.CliRunner().invoke(commands.farm, arguments[:4])
    assert table.exit_code == 0
    assert "Champion: " in table.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--draw-rate", "1"], "draw rate: found 1; allowed: 0 to 0.95"),
        (["--crash-rate", "often"], "--crash-rate: found 'often'"),
        (["--crash-rate", "nobody=0.1"], "no engine nobody in cup"),
        (["--time-loss-rate", "seed-1=-1"], "time-loss rate of seed-1: found -1"),
        (["--white-advantage", "nan"], "white advantage"),
    ],
)
def test_impossible_chances_are_refused(arguments: list[str], message: str) -> None:
    """Rates with which a season might never end, and unknown engines, are wrong usage."""
    command = ["simulate", "cup", "--seed", "1", *arguments]
    done = testing.CliRunner().invoke(commands.farm, command)
    assert done.exit_code == errors.UsageError.exit_code
    assert message in done.output
