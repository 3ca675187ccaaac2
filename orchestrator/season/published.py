"""What is published of a finished game: the result that counts, and what was played.

A game's folder and the journal keep what was played; they are the evidence. Whoever shows a game
(the event's PGN, downloads, pages, feeds) asks here what to show. Invariants: a result that counts
is that of the table; a game that counts for nobody has none (``*``) and is called annulled; the
moves and what engines said of them stay; a PGN tells of people and hosts without names and
paths (``arbiter.redact``), as the public log does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from orchestrator import contract
from orchestrator.arbiter import record as records
from orchestrator.arbiter import redact, verdict
from orchestrator.season.fold import amendment_entries, entries, events, orders
from orchestrator.season.fold import state as season_state

# Behind such an entry games that were published before are published otherwise.
CORRECTIONS: Final = frozenset(
    {
        entries.GAME_ADJUDICATED,
        entries.GAME_VOIDED,
        entries.GAMES_CANCELLED,
        entries.ENGINE_EXCLUDED,
        entries.EVENTS_UNDONE,
        amendment_entries.ENGINE_REPLACED,
        amendment_entries.GAMES_IMPORTED,
    }
)
NO_RESULT: Final = "*"  # in PGN: of a game that nobody counts

Played = Callable[[str], bytes | None]  # a game's PGN as it was played, None where nobody has it


def annulled(state: season_state.SeasonState, game: events.Game) -> bool:
    """Say whether a game was played, or set, and counts for nobody."""
    excluded = state.events[game.event].tally.excluded
    out = game.cancelled or not excluded.isdisjoint((game.white, game.black))
    return game.finished is not None and out


def corrected(state: season_state.SeasonState, game: events.Game) -> bool:
    """Say whether a finished game is not published as it was played."""
    return game.finished is not None and (bool(game.ruling) or annulled(state, game))


def unplayed(game: events.Game) -> bool:
    """Say whether the organizers set the result of a game that nobody has played."""
    return game.finished is not None and bool(game.ruling) and not game.finished.attempt


def note(state: season_state.SeasonState, game: events.Game) -> str:
    """Return what the end of a finished game rests on, as operators read it (paths and all)."""
    if game.finished is None:
        return ""
    if not corrected(state, game):
        return game.finished.note
    ruling = game.ruling or "an engine of it has left the event"
    return f"annulled: {ruling}" if annulled(state, game) else ruling


def version(state: season_state.SeasonState, game: events.Game) -> str:
    """Return what changes with what is published of a finished game: a key for caches."""
    attempt = "" if game.finished is None else game.finished.attempt
    if not corrected(state, game):
        return attempt
    return f"{game.id} {attempt} {game.finished and game.finished.result} {note(state, game)}"


def result(state: season_state.SeasonState, game: events.Game) -> str:
    """Return the result of a game in PGN's words: ``*`` where none counts."""
    if game.finished is None or annulled(state, game):
        return NO_RESULT
    return game.finished.result


def details(state: season_state.SeasonState, game: events.Game) -> str:
    """Return how a game ended, in a few words; '' for one that is not finished."""
    if game.finished is None:
        return ""
    prefix = "Annulled: " if annulled(state, game) else ""
    return f"{prefix}{game.finished.details}"


def tags(
    state: season_state.SeasonState, game: events.Game, played: dict[str, str]
) -> dict[str, str]:
    """Return the PGN tags of a game; ``played`` are those of what was played."""
    finished = game.finished
    if finished is None or not corrected(state, game):
        return dict(played)
    out = annulled(state, game)
    end: dict[str, str] = {
        "Result": result(state, game),
        "Termination": "annulled" if out else verdict.termination(_outcome(finished)) or "",
        "TerminationDetails": details(state, game),
        "RMobilityResult": "",  # its points are for a result on the board
    }
    return {name: text for name, text in (played | end).items() if text}


def record(
    state: season_state.SeasonState, game: events.Game, played: contract.GameRecord
) -> contract.GameRecord:
    """Return a record with the result that the journal has, and with why in its note."""
    if game.finished is None or not corrected(state, game):
        return played
    was = f"{played.outcome.result}, {played.outcome.details}"
    outcome = _outcome(game.finished)
    remark = note(state, game)
    if outcome.result != played.outcome.result or outcome.details != played.outcome.details:
        remark = f"{remark}; played: {was}"
    return played.model_copy(
        update={"outcome": outcome.model_copy(update={"note": remark}), "r_mobility": None}
    )


def pgn(state: season_state.SeasonState, game: events.Game, played: bytes | None) -> bytes | None:
    """Return the PGN of a finished game; None where nobody has its moves.

    ``played`` is the PGN that its hall, or an import, has left. A game that was decided without
    being played has no moves and, as its opening may be still to come, no opening.
    """
    if unplayed(game):
        played = records.pgn(_without_moves(state, game)).encode()
    if played is None or not corrected(state, game):
        return played
    text = played.decode(errors="surrogateescape")
    before = records.read_tags(text)
    was = ", ".join(filter(None, map(before.get, ("Result", "TerminationDetails"))))
    how = "it was not played" if unplayed(game) else f"played: {was}"
    remark = f"{redact.text(note(state, game))}; {how}"
    return records.retold(text, tags(state, game, before), remark).encode(errors="surrogateescape")


def of_event(
    state: season_state.SeasonState, event: events.EventState, played: Played
) -> Iterator[bytes]:
    """Yield the PGN of an event's finished games in their order of play."""
    for game in map(state.game, event.order):
        text = pgn(state, game, played(game.id))
        if text is not None:
            yield text


def _outcome(finished: contract.GameFinished) -> contract.Outcome:
    return contract.Outcome(
        result=finished.result,
        ending=finished.ending,
        loser=finished.loser,
        details=finished.details,
    )


def _without_moves(state: season_state.SeasonState, game: events.Game) -> contract.GameRecord:
    finished = game.finished
    assert finished is not None
    update = {"progress": None, "opening": contract.Opening()}
    return contract.GameRecord(
        order=orders.game_order(state, game.id).model_copy(update=update),
        attempt="",
        hall=finished.hall,
        started_ms=finished.started_ms,
        ended_ms=finished.ended_ms,
        white=contract.EngineReport(),
        black=contract.EngineReport(),
        plies=(),
        outcome=_outcome(finished),
        final_fen="",
    )
