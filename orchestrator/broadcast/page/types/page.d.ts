// What the page's scripts call things that no module of them makes.

/** What may stand in an element; null, undefined and false are left out. */
type Child = Node | string | number | null | undefined | false
type Children = Child | readonly Child[]

/** Attributes of an element that is made; `on…` are handlers, null and false are left out. */
type Attributes = Readonly<Record<string, string | number | boolean | null | undefined | ((event: any) => unknown)>>

/** The elements of the page that are more than a box, by their ids. */
interface Ids {
  "analyse": HTMLAnchorElement
  "follow": HTMLAnchorElement
  "game-pgn": HTMLAnchorElement
  "language": HTMLSelectElement
  "season-pgn": HTMLAnchorElement
  "to-live": HTMLAnchorElement
  "whole": HTMLAnchorElement
}

/** Whether somebody still waits for what is being fetched. */
type Current = () => boolean

/** A heading of a table: its text, and whether numbers stand below; nothing above what needs none. */
type Heading = readonly (string | boolean | undefined)[]

interface Window {
  /** The library of the graphs, once one of them is in sight. */
  uPlot?: PlotLibrary
}

type PlotLibrary = new (options: object, data: readonly (readonly (number | null)[])[], holder: HTMLElement) => Plot

/** What is used of uPlot. */
interface Plot {
  readonly width: number
  readonly height: number
  readonly ctx: CanvasRenderingContext2D
  readonly bbox: {readonly top: number, readonly height: number}
  readonly over: HTMLElement
  readonly cursor: {readonly idx?: number | null, readonly left: number}
  readonly data: readonly (readonly (number | null)[])[]
  setData(data: readonly (readonly (number | null)[])[]): void
  setSize(size: {width: number, height: number}): void
  posToVal(position: number, scale: string): number
  valToPos(value: number, scale: string, onCanvas: boolean): number
  destroy(): void
}
