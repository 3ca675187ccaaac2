"""An engine that ponders: two knights go to and fro until a position occurs for the third time.

Standalone: ``python dancer.py MODE [PLY:REPLY]...``. The move depends on the ply alone, and so does
the reply that it expects: the one which will be played, or ``REPLY`` behind its move of ``PLY``
(``-``: none). ``MODE``: ``able`` ponders by the protocol; ``plain`` and ``none`` have no option
``Ponder``; ``early`` answers while it ponders, ``crash`` dies then, ``deaf`` does not stop.
"""

from __future__ import annotations

import os
import sys
import time

DANCE = ("g1f3", "g8f6", "f3g1", "f6g8")
THINKS, HITS, STOPS = 0.03, 0.02, 0.01  # s: of a move, behind ponderhit, behind stop


class Dancer:
    """The UCI loop."""

    def __init__(self, mode: str, guesses: dict[str, str]) -> None:
        """Take the command line."""
        self.mode, self.guesses = mode, guesses
        self.played = 0
        self.ponders = False

    def say(self, *lines: str) -> None:
        """Write lines at once."""
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()

    def answer(self, seconds: float) -> None:
        """Move after some time, and say which reply is expected."""
        time.sleep(seconds)
        self.ponders = False
        guess = self.guesses.get(str(self.played + 1), DANCE[(self.played + 1) % 4])
        expected = "" if guess == "-" else f" ponder {guess}"
        self.say(f"bestmove {DANCE[self.played % 4]}{expected}")

    def ponder(self) -> None:
        """Think in the opponent's turn."""
        if self.mode == "crash":
            sys.exit(3)
        if self.mode == "early":
            self.answer(0)
            return
        self.ponders = True
        self.say(f"info depth 7 score cp {self.played} pv {DANCE[self.played % 4]}")

    def obey(self, words: list[str]) -> None:
        """Do what a command says."""
        match words:
            case ["uci"]:
                able = self.mode not in ("plain", "none")
                offer = ["option name Ponder type check default false"] if able else []
                cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
                cuda = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
                info = (f"info string cpus {cpus}", f"info string cuda {cuda}")
                self.say("id name Dancer", *info, *offer, "uciok")
            case ["isready"]:
                self.say("readyok")
            case ["position", *rest]:
                self.played = len(rest[rest.index("moves") + 1 :]) if "moves" in rest else 0
            case ["go", "ponder", *_]:
                self.ponder()
            case ["go", *_]:
                self.answer(THINKS)
            case ["ponderhit"]:
                self.answer(HITS)
            case ["stop"] if self.ponders and self.mode != "deaf":
                time.sleep(STOPS)
                self.ponders = False
                self.say("bestmove a2a3 ponder a7a6")
            case ["quit"]:
                sys.exit(0)


def main() -> None:
    """Obey until the end of the input."""
    dancer = Dancer(sys.argv[1], dict(pair.split(":") for pair in sys.argv[2:]))
    for line in sys.stdin:
        dancer.obey(line.split())


if __name__ == "__main__":
    main()
