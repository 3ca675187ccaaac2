// The page: the stream, the address bar, and which panels show what.

import { byId, fill, h } from "./dom.js"
import * as feed from "./feed.js"
import { GameView } from "./game.js"
import { calm, over, resting, words } from "./notice.js"
import { draw, TABS } from "./tables.js"

const HERD_MS = 1500 // tables are fetched within so long, not by all spectators at once
const NOTICE_MS = 1000 // what is waited for is said again so often: a time may have come
const WORDS = { orange: "not started", green: "running", red: "finished", grey: "abandoned" }

const state = { seasons: [], season: null, live: null, wanted: "", replay: "", event: "", tab: "standings", lost: "" }
const view = new GameView()
let source = null

// -- the stream -----------------------------------------------------------------------

const mine = (data) => data.season === state.season?.season

const handlers = {
  snapshot(data) {
    state.seasons = data.seasons ?? []
    setSeason(data.season)
    if (data.viewers) handlers.viewers({ count: data.viewers })
    setLive(data.game)
    drawTab()
  },
  game(data) { if (mine(data)) setLive(data.game ? data : null) },
  ply(data) {
    if (!mine(data) || state.live?.game !== data.game) return
    if (view.game === state.live) { if (!view.add(data)) reload() } else if (data.ply.n === state.live.plies.length + 1) state.live.plies.push(data.ply)
  },
  clock(data) { if (showsLive(data)) view.setClock(data) },
  search(data) { if (showsLive(data)) view.setSearch(data) },
  kibitz(data) { if (showsLive(data)) view.setKibitzers(data.kibitzers) },
  result(data) { if (showsLive(data)) view.finish(data) },
  season(data) {
    if (mine(data)) setSeason(data)
    else if (!state.season || (!state.wanted && over(state.season))) connect() // a season was launched
  },
  tables(data) { if (mine(data)) later() },
  outlook() { if (state.tab === "ratings" || state.tab === "forecast") later() },
  viewers({ count }) { byId("viewers").textContent = count === 1 ? "1 spectator" : `${count} spectators` },
}

const showsLive = (data) => mine(data) && state.live?.game === data.game && view.game === state.live

function connect() {
  source?.close()
  if (state.wanted) look(state.wanted)
  source = feed.listen(state.wanted, handlers, (on) => {
    view.linked = on
    byId("link-state").textContent = on ? "live" : "reconnecting"
    byId("link-state").classList.toggle("on", on)
  })
}

/** Tell who followed an address of a season that is not here; the stream only stays silent. */
async function look(season) {
  if (await feed.unknown(`seasons/${encodeURIComponent(season)}`) && state.wanted === season) lose(`There is no season ${season} here.`)
}

/** Fetch the game in flight, of which a ply was missed, unless another one has begun meanwhile. */
async function reload() {
  const { live } = state
  const game = await feed.get(`seasons/${state.season.season}/live`)
  if (game && state.live === live) setLive(game)
}

/** Take the game that is shown; null where the one in flight was given up, and none was finished before. */
function setLive(game) {
  const early = game?.status === "running" && state.replay === game.game // shown before the stream told that it is played
  if (early) { state.replay = ""; location.hash = `#/${state.wanted}` }
  const followed = !state.replay
  state.live = game
  if (followed && !game) view.clear()
  else if (followed) {
    view.set(game)
    if (early) view.key("last")
    if (!state.chosen) state.event = game.event
  }
}

function tell(said, good = false) {
  const notice = byId("notice")
  if (notice.textContent === said && notice.hidden === !said) return // it is read aloud when it changes
  notice.hidden = !said
  notice.textContent = said
  notice.classList.toggle("good", good)
}

/** Say that the address leads nowhere, until there is another one. */
function lose(words) {
  state.lost = words
  tell(words)
}

/** Say that the season is over, or what stands in its way; and where a replay's way back leads. */
function tellState(season) {
  const back = resting(season, feed.now()) ? "Back to the last game" : "Back to the live game"
  if (byId("to-live").textContent !== back) byId("to-live").textContent = back
  if (!state.lost) tell(words(season, feed.now()), calm(season))
}

/** Name in the browser's title what is shown: a replay's game, else the season. */
function entitle() {
  const { season, replay } = state
  if (replay && view.game?.game === replay) {
    const { white, black, event_name: event, round } = view.game
    document.title = `${white.name} – ${black.name}, ${event}, round ${round}`
  } else if (season) {
    document.title = season.champion ? `${season.name}: ${season.champion} has won` : `${season.name} – ${over(season) ? season.status : "live"}`
  }
}

function setSeason(season) {
  state.season = season
  if (!season) { tell("No season has been launched yet."); return }
  byId("season-name").textContent = season.name
  entitle()
  byId("season-pgn").href = `pgn/${season.season}.pgn`
  tellState(season)
  if (!season.events.some(({ event }) => event === state.event)) {
    const going = season.running?.event ?? season.events.findLast((event) => event.entrants.length)?.event
    state.event = going ?? season.events[0].event
  }
  drawEvents()
}

// -- events and tabs ------------------------------------------------------------------

function drawEvents() {
  const { season } = state
  if (!season) return // a replay may be here before the stream's first word
  fill(byId("events"), season.events.map((one) => h("a", { href: `#/${season.season}/event/${one.event}`, "aria-current": one.event === state.event ? "true" : null, "data-event": one.event },
    h("span", { class: `dot ${one.colour}`, "aria-hidden": "true" }), one.name, h("span", { class: "sr" }, `, ${WORDS[one.colour]}`),
    h("small", { class: "quiet" }, `${one.games.played}/${one.games.total}`))))
  const shown = byId("events").querySelector('[aria-current="true"]')
  if (shown) byId("events").scrollLeft = shown.offsetLeft - (byId("events").clientWidth - shown.offsetWidth) / 2
}

function drawTabs() {
  const shown = TABS.filter((tab) => !tab.when || (state.season && tab.when(state.season)))
  const have = [...byId("tabs").children].map((button) => button.dataset.tab).join()
  if (have !== shown.map((tab) => tab.id).join()) {
    fill(byId("tabs"), shown.map((tab) => h("button", { type: "button", role: "tab", id: `tab-${tab.id}`, "data-tab": tab.id, "aria-controls": "panel", onclick: () => choose(tab.id) }, tab.title)))
  }
  for (const button of byId("tabs").children) {
    const on = button.dataset.tab === state.tab
    button.setAttribute("aria-selected", String(on))
    button.tabIndex = on ? 0 : -1
  }
  byId("panel").setAttribute("aria-labelledby", `tab-${state.tab}`)
}

function choose(tab) {
  state.tab = tab
  byId("panel").setAttribute("aria-busy", "true") // until it is here
  drawTab()
}

let drawn = 0

function drawTab() {
  if (!state.season) return
  drawTabs()
  const turn = (drawn += 1)
  const tab = TABS.find((one) => one.id === state.tab) ?? TABS[0]
  draw(byId("panel"), tab, { ...state }, () => turn === drawn)
}

let waiting = null

function later() {
  waiting ??= setTimeout(() => { waiting = null; drawTab() }, Math.random() * HERD_MS)
}

byId("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
  if (!step) return
  event.stopPropagation()
  const buttons = [...byId("tabs").children]
  const at = buttons.findIndex((button) => button.dataset.tab === state.tab)
  const next = buttons[(at + step + buttons.length) % buttons.length]
  choose(next.dataset.tab)
  byId(next.id).focus()
})

// -- the address bar: #/season, #/season/event/e, #/season/game/g -----------------------

/** The address' parts, decoded; one that no link has made stands as it was typed. */
function address() {
  const decoded = (part) => { try { return decodeURIComponent(part) } catch { return part } }
  return location.hash.slice(2).split("/").map(decoded)
}

async function route(followed) {
  const [season = "", kind = "", name = ""] = address()
  state.lost = ""
  if (state.season) tellState(state.season)
  if (season !== state.wanted && (season || state.wanted) && season !== (state.season?.season ?? "")) {
    state.wanted = season
    state.live = null
    connect()
  }
  if (kind === "event") {
    state.chosen = true
    state.event = name
    if (state.season) { drawEvents(); drawTab() }
    if (followed) byId("tables").scrollIntoView()
    return
  }
  byId("to-live").hidden = kind !== "game"
  state.replay = kind === "game" ? name : ""
  if (kind === "game") await replay(season, name)
  else if (state.live) view.set(state.live)
  else view.clear()
  entitle()
}

async function replay(season, name) {
  const game = await feed.get(`seasons/${encodeURIComponent(season)}/games/${encodeURIComponent(name)}`)
  if (state.replay !== name) return
  if (!game) { lose(`There is no game ${name} to be shown here: not yet played, or never paired.`); return }
  if (game.status === "running" && state.live) { location.hash = `#/${state.wanted}`; return }
  view.set(game, { follow: false })
  if (state.event !== game.event) { state.event = game.event; drawEvents(); drawTab() }
  byId("main").focus({ preventScroll: true })
  scrollTo(0, 0) // the notice stands above the game
}

// -- keys, buttons, colours ---------------------------------------------------------

for (const button of document.querySelectorAll("[data-go]")) {
  button.addEventListener("click", () => view.game && view.key(button.dataset.go))
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(input|select|textarea)$/i.test(event.target.tagName)) return
  if (event.target.closest?.("#panel, #tabs")) return
  const go = { ArrowLeft: "back", ArrowRight: "on", Home: "first", End: "last", f: "flip" }[event.key]
  if (!go || !view.game) return
  event.preventDefault()
  view.key(go)
})

const DARK = matchMedia("(prefers-color-scheme: dark)")
const THEMES = ["auto", "light", "dark"]

function paint() {
  const chosen = localStorage.getItem("farm-theme") ?? "auto"
  const dark = chosen === "dark" || (chosen === "auto" && DARK.matches)
  document.documentElement.dataset.theme = dark ? "dark" : "light"
  byId("theme").setAttribute("aria-label", `Colours: ${chosen === "auto" ? "as the system has them" : chosen}`)
  view.redraw()
}

byId("theme").addEventListener("click", () => {
  const chosen = localStorage.getItem("farm-theme") ?? "auto"
  localStorage.setItem("farm-theme", THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length])
  paint()
})
DARK.addEventListener("change", paint)

addEventListener("hashchange", route)
setInterval(() => { if (state.season) tellState(state.season) }, NOTICE_MS)
paint()
state.wanted = address()[0]
connect()
route()
