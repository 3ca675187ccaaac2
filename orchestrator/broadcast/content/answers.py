"""What the read API answers, as types: its OpenAPI description is made of them.

Nothing is rendered by them; a test holds every answer and every event of the stream against
its type. Each names all of its fields: a program may count on them, and one that is new has to be
written down here. A field with a default may be absent. Times of day are milliseconds since
1970 (UTC) by Redis' clock, evals White's view, points whole and half points.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import pydantic

from orchestrator import contract


class Answer(pydantic.BaseModel):
    """Plain data of the API."""

    model_config = pydantic.ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, use_attribute_docstrings=True
    )


class Error(Answer):
    """Why nothing is answered."""

    error: str
    """A sentence: what is missing or wrong, and what there is."""


# -- seasons ---------------------------------------------------------------------------


class Progress(Answer):
    """How far something is, in games."""

    played: int
    total: int


class SeasonOverview(Answer):
    """A season among all."""

    season: str
    """Its id, as in addresses."""
    name: str
    status: Literal["waiting", "running", "paused", "held", "finished", "abandoned"]
    champion: str | None
    """The winner's name, null before the end."""
    launched_ms: int
    games: Progress


class Title(Answer):
    """The title that a season is played for, and who holds it."""

    name: str
    holder: str


class Decision(Answer):
    """A tie that only the organizers can decide."""

    decision: str
    event: str
    place: int
    """The first of the tied places."""
    engines: tuple[str, ...]
    choose: int
    """How many are to be chosen at least."""
    about: str
    to: str
    """The event that the place leads to, where an engine is missing in it; else empty."""


class Wait(Answer):
    """Something that the next game waits for."""

    for_: Literal["hold", "pause", "verdict", "hall", "organizers", "host", "gate"] = (
        pydantic.Field(alias="for")
    )
    event: str
    game: str
    reason: str
    since_ms: int
    until_ms: int | None
    """When a gate opens; null where nobody knows."""


class Next(Answer):
    """The game that comes next, behind the one in flight, or the event."""

    event: str
    event_name: str
    game: str
    """Empty before the event's games are paired."""
    round: str
    engines: tuple[str, ...]
    """White first; empty where nobody knows them."""


class Pairing(Answer):
    """The game in flight."""

    game: str
    event: str
    round: str
    white: str
    black: str


class EventOverview(Answer):
    """An event of a season, without its tables."""

    event: str
    """Its id, as in addresses."""
    name: str
    status: Literal["waiting", "gate", "open", "running", "ranked", "abandoned"]
    colour: Literal["orange", "green", "red", "grey"]
    """Not begun, running, over, abandoned."""
    format: str
    knockout: bool
    listed: bool = False
    """Of a knockout: entrants 1 and 2, 3 and 4 … meet, in the order of the ways that lead here."""
    variant: Literal["standard", "fischerandom"]
    competition: str | None
    time_control: str
    """As PGN writes it."""
    time_control_words: str
    opens_at_ms: int | None
    entrants: tuple[str, ...]
    """Names; empty before it begins."""
    substitutes: dict[str, str]
    excused: dict[str, int]
    """By name: losses on time that a stall of the host has excused."""
    excused_allowed: int | None
    games: Progress
    remaining_seconds: float
    """Estimated by the pace so far."""
    estimated_start_ms: int | None
    """Null for an event that has begun."""


class MatchBoard(Answer):
    """One of the games of a match that are played at the same time; empty between two."""

    season: str
    """The id by which the page of this board, and its stream, are asked for."""
    board: int
    white: str
    black: str
    game: str


class Badge(Answer):
    """What stands beside an engine's name."""

    logo: str | None
    """Where its logo is, a PNG, seen from the page."""
    flag: str | None
    """Of its country: two regional indicator letters of Unicode."""


class Season(Answer):
    """Where a season stands."""

    season: str
    name: str
    site: str
    status: Literal["waiting", "running", "paused", "held", "finished", "abandoned"]
    reason: str
    """Why it is paused, held or abandoned; else empty."""
    launched_ms: int
    seed_sha256: str
    """The checksum of the seed of all draws."""
    seed: str | None
    """The seed itself, null before the end."""
    champion: str | None
    title: Title | None
    games: Progress
    remaining_seconds: float
    next_gate_ms: int | None
    decisions: tuple[Decision, ...]
    next: Next | None
    waits: tuple[Wait, ...]
    running: Pairing | None
    """Of a match: the game of this board."""
    events: tuple[EventOverview, ...]
    kind: Literal["season", "match"] = "season"
    """`match`: one of `farm match -live` or `farm match test`, without lots, gates, decisions."""
    boards: tuple[MatchBoard, ...] = ()
    """Of a match: the games that are played at the same time."""
    badges: dict[str, Badge] = {}
    """By the engine's name, of those that have a logo or a flag."""


# -- events ----------------------------------------------------------------------------


class Cell(Answer):
    """The games of two engines, as the row's engine sees them."""

    games: tuple[str, ...]
    text: str
    """A character a game: 1, 0 or =."""
    pairs: tuple[int, int, int, int, int] | None = None
    """Pairs of games (one opening, both colours) by points: 0, ½, 1, 1½, 2; null without one."""


class Row(Answer):
    """An engine in the standings."""

    rank: int
    engine: str
    name: str
    version: str = ""
    """The one that it plays the event with."""
    rating: int | None
    provisional: bool
    """The rating comes from test games."""
    points: float
    games: int
    wins: int
    draws: int
    losses: int
    crashes: int
    tiebreaks: dict[str, float]
    """By criterion, in the order of the event's chain."""
    decided_by: str
    """The criterion that parts it from the row above or below; empty where none does."""
    cells: tuple[Cell | None, ...]
    """The crosstable's, in the order of the rows; null where they have not met."""


class BracketSide(Answer):
    """An engine of a match."""

    engine: str
    name: str
    seed: int
    score: float
    winner: bool


class Match(Answer):
    """A match of a knockout."""

    match: int
    status: Literal["waiting", "running", "played"]
    games: tuple[str, ...]
    sides: tuple[BracketSide | None, ...]
    """Two; null is a bye."""


class Bracket(Answer):
    """The matches of a knockout's stage."""

    pairs: int
    """Of games a match, before it is prolonged."""
    matches: tuple[Match, ...]


class Spread(Answer):
    """Least, mean and most."""

    min: float
    mean: float
    max: float


class Statistics(Answer):
    """Results of games that count."""

    games: int
    white_wins: int
    draws: int
    black_wins: int
    endings: dict[str, int]
    """Games by the words of their end, most first."""
    plies: Spread | None
    seconds: Spread | None


class Score(Answer):
    """Results of an engine with one colour."""

    wins: int
    draws: int
    losses: int


class EngineStatistics(Answer):
    """Results of an engine by its colour."""

    engine: str
    name: str
    white: Score
    black: Score


class EventStatistics(Statistics):
    """Results of an event."""

    engines: tuple[EngineStatistics, ...]


class Event(Answer):
    """Standings with every tiebreak number, crosstable, bracket, statistics."""

    event: str
    name: str
    status: Literal["waiting", "gate", "open", "running", "ranked", "abandoned"]
    format: str
    final: bool
    """Nothing of it is open any more."""
    open_decisions: int
    chain: tuple[str, ...]
    """The tiebreak criteria in their order."""
    entrants: tuple[str, ...]
    rows: tuple[Row, ...]
    bracket: Bracket | None
    """Null but for a knockout."""
    last: tuple[str, ...]
    """Ten games at most, the one that ended last first; annulled ones too."""
    statistics: EventStatistics


class ScheduledGame(Answer):
    """A game of an event's schedule; all from `ending` on is absent before its end."""

    game: str
    event: str
    number: int
    round: str
    white: str
    black: str
    running: bool
    cancelled: bool
    annulled: bool
    """It was played and counts for nobody: `note` says why. It is not cancelled then."""
    result: contract.Result | None
    estimated_start_ms: int | None = None
    """By the pace so far; absent where it has begun or is never played."""
    started_ms: int | None = None
    ending: contract.Ending | None = None
    details: str = ""
    """The end in words."""
    note: str = ""
    plies: int | None = None
    duration_seconds: float | None = None
    interruptions: int | None = None
    eco: str = ""
    opening: str = ""
    white_eval: str = ""
    """White's last eval, as PGN writes it."""
    black_eval: str = ""
    final_fen: str = ""
    r_mobility: str = ""


class MatchScore(Answer):
    """Results of one side, with Elo and the half width of its 95 % interval; null: unknown."""

    games: int
    wins: int
    draws: int
    losses: int
    points: float
    score: float
    draw_ratio: float
    elo: float | None
    elo_error: float | None
    nelo: float | None
    nelo_error: float | None
    los: float | None
    pentanomial: tuple[int, ...]
    """Pairs by their points: 0, ½, 1, 1½, 2."""


class MatchEngine(MatchScore):
    """An engine of a match, best first."""

    rank: int
    name: str
    faults: dict[str, int]
    """Games lost by a fault, by kind."""


class SequentialTest(Answer):
    """A sequential test: its hypotheses, bounds, and the log likelihood ratio now."""

    elo0: float
    elo1: float
    alpha: float
    beta: float
    model: Literal["normalized", "logistic"]
    llr: float
    lower: float
    upper: float
    accepted: Literal["H0", "H1"] | None


class MatchHistory(Answer):
    """The numbers after so many games: columns of one length."""

    games: tuple[int, ...]
    llr: tuple[float | None, ...]
    elo: tuple[float | None, ...]
    error: tuple[float | None, ...]


class MatchRunning(Answer):
    """A game of a match that is played now."""

    game: str
    white: str
    black: str
    place: str
    """The lane that plays it; empty in a match of `farm match`."""


class TunedParameter(Answer):
    """A number of an engine that is tuned by SPSA."""

    name: str
    value: float
    said: str
    """As the engine would be told it now."""
    start: float
    min: float
    max: float
    c: float
    """How far it is moved up and down in the next iteration, and at the end (`c_end`)."""
    c_end: float
    r: float
    """How large its step is in the next iteration, and at the end (`r_end`)."""
    r_end: float


class TuningCourse(Answer):
    """The values, in the order of the parameters, after so many iterations."""

    done: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]


class Tuning(Answer):
    """Where a tuning stands: iterations of some pairs of games each."""

    iterations: int
    done: int
    pairs: int
    parameters: tuple[TunedParameter, ...]
    course: TuningCourse


class MatchTest(Answer):
    """What a match says of its engines."""

    season: str
    games: int
    total: int
    first: str
    """The engine whose side `score`, `sprt` and `history` take."""
    score: MatchScore | None
    """Null in a match of three and more, as the two that follow."""
    engines: tuple[MatchEngine, ...]
    sprt: SequentialTest | None
    """Null without one."""
    history: MatchHistory | None
    running: tuple[MatchRunning, ...]
    tuning: Tuning | None = None
    """Of a match that tunes an engine, which plays itself."""


class TestMatchOverview(Answer):
    """A test match of `farm match test` among all: by its id, its tables are those of a season."""

    season: str
    """Its id, as in addresses: `test:` and the match's name."""
    name: str
    engines: tuple[str, ...]
    """The tested one first."""
    time_control: str
    """In words."""
    status: Literal["running", "finished"]
    reason: str
    """Why it is over; else empty."""
    opened_ms: int
    """When it was begun, or gone on with."""
    games: Progress
    score: MatchScore | None
    """Of the tested engine; null against several."""
    sprt: SequentialTest | None
    running: int
    """Games that are played now."""
    tuned: tuple[str, ...] = ()
    """The parameters, of a match that tunes an engine."""


class GraphEvent(Answer):
    """An event of the graph."""

    id: str
    name: str


class GraphNode(Answer):
    """One thing that happens in a season."""

    id: str
    kind: Literal["gate", "pairing", "game", "round", "ranking", "decision", "end"]
    event: str
    label: str
    state: Literal["planned", "paired", "waiting", "ready", "running", "done"]


class GraphEdge(Answer):
    """From cause to effect."""

    from_: str = pydantic.Field(alias="from")
    to: str


class GraphWay(Answer):
    """Who goes on from an event to another one."""

    from_: str = pydantic.Field(alias="from")
    to: str
    places: tuple[int, ...]
    """Of the final table, in the order of entry."""


class Graph(Answer):
    """The season as a graph, games folded by round."""

    season: str
    events: tuple[GraphEvent, ...]
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    ways: tuple[GraphWay, ...]


class LogLine(Answer):
    """A fault or a decision."""

    seq: int
    """The number of the journal's entry."""
    at_ms: int
    kind: str
    fault: Literal["crash", "time", "illegal move"] | None
    event: str
    game: str
    engines: tuple[str, ...]
    text: str
    reason: str


# -- rating list and forecast ----------------------------------------------------------


class Rated(Answer):
    """An engine of the rating list."""

    rank: int | None
    engine: str
    rating: float | None
    error: float | None
    """Of 95 % of the simulated lists; null where too few games tell."""
    points: float
    played: int
    percent: float
    provisional: bool
    bound: Literal["", "<", ">"]
    """Who lost or won everything is below or above its rating."""


class Ratings(Answer):
    """The rating list of all seasons; all but `absent` and `ratings` may be absent."""

    absent: str | None
    """Why there is none, null where there is one."""
    ratings: tuple[Rated, ...]
    made_ms: int | None = None
    games: int | None = None
    average: float | None = None
    rosters: int | None = None
    """Engines by whose own ratings the list lies on the rosters' scale."""
    journals: dict[str, int] | None = None
    white_advantage: float | None = None
    draw_rate: float | None = None


class Chance(Answer):
    """The chance of an engine to win the season."""

    engine: str
    name: str
    chance: float


class EngineForecast(Answer):
    """The chances of an engine in an event."""

    engine: str
    name: str
    plays: float
    places: tuple[float, ...]
    """From the first place on."""
    promoted: dict[str, float]
    """By the event it leads to."""
    relegated: float


class Target(Answer):
    """An event that an event's best go on to."""

    to: str
    name: str


class EventForecast(Answer):
    """The chances in an event."""

    event: str
    name: str
    relegates: int
    promotes: tuple[Target, ...]
    engines: tuple[EngineForecast, ...]


class Quantiles(Answer):
    """One in twenty is earlier, half are, one in twenty is later."""

    early: float
    expected: float
    late: float


class Forecast(Answer):
    """What the rest of a season may bring; chances are from 0 to 1."""

    absent: str | None
    """Why there is none, null where there is one."""
    runs: int
    """How often the rest was played out."""
    season: str = ""
    journal: int | None = None
    made_ms: int | None = None
    games: int | None = None
    unrated: tuple[str, ...] = ()
    seed: int | None = None
    champion: tuple[Chance, ...] = ()
    events: tuple[EventForecast, ...] = ()
    remaining_days: Quantiles | None = None
    end_ms: Quantiles | None = None


# -- games -----------------------------------------------------------------------------


class Opening(Answer):
    """ECO code and name; empty where none is known."""

    eco: str
    name: str


class Step(Answer):
    """A move of a variation, with the position after it."""

    san: str
    uci: str
    fen: str


class Counters(Answer):
    """Plies until a rule can end the game at the earliest; null where none is played."""

    plies_to_draw: int | None
    plies_to_win: int | None
    moves_to_fifty: int
    rd: int | None
    rr: int | None


Wdl: TypeAlias = tuple[int, int, int]


class Ply(Answer):
    """A move; all from `eval` on is absent for a book move, null where it is not known."""

    n: int
    """From 1, book plies included."""
    side: contract.Side
    move: str
    """The number word of PGN, such as `12.`; empty for Black but at the start."""
    san: str
    uci: str
    squares: tuple[str, str]
    """From and to; of castling the king's."""
    fen: str
    """The position after it."""
    book: bool
    eval: str | None = None
    """As PGN writes it, White's view: `0.25`, `-M12`."""
    cp: int | None = None
    mate: int | None = None
    """In moves; below 0 White is mated."""
    depth: int | None = None
    seldepth: int | None = None
    nodes: int | None = None
    nps: int | None = None
    tbhits: int | None = None
    hashfull: int | None = None
    wdl: Wdl | None = None
    """White's wins, draws and losses per mille by the engine itself; null where it says none."""
    move_ms: int | None = None
    white_clock_ms: int | None = None
    black_clock_ms: int | None = None
    counters: Counters | None = None
    ponder: str | None = None
    pondered: Literal["hit", "miss", "early"] | None = None
    """What came of its search in the opponent's turn; absent where it did not ponder."""
    pondered_ms: int | None = None
    """How long that took, which no clock is charged for."""
    line: tuple[Step, ...] | None = None
    """The engine's variation; absent where it has to be asked for by ply."""


class Option(Answer):
    """An option that an engine was given."""

    name: str
    value: str


class Engine(Answer):
    """An engine as it plays a game."""

    id: str
    name: str
    version: str
    author: str
    country: str
    rating: int | None
    protocol: Literal["uci", "xboard"]
    threads: int | None
    hash_mb: int | None
    tablebases: tuple[str, ...]
    options: tuple[Option, ...]


class Clock(Answer):
    """Both clocks, and whose runs since when."""

    thinking: contract.Side | None
    since_ms: int | None
    white_ms: int | None
    black_ms: int | None


class Search(Answer):
    """What the engine that thinks said last."""

    side: contract.Side
    ply: int
    """The one that it thinks about."""
    eval: str | None
    cp: int | None
    mate: int | None
    depth: int | None
    seldepth: int | None
    nodes: int | None
    nps: int | None
    tbhits: int | None
    hashfull: int | None
    wdl: Wdl | None
    """White's wins, draws and losses per mille by the engine itself; null where it says none."""
    line: tuple[Step, ...]


class Kibitzed(Answer):
    """What a kibitzer thought of a position of the game in flight."""

    desk: int
    engine: str
    ply: int
    """The number of the ply that was played in the position, or will be."""
    eval: str | None
    cp: int | None
    mate: int | None
    wdl: Wdl | None
    """White's wins, draws and losses per mille by the kibitzer; null where it says none."""


class Kibitzer(Kibitzed):
    """What a kibitzer thinks of the position on the board."""

    description: str
    depth: int | None
    seldepth: int | None
    nodes: int | None
    nps: int | None
    tbhits: int | None
    line: tuple[Step, ...]


class TimeControls(Answer):
    """As PGN writes them."""

    white: str
    black: str


class Interruption(Answer):
    """An attempt that ended without a result."""

    ply: int
    cause: str
    verdict: str


class Game(Answer):
    """A game with all its plies: in flight, left after an interruption, or finished."""

    season: str
    event: str
    event_name: str
    game: str
    number: int
    round: str
    variant: Literal["standard", "fischerandom"]
    status: Literal["running", "interrupted", "finished"]
    start_fen: str
    start_number: int | None
    """Of Chess960, null in standard chess."""
    time_control: TimeControls
    base_ms: int | None
    opening: Opening
    white: Engine
    black: Engine
    plies: tuple[Ply, ...]
    result: contract.Result | None
    details: str
    adjudicated: bool
    started_ms: int
    ended_ms: int | None
    clock: Clock | None = None
    """Absent of a finished game, as `search`, `kibitzers` and `kibitzed` are."""
    search: Search | None = None
    kibitzers: tuple[Kibitzer, ...] | None = None
    kibitzed: tuple[Kibitzed, ...] | None = None
    """What kibitzers thought of the positions before."""
    recorded: bool | None = None
    """Of a finished game: false where its moves are not known."""
    annulled: bool | None = None
    """Of a finished game: true where its result counts for nobody, `note` says why."""
    note: str | None = None
    ending: contract.Ending | None = None
    interruptions: tuple[Interruption, ...] | None = None


# -- the stream ------------------------------------------------------------------------


class _Told(Answer):
    """An event of the stream."""

    now_ms: int
    """The time of day when it was told."""


class Snapshot(_Told):
    """`snapshot`: all that a listener needs to begin with."""

    id: str = ""
    """The event that this stands behind: `after` and Last-Event-ID go on from it."""
    viewers: int
    season: Season | None
    game: Game | None
    seasons: tuple[SeasonOverview, ...] | None
    tests: int = 0
    """How many test matches the farm's page lists."""


class GameTold(Game, _Told):
    """`game`: a game begins, is interrupted or finished, or is known better."""


class NoGameTold(_Told):
    """`game` where none is to be shown any more."""

    season: str
    game: Literal[""]


class PlyTold(_Told):
    """`ply`: a move."""

    season: str
    game: str
    ply: Ply
    opening: Opening
    clock: Clock


class ClockTold(Clock, _Told):
    """`clock`: a clock starts or stops."""

    season: str
    game: str


class SearchTold(Search, _Told):
    """`search`: the engine that thinks said something."""

    season: str
    game: str


class KibitzTold(_Told):
    """`kibitz`: a kibitzer said something, or the game has left its position."""

    season: str
    game: str
    kibitzers: tuple[Kibitzer, ...]


class ResultTold(_Told):
    """`result`: a game is over."""

    season: str
    game: str
    result: contract.Result
    ending: contract.Ending
    details: str
    adjudicated: bool
    ended_ms: int
    plies: int


class SeasonTold(Season, _Told):
    """`season`: an event changes its state, a decision is asked for, and the like."""


class TablesTold(_Told):
    """`tables`: the tables of these events have changed."""

    season: str
    events: tuple[str, ...]


class OutlookTold(_Told):
    """`outlook`: rating list or forecasts have changed."""

    places: tuple[str, ...]
    """Below `/api/v1/`."""


class ViewersTold(Answer):
    """`viewers`: how many listen."""

    count: int
