// What is said of the season as a whole: its end, what it waits for, what comes next.

import * as format from "./format.js"

const CALM_MS = 4000 // between two games nothing is said for so long: the next one begins by itself
const AT_ONCE = new Set(["hold", "pause", "organizers"])

/** Say that the season is over, or what keeps its next game from being played; "" while all is well. */
export function words(season, now) {
  if (season.status === "finished") return `The season is over: ${season.champion} is the champion.`
  if (season.status === "abandoned") return sentence("The season was abandoned", season.reason)
  const waits = standing(season, now)
  if (waits.length) return [...waits.map((one) => wait(season, one, now)), next(season, waits)].filter(Boolean).join(" ")
  return season.decisions.length ? sentence("The organizers are asked", season.decisions.map(({ about }) => about).join("; ")) : ""
}

/** Return whether no game is in flight, nor about to be: the one that is shown beside a replay is then the last. */
export const resting = (season, now) => over(season) || standing(season, now).length > 0

const standing = ({ waits = [] }, now) => waits.filter((one) => AT_ONCE.has(one.for) || now - one.since_ms > CALM_MS)

/** Return whether what is said is no trouble: the season's end, or a break that ends by itself. */
export const calm = ({ status, waits = [] }) => status === "finished" || (waits.length > 0 && waits.every((one) => one.for === "gate"))

export const over = (season) => season.status === "finished" || season.status === "abandoned"

function wait(season, one, now) {
  switch (one.for) {
    case "hold": return sentence("The season is held", one.reason)
    case "pause": return sentence("The season is paused", one.reason)
    case "verdict": return `Game ${one.game} was interrupted; how it goes on is being decided.`
    case "hall": return `${coming(season.next)} waits for its hall since ${format.moment(one.since_ms)}.`
    case "organizers": return sentence("Waiting for the organizers", one.reason)
    case "host": return sentence("Waiting for a host that is away", one.reason)
    case "gate": return gate(season, one, now)
  }
  return ""
}

function gate(season, { event, until_ms }, now) {
  const name = season.events.find((one) => one.event === event)?.name ?? event
  const players = season.next?.event === event ? season.next.engines.join(" – ") : ""
  if (until_ms === null) return `${name}${players && `: ${players},`} starts when its organizers say so.`
  return `${name}${players && `: ${players},`} starts ${until_ms > now ? `about ${format.moment(until_ms)}` : "at any moment"}.`
}

/** Name the game that comes next, unless it has been named by what it waits for. */
function next(season, waits) {
  return season.next?.game && !waits.some((one) => one.for === "hall") ? `${coming(season.next)}.` : ""
}

const coming = ({ engines, event_name, round }) => `Next game: ${engines.join(" – ")} (${event_name}, round ${round})`

const sentence = (head, why) => `${head}${why ? `: ${why.replace(/[\s.]+$/, "")}` : ""}.`
