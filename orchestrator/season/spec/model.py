"""The season as its director writes it: a frozen model of the season file.

The same model is journaled at launch, so an edited file never changes a season that
runs. Every key of the file is a field here (``schema``, ``event``, ``engine`` and
``break`` by alias); how one value is written stands in ``values``, what several tables
must agree on is checked in ``checks``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import pydantic

from orchestrator import contract
from orchestrator.engines import builds
from orchestrator.season.spec import adjudications, interruption_rules, parsers

GAMES: Final = 100_000  # of a season: two years of bullet, day and night
FIELD: Final = 10_000  # engines of a season
RATING: Final = 100_000
ENTRANTS: Final = '"roster", a list of engine ids, or { first = 1, every = 4 }'


def _entrants(value: Any) -> Any:
    listed = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    if value != "roster" and not listed and not isinstance(value, dict | Share):
        raise ValueError(ENTRANTS)
    return tuple(value) if listed else value


def _command_by_class(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema that a command may be a table."""
    command = schema["properties"].pop("command")
    table = {"type": "object", "propertyNames": {"enum": list(builds.CLASSES)}}
    either = {"anyOf": [command, table | {"additionalProperties": command, "minProperties": 1}]}
    schema["properties"]["command"] = either


class Share(contract.DeferredMessage):
    """Equal-distance seeding (FRC-2a): every so many-th engine of the roster, from a first.

    Of 4 leagues A holds ``first = 1``, C 2, B 3, D 4, all ``every = 4``.
    """

    first: int = pydantic.Field(ge=1, le=FIELD)
    every: int = pydantic.Field(ge=1, le=FIELD)


Entrants: TypeAlias = Annotated[
    Literal["roster"] | tuple[str, ...] | Share, pydantic.BeforeValidator(_entrants)
]


class Criterion(enum.StrEnum):
    """A tiebreak criterion (TCEC Season 16, rule 12); ``tiebreaks`` computes each."""

    CRASHES = "crashes"  # S16-12b, S17-12b
    DIRECT_ENCOUNTER = "direct-encounter"  # S16-12c, S17-12c, FRC-3
    WINS = "wins"  # S16-12d, S17-12d, FRC-3
    SONNEBORN_BERGER = "sonneborn-berger"  # S16-12e, S17-12e, FRC-3
    OPPONENTS_SCORE = "opponents-score"  # N1 Tiebreaks, as are the next two
    BLACK_GAMES = "black-games"
    BLACK_WINS = "black-wins"
    R_MOBILITY = "r-mobility"
    SEED = "seed"
    PLAYOFF = "playoff"  # an event of its own where it matters (``playoffs``)
    ORGANIZERS = "organizers"  # S16-12f, S17-12f: decide where it matters (``decisions``)


Seed: TypeAlias = Annotated[int, pydantic.Field(ge=1, le=FIELD)]


class NeuralParts(contract.DeferredMessage):
    """The three parts of an engine of kind NN, by which it is told from others (S16-16)."""

    training: parsers.Text
    network: parsers.Text
    engine: parsers.Text


class EngineEntry(contract.DeferredMessage):
    """An engine of the roster; ``id`` follows from the name where it is not given.

    In a file ``command`` may be a table by host class (``builds.CLASSES``): ``files`` reads
    it as ``builds``, of which the best one that the host supports is started. Versions of
    an engine share its ``family``.
    """

    model_config = pydantic.ConfigDict(json_schema_extra=_command_by_class)

    id: parsers.Id | None = None
    name: parsers.Text | None = None
    version: str = ""
    family: str = ""
    author: str = ""
    country: str = ""
    logo: parsers.Text | None = None  # a PNG, from the file's folder
    protocol: contract.ProtocolName = "uci"
    command: tuple[parsers.Text, ...] = pydantic.Field(min_length=1)
    builds: Mapping[parsers.HostClass, parsers.Command] = {}
    directory: str | None = None
    options: Mapping[str, parsers.OptionValue] = {}
    rating: int | None = pydantic.Field(default=None, ge=-RATING, le=RATING)
    provisional: bool = False  # its rating comes from tests (S16-14e)
    network: parsers.Text | None = None
    checksums: Mapping[str, parsers.Sha256] = {}  # by file, as ``command`` and ``network`` name it
    competition: Literal["cpu", "gpu"] = "cpu"  # S17-2: where its process runs
    box: parsers.Id | None = None  # the GPU box that it runs on; None: the hall itself
    neural: NeuralParts | None = None
    exception: str = ""  # the organizers' reason to admit it all the same (S16-16)
    dropped: str = ""  # the organizers' reason to leave it out: the next moves up (CUP-1c)
    settings: Mapping[str, Mapping[str, parsers.OptionValue]] = {}  # by event, before ``options``
    init: tuple[str, ...] = ()  # lines sent right after the handshake
    white_pov: bool = False  # it reports scores from White's side


class EnginesFile(contract.DeferredMessage):
    """``engines.toml``: a roster in a file of its own, which seasons may share."""

    schema_version: Literal[1] = pydantic.Field(alias="schema")
    engines: tuple[EngineEntry, ...] = pydantic.Field(default=(), alias="engine")


class Updates(contract.DeferredMessage):
    """Until when engines of an event may be updated (S16-13, S17-13, CUP-8, FRC-8, N1).

    ``last-game``: until the last game of the event before it, also while an engine plays
    there (S16-13c); ``until-start``: the same, and on until it starts (S17-6d); ``start``: until
    it starts, by engines that do not play (N1);
    ``season-start``: until the first event of the season starts (CUP-8a); ``closed``: never
    by itself, its engines come from the event before as they played there (S16-13f).
    ``clause`` says so in the rule text, ``playing`` that nothing changes in a running event.
    """

    window: Literal["last-game", "until-start", "start", "season-start", "closed"] = "start"
    clause: str = ""
    playing: str = ""


class Roster(contract.DeferredMessage):
    """Who may play: listed engines, then found ones, then fillers, up to ``size``.

    The engines of ``file`` (``engines.toml``, beside the season file) come before those
    that are listed here; a season that was launched holds all of them.
    """

    file: parsers.Text | None = None
    size: int | None = pydantic.Field(default=None, ge=2, le=FIELD)
    even: bool = False  # `farm check` warns of an odd number (FRC-1c)
    find: tuple[parsers.Text, ...] = ()
    fill: tuple[EngineEntry, ...] = ()
    engines: tuple[EngineEntry, ...] = pydantic.Field(default=(), alias="engine")


class Book(contract.DeferredMessage):
    """An opening book; its exits are put in order once, then taken one after the other.

    No exit repeats inside an event unless ``repeat`` allows the book to start again. A line with
    fewer than ``plies`` is refused (S16-3c to 7b, N1) unless ``shorter`` allows it.
    """

    file: parsers.Text
    kind: Literal["pgn", "epd"] | None = None  # None: as the file's name ends
    plies: int | None = pydantic.Field(default=None, ge=1, le=GAMES)
    order: Literal["random", "sequential"] = "random"
    start: int = pydantic.Field(
        default=1, ge=1, le=GAMES
    )  # first exit of a sequential book, from 1
    repeat: bool = False
    shorter: bool = False


class RoundRobin(contract.DeferredMessage):
    """Everybody meets everybody, ``double_rounds`` times with each colour.

    ``first_white`` says who has White in the first game of a pair: as the table has it, or
    always the lower seed (FRC-2b). ``reverse`` says when the game with the same opening and
    the colours turned is played: one cycle later, or at once.
    """

    kind: Literal["round-robin"]
    double_rounds: int = pydantic.Field(default=1, ge=1, le=GAMES)
    table: Literal["berger", "circle", "cutechess"] = "berger"
    reverse: Literal["next-cycle", "at-once"] = "next-cycle"
    first_white: Literal["berger", "lower-seed"] = "berger"


class Swiss(contract.DeferredMessage):
    """Engines level on points meet, nobody meets twice: FIDE Dutch, or TCEC's own Swiss.

    ``ranking`` orders engines level on points (N1 stage 1: by their opponents' score, then
    by seed); ``first_board`` says from which end a round is played (N1: the bottom). Both are
    for ``dutch``; ``tcec`` ranks by seed and plays the last pair first, and its meetings may
    be game pairs (``games = 2``).
    """

    kind: Literal["swiss"]
    rounds: int = pydantic.Field(ge=1, le=GAMES)
    pairing: Literal["dutch", "tcec"] = "dutch"
    games: Literal[1, 2] = 1
    ranking: Literal["seed", "opponents-score"] = "seed"
    first_board: Literal["top", "bottom"] = "top"

    @pydantic.model_validator(mode="after")
    def _keys_of_the_pairing(self) -> Swiss:
        if self.pairing == "dutch" and self.games == 2:
            raise ValueError('games = 2 with pairing = "tcec" only')
        if self.pairing == "tcec" and (self.ranking, self.first_board) != ("seed", "top"):
            raise ValueError('ranking and first_board with pairing = "dutch" only')
        return self


class Gauntlet(contract.DeferredMessage):
    """The first ``hubs`` seeds each meet all others, with both colours ``double_rounds`` times.

    Opponents come in the order of their seeds, each meets every hub in turn; the reverse game
    follows at once.
    """

    kind: Literal["gauntlet"]
    hubs: int = pydantic.Field(default=1, ge=1, le=FIELD)
    double_rounds: int = pydantic.Field(default=1, ge=1, le=GAMES)
    first_white: Literal["hub", "opponent"] = "hub"


class Encounters(contract.DeferredMessage):
    """Meetings as the director lists them, by seed, White of the first game first.

    Each is of ``games`` games with one opening, the colours turned after each.
    """

    kind: Literal["encounters"]
    meetings: tuple[tuple[Seed, Seed], ...] = pydantic.Field(min_length=1)
    games: int = pydantic.Field(default=2, ge=1, le=GAMES)

    @pydantic.model_validator(mode="after")
    def _two_engines(self) -> Encounters:
        alone = [first for first, second in self.meetings if first == second]
        if alone:
            raise ValueError(f"meetings of two engines; [{alone[0]}, {alone[0]}] is one engine")
        return self


class Knockout(contract.DeferredMessage):
    """One round of a Cup: matches of ``pairs`` pairs of games (CUP-3).

    ``bracket`` says who meets whom: entrants 1 and 2, 3 and 4 … as they come from the round
    before, or the first ``placed`` seeds at equal distance and the others drawn (CUP-2c).
    The winners, then the losers, stand in the table in the order of their matches.
    """

    kind: Literal["knockout"]
    pairs: int = pydantic.Field(ge=1, le=GAMES)
    bracket: Literal["listed", "equal-distance"] = "listed"
    placed: Literal[0, 2, 4, 8] = 8
    first_white: Literal["lower-seed", "higher-seed", "later-match", "earlier-match"] = "lower-seed"


class Extension(contract.DeferredMessage):
    """Games that follow a drawn match: one set, or sets until one has a winner."""

    games: int = pydantic.Field(ge=2, multiple_of=2, le=GAMES)
    time_control: parsers.Control | None = None  # None: the event's
    openings: Literal["book", "season"] = "book"  # season: played earlier in it (S16-8c)
    repeat: bool = False


class Match(contract.DeferredMessage):
    """Two engines play ``games`` games, the reverse game always at once (S16-8a).

    A drawn match goes on with its ``extensions``, in their order; only the last may repeat.
    """

    kind: Literal["match"]
    games: int = pydantic.Field(ge=2, multiple_of=2, le=GAMES)
    first_white: Literal["higher-seed", "lower-seed"] = "higher-seed"
    extensions: tuple[Extension, ...] = ()

    @pydantic.model_validator(mode="after")
    def _only_the_last_repeats(self) -> Match:
        if any(extension.repeat for extension in self.extensions[:-1]):
            raise ValueError("repeat = true in the last of the extensions only")
        return self


Format: TypeAlias = RoundRobin | Swiss | Knockout | Match | Gauntlet | Encounters


class Groups(contract.DeferredMessage):
    """Equal-distance groups (TCEC Swiss): the field is cut into ``groups`` from the top.

    The seeds are the first of each group, then the second of each, and so on; the first
    groups are larger by one where the field does not divide.
    """

    groups: int = pydantic.Field(ge=2, le=FIELD)


class Promotion(contract.DeferredMessage):
    """The first ``top`` of the ranking, or those of the named ``ranks``, go on to ``to``."""

    top: int = pydantic.Field(default=0, ge=0, le=FIELD)
    ranks: tuple[Seed, ...] = ()
    to: parsers.Id

    @pydantic.model_validator(mode="after")
    def _top_or_ranks(self) -> Promotion:
        if bool(self.top) == bool(self.ranks):
            raise ValueError("either top = 1 or more, or ranks = [1, 4, …]")
        return self

    @property
    def places(self) -> tuple[int, ...]:
        """Return the places of the final table that go on, in their order of entry."""
        return self.ranks or tuple(range(1, self.top + 1))


class Playoff(contract.DeferredMessage):
    """How ties are played off where the chain of tiebreaks ends with ``playoff``.

    Two engines play pairs of games until one wins a pair, more of them a round robin. What is
    not given is the event's own; the openings of ``double_random`` events too, unless it is false.
    """

    time_control: parsers.Control | None = None
    book: str | None = None
    double_rounds: int = pydantic.Field(default=1, ge=1, le=GAMES)  # of three engines and more
    double_random: bool = True
    seeding: Literal["lot", "entry"] = "lot"  # entry: as the tied event has ranked them


DEFAULT_TIEBREAKS: Final = (
    Criterion.CRASHES,
    Criterion.DIRECT_ENCOUNTER,
    Criterion.WINS,
    Criterion.SONNEBORN_BERGER,
    Criterion.SEED,
)


class Event(contract.DeferredMessage):
    """One event of a season.

    ``seeding`` orders its field: listed entrants, then the promoted by event and rank
    (``entry``), by rating, by score in the event that they come from (N1 stage 3: points,
    then Sonneborn-Berger), by lot, by a list of places such as ``league-a.1``, or by groups.
    """

    id: parsers.Id
    name: parsers.Text
    format: Format = pydantic.Field(discriminator="kind")
    entrants: Entrants = ()
    seeding: Literal["entry", "rating", "score", "lot"] | Groups | tuple[str, ...] = "entry"
    time_control: parsers.Control
    odds: Mapping[parsers.Id, parsers.Control] = {}  # time controls of single engines, by id
    time_margin_ms: int = pydantic.Field(default=0, ge=0, le=864_000_000)  # 10 days
    book: str | None = None
    variant: Literal["standard", "fischerandom"] = "standard"
    double_random: bool = False  # each side's start position is drawn by itself (DFRC)
    tell_opponent: bool = False  # UCI_Opponent and UCI_RatingAdv, to engines that offer them
    agreed_draws: bool = False  # both engines in a row offer a draw: the game ends
    start_position: bool = False  # one of the openings is the start position (S16-8a)
    limits: contract.Limits = contract.Limits()
    timeouts: contract.Timeouts = contract.Timeouts()
    adjudication: adjudications.Adjudication = contract.Adjudication()
    interruptions: interruption_rules.Interruptions = contract.Interruptions()
    tiebreaks: tuple[Criterion, ...] = DEFAULT_TIEBREAKS
    playoff: Playoff = Playoff()
    promote: tuple[Promotion, ...] = ()
    tier: parsers.Id | None = None  # events of one tier are one step of the final standings
    competition: Literal["cpu", "gpu"] | None = None  # S17-2a, S17-2b; None: everybody
    gpus: Literal["shared", "each"] = "shared"  # of a box: both think in turn on all, or one each
    relegate: int = pydantic.Field(default=0, ge=0, le=FIELD)  # from below, into the next season
    seeding_places: int = pydantic.Field(default=0, ge=0, le=FIELD)  # the first, decided one by one
    seeding_ties: Literal["organizers", "lot"] = "organizers"  # who parts those who are level there
    updates: Updates | None = None  # None: the season's
    max_engines: int | None = pydantic.Field(default=None, ge=2, le=FIELD)  # S16-3b, S17-3c, S17-5f
    # Crashes (S16-15c, S17-15c); 0: never, a crash is a loss (S16-15f, S17-15f, CUP-7a, FRC-7a).
    disqualify_after: int = pydantic.Field(default=0, ge=0, le=GAMES)
    break_: parsers.Duration | Literal["operator"] | None = pydantic.Field(
        default=None, alias="break"
    )  # "operator": a gate that `farm open-gate` opens, or `amend gate --at` (CUP-2a)

    @property
    def break_ms(self) -> int | None:
        """Return how long the gate before this event stays shut by itself, None for no time."""
        return None if self.break_ in {None, "operator"} else parsers.duration_ms(self.break_ or "")

    @property
    def gated(self) -> bool:
        """Say whether a gate is before this event."""
        return self.break_ is not None


class Title(contract.DeferredMessage):
    """What the season's winner is called until the next winner of it is found (S16-9a, S17-9a).

    ``holder`` is who holds it at the launch, by id, name or family; '': the winner of the farm's
    last season of this title. With ``first_seed`` the holder is seed 1, if it takes part.
    """

    name: parsers.Text
    holder: str = ""
    first_seed: bool = False  # CUP-1e, FRC-1e


Act: TypeAlias = Literal["adjudicate", "replay", "void", "withdraw", "disqualify", "abandon"]


class Season(contract.DeferredMessage):
    """A whole season; events are played in the order of the file."""

    schema_version: Literal[1] = pydantic.Field(alias="schema")
    id: parsers.Id
    name: parsers.Text
    site: str = ""
    hold_after_attempts: int = pydantic.Field(default=3, ge=1, le=GAMES)
    second_operator: tuple[Act, ...] = ()  # acts that one proposes and another one repeats
    sandbox: Literal["", "bubblewrap"] = ""  # a hall that cannot give it must not play
    rating_floor: int = pydantic.Field(
        default=0, ge=-RATING, le=RATING
    )  # `farm check` warns of entrants below it (S16-1a, S17-1a)
    updates: Updates = Updates()  # until when engines may be updated, where an event says nothing
    title: Title | None = None
    roster: Roster
    books: Mapping[str, Book] = {}
    events: tuple[Event, ...] = pydantic.Field(alias="event", min_length=1)

    def event(self, event_id: str) -> Event:
        """Return an event by its id; raise ``KeyError``."""
        for event in self.events:
            if event.id == event_id:
                return event
        raise KeyError(event_id)
