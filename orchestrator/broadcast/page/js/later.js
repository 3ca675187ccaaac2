// @ts-check
// What the first view does not need: it is fetched once that stands, as a script of its own.

import { drawBoards, summary } from "./match.js"
import { pin } from "./pinned.js"
import { draw } from "./tables.js"

export { draw, drawBoards, pin, summary }
