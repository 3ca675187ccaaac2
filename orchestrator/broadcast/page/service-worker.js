// @ts-check
// Keeps the page and the answers it was given last, so that it opens without a network. Before this the server writes what
// the page is made of: VERSION, and SHELL, the files of it. What is kept is shown only where the network has no answer.

const SCOPE = new URL(registration.scope).pathname
const PAGES = `farm page ${SCOPE} `
const ANSWERS = `farm answers ${SCOPE}`
const VERSIONS = 2 // of the page: tabs that were opened before a deploy go on with theirs
const MOST = 120 // answers that are kept; the oldest go
const API = /^api\/v1\/(?!live$|snapshot$|openapi|.*\/live$)/ // what flows is no answer to be kept
const FILE = /^static\/[0-9a-f]{16}\//

addEventListener("install", (event) => {
  skipWaiting() // the page that is open has all it needs
  event.waitUntil(caches.open(PAGES + VERSION).then((cache) => cache.addAll(SHELL)))
})

addEventListener("activate", (event) => event.waitUntil(tidy().then(() => clients.claim())))

async function tidy() {
  const versions = (await caches.keys()).filter((name) => name.startsWith(PAGES) && name !== PAGES + VERSION)
  await Promise.all(versions.slice(0, 1 - VERSIONS).map((name) => caches.delete(name)))
}

addEventListener("fetch", (event) => {
  const { request } = event
  const { origin, pathname } = new URL(request.url)
  if (request.method !== "GET" || origin !== location.origin || !pathname.startsWith(SCOPE)) return
  const place = pathname.slice(SCOPE.length)
  if (FILE.test(place)) event.respondWith(file(request))
  else if (API.test(place)) event.respondWith(answer(event))
  else if (request.mode === "navigate" ? place === "" || place === "index.html" : SHELL.includes(place)) event.respondWith(page(request, place))
})

/**
 * A file of a version, which is the same for good: a tab may be of the version before.
 * @param {Request} request
 */
async function file(request) {
  return (await caches.match(request)) ?? fetch(request)
}

/**
 * The page and what has no version in its name: the server's, else the one that is kept.
 * @param {Request} request
 * @param {string} place
 */
async function page(request, place) {
  const cache = await caches.open(PAGES + VERSION)
  return fresh(request, () => cache.match(request.mode === "navigate" ? "./" : place))
}

/** @param {FetchEvent} event */
async function answer(event) {
  const cache = await caches.open(ANSWERS)
  return fresh(event.request, () => cache.match(event.request), (told) => event.waitUntil(keep(cache, event.request, told)))
}

/**
 * Ask the network; where it is away, or the server is, return what is kept.
 * @param {Request} request
 * @param {() => Promise<Response | undefined>} kept
 * @param {(told: Response) => void} [keep]
 */
async function fresh(request, kept, keep) {
  /** @type {Response} */
  let told
  try {
    told = await fetch(request)
    if (told.ok) keep?.(told.clone())
    if (told.status < 500) return told
  } catch (error) {
    const found = await kept()
    if (found) return found
    throw error
  }
  return (await kept()) ?? told
}

/**
 * @param {Cache} cache
 * @param {Request} request
 * @param {Response} told
 */
async function keep(cache, request, told) {
  try {
    await cache.delete(request) // what is asked for often is not the oldest
    await cache.put(request, told)
    const all = await cache.keys()
    await Promise.all(all.slice(0, Math.max(0, all.length - MOST)).map((one) => cache.delete(one)))
  } catch { /* no room: the page needs none of it while the network is there */ }
}
