// Rating list and forecast, as the server computes them after each game.

import { empty, h, table } from "./dom.js"
import { get } from "./feed.js"
import * as format from "./format.js"

const FAVOURITES = 8 // of the title: more are hardly any
const BOUND = { ">": "won every game", "<": "lost every game" }

const cell = (name, text) => h("td", { class: "num", "data-x": name }, text)

// -- the rating list --------------------------------------------------------------------

export async function ratings() {
  const told = await get("ratings")
  const title = h("h3", {}, "Rating list")
  if (!told || told.absent) return [title, empty(told?.absent ?? "No rating list.")]
  const head = [["#", true], ["Engine"], ["Rating", true], ["±", true], ["Points", true], ["Games", true], ["Score", true], ["Standing"]]
  return [title, table("Rating list", head, told.ratings.map(rated), { class: "ratings" }),
    h("p", { class: "quiet note" }, `${told.games === 1 ? "The one official game" : `All ${told.games} official games`} of all seasons, as of ${format.moment(told.made_ms)}.`, scale(told), figures(told),
      " ± is half of the 95 % interval. Provisional: has not finished an event yet, or no chain of wins and draws leads to the others.")]
}

/** Say where the list lies: on the scale of the rosters, as far as they rate its engines. */
function scale({ average, rosters }) {
  if (!rosters) return ` No roster rates these engines: their mean is put at ${average}.`
  return ` On the rosters' scale, by the ${rosters === 1 ? "one engine" : `mean of the ${rosters} engines`} that both rate.`
}

/** Say what White's advantage and the draw rate are, where enough games tell them. */
function figures({ white_advantage: white, draw_rate: draws }) {
  if (white === null && draws === null) return " Too few games yet to tell what White is worth, and how often equal engines draw."
  const worth = white === null ? "is not sure enough yet to be told" : `is ${white.toFixed(0).replace("-", "−")} points`
  const drawn = draws === null ? "" : ` Equal engines draw ${(100 * draws).toFixed(0)} % of their games.`
  return ` White's advantage ${worth}.${drawn}`
}

function rated(row) {
  return h("tr", { "data-engine": row.engine, class: row.provisional ? "provisional" : null },
    cell("rank", row.rank ?? "–"), h("th", { scope: "row" }, row.engine),
    cell("rating", row.rating === null ? "–" : `${row.bound} ${row.rating.toFixed(1)}`.trim()),
    cell("error", row.error ? row.error.toFixed(1) : "–"),
    cell("points", format.points(row.points)), cell("played", row.played), cell("score", `${row.percent.toFixed(1)} %`),
    h("td", { "data-x": "standing" }, row.provisional ? h("span", { class: "tag" }, "provisional") : null, BOUND[row.bound] ? ` ${BOUND[row.bound]}` : null))
}

// -- the forecast -----------------------------------------------------------------------

export async function forecast({ season, event: id }) {
  const told = await get(`seasons/${season.season}/forecast`)
  if (!told || told.absent) return [h("h3", {}, "Forecast"), empty(told?.absent ?? "No forecast.")]
  const event = told.events.find((one) => one.event === id)
  return [
    h("h3", {}, `Forecast: ${event?.name ?? season.name}`),
    event?.engines.length ? chances(event) : empty("Nobody plays this event in any of the runs."),
    h("h3", {}, "Champion of the season"), favourites(told.champion),
    h("h3", {}, "End of the season"), end(told), basis(told),
  ]
}

function chances(event) {
  const { engines, promotes, relegates } = event
  const uncertain = engines.some((line) => line.plays < 1)
  const head = [["Engine"], ...(uncertain ? [["Plays", true]] : []), ...engines[0].places.map((_, at) => [String(at + 1), true]),
    ...promotes.map(({ name }) => [`→ ${name}`, true]), ...(relegates ? [["Relegated", true]] : [])]
  const rows = engines.map((line) => h("tr", { "data-engine": line.engine }, h("th", { scope: "row" }, line.name),
    uncertain ? chance("plays", line.plays) : null,
    line.places.map((value, at) => chance(`place-${at + 1}`, value)),
    promotes.map(({ to }) => chance(`to-${to}`, line.promoted[to])),
    relegates ? chance("relegated", line.relegated) : null))
  return table(`Chances of each place in ${event.name}`, head, rows, { class: "chances" })
}

function chance(name, value) {
  const made = h("td", { class: "num chance", "data-x": name }, format.chance(value))
  made.style.setProperty("--chance", value)
  return made
}

function favourites(lines) {
  const told = format.rivals(lines.map((line) => line.chance))
  return table("Chances of the title", [["Engine"], ["Chance", true], []], lines.slice(0, FAVOURITES).map((line, at) => {
    const bar = h("span", { class: "bar" })
    bar.style.width = `${100 * line.chance}%`
    return h("tr", { "data-champion": line.engine }, h("th", { scope: "row" }, line.name),
      cell("title", told[at]), h("td", { class: "track", "aria-hidden": "true" }, bar))
  }), { class: "favourites" })
}

function end({ end_ms: { early, expected, late } }) {
  return h("p", { "data-x": "end" }, `About ${format.moment(expected)}; nine times in ten between ${format.moment(early)} and ${format.moment(late)}.`)
}

function basis({ made_ms: made, games, runs, seed, unrated }) {
  const without = unrated.length ? ` Engines without a rating (${unrated.join(", ")}) count as 3000 ± 250.` : ""
  return h("p", { class: "quiet note", "data-x": "basis" }, `Made ${format.moment(made)} after ${games} ${games === 1 ? "game" : "games"}:`,
    ` the rest was played ${runs} times by drawn results (seed ${seed}), with the rosters' ratings as this season's games correct them.${without}`,
    " An empty cell happened in none of the runs.")
}
