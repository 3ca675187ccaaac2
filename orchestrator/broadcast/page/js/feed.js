// The stream of what happens, and the documents of the read API.

const ROOT = "api/v1"
const cache = new Map()

/** Fetch a document; the browser's cache revalidates it. Null where there is none. */
export async function get(place, fresh = true) {
  if (!fresh && cache.has(place)) return cache.get(place)
  const answer = await fetch(`${ROOT}/${place}`)
  if (!answer.ok) return null
  const value = await answer.json()
  cache.set(place, value)
  return value
}

const KINDS = ["snapshot", "game", "ply", "clock", "search", "kibitz", "result", "season", "tables", "outlook", "viewers"]

/** Say whether the API knows no such document; a server that is away says nothing. */
export async function unknown(place) {
  return (await fetch(`${ROOT}/${place}`)).status === 404
}

/** Listen to the stream until it is closed; the browser reconnects by itself. */
export function listen(season, handlers, state) {
  let source = null
  let again = null
  function open() {
    source = new EventSource(`${ROOT}/live${season ? `?season=${encodeURIComponent(season)}` : ""}`)
    source.onopen = () => state(true)
    source.onerror = () => {
      state(false)
      // Refused for good (full, restarted): the browser gives up, we do not.
      if (source.readyState === EventSource.CLOSED) again = setTimeout(open, 3000)
    }
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => {
        const data = JSON.parse(event.data)
        if (data.now_ms) note(data.now_ms)
        handlers[kind]?.(data)
      })
    }
  }
  open()
  return { close() { clearTimeout(again); source.close() } }
}

let offset = null

function note(serverMs) {
  const seen = serverMs - Date.now()
  // The least delayed message tells the clocks' difference best.
  offset = offset === null ? seen : Math.max(offset - 0.05, seen)
}

/** The farm's time of day. */
export const now = () => Date.now() + (offset ?? 0)
