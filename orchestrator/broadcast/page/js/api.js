// @ts-check
// The page of the read API, made of its OpenAPI description.

import { byId, fill, h } from "./dom.js"

document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"
/**
 * Show what stands between backticks as code.
 * @param {string} text
 */
const words = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part))

/**
 * What is read of the description.
 * @type {{info: {title: string, version: string, description: string},
 *   paths: Record<string, {get: {summary: string, parameters: {name: string, in: string, description: string}[]}}>}}
 */
const told = await (await fetch("api/v1/openapi.json")).json()
byId("title").textContent = `${told.info.title} ${told.info.version}`
fill(byId("about"), words(told.info.description))
fill(byId("paths"), Object.entries(told.paths).map(([path, { get }]) => h("section", {},
  h("h3", {}, `GET ${path}`),
  h("p", {}, words(get.summary)),
  get.parameters.length ? h("table", {}, h("tbody", {}, get.parameters.map((one) => h("tr", {},
    h("th", { scope: "row" }, one.name), h("td", {}, one.in), h("td", {}, words(one.description)))))) : null)))
