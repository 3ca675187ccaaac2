// @ts-check
// The tables below the game: which there are, in their order, and when. What draws them comes later (`tables.js`).

import { isMatch } from "./notice.js"

/** @typedef {"test" | "standings" | "crosstable" | "schedule" | "bracket" | "engine" | "ratings" | "forecast" | "graph" | "statistics" | "log" | "archive" | "tests"} Id */

/** @param {Api.Season} season */
const isSeason = (season) => !isMatch(season)

/** @type {readonly {id: Id, when?: (season: Api.Season, tests: number) => boolean}[]} */
export const TABS = [
  { id: "test", when: isMatch },
  { id: "standings" },
  { id: "crosstable" },
  { id: "schedule" },
  { id: "bracket", when: (season) => season.events.some((event) => event.knockout) },
  { id: "engine" },
  { id: "ratings", when: isSeason },
  { id: "forecast", when: isSeason },
  { id: "graph", when: isSeason },
  { id: "statistics" },
  { id: "log", when: isSeason },
  { id: "archive", when: isSeason },
  { id: "tests", when: (_, count) => count > 0 },
]
