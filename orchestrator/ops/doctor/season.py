"""Checks of a season on this host: tables, files, and each engine started for two plies."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ops import entry_points
from orchestrator.season.fold import orders
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model

WHOLE: Final = {3: 5, 4: 35, 5: 145, 6: 510, 7: 1511}  # WDL tables up to so many men
CUT: Final = 40  # characters: a beginning as long as this is of that line and no accident
ENGINES_MEN: Final = 6  # what engines are given (S16 Engine configuration)
TRIAL: Final = contract.TimeControl(base_ms=60_000, increment_ms=1_000)
TWO_PLIES: Final = contract.Adjudication(max_moves=1)


def tables(state: season_state.SeasonState, event: str) -> Iterator[contract.Finding]:
    """Look whether the event's tablebases are whole here."""
    spec = state.events[event].spec
    rule = spec.adjudication.syzygy
    paths = {"engines": spec.limits.syzygy_path, "adjudication": rule.path if rule else None}
    for whose, path in paths.items():
        if path:
            men = rule.men if rule and whose == "adjudication" else ENGINES_MEN
            yield _tables(f"{whose}: {path}", count(path, men), men)


def count(path: str, men: int) -> int:
    """Count the tables up to so many men in directories, joined by ``:``."""
    stems = {
        file.stem
        for directory in path.split(":")
        for file in pathlib.Path(directory).glob("*.rtbw")
        if len(file.stem) - 1 <= men
    }
    return len(stems)


def _tables(name: str, present: int, men: int) -> contract.Finding:
    missing = WHOLE[men] - present
    return contract.Finding(
        area="tables",
        name=name,
        status="ok" if missing <= 0 else "failed",
        found=f"{present} tables to {men} men" + (f", {missing} missing" if missing > 0 else ""),
        why="tablebase adjudication and equal tables (S16-11d)",
        do="fetch and check them: role syzygy (syzygy_url, syzygy_checksums_src)",
    )


def trials(
    state: season_state.SeasonState, event: str, own: contract.EngineSpec
) -> list[contract.GameOrder]:
    """Return an order a roster engine of the event: two plies against the farm's own."""
    spec = state.events[event].spec
    field = state.events[event].entrants or tuple(state.engines)
    return [
        trial(orders.engine_in(state.engines[engine], event), own, spec, number=number)
        for number, engine in enumerate(field, start=1)
    ]


def trial(
    engine: contract.EngineSpec,
    own: contract.EngineSpec,
    rules: model.Event | None,
    *,
    number: int = 1,
    control: contract.TimeControl = TRIAL,
) -> contract.GameOrder:
    """Return the order of two plies, an engine as White against the farm's own.

    ``rules`` are the event by whose limits and time-outs it is started; ``None``: the usual ones.
    """
    order = contract.GameOrder(
        season="preflight",
        season_name="Preflight",
        event="preflight",
        event_name="Preflight",
        game=f"preflight-{number}",
        number=number,
        round=str(number),
        white=engine,
        black=own,
        time_control=control,
        journaled=False,
        adjudication=TWO_PLIES,
    )
    if rules is None:
        return order
    return order.model_copy(update={"limits": rules.limits, "timeouts": rules.timeouts})


def engines(
    written: Sequence[contract.GameOrder], play: entry_points.Play, hall: str, url: str | None
) -> Iterator[contract.Finding]:
    """Start each engine as in a game, in its sandbox, with the event's limits."""
    for order in written:
        yield _engine(order, play, hall, url)


def _engine(
    order: contract.GameOrder, play: entry_points.Play, hall: str, url: str | None
) -> contract.Finding:
    status: Literal["ok", "failed", "unknown"] = "failed"
    outcome = "it did not play"
    try:
        for record in play([order], hall, url):
            whole = record.outcome.ending is contract.Ending.MAX_MOVES
            status = "ok" if whole else "failed"
            outcome = (record.white.id_name or "it gives no name") if whole else _lost(record)
            lowered = [
                f"{option.name}: {option.remark}"
                for option in record.white.options
                if option.remark
            ]
            outcome += f" ({'; '.join(lowered)})" if whole and lowered else ""
            outcome += f" (sandbox: {record.white.sandbox})" if record.white.sandbox else ""
    except errors.RefusedError as error:
        status, outcome = "unknown", str(error)
    except errors.FarmError as error:
        outcome = str(error)
    return contract.Finding(
        area="engine",
        name=order.white.id,
        status=status,
        found=outcome,
        why="every engine starts, takes its options and answers (S16-13d)",
        do=f"farm engine show {order.white.id}; correct its entry or files; farm engine test",
    )


def _lost(record: contract.GameRecord) -> str:
    """Say how a trial was lost: the record's words, and the engine's own last ones."""
    outcome = record.outcome
    stderr = record.white.stderr_tail if outcome.loser == "white" else ""
    last = stderr.strip().rpartition("\n")[2].strip()
    note = outcome.note
    if last in note:
        return ": ".join(filter(None, (outcome.details, note)))
    sizes = range(len(last), CUT, -1)  # the note may have the beginning of a long line
    cut = next((last[:size] for size in sizes if last[:size] in note), "")
    whole = note.replace(cut, last) if cut else ": ".join(filter(None, (note, last)))
    return ": ".join(filter(None, (outcome.details, whole)))
