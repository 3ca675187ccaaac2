// @ts-check
// What follows from positions and variations: no document, no network.

/** @typedef {"q" | "r" | "b" | "n" | "p"} Piece */

const VALUES = { q: 9, r: 5, b: 3, n: 3, p: 1 }
const SIGNS = { q: "♛", r: "♜", b: "♝", n: "♞", p: "♟" }

/**
 * The pieces that each side has more than the other, and the points that it is ahead.
 * @param {string} fen
 */
export function material(fen) {
  const placement = fen.split(" ")[0]
  /** @param {string} sign */
  const count = (sign) => placement.split(sign).length - 1
  const more = { white: { signs: "", ahead: 0 }, black: { signs: "", ahead: 0 } }
  for (const [piece, value] of /** @type {[Piece, number][]} */ (Object.entries(VALUES))) {
    const surplus = count(piece.toUpperCase()) - count(piece)
    more[surplus > 0 ? "white" : "black"].signs += SIGNS[piece].repeat(Math.abs(surplus))
    more.white.ahead += surplus * value
  }
  more.black.ahead = -more.white.ahead
  return more
}

/**
 * The first ply at which two variations part; null where they do not, as far as both go. Where the
 * later one has not begun yet stands what was played.
 * @param {readonly {first: number, line: readonly {san: string}[]}[]} variations   two, each from its first ply on
 * @param {readonly {san: string}[]} plies   of the game
 */
export function parting(variations, plies) {
  if (variations.length !== 2 || variations.some(({ line }) => !line.length)) return null
  const [early, late] = variations.toSorted((one, other) => one.first - other.first)
  for (let n = early.first; n < early.first + early.line.length; n += 1) {
    const other = n < late.first ? plies[n - 1] : late.line[n - late.first]
    if (!other) return null
    if (other.san !== early.line[n - early.first].san) return n
  }
  return null
}

const STEEPNESS = 0.00368208 // a centipawn: Lichess' curve (lichess.org/page/accuracy), fitted to games of people

/**
 * What White may expect, in per cent: wins, draws and losses by the engine itself, else the score that the eval is
 * worth, which knows no draws.
 * @param {?{wdl?: ?readonly number[], cp?: ?number, mate?: ?number, eval?: ?string} | undefined} said   in White's view
 * @returns {?{white: number, draw: number, black: number, own: boolean}}   null without an eval
 */
export function chances(said) {
  const [wins, draws, losses] = said?.wdl ?? [0, 0, 0]
  const sum = wins + draws + losses
  if (sum) return { white: (100 * wins) / sum, draw: (100 * draws) / sum, black: (100 * losses) / sum, own: true }
  if (!said?.eval) return null
  const mate = said.mate !== null && said.mate !== undefined
  const white = mate ? (said.eval.startsWith("-") ? 0 : 100) : 100 / (1 + Math.exp(-STEEPNESS * (said.cp ?? 0)))
  return { white, draw: 0, black: 100 - white, own: false }
}

/**
 * The address at which Lichess analyses a position.
 * @param {string} fen
 * @param {boolean} chess960
 */
export const analysis = (fen, chess960) => `https://lichess.org/analysis/${chess960 ? "chess960" : "standard"}/${fen.replaceAll(" ", "_")}`

/**
 * The part of this page's address that names a ply.
 * @param {{season: string, game: string}} game
 * @param {number} ply
 */
export const plyAddress = ({ season, game }, ply) => `#/${encodeURIComponent(season)}/game/${encodeURIComponent(game)}/${ply}`
