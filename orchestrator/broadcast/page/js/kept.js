// What the browser keeps for this page; in a frame of another site it may refuse.

export const kept = {
  get(name) { try { return localStorage.getItem(name) } catch { return null } },
  set(name, value) { try { localStorage.setItem(name, value) } catch { /* it holds for this visit */ } },
}
