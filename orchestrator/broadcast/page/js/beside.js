// @ts-check
// What stands beside the game: the event's standings, or the matches of its round, and what comes next.

import { badge } from "./badges.js"
import { h, patch } from "./dom.js"
import { get } from "./feed.js"
import * as format from "./format.js"
import { isMatch } from "./notice.js"
import { gameLink, isOut } from "./results.js"
import { t } from "./texts.js"
import { later } from "./version.js"

/**
 * Draw the card of an event, unless another one is shown by the time it is here.
 * @param {HTMLElement} element
 * @param {{season: Api.Season, event: string, live: ?Api.Game}} context
 * @param {Current} current
 */
export async function drawBeside(element, { season, event, live }, current) {
  const told = await get(`seasons/${season.season}/events/${event}`)
  const above = isMatch(season) ? await (await later()).summary(season) : null
  if (!current()) return
  const playing = live?.event === event && live.status === "running" ? live : null
  const matches = told?.bracket?.matches ?? []
  patch(element,
    h("h3", {}, told?.name ?? "", told ? h("small", { class: "quiet" }, ` ${t(told.final ? "beside.final" : matches.length ? "beside.matches" : "beside.standings")}`) : null),
    above,
    matches.length ? list(matches, playing) : told?.rows.length ? table(told.rows, playing) : h("p", { class: "quiet" }, t("event.waits")),
    next(season), results(season.season, told?.rows ?? [], told?.last ?? []))
}

/**
 * Say what was played last; the table tells no colours, so words say who won. An annulled game is called so.
 * @param {string} season
 * @param {readonly Api.Row[]} rows
 * @param {readonly string[]} order Its games, the last one first.
 */
function results(season, rows, order) {
  const all = rows.flatMap((row, at) => row.cells.slice(0, at).flatMap((cell, other) => (cell?.games ?? []).map((game, k) =>
    ({ game, sign: cell?.text[k], name: row.name, other: rows[other].name, annulled: isOut(row) || isOut(rows[other]) }))))
  const last = order.flatMap((ended) => all.filter(({ game }) => game === ended))
  if (!last.length) return null
  return h("ol", { class: "results" }, last.map(({ game, sign, name, other, annulled }, at) => {
    const [first, second] = sign === "0" ? [other, name] : [name, other]
    const said = t(sign === "=" ? "beside.drew" : "beside.beat", { name: first, other: second })
    return h("li", { class: annulled ? "annulled" : null }, at ? null : h("h4", {}, t("beside.results")), h("a", { href: gameLink(season, game) }, said, annulled ? ` (${t("annulled")})` : null))
  }))
}

/** @param {string} side */
const mark = (side) => h("span", { class: `plays ${side}`, title: t(`plays.${side}`) })
/** @type {(name: string | undefined, playing: ?Api.Game) => string} */
const side = (name, playing) => (playing?.white.name === name ? "white" : playing?.black.name === name ? "black" : "")

/**
 * @param {readonly Api.Row[]} rows
 * @param {?Api.Game} playing
 */
function table(rows, playing) {
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("beside.table") }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", { class: "num" }, "#"), h("th", {}, t("engine")), h("th", { class: "num" }, t("points")), h("th", { class: "num" }, t("games")))),
    h("tbody", {}, rows.map((row) => {
      const now = side(row.name, playing)
      return h("tr", { "data-engine": row.engine, class: now ? "now" : null },
        h("td", { class: "num" }, row.rank), h("th", { scope: "row" }, badge(row.name), row.name, now ? mark(now) : null),
        h("td", { class: "num points" }, format.points(row.points)), h("td", { class: "num" }, row.games))
    }))))
}

/**
 * @param {readonly Api.Match[]} matches
 * @param {?Api.Game} playing
 */
function list(matches, playing) {
  /** @type {(who: ?Api.BracketSide, one: Api.Match) => string} */
  const score = (who, one) => (who && one.games.length ? format.points(who.score) : "")
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("beside.list") }, h("table", { class: "pairs" }, h("tbody", {}, matches.map((one) => {
    const [upper, lower] = one.sides
    /** @param {?Api.BracketSide} who */
    const name = (who) => h("td", { class: who?.winner ? "won" : null }, badge(who?.name), who ? who.name : t("bye"), side(who?.name, playing) ? mark(side(who?.name, playing)) : null)
    const now = playing && upper && lower && side(upper.name, playing) && side(lower.name, playing)
    return h("tr", { "data-match": one.match, class: now ? "now" : null }, name(upper), h("td", { class: "num points" }, score(upper, one)), h("td", { class: "num points" }, score(lower, one)), name(lower))
  }))))
}

/**
 * Say who plays next, so that nobody has to look for it in the schedule.
 * @param {Api.Season} season
 */
function next({ next: coming }) {
  return coming?.engines ? h("p", { class: "next" }, h("span", { class: "quiet" }, `${t("next")} `), coming.engines.join(" – ")) : null
}
