// Elements without innerHTML: whatever engines and operators wrote stays text.

/** Make an element; `on…` attributes are listeners, null children are left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value)
    else element.setAttribute(name, value === true ? "" : value)
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false))
  return element
}

export const byId = (id) => document.getElementById(id)

/** Replace the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false))
}

/** Make a table; a heading is [text], or [text, true] above numbers. */
export const table = (caption, head, rows, attributes = {}) => h("table", attributes,
  h("caption", { class: "sr" }, caption),
  h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col", class: text[1] ? "num" : null }, text[0] ?? text)))),
  h("tbody", {}, rows))

/** Say that there is nothing to show, and why. */
export const empty = (text) => h("p", { class: "quiet" }, text)
