// @ts-check
// Long tables: those rows are shown that were searched for, and of many a window.

export const WINDOW = 200 // rows at once: a browser lays out thousands for seconds

/**
 * What tells whether a text has all words that are searched for, in any case and order.
 * @param {string} words
 * @returns {(text: string) => boolean}
 */
export function finds(words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean)
  return (text) => { const all = text.toLowerCase(); return wanted.every((word) => all.includes(word)) }
}

/**
 * The rows that a search finds, and of these the window that is shown.
 * @template T
 * @param {readonly T[]} rows
 * @param {(row: T) => string} text   what a row is searched by
 * @param {string} words   each of them has to be in it
 * @param {?number} from   where the window begins; null is around `middle`
 * @param {(row: T) => boolean} middle   the row that is looked for first
 * @returns {{found: number, from: number, shown: readonly T[]}}
 */
export function windowed(rows, text, words, from, middle) {
  const fits = finds(words)
  const found = words.trim() ? rows.filter((row) => fits(text(row))) : rows
  const at = found.findIndex(middle)
  const begin = Math.max(0, Math.min(from ?? (at < 0 ? 0 : at - WINDOW / 2), found.length - WINDOW))
  return { found: found.length, from: begin, shown: found.slice(begin, begin + WINDOW) }
}
