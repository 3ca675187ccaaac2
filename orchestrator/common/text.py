"""Characters that nobody sees and that change how the text around them is shown.

Names, reasons and last words may be a stranger's. A direction mark (Unicode UAX #9) turns the
words behind it around, in a terminal as on a page, and so puts a result or another name into
somebody's mouth; zero-width characters make two names look alike. Joiners (U+200C, U+200D) are
letters of several scripts, and stay. So are numbers: Python takes digits of every script, refuses
a raised two, which is one of ``isdigit``, and raises for thousands of digits.
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
_WHOLE: Final = 18  # digits: a signed word of 64 bits holds them
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


def whole(word: str | None, digits: int = _WHOLE) -> int | None:
    """Return the number that a stranger wrote, None for anything but so many ASCII digits."""
    if not word or len(word) > digits or not (word.isascii() and word.isdigit()):
        return None
    return int(word)
