// The page of the read API, made of its OpenAPI description.

import { byId, fill, h } from "./dom.js"

document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"
const told = await (await fetch("api/v1/openapi.json")).json()
byId("title").textContent = `${told.info.title} ${told.info.version}`
byId("about").textContent = told.info.description
fill(byId("paths"), Object.entries(told.paths).map(([path, { get }]) => h("section", {},
  h("h3", {}, `GET ${path}`),
  h("p", {}, get.summary),
  get.parameters.length ? h("table", {}, h("tbody", {}, get.parameters.map((one) => h("tr", {},
    h("th", { scope: "row" }, one.name), h("td", {}, one.in), h("td", {}, one.description))))) : null)))
