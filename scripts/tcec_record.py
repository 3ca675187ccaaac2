"""Write the record of TCEC's events that the tests read, from the archive's PGN files.

python scripts/tcec_record.py tests/data/tcec/record.jsonl.gz ARCHIVE/master-archive/*.pgn
"""

from __future__ import annotations

import gzip
import pathlib
import sys
from typing import Final

from orchestrator.audit import record

LICENCE: Final = """\
# Results of events of TCEC's public game archive (https://github.com/TCEC-Chess/tcecgames):
# pairings, results, openings by number, clocks. Copyright the TCEC organization, CC BY-SA 3.0
# (https://creativecommons.org/licenses/by-sa/3.0/); cut from the PGN files, changed in form.
"""


def main() -> None:
    """Read every file named behind the first, and write their record there."""
    target, *sources = map(pathlib.Path, sys.argv[1:])
    lines = record.lines(record.survey(sources))
    text = LICENCE + "".join(f"{line}\n" for line in lines)
    target.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
