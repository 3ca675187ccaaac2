// @ts-check
// A match of two or more engines: its boards, Elo and the sequential test with the way they went.

import { empty, h, patch, table } from "./dom.js"
import { get } from "./feed.js"
import * as format from "./format.js"
import { number, t } from "./texts.js"

const NAMESPACE = "http://www.w3.org/2000/svg"
const [WIDTH, HEIGHT, LEFT, EDGE] = [640, 220, 46, 22] // of the graph's own units
const WAYS = 6 // colours of a tuning's parameters
const PAIRS = ["0", "½", "1", "1½", "2"]

/**
 * An Elo difference with its error; what nobody can know yet is a dash.
 * @param {?number} value
 * @param {?number} error
 */
export const elo = (value, error) => (value === null || value === undefined ? "–" : `${value > 0 ? "+" : ""}${number(value, 1)} ± ${error === null || error === undefined ? "–" : number(error, 1)}`)

/**
 * Draw a way to each board of a match where several games are played at a time; else nothing.
 * @param {HTMLElement} element
 * @param {Api.Season} season
 */
export function drawBoards(element, season) {
  patch(element, (season.boards ?? []).map(({ season: id, board, white, black }) =>
    h("a", { href: `#/${id}`, "aria-current": id === season.season ? "true" : null, "data-key": id }, t("match.board", { board }),
      h("small", { class: "quiet" }, white ? `${white} – ${black}` : ""))))
}

/**
 * What stands above the standings beside the game: Elo, pairs, and how near the test is to its end.
 * @param {Api.Season} season
 */
export async function summary(season) {
  const told = await get(`seasons/${season.season}/test`)
  if (!told?.score) return null
  const { score, sprt } = told
  return h("dl", { class: "test" }, row(t("match.elo"), elo(score.elo, score.elo_error), "elo"),
    sprt ? row("LLR", `${number(sprt.llr, 2)} (${number(sprt.lower, 2)} … ${number(sprt.upper, 2)})`, "llr") : null,
    row(t("match.pairs"), score.pentanomial.join(" "), "pairs"))
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} key
 */
const row = (name, value, key) => h("div", { "data-key": key }, h("dt", {}, name), h("dd", {}, value))

/**
 * The tab: table with Elo, pairs by their points, and the graph over the games.
 * @param {{season: Api.Season}} context
 */
export async function test({ season }) {
  const told = await get(`seasons/${season.season}/test`)
  if (!told?.games) return [empty(t("match.none"))]
  const { first, score, sprt, history, tuning } = told
  return [
    h("h3", {}, t("match.games", { games: told.games, total: told.total })),
    ...(tuning ? tuned(tuning) : []),
    ranking(told.engines),
    score ? h("p", {}, t("match.score", { name: first, elo: elo(score.elo, score.elo_error), nelo: elo(score.nelo, score.nelo_error), los: score.los === null ? "–" : number(100 * score.los, 1) })) : null,
    score && score.pentanomial.some(Boolean) ? pentanomial(first, score.pentanomial) : null,
    sprt ? h("p", { "data-x": "sprt" }, said(sprt)) : null,
    history && !tuning ? graph(history, sprt) : null,
    running(season, told.running),
  ]
}

/**
 * A tuning by SPSA: where each parameter stands, and the way that they have gone.
 * @param {Api.Tuning} tuning
 */
function tuned({ iterations, done, pairs, parameters, course }) {
  /** @type {Heading[]} */
  const head = [[""], [t("tuning.parameter")], [t("tuning.value"), true], [t("tuning.start"), true], [t("tuning.bounds"), true], ["C", true], ["R", true]]
  /** @param {number} value */
  const whole = (value) => number(value, Number.isInteger(value) ? 0 : 3)
  return [
    h("p", { "data-x": "tuning" }, t("tuning.done", { done, iterations, pairs })),
    table(t("tuning.parameter"), head, parameters.map((one, at) => h("tr", { "data-parameter": one.name },
      h("td", { class: `way way${at % WAYS}` }, "―"), h("th", { scope: "row" }, one.name), h("td", { class: "num" }, number(one.value, 3)),
      h("td", { class: "num" }, whole(one.start)), h("td", { class: "num" }, `${whole(one.min)} … ${whole(one.max)}`),
      h("td", { class: "num" }, number(one.c, 3)), h("td", { class: "num" }, number(one.r, 5))))),
    ways(parameters, course),
  ]
}

/**
 * How far each parameter has gone from its start, in what it is moved by at the end.
 * @param {Api.Tuning["parameters"]} parameters
 * @param {Api.Tuning["course"]} course
 */
function ways(parameters, { done, values }) {
  const last = done.at(-1)
  if (done.length < 2 || !last) return null
  const gone = parameters.map(({ start, c_end: unit }, at) => values.map((each) => (each[at] - start) / unit))
  const most = Math.max(1, ...gone.flat().map(Math.abs))
  const lines = gone.map((way, at) => svg("path", { class: `way way${at % WAYS}`, d: path(done, way, [-most, most]) }))
  const title = t("tuning.graph", { done: last })
  return h("figure", { class: "history" }, h("figcaption", { class: "quiet" }, title),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title }, svg("path", { class: "zero", d: path([0, last], [0, 0], [-most, most]) }), ...lines,
      ...[most, 0, -most].map((value) => svg("text", { x: LEFT - 6, y: 4 + EDGE / 2 + (HEIGHT - EDGE) * (1 - (value + most) / (2 * most)), "text-anchor": "end" }, number(value, value ? 1 : 0))),
      svg("text", { x: WIDTH, y: HEIGHT - 2, "text-anchor": "end" }, number(last))))
}

/**
 * What is played now, and in which lane; the boards of `farm match -live` have pages of their own.
 * @param {Api.Season} season
 * @param {readonly Api.MatchRunning[]} games
 */
function running(season, games) {
  if (season.boards?.length || !games?.length) return null
  return h("p", { "data-x": "running" }, h("span", { class: "quiet" }, `${t("tests.running")} `),
    games.map(({ game, white, black, place }) => `${game}: ${white} – ${black} (${place})`).join(", "))
}

/** The tab of the farm's test matches: each with its score, and the way to its own page. */
export async function tests() {
  const told = await get("tests")
  if (!told?.length) return [empty(t("tests.none"))]
  /** @type {Heading[]} */
  const head = [[t("tests.match")], [t("tests.engines")], [t("match.played"), true], ["+ = −"], [t("match.elo"), true], [t("match.pairs")], ["LLR", true], [t("tests.state")]]
  return [table(t("tab.tests"), head, told.map((one) => h("tr", { "data-test": one.season },
    h("th", { scope: "row" }, h("a", { href: `#/${encodeURIComponent(one.season)}` }, one.name)),
    h("td", {}, one.engines.join(" – "), one.tuned?.length ? ` (SPSA: ${one.tuned.slice(0, 3).join(", ")}${one.tuned.length > 3 ? " …" : ""})` : "", " ", h("small", { class: "quiet" }, one.time_control)),
    h("td", { class: "num" }, `${one.games.played}/${one.games.total}`),
    h("td", {}, one.score ? `${one.score.wins} ${one.score.draws} ${one.score.losses}` : "–"),
    h("td", { class: "num", "data-x": "elo" }, one.score ? elo(one.score.elo, one.score.elo_error) : "–"),
    h("td", {}, one.score?.pentanomial.some(Boolean) ? one.score.pentanomial.join(" ") : "–"),
    h("td", { class: "num" }, one.sprt ? `${number(one.sprt.llr, 2)} (${number(one.sprt.lower, 2)} … ${number(one.sprt.upper, 2)})` : "–"),
    h("td", {}, one.status === "running" ? t("tests.open", { count: one.running }) : t("tests.over", { reason: one.reason })))))]
}

/**
 * What the sequential test asks, and where it stands.
 * @param {Api.SequentialTest} sprt
 */
export function said(sprt) {
  const where = t("match.sprt", { llr: number(sprt.llr, 2), lower: number(sprt.lower, 2), upper: number(sprt.upper, 2), elo0: sprt.elo0, elo1: sprt.elo1, model: sprt.model })
  return sprt.accepted ? `${where} ${t("match.accepted", { name: sprt.accepted })}` : where
}

/** @param {readonly Api.MatchEngine[]} engines */
function ranking(engines) {
  /** @type {Heading[]} */
  const head = [["#", true], [t("match.engine")], [t("match.elo"), true], [t("match.played"), true], ["+", true], ["=", true], ["−", true], [t("match.points"), true], ["%", true], [t("match.draws"), true], ["LOS", true], [t("match.pairs")], [t("match.faults")]]
  return table(t("tab.test"), head, engines.map((one) => h("tr", { "data-engine": one.name },
    h("td", { class: "num" }, one.rank), h("th", { scope: "row" }, one.name), h("td", { class: "num", "data-x": "elo" }, elo(one.elo, one.elo_error)),
    [one.games, one.wins, one.draws, one.losses].map((count) => h("td", { class: "num" }, count)), h("td", { class: "num" }, format.points(one.points)),
    [one.score, one.draw_ratio, one.los].map((share) => h("td", { class: "num" }, share === null ? "–" : number(100 * share, 1))),
    h("td", {}, one.pentanomial.some(Boolean) ? one.pentanomial.join(" ") : "–"), h("td", {}, Object.entries(one.faults).map(([kind, count]) => `${count} ${kind}`).join(", ")))))
}

/**
 * Pairs by what they brought the first engine, as columns.
 * @param {string} first
 * @param {readonly number[]} pairs
 */
function pentanomial(first, pairs) {
  const most = Math.max(...pairs)
  return h("figure", { class: "pentanomial", role: "img", "aria-label": t("match.pentanomial", { name: first, pairs: pairs.join(", ") }) },
    pairs.map((count, points) => {
      const bar = h("span", { class: "bar" })
      bar.style.height = `${(100 * count) / most}%`
      return h("div", { class: `points${points}`, "data-key": points }, h("small", {}, count), h("div", { class: "room" }, bar), h("small", { class: "quiet" }, PAIRS[points]))
    }))
}

/**
 * The points of a line within the graph's frame; what is not known leaves a gap.
 * @param {readonly number[]} games
 * @param {readonly (?number)[]} values
 * @param {[number, number]} range   the least and the greatest value that is shown
 * @returns {string}   the path of an SVG
 */
export function path(games, values, [low, high]) {
  const last = games.at(-1) ?? 1
  let pen = "M"
  return games.map((game, at) => {
    const value = values[at]
    if (value === null) { pen = "M"; return "" }
    const x = LEFT + ((WIDTH - LEFT) * game) / last
    const y = EDGE / 2 + (HEIGHT - EDGE) * (1 - (Math.max(low, Math.min(high, value)) - low) / (high - low))
    const step = `${pen}${Math.round(x * 10) / 10} ${Math.round(y * 10) / 10}`
    pen = "L"
    return step
  }).join("")
}

/**
 * @param {string} tag
 * @param {Readonly<Record<string, string | number>>} attributes
 * @param {...(Node | string)} children
 */
function svg(tag, attributes, ...children) {
  const element = document.createElementNS(NAMESPACE, tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value))
  element.append(...children)
  return element
}

/**
 * LLR between its bounds over the games; without a test Elo between its errors.
 * @param {Api.MatchHistory} history
 * @param {?Api.SequentialTest} sprt
 */
function graph({ games, llr, elo: values, error }, sprt) {
  const shown = sprt ? llr : values
  const known = shown.filter((value) => value !== null)
  if (!known.length) return null
  const spread = Math.max(...known.map(Math.abs), 1)
  const bounds = sprt ? [sprt.lower, 0, sprt.upper] : [-Math.ceil(spread), 0, Math.ceil(spread)]
  /** @type {[number, number]} */
  const range = sprt ? [Math.min(sprt.lower * 1.1, ...known), Math.max(sprt.upper * 1.1, ...known)] : [bounds[0], bounds[2]]
  const last = games.at(-1) ?? 0
  /** @param {number} value */
  const level = (value) => path([0, last], [value, value], range)
  /** @param {number} value */
  const height = (value) => Number(/ ([\d.]+)$/.exec(level(value))?.[1])
  const lines = bounds.map((value) => svg("path", { class: value ? "bound" : "zero", d: level(value) }))
  const labels = bounds.map((value) => svg("text", { x: LEFT - 6, y: height(value) + 4, "text-anchor": "end" }, number(value, sprt ? 2 : 0)))
  const around = sprt ? [] : [-1, 1].map((sign) => svg("path", { class: "around", d: path(games, values.map((value, at) => (value === null || error[at] === null ? null : value + sign * error[at])), range) }))
  const title = t(sprt ? "match.graph.llr" : "match.graph.elo", { games: last, value: number(known.at(-1) ?? 0, 2) })
  return h("figure", { class: "history" }, h("figcaption", { class: "quiet" }, title),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title }, ...lines, ...around, svg("path", { class: "line", d: path(games, shown, range) }), ...labels,
      svg("text", { x: WIDTH, y: HEIGHT - 2, "text-anchor": "end" }, number(last))))
}
