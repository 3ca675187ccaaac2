// @ts-check
// A game's result as a link to the game.

import { badge } from "./badges.js"
import { h } from "./dom.js"
import { t } from "./texts.js"

/** @typedef {"1" | "0" | "="} Sign   a result, as an engine sees it */

const SHOWN = { 1: "1", 0: "0", "=": "½" }
const WORD = { 1: "result.won", 0: "result.lost", "=": "result.draw" }
const CLASS = { 1: "r1", 0: "r0", "=": "rd" }

/**
 * @param {string} season
 * @param {string} game
 */
export const gameLink = (season, game) => `#/${season}/game/${encodeURIComponent(game)}`
/**
 * @param {string} season
 * @param {string} name
 * @param {Attributes} more
 */
export const engineLink = (season, name, more = {}) => h("a", { class: "engine", href: `#/${season}/engine/${encodeURIComponent(name)}`, ...more }, badge(name), name)

/**
 * Whether an engine left the event: its games count for nobody.
 * @param {Api.Row} row
 */
export const isOut = (row) => row.decided_by === "excluded"

/**
 * @param {string} season
 * @param {Sign} sign
 * @param {string} game
 * @param {string} other   the opponent
 * @param {boolean} annulled
 */
export const resultLink = (season, sign, game, other, annulled = false) =>
  h("a", { class: CLASS[sign], href: gameLink(season, game), "aria-label": t("result.link", { sign: SHOWN[sign], result: t(WORD[sign]) + (annulled ? `, ${t("annulled")}` : ""), game, other }) }, SHOWN[sign])
