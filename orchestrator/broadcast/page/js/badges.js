// @ts-check
// What stands beside an engine's name: its logo, and its country's flag, where the roster has them.

import { h } from "./dom.js"

const ABOVE = document.documentElement.dataset.root ?? ""
/** @type {Readonly<Record<string, Api.Badge>>} */
let known = {}

/** Whether the fonts here have flags: without them two letters stand for one, or two empty boxes. */
const FLAGS = (() => {
  const pen = document.createElement("canvas").getContext("2d")
  /** @type {(text: string) => number} */
  const width = (text) => pen?.measureText(text).width ?? 0
  return width("\u{1f1f3}\u{1f1f4}") < 1.5 * width("\u{1f1f3}")
})()

/**
 * Take the badges of a season: logo and flag by an engine's name.
 * @param {?Api.Season} season
 */
export function know(season) { known = season?.badges ?? {} }

/**
 * What stands before an engine's name, null for most; the name says it all for who does not see it.
 * @param {string} [name]
 */
export function badge(name = "") {
  if (!Object.hasOwn(known, name)) return null
  const { logo, flag } = known[name]
  if (!logo && !(flag && FLAGS)) return null
  return h("span", { class: "badge", "aria-hidden": "true" }, logo ? h("img", { src: ABOVE + logo, alt: "", loading: "lazy", decoding: "async" }) : null, flag && FLAGS ? h("span", { class: "flag" }, flag) : null)
}
