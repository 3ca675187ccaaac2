// @ts-check
// The page's own files have the name of their version: after a deploy those of an open tab are gone.

export const AGAIN_MS = 3000 // a server that cannot be reached, or has no room, is asked again so soon
const RENEWED = "farm-renewed"
const SELDOM_MS = 60000

/**
 * Fetch a file of this version, when the server is back where it is away. Where the server has another version the page
 * is read again, once: what stands between may still hand out the old one.
 * @param {string} place
 */
export async function file(place) {
  for (;;) {
    let pause = AGAIN_MS
    try {
      const answer = await fetch(place)
      if (answer.ok) return answer
      if (answer.status === 404) {
        renew(place)
        pause = SELDOM_MS
      }
    } catch { /* the server is away for a moment */ }
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
}

/** @type {?Promise<typeof import("./later.js")>} */
let rest = null

/** What the first view does not need: fetched when it is asked for first, and kept. */
export function later() {
  rest ??= fetchLater()
  rest.catch(() => { rest = null }) // it is tried again when it is asked for again
  return rest
}

async function fetchLater() {
  await file(`${document.documentElement.dataset.static ?? ""}js/later.js`) // which waits until the server is back
  return import("./later.js")
}

/** @param {string} place */
function renew(place) {
  try {
    if (sessionStorage.getItem(RENEWED) === place) return
    sessionStorage.setItem(RENEWED, place)
    location.reload()
  } catch { /* a browser that keeps nothing could read it again for ever */ }
}
