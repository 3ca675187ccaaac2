// @ts-check
// What an engine has done against each other one: no document, no network.

/** @type {{readonly [result: string]: import("./results.js").Sign | undefined}} */
const OF_WHITE = { "1-0": "1", "0-1": "0", "1/2-1/2": "=" }
const TURNED = /** @type {const} */ ({ 1: "0", 0: "1", "=": "=" })
const COUNTED = /** @type {const} */ ({ 1: "wins", "=": "draws", 0: "losses" })
const POINTS = { 1: 1, "=": 0.5, 0: 0 }

/**
 * Results.
 * @typedef {{points: number, played: number, wins: number, draws: number, losses: number}} Score
 *
 * Those against an opponent.
 * @typedef {Score & {opponent: string, games: {game: string, sign: import("./results.js").Sign, annulled: boolean}[]}} Record
 */

/**
 * The results of an engine by opponent, most games first; annulled games are listed and count for nothing.
 * @param {readonly Pick<Api.ScheduledGame, "white" | "black" | "result" | "game" | "annulled">[]} games   rows of schedules
 * @param {string} name
 * @returns {Record[]}
 */
export function versus(games, name) {
  /** @type {Map<string, Record>} */
  const met = new Map()
  for (const { white, black, result, game, annulled } of games) {
    const ofWhite = result && OF_WHITE[result]
    if (!ofWhite || (white !== name && black !== name)) continue
    const opponent = white === name ? black : white
    const record = met.get(opponent) ?? { opponent, games: [], points: 0, played: 0, wins: 0, draws: 0, losses: 0 }
    met.set(opponent, record)
    const sign = white === name ? ofWhite : TURNED[ofWhite]
    record.games.push({ game, sign, annulled: Boolean(annulled) })
    if (annulled) continue
    record.played += 1
    record.points += POINTS[sign]
    record[COUNTED[sign]] += 1
  }
  return [...met.values()].sort((one, other) => other.played - one.played || (one.opponent < other.opponent ? -1 : 1))
}

const LOGISTIC = 400 // Elo: ten times the odds
const FAR = 1200 // Elo beyond the opponents: no performance lies there
const HALVINGS = 14 // to a tenth of an Elo

/**
 * The performance after each game: the rating at which all results so far were to be expected, by the opponents' ratings.
 * While everything was won or lost there is none, nor after games whose opponent has no rating.
 * @param {readonly Pick<Api.ScheduledGame, "white" | "black" | "result" | "annulled">[]} games   in their order
 * @param {ReadonlyMap<string, number>} ratings   by name
 * @param {string} name
 * @returns {{game: number, rating: number}[]}   by the number of the engine's game
 */
export function performance(games, ratings, name) {
  /** @type {number[]} */
  const met = [] // the opponents' ratings
  const curve = []
  let points = 0
  let game = 0
  for (const { white, black, result, annulled } of games) {
    const ofWhite = result && !annulled && OF_WHITE[result]
    if (!ofWhite || (white !== name && black !== name)) continue
    game += 1
    const rating = ratings.get(white === name ? black : white)
    if (rating === undefined) continue
    met.push(rating)
    points += POINTS[white === name ? ofWhite : TURNED[ofWhite]]
    if (points > 0 && points < met.length) curve.push({ game, rating: expecting(points, met) })
  }
  return curve
}

/**
 * The rating that is expected to take so many points of opponents with these ratings.
 * @param {number} points
 * @param {readonly number[]} met
 */
function expecting(points, met) {
  let [low, high] = [Math.min(...met) - FAR, Math.max(...met) + FAR]
  for (let k = 0; k < HALVINGS; k += 1) {
    const middle = (low + high) / 2
    const expected = met.reduce((sum, rating) => sum + 1 / (1 + 10 ** ((rating - middle) / LOGISTIC)), 0)
    if (expected < points) low = middle
    else high = middle
  }
  return (low + high) / 2
}

/**
 * All records as one.
 * @param {readonly Record[]} records
 * @returns {Score}
 */
export function total(records) {
  /** @param {keyof Score} name */
  const sum = (name) => records.reduce((all, record) => all + record[name], 0)
  return { points: sum("points"), played: sum("played"), wins: sum("wins"), draws: sum("draws"), losses: sum("losses") }
}
