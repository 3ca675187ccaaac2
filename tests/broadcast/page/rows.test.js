// Long tables: what a search finds, and the window that is shown of it.

import assert from "node:assert/strict"
import { test } from "node:test"

import { finds, WINDOW, windowed } from "../../../orchestrator/broadcast/page/js/rows.js"

const rows = Array.from({ length: 2000 }, (_, at) => ({ at, text: `${at % 2 ? "Stockfish" : "Leela"} B${at % 10}0` }))
const shown = (words, from = null, running = -1) => windowed(rows, (row) => row.text, words, from, (row) => row.at === running)

test("of many rows a window is shown, around the game that is played", () => {
  const { found, from, shown: some } = shown("", null, 1000)
  assert.deepEqual([found, from, some.length, some[WINDOW / 2].at], [2000, 1000 - WINDOW / 2, WINDOW, 1000])
  assert.deepEqual([shown("").from, shown("", null, 1999).from, shown("", 5000).from], [0, 2000 - WINDOW, 2000 - WINDOW])
})

test("each word has to be found, in any case and order", () => {
  assert.equal(shown("b30 STOCK").found, 200)
  assert.deepEqual(shown("b30 leela").shown, [])
  assert.equal(shown("  ").found, 2000)
})

test("a row of any table is found by all its words, and by none at all", () => {
  assert.deepEqual(["Igel 2.3 won", "igel lost", "Laser won"].filter(finds("  WON igel ")), ["Igel 2.3 won"])
  assert.equal(finds(" ")("anything"), true)
})
