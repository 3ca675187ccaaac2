"""Characters that nobody sees and that change how the text around them is shown.

Names, reasons and last words may be a stranger's. A direction mark (Unicode UAX #9) turns the
words behind it around, in a terminal as on a page, and so puts a result or another name into
somebody's mouth; zero-width characters make two names look alike. Joiners (U+200C, U+200D) are
letters of several scripts, and stay.
"""

from __future__ import annotations

import re
from typing import Final

_INVISIBLE: Final = (
    *(0x00AD, 0x061C, 0x180E),
    *(0x200B, 0x200E, 0x200F),
    *range(0x2028, 0x202F),  # line and paragraph separators, embeddings and overrides
    *range(0x2060, 0x2070),
    0xFEFF,
    *range(0xFFF9, 0xFFFC),
    *range(0xE0000, 0xE0080),
)
_CONTROL: Final = (*range(32), *range(127, 160))
UNSEEN: Final = frozenset(map(chr, (*_CONTROL, *_INVISIBLE)))
_REMOVED: Final = dict.fromkeys(_INVISIBLE)
_CLASS: Final = re.compile("[" + "".join(map(re.escape, sorted(UNSEEN))) + "]")


def has_unseen(text: str) -> bool:
    """Say whether text has control or invisible characters, line ends among them."""
    return _CLASS.search(text) is not None


def visible(text: str) -> str:
    """Return text without invisible characters; control characters stay."""
    return text.translate(_REMOVED) if not text.isascii() else text


def one_line(text: str) -> str:
    """Return text as one line: a blank for each run of what nobody sees."""
    return " ".join(_CLASS.sub(" ", text).split())
