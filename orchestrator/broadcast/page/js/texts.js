// @ts-check
// What the page says, in the language of who reads it. Each language is a file, `texts/LANGUAGE.json`, and only
// the one that is shown is loaded. In a text {name} stands for a value; a text that depends on a number has a form
// for each plural of its language, chosen by {count}.

import { kept } from "./kept.js"
import { file } from "./version.js"

const KEPT = "farm-language"

/** The languages of the page, by their own names. */
export const LANGUAGES = { en: "English", de: "Deutsch", es: "Español" }

/** @typedef {string | ({other: string} & Partial<Record<Intl.LDMLPluralRule, string>>)} Text   the second has a form a plural */
/** @typedef {string | number | Node | null | undefined} Value   what stands in a text */

/** @type {Record<string, Text>} */
let texts = {}
let locale = "en"
let plurals = new Intl.PluralRules(locale)
/** @type {Map<string, string>} */
let known = new Map() // what the server said, and how it is said here
/** @type {Map<unknown, any>} */
let formatters = new Map() // of numbers by digits, of dates by options

/**
 * The language to be shown: the first wish that the page has, else English.
 * @param {(?string | undefined)[]} wishes   language tags ("de-AT", "es"), the strongest first
 */
export function pick(wishes) {
  const known = wishes.map((wish) => (wish ?? "").toLowerCase().split("-")[0]).find((language) => Object.hasOwn(LANGUAGES, language))
  return known ?? "en"
}

/**
 * Take the texts of a language; numbers and dates are written as its readers do.
 * @param {string} language
 * @param {Record<string, Text>} all   texts by their keys
 * @param {readonly string[]} wishes   of the browser: who reads English in Ireland has Irish dates
 */
export function use(language, all, wishes = []) {
  texts = all
  locale = wishes.find((wish) => wish.toLowerCase().split("-")[0] === language) ?? language
  plurals = new Intl.PluralRules(locale)
  formatters = new Map()
  known = new Map()
}

/**
 * The text of a key as its parts, some of which may be elements: what a reader sees in the place of a value.
 * @param {string} key
 * @param {Readonly<Record<string, Value>>} values
 * @returns {(string | Node)[]}
 */
export function parts(key, values = {}) {
  const found = texts[key] ?? key
  const text = typeof found === "string" ? found : found[plurals.select(Number(values.count))] ?? found.other
  return text.split(/\{(\w+)\}/).map((part, at) => (at % 2 ? shown(values[part]) : part))
}

/**
 * The text of a key.
 * @param {string} key
 * @param {Readonly<Record<string, Value>>} [values]
 */
export const t = (key, values) => parts(key, values).join("")

const SAID_BY_SERVER = "said."

/**
 * A text of the server, as far as this page knows it: keys that begin with "said." go on with what it says in English,
 * with {name} for what changes. What it does not know (people's words, an engine's) stands as it is.
 * @param {?string | undefined} text
 * @returns {string}
 */
export function said(text) {
  if (!text) return ""
  const here = known.get(text) ?? translated(text)
  known.set(text, here)
  return here
}

/** @param {string} text */
function translated(text) {
  if (knows(SAID_BY_SERVER + text)) return t(SAID_BY_SERVER + text)
  for (const key of Object.keys(texts)) {
    if (!key.startsWith(SAID_BY_SERVER) || !key.includes("{")) continue
    const [names, literals] = /** @type {[string[], string[]]} */ ([[], []])
    key.slice(SAID_BY_SERVER.length).split(/\{(\w+)\}/).forEach((part, at) => (at % 2 ? names : literals).push(part))
    const found = new RegExp(`^${literals.map((part) => part.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("(.+)")}$`).exec(text)
    if (found) return t(key, Object.fromEntries(names.map((name, at) => [name, found[at + 1]])))
  }
  return text
}

/**
 * Whether there is a text of a key: the server may name what this page does not know.
 * @param {string} key
 */
export const knows = (key) => Object.hasOwn(texts, key)

/** @type {(value: Value) => string | Node} */
const shown = (value) => (typeof value === "number" ? number(value) : value ?? "")

/**
 * A number with just so many digits behind the point, or as many as it has.
 * @param {number} value
 * @param {?number} digits
 * @returns {string}
 */
export function number(value, digits = null) {
  const exact = digits === null ? { maximumFractionDigits: 10 } : { minimumFractionDigits: digits, maximumFractionDigits: digits }
  return formatter(digits, () => new Intl.NumberFormat(locale, { useGrouping: "min2", ...exact })).format(value)
}

/**
 * A date as a locale writes it; `options` are those of `Intl.DateTimeFormat`, one object for all dates of a kind.
 * @param {Date} when
 * @param {Intl.DateTimeFormatOptions} options
 * @returns {string}
 */
export const date = (when, options) => formatter(options, () => new Intl.DateTimeFormat(locale, options)).format(when)

/**
 * @param {unknown} key
 * @param {() => object} make
 */
function formatter(key, make) {
  if (!formatters.has(key)) formatters.set(key, make())
  return formatters.get(key)
}

/**
 * Compare two names as the language orders them.
 * @param {string} one
 * @param {string} other
 */
export const inOrder = (one, other) => one.localeCompare(other, locale)

const PROPERTIES = /** @type {const} */ ({ t: "textContent", "t-label": "ariaLabel", "t-title": "title" })

/**
 * Say the texts of a document's own elements: `data-t` is what an element says, `data-t-label` its name, `data-t-title` its title.
 * @param {Document} root
 */
export function translate(root) {
  for (const [attribute, property] of Object.entries(PROPERTIES)) {
    for (const element of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(`[data-${attribute}]`))) element[/** @type {"title"} */ (property)] = t(element.getAttribute(`data-${attribute}`) ?? "")
  }
}

/**
 * Load the language of this visit: the address' (`?lang=de`), else the one that was chosen here before, else the
 * first one of the browser that the page has.
 */
export async function load() {
  const { documentElement: root } = document
  const language = pick([new URLSearchParams(location.search).get("lang"), kept.get(KEPT), ...navigator.languages])
  use(language, await (await file(`${root.dataset.static ?? ""}texts/${language}.json`)).json(), navigator.languages)
  root.lang = language
  translate(document)
  return language
}

/**
 * Choose a language for this visit and the next ones: the page is read again, since all of it says something.
 * @param {string} language
 */
export function choose(language) {
  kept.set(KEPT, language)
  const address = new URL(location.href)
  address.searchParams.delete("lang")
  if (kept.get(KEPT) !== language) address.searchParams.set("lang", language) // a browser that keeps nothing
  if (address.href === location.href) location.reload()
  else location.replace(address)
}
