"""Build the record of a finished game: outcome, plies, and where it was played."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from orchestrator import contract
from orchestrator.arbiter import eco, own_book, rmobility
from orchestrator.arbiter import record as records

Reports: TypeAlias = Mapping[contract.Side, contract.EngineReport]
_NS = 1_000_000  # ns per ms


@dataclasses.dataclass(frozen=True)
class Unmet:
    """An option that an engine did not take as it was given."""

    engine: str
    option: str
    asked: str
    remark: str

    def __str__(self) -> str:
        """Write it as a sentence."""
        return f"{self.engine}: option {self.option}={self.asked}: {self.remark}"


@dataclasses.dataclass(frozen=True)
class Warned:
    """What an engine said that cannot be right; it costs no game."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a game ended, after how many plies; ``record`` makes its record, if one is wanted.

    ``pgn`` is there where its order wanted it.
    """

    order: contract.GameOrder
    outcome: contract.Outcome
    plies: int
    final_fen: str
    started_ms: int
    ended_ms: int
    record: Callable[[], contract.GameRecord] | None = None
    pgn: str = ""
    unmet: tuple[Unmet, ...] = ()
    remarks: tuple[str | Warned, ...] = ()  # what there is to say of the game beside its end
    loser_stderr: str = ""  # the end of what the loser wrote there
    kept: tuple[contract.Side, ...] = ()  # whose engine stays for the next game


def game_record(
    finished: Mapping[str, Any],
    order: contract.GameOrder,
    plies: Sequence[contract.PlyRecord],
    **played: Any,
) -> contract.GameRecord:
    """Build the record from FINISHED's content; ``played`` are its attempt, times, place.

    A game that was resumed is told whole, from the beginning of its first attempt.
    """
    outcome = contract.Outcome.model_validate(finished["outcome"])
    progress = order.progress
    if progress is not None:
        played |= {"interruptions": progress.interruptions, "started_ms": progress.started_ms}
        order = order.model_copy(update={"progress": None})
    record = contract.GameRecord.model_validate(
        {
            "order": order.model_dump(),
            "white": finished["white"],
            "black": finished["black"],
            "plies": plies,
            "outcome": outcome,
            "final_fen": finished["final_fen"],
            "remarks": finished.get("remarks", ()),
            "r_mobility": rmobility.of_record(order, plies, outcome),
            **played,
        }
    )
    return eco.classified(record)


class Times:
    """When a game began, by the clock of the day, and the times since then.

    That clock may be set while the game is played, as in the minutes after a machine's start. It
    must make no game longer or shorter.
    """

    def __init__(self) -> None:
        """Begin now."""
        self.started_ms, self._began_ns = time.time_ns() // _NS, time.monotonic_ns()

    def now_ms(self) -> int:
        """Return the time now, as many milliseconds after the beginning as have gone by."""
        return self.started_ms + (time.monotonic_ns() - self._began_ns) // _NS


def pgn(
    order: contract.GameOrder,
    outcome: contract.Outcome,
    reports: Reports,
    plies: Sequence[contract.PlyRecord],
    played: records.Played,
    times: Times,
) -> str:
    """Write the PGN of a game that has just ended, as its order wants it.

    ``played`` are its plies as its board has them.
    """
    style = order.pgn or contract.PgnStyle()
    record = contract.GameRecord.model_construct(  # of parts that were checked before
        order=order,
        attempt=order.game,
        started_ms=times.started_ms,
        ended_ms=times.now_ms(),
        white=reports["white"],
        black=reports["black"],
        plies=tuple(plies),
        outcome=outcome,
        r_mobility=rmobility.of_record(order, plies, outcome),
    )
    return records.pgn(
        eco.classified(record, legal=True),
        minimal=style.minimal,
        comments=style.comments,
        fields=frozenset(style.fields),
        notation=style.notation,
        played=played,
    )


def unmet(finished: Mapping[str, Any], order: contract.GameOrder) -> Iterator[Unmet]:
    """Yield what became of options that an engine did not take as its entry gives them."""
    for spec, side in ((order.white, finished["white"]), (order.black, finished["black"])):
        given = {name.lower() for name in spec.options} | ({"ponder"} if spec.ponder else set())
        for option in side["options"]:
            if option["remark"] and option["name"].lower() in given:
                yield Unmet(spec.name, option["name"], option["asked"], option["remark"])


def fact(game: contract.GameRecord) -> contract.GameFinished:
    """Return what the journal keeps of a finished game."""
    last = game.plies[-1] if game.plies else None
    at_once = own_book.counts(game.order, game.plies)
    start_ns = {side: game.order.control(side).start_ms * 1_000_000 for side in _SIDES}
    return contract.GameFinished(
        game=game.order.game,
        attempt=game.attempt,
        hall=game.hall,
        lane=game.lane,
        host=game.host,
        result=game.outcome.result,
        ending=game.outcome.ending,
        loser=game.outcome.loser,
        details=game.outcome.details,
        note=game.outcome.note,
        refused=game.outcome.refused,
        plies=last.ply if last else len(game.order.opening.moves),
        white_clock_ns=last.white_clock_ns if last else start_ns["white"],
        black_clock_ns=last.black_clock_ns if last else start_ns["black"],
        started_ms=game.started_ms,
        ended_ms=game.ended_ms,
        r_mobility=game.r_mobility.white_points if game.r_mobility else None,
        white_unsearched=at_once["white"],
        black_unsearched=at_once["black"],
        record_sha256=hashlib.sha256(game.encode().encode()).hexdigest(),
    )


_SIDES: tuple[contract.Side, contract.Side] = ("white", "black")
