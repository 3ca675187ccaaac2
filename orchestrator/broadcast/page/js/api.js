// The page of the read API, made of its OpenAPI description.

import { byId, fill, h } from "./dom.js"

document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"
/** Show what stands between backticks as code. */
const words = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part))

const told = await (await fetch("api/v1/openapi.json")).json()
byId("title").textContent = `${told.info.title} ${told.info.version}`
fill(byId("about"), words(told.info.description))
fill(byId("paths"), Object.entries(told.paths).map(([path, { get }]) => h("section", {},
  h("h3", {}, `GET ${path}`),
  h("p", {}, words(get.summary)),
  get.parameters.length ? h("table", {}, h("tbody", {}, get.parameters.map((one) => h("tr", {},
    h("th", { scope: "row" }, one.name), h("td", {}, one.in), h("td", {}, words(one.description)))))) : null)))
