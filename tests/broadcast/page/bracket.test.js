// Who comes to the matches of a Cup that have not been drawn.

import assert from "node:assert/strict"
import { test } from "node:test"

import { coming } from "../../../orchestrator/broadcast/page/js/bracket.js"

const side = (name, winner = false) => ({ engine: name.toLowerCase(), name, seed: name.charCodeAt(0) - 64, score: 0, winner })
const match = (number, upper, lower) => ({ match: number, status: "played", games: [], sides: [upper, lower] })
const SEMIFINAL = [match(1, side("A", true), side("B")), match(2, side("C"), side("D"))]
const ROUNDS = [{ id: "semifinal", listed: false, matches: SEMIFINAL }, { id: "bronze", listed: true, matches: [] }, { id: "final", listed: true, matches: [] }]
const WAYS = [{ from: "semifinal", to: "bronze", places: [3, 4] }, { from: "semifinal", to: "final", places: [1, 2] }]
const said = (made, id) => made.get(id)?.map(({ match: number, sides }) => [number, ...sides.map(({ feeds, lost, name, seed, among }) => [feeds, lost, name, seed, among.join()])])

test("winners go on to the final and losers to the bronze match; of a match that is not over both may come", () => {
  const made = coming(ROUNDS, WAYS)
  assert.deepEqual(said(made, "final"), [[1, ["semifinal 1", false, "A", 1, "A,B"], ["semifinal 2", false, undefined, undefined, "C,D"]]])
  assert.deepEqual(said(made, "bronze"), [[1, ["semifinal 1", true, "B", 2, "A,B"], ["semifinal 2", true, undefined, undefined, "C,D"]]])
  assert.equal(made.has("semifinal"), false)
})

test("a round behind one that has not been drawn is fed by its matches", () => {
  const quarter = [1, 2, 3, 4].map((number) => match(number, side("A", number === 1), side("B")))
  const rounds = [{ id: "quarterfinal", listed: false, matches: quarter }, { id: "semifinal", listed: true, matches: [] }, { id: "final", listed: true, matches: [] }]
  const made = coming(rounds, [{ from: "quarterfinal", to: "semifinal", places: [1, 2, 3, 4] }, { from: "semifinal", to: "final", places: [1, 2] }])
  assert.deepEqual(said(made, "semifinal").map(([number, ...sides]) => [number, ...sides.map(([feeds]) => feeds)]), [[1, "quarterfinal 1", "quarterfinal 2"], [2, "quarterfinal 3", "quarterfinal 4"]])
  assert.deepEqual(said(made, "final"), [[1, ["semifinal 1", false, undefined, undefined, ""], ["semifinal 2", false, undefined, undefined, ""]]])
})

test("a bye's engine goes on, and nobody is its loser", () => {
  const made = coming([{ ...ROUNDS[0], matches: [match(1, side("A", true), null), SEMIFINAL[1]] }, ...ROUNDS.slice(1)], WAYS)
  assert.equal(made.get("final")[0].sides[0].name, "A")
  assert.equal(made.get("bronze")[0].sides[0].name, undefined)
})

test("nothing is said of a round that is drawn by seeds, by lot, or from several events", () => {
  assert.equal(coming(ROUNDS.map((one) => ({ ...one, listed: false })), WAYS).size, 0)
  assert.equal(coming(ROUNDS, [...WAYS, { from: "league", to: "final", places: [1, 2] }]).has("final"), false)
  assert.equal(coming(ROUNDS, [{ from: "semifinal", to: "final", places: [1, 2, 3] }]).size, 0)
  assert.equal(coming(ROUNDS, [{ from: "semifinal", to: "final", places: [4, 5] }]).size, 0)
  assert.equal(coming(ROUNDS, [{ from: "league", to: "final", places: [1, 2] }]).size, 0)
})
