// What follows from positions: material, where variations part, addresses.

import assert from "node:assert/strict"
import { test } from "node:test"

import { analysis, chances, material, parting, plyAddress } from "../../../orchestrator/broadcast/page/js/position.js"

const line = (first, sans) => ({ first, line: sans.split(" ").filter(Boolean).map((san) => ({ san })) })
const PLIES = line(1, "e4 e5 Nf3 Nc6").line

test("material is told by what one side has more, and by points", () => {
  assert.deepEqual(material("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"), { white: { signs: "", ahead: 0 }, black: { signs: "", ahead: -0 } })
  assert.deepEqual(material("4k3/ppp5/8/8/8/8/P7/R3KB2 w - - 0 1"), { white: { signs: "♜♝", ahead: 6 }, black: { signs: "♟♟", ahead: -6 } })
})

test("variations part at the first ply that differs, in whichever order they are given", () => {
  assert.equal(parting([line(3, "Nf3 Nc6 Bb5 a6"), line(4, "Nc6 Bc4 Bc5")], PLIES), 5)
  assert.equal(parting([line(4, "Nc6 Bc4 Bc5"), line(3, "Nf3 Nc6 Bb5 a6")], PLIES), 5)
})

test("a variation parts where another move was played", () => {
  assert.equal(parting([line(3, "Nf3 Nf6"), line(5, "Bb5")], PLIES), 4)
})

test("variations that agree, or are not there, part nowhere", () => {
  assert.equal(parting([line(3, "Nf3 Nc6 Bb5"), line(4, "Nc6 Bb5 a6 Ba4")], PLIES), null)
  assert.equal(parting([line(3, "Nf3 Nc6"), line(7, "d4")], PLIES), null)
  assert.equal(parting([line(3, ""), line(4, "Nc6")], PLIES), null)
})

test("addresses name a ply here, and the position at Lichess", () => {
  assert.equal(plyAddress({ season: "s", game: "match/1" }, 7), "#/s/game/match%2F1/7")
  assert.equal(analysis("8/8/8/8/8/8/8/8 w - - 0 1", true), "https://lichess.org/analysis/chess960/8/8/8/8/8/8/8/8_w_-_-_0_1")
})

test("chances are the engine's own, else those of the eval, in which nobody draws", () => {
  const cases = [
    [{ wdl: [300, 600, 100], eval: "0.20", cp: 20, mate: null }, { white: 30, draw: 60, black: 10, own: true }],
    [{ wdl: [333, 333, 333], eval: "0.20", cp: 20, mate: null }, { white: 100 / 3, draw: 100 / 3, black: 100 / 3, own: true }],
    [{ wdl: null, eval: "0.00", cp: 0, mate: null }, { white: 50, draw: 0, black: 50, own: false }],
    [{ eval: "M5", cp: null, mate: 3 }, { white: 100, draw: 0, black: 0, own: false }],
    [{ eval: "-M0", cp: null, mate: 0 }, { white: 0, draw: 0, black: 100, own: false }],
    [{ eval: null }, null], [null, null], [undefined, null],
  ]
  for (const [said, told] of cases) assert.deepEqual(chances(said), told)
  assert.equal(chances({ eval: "1.00", cp: 100, mate: null }).white.toFixed(1), "59.1")
  assert.equal(chances({ eval: "-1.00", cp: -100, mate: null }).black.toFixed(1), "59.1")
})
