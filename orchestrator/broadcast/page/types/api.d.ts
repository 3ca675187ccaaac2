// What the read API answers: made of its description by `make reference`.

declare namespace Api {
  /** What stands beside an engine's name. */
  interface Badge {
    /** Where its logo is, a PNG, seen from the page. */
    readonly logo: string | null
    /** Of its country: two regional indicator letters of Unicode. */
    readonly flag: string | null
  }
  /** The matches of a knockout's stage. */
  interface Bracket {
    /** Of games a match, before it is prolonged. */
    readonly pairs: number
    readonly matches: ReadonlyArray<Match>
  }
  /** An engine of a match. */
  interface BracketSide {
    readonly engine: string
    readonly name: string
    readonly seed: number
    readonly score: number
    readonly winner: boolean
  }
  /** The games of two engines, as the row's engine sees them. */
  interface Cell {
    readonly games: ReadonlyArray<string>
    /** A character a game: 1, 0 or =. */
    readonly text: string
    /** Pairs of games (one opening, both colours) by points: 0, ½, 1, 1½, 2; null without one. */
    readonly pairs?: readonly [number, number, number, number, number] | null
  }
  /** The chance of an engine to win the season. */
  interface Chance {
    readonly engine: string
    readonly name: string
    readonly chance: number
  }
  /** Both clocks, and whose runs since when. */
  interface Clock {
    readonly thinking: "white" | "black" | null
    readonly since_ms: number | null
    readonly white_ms: number | null
    readonly black_ms: number | null
  }
  /** `clock`: a clock starts or stops. */
  interface ClockTold {
    /** The time of day when it was told. */
    readonly now_ms: number
    readonly thinking: "white" | "black" | null
    readonly since_ms: number | null
    readonly white_ms: number | null
    readonly black_ms: number | null
    readonly season: string
    readonly game: string
  }
  /** Plies until a rule can end the game at the earliest; null where none is played. */
  interface Counters {
    readonly plies_to_draw: number | null
    readonly plies_to_win: number | null
    readonly moves_to_fifty: number
    readonly rd: number | null
    readonly rr: number | null
  }
  /** A tie that only the organizers can decide. */
  interface Decision {
    readonly decision: string
    readonly event: string
    /** The first of the tied places. */
    readonly place: number
    readonly engines: ReadonlyArray<string>
    /** How many are to be chosen at least. */
    readonly choose: number
    readonly about: string
    /** The event that the place leads to, where an engine is missing in it; else empty. */
    readonly to: string
  }
  /** How a game came to its end; the words of it are made by ``arbiter.verdict``. */
  type Ending = "checkmate" | "stalemate" | "insufficient" | "fifty-moves" | "threefold" | "time" | "disconnect" | "stall" | "illegal" | "organizers" | "syzygy" | "eval-draw" | "few-pieces-draw" | "eval-win" | "score-draw" | "score-resign" | "max-moves" | "interrupted" | "resign" | "false-claim" | "agreement"
  /** An engine as it plays a game. */
  interface Engine {
    readonly id: string
    readonly name: string
    readonly version: string
    readonly author: string
    readonly country: string
    readonly rating: number | null
    readonly protocol: "uci" | "xboard"
    readonly threads: number | null
    readonly hash_mb: number | null
    readonly tablebases: ReadonlyArray<string>
    readonly options: ReadonlyArray<Option>
  }
  /** The chances of an engine in an event. */
  interface EngineForecast {
    readonly engine: string
    readonly name: string
    readonly plays: number
    /** From the first place on. */
    readonly places: ReadonlyArray<number>
    /** By the event it leads to. */
    readonly promoted: Readonly<Record<string, number>>
    readonly relegated: number
  }
  /** Results of an engine by its colour. */
  interface EngineStatistics {
    readonly engine: string
    readonly name: string
    readonly white: Score
    readonly black: Score
  }
  /** Why nothing is answered. */
  interface Error {
    /** A sentence: what is missing or wrong, and what there is. */
    readonly error: string
  }
  /** Standings with every tiebreak number, crosstable, bracket, statistics. */
  interface Event {
    readonly event: string
    readonly name: string
    readonly status: "waiting" | "gate" | "open" | "running" | "ranked" | "abandoned"
    readonly format: string
    /** Nothing of it is open any more. */
    readonly final: boolean
    readonly open_decisions: number
    /** The tiebreak criteria in their order. */
    readonly chain: ReadonlyArray<string>
    readonly entrants: ReadonlyArray<string>
    readonly rows: ReadonlyArray<Row>
    /** Null but for a knockout. */
    readonly bracket: Bracket | null
    /** Ten games at most, the one that ended last first; annulled ones too. */
    readonly last: ReadonlyArray<string>
    readonly statistics: EventStatistics
  }
  /** The chances in an event. */
  interface EventForecast {
    readonly event: string
    readonly name: string
    readonly relegates: number
    readonly promotes: ReadonlyArray<Target>
    readonly engines: ReadonlyArray<EngineForecast>
  }
  /** An event of a season, without its tables. */
  interface EventOverview {
    /** Its id, as in addresses. */
    readonly event: string
    readonly name: string
    readonly status: "waiting" | "gate" | "open" | "running" | "ranked" | "abandoned"
    /** Not begun, running, over, abandoned. */
    readonly colour: "orange" | "green" | "red" | "grey"
    readonly format: string
    readonly knockout: boolean
    /** Of a knockout: entrants 1 and 2, 3 and 4 … meet, in the order of the ways that lead here. */
    readonly listed?: boolean
    readonly variant: "standard" | "fischerandom"
    readonly competition: string | null
    /** As PGN writes it. */
    readonly time_control: string
    readonly time_control_words: string
    readonly opens_at_ms: number | null
    /** Names; empty before it begins. */
    readonly entrants: ReadonlyArray<string>
    readonly substitutes: Readonly<Record<string, string>>
    /** By name: losses on time that a stall of the host has excused. */
    readonly excused: Readonly<Record<string, number>>
    readonly excused_allowed: number | null
    readonly games: Progress
    /** Estimated by the pace so far. */
    readonly remaining_seconds: number
    /** Null for an event that has begun. */
    readonly estimated_start_ms: number | null
  }
  /** Results of an event. */
  interface EventStatistics {
    readonly games: number
    readonly white_wins: number
    readonly draws: number
    readonly black_wins: number
    /** Games by the words of their end, most first. */
    readonly endings: Readonly<Record<string, number>>
    readonly plies: Spread | null
    readonly seconds: Spread | null
    readonly engines: ReadonlyArray<EngineStatistics>
  }
  /** What the rest of a season may bring; chances are from 0 to 1. */
  interface Forecast {
    /** Why there is none, null where there is one. */
    readonly absent: string | null
    /** How often the rest was played out. */
    readonly runs: number
    readonly season?: string
    readonly journal?: number | null
    readonly made_ms?: number | null
    readonly games?: number | null
    readonly unrated?: ReadonlyArray<string>
    readonly seed?: number | null
    readonly champion?: ReadonlyArray<Chance>
    readonly events?: ReadonlyArray<EventForecast>
    readonly remaining_days?: Quantiles | null
    readonly end_ms?: Quantiles | null
  }
  /** A game with all its plies: in flight, left after an interruption, or finished. */
  interface Game {
    readonly season: string
    readonly event: string
    readonly event_name: string
    readonly game: string
    readonly number: number
    readonly round: string
    readonly variant: "standard" | "fischerandom"
    readonly status: "running" | "interrupted" | "finished"
    readonly start_fen: string
    /** Of Chess960, null in standard chess. */
    readonly start_number: number | null
    readonly time_control: TimeControls
    readonly base_ms: number | null
    readonly opening: Opening
    readonly white: Engine
    readonly black: Engine
    readonly plies: ReadonlyArray<Ply>
    readonly result: "1-0" | "0-1" | "1/2-1/2" | null
    readonly details: string
    readonly adjudicated: boolean
    readonly started_ms: number
    readonly ended_ms: number | null
    /** Absent of a finished game, as `search`, `kibitzers` and `kibitzed` are. */
    readonly clock?: Clock | null
    readonly search?: Search | null
    readonly kibitzers?: ReadonlyArray<Kibitzer> | null
    /** What kibitzers thought of the positions before. */
    readonly kibitzed?: ReadonlyArray<Kibitzed> | null
    /** Of a finished game: false where its moves are not known. */
    readonly recorded?: boolean | null
    /** Of a finished game: true where its result counts for nobody, `note` says why. */
    readonly annulled?: boolean | null
    readonly note?: string | null
    readonly ending?: Ending | null
    readonly interruptions?: ReadonlyArray<Interruption> | null
  }
  /** `game`: a game begins, is interrupted or finished, or is known better. */
  interface GameTold {
    /** The time of day when it was told. */
    readonly now_ms: number
    readonly season: string
    readonly event: string
    readonly event_name: string
    readonly game: string
    readonly number: number
    readonly round: string
    readonly variant: "standard" | "fischerandom"
    readonly status: "running" | "interrupted" | "finished"
    readonly start_fen: string
    /** Of Chess960, null in standard chess. */
    readonly start_number: number | null
    readonly time_control: TimeControls
    readonly base_ms: number | null
    readonly opening: Opening
    readonly white: Engine
    readonly black: Engine
    readonly plies: ReadonlyArray<Ply>
    readonly result: "1-0" | "0-1" | "1/2-1/2" | null
    readonly details: string
    readonly adjudicated: boolean
    readonly started_ms: number
    readonly ended_ms: number | null
    /** Absent of a finished game, as `search`, `kibitzers` and `kibitzed` are. */
    readonly clock?: Clock | null
    readonly search?: Search | null
    readonly kibitzers?: ReadonlyArray<Kibitzer> | null
    /** What kibitzers thought of the positions before. */
    readonly kibitzed?: ReadonlyArray<Kibitzed> | null
    /** Of a finished game: false where its moves are not known. */
    readonly recorded?: boolean | null
    /** Of a finished game: true where its result counts for nobody, `note` says why. */
    readonly annulled?: boolean | null
    readonly note?: string | null
    readonly ending?: Ending | null
    readonly interruptions?: ReadonlyArray<Interruption> | null
  }
  /** The season as a graph, games folded by round. */
  interface Graph {
    readonly season: string
    readonly events: ReadonlyArray<GraphEvent>
    readonly nodes: ReadonlyArray<GraphNode>
    readonly edges: ReadonlyArray<GraphEdge>
    readonly ways: ReadonlyArray<GraphWay>
  }
  /** From cause to effect. */
  interface GraphEdge {
    readonly from: string
    readonly to: string
  }
  /** An event of the graph. */
  interface GraphEvent {
    readonly id: string
    readonly name: string
  }
  /** One thing that happens in a season. */
  interface GraphNode {
    readonly id: string
    readonly kind: "gate" | "pairing" | "game" | "round" | "ranking" | "decision" | "end"
    readonly event: string
    readonly label: string
    readonly state: "planned" | "paired" | "waiting" | "ready" | "running" | "done"
  }
  /** Who goes on from an event to another one. */
  interface GraphWay {
    readonly from: string
    readonly to: string
    /** Of the final table, in the order of entry. */
    readonly places: ReadonlyArray<number>
  }
  /** An attempt that ended without a result. */
  interface Interruption {
    readonly ply: number
    readonly cause: string
    readonly verdict: string
  }
  /** `kibitz`: a kibitzer said something, or the game has left its position. */
  interface KibitzTold {
    /** The time of day when it was told. */
    readonly now_ms: number
    readonly season: string
    readonly game: string
    readonly kibitzers: ReadonlyArray<Kibitzer>
  }
  /** What a kibitzer thought of a position of the game in flight. */
  interface Kibitzed {
    readonly desk: number
    readonly engine: string
    /** The number of the ply that was played in the position, or will be. */
    readonly ply: number
    readonly eval: string | null
    readonly cp: number | null
    readonly mate: number | null
    /** White's wins, draws and losses per mille by the kibitzer; null where it says none. */
    readonly wdl: readonly [number, number, number] | null
  }
  /** What a kibitzer thinks of the position on the board. */
  interface Kibitzer {
    readonly desk: number
    readonly engine: string
    /** The number of the ply that was played in the position, or will be. */
    readonly ply: number
    readonly eval: string | null
    readonly cp: number | null
    readonly mate: number | null
    /** White's wins, draws and losses per mille by the kibitzer; null where it says none. */
    readonly wdl: readonly [number, number, number] | null
    readonly description: string
    readonly depth: number | null
    readonly seldepth: number | null
    readonly nodes: number | null
    readonly nps: number | null
    readonly tbhits: number | null
    readonly line: ReadonlyArray<Step>
  }
  /** A fault or a decision. */
  interface LogLine {
    /** The number of the journal's entry. */
    readonly seq: number
    readonly at_ms: number
    readonly kind: string
    readonly fault: "crash" | "time" | "illegal move" | null
    readonly event: string
    readonly game: string
    readonly engines: ReadonlyArray<string>
    readonly text: string
    readonly reason: string
  }
  /** A match of a knockout. */
  interface Match {
    readonly match: number
    readonly status: "waiting" | "running" | "played"
    readonly games: ReadonlyArray<string>
    /** Two; null is a bye. */
    readonly sides: ReadonlyArray<BracketSide | null>
  }
  /** One of the games of a match that are played at the same time; empty between two. */
  interface MatchBoard {
    /** The id by which the page of this board, and its stream, are asked for. */
    readonly season: string
    readonly board: number
    readonly white: string
    readonly black: string
    readonly game: string
  }
  /** An engine of a match, best first. */
  interface MatchEngine {
    readonly games: number
    readonly wins: number
    readonly draws: number
    readonly losses: number
    readonly points: number
    readonly score: number
    readonly draw_ratio: number
    readonly elo: number | null
    readonly elo_error: number | null
    readonly nelo: number | null
    readonly nelo_error: number | null
    readonly los: number | null
    /** Pairs by their points: 0, ½, 1, 1½, 2. */
    readonly pentanomial: ReadonlyArray<number>
    readonly rank: number
    readonly name: string
    /** Games lost by a fault, by kind. */
    readonly faults: Readonly<Record<string, number>>
  }
  /** The numbers after so many games: columns of one length. */
  interface MatchHistory {
    readonly games: ReadonlyArray<number>
    readonly llr: ReadonlyArray<number | null>
    readonly elo: ReadonlyArray<number | null>
    readonly error: ReadonlyArray<number | null>
  }
  /** A game of a match that is played now. */
  interface MatchRunning {
    readonly game: string
    readonly white: string
    readonly black: string
    /** The lane that plays it; empty in a match of `farm match`. */
    readonly place: string
  }
  /** Results of one side, with Elo and the half width of its 95 % interval; null: unknown. */
  interface MatchScore {
    readonly games: number
    readonly wins: number
    readonly draws: number
    readonly losses: number
    readonly points: number
    readonly score: number
    readonly draw_ratio: number
    readonly elo: number | null
    readonly elo_error: number | null
    readonly nelo: number | null
    readonly nelo_error: number | null
    readonly los: number | null
    /** Pairs by their points: 0, ½, 1, 1½, 2. */
    readonly pentanomial: ReadonlyArray<number>
  }
  /** What a match says of its engines. */
  interface MatchTest {
    readonly season: string
    readonly games: number
    readonly total: number
    /** The engine whose side `score`, `sprt` and `history` take. */
    readonly first: string
    /** Null in a match of three and more, as the two that follow. */
    readonly score: MatchScore | null
    readonly engines: ReadonlyArray<MatchEngine>
    /** Null without one. */
    readonly sprt: SequentialTest | null
    readonly history: MatchHistory | null
    readonly running: ReadonlyArray<MatchRunning>
    /** Of a match that tunes an engine, which plays itself. */
    readonly tuning?: Tuning | null
  }
  /** The game that comes next, behind the one in flight, or the event. */
  interface Next {
    readonly event: string
    readonly event_name: string
    /** Empty before the event's games are paired. */
    readonly game: string
    readonly round: string
    /** White first; empty where nobody knows them. */
    readonly engines: ReadonlyArray<string>
  }
  /** `game` where none is to be shown any more. */
  interface NoGameTold {
    /** The time of day when it was told. */
    readonly now_ms: number
    readonly season: string
    readonly game: ""
  }
  /** ECO code and name; empty where none is known. */
  interface Opening {
    readonly eco: string
    readonly name: string
  }
  /** An option that an engine was given. */
  interface Option {
    readonly name: string
    readonly value: string
  }
  /** `outlook`: rating list or forecasts have changed. */
  interface OutlookTold {
    /** The time of day when it was told. */
    readonly now_ms: number
    /** Below `/api/v1/`. */
    readonly places: ReadonlyArray<string>
  }
  /** The game in flight. */
  interface Pairing {
    readonly game: string
    readonly event: string
    readonly round: string
    readonly white: string
    readonly black: string
  }
  /** A move; all from `eval` on is absent for a book move, null where it is not known. */
  interface Ply {
    /** From 1, book plies included. */
    readonly n: number
    readonly side: "white" | "black"
    /** The number word of PGN, such as `12.`; empty for Black but at the start. */
    readonly move: string
    readonly san: string
    readonly uci: string
    /** From and to; of castling the king's. */
    readonly squares: readonly [string, string]
    /** The position after it. */
    readonly fen: string
    readonly book: boolean
    /** As PGN writes it, White's view: `0.25`, `-M12`. */
    readonly eval?: string | null
    readonly cp?: number | null
    /** In moves; below 0 White is mated. */
    readonly mate?: number | null
    readonly depth?: number | null
    readonly seldepth?: number | null
    readonly nodes?: number | null
    readonly nps?: number | null
    readonly tbhits?: number | null
    readonly hashfull?: number | null
    /** White's wins, draws and losses per mille by the engine itself; null where it says none. */
    readonly wdl?: readonly [number, number, number] | null
    readonly move_ms?: number | null
    readonly white_clock_ms?: number | null
    readonly black_clock_ms?: number | null
    readonly counters?: Counters | null
    readonly ponder?: string | null
    /** What came of its search in the opponent's turn; absent where it did not ponder. */
    readonly pondered?: "hit" | "miss" | "early" | null
    /** How long that took, which no clock is charged for. */
    readonly pondered_ms?: number | null
    /** The engine's variation; absent where it has to be asked for by ply. */
    readonly line?: ReadonlyArray<Step> | null
  }
  /** `ply`: a move. */
  interface PlyTold {
    /** The time of day when it was told. */
    readonly now_ms: number
    readonly season: string
    readonly game: string
    readonly ply: Ply
    readonly opening: Opening
    readonly clock: Clock
  }
  /** How far something is, in games. */
  interface Progress {
    readonly played: number
    readonly total: number
  }
  /** One in twenty is earlier, half are, one in twenty is later. */
  interface Quantiles {
    readonly early: number
    readonly expected: number
    readonly late: number
  }
  /** An engine of the rating list. */
  interface Rated {
    readonly rank: number | null
    readonly engine: string
    readonly rating: number | null
    /** Of 95 % of the simulated lists; null where too few games tell. */
    readonly error: number | null
    readonly points: number
    readonly played: number
    readonly percent: number
    readonly provisional: boolean
    /** Who lost or won everything is below or above its rating. */
    readonly bound: "" | "<" | ">"
  }
  /** The rating list of all seasons; all but `absent` and `ratings` may be absent. */
  interface Ratings {
    /** Why there is none, null where there is one. */
    readonly absent: string | null
    readonly ratings: ReadonlyArray<Rated>
    readonly made_ms?: number | null
    readonly games?: number | null
    readonly average?: number | null
    /** Engines by whose own ratings the list lies on the rosters' scale. */
    readonly rosters?: number | null
    readonly journals?: Readonly<Record<string, number>> | null
    readonly white_advantage?: number | null
    readonly draw_rate?: number | null
  }
  /** `result`: a game is over. */
  interface ResultTold {
    /** The time of day when it was told. */
    readonly now_ms: number
    readonly season: string
    readonly game: string
    readonly result: "1-0" | "0-1" | "1/2-1/2"
    readonly ending: Ending
    readonly details: string
    readonly adjudicated: boolean
    readonly ended_ms: number
    readonly plies: number
  }
  /** An engine in the standings. */
  interface Row {
    readonly rank: number
    readonly engine: string
    readonly name: string
    /** The one that it plays the event with. */
    readonly version?: string
    readonly rating: number | null
    /** The rating comes from test games. */
    readonly provisional: boolean
    readonly points: number
    readonly games: number
    readonly wins: number
    readonly draws: number
    readonly losses: number
    readonly crashes: number
    /** By criterion, in the order of the event's chain. */
    readonly tiebreaks: Readonly<Record<string, number>>
    /** The criterion that parts it from the row above or below; empty where none does. */
    readonly decided_by: string
    /** The crosstable's, in the order of the rows; null where they have not met. */
    readonly cells: ReadonlyArray<Cell | null>
  }
  /** A game of an event's schedule; all from `ending` on is absent before its end. */
  interface ScheduledGame {
    readonly game: string
    readonly event: string
    readonly number: number
    readonly round: string
    readonly white: string
    readonly black: string
    readonly running: boolean
    readonly cancelled: boolean
    /** It was played and counts for nobody: `note` says why. It is not cancelled then. */
    readonly annulled: boolean
    readonly result: "1-0" | "0-1" | "1/2-1/2" | null
    /** By the pace so far; absent where it has begun or is never played. */
    readonly estimated_start_ms?: number | null
    readonly started_ms?: number | null
    readonly ending?: Ending | null
    /** The end in words. */
    readonly details?: string
    readonly note?: string
    readonly plies?: number | null
    readonly duration_seconds?: number | null
    readonly interruptions?: number | null
    readonly eco?: string
    readonly opening?: string
    /** White's last eval, as PGN writes it. */
    readonly white_eval?: string
    readonly black_eval?: string
    readonly final_fen?: string
    readonly r_mobility?: string
  }
  /** Results of an engine with one colour. */
  interface Score {
    readonly wins: number
    readonly draws: number
    readonly losses: number
  }
  /** What the engine that thinks said last. */
  interface Search {
    readonly side: "white" | "black"
    /** The one that it thinks about. */
    readonly ply: number
    readonly eval: string | null
    readonly cp: number | null
    readonly mate: number | null
    readonly depth: number | null
    readonly seldepth: number | null
    readonly nodes: number | null
    readonly nps: number | null
    readonly tbhits: number | null
    readonly hashfull: number | null
    /** White's wins, draws and losses per mille by the engine itself; null where it says none. */
    readonly wdl: readonly [number, number, number] | null
    readonly line: ReadonlyArray<Step>
  }
  /** `search`: the engine that thinks said something. */
  interface SearchTold {
    /** The time of day when it was told. */
    readonly now_ms: number
    readonly side: "white" | "black"
    /** The one that it thinks about. */
    readonly ply: number
    readonly eval: string | null
    readonly cp: number | null
    readonly mate: number | null
    readonly depth: number | null
    readonly seldepth: number | null
    readonly nodes: number | null
    readonly nps: number | null
    readonly tbhits: number | null
    readonly hashfull: number | null
    /** White's wins, draws and losses per mille by the engine itself; null where it says none. */
    readonly wdl: readonly [number, number, number] | null
    readonly line: ReadonlyArray<Step>
    readonly season: string
    readonly game: string
  }
  /** Where a season stands. */
  interface Season {
    readonly season: string
    readonly name: string
    readonly site: string
    readonly status: "waiting" | "running" | "paused" | "held" | "finished" | "abandoned"
    /** Why it is paused, held or abandoned; else empty. */
    readonly reason: string
    readonly launched_ms: number
    /** The checksum of the seed of all draws. */
    readonly seed_sha256: string
    /** The seed itself, null before the end. */
    readonly seed: string | null
    readonly champion: string | null
    readonly title: Title | null
    readonly games: Progress
    readonly remaining_seconds: number
    readonly next_gate_ms: number | null
    readonly decisions: ReadonlyArray<Decision>
    readonly next: Next | null
    readonly waits: ReadonlyArray<Wait>
    /** Of a match: the game of this board. */
    readonly running: Pairing | null
    readonly events: ReadonlyArray<EventOverview>
    /** `match`: one of `farm match -live` or `farm match test`, without lots, gates, decisions. */
    readonly kind?: "season" | "match"
    /** Of a match: the games that are played at the same time. */
    readonly boards?: ReadonlyArray<MatchBoard>
    /** By the engine's name, of those that have a logo or a flag. */
    readonly badges?: Readonly<Record<string, Badge>>
  }
  /** A season among all. */
  interface SeasonOverview {
    /** Its id, as in addresses. */
    readonly season: string
    readonly name: string
    readonly status: "waiting" | "running" | "paused" | "held" | "finished" | "abandoned"
    /** The winner's name, null before the end. */
    readonly champion: string | null
    readonly launched_ms: number
    readonly games: Progress
  }
  /** `season`: an event changes its state, a decision is asked for, and the like. */
  interface SeasonTold {
    /** The time of day when it was told. */
    readonly now_ms: number
    readonly season: string
    readonly name: string
    readonly site: string
    readonly status: "waiting" | "running" | "paused" | "held" | "finished" | "abandoned"
    /** Why it is paused, held or abandoned; else empty. */
    readonly reason: string
    readonly launched_ms: number
    /** The checksum of the seed of all draws. */
    readonly seed_sha256: string
    /** The seed itself, null before the end. */
    readonly seed: string | null
    readonly champion: string | null
    readonly title: Title | null
    readonly games: Progress
    readonly remaining_seconds: number
    readonly next_gate_ms: number | null
    readonly decisions: ReadonlyArray<Decision>
    readonly next: Next | null
    readonly waits: ReadonlyArray<Wait>
    /** Of a match: the game of this board. */
    readonly running: Pairing | null
    readonly events: ReadonlyArray<EventOverview>
    /** `match`: one of `farm match -live` or `farm match test`, without lots, gates, decisions. */
    readonly kind?: "season" | "match"
    /** Of a match: the games that are played at the same time. */
    readonly boards?: ReadonlyArray<MatchBoard>
    /** By the engine's name, of those that have a logo or a flag. */
    readonly badges?: Readonly<Record<string, Badge>>
  }
  /** A sequential test: its hypotheses, bounds, and the log likelihood ratio now. */
  interface SequentialTest {
    readonly elo0: number
    readonly elo1: number
    readonly alpha: number
    readonly beta: number
    readonly model: "normalized" | "logistic"
    readonly llr: number
    readonly lower: number
    readonly upper: number
    readonly accepted: "H0" | "H1" | null
  }
  /** `snapshot`: all that a listener needs to begin with. */
  interface Snapshot {
    /** The time of day when it was told. */
    readonly now_ms: number
    /** The event that this stands behind: `after` and Last-Event-ID go on from it. */
    readonly id?: string
    readonly viewers: number
    readonly season: Season | null
    readonly game: Game | null
    readonly seasons: ReadonlyArray<SeasonOverview> | null
    /** How many test matches the farm's page lists. */
    readonly tests?: number
  }
  /** Least, mean and most. */
  interface Spread {
    readonly min: number
    readonly mean: number
    readonly max: number
  }
  /** Results of games that count. */
  interface Statistics {
    readonly games: number
    readonly white_wins: number
    readonly draws: number
    readonly black_wins: number
    /** Games by the words of their end, most first. */
    readonly endings: Readonly<Record<string, number>>
    readonly plies: Spread | null
    readonly seconds: Spread | null
  }
  /** A move of a variation, with the position after it. */
  interface Step {
    readonly san: string
    readonly uci: string
    readonly fen: string
  }
  /** `tables`: the tables of these events have changed. */
  interface TablesTold {
    /** The time of day when it was told. */
    readonly now_ms: number
    readonly season: string
    readonly events: ReadonlyArray<string>
  }
  /** An event that an event's best go on to. */
  interface Target {
    readonly to: string
    readonly name: string
  }
  /** A test match of `farm match test` among all: by its id, its tables are those of a season. */
  interface TestMatchOverview {
    /** Its id, as in addresses: `test:` and the match's name. */
    readonly season: string
    readonly name: string
    /** The tested one first. */
    readonly engines: ReadonlyArray<string>
    /** In words. */
    readonly time_control: string
    readonly status: "running" | "finished"
    /** Why it is over; else empty. */
    readonly reason: string
    /** When it was begun, or gone on with. */
    readonly opened_ms: number
    readonly games: Progress
    /** Of the tested engine; null against several. */
    readonly score: MatchScore | null
    readonly sprt: SequentialTest | null
    /** Games that are played now. */
    readonly running: number
    /** The parameters, of a match that tunes an engine. */
    readonly tuned?: ReadonlyArray<string>
  }
  /** As PGN writes them. */
  interface TimeControls {
    readonly white: string
    readonly black: string
  }
  /** The title that a season is played for, and who holds it. */
  interface Title {
    readonly name: string
    readonly holder: string
  }
  /** A number of an engine that is tuned by SPSA. */
  interface TunedParameter {
    readonly name: string
    readonly value: number
    /** As the engine would be told it now. */
    readonly said: string
    readonly start: number
    readonly min: number
    readonly max: number
    /** How far it is moved up and down in the next iteration, and at the end (`c_end`). */
    readonly c: number
    readonly c_end: number
    /** How large its step is in the next iteration, and at the end (`r_end`). */
    readonly r: number
    readonly r_end: number
  }
  /** Where a tuning stands: iterations of some pairs of games each. */
  interface Tuning {
    readonly iterations: number
    readonly done: number
    readonly pairs: number
    readonly parameters: ReadonlyArray<TunedParameter>
    readonly course: TuningCourse
  }
  /** The values, in the order of the parameters, after so many iterations. */
  interface TuningCourse {
    readonly done: ReadonlyArray<number>
    readonly values: ReadonlyArray<ReadonlyArray<number>>
  }
  /** `viewers`: how many listen. */
  interface ViewersTold {
    readonly count: number
  }
  /** Something that the next game waits for. */
  interface Wait {
    readonly for: "hold" | "pause" | "verdict" | "hall" | "organizers" | "host" | "gate"
    readonly event: string
    readonly game: string
    readonly reason: string
    readonly since_ms: number
    /** When a gate opens; null where nobody knows. */
    readonly until_ms: number | null
  }
  /** What the stream says, by the event's name. */
  interface Events {
    snapshot: Snapshot
    game: GameTold | NoGameTold
    ply: PlyTold
    clock: ClockTold
    search: SearchTold
    kibitz: KibitzTold
    result: ResultTold
    season: SeasonTold
    tables: TablesTold
    outlook: OutlookTold
    viewers: ViewersTold
  }
  /** What lies at a place below `/api/v1/`. */
  type Answer<Place extends string> =
    Place extends `seasons/${string}/games/${string}/plies/${string}` ? Ply :
    Place extends `seasons/${string}/events/${string}/schedule` ? ReadonlyArray<ScheduledGame> :
    Place extends `seasons/${string}/events/${string}` ? Event :
    Place extends `seasons/${string}/games/${string}` ? Game :
    Place extends `seasons/${string}/forecast` ? Forecast :
    Place extends `seasons/${string}/graph` ? Graph :
    Place extends `seasons/${string}/live` ? Game :
    Place extends `seasons/${string}/log` ? ReadonlyArray<LogLine> :
    Place extends `seasons/${string}/statistics` ? Statistics :
    Place extends `seasons/${string}/test` ? MatchTest :
    Place extends `seasons/${string}` ? Season :
    Place extends `ratings` ? Ratings :
    Place extends `seasons` ? ReadonlyArray<SeasonOverview> :
    Place extends `snapshot` ? Snapshot :
    Place extends `tests` ? ReadonlyArray<TestMatchOverview> :
    never
}
