"""Errors of the farm: one base, leaves by cause and by who must act.

The exit code of the command line follows from the leaf: 2 for wrong usage or
wrong input, 3 for a request the present state refuses, 4 for a Redis that cannot
be reached, 5 for a host that cannot do its work.
"""

from __future__ import annotations


class FarmError(Exception):
    """Something the farm cannot do; the message says what, where and what to do."""

    exit_code = 1
    acts = "nobody"


class OperatorError(FarmError):
    """The operator must act: wrong input, or a request the state refuses."""

    acts = "operator"


class UsageError(OperatorError):
    """The command or its input is wrong; nothing was changed."""

    exit_code = 2


class SeasonFileError(UsageError):
    """A season file breaks its schema or contradicts itself."""

    def __init__(
        self, file: str, where: str, actual: str, allowed: str, others: tuple[str, ...] = ()
    ) -> None:
        """Name the file, the place (table and key), what was found and what is allowed.

        ``others`` are the lines of further places in the same file.
        """
        self.file, self.where, self.found, self.allowed = file, where, actual, allowed
        line = f"{file}: {where}: found {actual}; allowed: {allowed}"
        super().__init__("\n".join((line, *others)))


class WrongFileError(SeasonFileError):
    """A file is not what is wanted at all: no TOML, or a file of another kind."""

    def __init__(self, file: str, where: str, actual: str, allowed: str, message: str) -> None:
        """Say ``message`` in place of the place in the file: there is nothing to repair there."""
        super().__init__(file, where, actual, allowed)
        self.args = (f"{file}: {message}",)


class BookError(UsageError):
    """An opening book cannot be read; the message names file and line or game."""


class RefusedError(OperatorError):
    """The present state of the farm refuses the request; nothing was changed."""

    exit_code = 3


class NotStillError(RefusedError):
    """A correction needs a season in which no game can begin: pause it first, then it may be."""


class LedgerAwayError(OperatorError):
    """Redis did not carry out a request, and may later: what must not stop tries again."""

    exit_code = 4


class LedgerUnreachableError(LedgerAwayError):
    """Redis does not answer, or the link to it broke in the middle of a request."""


class LedgerRefusedError(LedgerAwayError):
    """Redis answered with an error: no room, no rights, read only."""

    exit_code = 3


class LedgerUncheckedError(LedgerAwayError):
    """Redis was started again, and ``serve`` has not compared its journals yet: try again."""

    exit_code = 3


class LedgerDamagedError(OperatorError):
    """Journal and mirror, or journal and fold, contradict each other; nothing is written."""

    exit_code = 3


class JournalTooNewError(LedgerDamagedError):
    """A journal was written by a later version; this one reads nothing of it."""


class LedgerForeignError(LedgerRefusedError):
    """Redis holds something that this version cannot read; nothing was changed."""


def is_outage(error: BaseException) -> bool:
    """Say whether an error concerns Redis as a whole, and not one season's or one hall's keys."""
    return isinstance(error, LedgerAwayError) and not isinstance(error, LedgerForeignError)


class OrganizerError(FarmError):
    """The organizers must decide before the season can go on."""

    exit_code = 3
    acts = "organizer"


class HostError(FarmError):
    """The host cannot do its work: a file, a lock, a process or a program is missing."""

    exit_code = 5
    acts = "host"


class OwnedError(HostError):
    """A farm runs on a data directory already; nothing was changed."""


class DiskError(HostError):
    """A disk does not take a file now, and may later: nothing is damaged."""


def reason(error: BaseException) -> str:
    """Return what an error says: of one of the system's, not its number and not its file."""
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
