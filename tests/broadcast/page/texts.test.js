// The page's texts: each language has all of them, and none stands anywhere else.

import assert from "node:assert/strict"
import { readdirSync, readFileSync } from "node:fs"
import { test } from "node:test"

import { clock, duration, evaluation, moment, percent, points, rivals } from "../../../orchestrator/broadcast/page/js/format.js"
import { LANGUAGES, number, parts, pick, said, t, use } from "../../../orchestrator/broadcast/page/js/texts.js"

const PAGE = new URL("../../../orchestrator/broadcast/page/", import.meta.url)
const read = (place) => readFileSync(new URL(place, PAGE), "utf8")
const TEXTS = Object.fromEntries(Object.keys(LANGUAGES).map((language) => [language, JSON.parse(read(`texts/${language}.json`))]))
const OF_PROGRAMS = new Set(["api.js"]) // the API's page is in English, as its description is
const SCRIPTS = readdirSync(new URL("js/", PAGE)).filter((name) => name.endsWith(".js") && !OF_PROGRAMS.has(name))

const forms = (text) => (typeof text === "string" ? { other: text } : text)
const placeholders = (text) => [...new Set(Object.values(forms(text)).flatMap((form) => form.match(/\{\w+\}/g) ?? []))].sort()

/** The literal parts of all strings of a script, with what stands before each: comments and regular expressions are left out. */
function literals(source) {
  const found = []
  const open = [] // braces of templates that are not closed yet: how deep each lies
  let depth = 0
  for (let at = 0; at < source.length;) {
    const sign = source[at]
    const rest = source.slice(at)
    const skipped = /^(?:\/\/[^\n]*|\/\*[\s\S]*?\*\/)/.exec(rest)?.[0] ?? (/[(,=:[!&|?]\s*$/.test(source.slice(Math.max(0, at - 5), at)) ? /^\/(?:[^/\\\n[]|\\.|\[[^\]]*\])+\//.exec(rest)?.[0] : null)
    if (skipped) { at += skipped.length; continue }
    const ends = sign === "}" && open.at(-1) === depth
    if (ends) open.pop()
    if (sign === "{") depth += 1
    if (sign === "}" && !ends) depth -= 1
    if (sign === '"' || sign === "'") {
      const [text] = /^(["'])(?:[^\\]|\\.)*?\1/.exec(rest)
      found.push({ text: text.slice(1, -1), before: source.slice(Math.max(0, at - 40), at) })
      at += text.length
    } else if (sign === "`" || ends) {
      const [, text, end] = /^.((?:[^`\\$]|\\.|\$(?!\{))*)(`|\$\{)/.exec(rest)
      found.push({ text, before: source.slice(Math.max(0, at - 40), at), template: true })
      if (end === "${") open.push(depth)
      at += 1 + text.length + end.length
    } else {
      at += 1
    }
  }
  return found
}

const NAMES = /^(Arrow(Left|Right|Up|Down)|Home|End|Escape|AbortError| ?Elo|PGN)$/ // of keys and errors, as browsers have them; the same in every language
const FOR_CODE = /(class(Name)?\W{1,3}|Symbol\(|querySelector(All)?\(|:scope[^"]*)$/

/** Whether a person would read a literal: it has a sentence's parts, a word that begins like a name, or stands as an element's child. */
function forPeople({ text, before, template }) {
  if (NAMES.test(text) || FOR_CODE.test(before)) return false
  if (/[a-z]{2,} [a-z]{2,}/i.test(text) || /(^|\s)[A-Z][a-z]{2,}/.test(text)) return true
  if (template && /(^|\s)[a-z]{2,}\s/.test(text) && /^\s/.test(text)) return true
  return /\}, $/.test(before) && /[a-z]{2}/i.test(text)
}

test("each language has every text, with the same values in it and a form for each of its plurals", () => {
  assert.deepEqual(readdirSync(new URL("texts/", PAGE)).sort(), Object.keys(LANGUAGES).map((language) => `${language}.json`).sort())
  for (const [language, texts] of Object.entries(TEXTS)) {
    assert.deepEqual(Object.keys(texts), Object.keys(TEXTS.en), `${language}: keys, in their order`)
    const rules = new Intl.PluralRules(language)
    const needed = new Set(Array.from({ length: 200 }, (_, count) => rules.select(count)))
    for (const [key, text] of Object.entries(texts)) {
      assert.deepEqual(placeholders(text), placeholders(TEXTS.en[key]), `${language}: ${key}`)
      assert.ok(Object.values(forms(text)).every((form) => form.trim()), `${language}: ${key} is empty`)
      assert.equal(typeof text, typeof TEXTS.en[key], `${language}: ${key}: plural forms in one language alone`)
      if (typeof text !== "string") assert.deepEqual(new Set(Object.keys(text)), needed, `${language}: plurals of ${key}`)
    }
  }
})

test("no text for people stands in the scripts", () => {
  const left = SCRIPTS.flatMap((name) => literals(read(`js/${name}`)).filter((one) => forPeople(one) && !Object.values(LANGUAGES).includes(one.text)).map(({ text }) => `${name}: ${text}`))
  assert.deepEqual(left, [])
})

test("texts for people are known as such", () => {
  const of = (source) => literals(source).filter(forPeople).map(({ text }) => text)
  assert.deepEqual(of('h("p", { class: "quiet note" }, "bye") // No text\nfill("Standings", `${a} of ${b}`, /It "is"/, `x ${`${"No text"}`}`)'), ["bye", "Standings", " of ", "No text"])
  assert.deepEqual(of('h("th", { scope: "col", "data-x": "to-draw" }); /* Of one */ key === "ArrowLeft"; `#/${a}/game/${b}`; t("game.none")'), [])
})

test("each text is used, and each that is used is there", () => {
  const sources = SCRIPTS.map((name) => read(`js/${name}`))
  const all = sources.flatMap(literals)
  const html = read("index.html")
  const named = new Set([...all.map(({ text }) => text), ...[...html.matchAll(/data-t(?:-\w+)?="([^"]+)"/g)].map(([, key]) => key)])
  const begun = new Set(all.filter(({ text }) => /^[a-z.-]+\.$/.test(text)).map(({ text }) => text))
  const unused = Object.keys(TEXTS.en).filter((key) => !named.has(key) && ![...begun].some((head) => key.startsWith(head)))
  assert.deepEqual(unused, [])
  const asked = sources.flatMap((source) => [...source.matchAll(/\b(?:t|parts)\("([^"]+)"/g)].map(([, key]) => key))
  assert.deepEqual(asked.filter((key) => !(key in TEXTS.en)), [])
})

test("before its texts are here, the page says them in English", () => {
  const html = read("index.html")
  for (const [, attributes, content] of html.matchAll(/<\w+([^>]*\bdata-t[^>]*)>([^<]*)/g)) {
    const said = { t: content, "t-label": /aria-label="([^"]*)"/.exec(attributes)?.[1], "t-title": / title="([^"]*)"/.exec(attributes)?.[1] }
    for (const [, attribute, key] of attributes.matchAll(/data-(t(?:-\w+)?)="([^"]+)"/g)) {
      if (content || attribute !== "t") assert.equal(said[attribute], TEXTS.en[key], key)
    }
  }
  const silent = [...html.matchAll(/<(a|button|h[1-6]|p|span)\b([^>]*)>([^<]*[a-z]{2}[^<]*)</g)].filter(([, , attributes]) => !/data-t=/.test(attributes))
  assert.deepEqual(silent.map(([, , , content]) => content), ["Tournament Farm", "lichess/live.pgn"], "texts without a key")
  const unnamed = [...html.matchAll(/<[^>]*(?:aria-label|title)="([^"]+)"[^>]*>/g)].filter(([element]) => !/data-t-(label|title)=/.test(element) && !/^<link/.test(element))
  assert.deepEqual(unnamed.map(([, text]) => text), ["Colours: as the system has them"])
})

test("the language is the strongest wish that the page has", () => {
  assert.equal(pick([null, null, "fr-CA", "de-AT", "en"]), "de")
  assert.equal(pick(["es", "de", "en"]), "es")
  assert.equal(pick(["ES-419"]), "es")
  assert.equal(pick(["xx", "constructor", ""]), "en")
})

test("texts take values, by the plural of their number, and numbers and dates are the language's", () => {
  use("en", TEXTS.en, ["de-DE", "en-GB"])
  assert.deepEqual([t("viewers", { count: 1 }), t("viewers", { count: 20000 })], ["1 spectator", "20,000 spectators"])
  assert.deepEqual(parts("follow", { name: { element: true } }), ["Follow the season: ", { element: true }, ""])
  assert.match(moment(Date.UTC(2026, 2, 7, 12)), /^7 Mar 2026, \d\d:00$/)
  assert.deepEqual([points(2.5), clock(5640), evaluation("0.53"), percent(33.3, 1), duration(9000)], ["2.5", "5.6", "+0.53", "33.3 %", "2.5 h"])
  use("de", TEXTS.de, ["en", "de"])
  assert.deepEqual([t("viewers", { count: 1 }), t("viewers", { count: 1234 })], ["1 Zuschauer", "1234 Zuschauer"])
  assert.deepEqual([points(2.5), clock(5640), evaluation("0.53"), percent(33.3, 1), number(1234567.5)], ["2,5", "5,6", "+0.53", "33,3 %", "1.234.567,5"])
  assert.match(moment(Date.UTC(2026, 2, 7, 12)), /^07\.03\.2026/)
  assert.equal(t("no.such"), "no.such")
})

test("chances of the title are 100 % together; what may still happen is never told as 0 or 100 %", () => {
  use("en", TEXTS.en)
  const told = [[0.965, 0.035], [0.985, 0.0075, 0.0075], [0.998, 0.002], [1, 0], []].map(rivals)
  assert.deepEqual(told, [["97 %", "3 %"], ["98 %", "1 %", "1 %"], [">99 %", "<1 %"], ["100 %", ""], []])
})

const SERVER = ["arbiter/verdict.py", "season/graph.py", "broadcast/forecast/documents.py", "broadcast/content/rank_odds.py", "broadcast/content/inflight.py", "broadcast/content/games.py", "broadcast/content/replays.py"]

test("what the server says is known as it says it, in English unchanged; what is not known stays", () => {
  const source = SERVER.map((place) => readFileSync(new URL(`../${place}`, new URL("../", PAGE)), "utf8")).join("\n")
  const all = Object.entries(TEXTS.en).filter(([key]) => key.startsWith("said."))
  assert.ok(all.length > 40)
  for (const [key, text] of all) {
    assert.equal(`said.${text}`, key)
    const [longest] = text.replace(/^(White|Black)/, "").split(/\{\w+\}/).sort((one, other) => other.length - one.length)
    assert.ok(source.includes(longest.trim()), `nobody says ${text}`)
  }
  use("de", TEXTS.de)
  assert.deepEqual(["Black mates", "Round 3: 4/16 games", "Liga (A+): ranking", "kernel panic", "", null].map(said), ["Schwarz setzt matt", "Runde 3: 4/16 Partien", "Liga (A+): Endstand", "kernel panic", "", ""])
})
