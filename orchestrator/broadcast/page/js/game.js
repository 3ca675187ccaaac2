// The game panels: board, cards, counters, variations, moves, graphs; live or replayed.

import { badge } from "./badges.js"
import { Board, EXPECTS, THINKS, hover, unhover } from "./board.js"
import { byId, fill, h, patch } from "./dom.js"
import { get, now } from "./feed.js"
import * as format from "./format.js"
import { Graphs } from "./graphs.js"
import { pin } from "./pinned.js"
import { analysis, chances, material, parting } from "./position.js"
import * as sound from "./sound.js"
import { number, said, t } from "./texts.js"

const SIDES = ["white", "black"]
const UNKNOWN = "–:–" // a clock
const EMPTY = "8/8/8/8/8/8/8/8 w - - 0 1"
const PLAY_MS = 1000 // a ply, when a game is gone through by itself
const DIAMONDS = 16 // a diamond a thread, as N1 shows them; beyond its 16 one stands for all

export class GameView {
  /** `stepped` is called when another ply is looked at. */
  constructor(stepped) {
    this.stepped = stepped
    this.board = new Board(byId("board"))
    this.graphs = new Graphs(byId("graphs"), (ply) => this.go(ply))
    this.game = null
    this.followed = true // a replay is looked at as it was, also at its end
    this.at = null // ply that is looked at; null follows the last one
    this.addressed = null // ply that the address names
    this.lines = new Map() // ply → its variation with positions
    this.playing = null // the timer of a game that is gone through by itself
    this.linked = true // without a link nobody knows what the clocks do: they stand
    for (const id of ["lines", "kibitzers"]) byId(id).addEventListener("keydown", walk)
    setInterval(() => this.#tick(), 100)
  }

  get plies() { return this.game?.plies ?? [] }
  get last() { return this.plies.length }
  get cursor() { return this.at ?? this.last }
  get following() { return this.at === null }
  get fen() { return this.#ply(this.cursor)?.fen ?? this.game.start_fen }

  /** Show a game as it stands now, or that there is none; only what has changed is drawn again. */
  show(game, followed, ply = null) {
    if (!game) { this.#clear(); return }
    const before = this.game
    const same = before?.game === game.game && before.season === game.season && followed === this.followed
    const led = ply !== this.addressed
    this.addressed = ply
    if (same && led && ply !== null) this.go(ply)
    if (game === before && same) return
    this.game = game
    this.followed = followed
    if (same && game.plies.length >= before.plies.length && before.plies.every((one, at) => one === game.plies[at])) this.#goOn(before)
    else this.#begin(same, ply)
  }

  /** Draw a game that was not shown before, or was fetched again: the ply that is looked at stays. */
  #begin(same, ply) {
    const { plies } = this.game
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

  /** Draw what has happened in the game since. */
  #goOn(before) {
    const { game } = this
    const made = game.plies.slice(before.plies.length)
    for (const ply of made) {
      if (ply.line) this.lines.set(ply.n, ply.line)
      this.#move(ply)
    }
    if (made.length && this.following) sound.ofMove(made.at(-1).san)
    if (game.status === "finished" && before.status === "running") sound.play("end")
    if (made.length && this.following) byId("said").textContent = t("aloud.move", { move: `${numbered(made.at(-1))} ${made.at(-1).san}`, eval: format.evaluation(made.at(-1).eval) })
    if (game.white !== before.white || game.black !== before.black) this.#cards()
    if (game.status !== before.status || game.result !== before.result || game.details !== before.details) this.#end()
    const { plies, clock, search, kibitzers, ...head } = game
    if (made.length || Object.keys(head).some((name) => head[name] !== before[name])) { this.update(); return }
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
    this.graphs.show(this.plies, this.cursor, this.game.kibitzed)
  }

  go(ply) {
    const wanted = Math.max(0, Math.min(this.last, ply))
    const live = this.game?.status === "running"
    this.at = wanted === this.last && live ? null : wanted
    this.update()
    this.stepped()
  }

  key(name) {
    if (name === "play") { this.#play(!this.playing); return }
    this.#play(false)
    const moves = { first: 0, back: this.cursor - 1, on: this.cursor + 1, last: this.last }
    if (name === "flip") { this.board.turn(); this.#cards(); this.update() } else this.go(moves[name])
  }

  /** Go through the game by itself, from its start where its end is shown. */
  #play(on) {
    clearInterval(this.playing)
    this.playing = null
    if (on) {
      if (this.cursor >= this.last) this.go(0)
      this.playing = setInterval(() => {
        this.go(this.cursor + 1)
        if (this.cursor >= this.last) this.#play(false)
      }, PLAY_MS)
    }
    const button = document.querySelector('[data-go="play"]')
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
    this.graphs.show(this.plies, this.cursor, this.game.kibitzed)
    this.#tick()
    this.#fetchLines()
  }

  #ply(n) { return this.plies[n - 1] }
  #own(side) { return this.plies.slice(0, this.cursor).findLast((ply) => ply.side === side && !ply.book) }

  // -- heads ------------------------------------------------------------------------

  #head() {
    const { game } = this
    patch(byId("game-title"), `${game.white.name} – ${game.black.name}`, game.result ? h("span", { class: "result" }, ` ${game.result}`) : null)
    const same = game.time_control.white === game.time_control.black
    const facts = [
      t("game.round", { event: game.event_name, round: game.round }),
      (same ? ["white"] : SIDES).map((side) => format.control(game.time_control[side])).join(" / "),
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
    const { game } = this
    return game.status === "running" && !game.clock?.thinking && this.plies.every((ply) => ply.book)
  }

  /** Say why a game that is over has nothing to be drawn: it ended before its first move, or nobody kept them. */
  #unplayed() {
    const { game } = this
    const none = game.status === "finished" && this.plies.every((ply) => ply.book)
    const why = t(game.recorded === false ? "game.unrecorded" : "game.unplayed")
    byId("graphs").hidden = none
    byId("unplayed").hidden = !none
    byId("unplayed").textContent = none ? [why, said(game.details), game.note].filter(Boolean).join(": ") : ""
  }

  #options({ options }) {
    if (!options.length) return h("p", { class: "quiet" }, t(this.game.status === "finished" ? "options.none" : "options.later"))
    return h("details", {}, h("summary", {}, t("options", { count: options.length })),
      h("ul", {}, options.map(({ name, value }) => h("li", {}, `${name} = ${value}`))))
  }

  #side(place) { return (place === "top") === !this.board.turned ? "black" : "white" }

  #cards() {
    for (const place of ["top", "bottom"]) {
      const side = this.#side(place)
      const engine = this.game[side]
      const who = [engine.version, engine.author && t("engine.author", { author: engine.author }), engine.country, engine.rating && `${engine.rating} Elo`, engine.protocol.toUpperCase()]
      const card = byId(`card-${place}`)
      card.className = `card ${side}`
      card.dataset.side = side
      card.setAttribute("aria-label", `${t(side)}: ${engine.name}`)
      patch(card,
        h("div", { class: "card-head" },
          h("div", {}, h("div", { class: "name" }, badge(engine.name), engine.name), h("div", { class: "who" }, [t(side), ...who].filter(Boolean).join(" · "))),
          h("span", { class: "material", "data-x": "material" }),
          h("span", { class: "eval", "data-x": "eval" }, "–"),
          h("span", { class: "clock", "data-x": "clock", role: "timer", "aria-live": "off", "aria-label": t(`clock.${side}`) }, UNKNOWN)),
        h("div", { class: "figures" }, h("dl", { class: "stats", "data-x": "stats" }), this.#options(engine)))
    }
  }

  #card(side) { return document.querySelector(`.card[data-side="${side}"]`) }

  #figures() {
    const more = material(this.fen)
    for (const side of SIDES) {
      const searching = this.following && this.game.search?.side === side ? this.game.search : null
      const said = searching ?? this.#own(side)
      const engine = this.game[side]
      const card = this.#card(side)
      const { signs, ahead } = more[side]
      card.querySelector('[data-x="material"]').textContent = `${signs}${ahead > 0 ? ` +${ahead}` : ""}`
      card.querySelector('[data-x="eval"]').textContent = format.evaluation(said?.eval)
      const depth = said?.depth ? `${said.depth}/${said.seldepth ?? said.depth}` : null
      const threads = engine.threads
      const diamonds = h("dd", { "data-x": "threads", title: t("threads.count", { count: threads }) },
        h("span", { class: "diamonds", "aria-hidden": "true" }, threads > DIAMONDS ? "◆ ×" : "◆".repeat(threads)), ` ${threads}`)
      const rows = [
        ["depth", depth], ["speed", said ? format.speed(said.nps) : null],
        ["nodes", said ? format.count(said.nodes) : null], ["tbhits", said ? format.count(said.tbhits) : null],
        ["hashfull", said?.hashfull === null || said?.hashfull === undefined ? null : format.percent(said.hashfull / 10, 1)],
        ["move", this.#elapsed(side) ?? (said && !searching ? `${format.moveTime(said.move_ms)}${said.pondered === "hit" ? ` (${t("figure.ponderhit")})` : ""}` : null)],
        ["hash", `${number(engine.hash_mb)} MB`], ["tablebases", engine.tablebases.join(", ") || t("tablebases.none")],
      ]
      patch(card.querySelector('[data-x="stats"]'),
        rows.map(([name, value]) => h("div", {}, h("dt", {}, t(`figure.${name}`)), h("dd", { "data-x": name }, value ?? "–"))),
        h("div", {}, h("dt", {}, t("figure.threads")), diamonds))
    }
    this.#bar()
  }

  #bar() {
    const search = this.following && this.game.search?.eval ? this.game.search : null
    const ply = search ?? this.plies.slice(0, this.cursor).findLast((one) => one.eval)
    const told = chances(ply)
    const [white, draw] = byId("eval-bar").children
    byId("eval-bar").classList.toggle("turned", this.board.turned)
    white.style.height = `${told?.white ?? 50}%`
    draw.style.height = `${(told?.white ?? 50) + (told?.draw ?? 0)}%`
    this.#chances(told, ply)
  }

  /** Say in words what the bar shows, and whose figures they are. */
  #chances(told, ply) {
    const line = byId("chances")
    line.hidden = !told
    if (!told) return
    const [white, drawn, black] = format.shares([told.white, told.draw, told.black])
    const engine = this.game[ply.side].name
    line.textContent = told.own ? t("chances.own", { white, draw: drawn, black, engine }) : t("chances.eval", { white, engine })
  }

  #thinking() {
    const thinking = this.following ? this.game.clock?.thinking : null
    for (const side of SIDES) this.#card(side)?.classList.toggle("thinks", thinking === side)
  }

  /** How long a side has been thinking about the move in progress, null if it is not. */
  #elapsed(side) {
    const { clock } = this.game
    if (!this.following || !this.linked || clock?.thinking !== side || !clock.since_ms) return null
    return t("unit.s", { n: Math.max(0, Math.floor((now() - clock.since_ms) / 1000)) })
  }

  #tick() {
    if (!this.game) return
    const { clock } = this.game
    for (const side of SIDES) {
      const shown = this.#card(side)?.querySelector('[data-x="clock"]')
      if (!shown || (this.following && !this.linked && shown.textContent !== UNKNOWN)) continue // nobody knows what it does
      let left
      if (this.following && clock) {
        left = clock[`${side}_ms`]
        if (clock.thinking === side && clock.since_ms && left !== null && this.linked) left -= Math.max(0, now() - clock.since_ms)
      } else {
        const seen = this.plies.slice(0, this.cursor).findLast((ply) => !ply.book)
        left = seen ? seen[`${side}_clock_ms`] : this.game.base_ms
      }
      const text = format.clock(left)
      if (shown.textContent !== text) shown.textContent = text
      const [elapsed, move] = [this.#elapsed(side), this.#card(side).querySelector('[data-x="move"]')]
      if (elapsed && move && move.textContent !== elapsed) move.textContent = elapsed
    }
  }

  #counters() {
    const counters = this.plies.slice(0, this.cursor).findLast((ply) => ply.counters)?.counters
    const plies = (n) => (!counters ? "–" : n === null || n === undefined ? t("counter.off") : t("plies", { count: n }))
    const rows = [
      ["draw", plies(counters?.plies_to_draw), counters?.plies_to_draw <= 10 && counters?.rd > 0],
      ["win", plies(counters?.plies_to_win), counters?.plies_to_win <= 10 && counters?.rr > 0],
      ["fifty", counters ? t("counter.moves", { count: counters.moves_to_fifty }) : "–", counters?.moves_to_fifty <= 10],
    ]
    patch(byId("counters"), rows.map(([name, text, near]) =>
      h("div", { class: near ? "near" : null }, h("dt", {}, t(`counter.${name}`)), h("dd", { "data-x": `to-${name}` }, text))))
  }

  // -- board and variations ---------------------------------------------------------

  #board() {
    const ply = this.#ply(this.cursor)
    const { fen } = this
    const arrows = []
    const reply = this.lines.get(this.cursor)?.[1]
    if (reply) arrows.push([reply.uci, EXPECTS[ply.side]])
    const search = this.following ? this.game.search : null
    if (search?.line?.[0]) arrows.push([search.line[0].uci, THINKS[search.side]])
    const where = ply ? t("board.after", { move: `${numbered(ply)} ${ply.san}`, position: spoken(fen) }) : t("board.start", { position: spoken(fen) })
    byId("analyse").href = analysis(fen, this.game.start_number !== null)
    this.board.show(fen, ply?.squares, arrows, where)
  }

  #variations() {
    unhover()
    const search = this.following ? this.game.search : null
    const variations = ["black", "white"].map((side) => {
      const live = search?.side === side ? search : null
      const ply = live ? null : this.#own(side)
      const said = live ?? ply
      return {
        side, first: live ? live.ply : ply?.n ?? 1, line: live ? live.line : (ply && this.lines.get(ply.n)) ?? [],
        head: said ? t(live ? `line.${side}.thinks` : `line.${side}.at`, { move: live ? "" : `${numbered(ply)} ${ply.san}`, eval: format.evaluation(said.eval) }) : t(side),
      }
    })
    const parts = parting(variations, this.plies)
    patch(byId("lines"), variations.map(({ side, head, line, first }) =>
      h("div", { class: `line ${side}`, "data-line": side }, h("h3", {}, head), this.#steps(line, first, head, parts))))
    this.#kibitzers()
  }

  #kibitzers() {
    const said = this.following ? (this.game.kibitzers ?? []).filter(({ ply }) => ply === this.last + 1) : []
    patch(byId("kibitzers"), said.map((one) => {
      const depth = one.depth ? t("kibitzer.depth", { depth: `${one.depth}/${one.seldepth ?? one.depth}` }) : ""
      const head = [t("kibitzer.says", { engine: one.engine, eval: format.evaluation(one.eval) }), depth, one.nps ? format.speed(one.nps) : ""].filter(Boolean).join(", ")
      return h("div", { class: "line kibitzer", "data-desk": one.desk, title: one.description || null }, h("h3", {}, head), this.#steps(one.line, one.ply, head))
    }))
  }

  /** The steps of a variation: the first is a stop of the Tab key, the arrows go to the others; `parts` is where another one parts from it. */
  #steps(line, first, title, parts = null) {
    return line.map((step, k) => {
      const before = step.fen.split(" ")
      const number = before[1] === "w" ? "" : `${before[5]}.`
      const show = (event) => hover(event.currentTarget, step.fen, this.board.turned)
      const other = first + k === parts
      return h("button", { type: "button", tabindex: k ? -1 : 0, class: other ? "parts" : null, title: other ? t("line.parts") : null, "data-n": first + k,
        "aria-label": `${number || "…"} ${step.san}`, onmouseenter: show, onfocus: show, onmouseleave: unhover, onblur: unhover,
        onclick: () => { unhover(); pin(title, line, k, this.board.turned) } },
      number ? h("span", { class: "quiet" }, number) : null, ` ${step.san}`)
    })
  }

  async #fetchLines() {
    if (!this.game || this.game.status === "interrupted" || (this.following && this.game.status === "running")) return
    const { season, game } = this.game
    const wanted = SIDES.map((side) => this.#own(side)).filter((ply) => ply && !this.lines.has(ply.n))
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
    const list = h("ol", {})
    fill(byId("moves"), list)
    this.list = list
    for (const ply of this.plies) this.#move(ply)
    this.#end()
  }

  #move(ply) {
    const number = Math.ceil(this.#index(ply) / 2)
    let row = this.list.lastElementChild
    if (!row || row.dataset.number !== String(number)) {
      row = h("li", { "data-number": number }, h("span", { class: "n" }, `${moveNumber(ply)}.`))
      if (ply.side === "black") row.append(h("span", {}, "…"))
      this.list.append(row)
    }
    const mark = ply.book ? t("move.book") : format.evaluation(ply.eval)
    row.append(h("button", { type: "button", class: ply.book ? "book" : null, "data-ply": ply.n, tabindex: -1, "aria-label": `${numbered(ply)} ${ply.san} ${mark}`, onclick: () => this.go(ply.n) }, ply.san, " ", h("small", {}, mark)))
  }

  /** Rows begin with White, also where the start position has Black to move. */
  #index(ply) { return this.plies[0]?.side === "black" ? ply.n + 1 : ply.n }

  #end() {
    this.list.querySelector(".end")?.remove()
    if (this.game.status === "running" || !this.game.result) return
    const judged = this.game.adjudicated ? `${t("game.adjudicated")}: ` : ""
    const why = [said(this.game.details), this.game.note].filter(Boolean).join(": ")
    this.list.append(h("li", { class: "end" }, h("span", { class: "end" }, `${this.game.result} – ${judged}${why}`)))
  }

  /** Mark the shown move: it alone is a stop of the Tab key, the arrows go to the others. */
  #current() {
    const panel = byId("moves")
    const before = panel.querySelector('[tabindex="0"]')
    panel.querySelector('[aria-current="true"]')?.removeAttribute("aria-current")
    const button = panel.querySelector(`[data-ply="${this.cursor}"]`)
    if (!button) return
    before?.setAttribute("tabindex", "-1")
    button.setAttribute("tabindex", "0")
    button.setAttribute("aria-current", "true")
    if (before && document.activeElement === before && !this.following) button.focus({ preventScroll: true })
    panel.scrollTop = button.offsetTop - panel.offsetTop - panel.clientHeight / 2
  }
}

/** Go through a variation by the arrows, which else move through the game. */
function walk(event) {
  const way = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[event.key]
  if (!way || event.target.tagName !== "BUTTON") return
  event.preventDefault()
  event.stopPropagation()
  event.target[way]?.focus() // the heading before the first step takes none
}

/** A ply's move number as its position counts them: a book line may begin at any move, with either side. */
function moveNumber(ply) { return ply.fen.split(" ")[5] - (ply.side === "black" ? 1 : 0) }

function numbered(ply) { return `${moveNumber(ply)}${ply.side === "black" ? "…" : "."}` }

/** A position in words, for those who hear the page. */
function spoken(fen) {
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
