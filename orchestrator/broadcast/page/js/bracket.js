// @ts-check
// The matches of a Cup that have not been drawn, as far as those before them say who plays: no document, no network.

/**
 * Who comes to a match: an engine, else one of those who play for it.
 * @typedef {{feeds: string, lost: boolean, engine?: string, name?: string, seed?: number, winner?: boolean, among: readonly string[]}} Comer
 * @typedef {{match: number, sides: readonly (?Comer | Api.BracketSide)[]}} Coming
 */

/**
 * The matches of the rounds that have not been drawn. A round that is `listed` takes its engines as they come from the round
 * before, 1 and 2, 3 and 4 …: winners, then losers, both in the order of their matches.
 * @param {readonly {id: string, listed: boolean, matches: readonly Api.Match[]}[]} rounds   in their order
 * @param {readonly Api.GraphWay[]} ways
 * @returns {ReadonlyMap<string, readonly (Coming & {sides: readonly Comer[]})[]>}   by the round
 */
export function coming(rounds, ways) {
  const drawn = new Map(rounds.map(({ id, matches }) => [id, matches]))
  const made = new Map()
  for (const { id, listed, matches } of rounds) {
    const [way, ...others] = ways.filter(({ to }) => to === id)
    if (matches.length || !listed || !way || others.length) continue
    const before = made.get(way.from) ?? drawn.get(way.from) ?? []
    if (way.places.length % 2 || Math.max(...way.places) > 2 * before.length) continue
    const comers = way.places.map((place) => comer(way.from, before, place))
    made.set(id, comers.flatMap((one, at) => (at % 2 ? [] : [{ match: at / 2 + 1, sides: [one, comers[at + 1]] }])))
  }
  return made
}

/**
 * @param {string} from
 * @param {readonly Coming[]} matches
 * @param {number} place
 * @returns {Comer}
 */
function comer(from, matches, place) {
  const lost = place > matches.length
  const { match, sides } = matches[(place - 1) % matches.length]
  const winner = sides.find((side) => side?.winner)
  const who = winner && lost ? sides.find((side) => side !== winner) : winner
  const names = sides.flatMap((side) => side?.name ?? [])
  return { feeds: `${from} ${match}`, lost, engine: who?.engine, name: who?.name, seed: who?.seed, among: names.length === 2 ? names : [] }
}
