"""TCEC's events as they were played (``tests/data/tcec``)."""

from __future__ import annotations

import functools
from pathlib import Path

from orchestrator.audit import record

RECORD = Path(__file__).parent / "data" / "tcec" / "record.jsonl.gz"


@functools.cache
def events() -> dict[str, record.Event]:
    """Return the record by the archive's files, without ``TCEC_`` and ``.pgn``."""
    return {
        event.source.removeprefix("TCEC_").removesuffix(".pgn"): event
        for event in record.read(RECORD)
    }
