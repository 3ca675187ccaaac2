// @ts-check
// Stands for the part of cm-chessboard that takes moves (`VisualMoveInput.js`, a tenth of the page's script): here a board
// is looked at. The server puts it in that part's place (`web/page_files.py`).

export class VisualMoveInput {
  fromSquare = null
  isDragging() { return false }
  positionChanged() { /* no move is being made */ }
  cancelMoveInput() { /* none is */ }
  onPointerDown() { /* and none begins */ }
  destroy() { /* nothing was set up */ }
}
