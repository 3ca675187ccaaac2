// @ts-check
// The stream of what happens: one connection a browser, whose tabs tell each other.

import { note, ROOT } from "./feed.js"
import { AGAIN_MS } from "./version.js"

const SILENT_MS = 35000 // a link is lost when nothing comes for so long: the server speaks every 15 s
const LOOK_MS = 5000
const UNANSWERED = 6 // questions, one each look: the tab that leads does nothing any more
const HIDDEN_MS = 60000 // a tab that nobody has looked at for so long gives its stream back
const ALONE_MS = 5000 // the same where tabs cannot share one: a browser has six connections for all of them
/** @type {readonly (keyof Api.Events)[]} */
const KINDS = ["snapshot", "game", "ply", "clock", "search", "kibitz", "result", "season", "tables", "outlook", "viewers"]

/**
 * Gets what happens, a snapshot first.
 * @typedef {<Kind extends keyof Happenings>(kind: Kind, data: Happenings[Kind]) => void} Take
 * @typedef {import("./store.js").Happenings} Happenings
 * @typedef {(on: boolean) => unknown} Linked   gets whether the link stands
 * @typedef {() => ?Happenings["snapshot"]} Picture   returns the snapshot as it would be now, null before the first
 */

/**
 * Listen to the stream of a season while the tab is looked at.
 *
 * One tab of a browser holds a lock and the connection; it tells the others over a channel, and a tab that
 * opens is told where things stand. When the tab goes, or is silent for too long, another one takes over.
 * @param {string} season   "" is the one that the server shows
 * @param {Take} take
 * @param {Linked} linked
 * @param {Picture} picture
 * @param {() => boolean} stays   whether a hidden tab is wanted, too
 * @param {string} [after]   the event that was told last, "" before the first
 * @returns {{close: () => void}}
 */
export function listen(season, take, linked, picture, stays, after = "") {
  const shares = Boolean(navigator.locks && window.BroadcastChannel)
  /** @type {?{close: () => void}} */
  let sharing = null
  let timer = 0
  let from = after // it is too old for any but the first connection
  const open = () => {
    sharing ??= shares ? share(season, take, linked, picture, from) : connect(season, take, linked, from)
    from = ""
  }
  const leave = () => { sharing?.close(); sharing = null; linked(false) }
  const look = () => {
    clearTimeout(timer)
    if (document.visibilityState === "hidden" && !stays()) timer = setTimeout(leave, shares ? HIDDEN_MS : ALONE_MS)
    else open()
  }
  /** @param {PageTransitionEvent} event */
  const restored = (event) => { if (event.persisted) { leave(); open() } } // the browser kept the page, not its connections
  document.addEventListener("visibilitychange", look)
  addEventListener("pageshow", restored)
  open()
  look()
  return {
    close() {
      document.removeEventListener("visibilitychange", look)
      removeEventListener("pageshow", restored)
      clearTimeout(timer)
      sharing?.close()
    },
  }
}

/**
 * Hold the connection for all tabs, or be told by the one that does.
 * @param {string} season
 * @param {Take} take
 * @param {Linked} linked
 * @param {Picture} picture
 * @param {string} after
 */
function share(season, take, linked, picture, after) {
  const name = `farm ${new URL(ROOT, location.href)} ${season}`
  const own = crypto.getRandomValues(new Uint32Array(2)).join()
  const channel = new BroadcastChannel(name)
  const ended = new AbortController()
  /** @type {?{close: () => void}} */
  let source = null // of the tab that holds the lock
  /** @type {((value: unknown) => void) | null} */
  let release = null
  let on = false
  let told = false // whether a snapshot has come
  let unanswered = 0 // questions to the tab that leads
  let from = after // unless another tab has told of what came later

  /**
   * Stand in line for the lock; or take it from a tab that answers nobody any more.
   * @param {boolean} steal
   */
  function queue(steal) {
    const wish = steal ? { steal } : { signal: ended.signal }
    const held = navigator.locks.request(name, wish, () => ended.signal.aborted ? null : new Promise((resolve) => { release = resolve; lead() }))
    held.catch(({ name: why }) => {
      if (ended.signal.aborted) return
      if (why !== "AbortError") { lead(); return } // a frame without an origin has no locks
      source?.close() // the lock was taken from this tab
      source = null
      queue(false)
    })
  }
  function lead() {
    /** @type {Take} */
    const pass = (kind, data) => { channel.postMessage({ kind, data }); take(kind, data) }
    source = connect(season, pass, (is) => {
      on = is
      channel.postMessage({ on })
      linked(on)
    }, from)
  }
  /** Ask the tab that leads whether it is there, and for a snapshot where none has come. */
  const ask = () => {
    unanswered += 1
    channel.postMessage({ asks: own, wants: !told })
  }
  channel.onmessage = ({ data: said }) => {
    if (said.asks) {
      if (source) channel.postMessage({ to: said.asks, on, kind: "snapshot", data: said.wants ? picture() : null })
      return
    }
    if (source) return // the tab from which the lock was taken has not heard of it yet
    unanswered = 0
    from = ""
    if (said.to && said.to !== own) return
    if ("on" in said) linked(said.on)
    if (!said.data) return
    told ||= said.kind === "snapshot"
    if (said.data.now_ms) note(said.data.now_ms)
    take(said.kind, said.data)
  }
  const watch = setInterval(() => {
    if (source) return
    if (unanswered >= UNANSWERED) {
      unanswered = 0
      queue(true)
    } else {
      ask()
    }
  }, LOOK_MS)
  queue(false)
  ask()
  return {
    close() {
      ended.abort()
      clearInterval(watch)
      channel.close()
      source?.close()
      release?.(null)
    },
  }
}

/**
 * Connect to the server until it is closed. The browser reconnects by itself where it hears of the
 * loss; where it does not (another network, a machine that slept), the silence tells.
 * @param {string} season
 * @param {Take} take
 * @param {Linked} linked
 * @param {string} after
 */
function connect(season, take, linked, after) {
  /** @type {?EventSource} */
  let source = null
  let again = 0
  let heard = 0
  let from = after
  function open() {
    clearTimeout(again)
    source?.close()
    heard = Date.now()
    const asked = new URLSearchParams({ ...(season && { season }), ...(from && { after: from }) })
    const opened = new EventSource(`${ROOT}/live${asked.size ? `?${asked}` : ""}`)
    source = opened
    source.onopen = () => { from = ""; linked(true) }
    source.onerror = () => {
      linked(false)
      // Refused for good (full, restarted): the browser gives up, we do not.
      if (opened.readyState === EventSource.CLOSED) again = setTimeout(open, AGAIN_MS)
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
    linked(false)
    open()
  }, LOOK_MS)
  open()
  return { close() { clearInterval(watch); clearTimeout(again); source?.close() } }
}
