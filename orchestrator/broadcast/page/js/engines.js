// @ts-check
// An engine's page: its events, and its results against each opponent of the season.

import { empty, h, table } from "./dom.js"
import { get } from "./feed.js"
import * as format from "./format.js"
import { performance, total, versus } from "./records.js"
import { engineLink, resultLink } from "./results.js"
import { inOrder, number, parts, t } from "./texts.js"
import { make } from "./wires.js"

/** @param {{season: Api.Season, engine: string}} context */
export async function engines({ season, engine: chosen }) {
  const names = [...new Set(season.events.flatMap(({ entrants }) => entrants))].sort(inOrder)
  const title = h("h3", {}, t("engine"))
  if (!names.length) return [title, empty(t("engines.none"))]
  if (chosen && !names.includes(chosen)) return [title, choice(season, names, ""), empty(t("engines.unknown", { name: chosen }))]
  const name = chosen || names[0]
  const entered = season.events.filter(({ entrants }) => entrants.includes(name))
  const [ratings, tables, schedules] = await Promise.all([get("ratings"),
    Promise.all(entered.map(({ event }) => get(`seasons/${season.season}/events/${event}`))), Promise.all(entered.map(({ event }) => get(`seasons/${season.season}/events/${event}/schedule`)))])
  const rating = ratings?.ratings?.find((row) => row.engine === name)
  const byEvent = entered.map(({ event, name: title }, at) => ({ event, title, row: tables[at]?.rows.find((row) => row.name === name), ...total(versus(schedules[at] ?? [], name)) }))
  const games = schedules.flatMap((rows) => rows ?? [])
  const records = versus(games, name)
  const own = new Map(tables.flatMap((told) => told?.rows ?? []).flatMap((row) => (row.rating ? [[row.name, row.rating]] : [])))
  return [title, choice(season, names, name),
    h("p", {}, parts(rating?.rating ? "engines.rated" : "engines.score", { name: h("strong", {}, name), score: score(total(records)), rating: rated(rating) })),
    table(t("engines.events"), [[t("event")], ...counted(), [t("engines.crashes"), true], [t("engines.version")]], byEvent.map((one) => h("tr", { "data-event": one.event },
      h("th", { scope: "row" }, h("a", { href: `#/${season.season}/event/${one.event}` }, one.title)), counts(one), h("td", { class: "num", "data-x": "crashes" }, one.row?.crashes ?? ""), h("td", { "data-x": "version" }, one.row?.version ?? ""))), { "data-key": "events" }),
    ...curve(performance(games, own, name), own.get(name)),
    records.length ? h("h3", { "data-key": "head" }, t("engines.head")) : empty(t("engines.waits")),
    records.length ? table(t("engines.head"), [[t("opponent")], ...counted(), [t("engines.games")]], records.map((one) => opponent(season.season, one)), { "data-key": "opponents" }) : null]
}

const [WIDE, HIGH, EDGE] = [600, 120, 4] // of a drawing that is scaled to its place

/**
 * Draw how an engine has done, beside the rating that it came with.
 * @param {readonly {game: number, rating: number}[]} told
 * @param {number | undefined} own
 */
function curve(told, own) {
  const [first, last] = [told[0], told.at(-1)]
  if (!first || !last || first === last) return []
  const all = [...told.map(({ rating }) => rating), ...(own === undefined ? [] : [own])]
  const [low, high] = [Math.min(...all), Math.max(...all)]
  /** @param {number} rating */
  const y = (rating) => (HIGH - EDGE - ((rating - low) / (high - low || 1)) * (HIGH - 2 * EDGE)).toFixed(1)
  /** @param {number} game */
  const x = (game) => (((game - first.game) / (last.game - first.game)) * WIDE).toFixed(1)
  const drawing = make("svg", { class: "curve", viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" })
  if (own !== undefined) drawing.append(make("path", { class: "own", d: `M0 ${y(own)}H${WIDE}` }))
  drawing.append(make("path", { d: `M${told.map(({ game, rating }) => `${x(game)} ${y(rating)}`).join("L")}` }))
  const said = t("engines.curve.text", { first: number(first.rating, 0), from: first.game, last: number(last.rating, 0), to: last.game })
  return [h("h3", { "data-key": "curve" }, t("engines.curve")),
    h("div", { class: "curve", "data-key": "drawing" }, h("span", { class: "quiet" }, number(high, 0)), drawing, h("span", { class: "quiet" }, number(low, 0))),
    h("p", { class: "quiet note", "data-key": "said" }, said, own === undefined ? "" : ` (${t("engines.curve.own", { rating: number(own, 0) })})`)]
}

/** @returns {Heading[]} */
const counted = () => [[t("points"), true], [t("games"), true], ["+", true], ["=", true], ["−", true]]
/** @param {Api.Rated | undefined} row */
const rated = (row) => (row?.rating ? `${number(row.rating, 1)}${row.error ? ` ± ${number(row.error, 1)}` : ""}` : "")
/** @param {import("./records.js").Score} score */
const counts = ({ points, played, wins, draws, losses }) => [format.points(points), played, wins, draws, losses].map((value) => h("td", { class: "num" }, value))
/** @param {{points: number, played: number}} score */
const score = ({ points, played }) => t("engines.points", { points: format.points(points), count: played, percent: played ? ` (${format.percent((100 * points) / played, 1)})` : "" })

/**
 * @param {string} season
 * @param {import("./records.js").Record} record
 */
function opponent(season, record) {
  return h("tr", { "data-engine": record.opponent }, h("th", { scope: "row" }, engineLink(season, record.opponent)), counts(record),
    h("td", { class: "text" }, record.games.map(({ game, sign, annulled }) => h("span", { class: annulled ? "annulled" : null }, resultLink(season, sign, game, record.opponent, annulled)))))
}

/**
 * @param {Api.Season} season
 * @param {readonly string[]} names
 * @param {string} name
 */
function choice(season, names, name) {
  /** @param {{currentTarget: HTMLSelectElement}} event */
  const go = ({ currentTarget }) => { location.hash = `#/${season.season}/engine/${encodeURIComponent(currentTarget.value)}` }
  return h("div", { class: "filters", "data-key": "engine" }, h("label", {}, t("engine"), h("select", { onchange: go },
    name ? null : h("option", { value: "" }, t("choose")), names.map((one) => h("option", { value: one, selected: one === name }, one)))))
}
