// @ts-check
// What the browser keeps for this page; in a frame of another site it may refuse.

export const kept = {
  /** @param {string} name */
  get(name) { try { return localStorage.getItem(name) } catch { return null } },
  /**
   * @param {string} name
   * @param {string} value
   */
  set(name, value) { try { localStorage.setItem(name, value) } catch { /* it holds for this visit */ } },
}
