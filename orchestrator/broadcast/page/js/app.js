// @ts-check
// The page: the stream, the address bar, and which panels show what.

import * as badges from "./badges.js"
import { drawBeside } from "./beside.js"
import { byId, fill, h, patch } from "./dom.js"
import * as feed from "./feed.js"
import { GameView } from "./game.js"
import { kept } from "./kept.js"
import { calm, isMatch, over, resting, words } from "./notice.js"
import { keepPage, keepState, lastState } from "./offline.js"
import * as format from "./format.js"
import { plyAddress } from "./position.js"
import * as sound from "./sound.js"
import { besideRedraws, currentEvent, redraws, seasonOf, shownEvent, shownGame, START, store } from "./store.js"
import { listen } from "./stream.js"
import { TABS } from "./tabs.js"
import { choose as chooseLanguage, LANGUAGES, load, t } from "./texts.js"
import { later } from "./version.js"

const HERD_MS = 1500 // tables are fetched within so long, not by all spectators at once
const STAYS_MS = 400
const PATIENCE_MS = 2000 // so long the page waits for its first news before it is shown without
const LIST_MS = 10000 // the list of test matches, of which the stream of a season says nothing, is fetched again so often
const LOST_MS = 5000 // a link that is back so soon was not missed
const KEEP_MS = 10000 // where things stand is kept so often; not when the tab is left, where half of it may be written
const NOTICE_MS = 1000 // what is waited for is said again so often: a time may have come
const STATES = { orange: "state.waiting", green: "state.running", red: "state.finished", grey: "state.abandoned" }

const PARTS = new Set(["game", "board", "clocks", "standings"])

const root = document.documentElement
const query = new URLSearchParams(location.search)
const page = store({ ...START, wanted: address().season })
const view = new GameView(stepped)
const texts = load() // with the stream, not before it
/** @type {?{close: () => void}} */
let source = null

// -- the stream -----------------------------------------------------------------------

/** @param {string} [after]   the event that was told last */
function connect(after = "") {
  const { wanted } = page.state
  source?.close()
  if (wanted) look(wanted)
  source = listen(wanted, (kind, data) => texts.then(() => take(kind, data)), (on) => texts.then(() => tellLink(on)), picture, sound.wanted, after)
}

/** Begin with where things stand: the page's head has asked for it beside this script, the stream goes on from there. */
async function begin() {
  const { wanted } = page.state
  const [told] = await Promise.all([root.dataset.archive === undefined ? feed.snapshot() : null, texts])
  if (source) return // another season was asked for meanwhile
  const fits = told && (!wanted || told.season?.season === wanted)
  if (fits) take("snapshot", told)
  connect(fits ? told.id : "")
}

/** Since when there is no link (this machine's time), and of what time all is that is shown (the farm's). */
/** @type {?{since: number, asOf: number}} */
let lost = null
let heard = 0 // when something was told last, the farm's time

/** @param {boolean} on */
function tellLink(on) {
  view.linked = on
  if (on) lost = null
  else lost ??= { since: Date.now(), asOf: heard || feed.now() }
  if (!on && !page.state.season) restore()
  byId("link-state").textContent = t(on ? (root.dataset.archive === undefined ? "link.live" : "link.archive") : "link.lost")
  byId("link-state").classList.toggle("on", on)
}

/** The snapshot as the server would send it now, for a tab that has just been opened. */
function picture() {
  const { wanted, season, seasons, live, viewers, tests } = page.state
  return season && (!wanted || wanted === season.season) ? { now_ms: feed.now(), seasons, season, game: live, viewers, tests } : null
}

/** Show where things stood last: the page was opened without a network. */
async function restore() {
  const { wanted } = page.state
  const told = await lastState(wanted)
  if (!told || !lost || page.state.season || page.state.wanted !== wanted) return
  lost = { since: 0, asOf: told.now_ms }
  page.send("snapshot", { ...told, viewers: null })
}

function keep() {
  const told = view.linked && !root.dataset.part && root.dataset.archive === undefined ? picture() : null
  if (told) keepState(page.state.wanted, told)
}

/** @type {import("./stream.js").Take} */
function take(kind, data) {
  heard = feed.now()
  const { season, wanted } = page.state
  const named = kind === "season" ? /** @type {Api.SeasonTold} */ (data).season : season?.season
  const launched = named !== season?.season && (!season || (!wanted && (over(season) || isMatch(season))))
  if (launched) connect()
  else page.send(kind, data)
}

/**
 * Tell who followed an address of a season that is not here; the stream only stays silent.
 * @param {string} season
 */
async function look(season) {
  const [unknown] = await Promise.all([feed.unknown(`seasons/${encodeURIComponent(season)}`), texts])
  if (unknown && page.state.wanted === season) page.send("lost", { what: "season", name: season })
}

/** Fetch the game in flight, of which a ply was missed, unless another one has begun meanwhile. */
async function reload() {
  const { live, season } = page.state
  if (!live || !season) return
  const game = await feed.get(`seasons/${season.season}/live`)
  if (game && page.state.live?.game === live.game && page.state.season?.season === season.season) page.send("game", { ...game, now_ms: feed.now() })
}

/**
 * @param {string} season
 * @param {string} name
 */
async function fetchReplay(season, name) {
  const game = await feed.get(`seasons/${encodeURIComponent(season)}/games/${encodeURIComponent(name)}`)
  if (seasonOf(page.state) === season) page.send("replay", { name, game })
}

// -- the views: each is told of the state before and the new one -------------------------

/** @typedef {(state: import("./store.js").State, before: import("./store.js").State) => void} View */

/** @type {View} */
function showGame(state, before) {
  if (state.season || state.lost) reveal()
  const { game, followed } = shownGame(state)
  view.show(game, followed, state.ply)
  byId("to-live").hidden = !state.asked
  if (!state.replay || state.replay === before.replay) return
  byId("main").focus({ preventScroll: true })
  scrollTo(0, 0) // the notice stands above the game
}

/** @type {View} */
function knowBadges({ season }, before) {
  if (season !== before.season) badges.know(season)
}

/** @type {View} */
function showSeason(state, before) {
  const { season } = state
  if (state.seasons !== before.seasons || season !== before.season || state.lost !== before.lost) tellState(state)
  if (season && season !== before.season) {
    byId("season-name").textContent = season.name
    for (const link of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('footer a[href^="feeds/"]'))) link.hidden = isMatch(season) // it has none
    byId("season-pgn").href = `pgn/${season.season}.pgn`
  }
  if (season !== before.season || shownEvent(state) !== shownEvent(before) || currentEvent(state) !== currentEvent(before)) drawEvents(state)
  entitle(state)
}

/** @type {View} */
function showTables(state, before) {
  if (root.dataset.part) return
  const when = redraws(before, state)
  if (when === "now") drawTab()
  else if (when === "later") drawTabSoon()
}

let asides = 0

/** @type {View} */
function showBeside(state, before) {
  const when = besideRedraws(before, state)
  if (!when) return
  const turn = (asides += 1)
  const draw = () => { if (turn === asides && state.season) drawBeside(byId("beside"), { season: state.season, event: shownEvent(state), live: state.live }, () => turn === asides) }
  if (when === "now") draw()
  else setTimeout(draw, Math.random() * HERD_MS)
}

/** @type {View} */
function showViewers({ viewers }, before) {
  if (viewers !== before.viewers) byId("viewers").textContent = viewers === null ? "" : t("viewers", { count: Math.max(1, viewers) })
}

/**
 * Do what a state asks for: the live game is fetched, the stream of another season opened, an address taken back.
 * @type {View}
 */
function follow(state, before) {
  if (state.wanted !== before.wanted) connect()
  if (state.missed && !before.missed) reload()
  if (before.asked && !state.asked && address().game) location.hash = `#/${state.wanted}` // it is the game in flight
}

for (const one of [knowBadges, showGame, showSeason, showTables, showBeside, showViewers, follow]) page.subscribe(one)

/**
 * @param {string} said
 * @param {boolean} good
 */
function tell(said, good = false) {
  const notice = byId("notice")
  if (notice.textContent === said && notice.hidden === !said) return // it is read aloud when it changes
  notice.hidden = !said
  notice.textContent = said
  notice.classList.toggle("good", good)
}

/** Whether there has been no link for so long that what is shown may be wrong. */
const unlinked = () => lost !== null && page.state.season !== null && Date.now() - lost.since > LOST_MS

/**
 * Say that there is no link, that the address leads nowhere, that the season is over, or what stands in its way; and where a replay's way back leads.
 * @param {import("./store.js").State} state
 */
function tellState({ season, lost: unknown }) {
  if (unlinked()) tell(t("notice.offline", { moment: format.moment(lost?.asOf) }))
  else if (unknown) tell(t(`lost.${unknown.what}`, unknown))
  else if (!season) tell(t("season.none"))
  else tell(words(season, feed.now()), calm(season))
  if (!season) return
  const back = t(resting(season, feed.now()) ? "back.last" : "back.live")
  if (byId("to-live").textContent !== back) byId("to-live").textContent = back
}

/**
 * Name in the browser's title what is shown: a replay's game, else the season.
 * @param {import("./store.js").State} state
 */
function entitle({ season, replay }) {
  let title = document.title
  if (replay) {
    const { white, black, event_name: event, round } = replay
    title = t("title.game", { white: white.name, black: black.name, event, round })
  } else if (season) {
    const { name, champion, status } = season
    title = champion ? t("title.won", { name, champion }) : `${name} – ${t(over(season) ? `state.${status}` : "link.live")}`
  }
  if (document.title !== title) document.title = title
}

// -- events and tabs ------------------------------------------------------------------

/** @param {import("./store.js").State} state */
function drawEvents(state) {
  const { season } = state
  if (!season) return // a replay may be here before the stream's first word
  if (isMatch(season)) {
    later().then(({ drawBoards }) => page.state.season === season && drawBoards(byId("events"), season))
    return
  }
  const [shown, current] = [shownEvent(state), currentEvent(state)]
  patch(byId("events"), season.events.map((one) => h("a", { href: `#/${season.season}/event/${one.event}`, "aria-current": one.event === shown ? "true" : null, "data-event": one.event },
    h("span", { class: `dot ${one.colour}`, "aria-hidden": "true" }), one.name, h("span", { class: "sr" }, `, ${t(STATES[one.colour])}`),
    h("small", { class: "quiet" }, `${one.games.played}/${one.games.total}`))))
  const name = season.events.find((one) => one.event === current)?.name
  byId("follow").hidden = !state.chosen || shown === current
  byId("follow").textContent = t("follow", { name })
  byId("follow").href = `#/${state.wanted}`
  const marked = /** @type {?HTMLElement} */ (byId("events").querySelector('[aria-current="true"]'))
  if (marked && marked.dataset.event !== byId("events").dataset.marked) byId("events").scrollLeft = marked.offsetLeft - (byId("events").clientWidth - marked.offsetWidth) / 2
  byId("events").dataset.marked = shown
}

/** @param {import("./store.js").State} state */
function drawTabs({ season, tests, tab: chosen }) {
  const shown = TABS.filter((tab) => season && (!tab.when || tab.when(season, tests)))
  const have = tabs().map((button) => button.dataset.tab).join()
  if (have !== shown.map((tab) => tab.id).join()) {
    fill(byId("tabs"), shown.map((tab) => h("button", { type: "button", role: "tab", id: `tab-${tab.id}`, "data-tab": tab.id, "aria-controls": "panel", onclick: () => choose(tab.id) }, t(`tab.${tab.id}`))))
  }
  for (const button of tabs()) {
    const on = button.dataset.tab === chosen
    button.setAttribute("aria-selected", String(on))
    button.tabIndex = on ? 0 : -1
  }
  byId("panel").setAttribute("aria-labelledby", `tab-${chosen}`)
}

const tabs = () => /** @type {HTMLButtonElement[]} */ ([...byId("tabs").children])

/** @param {string} tab */
function choose(tab) {
  byId("panel").setAttribute("aria-busy", "true") // until it is here
  if (tab === page.state.tab) drawTab()
  else page.send("tab", { tab })
}

let drawn = 0

async function drawTab() {
  const { state } = page
  const { season, seasons, engine } = state
  if (!season) return
  drawTabs(state)
  const turn = (drawn += 1)
  const tab = TABS.find((one) => one.id === state.tab) ?? TABS[0]
  const { draw } = await later()
  if (turn === drawn) draw(byId("panel"), tab.id, { season, seasons, event: shownEvent(state), engine, again: drawTab }, () => turn === drawn)
}

/** @type {?number} */
let waiting = null

function drawTabSoon() {
  waiting ??= setTimeout(() => { waiting = null; drawTab() }, Math.random() * HERD_MS)
}

byId("tabs").addEventListener("keydown", (event) => {
  const step = new Map([["ArrowRight", 1], ["ArrowLeft", -1]]).get(event.key)
  if (!step) return
  event.stopPropagation()
  const buttons = tabs()
  const at = buttons.findIndex((button) => button.dataset.tab === page.state.tab)
  const next = buttons[(at + step + buttons.length) % buttons.length]
  choose(next.dataset.tab ?? "")
  byId(next.id).focus()
})

// -- the address bar: #/season, #/season/event/e, #/season/engine/e, #/season/game/g, #/season/game/g/ply -----------------------

let naming = 0

/** Name the ply of a replay that is looked at in the address, once one stays with it: browsers count such changes. */
function stepped() {
  clearTimeout(naming)
  naming = setTimeout(() => {
    const { asked, replay } = page.state
    const here = address()
    if (asked && replay && view.game === replay && here.game === asked) history.replaceState(null, "", plyAddress(replay, view.cursor))
  }, STAYS_MS)
}

/** The address' parts, decoded; one that no link has made stands as it was typed. */
function address() {
  /** @param {string} part */
  const decoded = (part) => { try { return decodeURIComponent(part) } catch { return part } }
  const [season = "", kind = "", name = "", ply = ""] = location.hash.slice(2).split("/").map(decoded)
  return { season, engine: kind === "engine" ? name : "", event: kind === "event" ? name : "", game: kind === "game" ? name : "", ply: /^\d{1,5}$/.test(ply) ? Number(ply) : null }
}

/** @param {Event} [followed] */
function route(followed) {
  const led = address()
  page.send("address", led)
  const { asked, replay } = page.state
  if (asked && !replay) fetchReplay(seasonOf(page.state), asked)
  if ((led.event || led.engine) && followed) byId("tables").scrollIntoView()
}

// -- keys, buttons, colours ---------------------------------------------------------

for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-go]"))) {
  button.addEventListener("click", () => view.game && view.key(button.dataset.go ?? ""))
}

const WHEEL = 40 // pixels a ply: a touchpad sends many small ones
let turned = 0

byId("board").addEventListener("wheel", (event) => {
  if (event.ctrlKey || !view.game) return
  event.preventDefault()
  turned += event.deltaMode ? Math.sign(event.deltaY) * WHEEL : event.deltaY
  if (Math.abs(turned) < WHEEL) return
  view.key(turned > 0 ? "on" : "back")
  turned = 0
}, { passive: false })

/**
 * Copy a text; where a page may not write to the clipboard (over HTTP), by way of a field.
 * @param {string} text
 */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    const field = h("textarea", { class: "sr" }, text)
    document.body.append(field)
    field.select()
    document.execCommand("copy")
    field.remove()
  }
}

/** @type {Readonly<Record<string, (game: Api.Game) => string | Promise<string>>>} */
const COPIES = {
  fen: () => view.fen,
  link: (game) => new URL(plyAddress(game, view.cursor), new URL(root.dataset.root ?? "./", location.href)).href,
  pgn: async () => (await fetch(byId("game-pgn").href)).text(),
}

for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-copy]"))) {
  button.addEventListener("click", async () => {
    if (!view.game) return
    await copy(await COPIES[button.dataset.copy ?? ""](view.game))
    byId("said").textContent = t("copied", { what: button.title })
    button.classList.add("done")
    setTimeout(() => button.classList.remove("done"), 1500)
  })
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  if (event.target instanceof Element && event.target.closest("input, select, textarea, #panel, #tabs")) return
  /** @type {Readonly<Record<string, string | undefined>>} */
  const keys = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last", f: "flip" }
  const go = keys[event.key]
  if (!go || !view.game) return
  event.preventDefault()
  view.key(go)
})

const DARK = matchMedia("(prefers-color-scheme: dark)")
const THEMES = ["auto", "light", "dark"]

let theme = THEMES.find((name) => name === query.get("theme")) ?? kept.get("farm-theme") ?? "auto"

function paint() {
  const dark = theme === "dark" || (theme === "auto" && DARK.matches)
  root.dataset.theme = dark ? "dark" : "light"
  byId("theme").setAttribute("aria-label", t(`theme.${theme}`))
  view.redraw()
}

byId("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]
  kept.set("farm-theme", theme)
  paint()
})
DARK.addEventListener("change", paint)

/** Show a part of the page alone: in a frame (`embed/PART`), over a picture (`?overlay=PART`), on a wall (`?kiosk`). */
function arrange() {
  const part = query.get("overlay") ?? ""
  if (PARTS.has(part)) { root.dataset.part = part; root.dataset.overlay = "" }
  if (query.has("kiosk")) root.dataset.kiosk = ""
  if (!root.dataset.root) return
  byId("whole").hidden = false
  byId("whole").href = `${root.dataset.root}${location.hash}`
}

/** Show the page once something is known, or has been waited for. */
function reveal() { delete byId("main").dataset.waits }
setTimeout(reveal, PATIENCE_MS)

addEventListener("hashchange", route)
setTimeout(keep, LOST_MS)
setInterval(keep, KEEP_MS)
document.addEventListener("visibilitychange", () => {
  if (lost) lost.since = Math.max(lost.since, Date.now() - LOST_MS / 2) // a hidden tab has given its stream back
})
setInterval(() => { if (page.state.season) tellState(page.state) }, NOTICE_MS)
setInterval(() => { if (page.state.tab === "tests" && document.visibilityState === "visible") drawTab() }, LIST_MS)
/** Tell the style sheet where the game begins: what is above it comes and goes. */
function measure() {
  const above = (document.querySelector(".stage")?.getBoundingClientRect().top ?? 0) + scrollY
  root.style.setProperty("--above", `${Math.round(above)}px`)
}
const above = new ResizeObserver(measure)
for (const one of document.querySelectorAll(".top, #notice, .game-head")) above.observe(one)

begin()
await texts
for (const [language, name] of Object.entries(LANGUAGES)) byId("language").append(h("option", { value: language, lang: language, selected: language === root.lang }, name))
byId("language").addEventListener("change", () => chooseLanguage(byId("language").value))
arrange()
paint()
route()
if (!root.dataset.part) keepPage(() => page.send("tables", { season: page.state.season?.season, events: null }))
