"""Judge an interrupted attempt: its verdict with the evidence, journaled as one fact.

The plies and the tablebases are arguments, so this is as pure as ``decide``. A verdict with
a result journals the game's result behind it, like a hall would; the archive's record of
such a game is made of the journal alone. A game that goes on carries its plies and clocks
in the fact, is offered again with them and stays one record (S16-15b v).

The organizers are asked where the rules leave it to them (seven men and no tables), and where
plies are lost or cannot be read, under ``<game>:interruption``; the game is moved behind the
paired games of its event, which go on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from orchestrator import contract
from orchestrator.arbiter import eco, rmobility
from orchestrator.arbiter import verdict as verdicts
from orchestrator.arbiter.adjudication import interruption, tablebase
from orchestrator.common import errors
from orchestrator.season.fold import entries, events, orders
from orchestrator.season.fold import state as season_state

ASKED: Final = ":interruption"  # behind the game's id: the name of the question
RESUME: Final = "resume"
RESULTS: Final[tuple[contract.Result, ...]] = ("1-0", "0-1", "1/2-1/2")
ANSWERS: Final = (*RESULTS, RESUME)

Scenario = interruption.Scenario
_GOES_ON = frozenset({Scenario.RESUMED, Scenario.RESTARTED, Scenario.ASK})


class _Case(NamedTuple):
    """An interrupted attempt, and all engine plies of its game up to now."""

    game: events.Game
    lost: season_state.Lost
    plies: tuple[contract.PlyRecord, ...]
    rules: contract.Interruptions


def judge(
    state: season_state.SeasonState,
    plies: Sequence[contract.PlyRecord],
    prober: tablebase.Prober | None = None,
    played: int = 0,
) -> list[contract.Draft]:
    """Return the verdict on the attempt that waits for one, [] when none does.

    ``plies`` are the journaled ones of that attempt; a resumed attempt may repeat the
    earlier ones. ``played`` is the last that is known of, whether it can be read or not.
    """
    if state.lost is None:
        return []
    case = _case(state, plies)
    order = orders.game_order(state, case.game.id)
    reached = case.plies[-1].ply if case.plies else 0
    if reached < (expected := max(played, case.lost.ended.ply)):
        unknown = (
            f"of {expected} plies {reached} are left: the others are lost, or of another version"
        )
        asked = interruption.Verdict(Scenario.ASK, None, unknown)
        return _drafts(state, case._replace(plies=_sound(order, case)), asked)
    try:
        position = interruption.position(order, case.plies, prober)
    except (errors.BookError, errors.LedgerDamagedError) as error:
        unreadable = f"the plies cannot be played: {error}"
        asked = interruption.Verdict(Scenario.ASK, None, unreadable)
        return _drafts(state, case._replace(plies=_sound(order, case)), asked)
    return judged_by(state, position, plies, prober)


def judged_by(
    state: season_state.SeasonState,
    position: interruption.Facts,
    plies: Sequence[contract.PlyRecord] = (),
    prober: tablebase.Prober | None = None,
) -> list[contract.Draft]:
    """Return the verdict that rests on facts that are known already (a simulation's)."""
    case = _case(state, plies)
    verdict = interruption.judged(position, case.rules, prober)
    if verdict.outcome is None and case.lost.then == "restart":
        verdict = interruption.Verdict(Scenario.RESTARTED, None, verdict.evidence)
    return _drafts(state, case, verdict)


def answer(
    state: season_state.SeasonState, question: str, choice: str, name: str, reason: str
) -> list[contract.Draft]:
    """Answer what is to become of an interrupted game: a result, or ``resume``.

    Raise ``RefusedError`` for a question nobody asked, ``UsageError`` for no answer to it.
    """
    state.require_unfinished()
    game = state.games.get(question.removesuffix(ASKED))
    if game is None or not question.endswith(ASKED) or not game.asks:
        questions = ", ".join(outstanding(state)) or "none"
        raise errors.RefusedError(f"no question {question!r} is open; open: {questions}")
    if not reason:
        raise errors.UsageError("a decision of the organizers needs --reason")
    if choice not in ANSWERS:
        raise errors.UsageError(f"{question}: found {choice!r}; allowed: {', '.join(ANSWERS)}")
    return _answered(state, game, choice, name, reason)


def following(state: season_state.SeasonState) -> list[contract.Draft]:
    """Return the result that the organizers' word has, where the journal ends behind the word."""
    for game in () if state.over else state.interrupted():
        result = _result(game.verdict.removesuffix(entries.BY_ORGANIZERS))
        if result is not None and game.progress is not None:
            return [_finished(state, game, game.progress, verdicts.organizers(result))]
    return []


def outstanding(state: season_state.SeasonState) -> list[str]:
    """Return the questions about interrupted games that wait for the organizers."""
    if state.over:
        return []
    return [f"{game.id}{ASKED}" for game in state.games.values() if game.open and game.asks]


def record(state: season_state.SeasonState, finished: contract.GameFinished) -> contract.GameRecord:
    """Return the record of a game that a verdict has ended: what the journal knows of it."""
    game = state.game(finished.game)
    outcome = contract.Outcome(
        result=finished.result,
        ending=finished.ending,
        loser=finished.loser,
        details=finished.details,
    )
    return _record(state, game, finished, outcome)


# -- one case ------------------------------------------------------------------------


def _case(state: season_state.SeasonState, plies: Sequence[contract.PlyRecord]) -> _Case:
    assert state.lost is not None  # the callers look first
    game = state.game(state.lost.ended.game)
    before = game.progress.plies if game.progress else ()
    by_ply = {ply.ply: ply for ply in (*before, *plies)}
    whole = tuple(by_ply[number] for number in sorted(by_ply))
    return _Case(game, state.lost, whole, state.events[game.event].spec.interruptions)


def _sound(order: contract.GameOrder, case: _Case) -> tuple[contract.PlyRecord, ...]:
    """Return the plies that a game can go on from, whatever the organizers answer."""
    try:
        return interruption.playable(order, case.plies)
    except errors.BookError:
        return ()


def _drafts(
    state: season_state.SeasonState, case: _Case, verdict: interruption.Verdict
) -> list[contract.Draft]:
    fact = entries.AttemptJudged(
        game=case.game.id,
        attempt=case.lost.ended.attempt,
        scenario=verdict.scenario.value,
        evidence=verdict.evidence,
        rules=case.rules.rules,
        asks=verdict.scenario is Scenario.ASK,
        progress=_progress(case, verdict),
        after=_after(state, case, verdict.scenario),
    )
    return _with_result(state, case.game, fact, verdict.outcome)


def _with_result(
    state: season_state.SeasonState,
    game: events.Game,
    fact: entries.AttemptJudged,
    outcome: contract.Outcome | None,
) -> list[contract.Draft]:
    """Return a verdict and the result that it has; the result alone where the journal ends so."""
    drafts = [contract.Draft.of(entries.ATTEMPT_JUDGED, fact)]
    if outcome is None:
        return drafts
    if game.verdict == fact.scenario and game.progress is not None:
        return [_finished(state, game, game.progress, outcome)]
    return [*drafts, _finished(state, game, fact.progress, outcome)]


def _progress(case: _Case, verdict: interruption.Verdict) -> contract.Progress:
    """Return what the game goes on from, and what its record will tell."""
    ended, before, scenario = case.lost.ended, case.game.progress, verdict.scenario
    given: dict[contract.Side, int] = {"white": 0, "black": 0}
    last = case.plies[-1] if case.plies else None
    nothing: dict[contract.Side, int | None] = {"white": None, "black": None}
    clocks = nothing if last is None else _clocks(case, last, given)
    plies = () if scenario is Scenario.RESTARTED else case.plies
    interrupted = contract.Interruption(
        attempt=ended.attempt,
        ply=case.plies[-1].ply if case.plies else 0,
        cause=ended.cause,
        evidence=ended.evidence,
        verdict=f"{verdict.scenario.value}: {verdict.evidence}",
        white_compensation_ns=given["white"] if scenario in _GOES_ON and plies else 0,
        black_compensation_ns=given["black"] if scenario in _GOES_ON and plies else 0,
    )
    return contract.Progress(
        plies=plies,
        white_clock_ns=clocks["white"] if plies else None,
        black_clock_ns=clocks["black"] if plies else None,
        started_ms=before.started_ms if before else case.lost.started_ms,
        interruptions=(*(before.interruptions if before else ()), interrupted),
    )


def _clocks(
    case: _Case, last: contract.PlyRecord, given: dict[contract.Side, int]
) -> dict[contract.Side, int | None]:
    """Return both clocks with the compensation, and note in ``given`` what it is.

    An attempt without a new ply gets none a second time: nothing was taken off since.
    """
    before = case.game.progress
    if before is not None and before.plies and last.ply <= before.ply:
        return {"white": before.white_clock_ns, "black": before.black_clock_ns}
    given |= interruption.compensation_ns(case.plies, case.rules)
    return {
        "white": last.white_clock_ns + given["white"],
        "black": last.black_clock_ns + given["black"],
    }


def _after(state: season_state.SeasonState, case: _Case, scenario: Scenario) -> str:
    """Return the game behind which this one is played now, '' where it keeps its place."""
    event = state.events[case.game.event]
    later = event.order[event.order.index(case.game.id) + 1 :]
    if scenario not in _GOES_ON:
        return ""
    if scenario is not Scenario.ASK:
        wished = case.lost.then or case.rules.when
        if wished != "end-of-round":
            return ""
        later = [later_id for later_id in later if _same_round(case.game, state.game(later_id))]
    waiting = [later_id for later_id in later if state.game(later_id).open]
    return waiting[-1] if waiting else ""


def _same_round(game: events.Game, other: events.Game) -> bool:
    return (game.cycle, game.round_number) == (other.cycle, other.round_number)


# -- results -------------------------------------------------------------------------


def _answered(
    state: season_state.SeasonState, game: events.Game, choice: str, name: str, reason: str
) -> list[contract.Draft]:
    assert game.progress is not None  # a game that asks has been interrupted
    result = _result(choice)  # None: it is resumed
    last = game.progress.interruptions[-1]
    fact = entries.AttemptJudged(
        game=game.id,
        attempt=last.attempt,
        scenario=f"{result}{entries.BY_ORGANIZERS}" if result else Scenario.RESUMED.value,
        evidence="",
        rules=state.events[game.event].spec.interruptions.rules,
        progress=game.progress,
        before=_next(state, game) if result else "",
        reason=reason,
        name=name,
    )
    outcome = None if result is None else verdicts.organizers(result)
    return _with_result(state, game, fact, outcome)


def _result(words: str) -> contract.Result | None:
    return next((result for result in RESULTS if result == words), None)


def _next(state: season_state.SeasonState, game: events.Game) -> str:
    """Return the game that is played, or would be, when the result of another one comes."""
    event = state.events[game.event]
    first = event.order[event.cursor]
    return "" if first == game.id else first


def _finished(
    state: season_state.SeasonState,
    game: events.Game,
    progress: contract.Progress,
    outcome: contract.Outcome,
) -> contract.Draft:
    """Return the result of a game that nobody plays on."""
    plies, lost = progress.plies, state.lost
    ended = lost.ended if lost is not None and lost.ended.game == game.id else None
    clocks = plies[-1] if plies else None
    fact = contract.GameFinished(
        game=game.id,
        attempt=progress.interruptions[-1].attempt,
        hall=ended.hall if ended else state.hall,
        lane=ended.lane if ended else "",
        host=ended.host if ended else "",
        result=outcome.result,
        ending=outcome.ending,
        loser=outcome.loser,
        details=outcome.details,
        plies=clocks.ply if clocks else (ended.ply if ended else 0),
        white_clock_ns=clocks.white_clock_ns if clocks else 0,
        black_clock_ns=clocks.black_clock_ns if clocks else 0,
        started_ms=progress.started_ms,
        ended_ms=state.at_ms,
        record_sha256="",
        by_verdict=True,
    )
    outcome = outcome.model_copy(update={"note": ""})  # the evidence is the interruption's
    made = _record(state, _with(game, progress), fact, outcome)
    mobility = None if made.r_mobility is None else made.r_mobility.white_points
    digest = hashlib.sha256(made.encode().encode()).hexdigest()
    whole = fact.model_copy(update={"r_mobility": mobility, "record_sha256": digest})
    return contract.Draft.of(entries.GAME_FINISHED, whole)


def _with(game: events.Game, progress: contract.Progress) -> events.Game:
    return events.evolve(game, progress=progress)


def _record(
    state: season_state.SeasonState,
    game: events.Game,
    finished: contract.GameFinished,
    outcome: contract.Outcome,
) -> contract.GameRecord:
    progress = game.progress
    plies = progress.plies if progress else ()
    order = orders.game_order(state, game.id).model_copy(update={"progress": None})
    made = contract.GameRecord(
        order=order,
        attempt=finished.attempt,
        hall=finished.hall,
        lane=finished.lane,
        host=finished.host,
        started_ms=finished.started_ms,
        ended_ms=finished.ended_ms,
        white=contract.EngineReport(),
        black=contract.EngineReport(),
        plies=plies,
        outcome=outcome,
        final_fen=interruption.final_fen(order, plies),
        r_mobility=rmobility.of_record(order, plies, outcome),
        interruptions=progress.interruptions if progress else (),
    )
    return eco.classified(made)
