// Elements without innerHTML: whatever engines and operators wrote stays text.

const HANDLERS = Symbol("names of the handlers that h() has set")
const KEYS = ["key", "game", "engine", "champion", "match", "tab", "event", "ply", "number", "line", "desk"] // data attributes that name a child
const present = (children) => children.flat().filter((child) => child !== null && child !== undefined && child !== false)

/** Make an element; `on…` attributes are handlers, null children are left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  element[HANDLERS] = []
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith("on")) { element[name] = value; element[HANDLERS].push(name) } else element.setAttribute(name, value === true ? "" : value)
  }
  element.append(...present(children))
  return element
}

export const byId = (id) => document.getElementById(id)

/** Replace the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...present(children))
}

/**
 * Make the children of an element like others, and keep each that has its counterpart: the same key,
 * else the same place and tag. So focus, half-typed words, scroll positions and open details survive.
 */
export function patch(element, ...children) {
  const focused = document.activeElement
  patchChildren(element, present(children).map((child) => (child instanceof Node ? child : new Text(String(child)))))
  // An element that changes its place loses the focus.
  if (focused !== document.activeElement && element.contains(focused)) focused.focus({ preventScroll: true })
}

function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return ""
  const name = KEYS.find((key) => key in node.dataset)
  return name ? `${name} ${node.dataset[name]}` : node.id
}

function patchChildren(element, wanted) {
  const keyed = new Map()
  for (const child of element.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child)
  let place = element.firstChild
  for (const next of wanted) {
    const key = keyOf(next)
    const counterpart = key ? keyed.get(key) : place && !keyOf(place) ? place : null
    if (counterpart?.nodeName !== next.nodeName) {
      element.insertBefore(next, place)
      continue
    }
    keyed.delete(key)
    if (counterpart === place) place = place.nextSibling
    else element.insertBefore(counterpart, place)
    patchNode(counterpart, next)
  }
  while (place) {
    const { nextSibling } = place
    place.remove()
    place = nextSibling
  }
}

function patchNode(old, next) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== next.data) old.data = next.data
    return
  }
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name) && !isOwn(old, name)) old.removeAttribute(name)
  for (const { name, value } of next.attributes) if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value)
  if (old.style.cssText !== next.style.cssText) old.style.cssText = next.style.cssText
  for (const name of old[HANDLERS] ?? []) old[name] = null
  for (const name of next[HANDLERS] ?? []) old[name] = next[name]
  old[HANDLERS] = next[HANDLERS]
  patchChildren(old, [...next.childNodes])
}

/** Whether an attribute is the spectator's (details are open), or is compared in another way. */
const isOwn = (element, name) => name === "style" || (name === "open" && element.tagName === "DETAILS")

/** Make a table; a heading is [text], [text, true] above numbers, or [] above what needs none. */
export const table = (caption, head, rows, attributes = {}) => h("table", attributes,
  h("caption", { class: "sr" }, caption),
  h("thead", {}, h("tr", {}, head.map(([text, number]) => text === undefined ? h("td") : h("th", { scope: "col", class: number ? "num" : null }, text)))),
  h("tbody", {}, rows))

/** Say that there is nothing to show, and why. */
export const empty = (text) => h("p", { class: "quiet" }, text)
