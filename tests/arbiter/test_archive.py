"""The archive proof: real seasons end, ply by ply, as the rules say.

The games are those of TCEC's public game archive (TCEC organization, CC BY-SA 3.0), read
from ``tests/data/tcec``. What differs is data: ``archive_exceptions.csv`` holds one line and
cause a ply; of the games two are missed, those of ``MISSES``, whose record lacks a remark.
"""

from __future__ import annotations

import collections
import csv
import dataclasses
import functools
import os
import pathlib
from collections.abc import Iterator
from typing import TypeAlias, TypeVar

import archive
import chess
import pytest
import tcec_events

from orchestrator import contract
from orchestrator.arbiter import rmobility
from orchestrator.arbiter.adjudication import draws, plies, wins
from orchestrator.contract import Ending

EXCEPTIONS = pathlib.Path(__file__).with_name("archive_exceptions.csv")
EVENTS = tcec_events.names()
FIELDS = ("mb", "R50", "Rd", "Rr", "tl")
MISSES = {("Season_18_-_Qualification_League", 30), ("Season_4_-_Stage_2a", 54)}
REASONS = {
    "mate": Ending.CHECKMATE,
    "threefold": Ending.THREEFOLD,
    "fifty": Ending.FIFTY_MOVES,
    "insufficient": Ending.INSUFFICIENT,
    "tb": Ending.SYZYGY,
    "win_rule": Ending.EVAL_WIN,
}
FAULTS = {"disconnect", "illegal", "resign", "time"}  # no rule may end these games

Place: TypeAlias = tuple[str, int, int, str]  # event, game, ply, field
Rule: TypeAlias = draws.EvalDraw | draws.FewPiecesDraw | wins.EvalWin
Model = TypeVar("Model", contract.EvalDraw, contract.EvalWin, contract.FewPiecesDraw)


@dataclasses.dataclass
class Findings:
    """What one pass over an event file has found."""

    ends: list[archive.Replayed | None] = dataclasses.field(default_factory=list)
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    differ: dict[Place, tuple[str, str]] = dataclasses.field(default_factory=dict)
    refuted: set[str] = dataclasses.field(default_factory=set)


@functools.cache
def findings(name: str) -> Findings:
    """Replay all games of an event: ends, printed fields, and changed thresholds."""
    event, found = archive.event(name), Findings()
    for game in event.games:
        printer, last = archive.Printer(game, event.rules), None
        changed = dict(neighbours(event.rules))
        prober = archive.Known(game.tags["Result"])  # no 6-men tables are here
        for ply in archive.replay(game, event.rules, prober):
            last = ply
            _compare(found, (name, game.number, ply.number), ply, printer.fields(ply))
            found.refuted |= _refuted(changed, ply)
        found.ends.append(last)
    return found


def _compare(
    found: Findings, place: tuple[str, int, int], ply: archive.Replayed, fields: dict[str, str]
) -> None:
    for field, value in fields.items():
        recorded = ply.told.fields.get(field)
        if recorded is not None:
            found.counts[field] += 1
            if recorded != value:
                found.differ[(*place, field)] = (recorded, value)


# -- ends ---------------------------------------------------------------------------------


def expected(event: archive.Event, reason: str) -> Ending | None:
    """Return the ending behind a recorded reason, ``None`` for what no rule decides."""
    if reason == "draw_rule":
        few = event.rules.few_pieces_draw is not None
        return Ending.FEW_PIECES_DRAW if few else Ending.EVAL_DRAW
    if reason == "tb" and event.rules.syzygy is None:
        return None
    return None if reason in FAULTS else REASONS[reason]


@pytest.mark.parametrize("name", EVENTS)
def test_every_game_ends_at_the_recorded_ply_for_the_recorded_reason(name: str) -> None:
    """Rules and board end each game where TCEC did, or not at all where an engine failed.

    So tablebase games end at the first position with 6 men and no castling rights, and
    no other game comes to one before its end.
    """
    event = archive.event(name)
    for game, row, last in zip(event.games, event.rows(), findings(name).ends, strict=True):
        ending = last and last.ending
        assert (last.number if last else 0) == row["plies"], (game.number, ending)
        if row["reason"] != "unknown":
            missed = (name, game.number) in MISSES
            wanted = None if missed else expected(event, row["reason"])
            assert (ending and ending.ending) == wanted, (game.number, row["reason"])
        if ending:
            assert ending.result == row["result"], game.number


# -- printed fields -----------------------------------------------------------------------


@functools.cache
def exceptions() -> dict[Place, tuple[str, str]]:
    """Return the listed differences: what is recorded and what is computed, by place."""
    with EXCEPTIONS.open(newline="") as file:
        return {
            (row["event"], int(row["game"]), int(row["ply"]), row["field"]): (
                row["recorded"],
                row["computed"],
            )
            for row in csv.DictReader(file)
        }


@pytest.mark.parametrize("name", EVENTS)
def test_recorded_fields_are_recomputed(name: str) -> None:
    """mb, R50, Rd, Rr and tl equal the recorded ones at every ply but the listed ones.

    Those are at most 0.5 % of the plies of a field and event, and no line is stale.
    """
    found = findings(name)
    assert found.differ == {at: pair for at, pair in exceptions().items() if at[0] == name}
    assert found.counts["R50"] > 800
    for field, count in found.counts.items():
        wrong = sum(place[3] == field for place in found.differ)
        assert 1000 * wrong <= 5 * count, field
        if os.environ.get("FARM_LONG"):
            print(f"\n{name:<36} {field:<4} {count - wrong:>6} of {count:>6} plies", end="")


# -- thresholds ---------------------------------------------------------------------------

DRAW = ("min_ply", "bound_cp", "plies")
WIN = ("bound_cp", "plies")
FEW = ("pieces", "bound_cp", "plies")
# Changes that no public game of these rules contradicts, by the era's first event.
UNSEEN = {
    "Season_13_-_Division_3": {"draw min_ply +1"},
    "Season_16_-_Frc_Cpu_League_2": {"draw min_ply +1", "win bound_cp -1"},
    "Season_4_-_Stage_2a": {"win bound_cp -1"},
    "Season_5_-_Stage_1": {"draw min_ply +1", "win bound_cp -1"},
}
OWN = {Ending.EVAL_DRAW: "draw", Ending.EVAL_WIN: "win", Ending.FEW_PIECES_DRAW: "few"}


def off(rule: Model, field: str, delta: int) -> Model:
    """Return a rule with one number changed."""
    return rule.model_copy(update={field: getattr(rule, field) + delta})


def neighbours(rules: contract.Adjudication) -> Iterator[tuple[str, Rule]]:
    """Yield every rule with one of its thresholds a hundredth, a ply or a piece off."""
    for delta in (-1, 1):
        if draw := rules.eval_draw:
            for field in DRAW:
                yield f"draw {field} {delta:+}", draws.EvalDraw(off(draw, field, delta))
        if win := rules.eval_win:
            for field in WIN:
                yield f"win {field} {delta:+}", wins.EvalWin(off(win, field, delta))
        if few := rules.few_pieces_draw:
            for field in FEW:
                yield f"few {field} {delta:+}", draws.FewPiecesDraw(off(few, field, delta))


def _refuted(changed: dict[str, Rule], ply: archive.Replayed) -> set[str]:
    """Return the changed rules that end the game here and should not, or should and do not.

    A clock that differs from the printed one, where the true rule's does not, refutes too.
    """
    seen = plies.Ply(ply.number, ply.mover, ply.score, ply.board)
    ends = {name for name, rule in changed.items() if rule.take(seen)}
    own = ply.ending and OWN.get(ply.ending.ending)
    if own:
        return {name for name in changed if name.startswith(own)} - ends
    if ply.ending:
        return set()
    counters = ply.ruling.counters
    for kind, field, true in (("draw", "Rd", counters.rd), ("win", "Rr", counters.rr)):
        printed = ply.told.fields.get(field)
        if printed is not None and printed == str(true):
            for name, rule in changed.items():
                if name.startswith(kind) and rule.shown(ply.number) != true:
                    ends.add(name)
    return ends


@pytest.mark.parametrize("events", archive.eras(), ids=lambda events: events[0])
def test_no_threshold_could_be_a_hundredth_or_a_ply_off(events: list[str]) -> None:
    """Each change of a threshold contradicts a recorded game of the same rules."""
    wrong = set[str]().union(*(findings(name).refuted for name in events))
    every = {name for name, _ in neighbours(archive.event(events[0]).rules)}
    assert every - wrong == UNSEEN.get(events[0], set())


def test_every_threshold_is_proved_by_some_season() -> None:
    """What no public game of one season's rules can tell, those of another do."""
    wrong = set[str]().union(*(findings(name).refuted for name in EVENTS))
    assert set[str]().union(*UNSEEN.values()) <= wrong


@pytest.mark.parametrize("name", EVENTS)
def test_r_mobility_of_every_drawn_game(name: str) -> None:
    """Smallest G and its holder are those that were computed for this data by another program."""
    event = archive.event(name)
    for game, row in zip(event.games, event.rows(), strict=True):
        if row["result"] == "1/2-1/2":
            moves = (chess.Move.from_uci(told.move) for told in game.plies)
            found = rmobility.of_game(game.start(), moves, loser=None)
            side = 1 if found.holder == "white" else -1
            assert [found.g, side] == row["rmob_G_side(computed)"], game.number
