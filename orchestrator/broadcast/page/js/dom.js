// @ts-check
// Elements without innerHTML: whatever engines and operators wrote stays text.

const HANDLERS = Symbol("names of the handlers that h() has set")
const KEYS = ["key", "game", "engine", "champion", "match", "tab", "event", "ply", "number", "line", "desk"] // data attributes that name a child
/** @type {(children: readonly Children[]) => (Node | string | number)[]} */
const present = (children) => children.flat().filter((child) => child !== null && child !== undefined && child !== false)

/**
 * Make an element; `on…` attributes are handlers, null children are left out.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {...Children} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, attributes = {}, ...children) {
  /** @type {any} */
  const element = document.createElement(tag)
  element[HANDLERS] = []
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith("on")) { element[name] = value; element[HANDLERS].push(name) } else element.setAttribute(name, value === true ? "" : value)
  }
  element.append(...present(children))
  return element
}

/**
 * The element of the page with an id: the page has it.
 * @template {string} Id
 * @param {Id} id
 * @returns {Id extends keyof Ids ? Ids[Id] : HTMLElement}
 */
export const byId = (id) => /** @type {any} */ (document.getElementById(id))

/**
 * Replace the children of an element.
 * @param {Element} element
 * @param {...Children} children
 */
export function fill(element, ...children) {
  element.replaceChildren(.../** @type {(Node | string)[]} */ (present(children)))
}

/**
 * Make the children of an element like others, and keep each that has its counterpart: the same key,
 * else the same place and tag. So focus, half-typed words, scroll positions and open details survive.
 * @param {Element} element
 * @param {...Children} children
 */
export function patch(element, ...children) {
  const focused = /** @type {?HTMLElement} */ (document.activeElement)
  patchChildren(element, present(children).map((child) => (child instanceof Node ? child : new Text(String(child)))))
  // An element that changes its place loses the focus.
  if (focused && focused !== document.activeElement && element.contains(focused)) focused.focus({ preventScroll: true })
}

/** @param {Node} node */
function keyOf(node) {
  if (!(node instanceof HTMLElement)) return ""
  const name = KEYS.find((key) => key in node.dataset)
  return name ? `${name} ${node.dataset[name]}` : node.id
}

/**
 * @param {Element} element
 * @param {readonly Node[]} wanted
 */
function patchChildren(element, wanted) {
  /** @type {Map<string, Node>} */
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

/**
 * @param {any} old     of the same kind as the other one
 * @param {any} next
 */
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

/**
 * Whether an attribute is the spectator's (details are open), or is compared in another way.
 * @param {Element} element
 * @param {string} name
 */
const isOwn = (element, name) => name === "style" || (name === "open" && element.tagName === "DETAILS")

/**
 * Make a table; a heading is [text], [text, true] above numbers, or [] above what needs none.
 * @param {string} caption
 * @param {readonly Heading[]} head
 * @param {readonly Child[]} rows
 * @param {Attributes} attributes
 */
export const table = (caption, head, rows, attributes = {}) => h("table", attributes,
  h("caption", { class: "sr" }, caption),
  h("thead", {}, h("tr", {}, head.map(([text, number]) => text === undefined ? h("td") : h("th", { scope: "col", class: number ? "num" : null }, String(text))))),
  h("tbody", {}, rows))

/**
 * Say that there is nothing to show, and why.
 * @param {string} text
 */
export const empty = (text) => h("p", { class: "quiet" }, text)
