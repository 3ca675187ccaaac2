// @ts-check
// What is said of the season as a whole: its end, what it waits for, what comes next.

import * as format from "./format.js"
import { t } from "./texts.js"

/**
 * Whether it is a match of two or more engines (`farm match`, `farm match test`), not a season.
 * @param {Pick<Api.Season, "kind">} season
 */
export const isMatch = ({ kind }) => kind === "match"

const CALM_MS = 4000 // between two games nothing is said for so long: the next one begins by itself
const AT_ONCE = new Set(["hold", "pause", "organizers"])

/** @typedef {Pick<Api.Season, "status" | "waits">} Standing */

/**
 * Say that the season is over, or what keeps its next game from being played; "" while all is well.
 * @param {Api.Season} season
 * @param {number} now
 * @returns {string}
 */
export function words(season, now) {
  if (isMatch(season)) return season.status === "finished" ? sentence("match.over", season.reason) : ""
  if (season.status === "finished") return t("notice.over", { champion: season.champion })
  if (season.status === "abandoned") return sentence("notice.abandoned", season.reason)
  const waits = standing(season, now)
  if (waits.length) return [...waits.map((one) => wait(season, one, now)), next(season, waits)].filter(Boolean).join(" ")
  return season.decisions.length ? sentence("notice.asked", season.decisions.map(({ about }) => about).join("; ")) : ""
}

/**
 * Return whether no game is in flight, nor about to be: the one that is shown beside a replay is then the last.
 * @param {Standing} season
 * @param {number} now
 */
export const resting = (season, now) => over(season) || standing(season, now).length > 0

/** @type {(season: Standing, now: number) => Api.Wait[]} */
const standing = ({ waits = [] }, now) => waits.filter((one) => AT_ONCE.has(one.for) || now - one.since_ms > CALM_MS)

/**
 * Return whether what is said is no trouble: the season's end, or a break that ends by itself.
 * @param {Standing} season
 */
export const calm = ({ status, waits = [] }) => status === "finished" || (waits.length > 0 && waits.every((one) => one.for === "gate"))

/** @param {Pick<Api.Season, "status">} season */
export const over = (season) => season.status === "finished" || season.status === "abandoned"

/**
 * @param {Api.Season} season
 * @param {Api.Wait} one
 * @param {number} now
 */
function wait(season, one, now) {
  switch (one.for) {
    case "hold": return sentence("notice.hold", one.reason)
    case "pause": return sentence("notice.pause", one.reason)
    case "verdict": return t("notice.verdict", { game: one.game })
    case "hall": return t("notice.hall", { ...coming(season.next), since: format.moment(one.since_ms) })
    case "organizers": return sentence("notice.organizers", one.reason)
    case "host": return sentence("notice.host", one.reason)
    case "gate": return gate(season, one, now)
  }
  return ""
}

/**
 * @param {Api.Season} season
 * @param {Api.Wait} wait
 * @param {number} now
 */
function gate(season, { event, until_ms }, now) {
  const name = season.events.find((one) => one.event === event)?.name ?? event
  const players = season.next?.event === event ? season.next.engines.join(" – ") : ""
  const when = until_ms === null ? "organizers" : until_ms > now ? "about" : "now"
  return t(`notice.gate.${when}`, { name: players ? `${name}: ${players},` : name, moment: format.moment(until_ms) })
}

/**
 * Name the game that comes next, unless it has been named by what it waits for.
 * @param {Api.Season} season
 * @param {readonly Api.Wait[]} waits
 */
function next(season, waits) {
  return season.next?.game && !waits.some((one) => one.for === "hall") ? t("notice.next", coming(season.next)) : ""
}

/** @param {?Api.Next} next */
const coming = (next) => ({ players: next?.engines.join(" – "), event: next?.event_name, round: next?.round })

/**
 * @param {string} key
 * @param {string} [why]
 */
const sentence = (key, why) => `${t(key)}${why ? `: ${why.replace(/[\s.]+$/, "")}` : ""}.`
