"""Redact text from a host for the public: no folders of its paths.

Verdicts rest on what a host says (``cannot be started: … '/srv/engines/x'``), and engines are
given paths as options. Spectators, feeds and PGN get both without the folders: of a path its
last name stays, so that it still says which file. Operators read the text whole. Text without
a path is returned as it is, also where slashes mean something else (``1/2-1/2``, a FEN, a URL).
"""

from __future__ import annotations

import re
from typing import Final

_END: Final = r"\s'\"`,;:()<>\[\]{}|"  # what no path has in text, unless it stands in quotes
_QUOTED: Final = re.compile(r"(['\"`])(~?/[^'\"`]*)\1")
_BRACKETED: Final = re.compile(r"\((~?/[^'\"`,;:()]*)\)")  # blanks in it are the path's, too
# From the root through a folder or more, or from a home.
_BARE: Final = re.compile(rf"(?<![\w.~/\\+-])(?:~[\w.-]*/[^{_END}]*|/(?!/)[^{_END}/]+/[^{_END}]*)")
_LISTED: Final = re.compile(r"[:;]")  # between the folders of tables


def text(original: str) -> str:
    """Return text with the last names of its paths in their places."""
    quoted = _QUOTED.sub(lambda match: f"{match[1]}{_last(match[2])}{match[1]}", original)
    bracketed = _BRACKETED.sub(lambda match: f"({_last(match[1])})", quoted)
    return _BARE.sub(lambda match: _last(match[0]), bracketed)


def option(value: str) -> str:
    """Return an engine option's value so; a list of paths keeps one name for each."""
    if not value.startswith(("/", "~/")):
        return text(value)
    parts = (part for part in _LISTED.split(value) if part)
    return ":".join(_last(part) if part.startswith(("/", "~")) else part for part in parts)


def _last(path: str) -> str:
    """Return the last name of a path; the root has none, and tells nothing."""
    return path.rstrip("/").rpartition("/")[2] or "/"
