// @ts-check
// Numbers and times as people read them.

import { date, number, t } from "./texts.js"

const NONE = "–"

/** @typedef {?number | undefined} Known   a number that may not be known */

/**
 * A clock: h:mm:ss, or tenths below a minute.
 * @param {Known} ms
 */
export function clock(ms) {
  if (ms === null || ms === undefined) return `${NONE}:${NONE}`
  const left = Math.max(0, ms)
  if (left < 60000) return number(Math.floor(left / 100) / 10, 1)
  const seconds = Math.floor(left / 1000)
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  const rest = String(seconds % 60).padStart(2, "0")
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`
}

/** @param {Known} ms */
export function moveTime(ms) {
  if (ms === null || ms === undefined) return NONE
  return ms < 10000 ? t("unit.s", { n: number(ms / 1000, 2) }) : clock(ms)
}

/**
 * A count: 1.2M, 45k.
 * @param {Known} value
 */
export function count(value) {
  if (value === null || value === undefined) return NONE
  for (const [size, unit] of /** @type {const} */ ([[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])) {
    if (value >= size) return number(value / size, value >= 100 * size ? 0 : 1) + unit
  }
  return number(value)
}

/** @param {Known} nps */
export const speed = (nps) => (nps === null || nps === undefined ? NONE : `${count(nps)}n/s`)

/** @param {?string | undefined} text */
export function evaluation(text) {
  if (!text) return NONE
  return text.startsWith("-") || text === "0.00" ? text : `+${text}`
}

/** @type {Intl.DateTimeFormatOptions} */
const DATE = { dateStyle: "medium", timeStyle: "short" }
/** @type {Intl.DateTimeFormatOptions} */
const TIME = { timeStyle: "short" }

/** @param {Known} ms */
export function moment(ms) {
  if (!ms) return NONE
  const when = new Date(ms)
  return when.toDateString() === new Date().toDateString() ? date(when, TIME) : date(when, DATE)
}

/** @param {Known} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return NONE
  if (seconds < 90) return t("unit.s", { n: Math.round(seconds) })
  if (seconds < 5400) return t("unit.min", { n: Math.round(seconds / 60) })
  if (seconds < 172800) return t("unit.h", { n: number(seconds / 3600, 1) })
  return t("unit.d", { n: number(seconds / 86400, 1) })
}

/** @param {number} value */
export const points = (value) => number(Math.round(value * 100) / 100)

/**
 * A time control of PGN (seconds+seconds) as people say it.
 * @param {string} text
 */
export function control(text) {
  const found = /^(\d+)\+([\d.]+)$/.exec(text)
  if (!found) return text
  const [base, increment] = [Number(found[1]), Number(found[2])]
  const first = base < 60 ? t("unit.s", { n: base }) : base % 60 ? clock(base * 1000) : t("unit.min", { n: base / 60 })
  return `${first} + ${t("unit.s", { n: increment })}`
}

/**
 * @param {number} value
 * @param {number} digits
 */
export const percent = (value, digits = 0) => t("unit.percent", { n: number(value, digits) })

/**
 * A chance from 0 to 1: what may still happen, or fail to, is never told as 0 or 100 %.
 * @param {Known} value
 */
export function chance(value) {
  if (!value) return ""
  if (value === 1) return percent(100)
  return value < 0.01 ? `<${percent(1)}` : value > 0.99 ? `>${percent(99)}` : percent(Math.round(100 * value))
}

/**
 * What parts are of their whole, in per cent that add up to 100: the largest remainders go up.
 * @param {readonly number[]} parts
 */
export function shares(parts) {
  /** @type {(values: readonly number[]) => number} */
  const sum = (values) => values.reduce((total, value) => total + value, 0)
  const exact = parts.map((part) => Number(((100 * part) / (sum(parts) || 1)).toFixed(6))) // equal halves stay equal
  const told = exact.map(Math.floor)
  /** @type {(at: number) => number} */
  const remainder = (at) => exact[at] - told[at]
  const order = [...told.keys()].sort((one, other) => remainder(other) - remainder(one))
  for (const at of order.slice(0, Math.round(sum(exact)) - sum(told))) told[at] += 1
  return told
}

/**
 * The chances of which just one comes true, as `chance` tells them, in per cent that add up to 100.
 * @param {readonly number[]} chances
 */
export function rivals(chances) {
  return shares(chances).map((share, at) => (share > 0 && share < 100 ? percent(share) : chance(chances[at])))
}
