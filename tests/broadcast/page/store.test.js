// The page's reducer: what each event changes, and what a spectator is shown after it.

import assert from "node:assert/strict"
import { test } from "node:test"

import { apply, currentEvent, redraws, shownEvent, shownGame, START, store } from "../../../orchestrator/broadcast/page/js/store.js"

const ply = (n) => ({ n, san: `m${n}`, side: n % 2 ? "white" : "black" })
const event = (id) => ({ event: id, entrants: ["a", "b"] })
const season = (running = "league") => ({ season: "s", events: [event("league"), event("final"), event("bonus")], running: running && { event: running } })
const game = (name, of = "league", plies = [ply(1), ply(2)]) => (
  { season: "s", game: name, event: of, status: "running", plies, clock: { thinking: "white", since_ms: 1, white_ms: 10, black_ms: 10 }, search: null, kibitzers: [], opening: {} })
const finished = (name, of) => ({ ...game(name, of), status: "finished", result: "1-0" })
const place = (fields) => ["address", { season: "", event: "", game: "", ply: null, ...fields }]
const clock = (n) => ({ thinking: n % 2 ? "black" : "white", since_ms: n, white_ms: 100 - n, black_ms: 100 - n })
const next = (n, name = "g2") => ["ply", { season: "s", game: name, ply: ply(n), clock: clock(n), opening: {} }]

/** Freeze a value to its depths: a reducer that writes into a state fails. */
function frozen(value) {
  if (value && typeof value === "object" && !Object.isFrozen(value)) Object.values(Object.freeze(value)).forEach(frozen)
  return value
}
const after = (...happenings) => happenings.reduce((state, [kind, data]) => frozen(apply(state, kind, frozen(data))), frozen(START))
const LIVE = ["snapshot", { seasons: [], season: season(), game: game("g2"), viewers: 3 }]
const REPLAY = [place({ season: "s", game: "g1" }), ["replay", { name: "g1", game: finished("g1") }]]

test("clocks, search, kibitzers and moves go on while a replay is shown", () => {
  const search = { season: "s", game: "g2", ply: 4, eval: "0.5" }
  const state = after(LIVE, ...REPLAY, next(3), ["clock", { season: "s", game: "g2", ...clock(9) }], ["search", search],
    ["kibitz", { season: "s", game: "g2", kibitzers: [{ desk: 0 }] }])
  assert.equal(shownGame(state).game.game, "g1")
  const back = shownGame(apply(state, ...place({})))
  assert.equal(back.followed, true)
  assert.deepEqual([back.game.plies.length, back.game.clock, back.game.search, back.game.kibitzers], [3, clock(9), search, [{ desk: 0 }]])
})

test("a game's end is known on the way back from a replay", () => {
  const state = after(LIVE, ...REPLAY, ["result", { season: "s", game: "g2", result: "0-1", details: "White mates", adjudicated: false }], place({}))
  const { status, result, clock: { thinking } } = shownGame(state).game
  assert.deepEqual([status, result, thinking], ["finished", "0-1", null])
})

test("tables follow the season; a chosen event stays until the address names none", () => {
  const final = [["season", season("final")], ["game", game("f1", "final", [])]]
  assert.equal(shownEvent(after(LIVE)), "league")
  assert.equal(shownEvent(after(LIVE, ...final)), "final")
  const chosen = after(LIVE, place({ season: "s", event: "bonus" }), ...final)
  assert.deepEqual([shownEvent(chosen), currentEvent(chosen)], ["bonus", "final"])
  assert.equal(shownEvent(apply(chosen, ...place({}))), "final")
  const replayed = after(LIVE, ...final, ...REPLAY)
  assert.equal(shownEvent(replayed), "league")
  assert.equal(shownEvent(apply(replayed, ...place({ season: "s" }))), "final")
})

test("an event's tables are looked at below the replay that is shown", () => {
  const state = after(LIVE, ...REPLAY, place({ season: "s", event: "final" }))
  assert.deepEqual([shownGame(state).game.game, shownEvent(state)], ["g1", "final"])
})

test("a ply that is known changes nothing, one after a gap asks for the game", () => {
  const state = after(LIVE)
  assert.equal(apply(state, ...next(2)), state)
  assert.equal(after(LIVE, next(4)).missed, true)
  assert.deepEqual([after(LIVE, next(4), ["game", game("g2")]).missed, after(LIVE, next(4), LIVE).missed], [false, false])
})

test("what concerns another season or game changes nothing", () => {
  const state = after(LIVE)
  for (const [kind, data] of [next(3, "g1"), ["clock", { season: "s", game: "g1" }], ["season", { season: "t" }], ["game", { season: "t", game: "g9" }],
    ["tables", { season: "t", events: ["league"] }], ["search", { season: "s", game: "g2", ply: 9 }], ["unheard", {}]]) {
    assert.equal(apply(state, kind, data), state, kind)
  }
})

test("the address of the game in flight follows it, whichever is here first", () => {
  const early = place({ season: "s", game: "g2" })
  for (const state of [after(LIVE, early, ["replay", { name: "g2", game: game("g2") }]), after(early, ["replay", { name: "g2", game: game("g2") }], LIVE), after(early, LIVE)]) {
    assert.deepEqual([state.asked, shownGame(state).followed], ["", true])
  }
})

test("a game whose record is here is not followed, however late the stream tells of its end", () => {
  const state = after(place({ season: "s", game: "g2" }), ["replay", { name: "g2", game: finished("g2") }], LIVE, ["game", game("g3")])
  assert.deepEqual([state.asked, shownGame(state).game.game, shownGame(state).followed], ["g2", "g2", false])
})

test("an engine's page stands below the game that is shown", () => {
  const state = after(LIVE, ...REPLAY, place({ season: "s", engine: "A" }))
  assert.deepEqual([state.tab, state.engine, shownGame(state).game.game], ["engine", "A", "g1"])
  assert.equal(redraws(state, apply(state, ...place({ season: "s", engine: "B" }))), "now")
})

test("an address names a ply of a replay or of the game in flight, and of no other", () => {
  const early = place({ season: "s", game: "g2", ply: 1 })
  assert.equal(after(LIVE, early, ["replay", { name: "g2", game: game("g2") }]).ply, 1)
  assert.equal(after(early, LIVE).ply, 1)
  assert.equal(after(early, LIVE, ["game", game("g3")]).ply, null)
  const replay = place({ season: "s", game: "g1", ply: 9 })
  assert.equal(after(LIVE, replay, ["replay", { name: "g1", game: finished("g1") }], ["game", game("g3")]).ply, 9)
})

test("a replay that nobody waits for any more is not shown; one that is not here is named", () => {
  const late = ["replay", { name: "g1", game: finished("g1") }]
  assert.equal(shownGame(after(LIVE, place({ season: "s", game: "g1" }), place({}), late)).game.game, "g2")
  const lost = after(LIVE, place({ season: "s", game: "x" }), ["replay", { name: "x", game: null }])
  assert.deepEqual(lost.lost, { what: "game", name: "x" })
  assert.deepEqual([apply(lost, ...place({})).lost, shownGame(lost).game.game], [null, "g2"])
})

test("another season's address leaves nothing of the old one", () => {
  const state = after(LIVE, ...REPLAY, place({ season: "t", event: "e" }))
  assert.deepEqual([state.wanted, state.live, state.replay, state.asked], ["t", null, null, ""])
})

test("a table is drawn again only where it may have changed", () => {
  const state = after(LIVE)
  const redrawn = (kind, data, from = state) => redraws(from, apply(from, kind, data))
  assert.equal(redraws(START, state), "now")
  assert.equal(redrawn("tables", { season: "s", events: ["league"] }), "later")
  assert.equal(redrawn("tables", { season: "s", events: ["final"] }), "")
  assert.equal(redrawn("outlook", {}), "")
  assert.equal(redrawn("tab", { tab: "forecast" }), "now")
  const forecast = apply(state, "tab", { tab: "forecast" })
  assert.equal(redrawn("outlook", {}, forecast), "later")
  assert.equal(redrawn("tables", { season: "s", events: ["league"] }, forecast), "")
  assert.equal(redrawn("snapshot", LIVE[1], forecast), "later")
  assert.equal(redrawn(...next(3)), "")
})

test("views see every state once and in order, also those that another view brings about", () => {
  const page = store()
  const seen = []
  page.subscribe((state, before) => { seen.push(`a ${before.tab} ${state.tab}`); if (state.tab === "graph") page.send("tab", { tab: "log" }) })
  page.subscribe((state, before) => seen.push(`b ${before.tab} ${state.tab}`))
  page.send("tab", { tab: "graph" })
  page.send("unheard", {})
  assert.deepEqual(seen, ["a standings graph", "b standings graph", "a graph log", "b graph log"])
})

test("what kibitzers thought stays for the graph: the last word on a position, also after the game's end", () => {
  const word = (ply, cp, desk = 0) => ({ desk, engine: "K", ply, eval: null, cp, mate: null, wdl: null, line: [] })
  const of = (...words) => ["kibitz", { season: "s", game: "g2", kibitzers: words }]
  const state = after(LIVE, of(word(1, 10)), of(word(1, 20), word(1, 5, 1)), of(), of(word(2, 30)))
  assert.deepEqual(state.live.kibitzed.map(({ desk, ply, cp }) => [desk, ply, cp]), [[0, 1, 20], [1, 1, 5], [0, 2, 30]])
  assert.deepEqual(state.live.kibitzers.length, 1)
  const ended = apply(state, "game", { ...state.live, status: "finished", kibitzed: undefined })
  assert.equal(ended.live.kibitzed, state.live.kibitzed)
})
