// @ts-check
// Rating list and forecast, as the server computes them after each game.

import { empty, h, table } from "./dom.js"
import { get } from "./feed.js"
import * as format from "./format.js"
import { number, said, t } from "./texts.js"

const FAVOURITES = 8 // of the title: more are hardly any
/** @type {Readonly<Record<string, string>>} */
const BOUND = { ">": "ratings.won", "<": "ratings.lost" }

/**
 * @param {string} name
 * @param {Child} text
 */
const cell = (name, text) => h("td", { class: "num", "data-x": name }, text)

// -- the rating list --------------------------------------------------------------------

export async function ratings() {
  const told = await get("ratings")
  const title = h("h3", {}, t("tab.ratings"))
  if (!told || told.absent) return [title, empty(told?.absent ? said(told.absent) : t("ratings.none"))]
  /** @type {Heading[]} */
  const head = [["#", true], [t("engine")], [t("rating"), true], ["±", true], [t("points"), true], [t("games"), true], [t("score"), true], [t("ratings.standing")]]
  return [title, table(t("tab.ratings"), head, told.ratings.map(rated), { class: "ratings" }),
    h("p", { class: "quiet note" }, [t("ratings.basis", { count: told.games, moment: format.moment(told.made_ms) }), scale(told), ...figures(told), t("ratings.terms")].join(" "))]
}

/**
 * Say where the list lies: on the scale of the rosters, as far as they rate its engines.
 * @param {Api.Ratings} ratings
 */
function scale({ average, rosters }) {
  return rosters ? t("ratings.scale", { count: rosters }) : t("ratings.unscaled", { average: number(average ?? 0) })
}

/**
 * Say what White's advantage and the draw rate are, where enough games tell them.
 * @param {Api.Ratings} ratings
 */
function figures({ white_advantage: white = null, draw_rate: draws = null }) {
  if (white === null && draws === null) return [t("ratings.few")]
  const worth = white === null ? t("ratings.white.unsure") : t("ratings.white", { count: Math.round(white), points: number(white, 0).replace("-", "−") })
  return [worth, draws === null ? "" : t("ratings.draws", { percent: format.percent(100 * draws) })].filter(Boolean)
}

/** @param {Api.Rated} row */
function rated(row) {
  return h("tr", { "data-engine": row.engine, class: row.provisional ? "provisional" : null },
    cell("rank", row.rank ?? "–"), h("th", { scope: "row" }, row.engine),
    cell("rating", row.rating === null ? "–" : `${row.bound} ${number(row.rating, 1)}`.trim()),
    cell("error", row.error ? number(row.error, 1) : "–"),
    cell("points", format.points(row.points)), cell("played", row.played), cell("score", format.percent(row.percent, 1)),
    h("td", { "data-x": "standing" }, row.provisional ? h("span", { class: "tag" }, t("ratings.provisional")) : null, BOUND[row.bound] ? ` ${t(BOUND[row.bound])}` : null))
}

// -- the forecast -----------------------------------------------------------------------

/** @param {{season: Api.Season, event: string}} context */
export async function forecast({ season, event: id }) {
  const told = await get(`seasons/${season.season}/forecast`)
  if (!told || told.absent) return [h("h3", {}, t("tab.forecast")), empty(told?.absent ? said(told.absent) : t("forecast.none"))]
  const event = told.events?.find((one) => one.event === id)
  return [
    h("h3", {}, t("forecast.of", { name: event?.name ?? season.name })),
    event?.engines.length ? chances(event) : empty(t("forecast.nobody")),
    h("h3", {}, t("forecast.champion")), favourites(told.champion ?? []),
    h("h3", {}, t("forecast.end")), end(told), basis(told),
  ]
}

/** @param {Api.EventForecast} event */
function chances(event) {
  const { engines, promotes, relegates } = event
  const uncertain = engines.some((line) => line.plays < 1)
  /** @type {Heading[]} */
  const head = [[t("engine")], ...(uncertain ? [[t("forecast.plays"), true]] : []), ...engines[0].places.map((_, at) => [String(at + 1), true]),
    ...promotes.map(({ name }) => [`→ ${name}`, true]), ...(relegates ? [[t("forecast.relegated"), true]] : [])]
  const rows = engines.map((line) => h("tr", { "data-engine": line.engine }, h("th", { scope: "row" }, line.name),
    uncertain ? chance("plays", line.plays) : null,
    line.places.map((value, at) => chance(`place-${at + 1}`, value)),
    promotes.map(({ to }) => chance(`to-${to}`, line.promoted[to])),
    relegates ? chance("relegated", line.relegated) : null))
  return table(t("forecast.places", { name: event.name }), head, rows, { class: "chances" })
}

/**
 * @param {string} name
 * @param {number} value
 */
function chance(name, value) {
  const made = h("td", { class: "num chance", "data-x": name }, format.chance(value))
  made.style.setProperty("--chance", String(value))
  return made
}

/** @param {readonly Api.Chance[]} lines */
function favourites(lines) {
  const told = format.rivals(lines.map((line) => line.chance))
  return table(t("forecast.title"), [[t("engine")], [t("forecast.chance"), true], []], lines.slice(0, FAVOURITES).map((line, at) => {
    const bar = h("span", { class: "bar" })
    bar.style.width = `${100 * line.chance}%`
    return h("tr", { "data-champion": line.engine }, h("th", { scope: "row" }, line.name),
      cell("title", told[at]), h("td", { class: "track", "aria-hidden": "true" }, bar))
  }), { class: "favourites" })
}

/** @param {Api.Forecast} forecast */
function end({ end_ms: end }) {
  return h("p", { "data-x": "end" }, t("forecast.when", { expected: format.moment(end?.expected), early: format.moment(end?.early), late: format.moment(end?.late) }))
}

/** @param {Api.Forecast} forecast */
function basis({ made_ms: made, games, runs, seed, unrated = [] }) {
  const without = unrated.length ? t("forecast.unrated", { names: unrated.join(", ") }) : ""
  return h("p", { class: "quiet note", "data-x": "basis" }, [t("forecast.made", { moment: format.moment(made), count: games, runs, seed: String(seed) }), without, t("forecast.empty")].filter(Boolean).join(" "))
}
