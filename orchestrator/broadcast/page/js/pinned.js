// @ts-check
// A variation on a board of its own: it stays while the game goes on, until it is closed.

import { byId } from "./dom.js"
import { SmallBoard } from "./board.js"
import { t } from "./texts.js"

/** @type {?SmallBoard} */
let board = null
/** @type {?{title: string, line: readonly Api.Step[], at: number, turned: boolean}} */
let shown = null

/**
 * Put a variation on the board, at one of its steps.
 * @param {string} title
 * @param {readonly Api.Step[]} line
 * @param {number} at
 * @param {boolean} turned
 */
export function pin(title, line, at, turned) {
  shown = { title, line, at, turned }
  byId("pinned").hidden = false
  board ??= new SmallBoard(byId("pinned-board"))
  draw()
}

export function unpin() {
  shown = null
  byId("pinned").hidden = true
}

/** @param {number} by */
function step(by) {
  if (!shown) return
  shown.at = Math.max(0, Math.min(shown.line.length - 1, shown.at + by))
  draw()
}

function draw() {
  if (!board || !shown) return
  const { title, line, at, turned } = shown
  const { fen, san, uci } = line[at]
  board.show(fen, turned, [uci.slice(0, 2), uci.slice(2, 4)])
  byId("pinned-title").textContent = title
  byId("pinned-step").textContent = t("pinned.step", { at: at + 1, of: line.length, move: san })
  byId("pinned-board").setAttribute("aria-label", t("pinned.after", { move: san }))
}

/** @type {Readonly<Record<string, () => void>>} */
const ACTS = { back: () => step(-1), on: () => step(1), close: unpin }

byId("pinned").addEventListener("click", ({ target }) => {
  const button = /** @type {?HTMLElement} */ (/** @type {Element} */ (target).closest("[data-pin]"))
  ACTS[button?.dataset.pin ?? ""]?.()
})
byId("pinned").addEventListener("keydown", (event) => {
  const act = { ArrowLeft: "back", ArrowRight: "on", Escape: "close" }[event.key]
  if (!act) return
  event.preventDefault()
  event.stopPropagation() // these keys else move through the game
  ACTS[act]()
})
byId("pinned-board").addEventListener("wheel", (event) => {
  event.preventDefault()
  step(Math.sign(event.deltaY))
}, { passive: false })
