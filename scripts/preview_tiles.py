"""Draw the tiles of which the server makes pictures of positions: `page/preview-tiles.png`.

Run it again when the pieces or the board's colours change; it needs chromium.
"""

from __future__ import annotations

import pathlib
import shutil

from playwright import sync_api

from orchestrator.broadcast.web import preview

PAGE = pathlib.Path(preview.__file__).parent.parent / "page"
PIECES = PAGE / "vendor" / "cm-chessboard" / "assets" / "pieces" / "standard.svg"
DRAW = """async ([svg, tiles, colours, size]) => {
  const canvas = document.createElement("canvas")
  canvas.width = size * tiles.length
  canvas.height = size * colours.length
  const pen = canvas.getContext("2d")
  const whole = new DOMParser().parseFromString(svg, "image/svg+xml")
  for (const [down, colour] of colours.entries()) {
    pen.fillStyle = colour
    pen.fillRect(0, down * size, canvas.width, size)
    for (const [along, tile] of tiles.entries()) {
      if (!tile) continue
      const one = whole.documentElement.cloneNode(false)
      one.setAttribute("width", size)
      one.setAttribute("height", size)
      one.setAttribute("viewBox", "0 0 40 40")
      one.append(whole.getElementById(tile).cloneNode(true))
      const picture = new Image()
      picture.src = "data:image/svg+xml," + encodeURIComponent(one.outerHTML)
      await picture.decode()
      pen.drawImage(picture, along * size, down * size)
    }
  }
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height)
  return [...data].filter((_, at) => at % 4 < 3)
}"""


def main() -> None:
    """Draw all pieces on all colours of squares."""
    tiles = [
        "" if piece == "." else ("w" if piece.isupper() else "b") + piece.lower()
        for piece in preview.PIECES
    ]
    colours = list(preview.COLOURS)
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        pixels = browser.new_page().evaluate(
            DRAW, [PIECES.read_text(encoding="utf-8"), tiles, colours, preview.SIDE]
        )
        browser.close()
    width = preview.SIDE * len(tiles)
    rows = [bytes(pixels[at : at + 3 * width]) for at in range(0, len(pixels), 3 * width)]
    (PAGE / preview.TILES).write_bytes(preview.png(rows))


if __name__ == "__main__":
    main()
