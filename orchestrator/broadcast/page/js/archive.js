// @ts-check
// A season on a web host without a farm (`farm export-site`): what the API answers lies in files, and
// nothing happens any more. It is loaded before the page, which knows nothing of it.

const ROOT = "api/v1/"
const BEAT_MS = 15000 // as the farm's own server breaks its silence
const answers = window.fetch.bind(window)

/**
 * All plies of a game with their variations, packed: one file a game, not one a ply.
 * @param {string} place
 */
async function plies(place) {
  const answer = await answers(`${ROOT}${place}/plies.bin`)
  if (!answer.body || !answer.ok) return answer
  return new Response(answer.body.pipeThrough(new DecompressionStream("gzip")))
}

window.fetch = async (asked, options) => {
  const place = typeof asked === "string" && asked.startsWith(ROOT) ? asked.slice(ROOT.length) : null
  if (place === null) return answers(asked, options)
  const [, game, number] = /^(.*)\/plies\/(\d+)$/.exec(place) ?? []
  if (!game) return answers(`${ROOT}${place}.json`, options)
  const found = await plies(game)
  return found.ok ? Response.json((await found.json())[Number(number) - 1] ?? null) : found
}

/** The stream: where things stand, and then silence. */
class Silence extends EventTarget {
  static CLOSED = 2
  readyState = 0
  /** @type {(() => void) | null} */
  onopen = null

  constructor() {
    super()
    this.begin()
  }

  async begin() {
    const told = await (await answers(`${ROOT}snapshot.json`)).json()
    if (this.readyState) return
    this.readyState = 1
    this.onopen?.()
    this.tell("snapshot", { ...told, now_ms: Date.now() })
    this.beat = setInterval(() => this.tell("viewers", { count: null }), BEAT_MS)
  }

  /**
   * @param {string} kind
   * @param {object} data
   */
  tell(kind, data) {
    this.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(data) }))
  }

  close() {
    this.readyState = Silence.CLOSED
    clearInterval(this.beat)
  }
}

Object.assign(window, { EventSource: Silence, BroadcastChannel: undefined }) // each tab has the files: none has to be told by another
document.documentElement.dataset.archive = "" // the page says so where it would say that it is live

const sheet = new CSSStyleSheet()
sheet.replaceSync(".filters:has(a) { display: none }") // a file of games cannot be filtered
document.adoptedStyleSheets = [sheet]
