// @ts-check
// Graphs over the game: eval, time, depth, speed; one line for each side.

import { h } from "./dom.js"
import * as format from "./format.js"
import { kept } from "./kept.js"
import { chances } from "./position.js"
import { t } from "./texts.js"
import { AGAIN_MS, file } from "./version.js"

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500] // steps of an axis that counts
const LIMIT = 8 // pawns: beyond it the line runs along the edge

const [LOW, HIGH] = [128, 320] // pixels
const ABOVE = 150 // pixels: what stands above the game
const AROUND = 48 // pixels: a graph's title and frame

/** How high a graph is, in pixels: on large screens all of them together fill the column. */
const height = () => (innerWidth < 1800 ? LOW : Math.max(LOW, Math.min(HIGH, Math.floor((innerHeight - ABOVE) / KINDS.length) - AROUND)))

/** @typedef {Pick<Api.Ply, "n" | "mate" | "eval" | "cp" | "wdl" | "move_ms" | "depth" | "nps">} Told   a ply's figures */
/** @typedef {Pick<Api.Kibitzed, "mate" | "eval" | "cp" | "wdl"> | Told} Eval */

/** @param {Eval} ply */
const clamp = (ply) => {
  if (ply.mate !== null && ply.mate !== undefined) {
    return ply.eval?.startsWith("-") ? -LIMIT : LIMIT
  }
  return ply.cp === null || ply.cp === undefined ? null : Math.max(-LIMIT, Math.min(LIMIT, ply.cp / 100))
}

const DESKS = [0, 1] // of kibitzers
const FAR = 100 // pawns: as far as a mate stands on the logarithmic scale
/** @param {Eval} ply */
const share = (ply) => { const told = chances(ply); return told && told.white + told.draw / 2 }
/** @param {Eval} ply */
const pawns = (ply) => {
  if (ply.mate !== null && ply.mate !== undefined) return ply.eval?.startsWith("-") ? -FAR : FAR
  return ply.cp === null || ply.cp === undefined ? null : ply.cp / 100
}

/**
 * Scales of the evals: pawns, their logarithm beyond a pawn or so, and the points that White may expect.
 * @typedef {{value: (ply: Eval) => ?number, text: (v: number) => string, tick: (v: number) => string, range: (low: number, high: number) => [number, number]}} Scale
 * @type {Readonly<Record<string, Scale>>}
 */
const SCALES = {
  pawns: { value: clamp, text: (v) => v.toFixed(2), tick: (v) => v.toFixed(2).replace(/0$/, ""), range: (low, high) => [Math.min(-1, low), Math.max(1, high)] },
  log: { value: (ply) => { const v = pawns(ply); return v === null ? null : Math.asinh(v) }, text: (v) => Math.sinh(v).toFixed(2), tick: (v) => Math.sinh(v).toFixed(1), range: (low, high) => [Math.min(-1, low), Math.max(1, high)] },
  share: { value: share, text: (v) => `${v.toFixed(1)} %`, tick: (v) => `${v} %`, range: () => [0, 100] },
}
const chosen = kept.get("farm-scale") ?? ""
let scale = Object.hasOwn(SCALES, chosen) ? chosen : "pawns"

/** @typedef {{id: string, value: (ply: Told) => ?number | undefined, text: (v: number) => string, tick?: (v: number) => string}} Kind */

/** @type {readonly Kind[]} */
const KINDS = [
  { id: "eval", value: (ply) => SCALES[scale].value(ply), text: (v) => SCALES[scale].text(v), tick: (v) => SCALES[scale].tick(v) },
  { id: "time", value: (ply) => (ply.move_ms ?? 0) / 1000, text: (v) => t("unit.s", { n: v }) },
  { id: "depth", value: (ply) => ply.depth, text: String },
  { id: "speed", value: (ply) => ply.nps, text: format.count },
]

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

const DASHES = [[6, 3], [2, 3]] // pixels: no colour alone tells the lines apart
const LIBRARY = `${document.documentElement.dataset.static ?? ""}vendor/uplot/uPlot.iife.min.js`
const NEAR = "400px" // a graph is about to be in sight

/**
 * Load what draws, a third of all script.
 * @returns {Promise<PlotLibrary>}
 */
async function library() {
  for (;;) {
    const script = h("script", { src: LIBRARY })
    const there = await new Promise((resolve) => {
      script.onload = () => resolve(true)
      script.onerror = () => resolve(false)
      document.head.append(script)
    })
    if (there && window.uPlot) return window.uPlot
    script.remove()
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    await file(LIBRARY) // until the server is back, or has another version
  }
}

/** @typedef {{kind: Kind, holder: HTMLElement, box: HTMLElement, plot?: Plot}} Drawn */

export class Graphs {
  /**
   * @param {HTMLElement} element
   * @param {(ply: number) => void} chosen   is called with the ply that was clicked
   */
  constructor(element, chosen) {
    this.element = element
    this.chosen = chosen
    /** @type {Drawn[]} */
    this.plots = []
    /** @type {readonly Api.Ply[]} */
    this.plies = []
    /** @type {readonly Api.Kibitzed[]} */
    this.kibitzed = []
    /** @type {?number} */
    this.cursor = null
    /** @type {?HTMLElement} */
    this.chooser = null
    /** @type {?HTMLSelectElement} */
    this.scaler = null
    /** @type {?PlotLibrary} */
    this.uPlot = null // the library, once a graph has been in sight and it is here
    this.sight = new IntersectionObserver(async (seen) => {
      if (!seen.some(({ isIntersecting }) => isIntersecting)) return
      this.sight.disconnect()
      this.uPlot = await library()
      this.#draw()
      if (this.cursor !== null) this.show(this.plies, this.cursor, this.kibitzed)
    }, { rootMargin: NEAR })
    new ResizeObserver(() => this.#resize()).observe(element)
  }

  /** Draw everything again: another game, other colours. */
  build() {
    this.chooser ??= this.#choice()
    this.plots.forEach(({ plot }) => plot?.destroy())
    this.plots = KINDS.map((kind) => this.#make(kind))
    this.element.replaceChildren(this.plots[0].box, this.chooser, ...this.plots.slice(1).map(({ box }) => box))
    this.#draw()
  }

  #draw() {
    for (const one of this.plots) {
      one.holder.style.minHeight = `${height()}px` // so that nothing moves when the lines come
      if (this.uPlot) one.plot = this.#plot(one, this.uPlot)
    }
  }

  /** Where there is no room for all, the graph under the evals is chosen. */
  #choice() {
    /** @param {string} id */
    const choose = (id) => {
      this.element.dataset.second = id
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.key === id))
      this.#resize()
    }
    const buttons = KINDS.slice(1).map(({ id }) => h("button", { type: "button", "data-key": id, onclick: () => choose(id) }, t(`graph.${id}`)))
    choose(KINDS[1].id)
    return h("div", { class: "chooser", role: "group", "aria-label": t("graph") }, buttons)
  }

  /**
   * @param {Kind} kind
   * @returns {Drawn}
   */
  #make(kind) {
    const holder = h("div", { role: "img" })
    const title = h("h3", {}, t(`graph.${kind.id}`), h("span", { class: "white" }, `● ${t("white")}`), h("span", { class: "black" }, `● ${t("black")}`), kind.id === "eval" ? DESKS.map((desk) => h("span", { class: `kibitzer${desk}`, "data-desk": desk })) : null, h("span", { class: "value", "aria-hidden": "true" }))
    return { kind, holder, box: h("div", { class: "graph", "data-graph": kind.id }, h("div", { class: "graph-head" }, title, kind.id === "eval" ? this.#scales() : null), holder) }
  }

  /** Let the scale of the evals be chosen; the browser keeps it. */
  #scales() {
    const choose = (/** @type {{currentTarget: HTMLSelectElement}} */ { currentTarget: select }) => {
      scale = select.value
      kept.set("farm-scale", scale)
      this.build()
      this.show(this.plies, this.cursor, this.kibitzed)
      select.focus()
    }
    this.scaler ??= h("select", { "aria-label": t("graph.scale"), onchange: choose }, Object.keys(SCALES).map((name) => h("option", { value: name, selected: name === scale }, t(`graph.scale.${name}`))))
    return this.scaler
  }

  /**
   * @param {Drawn} drawn
   * @param {PlotLibrary} library
   */
  #plot({ kind, holder }, library) {
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } }
    /** @param {string} name */
    const line = (name) => ({ stroke: colour(name), width: 1.6, points: { show: false }, spanGaps: true })
    return new library({
      width: Math.max(220, holder.clientWidth), height: height(),
      legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { time: false, range: (/** @type {Plot} */ _, /** @type {number} */ low, /** @type {number} */ high) => [Math.floor(low), Math.max(Math.ceil(high), Math.floor(low) + 10)] }, ...(kind.id === "eval" ? { y: { range: (/** @type {Plot} */ _, /** @type {number} */ low, /** @type {number} */ high) => SCALES[scale].range(low, high) } } : {}) },
      axes: [{ ...axis, size: 26, incrs: WHOLE }, { ...axis, size: 46, space: 22, values: (/** @type {Plot} */ _, /** @type {number[]} */ all) => all.map(kind.tick ?? kind.text), ...(kind.id === "depth" ? { incrs: WHOLE } : {}) }],
      series: [{}, line("--white-side"), line("--black-side"), ...(kind.id === "eval" ? DESKS.map((desk) => ({ ...line(`--kibitzer${desk}`), width: 1.2, dash: DASHES[desk] })) : [])],
      hooks: this.#hooks(kind, holder),
    }, kind.id === "eval" ? [[], [], [], ...DESKS.map(() => [])] : [[], [], []], holder)
  }

  /**
   * @param {Kind} kind
   * @param {HTMLElement} holder
   * @returns {Record<string, ((plot: Plot) => void)[]>}
   */
  #hooks(kind, holder) {
    return {
      draw: [(plot) => this.#mark(plot)],
      setCursor: [(plot) => this.#tell(kind, plot, holder)],
      ready: [(plot) => plot.over.addEventListener("click", () => this.#click(plot))],
    }
  }

  /**
   * Write the values under the pointer beside the title: those of the move, as both sides told them.
   * @param {Kind} kind
   * @param {Plot} plot
   * @param {HTMLElement} holder
   */
  #tell(kind, { cursor: { idx }, data }, holder) {
    const said = holder.parentElement?.querySelector(".value")
    if (!said) return
    /** @param {readonly (?number)[]} values */
    const near = (values) => idx === null || idx === undefined ? null : values[idx] ?? values[idx - 1] ?? null
    /** @param {?number} value */
    const text = (value) => (value === null ? "–" : kind.text(value))
    if (idx === null || idx === undefined) { said.textContent = ""; return }
    const told = data.slice(1).map(near)
    const shown = told.filter((value, at) => at < 2 || value !== null) // most games have no kibitzer
    said.textContent = `${Math.ceil(data[0][idx] ?? 0)}.  ${shown.map(text).join(" / ")}`
  }

  /** @param {Plot} plot */
  #click(plot) {
    const at = plot.posToVal(plot.cursor.left, "x")
    this.chosen(Math.max(1, Math.round(at * 2)))
  }

  /** @param {Plot} plot */
  #mark(plot) {
    if (this.cursor === null) return
    const x = Math.round(plot.valToPos(this.cursor / 2, "x", true))
    const { ctx, bbox } = plot
    ctx.save()
    ctx.strokeStyle = colour("--accent")
    ctx.lineWidth = 2
    ctx.setLineDash([]) // a kibitzer's line may have been drawn last
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
    ctx.restore()
  }

  /**
   * Show the plies of a game, with a mark at the one that is looked at, and what kibitzers thought of its positions.
   * @param {readonly Api.Ply[]} plies
   * @param {?number} cursor
   * @param {?readonly Api.Kibitzed[]} [kibitzed]
   */
  show(plies, cursor, kibitzed) {
    if (!this.plots.length) this.build()
    if (!this.uPlot && this.cursor === null) this.sight.observe(this.element) // not before there is a game: all of an empty page is in sight
    this.cursor = cursor
    this.plies = plies
    this.kibitzed = kibitzed ?? []
    const engine = plies.filter((ply) => !ply.book)
    const x = engine.map((ply) => ply.n / 2)
    for (const { kind, plot, holder } of this.plots) {
      /** @param {string} side */
      const of = (side) => engine.map((ply) => (ply.side === side ? (kind.value(ply) ?? null) : null))
      plot?.setData(kind.id === "eval" ? this.#evals(engine) : [x, of("white"), of("black")])
      /** @param {string} side */
      const last = (side) => engine.findLast((ply) => ply.side === side)
      /** @param {string} side */
      const told = (side) => { const ply = last(side); const v = ply && kind.value(ply); return v === null || v === undefined ? t("graph.nothing") : kind.text(v) }
      holder.setAttribute("aria-label", t("graph.last", { title: t(`graph.${kind.id}`), white: told("white"), black: told("black") }))
    }
  }

  /**
   * The evals of both engines and of all kibitzers, by moves: a kibitzer may speak of plies of the book, too.
   * @param {readonly Api.Ply[]} engine
   */
  #evals(engine) {
    /** @type {Record<"white" | "black", Map<number, ?number>>} */
    const own = { white: new Map(), black: new Map() }
    for (const ply of engine) own[ply.side].set(ply.n, SCALES[scale].value(ply) ?? null)
    const watched = DESKS.map((desk) => new Map(this.kibitzed.filter((one) => one.desk === desk).map((one) => [one.ply, SCALES[scale].value(one)])))
    for (const name of /** @type {NodeListOf<HTMLElement>} */ (this.element.querySelectorAll("[data-desk]"))) {
      const last = this.kibitzed.findLast((one) => String(one.desk) === name.dataset.desk)
      name.textContent = last ? `● ${last.engine}` : ""
    }
    const lines = [own.white, own.black, ...watched]
    const plies = [...new Set(lines.flatMap((values) => [...values.keys()]))].sort((one, other) => one - other)
    return [plies.map((n) => n / 2), ...lines.map((values) => plies.map((n) => values.get(n) ?? null))]
  }

  #resize() {
    for (const { plot, holder } of this.plots) {
      const width = Math.max(220, holder.clientWidth)
      holder.style.minHeight = `${height()}px`
      if (plot && holder.clientWidth && (Math.abs(plot.width - width) > 2 || plot.height !== height())) plot.setSize({ width, height: height() })
    }
  }
}

