// @ts-check
// An engine's page: its events, and its results against each opponent of the season.

import { empty, h, table } from "./dom.js"
import { get } from "./feed.js"
import * as format from "./format.js"
import { total, versus } from "./records.js"
import { engineLink, resultLink } from "./results.js"
import { inOrder, number, parts, t } from "./texts.js"

/** @param {{season: Api.Season, engine: string}} context */
export async function engines({ season, engine: chosen }) {
  const names = [...new Set(season.events.flatMap(({ entrants }) => entrants))].sort(inOrder)
  const title = h("h3", {}, t("engine"))
  if (!names.length) return [title, empty(t("engines.none"))]
  if (chosen && !names.includes(chosen)) return [title, choice(season, names, ""), empty(t("engines.unknown", { name: chosen }))]
  const name = chosen || names[0]
  const entered = season.events.filter(({ entrants }) => entrants.includes(name))
  const [ratings, ...schedules] = await Promise.all([get("ratings"), ...entered.map(({ event }) => get(`seasons/${season.season}/events/${event}/schedule`))])
  const rating = ratings?.ratings?.find((row) => row.engine === name)
  const byEvent = entered.map(({ event, name: title }, at) => ({ event, title, ...total(versus(schedules[at] ?? [], name)) }))
  const records = versus(schedules.flatMap((rows) => rows ?? []), name)
  return [title, choice(season, names, name),
    h("p", {}, parts(rating?.rating ? "engines.rated" : "engines.score", { name: h("strong", {}, name), score: score(total(records)), rating: rated(rating) })),
    table(t("engines.events"), [[t("event")], ...counted()], byEvent.map((one) => h("tr", { "data-event": one.event }, h("th", { scope: "row" }, h("a", { href: `#/${season.season}/event/${one.event}` }, one.title)), counts(one))), { "data-key": "events" }),
    records.length ? h("h3", { "data-key": "head" }, t("engines.head")) : empty(t("engines.waits")),
    records.length ? table(t("engines.head"), [[t("opponent")], ...counted(), [t("engines.games")]], records.map((one) => opponent(season.season, one)), { "data-key": "opponents" }) : null]
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
