// @ts-check
// The tables of an event and of the season, made of the read API's documents.

import { badge } from "./badges.js"
import { coming } from "./bracket.js"
import { empty, fill, h, patch, table } from "./dom.js"
import { engines } from "./engines.js"
import { get } from "./feed.js"
import * as format from "./format.js"
import { test, tests } from "./match.js"
import { forecast, ratings } from "./outlook.js"
import { engineLink, gameLink, isOut, resultLink } from "./results.js"
import { finds, WINDOW, windowed } from "./rows.js"
import { knows, number, said, t } from "./texts.js"
import { connect } from "./wires.js"

/**
 * What a tab is made of.
 * @typedef {{season: Api.Season, seasons: readonly Api.SeasonOverview[], event: string, engine: string, again: () => void}} Context
 *
 * A tab: how it is drawn, and what has to be done once it is laid out.
 * @typedef {{draw: (context: Context) => Promise<Child[]>, laid?: (panel: HTMLElement, context: Context) => void}} Tab
 */

/**
 * The name of a tiebreak, or of what else gave a row its place.
 * @param {string} name
 */
const tiebreakName = (name) => (knows(`tiebreak.${name}`) ? t(`tiebreak.${name}`) : name)

const TYPED_MS = 150 // who types is not interrupted
/**
 * The tabs by their ids; `tabs.js` says which are there, and when.
 * @type {Readonly<Record<import("./tabs.js").Id, Tab>>}
 */
const TABS = {
  test: { draw: test }, standings: { draw: standings }, crosstable: { draw: crosstable }, schedule: { draw: schedule, laid: jump },
  bracket: { draw: bracket, laid: connectMatches }, engine: { draw: engines }, ratings: { draw: ratings }, forecast: { draw: forecast },
  graph: { draw: graph, laid: connectEvents }, statistics: { draw: statistics }, log: { draw: log }, archive: { draw: archive }, tests: { draw: tests },
}

/** @param {Context} context */
const event = ({ season, event: id }) => get(`seasons/${season.season}/events/${id}`)

/** @type {Tab["draw"]} */
async function standings(context) {
  const told = await event(context)
  if (!told?.rows.length) return [empty(t("event.waits"))]
  const chain = told.chain.filter((name) => name !== "seed" && name !== "organizers")
  const rated = told.rows.some(({ rating }) => rating)
  /** @type {Heading[]} */
  const head = [["#", true], [t("engine")], [t("points"), true], [t("games"), true], ["+", true], ["=", true], ["−", true], ...(rated ? [/** @type {Heading} */ ([t("rating"), true])] : []), ...chain.map((name) => /** @type {Heading} */ ([tiebreakName(name), true])), [t("decided")]]
  const rows = told.rows.map((row) => h("tr", { "data-engine": row.engine },
    h("td", { class: "num" }, row.rank), h("th", { scope: "row" }, engineLink(context.season.season, row.name)),
    h("td", { class: `num${row.decided_by === "points" ? " decisive" : ""}`, "data-x": "points" }, format.points(row.points)),
    [row.games, row.wins, row.draws, row.losses].map((n) => h("td", { class: "num" }, n)),
    rated ? h("td", { class: "num", "data-x": "rating" }, row.rating ?? "–") : null,
    chain.map((name) => tiebreak(row, name)),
    decidedBy(row, told.final)))
  return [h("h3", {}, t(told.final ? "standings.final" : "standings.now", { name: told.name })), table(t("tab.standings"), head, rows), titleHolder(context.season)].filter(Boolean)
}

/**
 * Who holds the title: the season's winner, until then that of the one before.
 * @param {Api.Season} season
 */
function titleHolder({ title, champion }) {
  if (!title?.holder) return null
  return h("p", { class: "quiet note", id: "title-holder" }, t(champion ? "title.holder" : "title.until", { title: title.name, holder: title.holder }))
}

/**
 * A number of the chain; direct encounter counts among those still level, so not every engine has it.
 * @param {Api.Row} row
 * @param {string} name
 */
function tiebreak(row, name) {
  const number = row.tiebreaks[name]
  if (number === undefined) return h("td", { class: "num", "data-x": name, title: t("tiebreak.unneeded") }, "–")
  return h("td", { class: `num${row.decided_by === name ? " decisive" : ""}`, "data-x": name }, format.points(number))
}

/**
 * What gave a row its place; a tie that stands in a final table decides nothing.
 * @param {Api.Row} row
 * @param {boolean} final
 */
function decidedBy(row, final) {
  if (row.decided_by) return h("td", { "data-x": "decided-by" }, tiebreakName(row.decided_by))
  if (!final) return h("td", { "data-x": "decided-by" }, t("level"))
  return h("td", { "data-x": "decided-by", title: t("undecided.title") }, t("undecided"))
}

/** @type {Tab["draw"]} */
async function crosstable(context) {
  const told = await event(context)
  if (!told?.rows.length) return [empty(t("event.waits"))]
  /** @type {Heading[]} */
  const head = [["#", true], [t("engine")], [t("points"), true], ...told.rows.map((row) => /** @type {Heading} */ ([String(row.rank)]))]
  const paired = told.rows.map((row, at) => allPairs(row.cells.filter((_, other) => other !== at && !isOut(row) && !isOut(told.rows[other]))))
  const inPairs = paired.some(Boolean)
  if (inPairs) head.splice(3, 0, [t("pairs")])
  const rows = told.rows.map((row, at) => h("tr", {}, h("td", { class: "num" }, row.rank), h("th", { scope: "row" }, badge(row.name), row.name),
    h("td", { class: "num" }, format.points(row.points)), inPairs ? h("td", { "data-x": "pairs" }, pairs(paired[at])) : null,
    row.cells.map((cell, other) => {
      if (cell === null || other === at) return h("td", { class: "self" }, "")
      const annulled = isOut(row) || isOut(told.rows[other])
      return h("td", { class: annulled ? "annulled" : null }, results(context.season.season, cell, told.rows[other].name, annulled), annulled || told.rows.length < 3 || !several(cell.pairs) ? null : pairs(cell.pairs))
    })))
  const out = told.rows.filter(isOut).map((row) => row.name)
  const note = h("p", { class: "quiet note" }, t("crosstable.annulled", { names: out.join(", ") }))
  return [h("h3", {}, told.name), table(t("tab.crosstable"), head, rows), out.length ? note : null]
}

/**
 * The pairs of several cells together, null where none is complete.
 * @param {readonly (?Api.Cell)[]} cells
 */
function allPairs(cells) {
  const known = cells.flatMap((cell) => (cell?.pairs ? [cell.pairs] : []))
  return known.length ? [0, 1, 2, 3, 4].map((points) => known.reduce((sum, counts) => sum + counts[points], 0)) : null
}

/**
 * Whether there is more than one pair: what came of a single one is read from its two results.
 * @param {?readonly number[] | undefined} counts
 */
const several = (counts) => counts && counts.reduce((sum, count) => sum + count, 0) > 1

/**
 * Pairs of games by the points taken of them (pentanomial).
 * @param {?readonly number[] | undefined} counts
 */
const pairs = (counts) => counts && h("small", { class: "counts", title: t("pairs.title") }, counts.join("-"))

/**
 * The results of a cell, each of them a way to its game.
 * @param {string} season
 * @param {Api.Cell} cell
 * @param {string} other
 * @param {boolean} annulled
 */
const results = (season, { text, games }, other, annulled = false) => /** @type {import("./results.js").Sign[]} */ ([...text]).map((sign, k) => resultLink(season, sign, games[k], other, annulled))

/** @type {Tab["draw"]} */
async function schedule(context) {
  const rows = await get(`seasons/${context.season.season}/events/${context.event}/schedule`)
  if (!rows?.length) {
    const tab = context.season.events.find((one) => one.event === context.event)
    if (context.season.status === "abandoned") return [empty(t("schedule.never"))]
    return [empty(tab?.estimated_start_ms ? t("schedule.expected", { moment: format.moment(tab.estimated_start_ms) }) : t("schedule.waits"))]
  }
  /** @type {Heading[]} */
  const head = [["#", true], [t("round")], [t("white")], [t("result")], [t("black")], [t("start")], [t("ending")], [t("schedule.plies"), true], [t("time"), true], [t("opening")], ["PGN"]]
  const place = `${context.season.season} ${context.event}`
  if (searched.place !== place) searched = { place, words: "", from: null, jumps: false }
  const seen = windowed(rows, searchText, searched.words, searched.from, isNext)
  const next = rows.find(isNext)
  /** @param {number} from */
  const show = (from) => h("button", { type: "button", "data-key": from < seen.from ? "earlier" : "later", onclick: () => { searched.from = from; context.again() } }, t(from < seen.from ? "schedule.earlier" : "schedule.later"))
  return [h("h3", {}, t("tab.schedule")), search(seen, rows, context.again),
    seen.from ? show(Math.max(0, seen.from - WINDOW)) : null,
    seen.found ? table(t("tab.schedule"), head, seen.shown.map((row) => game(context.season.season, row, row === next)), { "data-key": "schedule" }) : empty(t("schedule.unfound")),
    seen.from + WINDOW < seen.found ? show(seen.from + WINDOW) : null]
}

/** What is searched for in the schedule of an event, and where the shown part of a long one begins. */
/** @type {{place: string, words: string, from: ?number, jumps: boolean}} */
let searched = { place: "", words: "", from: null, jumps: false }
let typing = 0

/**
 * Whether a game is the one that is played, or comes next: the first of which that is true.
 * @param {Api.ScheduledGame} row
 */
const isNext = ({ running, result, cancelled }) => running || !(result || cancelled)

/**
 * Bring that game into sight, once it was asked for.
 * @param {HTMLElement} panel
 */
function jump(panel) {
  if (!searched.jumps) return
  searched.jumps = false
  panel.querySelector("tr.next")?.scrollIntoView({ block: "center" })
}

/** @param {Api.ScheduledGame} row */
const searchText = (row) => [row.round, row.white, row.black, row.result, said(row.details), row.eco, row.opening, row.game].filter(Boolean).join(" ")

/**
 * @param {{found: number, from: number, shown: readonly unknown[]}} seen
 * @param {readonly Api.ScheduledGame[]} rows
 * @param {() => void} again
 */
function search({ found, from, shown }, rows, again) {
  const next = rows.length < SEARCHED ? undefined : rows.find(isNext)
  const onclick = () => { Object.assign(searched, { words: "", from: null, jumps: true }); again() }
  /** @param {{currentTarget: HTMLInputElement}} event */
  const oninput = ({ currentTarget }) => {
    Object.assign(searched, { words: currentTarget.value, from: null })
    clearTimeout(typing)
    typing = setTimeout(again, TYPED_MS)
  }
  const part = found > shown.length ? t("schedule.part", { from: from + 1, to: from + shown.length }) : ""
  return h("div", { class: "filters", "data-key": "search" },
    h("label", {}, t("search"), h("input", { type: "search", value: searched.words, placeholder: t("schedule.hint"), oninput })),
    next ? h("button", { type: "button", onclick }, t(next.running ? "schedule.running" : "schedule.next")) : null,
    h("span", { class: "quiet", role: "status" }, `${t("schedule.found", { found, count: rows.length })}${part}`))
}

/**
 * @param {string} season
 * @param {Api.ScheduledGame} row
 * @param {boolean} next
 */
function game(season, row, next) {
  const state = row.result ?? (row.cancelled ? t("unplayed") : row.running ? t("state.running") : "")
  const result = row.result || row.running ? h("a", { href: row.running ? "#/" : gameLink(season, row.game) }, state) : state
  const start = row.started_ms ? format.moment(row.started_ms) : row.estimated_start_ms ? t("about", { moment: format.moment(row.estimated_start_ms) }) : ""
  const kinds = [row.running ? "now" : "", next ? "next" : ""].filter(Boolean)
  return h("tr", { class: kinds.join(" ") || null, "data-game": row.game },
    h("td", { class: "num" }, row.number), h("td", {}, row.round), h("td", { class: "name" }, badge(row.white), row.white), h("td", {}, result), h("td", { class: "name" }, badge(row.black), row.black),
    h("td", {}, start), h("td", {}, said(row.details), row.annulled && row.result ? ` (${t("annulled")})` : ""), h("td", { class: "num" }, row.plies ?? ""),
    h("td", { class: "num" }, row.duration_seconds === undefined ? "" : format.duration(row.duration_seconds)), h("td", {}, row.eco ?? "", " ", row.opening ?? ""),
    h("td", {}, row.result ? h("a", { href: `pgn/${season}/games/${row.game}.pgn`, "aria-label": t("pgn.game", { number: row.number }) }, "PGN") : ""))
}

/** @type {Tab["draw"]} */
async function bracket({ season }) {
  const rounds = season.events.filter((one) => one.knockout)
  const [way, ...told] = await Promise.all([get(`seasons/${season.season}/graph`), ...rounds.map((one) => get(`seasons/${season.season}/events/${one.event}`))])
  const all = rounds.map(({ event: id, name, listed = false }, at) => ({ id, name, listed, matches: told[at]?.bracket?.matches ?? [], rows: told[at]?.rows ?? [] }))
  const ahead = coming(all, way?.ways ?? [])
  return [h("h3", {}, t("tab.bracket")), h("div", { class: "bracket" }, all.map(({ id, name, matches, rows }) => h("div", { class: "round" }, h("h4", {}, name),
    h("div", { class: "matches" }, matches.length ? matches.map((one) => match(season.season, id, one, rows)) : ahead.get(id)?.map((one) => expected(id, one)) ?? empty(t("bracket.undrawn"))))))]
}

/**
 * A match that has not been drawn: who comes to it is known, or is one of two, or the winner of a match that is ahead itself.
 * @param {string} event
 * @param {{match: number, sides: readonly import("./bracket.js").Comer[]}} one
 */
function expected(event, { match: number, sides }) {
  return h("div", { class: "match waiting", "data-match": number, "data-place": `${event} ${number}` }, sides.map(({ engine, name, seed, feeds, lost, among }) =>
    h("div", { class: "side", "data-engine": engine, "data-feeds": engine ? null : feeds, "data-lost": lost || null },
      h("span", { class: "seed", title: t("seed") }, seed ?? ""), h("span", { class: name ? null : "quiet" }, badge(name), name ?? (among.join(" / ") || t(lost ? "bracket.loser" : "bracket.winner", { match: feeds.split(" ").at(-1) }))), h("span", {}, ""))))
}

/**
 * Lead each engine's line from the match before to the next one; who lost goes on along a dashed one. Where it is not known
 * who comes, the line leads from the match that decides it.
 * @param {HTMLElement} panel
 */
function connectMatches(panel) {
  const inside = /** @type {?HTMLElement} */ (panel.querySelector(".bracket"))
  if (!inside) return
  /** @type {Map<string | undefined, HTMLElement>} */
  const last = new Map() // where an engine played last
  /** @type {import("./wires.js").Wire[]} */
  const wires = []
  for (const round of inside.querySelectorAll(".round")) {
    const sides = /** @type {HTMLElement[]} */ ([...round.querySelectorAll(".side[data-engine]")])
    for (const one of sides) {
      const before = last.get(one.dataset.engine)
      if (before) wires.push({ from: before.closest(".match") ?? before, to: one, kind: before.classList.contains("won") ? "won" : "lost" })
    }
    for (const one of sides) last.set(one.dataset.engine, one)
    for (const to of /** @type {NodeListOf<HTMLElement>} */ (round.querySelectorAll(".side[data-feeds]"))) {
      const from = inside.querySelector(`[data-place="${CSS.escape(to.dataset.feeds ?? "")}"]`)
      if (from) wires.push({ from, to, kind: "lost" in to.dataset ? "lost" : "" })
    }
  }
  connect(inside, wires)
}

/**
 * @param {string} season
 * @param {string} event
 * @param {Api.Match} one
 * @param {readonly Api.Row[]} rows
 */
function match(season, event, one, rows) {
  /** @param {?Api.BracketSide} who */
  const side = (who) => h("div", { class: `side${who?.winner ? " won" : ""}`, "data-engine": who?.engine },
    h("span", { class: "seed", title: t("seed") }, who ? who.seed : ""), h("span", {}, badge(who?.name), who ? who.name : t("bye")), h("span", {}, who && one.games.length ? format.points(who.score) : ""))
  return h("div", { class: `match ${one.status}`, "data-match": one.match, "data-place": `${event} ${one.match}` }, one.sides.map(side), played(season, one, rows))
}

/**
 * The games of a match in their order, as its upper side has them.
 * @param {string} season
 * @param {Api.Match} match
 * @param {readonly Api.Row[]} rows
 */
function played(season, { sides: [upper, lower] }, rows) {
  if (!upper || !lower) return null
  const cell = rows.find(({ engine }) => engine === upper.engine)?.cells[rows.findIndex(({ engine }) => engine === lower.engine)]
  return cell?.games.length ? h("div", { class: "played", role: "group", "aria-label": t("games.of", { name: upper.name }) }, results(season, cell, lower.name)) : null
}

/** @type {Tab["draw"]} */
async function graph({ season }) {
  const told = await get(`seasons/${season.season}/graph`)
  if (!told) return [empty(t("events.none"))]
  const eventOf = new Map(told.nodes.map((node) => [node.id, node.event]))
  /** @type {Map<string, Set<string>>} */
  const leads = new Map(told.events.map(({ id }) => [id, new Set()]))
  for (const { from, to } of told.edges) {
    const [a, b] = [eventOf.get(from), eventOf.get(to)]
    if (a && b && a !== b) leads.get(a)?.add(b)
  }
  const depth = new Map(told.events.map(({ id }) => [id, 0]))
  /** @param {string} id */
  const deep = (id) => depth.get(id) ?? 0
  for (let round = 0; round < told.events.length; round += 1) {
    for (const [a, targets] of leads) for (const b of targets) depth.set(b, Math.max(deep(b), deep(a) + 1))
  }
  /** @type {Api.GraphEvent[][]} */
  const layers = []
  for (const one of told.events) (layers[deep(one.id)] ??= []).push(one)
  const end = told.nodes.find((node) => node.kind === "end")
  /** @param {Api.GraphEvent} event */
  const box = ({ id, name }) => eventBox(season, name, season.events.find((one) => one.event === id), told.nodes.filter((node) => node.event === id), [...leads.get(id) ?? []])
  labels = new Map(told.ways.map(({ from, to, places }) => [`${from} ${to}`, placesSaid(places)]))
  return [h("h3", {}, t("events.title")), h("p", { class: "quiet note" }, t("events.way")), h("div", { class: "flow" },
    layers.filter(Boolean).map((events) => h("div", { class: "layer" }, events.map(box))),
    h("div", { class: "layer" }, h("article", { class: end?.state === "done" ? "red" : "orange", "data-event": "" }, h("h4", {}, seasonsEnd(season)))))]
}

/** Who goes on, in words, by the events from which and to which: for the lines between them. */
/** @type {ReadonlyMap<string, string>} */
let labels = new Map()
let pointed = "" // the engine whose way through the events is shown

/** @param {readonly number[]} places */
function placesSaid(places) {
  const [first, last] = [places[0], places.at(-1) ?? 0]
  const inTurn = places.every((place, at) => place === first + at)
  if (inTurn && first === 1) return t("events.top", { count: places.length })
  return t("events.places", { count: places.length, places: inTurn && last > first ? `${first}–${last}` : places.join(", ") })
}

/**
 * An engine of an event, whose way through the season is shown while it is pointed at.
 * @param {string} season
 * @param {string} name
 */
function onItsWay(season, name) {
  /** @param {string} one */
  const point = (one) => () => { pointed = one; relay?.() }
  return h("li", { "data-engine": name }, engineLink(season, name, { onmouseenter: point(name), onfocus: point(name), onmouseleave: point(""), onblur: point("") }))
}

/** @param {Api.Season} season */
function seasonsEnd({ champion, status }) {
  if (champion) return t("events.champion", { name: champion })
  return t(status === "abandoned" ? "notice.abandoned" : "events.end")
}

/**
 * An event with its progress and its engines; its steps are folded up, since a league has a hundred.
 * @param {Api.Season} season
 * @param {string} name
 * @param {Api.EventOverview | undefined} event
 * @param {readonly Api.GraphNode[]} nodes
 * @param {readonly string[]} leads   to which events
 */
function eventBox(season, name, event, nodes, leads) {
  const now = nodes.find(({ state }) => state === "running") ?? nodes.find(({ state }) => state === "ready")
  const { played, total } = event?.games ?? { played: 0, total: 0 }
  return h("article", { class: event?.colour ?? "orange", "data-event": event?.event, "data-leads": leads.join(" ") }, h("h4", {}, name),
    total ? h("progress", { value: played, max: total, "aria-label": t("games.of", { name }) }) : null,
    h("p", {}, [total ? t("events.games", { played, count: total }) : t("events.waits"), event?.entrants.length ? t("events.engines", { count: event.entrants.length }) : ""].filter(Boolean).join(", ")),
    now ? h("p", { class: "to" }, said(now.label)) : null,
    event?.entrants.length ? h("ul", { class: "who" }, event.entrants.map((one) => onItsWay(season.season, one))) : null,
    h("details", {}, h("summary", {}, t("events.steps", { count: nodes.length })), h("ol", {}, nodes.map((node) => h("li", { class: node.state }, `${said(node.label)} (${knows(`step.${node.state}`) ? t(`step.${node.state}`) : node.state})`)))))
}

/**
 * Draw what leads where, with who goes that way, and the way of the engine that is pointed at.
 * @param {HTMLElement} panel
 * @param {Context} context
 */
function connectEvents(panel, { season }) {
  const inside = /** @type {?HTMLElement} */ (panel.querySelector(".flow"))
  if (!inside) return
  const boxes = [...inside.querySelectorAll("article")]
  /** @param {string} id */
  const entrants = (id) => season.events.find(({ event }) => event === id)?.entrants ?? []
  const wires = boxes.flatMap((from) => {
    const leads = (from.dataset.leads ?? "").split(" ").filter(Boolean)
    const targets = leads.length || !from.dataset.event ? leads : [""] // nothing follows but the end
    return targets.flatMap((id) => {
      const both = entrants(id).filter((name) => entrants(from.dataset.event ?? "").includes(name)).length
      const to = boxes.find((one) => one.dataset.event === id)
      const goes = pointed && [id, from.dataset.event ?? ""].every((event) => entrants(event).includes(pointed))
      const label = labels.get(`${from.dataset.event} ${id}`) ?? (both ? t("events.on", { count: both }) : "")
      return to ? [{ from, to, kind: goes ? "way" : both ? "won" : "", label }] : []
    })
  })
  for (const box of boxes) box.classList.toggle("way", pointed !== "" && entrants(box.dataset.event ?? "").includes(pointed))
  connect(inside, wires)
}

/** @type {Tab["draw"]} */
async function statistics(context) {
  const [told, whole] = await Promise.all([event(context), get(`seasons/${context.season.season}/statistics`)])
  return [...figures(told ? told.name : t("event"), told?.statistics), ...byColour(told?.statistics), ...figures(t("statistics.season"), whole)]
}

/** @param {Api.EventStatistics | undefined} told */
function byColour(told) {
  if (!told?.games) return []
  /** @param {Api.Score} score */
  const counts = ({ wins, draws, losses }) => `+${wins} =${draws} −${losses}`
  return [h("h3", {}, t("statistics.colours")), table(t("statistics.colours"), [[t("engine")], [t("statistics.white")], [t("statistics.black")]], told.engines.map((one) =>
    h("tr", { "data-engine": one.engine }, h("th", { scope: "row" }, one.name), h("td", { "data-x": "white" }, counts(one.white)), h("td", { "data-x": "black" }, counts(one.black)))))]
}

/**
 * @param {string} title
 * @param {?Api.Statistics | undefined} told
 */
function figures(title, told) {
  if (!told?.games) return [h("h3", {}, title), empty(t("statistics.none"))]
  /** @type {[string, number, string][]} */
  const parts = [["w", told.white_wins, t("white")], ["d", told.draws, t("draws")], ["b", told.black_wins, t("black")]]
  const per = format.shares(parts.map(([, count]) => count))
  /** @type {(part: [string, number, string], at: number) => HTMLElement} */
  const bar = ([name, count, text], at) => {
    const element = h("span", { class: name }, count ? `${text} ${number(count)} (${format.percent(per[at])})` : "")
    element.style.flex = String(count)
    return element
  }
  /** @type {(name: string, value: Child) => HTMLElement} */
  const row = (name, value) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "num" }, value))
  return [h("h3", {}, t("statistics.games", { title, count: told.games })),
    h("div", { class: "bars" }, parts.map(bar)),
    table(t("endings"), [[t("ending")], [t("games"), true]], Object.entries(told.endings).sort((a, b) => b[1] - a[1]).map(([name, count]) => row(said(name), count))),
    h("p", {}, [told.plies ? t("statistics.plies", { ...told.plies }) : "", told.seconds ? t("statistics.time", Object.fromEntries(Object.entries(told.seconds).map(([name, value]) => [name, format.duration(value)]))) : ""].join(" "))]
}

/** @type {Tab["draw"]} */
async function log({ season }) {
  const lines = (await get(`seasons/${season.season}/log`)) ?? []
  const ask = season.decisions.map((one) => h("p", {}, `${t("notice.asked")}: ${one.about} (${one.engines.join(", ")})`))
  if (!lines.length) return [h("h3", {}, t("tab.log")), ...ask, empty(t("log.none"))]
  const names = new Map(season.events.map((one) => [one.event, one.name]))
  const rows = lines.toReversed().map((line) => h("tr", {}, h("td", {}, format.moment(line.at_ms)),
    h("td", {}, line.game ? h("a", { href: gameLink(season.season, line.game) }, line.game) : names.get(line.event) ?? line.event),
    h("td", { class: "name" }, line.engines.join(", ")), h("td", { class: "text" }, line.text), h("td", { class: line.reason ? "text" : null }, line.reason)))
  return [h("h3", {}, t("tab.log")), ...ask, table(t("log"), [[t("log.when")], [t("log.where")], [t("tab.engine")], [t("log.what")], [t("log.reason")]], rows)]
}

const FILTERS = ["event", "engine", "result", "ending", "eco"]

/** What stands in the archive's form, by the name of its field. */
/** @type {{season: string, asked: Record<string, string>}} */
let filters = { season: "", asked: {} }

/** @type {Tab["draw"]} */
async function archive({ season, seasons }) {
  const known = (await get("seasons")) ?? seasons ?? []
  if (filters.season !== season.season) filters = { season: season.season, asked: {} }
  const { asked } = filters
  const address = () => {
    const words = new URLSearchParams(FILTERS.filter((name) => asked[name]).map((name) => [name, asked[name]]))
    return `pgn/${season.season}.pgn${words.size ? `?${words}` : ""}`
  }
  /** @type {(name: string) => (event: {currentTarget: HTMLInputElement}) => void} */
  const refresh = (name) => ({ currentTarget }) => {
    asked[name] = currentTarget.value
    currentTarget.closest(".filters")?.querySelector("a")?.setAttribute("href", address())
  }
  /** @type {(name: string, title: string) => HTMLElement} */
  const text = (name, title) => h("label", {}, title, h("input", { type: "search", value: asked[name], oninput: refresh(name) }))
  /** @type {(name: string, title: string, values: readonly string[][]) => HTMLElement} */
  const choice = (name, title, values) => h("label", {}, title, h("select", { onchange: refresh(name) },
    values.map(([value, shown]) => h("option", { value, selected: value !== "" && value === asked[name] }, shown))))
  const all = [["", t("all")]]
  /** @param {Api.SeasonOverview} one */
  const alone = (one) => known.filter(({ name }) => name === one.name).length === 1
  const list = known.toReversed().map((one) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: `#/${one.season}` }, one.name), alone(one) ? null : h("small", { class: "quiet" }, ` ${one.season}`)),
    h("td", {}, knows(`state.${one.status}`) ? t(`state.${one.status}`) : one.status), h("td", {}, one.champion ?? ""), h("td", { class: "num" }, `${one.games.played}/${one.games.total}`), h("td", {}, format.moment(one.launched_ms)),
    h("td", {}, h("a", { href: `pgn/${one.season}.pgn`, download: true, "aria-label": t("pgn.season", { name: one.name }) }, "PGN"))))
  return [h("h3", {}, t("seasons")), table(t("seasons"), [[t("season")], [t("state")], [t("champion")], [t("games"), true], [t("begun")], ["PGN"]], list),
    h("h3", {}, t("games.of", { name: season.name })),
    h("div", { class: "filters" }, choice("event", t("event"), all.concat(season.events.map((one) => [one.event, one.name]))), text("engine", t("engine")),
      choice("result", t("result"), [...all, ["1-0", "1-0"], ["1/2-1/2", "½-½"], ["0-1", "0-1"]]), text("ending", t("ending")), text("eco", "ECO"), h("a", { download: true, href: address() }, t("download"))),
    h("p", { class: "quiet note" }, t(season.seed ? "seed.told" : "seed.sealed", { sha256: season.seed_sha256, seed: season.seed }))]
}

// -- search in every table ------------------------------------------------------------------

const SEARCHED = 8 // rows: a shorter table is read at a glance

/** @type {Map<string, string>} */
const sought = new Map() // what is searched for, by tab and the table's number in it

/**
 * Put a search above each table of a tab that is longer than a glance; the schedule has its own, over all its games.
 * @param {string} id
 * @param {readonly Child[]} made
 */
function searchable(id, made) {
  if (id === "schedule") return made
  return made.flatMap((part, at) => {
    if (!(part instanceof HTMLTableElement) || part.tBodies[0].rows.length < SEARCHED) return [part]
    const key = `${id} ${at}`
    const found = h("span", { class: "quiet", role: "status" })
    /** @param {{currentTarget: HTMLInputElement}} event */
    const oninput = ({ currentTarget: field }) => {
      sought.set(key, field.value)
      const box = field.closest(".filters")
      const table = box?.nextElementSibling // the one that is shown: this one may have been made to bring it up to date
      const status = box?.querySelector("[role=status]")
      if (table instanceof HTMLTableElement && status) status.textContent = narrow(table, field.value)
    }
    const words = sought.get(key) ?? ""
    found.textContent = narrow(part, words)
    return [h("div", { class: "filters", "data-key": key }, h("input", { type: "search", value: words, placeholder: t("search"), "aria-label": t("search"), oninput }), found), part]
  })
}

/**
 * Show the rows of a table that have all words; return how many those are, "" for all.
 * @param {HTMLTableElement} table
 * @param {string} words
 */
function narrow(table, words) {
  const fits = finds(words)
  const rows = [...table.tBodies[0].rows]
  for (const row of rows) row.hidden = !fits(row.textContent)
  return words.trim() ? t("search.rows", { found: rows.filter(({ hidden }) => !hidden).length, count: rows.length }) : ""
}

/** Lines are drawn again where boxes have moved: details were opened, the screen was turned. */
/** @type {(() => void) | null} */
let relay = null
const watcher = new ResizeObserver(() => relay?.())

/**
 * @param {HTMLElement} panel
 * @param {Tab} tab
 * @param {Context} context
 */
function lay(panel, { laid }, context) {
  watcher.disconnect()
  relay = laid ? () => laid(panel, context) : null
  const inside = panel.querySelector(".bracket, .flow")
  if (inside) watcher.observe(inside) // it is told at once, too
  else relay?.()
}

/**
 * Draw a tab into the panel, unless another one was chosen meanwhile; one that is there is brought up to date.
 * @param {HTMLElement} panel
 * @param {import("./tabs.js").Id} id
 * @param {Context} context
 * @param {Current} current
 */
export async function draw(panel, id, context, current) {
  const tab = TABS[id]
  const made = searchable(id, await tab.draw(context))
  if (!current()) return
  const of = `${id} ${context.season.season}`
  if (panel.dataset.of === of) {
    patch(panel, made)
    panel.removeAttribute("aria-busy")
    lay(panel, tab, context)
    return
  }
  fill(panel, made)
  panel.dataset.shows = id
  panel.dataset.of = of
  panel.removeAttribute("aria-busy")
  lay(panel, tab, context)
  ;[panel.scrollLeft, panel.scrollTop] = [0, 0]
}
