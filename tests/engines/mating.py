"""A tiny UCI engine that plays known mates: ``mating.py good|bad [pause in ms]``.

From the start position ``good`` mates ``bad`` with either colour, in 7 or 4 plies; two
``good`` ones or two ``bad`` ones do not fit together. Standard library only, so that a
match of many games is short.
"""

from __future__ import annotations

import sys
import time

PLAY = {
    "good": {"white": ("e2e4", "f1c4", "d1h5", "h5f7"), "black": ("e7e5", "d8h4")},
    "bad": {"white": ("f2f3", "g2g4"), "black": ("e7e5", "b8c6", "g8f6")},
}


def main(skill: str, pause_ms: int) -> None:
    """Answer commands until ``quit`` or the end of input."""
    played: list[str] = []
    for line in sys.stdin:
        words = line.split()
        if words[:1] == ["uci"]:
            print("id name Mating\noption name Hash type spin default 1 min 1 max 64\nuciok")
        elif words[:1] == ["isready"]:
            print("readyok")
        elif words[:1] == ["position"]:
            played = words[words.index("moves") + 1 :] if "moves" in words else []
        elif words[:1] == ["go"]:
            time.sleep(pause_ms / 1000)
            own = PLAY[skill]["black" if len(played) % 2 else "white"]
            print(f"info depth 1 score cp 10 nodes 1\nbestmove {own[len(played) // 2]}")
        elif words[:1] == ["quit"]:
            return
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
