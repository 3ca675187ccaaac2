// An engine's results by opponent, counted from the schedule's rows.

import assert from "node:assert/strict"
import { test } from "node:test"

import { performance, total, versus } from "../../../orchestrator/broadcast/page/js/records.js"

const GAMES = [
  { white: "A", black: "B", result: "1-0", game: "1" },
  { white: "B", black: "A", result: "1-0", game: "2" },
  { white: "A", black: "B", result: "1/2-1/2", game: "3", annulled: true },
  { white: "C", black: "A", result: "0-1", game: "4" },
  { white: "B", black: "C", result: "0-1", game: "5" },
  { white: "A", black: "C", result: null, game: "6" },
]

test("results are the engine's own, by opponent; annulled games are listed and not counted", () => {
  const [b, c] = versus(GAMES, "A")
  assert.deepEqual([b.opponent, b.points, b.played, b.wins, b.draws, b.losses], ["B", 1, 2, 1, 0, 1])
  assert.deepEqual(b.games.map(({ game, sign, annulled }) => [game, sign, annulled]), [["1", "1", false], ["2", "0", false], ["3", "=", true]])
  assert.deepEqual([c.opponent, c.points, c.played], ["C", 1, 1])
})

test("a performance is the rating at which the results were to be expected", () => {
  const ratings = new Map([["b", 3000], ["c", 3200]])
  const game = (white, black, result, annulled = false) => ({ white, black, result, annulled })
  const games = [game("a", "b", "1-0"), game("c", "b", "1-0"), game("b", "a", "1-0"), game("a", "b", "1-0", true), game("a", "x", "1-0"), game("a", "b", "1-0"), game("a", "b", "1-0"), game("a", "b", null)]
  const told = performance(games, ratings, "a")
  assert.deepEqual(told.map(({ game: number }) => number), [2, 4, 5]) // after one win there is none; x has no rating
  const wanted = [3000, 3000 + 400 * Math.log10(2), 3000 + 400 * Math.log10(3)]
  for (const [at, { rating }] of told.entries()) assert.ok(Math.abs(rating - wanted[at]) < 0.5, `${rating} beside ${wanted[at]}`)
  assert.deepEqual(performance(games, ratings, "nobody"), [])
})

test("all opponents together are the engine's score", () => {
  assert.deepEqual(total(versus(GAMES, "A")), { points: 2, played: 3, wins: 2, draws: 0, losses: 1 })
  assert.deepEqual(versus(GAMES, "nobody"), [])
})
