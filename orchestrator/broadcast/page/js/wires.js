// @ts-check
// Lines between boxes that belong together: a bracket's matches, the events of a season.

const NAMESPACE = "http://www.w3.org/2000/svg"

/**
 * Make an element of a drawing.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 */
export function make(tag, attributes) {
  const element = document.createElementNS(NAMESPACE, tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value))
  return element
}

/** @typedef {{from: Element, to: Element, kind?: string, label?: string}} Wire */

/**
 * Draw lines inside an element, from the right edge of a box to the left edge of another one.
 * @param {HTMLElement} inside   is positioned, and as large as all boxes
 * @param {readonly Wire[]} wires
 */
export function connect(inside, wires) {
  inside.querySelector(":scope > svg.wires")?.remove()
  const ground = inside.getBoundingClientRect()
  const drawing = make("svg", { class: "wires", width: inside.scrollWidth, height: inside.scrollHeight, "aria-hidden": "true" })
  for (const { from, to, kind = "", label } of wires) {
    const [a, b] = [from.getBoundingClientRect(), to.getBoundingClientRect()]
    const [x, y, u, v] = [a.right - ground.left, (a.top + a.bottom) / 2 - ground.top, b.left - ground.left, (b.top + b.bottom) / 2 - ground.top]
    const bend = Math.max(12, (u - x) / 2)
    drawing.append(make("path", { class: kind, d: `M${x} ${y}C${x + bend} ${y} ${u - bend} ${v} ${u} ${v}` }))
    if (!label) continue
    const text = make("text", { x: (x + u) / 2, y: (y + v) / 2 - 5, "text-anchor": "middle" })
    text.textContent = label
    drawing.append(text)
  }
  inside.prepend(drawing)
}
