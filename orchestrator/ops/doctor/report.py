"""What was found, together: for a person, for programs, for the event's folder."""

from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Iterable, Sequence

from orchestrator import contract
from orchestrator.common import files

FOLDER = "preflight"
PREFLIGHT = "preflight_done"  # a fact of the farm's own journal


class Report(contract.Message):
    """All findings of one look."""

    schema_version: int = contract.SCHEMA
    at_ms: int
    host: str
    version: str
    season: str = ""
    event: str = ""
    findings: tuple[contract.Finding, ...]

    @property
    def failed(self) -> list[contract.Finding]:
        """Return what must be repaired first."""
        return [finding for finding in self.findings if finding.status == "failed"]


def only(
    findings: Iterable[contract.Finding], areas: Sequence[str]
) -> tuple[contract.Finding, ...]:
    """Return the findings of some areas, of all where none is named."""
    return tuple(finding for finding in findings if not areas or finding.area in areas)


def keep(archive: pathlib.Path, report: Report) -> tuple[pathlib.Path, str]:
    """Write a report into the event's folder of the archive; return path and SHA-256."""
    folder = archive / report.season / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{report.event}-{report.at_ms}.json"
    content = report.encode().encode()
    files.write(path, content)
    return path, hashlib.sha256(content).hexdigest()
