"""Raw Redis replies to the ledger's frozen values.

The shapes are those that the scripts' reply tables promise; anything else is data of
another version or by another hand (``LedgerForeignError``), never silently something else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import api, requests

P = ParamSpec("P")
R = TypeVar("R")


def _understood(reader: Callable[P, R]) -> Callable[P, R]:
    """Tell a reply that cannot be read as what it is, with its words."""

    @functools.wraps(reader)
    def read(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return reader(*args, **kwargs)
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            raise errors.LedgerForeignError(
                f"this version cannot read an answer of Redis ({reader.__name__}: {error!r}); is"
                " it the ledger of another version? Run the same version everywhere, or restore"
            ) from error

    return read


def text(raw: bytes | str) -> str:
    """Return a bulk string as text."""
    return raw.decode() if isinstance(raw, bytes) else raw


def any_text(raw: bytes | str) -> str:
    """Return a name or value that somebody else may have written, whatever its bytes.

    Bytes that are no UTF-8 are escaped. No name of the farm's has such letters, and no JSON: it is
    refused where it is read, with the hall, host or season that it is of.
    """
    return raw.decode(errors="backslashreplace") if isinstance(raw, bytes) else raw


def word(raw: Sequence[Any]) -> str:
    """Return the first element of a script's reply: what happened."""
    return text(raw[0])


@_understood
def appended(raw: Sequence[Any]) -> api.Appended | api.Stale:
    """Read the reply of ``append``."""
    last = int(raw[1])
    answers: dict[str, api.Appended | api.Stale] = {
        "appended": api.Appended(last),
        "stale": api.Stale(last),
    }
    return answers[word(raw)]


@_understood
def offered(raw: Sequence[Any]) -> api.Offered | api.Stale | api.NotReady:
    """Read the reply of ``offer``."""
    if word(raw) == "stale":
        return api.Stale(int(raw[1]))
    answers: dict[str, api.Offered | api.NotReady] = {
        "offered": api.Offered(),
        "not-ready": api.NotReady(),
    }
    return answers[word(raw)]


@_understood
def opened(raw: Sequence[Any]) -> api.Opened | api.Foreign:
    """Read the reply of ``open_hall``."""
    if word(raw) == "foreign":
        return api.Foreign(text(raw[1]))
    return {"opened": api.Opened()}[word(raw)]


@_understood
def claimed(
    raw: Sequence[Any],
) -> api.Claimed | api.Busy | api.NotReady | api.Held | api.Foreign:
    """Read the reply of ``claim``."""
    if word(raw) == "claimed":
        return api.Claimed(contract.Token.parse(text(raw[1])), text(raw[2]))
    if word(raw) == "not-ready":
        return api.NotReady()
    detail = text(raw[1])
    answers: dict[str, api.Busy | api.Held | api.Foreign] = {
        "busy": api.Busy(detail),
        "held": api.Held(detail),
        "foreign": api.Foreign(detail),
    }
    return answers[word(raw)]


@_understood
def written(raw: Sequence[Any]) -> api.Written | api.Gap | api.Fenced:
    """Read the reply of ``write_ply``."""
    if word(raw) == "gap":
        return api.Gap(int(raw[1]))
    answers: dict[str, api.Written | api.Fenced] = {
        "written": api.Written(),
        "fenced": api.Fenced(),
    }
    return answers[word(raw)]


@_understood
def renewed(raw: Sequence[Any]) -> api.Renewed | api.Fenced:
    """Read the reply of ``renew``."""
    if word(raw) == "renewed":
        return api.Renewed(abort=text(raw[1]), drain=text(raw[2]))
    return {"fenced": api.Fenced()}[word(raw)]


@_understood
def completed(raw: Sequence[Any]) -> api.Recorded | api.Refused:
    """Read the reply of ``complete``."""
    if word(raw) == "refused":
        return requests.refusal(text(raw[1]), text(raw[2]))
    return {"recorded": api.Recorded(int(raw[1]))}[word(raw)]


@_understood
def given_up(raw: Sequence[Any]) -> api.Recorded | api.Fenced:
    """Read the reply of ``give_up``."""
    if word(raw) == "recorded":
        return api.Recorded(int(raw[1]))
    return {"fenced": api.Fenced()}[word(raw)]


@_understood
def suspected(raw: Sequence[Any]) -> api.Suspected | api.Alive:
    """Read the reply of ``suspect``."""
    answers: dict[str, api.Suspected | api.Alive] = {
        "suspected": api.Suspected(),
        "alive": api.Alive(),
    }
    return answers[word(raw)]


@_understood
def revoked(raw: Sequence[Any]) -> api.Recorded | api.Freed | api.Alive:
    """Read the reply of ``revoke``."""
    if word(raw) == "recorded":
        return api.Recorded(int(raw[1]))
    answers: dict[str, api.Freed | api.Alive] = {"freed": api.Freed(), "alive": api.Alive()}
    return answers[word(raw)]


def each(table: Mapping[str, str], reader: Callable[[str, Any], R]) -> Iterator[R]:
    """Read the JSON of a table's fields one by one, by name; one that is not ours is left out.

    One hall, match or token that cannot be read takes no other out of service.
    """
    for name in sorted(table):
        try:
            value = reader(name, contract.loads(table[name]))
        except (LookupError, ValueError, TypeError, AttributeError):
            continue
        yield value


@_understood
def epoch(raw: bytes | None) -> int:
    """Read the present epoch: 1 until a restore has raised it."""
    return 1 if raw is None else int(text(raw))


@_understood
def stream_number(raw: bytes | str, part: int) -> int:
    """Return one half of a stream id: 0 is a journal's number, 1 a ply's."""
    return int(text(raw).split("-")[part])


def entry(raw_id: bytes, raw: Mapping[bytes, bytes]) -> contract.Entry:
    """Read one entry of a journal's stream; raise ``LedgerDamagedError``."""
    try:
        return contract.Entry(
            seq=stream_number(raw_id, 0),
            at_ms=int(raw[b"at"]),
            kind=text(raw[b"kind"]),
            by=text(raw[b"by"]),
            data=contract.table(contract.loads(raw[b"data"])),
            token=text(raw[b"token"]),
            schema_version=int(raw[b"v"]),
        )
    except (KeyError, ValueError, TypeError, errors.LedgerForeignError) as error:
        raise errors.LedgerDamagedError(
            f"journal entry {raw_id.decode(errors='replace')} was not written by the farm:"
            f" {error!r}; start an empty Redis, and `farm restore` fills it from the mirror"
        ) from error


@_understood
def slot(hall: str, raw: Mapping[bytes, bytes], now_ms: int) -> api.Slot | None:
    """Read the lease of a hall at Redis' time ``now_ms``; None where there is none."""
    if not raw:
        return None
    lease = {text(name): text(value) for name, value in raw.items()}
    return api.Slot(
        hall=hall,
        season=lease["season"],
        game=lease["game"],
        attempt=lease["attempt"],
        token=contract.Token.parse(lease["token"]),
        worker=lease["worker"],
        host=lease["host"],
        lane=lease["lane"],
        ttl_ms=int(lease["ttl"]),
        deadline_ms=int(lease["deadline"]),
        ply=int(lease["ply"]),
        last_move_ms=int(lease["last_move"]),
        overdue=now_ms > int(lease["deadline"]),
        suspect=lease["suspect"],
        abort=lease["abort"],
        order=lease.get("order", ""),
    )
