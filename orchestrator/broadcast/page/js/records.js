// What an engine has done against each other one: no document, no network.

const OF_WHITE = { "1-0": "1", "0-1": "0", "1/2-1/2": "=" }
const TURNED = { 1: "0", 0: "1", "=": "=" }
const POINTS = { 1: 1, "=": 0.5, 0: 0 }

/**
 * The results of an engine by opponent, most games first; annulled games are listed and count for nothing.
 * @param {object[]} games   rows of schedules
 * @param {string} name
 */
export function versus(games, name) {
  const met = new Map()
  for (const { white, black, result, game, annulled } of games) {
    if (!(result in OF_WHITE) || (white !== name && black !== name)) continue
    const opponent = white === name ? black : white
    if (!met.has(opponent)) met.set(opponent, { opponent, games: [], points: 0, played: 0, wins: 0, draws: 0, losses: 0 })
    const record = met.get(opponent)
    const sign = white === name ? OF_WHITE[result] : TURNED[OF_WHITE[result]]
    record.games.push({ game, sign, annulled: Boolean(annulled) })
    if (annulled) continue
    record.played += 1
    record.points += POINTS[sign]
    record[{ 1: "wins", "=": "draws", 0: "losses" }[sign]] += 1
  }
  return [...met.values()].sort((one, other) => other.played - one.played || (one.opponent < other.opponent ? -1 : 1))
}

/** All records as one. */
export function total(records) {
  const sum = (name) => records.reduce((all, record) => all + record[name], 0)
  return { points: sum("points"), played: sum("played"), wins: sum("wins"), draws: sum("draws"), losses: sum("losses") }
}
