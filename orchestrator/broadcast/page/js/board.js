// The board: position, last move, arrows of what both engines expect.

import { Chessboard, COLOR } from "../vendor/cm-chessboard/src/Chessboard.js"
import { Markers, MARKER_TYPE } from "../vendor/cm-chessboard/src/extensions/markers/Markers.js"
import { Arrows, ARROW_TYPE } from "../vendor/cm-chessboard/src/extensions/arrows/Arrows.js"
import { byId } from "./dom.js"

const ASSETS = "vendor/cm-chessboard/assets/"
const QUIET = matchMedia("(prefers-reduced-motion: reduce)")

/** The element around the drawing says what it shows; the drawing itself is silent. */
function silence(element) {
  const drawing = element.querySelector("svg")
  drawing.removeAttribute("role")
  drawing.setAttribute("aria-hidden", "true")
}

const STYLE = { showCoordinates: true, animationDuration: QUIET.matches ? 0 : 180 }

export class Board {
  constructor(element) {
    this.element = element
    this.board = new Chessboard(element, {
      position: "8/8/8/8/8/8/8/8",
      assetsUrl: ASSETS,
      style: STYLE,
      extensions: [{ class: Markers }, { class: Arrows }],
    })
    silence(element)
    this.turned = false
    this.fen = ""
  }

  /** Show a position; `arrows` are [uci, type] pairs. */
  show(fen, squares, arrows, label) {
    const placement = fen.split(" ")[0]
    if (placement !== this.fen) this.board.setPosition(placement, true)
    this.fen = placement
    this.board.removeMarkers()
    for (const square of squares ?? []) this.board.addMarker(MARKER_TYPE.square, square)
    this.board.removeArrows()
    for (const [uci, type] of arrows) this.board.addArrow(type, uci.slice(0, 2), uci.slice(2, 4))
    this.element.setAttribute("aria-label", label)
  }

  turn() {
    this.turned = !this.turned
    this.board.setOrientation(this.turned ? COLOR.black : COLOR.white)
  }
}

export const EXPECTED = ARROW_TYPE.info
export const THINKING = ARROW_TYPE.success

let small = null

/** Show a position of a variation beside the word that it belongs to. */
export function hover(target, fen, turned) {
  const box = byId("hover")
  box.hidden = false
  small ??= new Chessboard(byId("hover-board"), {
    position: fen.split(" ")[0],
    assetsUrl: ASSETS,
    style: { showCoordinates: false, animationDuration: 0 },
  })
  small.setOrientation(turned ? COLOR.black : COLOR.white)
  small.setPosition(fen.split(" ")[0], false)
  const place = target.getBoundingClientRect()
  const left = Math.min(Math.max(8, place.left - 100), innerWidth - 256)
  const above = place.top > 262
  box.style.left = `${left}px`
  box.style.top = `${above ? place.top - 254 : place.bottom + 8}px`
}

export function unhover() {
  byId("hover").hidden = true
}
