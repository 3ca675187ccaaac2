// @ts-check
// The game panels: board, cards, counters, variations, moves, graphs; live or replayed.

import { badge } from "./badges.js"
import { Board, EXPECTS, THINKS, hover, unhover } from "./board.js"
import { byId, fill, h, patch } from "./dom.js"
import { get, now } from "./feed.js"
import * as format from "./format.js"
import { Graphs } from "./graphs.js"
import { analysis, chances, material, parting } from "./position.js"
import * as sound from "./sound.js"
import { number, said, t } from "./texts.js"
import { later } from "./version.js"

/** @typedef {"white" | "black"} Side */

/** @type {readonly Side[]} */
const SIDES = ["white", "black"]
const UNKNOWN = "–:–" // a clock
const EMPTY = "8/8/8/8/8/8/8/8 w - - 0 1"
const PLAY_MS = 1000 // a ply, when a game is gone through by itself
const DIAMONDS = 16 // a diamond a thread, as N1 shows them; beyond its 16 one stands for all

export class GameView {
  /** @param {() => void} stepped   is called when another ply is looked at */
  constructor(stepped) {
    this.stepped = stepped
    this.board = new Board(byId("board"))
    this.graphs = new Graphs(byId("graphs"), (ply) => this.go(ply))
    /** @type {?Api.Game} */
    this.game = null
    this.followed = true // a replay is looked at as it was, also at its end
    /** @type {?number} */
    this.at = null // ply that is looked at; null follows the last one
    /** @type {?number} */
    this.addressed = null // ply that the address names
    /** @type {Map<number, readonly Api.Step[]>} */
    this.lines = new Map() // ply → its variation with positions
    /** @type {number | undefined} */
    this.playing = undefined // the timer of a game that is gone through by itself
    this.list = h("ol") // of the moves
    this.linked = true // without a link nobody knows what the clocks do: they stand
    for (const id of ["lines", "kibitzers"]) byId(id).addEventListener("keydown", walk)
    setInterval(() => this.#tick(), 100)
  }

  /** The game, for what is drawn of one only. */
  get #shown() { return /** @type {Api.Game} */ (this.game) }
  /** @returns {readonly Api.Ply[]} */
  get plies() { return this.game?.plies ?? [] }
  get last() { return this.plies.length }
  get cursor() { return this.at ?? this.last }
  get following() { return this.at === null }
  get fen() { return this.#ply(this.cursor)?.fen ?? this.#shown.start_fen }

  /**
   * Show a game as it stands now, or that there is none; only what has changed is drawn again.
   * @param {?Api.Game} game
   * @param {boolean} followed
   * @param {?number} ply
   */
  show(game, followed, ply = null) {
    if (!game) { this.#clear(); return }
    const before = this.game
    const same = before !== null && before.game === game.game && before.season === game.season && followed === this.followed
    const led = ply !== this.addressed
    this.addressed = ply
    if (same && led && ply !== null) this.go(ply)
    if (game === before && same) return
    this.game = game
    this.followed = followed
    if (same && game.plies.length >= before.plies.length && before.plies.every((one, at) => one === game.plies[at])) this.#goOn(game, before)
    else this.#begin(game, same, ply)
  }

  /**
   * Draw a game that was not shown before, or was fetched again: the ply that is looked at stays.
   * @param {Api.Game} game
   * @param {boolean} same
   * @param {?number} ply
   */
  #begin({ plies }, same, ply) {
    if (!same) {
      this.#play(false)
      this.lines = new Map()
      this.at = ply === null ? (this.followed ? null : plies.length) : Math.min(ply, plies.length)
    }
    for (const one of plies) if (one.line) this.lines.set(one.n, one.line)
    this.#cards()
    this.#moves()
    this.graphs.build()
    this.update()
  }

  /**
   * Draw what has happened in the game since.
   * @param {Api.Game} game
   * @param {Api.Game} before
   */
  #goOn(game, before) {
    const made = game.plies.slice(before.plies.length)
    for (const ply of made) {
      if (ply.line) this.lines.set(ply.n, ply.line)
      this.#move(ply)
    }
    const last = made.at(-1)
    if (last && this.following) sound.ofMove(last.san)
    if (game.status === "finished" && before.status === "running") sound.play("end")
    if (last && this.following) byId("said").textContent = t("aloud.move", { move: `${numbered(last)} ${last.san}`, eval: format.evaluation(last.eval) })
    if (game.white !== before.white || game.black !== before.black) this.#cards()
    if (game.status !== before.status || game.result !== before.result || game.details !== before.details) this.#end()
    const { plies, clock, search, kibitzers, ...head } = game
    if (made.length || /** @type {(keyof typeof head)[]} */ (Object.keys(head)).some((name) => head[name] !== before[name])) { this.update(); return }
    if (clock !== before.clock) this.#turnClock()
    if (search !== before.search) this.#searched()
    if (kibitzers !== before.kibitzers) this.#kibitzed()
  }

  #clear() {
    if (!this.game) return
    this.game = null
    byId("game-title").textContent = t("game.none")
    for (const id of ["game-facts", "card-top", "card-bottom", "counters", "lines", "kibitzers", "moves"]) fill(byId(id))
    byId("unplayed").hidden = true
    byId("graphs").hidden = false
    this.graphs.show([], null)
    this.board.show(EMPTY, [], [], t("board"))
  }

  #turnClock() {
    this.#head()
    this.#thinking()
    this.#tick()
  }

  #searched() {
    if (!this.following) return
    this.#board()
    if (!byId("lines").matches(":hover, :focus-within")) this.#variations() // who looks at it reads on till the move
    this.#figures()
  }

  #kibitzed() {
    if (byId("kibitzers").matches(":hover, :focus-within")) unhover()
    this.#kibitzers()
    this.graphs.show(this.plies, this.cursor, this.#shown.kibitzed)
  }

  /** @param {number} ply */
  go(ply) {
    const wanted = Math.max(0, Math.min(this.last, ply))
    const live = this.game?.status === "running"
    this.at = wanted === this.last && live ? null : wanted
    this.update()
    this.stepped()
  }

  /** @param {string} name */
  key(name) {
    if (name === "play") { this.#play(!this.playing); return }
    this.#play(false)
    /** @type {Readonly<Record<string, number>>} */
    const moves = { first: 0, back: this.cursor - 1, on: this.cursor + 1, last: this.last }
    if (name === "flip") { this.board.turn(); this.#cards(); this.update() } else this.go(moves[name])
  }

  /**
   * Go through the game by itself, from its start where its end is shown.
   * @param {boolean} on
   */
  #play(on) {
    clearInterval(this.playing)
    this.playing = undefined
    if (on) {
      if (this.cursor >= this.last) this.go(0)
      this.playing = setInterval(() => {
        this.go(this.cursor + 1)
        if (this.cursor >= this.last) this.#play(false)
      }, PLAY_MS)
    }
    const button = document.querySelector('[data-go="play"]')
    if (!button) return
    button.setAttribute("aria-pressed", String(on))
    button.textContent = on ? "❚❚" : "▶"
  }

  redraw() {
    if (!this.game) return
    this.graphs.build()
    this.update()
  }

  /** Bring all panels up to the ply that is looked at. */
  update() {
    this.#head()
    this.#unplayed()
    this.#figures()
    this.#thinking()
    this.#counters()
    this.#board()
    this.#variations()
    this.#current()
    this.graphs.show(this.plies, this.cursor, this.#shown.kibitzed)
    this.#tick()
    this.#fetchLines()
  }

  /**
   * @param {number} n
   * @returns {Api.Ply | undefined}
   */
  #ply(n) { return this.plies[n - 1] }
  /** @param {Side} side */
  #own(side) { return this.plies.slice(0, this.cursor).findLast((ply) => ply.side === side && !ply.book) }

  // -- heads ------------------------------------------------------------------------

  #head() {
    const game = this.#shown
    patch(byId("game-title"), `${game.white.name} – ${game.black.name}`, game.result ? h("span", { class: "result" }, ` ${game.result}`, game.annulled ? ` (${t("annulled")})` : "") : null)
    const same = game.time_control.white === game.time_control.black
    const facts = [
      t("game.round", { event: game.event_name, round: game.round }),
      (same ? SIDES.slice(0, 1) : SIDES).map((side) => format.control(game.time_control[side])).join(" / "),
      [game.opening.eco, game.opening.name].filter(Boolean).join(" "),
      game.start_number === null ? "" : t("game.chess960", { number: String(game.start_number) }),
      this.#starting() ? t("game.starting") : "",
      said(game.details),
    ]
    byId("game-facts").textContent = [...new Set(facts.filter(Boolean))].join(" · ") // a drawn start position is the opening's name
    byId("game-pgn").hidden = game.status === "interrupted" // it has a PGN while it is played, and afterwards
    byId("game-pgn").href = game.status === "running" ? `lichess/${game.season}/games/${game.game}.pgn` : `pgn/${game.season}/games/${game.game}.pgn`
  }

  /** Return whether no clock has been started yet: an engine may take a minute to be ready. */
  #starting() {
    const game = this.#shown
    return game.status === "running" && !game.clock?.thinking && this.plies.every((ply) => ply.book)
  }

  /** Say why a game that is over has nothing to be drawn: it ended before its first move, or nobody kept them. */
  #unplayed() {
    const game = this.#shown
    const none = game.status === "finished" && this.plies.every((ply) => ply.book)
    const why = t(game.recorded === false ? "game.unrecorded" : "game.unplayed")
    byId("graphs").hidden = none
    byId("unplayed").hidden = !none
    byId("unplayed").textContent = none ? [why, said(game.details), game.note].filter(Boolean).join(": ") : ""
  }

  /** @param {Api.Engine} engine */
  #options({ options }) {
    if (!options.length) return h("p", { class: "quiet" }, t(this.#shown.status === "finished" ? "options.none" : "options.later"))
    return h("details", {}, h("summary", { "data-more": t("options.figures") }, t("options", { count: options.length })),
      h("ul", {}, options.map(({ name, value }) => h("li", {}, `${name} = ${value}`))))
  }

  /**
   * @param {string} place
   * @returns {Side}
   */
  #side(place) { return (place === "top") === !this.board.turned ? "black" : "white" }

  #cards() {
    for (const place of ["top", "bottom"]) {
      const side = this.#side(place)
      const engine = this.#shown[side]
      const who = [engine.version, engine.author && t("engine.author", { author: engine.author }), engine.country, engine.rating && `${engine.rating} Elo`, engine.protocol.toUpperCase()]
      const words = [t(side), ...who].filter(Boolean).join(" · ")
      const card = byId(`card-${place}`)
      card.className = `card ${side}`
      card.dataset.side = side
      card.setAttribute("aria-label", `${t(side)}: ${engine.name}`)
      patch(card,
        h("div", { class: "card-head" },
          h("div", {}, h("div", { class: "name" }, badge(engine.name), engine.name, h("span", { class: "material", "data-x": "material" })), h("div", { class: "who", title: words }, words)),
          h("span", { class: "eval", "data-x": "eval" }, "–"),
          h("span", { class: "clock", "data-x": "clock", role: "timer", "aria-live": "off", "aria-label": t(`clock.${side}`) }, UNKNOWN)),
        h("div", { class: "figures" }, h("dl", { class: "stats", "data-x": "stats" }), this.#options(engine)))
    }
  }

  /** @param {Side} side */
  #card(side) { return /** @type {?HTMLElement} */ (document.querySelector(`.card[data-side="${side}"]`)) }

  /**
   * Where a figure of a side stands, once there are cards.
   * @param {Side} side
   * @param {string} name
   * @returns {HTMLElement}
   */
  #cell(side, name) { return /** @type {HTMLElement} */ (this.#card(side)?.querySelector(`[data-x="${name}"]`)) }

  #figures() {
    const more = material(this.fen)
    for (const side of SIDES) {
      const searching = this.following && this.#shown.search?.side === side ? this.#shown.search : null
      const said = searching ?? this.#own(side)
      const engine = this.#shown[side]
      const { signs, ahead } = more[side]
      this.#cell(side, "material").textContent = `${signs}${ahead > 0 ? ` +${ahead}` : ""}`
      this.#cell(side, "eval").textContent = format.evaluation(said?.eval)
      const depth = said?.depth ? `${said.depth}/${said.seldepth ?? said.depth}` : null
      const { threads } = engine
      const diamonds = threads === null ? h("dd", { "data-x": "threads" }, "–") : h("dd", { "data-x": "threads", title: t("threads.count", { count: threads }) },
        h("span", { class: "diamonds", "aria-hidden": "true" }, threads > DIAMONDS ? "◆ ×" : "◆".repeat(threads)), ` ${threads}`)
      const own = searching ? null : this.#own(side)
      /** @type {[string, ?string][]} */
      const rows = [
        ["depth", depth], ["speed", said ? format.speed(said.nps) : null],
        ["nodes", said ? format.count(said.nodes) : null], ["tbhits", said ? format.count(said.tbhits) : null],
        ["hashfull", said?.hashfull === null || said?.hashfull === undefined ? null : format.percent(said.hashfull / 10, 1)],
        ["move", this.#elapsed(side) ?? (own ? `${format.moveTime(own.move_ms)}${own.pondered === "hit" ? ` (${t("figure.ponderhit")})` : ""}` : null)],
        ["hash", engine.hash_mb === null ? null : `${number(engine.hash_mb)} MB`], ["tablebases", engine.tablebases.join(", ") || t("tablebases.none")],
      ]
      patch(this.#cell(side, "stats"),
        rows.map(([name, value]) => h("div", {}, h("dt", {}, t(`figure.${name}`)), h("dd", { "data-x": name }, value ?? "–"))),
        h("div", {}, h("dt", {}, t("figure.threads")), diamonds))
    }
    this.#bar()
  }

  #bar() {
    const search = this.following && this.#shown.search?.eval ? this.#shown.search : null
    const ply = search ?? this.plies.slice(0, this.cursor).findLast((one) => one.eval)
    const told = chances(ply)
    const [white, draw] = /** @type {HTMLCollectionOf<HTMLElement>} */ (byId("eval-bar").children)
    byId("eval-bar").classList.toggle("turned", this.board.turned)
    white.style.height = `${told?.white ?? 50}%`
    draw.style.height = `${(told?.white ?? 50) + (told?.draw ?? 0)}%`
    this.#chances(told, ply?.side)
  }

  /**
   * Say in words what the bar shows, and whose figures they are.
   * @param {ReturnType<typeof chances>} told
   * @param {Side | undefined} side
   */
  #chances(told, side) {
    const line = byId("chances")
    line.hidden = !told
    if (!told || !side) return
    const [white, drawn, black] = format.shares([told.white, told.draw, told.black])
    const engine = this.#shown[side].name
    line.textContent = told.own ? t("chances.own", { white, draw: drawn, black, engine }) : t("chances.eval", { white, engine })
  }

  #thinking() {
    const thinking = this.following ? this.#shown.clock?.thinking : null
    for (const side of SIDES) this.#card(side)?.classList.toggle("thinks", thinking === side)
  }

  /**
   * How long a side has been thinking about the move in progress, null if it is not.
   * @param {Side} side
   */
  #elapsed(side) {
    const { clock } = this.#shown
    if (!this.following || !this.linked || clock?.thinking !== side || !clock.since_ms) return null
    return t("unit.s", { n: Math.max(0, Math.floor((now() - clock.since_ms) / 1000)) })
  }

  #tick() {
    if (!this.game) return
    const { clock } = this.#shown
    for (const side of SIDES) {
      const shown = this.#cell(side, "clock")
      if (!shown || (this.following && !this.linked && shown.textContent !== UNKNOWN)) continue // nobody knows what it does
      let left
      if (this.following && clock) {
        left = clock[`${side}_ms`]
        if (clock.thinking === side && clock.since_ms && left !== null && this.linked) left -= Math.max(0, now() - clock.since_ms)
      } else {
        const seen = this.plies.slice(0, this.cursor).findLast((ply) => !ply.book)
        left = seen ? seen[/** @type {const} */ (`${side}_clock_ms`)] : this.#shown.base_ms
      }
      const text = format.clock(left)
      if (shown.textContent !== text) shown.textContent = text
      const [elapsed, move] = [this.#elapsed(side), this.#cell(side, "move")]
      if (elapsed && move && move.textContent !== elapsed) move.textContent = elapsed
    }
  }

  #counters() {
    const counters = this.plies.slice(0, this.cursor).findLast((ply) => ply.counters)?.counters
    /** @param {?number | undefined} n */
    const plies = (n) => (!counters ? "–" : n === null || n === undefined ? t("counter.off") : t("plies", { count: n }))
    /** @param {?number | undefined} n */
    const few = (n) => typeof n === "number" && n <= 10
    /** @type {[string, string, boolean][]} */
    const rows = [
      ["draw", plies(counters?.plies_to_draw), few(counters?.plies_to_draw) && (counters?.rd ?? 0) > 0],
      ["win", plies(counters?.plies_to_win), few(counters?.plies_to_win) && (counters?.rr ?? 0) > 0],
      ["fifty", counters ? t("counter.moves", { count: counters.moves_to_fifty }) : "–", few(counters?.moves_to_fifty)],
    ]
    patch(byId("counters"), rows.map(([name, text, near]) =>
      h("div", { class: near ? "near" : null }, h("dt", {}, t(`counter.${name}`)), h("dd", { "data-x": `to-${name}` }, text))))
  }

  // -- board and variations ---------------------------------------------------------

  #board() {
    const ply = this.#ply(this.cursor)
    const { fen } = this
    /** @type {[uci: string, type: object][]} */
    const arrows = []
    const reply = this.lines.get(this.cursor)?.[1]
    if (reply && ply) arrows.push([reply.uci, EXPECTS[ply.side]])
    const search = this.following ? this.#shown.search : null
    if (search?.line?.[0]) arrows.push([search.line[0].uci, THINKS[search.side]])
    const where = ply ? t("board.after", { move: `${numbered(ply)} ${ply.san}`, position: spoken(fen) }) : t("board.start", { position: spoken(fen) })
    byId("analyse").href = analysis(fen, this.#shown.start_number !== null)
    this.board.show(fen, ply?.squares, arrows, where)
  }

  #variations() {
    unhover()
    const search = this.following ? this.#shown.search : null
    const variations = SIDES.toReversed().map((side) => {
      const live = search?.side === side ? search : null
      const ply = live ? null : this.#own(side)
      const said = live ?? ply
      return {
        side, first: live ? live.ply : ply?.n ?? 1, line: live ? live.line : (ply && this.lines.get(ply.n)) ?? [],
        head: said ? t(live ? `line.${side}.thinks` : `line.${side}.at`, { move: ply ? `${numbered(ply)} ${ply.san}` : "", eval: format.evaluation(said.eval) }) : t(side),
      }
    })
    const parts = parting(variations, this.plies)
    patch(byId("lines"), variations.map(({ side, head, line, first }) =>
      h("div", { class: `line ${side}`, "data-line": side }, h("h3", {}, head), this.#steps(line, first, head, parts))))
    this.#kibitzers()
  }

  #kibitzers() {
    const said = this.following ? (this.#shown.kibitzers ?? []).filter(({ ply }) => ply === this.last + 1) : []
    patch(byId("kibitzers"), said.map((one) => {
      const depth = one.depth ? t("kibitzer.depth", { depth: `${one.depth}/${one.seldepth ?? one.depth}` }) : ""
      const head = [t("kibitzer.says", { engine: one.engine, eval: format.evaluation(one.eval) }), depth, one.nps ? format.speed(one.nps) : ""].filter(Boolean).join(", ")
      return h("div", { class: "line kibitzer", "data-desk": one.desk, title: one.description || null }, h("h3", {}, head), this.#steps(one.line, one.ply, head))
    }))
  }

  /**
   * The steps of a variation: the first is a stop of the Tab key, the arrows go to the others; `parts` is where another one parts from it.
   * @param {readonly Api.Step[]} line
   * @param {number} first
   * @param {string} title
   * @param {?number} parts
   */
  #steps(line, first, title, parts = null) {
    return line.map((step, k) => {
      const before = step.fen.split(" ")
      const number = before[1] === "w" ? "" : `${before[5]}.`
      /** @param {{currentTarget: Element}} event */
      const show = (event) => hover(event.currentTarget, step.fen, this.board.turned)
      const other = first + k === parts
      return h("button", { type: "button", tabindex: k ? -1 : 0, class: other ? "parts" : null, title: other ? t("line.parts") : null, "data-n": first + k,
        "aria-label": `${number || "…"} ${step.san}`, onmouseenter: show, onfocus: show, onmouseleave: unhover, onblur: unhover,
        onclick: async () => { unhover(); (await later()).pin(title, line, k, this.board.turned) } },
      number ? h("span", { class: "quiet" }, number) : null, ` ${step.san}`)
    })
  }

  async #fetchLines() {
    if (!this.game || this.#shown.status === "interrupted" || (this.following && this.#shown.status === "running")) return
    const { season, game } = this.game
    const wanted = SIDES.flatMap((side) => this.#own(side) ?? []).filter(({ n }) => !this.lines.has(n))
    if (!wanted.length) return
    const { lines } = this
    for (const ply of wanted) lines.set(ply.n, [])
    for (const ply of wanted) {
      const whole = await get(`seasons/${season}/games/${game}/plies/${ply.n}`)
      if (this.lines !== lines) return // another game is shown
      if (whole) lines.set(ply.n, whole.line ?? [])
    }
    if (!this.game) return
    this.#board()
    this.#variations()
  }

  // -- moves ------------------------------------------------------------------------

  #moves() {
    this.list = h("ol", {})
    fill(byId("moves"), this.list)
    for (const ply of this.plies) this.#move(ply)
    this.#end()
  }

  /** @param {Api.Ply} ply */
  #move(ply) {
    const number = Math.ceil(this.#index(ply) / 2)
    let row = /** @type {?HTMLElement} */ (this.list.lastElementChild)
    if (!row || row.dataset.number !== String(number)) {
      row = h("li", { "data-number": number }, h("span", { class: "n" }, `${moveNumber(ply)}.`))
      if (ply.side === "black") row.append(h("span", {}, "…"))
      this.list.append(row)
    }
    const mark = ply.book ? t("move.book") : format.evaluation(ply.eval)
    row.append(h("button", { type: "button", class: ply.book ? "book" : null, "data-ply": ply.n, tabindex: -1, "aria-label": `${numbered(ply)} ${ply.san} ${mark}`, onclick: () => this.go(ply.n) }, ply.san, " ", h("small", {}, mark)))
  }

  /**
   * Rows begin with White, also where the start position has Black to move.
   * @param {Api.Ply} ply
   */
  #index(ply) { return this.plies[0]?.side === "black" ? ply.n + 1 : ply.n }

  #end() {
    this.list.querySelector(".end")?.remove()
    if (this.#shown.status === "running" || !this.#shown.result) return
    const judged = this.#shown.adjudicated ? `${t("game.adjudicated")}: ` : ""
    const why = [said(this.#shown.details), this.#shown.note].filter(Boolean).join(": ")
    this.list.append(h("li", { class: "end" }, h("span", { class: "end" }, `${this.#shown.result} – ${judged}${why}`)))
  }

  /** Mark the shown move: it alone is a stop of the Tab key, the arrows go to the others. */
  #current() {
    const panel = byId("moves")
    const before = /** @type {?HTMLElement} */ (panel.querySelector('[tabindex="0"]'))
    panel.querySelector('[aria-current="true"]')?.removeAttribute("aria-current")
    const button = /** @type {?HTMLElement} */ (panel.querySelector(`[data-ply="${this.cursor}"]`))
    if (!button) return
    before?.setAttribute("tabindex", "-1")
    button.setAttribute("tabindex", "0")
    button.setAttribute("aria-current", "true")
    if (before && document.activeElement === before && !this.following) button.focus({ preventScroll: true })
    panel.scrollTop = button.offsetTop - panel.offsetTop - panel.clientHeight / 2
  }
}

/**
 * Go through a variation by the arrows, which else move through the game.
 * @param {KeyboardEvent} event
 */
function walk(event) {
  const { key, target } = event
  if (!(target instanceof HTMLButtonElement) || (key !== "ArrowRight" && key !== "ArrowLeft")) return
  event.preventDefault()
  event.stopPropagation()
  const next = key === "ArrowRight" ? target.nextElementSibling : target.previousElementSibling
  if (next instanceof HTMLElement) next.focus() // the heading before the first step takes none
}

/**
 * A ply's move number as its position counts them: a book line may begin at any move, with either side.
 * @param {Api.Ply} ply
 */
function moveNumber(ply) { return Number(ply.fen.split(" ")[5]) - (ply.side === "black" ? 1 : 0) }

/** @param {Api.Ply} ply */
function numbered(ply) { return `${moveNumber(ply)}${ply.side === "black" ? "…" : "."}` }

/**
 * A position in words, for those who hear the page.
 * @param {string} fen
 */
function spoken(fen) {
  /** @type {Record<Side, string[]>} */
  const found = { white: [], black: [] }
  fen.split(" ")[0].split("/").forEach((row, down) => {
    let file = 0
    for (const sign of row) {
      if (/\d/.test(sign)) { file += Number(sign); continue }
      const side = sign === sign.toUpperCase() ? "white" : "black"
      found[side].push(`${t(`piece.${sign.toLowerCase()}`)} ${"abcdefgh"[file]}${8 - down}`)
      file += 1
    }
  })
  return t("board.pieces", { white: found.white.join(", "), black: found.black.join(", ") })
}
