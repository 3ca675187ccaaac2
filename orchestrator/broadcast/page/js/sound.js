// @ts-check
// Sound at moves and at a game's end: off until a spectator wants it.

import { byId } from "./dom.js"
import { kept } from "./kept.js"

/** @typedef {"move" | "capture" | "check" | "end"} Sound */

/** @type {Readonly<Record<Sound, readonly (readonly [pitch: number, start: number, length: number])[]>>} */
const NOTES = { move: [[420, 0, 0.06]], capture: [[300, 0, 0.08]], check: [[520, 0, 0.06], [660, 0.08, 0.08]], end: [[520, 0, 0.15], [440, 0.18, 0.15], [350, 0.36, 0.3]] } // Hz, start and length in s
const LOUD = 0.12

/** @type {?AudioContext} */
let context = null
let on = false

/** Whether sound is wanted: then a hidden tab goes on listening. */
export const wanted = () => on

/**
 * Sound a move by what its notation says, or the end of a game.
 * @param {string} san
 */
export const ofMove = (san) => play(/[+#]/.test(san) ? "check" : san.includes("x") ? "capture" : "move")

/** @param {Sound} name */
export function play(name) {
  if (!on || context?.state !== "running") return
  for (const [pitch, start, length] of NOTES[name]) {
    const [tone, volume, at] = [context.createOscillator(), context.createGain(), context.currentTime + start]
    tone.frequency.value = pitch
    tone.type = "triangle"
    volume.gain.setValueAtTime(LOUD, at)
    volume.gain.exponentialRampToValueAtTime(0.001, at + length)
    tone.connect(volume).connect(context.destination)
    tone.start(at)
    tone.stop(at + length)
  }
}

/** @param {boolean} to */
function turn(to) {
  on = to
  byId("sound").setAttribute("aria-pressed", String(on))
  if (!on) return
  context ??= new AudioContext()
  context.resume() // a browser allows it after a click only
}

byId("sound").addEventListener("click", () => {
  turn(!on)
  kept.set("farm-sound", on ? "on" : "off")
  play("move")
})
if (kept.get("farm-sound") === "on") {
  turn(true)
  document.addEventListener("pointerdown", () => context?.resume(), { once: true })
}
