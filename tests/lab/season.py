"""What the laboratory's halls play: Debian's engine and the demo's, as slowly as a step needs."""

from __future__ import annotations

import hashlib

# Plays as Debian's engine, but no move before so many seconds as the folder's file ``pace`` says:
# a game takes as long as we like, and goes on faster when we like.
PATIENT = """#!/usr/bin/python3
import pathlib, subprocess, sys, time
pace = pathlib.Path(sys.argv[1], "pace")
engine = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, bufsize=0)
def wanted():
    try:
        return float(pace.read_text())
    except (OSError, ValueError):
        return 0.0
for line in sys.stdin.buffer:
    if line.startswith(b"go"):
        began, line = time.monotonic(), b"go nodes 100\\n"
        while time.monotonic() - began < wanted():
            time.sleep(0.05)
    engine.stdin.write(line)
"""
DIGEST = hashlib.sha256(PATIENT.encode()).hexdigest()
FOLDER = "/srv/lab"  # on every hall: what the engine's argument names, its sandbox shows

PLAYED = """schema = 1
id = "{name}"
name = "Laboratory {name}"
[roster]
[[roster.engine]]
id = "stockfish"
name = "Stockfish"
command = ["{patient}", "{folder}", "/usr/games/stockfish"]
[[roster.engine]]
id = "farm-engine"
name = "Farm Engine"
command = ["{farm_engine}", "--nodes", "{nodes}"]
{on_box}
[[event]]
id = "match"
name = "Match"
format = {{ kind = "match", games = {games} }}
entrants = "roster"
time_control = "3600s+10s"
limits = {{ threads = 1, hash_mb = 16 }}
adjudication = {{ max_moves = 150 }}
tiebreaks = ["seed"]
"""


def text(name: str, games: int, box: str = "") -> str:
    """Return a season file: a match of Debian's engine against the one of the demo's roster.

    The latter sits on ``box``, where one is named.
    """
    return PLAYED.format(
        name=name,
        games=games,
        patient=f"/opt/engines/patient/{DIGEST[:12]}/patient",
        folder=FOLDER,
        nodes=400,
        farm_engine="/opt/farm/venv/bin/farm-engine" if box else "farm-engine",
        on_box=f'competition = "gpu"\nbox = "{box}"' if box else "",
    )
