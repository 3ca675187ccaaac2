// @ts-check
// The documents of the read API, and its time of day.

import { AGAIN_MS } from "./version.js"

export const ROOT = `${document.documentElement.dataset.root ?? ""}api/v1`

/** @type {Map<string, Promise<{status: number, value: any}>>} */
const asked = new Map() // questions without an answer yet, by place

/**
 * Fetch a document, when the server is back where it is away. Null where there is none.
 * @template {string} Place
 * @param {Place} place   below the API's root
 * @returns {Promise<?Api.Answer<Place>>}
 */
export async function get(place) {
  const answer = asked.get(place) ?? ask(place).finally(() => asked.delete(place))
  asked.set(place, answer)
  return (await answer).value
}

/** @param {string} place */
async function ask(place) {
  for (;;) {
    try {
      const answer = await fetch(`${ROOT}/${place}`)
      return { status: answer.status, value: answer.ok ? await answer.json() : null }
    } catch {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
  }
}

/** Where things stand as the server shows it, null where it cannot be asked now: the stream asks again and again. */
export async function snapshot() {
  try {
    const answer = await fetch(`${ROOT}/snapshot`)
    /** @type {?Api.Snapshot} */
    const told = answer.ok ? await answer.json() : null
    if (told) note(told.now_ms)
    return told
  } catch {
    return null
  }
}

/**
 * Say whether the API knows no such document.
 * @param {string} place
 */
export async function unknown(place) {
  return (await ask(place)).status === 404
}

/** @type {?number} */
let offset = null

/**
 * Take the server's time of day from what it has just sent.
 * @param {number} serverMs
 */
export function note(serverMs) {
  // By the time since the page was opened: a viewer's time of day may be set while one looks.
  const seen = serverMs - performance.now()
  // The least delayed message tells the difference best.
  offset = offset === null ? seen : Math.max(offset - 0.05, seen)
}

/** The farm's time of day. */
export const now = () => (offset === null ? Date.now() : performance.now() + offset)
