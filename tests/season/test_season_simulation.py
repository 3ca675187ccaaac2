"""Whole seasons under virtual time, each counted again by ``recount``.

FARM_SEASONS says with how many seeds each season is played (`make seasons`: 200). Over the
runs every tie criterion, gate and organizers' decision of the rule texts must have occurred:
the tables below are typed from it, not read from the season files.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import resource
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import driver
import pytest
import recount
from click import testing

from orchestrator import commands, contract
from orchestrator.arbiter import verdict
from orchestrator.common import errors
from orchestrator.forecast import game_model, season_simulation
from orchestrator.rating import elo
from orchestrator.season import verify_seed
from orchestrator.season.fold import entries, events, state, tally
from orchestrator.season.spec import model

SEEDS = int(os.environ.get("FARM_SEASONS", "6"))
LONG = "FARM_SEASONS" in os.environ
CUTS = 12 if LONG else 3
MANY = 200  # seeds with which every event has asked its organizers
STEPS = 100 if LONG else 20  # further cuts of a season
GAMES = 2_000
LEAGUE = 316 if LONG else 40  # engines of the scale test

# Usual games, equal engines whose ties go down to the organizers, engines and hosts that break.
EVEN = game_model.Chances(draw=0.95, white_elo=0, crash=0, time_loss=0, strength=0, goals=1)
ROUGH = game_model.Chances(crash=0.02, time_loss=0.01, interruption=0.05)
CHANCES = (game_model.Chances(), EVEN, ROUGH, EVEN)
# Circles (a beats b, b beats c, c beats a): large groups on equal points, many of them level in
# their direct encounter too; with crashes, so that some of a group are parted before it.
CIRCLES = game_model.Chances(draw=0.5, crash=0, time_loss=0, strength=0, goals=1)
BROKEN_CIRCLES = game_model.Chances(draw=0.5, crash=0.015, time_loss=0.01, strength=0, goals=2)
CIRCULAR = (CIRCLES, BROKEN_CIRCLES)
WORLDS = (*CHANCES, *CIRCULAR)
NOISE = 6  # of so many games one goes as its chances say

TCEC = {"crashes", "direct-encounter", "wins", "sonneborn-berger", "excluded"}
CRITERIA = {
    "season16": TCEC,
    "season17": TCEC,
    "cup": {"match"},
    "frc": {"direct-encounter", "sonneborn-berger", "r-mobility", "wins"},
    "ntcec1": {
        "opponents-score",
        "sonneborn-berger",
        "black-games",
        "wins",
        "black-wins",
        "direct-encounter",
    },
}
GATES = {
    "season16": {"l2", "l1", "divp", "sufi"},
    "season17": {"l2", "l1-cpu", "l1-gpu", "playoff", "divp", "sufi"},
    "cup": {"round-32"},
    "frc": set[str](),
    "ntcec1": {"stage-2a", "stage-2b", "stage-3", "stage-4", "superfinal"},
}
DECISIONS = {  # what organizers decide on where the chain leaves engines level
    "season16": {"promotion", "relegation"},
    "season17": {"promotion", "relegation"},
    "cup": set[str](),
    "frc": {"promotion"},
    "ntcec1": {"promotion"},
}
ASKING = {  # events whose organizers must have been asked, over many seeds
    "season16": {"ql", "l2", "l1", "l1-playoff", "divp"},
    "season17": {"ql", "l2", "l1-cpu", "playoff", "divp"},
    "cup": set[str](),
    "frc": {f"league-{name}" for name in "abcd"} | {"semi-1", "semi-2", "final-league"},
    "ntcec1": {"stage-1", "stage-2a", "stage-2b", "stage-3", "stage-4"},
}


def simulated(name: str, seed: int) -> season_simulation.Simulation:
    """Play a season; its seed also says of which kind its games are."""
    world = WORLDS[seed % len(WORLDS)]
    kind = Circular if world in CIRCULAR else season_simulation.Simulation
    return kind.launched(driver.shipped(name), seed, world).run()


class Circular(season_simulation.Simulation):
    """A season in which who beats whom runs in circles of three, but for some noise."""

    def _drawn(self, game: events.Game, attempt: str) -> game_model.Drawn:
        drawn = super()._drawn(game, attempt)
        if drawn.outcome.ending in tally.CRASHES or drawn.plies % NOISE == 0:
            return drawn
        order = self.state.events[game.event].entrants
        lead = (order.index(game.black) - order.index(game.white)) % 3
        outcome = (verdict.threefold(), verdict.checkmate("black"), verdict.checkmate("white"))[
            lead
        ]
        return dataclasses.replace(
            drawn,
            outcome=outcome,
            white_points={"black": 1.0, "white": 0.0}.get(outcome.loser, 0.5),
        )


@pytest.mark.parametrize("name", recount.SEASONS)
def test_every_season_is_played_to_the_champion_that_a_recount_finds(name: str) -> None:
    """Games, matches, disqualifications, ties and promotions follow the rule texts."""
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        played = simulated(name, seed)
        found = recount.check(name, [entry.line() for entry in played.journal])
        _count(seen, played, found)
        _check_gates(played)
    _check_coverage(name, seen)
    print(f"\n{name}, {SEEDS} seeds:", ", ".join(f"{w} {n}" for w, n in sorted(seen.items())))


def _count(
    seen: Counter[str], played: season_simulation.Simulation, found: dict[str, recount.Event]
) -> None:
    for event in found.values():
        seen.update(f"by {row['decided_by'] or 'nothing'}" for row in event.rows)
        seen["crashes"] += sum(bool(game.crashed) for game in event.games)
        for _, level in itertools.groupby(event.rows, key=lambda row: row["half_points"]):
            direct = [row["tiebreaks"].get("direct-encounter") for row in level]
            seen["groups of three or more"] += len(direct) > 2
            seen["groups partly parted before their direct encounter"] += (
                len(set(direct)) > 1 and None in direct
            )
            seen["circles"] += len(direct) > 2 and len(set(direct)) == 1 and None not in direct
    for entry in played.journal:
        if entry.kind == entries.GATE_OPENED:
            seen[f"gate {entry.data['event']}"] += 1
        if entry.kind == entries.DECISION_NEEDED:
            about = entry.data["about"]
            seen[f"asked {entry.data['event']}"] += 1
            seen["decision promotion"] += "to " in about
            seen["decision relegation"] += "relegated" in about
        if entry.kind == entries.ATTEMPT_JUDGED:
            seen["question of rule 15b"] += entry.data["asks"]
        if entry.kind in {entries.ENGINE_EXCLUDED, entries.ATTEMPT_ENDED}:
            seen[entry.kind] += 1


def _check_coverage(name: str, seen: Counter[str]) -> None:
    """Every criterion, gate and kind of decision has occurred, if there were seeds enough."""

    def lines_with(word: str) -> set[str]:
        return {
            key.removeprefix(word) for key, count in seen.items() if key.startswith(word) and count
        }

    assert lines_with("gate ") == GATES[name]
    if len(WORLDS) <= SEEDS:
        if any(criterion == "direct-encounter" for criterion in CRITERIA[name]):
            assert seen["groups of three or more"] > SEEDS
            assert seen["circles"]
            assert seen["crashes"] > SEEDS
        assert lines_with("by ") >= CRITERIA[name]
        assert lines_with("decision ") == DECISIONS[name]
    if SEEDS >= MANY:
        assert lines_with("asked ") >= ASKING[name]
        assert lines_with("question ") == ({"of rule 15b"} if name != "ntcec1" else set())


def _check_gates(played: season_simulation.Simulation) -> None:
    """Every gate opened at its deadline, once, before its event started."""
    times = {
        (entry.kind, entry.data["event"]): entry.at_ms
        for entry in played.journal
        if entry.kind in {entries.GATE_OPENED, entries.EVENT_STARTED}
    }
    for event in played.state.events.values():
        opened = times.get((entries.GATE_OPENED, event.id))
        assert (opened is None) == (not event.spec.gated)
        if opened is not None:
            assert (event.opens_at_ms or 0) <= opened <= times[entries.EVENT_STARTED, event.id]


@pytest.mark.parametrize("name", recount.SEASONS)
def test_a_season_cut_anywhere_goes_on_the_same(name: str) -> None:
    """The journal alone decides what follows, to the byte; the empty cut is a second run."""
    whole = simulated(name, 2)
    content = season_simulation.journal_bytes(whole.journal)
    assert season_simulation.journal_bytes(simulated(name, 2).journal) == content
    for cut in range(1, CUTS + 1):
        kept = whole.journal[: 1 + cut * (len(whole.journal) - 1) // (CUTS + 1)]
        again = type(whole)(kept, whole.chances).run()
        assert season_simulation.journal_bytes(again.journal) == content


@pytest.mark.parametrize("name", recount.SEASONS)
def test_the_next_step_follows_from_the_journal_wherever_it_is_cut(name: str) -> None:
    """A fresh fold of a prefix takes the step that was taken there.

    By induction the whole continuation is the same. Some cuts are looked at, among them the
    first and last of each kind; in the long form every one before or after a fact that was
    decided, and many between games.
    """
    whole = simulated(name, 1).journal
    for cut in _cuts(whole):
        again = season_simulation.Simulation(whole[:cut], EVEN)
        again.step()
        assert len(again.journal) > cut
        assert again.journal[cut:] == whole[cut : len(again.journal)]


def _cuts(journal: Sequence[contract.Entry]) -> Sequence[int]:
    """Return how many entries are kept, in several ways that cover all kinds."""
    kinds = [entry.kind for entry in journal[1:]]
    first = {kinds.index(kind) + 1 for kind in kinds}
    last = {len(kinds) - kinds[::-1].index(kind) for kind in kinds}
    played = {entries.ATTEMPT_STARTED, entries.GAME_FINISHED}
    decided = {n for n, kind in enumerate(kinds, start=1) if kind not in played} if LONG else set()
    return sorted(first | last | decided | set(range(1, len(journal), len(journal) // STEPS)))


def _results(journal: Sequence[contract.Entry]) -> list[tuple[str, str, str]]:
    ends = [one.data for one in journal if one.kind == entries.GAME_FINISHED]
    return [(one["game"], one["result"], one["ending"]) for one in ends]


@pytest.mark.parametrize("rule", ["", 'interruptions = "s16"', 'interruptions = "cup"'])
def test_a_small_season_cut_at_every_entry_goes_on_the_same(tmp_path: Path, rule: str) -> None:
    """Also in the middle of a game, of an interruption, of a batch of pairings.

    A verdict and its result are two entries: a game that is decided is never played on.
    """
    rough = game_model.Chances(crash=0.1, interruption=0.3)
    text = driver.season_text(6, 2).replace('book = "short"', f'book = "short"\n{rule}')
    small = driver.load(tmp_path, text)
    whole = season_simulation.Simulation.launched(small, 11, rough).run()
    judged = [entry.data for entry in whole.journal if entry.kind == entries.ATTEMPT_JUDGED]
    told = {one["scenario"] for one in judged}
    assert told > ({"won by both evals", "1-0 by the organizers"} if rule else set())
    for cut in range(1, len(whole.journal)):
        again = season_simulation.Simulation(whole.journal[:cut], rough).run()
        # Behind the organizers' word its result comes at another time, and nothing else.
        if whole.journal[cut - 1].kind == entries.ATTEMPT_JUDGED and again.journal[cut:]:
            assert _results(again.journal) == _results(whole.journal)
            assert len(again.journal) == len(whole.journal)
        else:
            assert again.journal == whole.journal


def test_another_seed_is_another_season() -> None:
    """Results and draws follow from the seed."""
    first, second = (season_simulation.as_json(simulated("cup", seed)) for seed in (0, 3))
    assert first["journal_sha256"] != second["journal_sha256"]


@pytest.mark.parametrize(("white", "black"), [(3000, 3000), (3100, 3000), (2900, 3200)])
def test_the_mean_score_is_that_of_the_ratings(white: int, black: int) -> None:
    """Draws cost nobody points; without breakdowns only rating and first move count."""
    quiet = game_model.Chances(crash=0, time_loss=0, white_elo=30)
    engines = [
        contract.EngineSpec(id=f"e{n}", name=f"Engine {n}", command=("engine",), rating=rating)
        for n, rating in enumerate((white, black))
    ]
    control = contract.TimeControl.parse("30+5")
    taken = Counter(
        game_model.draw(quiet, "seed", str(n), engines[0], engines[1], control).outcome.result
        for n in range(GAMES)
    )
    score = (taken["1-0"] + taken["1/2-1/2"] / 2) / GAMES
    assert abs(score - elo.expected(white + 30 - black)) < 0.03


def test_an_engine_that_breaks_down_loses(tmp_path: Path) -> None:
    """Rates may differ by engine; crashes are counted."""
    rates = game_model.Chances(crashes={"e2": 0.95}, crash=0, time_loss=0)
    small = driver.load(tmp_path, driver.season_text(4, 3))
    played = season_simulation.Simulation.launched(small, 5, rates).run()
    last = played.state.events["league"].rows[-1]
    assert last.engine == "e2"
    assert last.tiebreaks[model.Criterion.CRASHES] > 12


def test_a_big_league_costs_the_same_by_game_from_first_to_last(tmp_path: Path) -> None:
    """Decided game by game, drawn, ranked and folded; the figures are printed, not judged."""
    text = driver.season_text(LEAGUE).replace('"short.epd"', '"short.epd"\nrepeat = true')
    big = season_simulation.Simulation.launched(driver.load(tmp_path, text), 1)
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
    assert verify_seed.verify(again, driver.shipped("cup")).mismatches == ()
    told = dataclasses.replace(again[0], data={**again[0].data, "reason": "a\u2028line of text"})
    path.write_bytes(season_simulation.journal_bytes([told, *again[1:]]))
    verified = testing.CliRunner().invoke(commands.farm, ["verify-draws", str(path)])
    assert verified.exit_code == 0, verified.output
    assert facts["games"] == sum(event["games"] for event in facts["events"])
    table = testing.CliRunner().invoke(commands.farm, arguments[:4])
    assert table.exit_code == 0
    assert "Champion: " in table.output


def test_what_a_simulation_assumes_is_told(tmp_path: Path) -> None:
    """Play takes as long with a gate as without; a seed that nobody gave plays the same again."""
    driver.load(tmp_path, driver.season_text())  # its books
    told = {}
    for wait, line in (("operator", 'break = "operator"\n'), ("none", "")):
        file = tmp_path / f"{wait}.toml"
        file.write_text(driver.season_text().replace('break = "10m"\n', line))
        done = testing.CliRunner().invoke(commands.farm, ["simulate", str(file), "--seed", "3"])
        assert done.exit_code == 0, done.output
        told[wait] = " ".join(done.output.split())
    summaries = [re.search(r"\d+ games in [^,]+", text) for text in told.values()]
    assert all(summaries)
    assert len({summary[0] for summary in summaries if summary}) == 1
    assert "6h of waiting are assumed: 6h for each gate" in told["operator"]
    assert "waiting" not in told["none"]
    for text in told.values():
        assert "no engine has a rating: all count as equal" in text
    words = ["forecast", str(file), "--runs", "2", "--processes", "1"]
    forecast = testing.CliRunner().invoke(commands.farm, words).output
    assert "no engine has a rating: all count as equal" in forecast

    drawn = json.loads(
        testing.CliRunner().invoke(commands.farm, ["simulate", "cup", "--json"]).output
    )
    words = ["simulate", "cup", "--seed", str(drawn["seed"]), "--json"]
    again = json.loads(testing.CliRunner().invoke(commands.farm, words).output)
    assert again == drawn


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--draw-rate", "1"], "draw rate: found 1; allowed: 0 to 0.95"),
        (["--crash-rate", "often"], "--crash-rate: found 'often'"),
        (["--crash-rate", "nobody=0.1"], "no engine nobody in cup"),
        (["--time-loss-rate", "seed-1=-1"], "time-loss rate of seed-1: found -1"),
        (["--white-advantage", "nan"], "--white-advantage': nan is no number"),
        (["--white-advantage", "1e9"], "white advantage: found 1e+09"),
    ],
)
def test_impossible_chances_are_refused(arguments: list[str], message: str) -> None:
    """Rates with which a season might never end, and unknown engines, are wrong usage."""
    command = ["simulate", "cup", "--seed", "1", *arguments]
    done = testing.CliRunner().invoke(commands.farm, command)
    assert done.exit_code == errors.UsageError.exit_code
    assert message in done.output
