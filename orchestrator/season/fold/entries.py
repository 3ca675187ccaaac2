"""The kinds of entries in a season's journal and what each carries.

``launched`` is always the first. Facts are whole: a reader never has to compute a
pairing, an opening, a rank or a draw again. ``attempt_started``, ``attempt_ended`` and
``game_finished`` are written by the workers (``contract``), everything else by the
orchestrator; entries that an operator caused carry name and reason. Fields are only
ever added, with a default, so that old journals stay readable. ``launched`` and
``games_paired`` tell the seed and coming openings: no spectator may read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from orchestrator import contract
from orchestrator.arbiter.adjudication import interruption
from orchestrator.season.fold import standings
from orchestrator.season.spec import model

LAUNCHED: Final = "launched"
EVENT_STARTED: Final = "event_started"
GAMES_PAIRED: Final = "games_paired"
ATTEMPT_STARTED: Final = "attempt_started"
ATTEMPT_ENDED: Final = "attempt_ended"
GAME_FINISHED: Final = "game_finished"
EVENT_RANKED: Final = "event_ranked"
PROMOTED: Final = "promoted"
GATE_SET: Final = "gate_set"
GATE_OPENED: Final = "gate_opened"
PAUSED: Final = "paused"
RESUMED: Final = "resumed"
HELD: Final = "held"
ABORT_WISHED: Final = "abort_wished"
SEASON_FINISHED: Final = "season_finished"
SEASON_ABANDONED: Final = "season_abandoned"
ENGINE_EXCLUDED: Final = "engine_excluded"
GAMES_CANCELLED: Final = "games_cancelled"
DECISION_NEEDED: Final = "decision_needed"
DECIDED: Final = "decided"
EVENT_ADDED: Final = "event_added"
GAME_ADJUDICATED: Final = "game_adjudicated"
GAME_VOIDED: Final = "game_voided"
EVENTS_UNDONE: Final = "events_undone"
ATTEMPT_JUDGED: Final = "attempt_judged"
BY_ORGANIZERS: Final = " by the organizers"  # behind their result: the scenario of their verdict
ENDS: Final = frozenset({SEASON_FINISHED, SEASON_ABANDONED})  # of a season: nothing is decided then

ExclusionCause: TypeAlias = Literal["crashes", "withdrawal", "disqualification", "refusal"]


class Launched(contract.DeferredMessage):
    """The whole season as it was launched.

    ``books`` holds, in their drawn order, the exits the season needs. ``seed`` is secret
    until the season has ended; what is published is ``seed_sha256``. ``reason`` is the
    operator's, '' where none was given. ``logos`` are PNGs in Base64, by engine.
    """

    id: contract.ids.Name  # folders, keys and files are named by it
    season: model.Season
    engines: tuple[contract.EngineSpec, ...]
    books: Mapping[str, tuple[contract.Opening, ...]]
    seed: str
    seed_sha256: str
    hall: str
    version: str
    reason: str = ""
    logos: Mapping[str, str] = {}


def full_name(season: model.Season, season_id: str) -> str:
    """Return a season's name, with its id where it is not its file's.

    A file that is launched again (``--id``) has its name from the first time: without the id the
    one season's files would replace the other's.
    """
    return season.name if season_id == season.id else f"{season.name} ({season_id})"


class EventStarted(contract.DeferredMessage):
    """An event begins; ``entrants`` are engine ids in the order of their seeds.

    In a Cup, ``ranks`` are the seeds (from 0) that its first round gave them, and
    ``bracket`` the places of a drawn round, '' for a bye. ``engines`` are pinned: what
    plays in the event is what they say, whatever is updated meanwhile.
    """

    event: str
    entrants: tuple[str, ...]
    ranks: tuple[int, ...] = ()
    bracket: tuple[str, ...] = ()
    engines: tuple[contract.EngineSpec, ...] = ()


class PairedGame(contract.DeferredMessage):
    """A game to be played; ``opening`` counts from 0 in the book's journaled exits.

    ``book`` is named where it is not the event's; ``start`` is a Chess960 position's number,
    from 960 on a double one's.
    """

    game: str
    number: int
    round: str
    white: str
    black: str
    opening: int | None = None
    book: str | None = None
    start: int | None = None


class GamesPaired(contract.DeferredMessage):
    """One round of an event, its games in their order of play.

    ``time_control`` is there where it is not the event's; ``byes`` win without playing.
    """

    event: str
    cycle: int
    round: int
    games: tuple[PairedGame, ...]
    time_control: contract.TimeControl | None = None
    byes: tuple[str, ...] = ()


class EventRanked(contract.DeferredMessage):
    """An event is complete; its final table with every tiebreak number."""

    event: str
    rows: tuple[standings.Row, ...]


class Promoted(contract.DeferredMessage):
    """Engines go on to another event, best first."""

    event: str
    to: str
    engines: tuple[str, ...]


class GateSet(contract.DeferredMessage):
    """What the gate before an event waits for has happened; it opens by itself later.

    ``opens_at_ms`` is None for a gate that only the operator opens.
    """

    event: str
    opens_at_ms: int | None


class GateOpened(contract.DeferredMessage):
    """The gate before an event is open."""

    event: str
    cause: Literal["deadline", "operator"]
    reason: str = ""
    name: str = ""


class Paused(contract.DeferredMessage):
    """No new game is begun until ``resumed``; the game in flight goes on.

    ``planned`` says that its time had been set before (``pause_planned``).
    """

    reason: str
    name: str
    planned: bool = False


class Resumed(contract.DeferredMessage):
    """A pause or a hold is over; where there is none, a planned pause is taken back."""

    reason: str
    name: str


class Held(contract.DeferredMessage):
    """The farm itself holds the season, because its games do not get going."""

    reason: str


Then: TypeAlias = Literal["", "at-once", "end-of-round", "restart"]


class AbortWished(contract.DeferredMessage):
    """The operator wants the attempt in flight to end as an interruption.

    ``then`` is what is to become of the game where no scenario ends it: played on at once,
    at the end of its round (CUP-7c), or again from its opening; '': as the event has it.
    """

    attempt: str
    reason: str
    name: str
    then: Then = ""


class AttemptJudged(contract.DeferredMessage):
    """The verdict on an interrupted attempt (S16-15b), with what it rests on.

    ``progress`` is what the game goes on from, and tells its record of the interruption.
    ``after`` is the game behind which it is played now, ``before`` the one before which its
    result came; '' where it keeps its place.
    ``asks`` when the organizers must say how it ends. A result follows as ``game_finished``.
    """

    game: str
    attempt: str
    scenario: str
    evidence: str
    rules: str
    progress: contract.Progress
    asks: bool = False
    after: str = ""
    before: str = ""
    reason: str = ""
    name: str = ""

    @property
    def decided(self) -> bool:
        """Say whether a result follows."""
        return self.scenario in interruption.DECIDED or self.scenario.endswith(BY_ORGANIZERS)


class SeasonFinished(contract.DeferredMessage):
    """The season is over (S16-8e): its champion (S16-9a), and the seed, secret no longer."""

    champion: str
    seed: str


class SeasonAbandoned(contract.DeferredMessage):
    """The organizers have ended the season before its end; the seed is secret no longer.

    A game in flight is given up without a result, unless it was over before its hall heard.
    """

    seed: str
    reason: str
    name: str


class EngineExcluded(contract.DeferredMessage):
    """An engine leaves an event: disqualified after crashes (S16-15c), or withdrawn.

    ``annulled`` games count for nobody any more, ``cancelled`` ones are not played.
    """

    event: str
    engine: str
    cause: ExclusionCause
    crashes: int
    annulled: tuple[str, ...]
    cancelled: tuple[str, ...]
    reason: str = ""
    name: str = ""


class GamesCancelled(contract.DeferredMessage):
    """Games that will not be played."""

    event: str
    games: tuple[str, ...]
    reason: str


class DecisionNeeded(contract.DeferredMessage):
    """The organizers must say who of a tie takes which place; ``choose`` is how many at least.

    ``place`` is the first of the tied places; ``about`` says what each of them leads to. ``to`` is
    the event that a place leads to which only a disqualified engine is left for (``vacancies``).
    """

    decision: str
    event: str
    place: int
    engines: tuple[str, ...]
    choose: int
    about: str
    to: str = ""


class EventAdded(contract.DeferredMessage):
    """A tie of an event has created a playoff, which is played right behind it.

    ``asked`` is the tie, ``leads`` what each of its places leads to, as words of no meaning
    but that equal ones lead alike.
    """

    event: str
    playoff: model.Event
    asked: DecisionNeeded
    leads: tuple[tuple[str, ...], ...]


class Decided(contract.DeferredMessage):
    """The answer of the organizers, or of a playoff, and the event's table after it."""

    decision: str
    event: str
    choose: tuple[str, ...]
    rows: tuple[standings.Row, ...]
    reason: str
    name: str


class GameAdjudicated(contract.DeferredMessage):
    """The organizers set the result of a game; ``before`` is the one it had, if any."""

    game: str
    finished: contract.GameFinished
    before: contract.Result | None
    reason: str
    name: str


class GameVoided(contract.DeferredMessage):
    """A game counts no longer; ``replay`` is the id of the game played in its place, or ''.

    ``crash_stays`` says that who crashed in it has crashed (S16-15d).
    """

    game: str
    replay: str
    reason: str
    name: str
    crash_stays: bool = False


class EventsUndone(contract.DeferredMessage):
    """What was built on a result is taken back: the first event is played on, unranked.

    The others, which its promoted had reached, wait again; their games count no longer.
    """

    events: tuple[str, ...]
    reason: str
    name: str
