// @ts-check
// What the page knows, and how each thing that happens changes it: no document, no network, no time.

/**
 * The whole state of a page. It is never changed: `apply` returns another one.
 * @typedef {object} State
 * @property {readonly Api.SeasonOverview[]} seasons   all seasons, as the read API lists them
 * @property {?Api.Season} season the season that is shown
 * @property {?Api.Game} live     its game in flight, else the one that was finished last
 * @property {boolean} missed     whether plies of that game were missed: it has to be fetched
 * @property {string} wanted      the season of the address; "" is the one that the server shows
 * @property {string} chosen      the event of the address; "" follows the season
 * @property {string} asked       the game of the address; "" is the live one
 * @property {?number} ply        the ply of the address; null is the game's end
 * @property {?Api.Game} replay   the game that is asked for, once it is here
 * @property {string} engine      the engine of the address, whose page is shown; "" is the first one
 * @property {?{what: "game" | "season", name: string}} lost   what the address names and is not here
 * @property {string} tab         the table that is shown
 * @property {{number: number, events: ?readonly string[]}} tables   changes of tables; `events` null: of all
 * @property {{number: number}} outlook   changes of ratings and forecast
 * @property {?number} viewers    how many watch
 * @property {number} tests       how many test matches the farm lists
 */

/**
 * The parts of an address; empty where it has none.
 * @typedef {{season: string, event: string, game: string, ply: ?number, engine?: string}} Address
 */

/**
 * What may happen, by its kind: what the stream says, and what the spectator does.
 * @typedef {Omit<Api.Events, "snapshot" | "tables"> & {
 *   snapshot: Omit<Api.Snapshot, "viewers"> & {viewers: ?number}, tables: {season?: string, events: ?readonly string[]},
 *   address: Address, replay: {name: string, game: ?Api.Game}, lost: NonNullable<State["lost"]>, tab: {tab: string}}} Happenings
 */

/** @type {State} */
export const START = Object.freeze({
  seasons: [], season: null, live: null, missed: false, wanted: "", chosen: "", asked: "", ply: null, replay: null, engine: "",
  lost: null, tab: "standings", tables: { number: 0, events: null }, outlook: { number: 0 }, viewers: null, tests: 0,
})

/** @type {{[Kind in keyof Happenings]: (state: State, data: Happenings[Kind]) => State}} */
const changes = {
  // -- what the stream says -------------------------------------------------------------

  snapshot(state, { seasons, season, game, viewers, tests }) {
    const tables = { number: state.tables.number + 1, events: null } // whatever happened meanwhile
    return caughtUp({ ...state, seasons: seasons ?? [], season: season ?? null, viewers: viewers ?? state.viewers, tests: tests ?? 0, tables }, game ?? null)
  },
  game(state, data) { return isOfSeason(state, data) ? caughtUp(state, isGame(data) ? remembered(state, data) : null) : state },
  ply(state, { ply, clock, opening, ...data }) {
    if (!isOfLive(state, data)) return state
    const { live } = state
    if (ply.n <= live.plies.length) return state
    if (ply.n > live.plies.length + 1) return { ...state, missed: true }
    const named = opening?.name || opening?.eco ? opening : live.opening
    return { ...state, live: { ...live, plies: [...live.plies, ply], clock, search: null, opening: named } }
  },
  clock(state, data) {
    if (!isOfLive(state, data)) return state
    const { thinking, since_ms, white_ms, black_ms } = data
    return { ...state, live: { ...state.live, clock: { thinking, since_ms, white_ms, black_ms } } }
  },
  search(state, data) {
    const next = isOfLive(state, data) && data.ply === state.live.plies.length + 1
    return next ? { ...state, live: { ...state.live, search: data } } : state
  },
  kibitz(state, data) {
    if (!isOfLive(state, data)) return state
    const { kibitzers } = data
    return { ...state, live: { ...state.live, kibitzers, kibitzed: kibitzers.reduce(withEval, state.live.kibitzed ?? []) } }
  },
  result(state, data) {
    if (!isOfLive(state, data)) return state
    const { result, details, adjudicated } = data
    const clock = state.live.clock && { ...state.live.clock, thinking: null }
    return { ...state, live: { ...state.live, status: "finished", result, details, adjudicated, search: null, clock } }
  },
  season(state, data) { return isOfSeason(state, data) ? { ...state, season: data } : state },
  tables(state, data) { return isOfSeason(state, data) ? { ...state, tables: { number: state.tables.number + 1, events: data.events ?? null } } : state },
  outlook(state) { return { ...state, outlook: { number: state.outlook.number + 1 } } },
  viewers(state, { count }) { return { ...state, viewers: count } },

  // -- what the spectator does ----------------------------------------------------------

  /** Go to an address. An event's tables and an engine's page stand below the game that is shown, whichever that is. */
  address(state, { season, event, game, ply, engine = "" }) {
    const moved = season !== state.wanted && season !== (state.season?.season ?? "")
    const led = { ...state, lost: null, wanted: moved ? season : state.wanted, live: moved ? null : state.live, chosen: event }
    if (engine) Object.assign(led, { engine, tab: "engine", chosen: state.chosen })
    if (event || engine) return moved ? { ...led, asked: "", ply: null, replay: null } : led
    const same = game === state.asked && !moved
    return { ...led, asked: game, ply, replay: same ? state.replay : null }
  },
  /** Take the game that was asked for; null where there is none. */
  replay(state, { name, game }) {
    if (state.asked !== name) return state
    if (!game) return { ...state, lost: { what: "game", name } }
    if (game.status === "running" && state.live) return { ...state, asked: "", replay: null }
    return { ...state, replay: game }
  },
  lost(state, lost) { return { ...state, lost } },
  tab(state, { tab }) { return { ...state, tab } },
}

/**
 * Return the state after something has happened; what concerns another season or game changes nothing.
 * @template {keyof Happenings} Kind
 * @param {State} state
 * @param {Kind} kind   another one, of a later server, changes nothing either
 * @param {Happenings[Kind]} data
 * @returns {State}
 */
export function apply(state, kind, data) {
  return Object.hasOwn(changes, kind) ? changes[kind](state, data) : state
}

/**
 * @param {Api.GameTold | Api.NoGameTold} data
 * @returns {data is Api.GameTold}
 */
const isGame = (data) => data.game !== ""
/** @type {(state: State, data: {season?: string}) => boolean} */
const isOfSeason = (state, data) => state.season !== null && data.season === state.season.season
/**
 * @param {State} state
 * @param {{season: string, game: string}} data
 * @returns {state is State & {live: Api.Game}}
 */
const isOfLive = (state, data) => isOfSeason(state, data) && state.live !== null && state.live.game === data.game

/**
 * The evals of kibitzers with another one; of a position the last word counts.
 * @param {readonly Api.Kibitzed[]} evals
 * @param {Api.Kibitzer} kibitzer
 * @returns {readonly Api.Kibitzed[]}
 */
function withEval(evals, { desk, engine, ply, eval: told, cp, mate, wdl }) {
  const others = (evals.at(-1)?.ply ?? ply) < ply ? evals : evals.filter((one) => one.desk !== desk || one.ply !== ply)
  return [...others, { desk, engine, ply, eval: told, cp, mate, wdl }]
}

/**
 * A finished game with what kibitzers thought of it while it was played: no record has it.
 * @param {State} state
 * @param {Api.Game} game
 */
function remembered({ live }, game) {
  return live?.game === game.game && live.kibitzed && !game.kibitzed ? { ...game, kibitzed: live.kibitzed } : game
}

/**
 * Show another live game. Who asked for it by its address before the stream told of it follows it now,
 * unless its record is here: then the stream has yet to tell of its end.
 * @param {State} state
 * @param {?Api.Game} live
 * @returns {State}
 */
function caughtUp(state, live) {
  const early = live?.status === "running" && live.game === state.asked && state.replay?.status !== "finished"
  const ply = early || state.asked || live?.game === state.live?.game ? state.ply : null // it was the other game's
  return { ...state, live, missed: false, ply, ...(early ? { asked: "", replay: null } : {}) }
}

// -- what follows from a state ------------------------------------------------------------

/**
 * The game that is shown, and whether it is followed; until a replay is here the live one stays.
 * @param {State} state
 */
export function shownGame({ replay, live }) {
  return replay ? { game: replay, followed: false } : { game: live, followed: true }
}

/**
 * The season of the address, else the one that is shown.
 * @param {State} state
 */
export const seasonOf = ({ wanted, season }) => wanted || season?.season || ""

/**
 * The event that the season is at: of the game in flight, else of the one that was finished last.
 * @param {State} state
 * @returns {string}
 */
export function currentEvent({ season, live }) {
  if (!season?.events.length) return ""
  /** @type {(id: string) => boolean} */
  const known = (id) => season.events.some(({ event }) => event === id)
  if (live && known(live.event)) return live.event
  return season.running?.event ?? season.events.findLast((one) => one.entrants.length)?.event ?? season.events[0].event
}

/**
 * The event whose tables are shown: the address', a replay's, else the one that the season is at.
 * @param {State} state
 */
export function shownEvent(state) {
  /** @type {(id: string) => ?boolean | undefined} */
  const known = (id) => state.season?.events.some(({ event }) => event === id)
  if (known(state.chosen)) return state.chosen
  if (state.replay && known(state.replay.event)) return state.replay.event
  return currentEvent(state)
}

const OF_EVENT = new Set(["standings", "crosstable", "schedule"])
const OF_OUTLOOK = new Set(["ratings", "forecast"])

/**
 * Whether the table that is shown is another one ("now"), has to be fetched again ("later"), or neither ("").
 * @param {State} before
 * @param {State} state
 * @returns {"" | "later" | "now"}
 */
export function redraws(before, state) {
  if (!state.season) return ""
  if (state.tab !== before.tab || state.engine !== before.engine || state.season.season !== before.season?.season || shownEvent(state) !== shownEvent(before)) return "now"
  if (state.outlook !== before.outlook && OF_OUTLOOK.has(state.tab)) return "later"
  if (state.tables === before.tables) return ""
  const { events } = state.tables
  if (!events) return "later"
  if (OF_OUTLOOK.has(state.tab)) return ""
  return OF_EVENT.has(state.tab) && !events.includes(shownEvent(state)) ? "" : "later"
}

/**
 * The same for the standings beside the game, where those who play now are marked.
 * @param {State} before
 * @param {State} state
 * @returns {"" | "later" | "now"}
 */
export function besideRedraws(before, state) {
  if (!state.season) return ""
  /** @type {(state: State) => ?string} */
  const played = ({ live }) => live && `${live.game} ${live.status}`
  if (state.season.season !== before.season?.season || shownEvent(state) !== shownEvent(before) || played(state) !== played(before)) return "now"
  if (state.tables === before.tables) return state.season.next === before.season?.next ? "" : "later"
  return !state.tables.events || state.tables.events.includes(shownEvent(state)) ? "later" : ""
}

// -- the store ----------------------------------------------------------------------------

/** Keep a state; views are told of the one before and the new one, in the order of their subscription. */
export function store(start = START) {
  let state = start
  /** @type {((state: State, before: State) => void)[]} */
  const views = []
  /** @type {[keyof Happenings, any][]} */
  const waiting = []
  return {
    get state() { return state },
    /** @param {(state: State, before: State) => void} view */
    subscribe(view) { views.push(view) },
    /**
     * Let something happen; what a view lets happen meanwhile comes after it, so that all views see the same order.
     * @template {keyof Happenings} Kind
     * @param {Kind} kind
     * @param {Happenings[Kind]} data
     */
    send(kind, data) {
      waiting.push([kind, data])
      if (waiting.length > 1) return
      while (waiting.length) {
        const before = state
        state = apply(state, ...waiting[0])
        if (state !== before) for (const view of views) attempt(() => view(state, before))
        waiting.shift()
      }
    },
  }
}

/**
 * Report what a view throws, and go on with the others.
 * @param {() => void} action
 */
function attempt(action) {
  try { action() } catch (error) { queueMicrotask(() => { throw error }) }
}
