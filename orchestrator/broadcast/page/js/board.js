// @ts-check
// The board: position, last move, arrows of what both engines expect.

import { Chessboard, COLOR } from "../vendor/cm-chessboard/src/Chessboard.js"
import { Markers, MARKER_TYPE } from "../vendor/cm-chessboard/src/extensions/markers/Markers.js"
import { Arrows } from "../vendor/cm-chessboard/src/extensions/arrows/Arrows.js"
import { byId } from "./dom.js"

const ASSETS = `${document.documentElement.dataset.static ?? ""}vendor/cm-chessboard/assets/`
const QUIET = matchMedia("(prefers-reduced-motion: reduce)")

/**
 * The element around the drawing says what it shows; the drawing itself is silent.
 * @param {HTMLElement} element
 */
function silence(element) {
  const drawing = element.querySelector("svg")
  drawing?.removeAttribute("role")
  drawing?.setAttribute("aria-hidden", "true")
}

const CALM_MS = 1000 // a move glides when the one before is so old: fast games are shown as they are
const STYLE = { showCoordinates: true, animationDuration: QUIET.matches ? 0 : 180 }

/**
 * The library adds its extensions' verbs to each board that is made.
 * @typedef {Chessboard & {addMarker(type: object, square: string): void, removeMarkers(): void,
 *   addArrow(type: object, from: string, to: string): void, removeArrows(): void}} Extended
 */

export class Board {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element
    this.board = /** @type {Extended} */ (new Chessboard(element, {
      position: "8/8/8/8/8/8/8/8",
      assetsUrl: ASSETS,
      style: STYLE,
      extensions: [{ class: Markers }, { class: Arrows }],
    }))
    silence(element)
    this.turned = false
    this.wanted = "" // placement that is to be seen
    this.placed = "" // placement that the drawing has, or glides to
    this.placing = false
    this.changed = 0 // when another position was wanted last
    this.calm = true // no other one was wanted shortly before
  }

  /**
   * Show a position.
   * @param {string} fen
   * @param {readonly string[] | undefined} squares   those of the last move
   * @param {readonly (readonly [uci: string, type: object])[]} arrows
   * @param {string} label
   */
  show(fen, squares, arrows, label) {
    const placement = fen.split(" ")[0]
    if (placement !== this.wanted) {
      this.calm = performance.now() - this.changed > CALM_MS
      this.changed = performance.now()
    }
    this.wanted = placement
    if (!this.placing) this.#place()
    this.board.removeMarkers()
    for (const square of squares ?? []) this.board.addMarker(MARKER_TYPE.square, square)
    this.board.removeArrows()
    for (const [uci, type] of arrows) this.board.addArrow(type, uci.slice(0, 2), uci.slice(2, 4))
    this.element.setAttribute("aria-label", label)
  }

  /**
   * Draw the position that is wanted. The drawing's own queue would show all that came meanwhile,
   * one after the other, plies behind where frames are rare: here the newest follows the one that
   * is under way, without a glide, and those between are left out. Moves of fast games never glide.
   */
  async #place() {
    this.placing = true
    try {
      for (let glide = this.calm; this.placed !== this.wanted; glide = false) {
        this.placed = this.wanted
        await this.board.setPosition(this.placed, glide)
      }
    } finally {
      this.placing = false
    }
  }

  turn() {
    this.turned = !this.turned
    this.board.setOrientation(this.turned ? COLOR.black : COLOR.white)
  }
}

// Arrows have the colour of the engine whose opinion they are: the move it thinks of, the reply it expects.
export const THINKS = { white: { class: "arrow-white thinks" }, black: { class: "arrow-black thinks" } }
export const EXPECTS = { white: { class: "arrow-white" }, black: { class: "arrow-black" } }

/** A board without animation, arrows and words. */
export class SmallBoard {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.board = /** @type {Extended} */ (new Chessboard(element, {
      position: "8/8/8/8/8/8/8/8",
      assetsUrl: ASSETS,
      style: { showCoordinates: false, animationDuration: 0 },
      extensions: [{ class: Markers }],
    }))
    silence(element)
    this.turned = false
  }

  /**
   * @param {string} fen
   * @param {boolean} turned
   * @param {readonly string[]} squares
   */
  show(fen, turned, squares = []) {
    if (turned !== this.turned) this.board.setOrientation(turned ? COLOR.black : COLOR.white)
    this.turned = turned
    this.board.setPosition(fen.split(" ")[0], false)
    this.board.removeMarkers()
    for (const square of squares) this.board.addMarker(MARKER_TYPE.square, square)
  }
}

/** @type {?SmallBoard} */
let small = null

/**
 * Show a position of a variation beside the word that it belongs to.
 * @param {Element} target
 * @param {string} fen
 * @param {boolean} turned
 */
export function hover(target, fen, turned) {
  const box = byId("hover")
  box.hidden = false
  small ??= new SmallBoard(byId("hover-board"))
  small.show(fen, turned)
  const place = target.getBoundingClientRect()
  const left = Math.min(Math.max(8, place.left - 100), innerWidth - 256)
  const above = place.top > 262
  box.style.left = `${left}px`
  box.style.top = `${above ? place.top - 254 : place.bottom + 8}px`
}

export function unhover() {
  byId("hover").hidden = true
}
