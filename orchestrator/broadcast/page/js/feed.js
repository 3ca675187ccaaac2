// The stream of what happens, and the documents of the read API.

const ROOT = "api/v1"
const AGAIN_MS = 3000 // a server that cannot be reached, or has no room, is asked again so soon
const SILENT_MS = 35000 // a link is lost when nothing comes for so long: the server speaks every 15 s
const LOOK_MS = 5000

/** Fetch a document, when the server is back where it is away. Null where there is none. */
export async function get(place) {
  return (await ask(place)).value
}

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

const KINDS = ["snapshot", "game", "ply", "clock", "search", "kibitz", "result", "season", "tables", "outlook", "viewers"]

/** Say whether the API knows no such document. */
export async function unknown(place) {
  return (await ask(place)).status === 404
}

/**
 * Listen to the stream until it is closed; `take` gets each event's kind and data. The browser reconnects by itself where it hears of the
 * loss; where it does not (another network, a machine that slept), the silence tells.
 */
export function listen(season, take, state) {
  let source = null
  let again = null
  let heard = 0
  function open() {
    clearTimeout(again)
    source?.close()
    heard = Date.now()
    source = new EventSource(`${ROOT}/live${season ? `?season=${encodeURIComponent(season)}` : ""}`)
    source.onopen = () => state(true)
    source.onerror = () => {
      state(false)
      // Refused for good (full, restarted): the browser gives up, we do not.
      if (source.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN_MS)
    }
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => {
        heard = Date.now()
        const data = JSON.parse(event.data)
        if (data.now_ms) note(data.now_ms)
        take(kind, data)
      })
    }
  }
  const watch = setInterval(() => {
    if (Date.now() - heard < SILENT_MS) return
    state(false)
    open()
  }, LOOK_MS)
  open()
  return { close() { clearInterval(watch); clearTimeout(again); source.close() } }
}

let offset = null

function note(serverMs) {
  const seen = serverMs - Date.now()
  // The least delayed message tells the clocks' difference best.
  offset = offset === null ? seen : Math.max(offset - 0.05, seen)
}

/** The farm's time of day. */
export const now = () => Date.now() + (offset ?? 0)
