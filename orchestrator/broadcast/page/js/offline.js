// @ts-check
// Without a network: the page and its answers are kept by the service worker, where things stood by the page itself. A
// browser has both over HTTPS and on its own machine only; elsewhere an open page keeps what it shows.

const CACHE = `farm-state ${new URL("./", location.href).pathname}`
const FIRST_MS = 3000 // nothing is fetched for later while the page itself is on its way
/** @param {string} season */
const place = (season) => new URL(`./kept-state?season=${encodeURIComponent(season)}`, location.href).href

/**
 * Let the browser keep the page; not in a frame of another site.
 * @param {() => void} first   is called when it begins to keep answers that the page has had already
 */
export function keepPage(first) {
  const { serviceWorker } = navigator
  if (!serviceWorker || window.top !== window) return
  setTimeout(() => {
    if (!serviceWorker.controller) serviceWorker.addEventListener("controllerchange", first, { once: true })
    serviceWorker.register("service-worker.js").catch(() => { /* a browser that keeps nothing: the page is there while the network is */ })
  }, FIRST_MS)
}

/**
 * Keep where things stand in a season ("" is the one that the server shows).
 * @param {string} season
 * @param {import("./store.js").Happenings["snapshot"]} snapshot
 */
export async function keepState(season, snapshot) {
  try {
    await (await caches.open(CACHE)).put(place(season), Response.json(snapshot))
  } catch { /* a browser that keeps nothing, or has no room */ }
}

/**
 * Where things stood when the page was open last, null where that is not known.
 * @param {string} season
 * @returns {Promise<?import("./store.js").Happenings["snapshot"]>}
 */
export async function lastState(season) {
  try {
    return (await (await (await caches.open(CACHE)).match(place(season)))?.json()) ?? null
  } catch {
    return null
  }
}
