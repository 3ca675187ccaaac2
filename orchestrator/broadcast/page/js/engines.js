// An engine's page: its events, and its results against each opponent of the season.

import { empty, h, table } from "./dom.js"
import { get } from "./feed.js"
import * as format from "./format.js"
import { total, versus } from "./records.js"
import { engineLink, resultLink } from "./results.js"

export async function engines({ season, engine: chosen }) {
  const names = [...new Set(season.events.flatMap(({ entrants }) => entrants))].sort((one, other) => one.localeCompare(other))
  const title = h("h3", {}, "Engine")
  if (!names.length) return [title, empty("Nobody has entered an event yet.")]
  if (chosen && !names.includes(chosen)) return [title, choice(season, names, ""), empty(`No engine ${chosen} has entered an event of this season.`)]
  const name = chosen || names[0]
  const entered = season.events.filter(({ entrants }) => entrants.includes(name))
  const [ratings, ...schedules] = await Promise.all([get("ratings"), ...entered.map(({ event }) => get(`seasons/${season.season}/events/${event}/schedule`))])
  const rating = ratings?.ratings?.find((row) => row.engine === name)
  const byEvent = entered.map(({ event, name: title }, at) => ({ event, title, ...total(versus(schedules[at] ?? [], name)) }))
  const records = versus(schedules.flatMap((rows) => rows ?? []), name)
  return [title, choice(season, names, name),
    h("p", {}, h("strong", {}, name), `: ${score(total(records))}`, rating?.rating ? `, rating ${rating.rating.toFixed(1)}${rating.error ? ` ± ${rating.error.toFixed(1)}` : ""}` : ""),
    table("Results by event", [["Event"], ...COUNTS], byEvent.map((one) => h("tr", { "data-event": one.event }, h("th", { scope: "row" }, h("a", { href: `#/${season.season}/event/${one.event}` }, one.title)), counts(one))), { "data-key": "events" }),
    records.length ? h("h3", { "data-key": "head" }, "Head to head") : empty("It has not finished a game yet."),
    records.length ? table("Head to head", [["Opponent"], ...COUNTS, ["Games in their order"]], records.map((one) => opponent(season.season, one)), { "data-key": "opponents" }) : null]
}

const COUNTS = [["Points", true], ["Games", true], ["+", true], ["=", true], ["−", true]]
const counts = ({ points, played, wins, draws, losses }) => [format.points(points), played, wins, draws, losses].map((value) => h("td", { class: "num" }, value))
const score = ({ points, played }) => `${format.points(points)} of ${played} points${played ? ` (${((100 * points) / played).toFixed(1)} %)` : ""}`

function opponent(season, record) {
  return h("tr", { "data-engine": record.opponent }, h("th", { scope: "row" }, engineLink(season, record.opponent)), counts(record),
    h("td", { class: "text" }, record.games.map(({ game, sign, annulled }) => h("span", { class: annulled ? "annulled" : null }, resultLink(season, sign, game, record.opponent, annulled)))))
}

function choice(season, names, name) {
  const go = ({ currentTarget }) => { location.hash = `#/${season.season}/engine/${encodeURIComponent(currentTarget.value)}` }
  return h("div", { class: "filters", "data-key": "engine" }, h("label", {}, "Engine", h("select", { onchange: go },
    name ? null : h("option", { value: "" }, "choose"), names.map((one) => h("option", { value: one, selected: one === name }, one)))))
}
