// The farm's time of day in the page, and the colours that say whose a thing is.

import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { test } from "node:test"

Object.assign(globalThis, { document: { documentElement: { dataset: {} } } })
const { note, now } = await import("../../../orchestrator/broadcast/page/js/feed.js")

const HOUR = 3600_000 // ms

test("a viewer's clock that is set meanwhile changes no time of the farm", () => {
  const told = Date.now()
  note(told)
  const { now: real } = Date
  try {
    Date.now = () => real() + HOUR
    assert.ok(Math.abs(now() - told) < HOUR / 2)
    note(real()) // the next message of the server, too
    assert.ok(Math.abs(now() - told) < HOUR / 2)
  } finally {
    Date.now = real
  }
})

/** A colour's hue, in degrees. */
function hue(colour) {
  const [r, g, b] = colour.match(/[0-9a-f]{2}/gi).map((part) => Number.parseInt(part, 16))
  const [most, least] = [Math.max(r, g, b), Math.min(r, g, b)]
  const at = most === r ? (g - b) / (most - least) : most === g ? 2 + (b - r) / (most - least) : 4 + (r - g) / (most - least)
  return (60 * at + 360) % 360
}

test("an arrow has the colour of the engine whose opinion it is, as its lines in the graphs have", () => {
  const read = (place) => readFileSync(new URL(`../../../orchestrator/broadcast/page/${place}`, import.meta.url), "utf8")
  const [style, board] = [read("style.css"), read("js/board.js")]
  for (const side of ["white", "black"]) {
    const [, arrow] = new RegExp(`\\.arrow-${side} \\{ --arrow: (#[0-9a-f]{6})`).exec(style)
    for (const [, own] of style.matchAll(new RegExp(`--${side}-side: (#[0-9a-f]{6})`, "g"))) {
      const apart = Math.abs(hue(arrow) - hue(own))
      assert.ok(Math.min(apart, 360 - apart) < 20, `${side}: ${arrow} beside ${own}`)
    }
    assert.equal([...board.matchAll(new RegExp(`${side}: \\{ class: "arrow-${side}[ "]`, "g"))].length, 2)
  }
})
