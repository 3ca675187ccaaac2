"""What an engine's author may see of a game, packed into one file.

The own engine's part is whole: the options asked and set, every line to and from it, each of
its plies with stamps and clocks, how its process ended, its errors, what it left in its
scratch (a core too), and what interrupted the game. Of the opponent there is only what the
PGN shows to everybody (decision 018). Invariants: no line, option, error or file of the
opponent is in the pack; no binary and no network is, not even the own one; links are never
followed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import pathlib
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from orchestrator import contract
from orchestrator.arbiter import game_zip, redact
from orchestrator.arbiter import record as pgn
from orchestrator.common import bounds, errors, files

Content: TypeAlias = bytes | pathlib.Path
Member: TypeAlias = tuple[str, Content]

ELF = b"\x7fELF"
ELF_CORE = 4  # e_type of a core dump, two bytes from offset 16
SEATS: dict[contract.Side, str] = {"white": "w", "black": "b"}
PUBLIC = (
    "ply",
    "side",
    "move",
    "san",
    "white_clock_ns",
    "black_clock_ns",
)  # of the opponent's plies


@dataclasses.dataclass(frozen=True)
class Case:
    """A finished game, where it is kept, and the attempts at it that were given up."""

    record: contract.GameRecord
    folder: pathlib.Path
    halls: pathlib.Path
    ended: Sequence[contract.AttemptEnded] = ()
    checksums: frozenset[str] = frozenset()  # SHA-256 of private files

    def side(self, engine: str) -> contract.Side:
        """Return the side an engine played; raise ``UsageError`` when it did not play."""
        for side in SEATS:
            if self.record.order.engine(side).id == engine:
                return side
        order = self.record.order
        raise errors.UsageError(
            f"--for: found {engine!r}; {order.game} was played by"
            f" {order.white.id} and {order.black.id}"
        )


def read(
    folder: pathlib.Path,
    halls: pathlib.Path,
    ended: Sequence[contract.AttemptEnded],
    checksums: Iterable[str] = (),
) -> Case:
    """Read a game from its folder in the archive; raise ``RefusedError`` when it is not there."""
    try:
        record = contract.GameRecord.decode((folder / "record.json").read_bytes())
    except FileNotFoundError:
        raise errors.RefusedError(
            f"{folder} has no record: the game is not finished, not archived yet, or of another"
            " archive; see `farm game list` and --archive"
        ) from None
    except ValueError as error:
        raise errors.HostError(f"{folder / 'record.json'} is damaged; see `farm fsck`") from error
    specs = (record.order.white, record.order.black)
    known_checksums = frozenset(checksums).union(*(spec.checksums.values() for spec in specs))
    return Case(record, folder, halls, ended, known_checksums)


def members(case: Case, side: contract.Side) -> Iterator[Member]:
    """Yield the names and contents of one side's pack."""
    record = case.record
    yield "README.txt", _readme(case, side)
    yield "game.pgn", _game(case)
    yield "engine.json", _json(_engine(case, side))
    yield "stderr.txt", _report(record, side).stderr_tail.encode()
    yield "plies.jsonl", _plies(record.plies, side)
    yield "host.json", _json(_host(case, side))
    yield "protocol.log", _lines(case.folder / "protocol.log.gz", side)
    for ended in case.ended:
        yield from _attempt(case, ended, side)
    for attempt in (*(ended.attempt for ended in case.ended), record.attempt):
        if contract.is_name(attempt):  # else a pattern that finds other games' files
            yield from _scratch(case, attempt, side)


def write(path: pathlib.Path, packed: Iterable[Member], at_ms: int) -> list[str]:
    """Write a pack, whole or not at all, with all in one folder; return its members' names."""
    temporary = path.with_name(path.name + ".tmp")
    root = path.name.removesuffix(".tar.gz")
    try:
        with temporary.open("wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
            names = [_add(tar, root, member, at_ms // 1000) for member in packed]
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    files.sync_directory(path.absolute().parent)
    return names


def _add(tar: tarfile.TarFile, root: str, member: Member, at_seconds: int) -> str:
    name, content = member
    info = tarfile.TarInfo(f"{root}/{name}")
    info.size = len(content) if isinstance(content, bytes) else content.stat().st_size
    info.mtime = at_seconds
    with _opened(content) as source:
        tar.addfile(info, source)
    return name


def _opened(content: Content) -> io.BufferedIOBase:
    return io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")


def _json(value: Any) -> bytes:
    return f"{json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)}\n".encode()


def _readme(case: Case, side: contract.Side) -> bytes:
    order = case.record.order
    return (
        f"Evidence of game {order.game} of {order.season_name} for {order.engine(side).name}"
        f" ({side}).\n\n"
        "game.pgn      the game\n"
        "engine.json   its settings: what was asked, offered and set; how its process ended;\n"
        "              the event's limits, adjudication and timeouts\n"
        "protocol.log  every line to (>) and from (<) it, and of its standard error (!);\n"
        "              stamps are monotonic nanoseconds\n"
        "stderr.txt    the end of its standard error\n"
        "plies.jsonl   its plies whole; of the opponent's what the PGN shows. think_ns is the\n"
        "              time charged, margin_ns what was left of the clock before the increment;\n"
        "              charged to nobody: waited_ns from the move before to the clock's start,\n"
        "              overhead_ns the referee's own part of it, network_ns the way to and from a\n"
        "              GPU box, whose own clock is charged\n"
        "host.json     where and when it was played, outcome and why (note), and what was noted\n"
        "              of the host (remarks): the evidence that it was fair\n"
        "attempts/     the same of attempts that were interrupted\n"
        "scratch/      what it left in its scratch; no binaries, no networks\n"
    ).encode()


def _game(case: Case) -> bytes:
    """Return the archive's PGN; one that is lost is written again from the record."""
    try:
        return (case.folder / "game.pgn").read_bytes()
    except FileNotFoundError:
        return pgn.pgn(case.record).encode()


def _report(record: contract.GameRecord, side: contract.Side) -> contract.EngineReport:
    return record.white if side == "white" else record.black


def _engine(case: Case, side: contract.Side) -> dict[str, Any]:
    order = case.record.order
    return {
        "engine": order.engine(side).model_dump(mode="json"),
        "report": _report(case.record, side).model_dump(mode="json", exclude={"stderr_tail"}),
        "limits": order.limits.model_dump(mode="json"),
        "time_control": str(order.control(side)),
        "margin_ms": order.margin_ms(side),
        "timeouts": order.timeouts.model_dump(mode="json"),
        "adjudication": order.adjudication.model_dump(mode="json"),
    }


def _host(case: Case, side: contract.Side) -> dict[str, Any]:
    record = case.record
    rival = record.order.engine("black" if side == "white" else "white")
    hidden = {"note"} if record.outcome.loser != side else None  # the rival's last words
    return {
        "hall": record.hall,
        "lane": record.lane,
        "host": record.host,
        "attempt": record.attempt,
        "started_ms": record.started_ms,
        "ended_ms": record.ended_ms,
        "outcome": record.outcome.model_dump(mode="json", exclude=hidden),
        "remarks": [text for text in record.remarks if not _is_named(rival, text)],
        "interruptions": [
            _interrupted(interruption, rival) for interruption in record.interruptions
        ],
        "attempts": [_interrupted(interruption, rival) for interruption in case.ended],
    }


def _is_named(rival: contract.EngineSpec, text: str) -> bool:
    return rival.id in text or rival.name in text


def _interrupted(
    interruption: contract.AttemptEnded | contract.Interruption, rival: contract.EngineSpec
) -> dict[str, Any]:
    """Return an interruption without the rival's part, and without anybody's folders."""
    document = interruption.model_dump(mode="json")
    document["evidence"] = (
        "withheld: it tells of the opponent"
        if _is_named(rival, interruption.evidence)
        else redact.text(interruption.evidence)
    )
    return document


def _plies(plies: Iterable[contract.PlyRecord], side: contract.Side) -> bytes:
    lines = []
    for ply in plies:
        shown = set(PUBLIC) if ply.side != side else None
        lines.append(contract.dumps(ply.model_dump(mode="json", include=shown)) + "\n")
    return "".join(lines).encode()


def _lines(path: pathlib.Path, side: contract.Side) -> bytes:
    """Return the lines of a protocol log that one seat said or was told, up to any damage."""
    seat = SEATS[side].encode()
    lines = []
    for line in bounds.packed_lines(path, game_zip.MEMBER_BYTES):
        _, _, rest = line.partition(b" ")
        if rest[:1] == seat and rest[1:2] in (b"<", b">", b"!"):
            lines.append(line)
    return b"".join(lines)


def _attempt(case: Case, ended: contract.AttemptEnded, side: contract.Side) -> Iterator[Member]:
    if not contract.is_name(ended.attempt):
        return
    folder = f"attempts/{ended.attempt}"
    kept = case.folder / "given-up" / f"{ended.attempt}.jsonl"
    if kept.is_file():
        yield f"{folder}/plies.jsonl", _plies(_whole(kept), side)
    for log in case.halls.glob(f"*/attempts/{ended.attempt}.protocol.gz"):
        yield f"{folder}/protocol.log", _lines(log, side)


def _whole(path: pathlib.Path) -> Iterator[contract.PlyRecord]:
    """Yield the plies of a file up to the first that is damaged or torn."""
    with contextlib.suppress(ValueError):
        for line in files.lines(path):
            yield contract.PlyRecord.decode(line)


def _scratch(case: Case, attempt: str, side: contract.Side) -> Iterator[Member]:
    """Yield what the engine left, one folder a process; only plain files, nothing private."""
    for seat in sorted(case.halls.glob(f"*/scratch/{attempt}/{SEATS[side]}-*")):
        if seat.is_symlink():
            continue
        for path in sorted(seat.rglob("*")):
            inside = not any(part.is_symlink() for part in (path, *path.parents))
            if inside and path.is_file() and not _private(case, path):
                yield f"scratch/{attempt}/{path.relative_to(seat.parent)}", path


def _private(case: Case, path: pathlib.Path) -> bool:
    """Say whether a file is a program, or one of the files the engines were pinned by."""
    with path.open("rb") as file:
        head = file.read(18)
        if head[:4] == ELF and int.from_bytes(head[16:18], "little") != ELF_CORE:
            return True
    if path.name in _names(case):
        return True
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() in case.checksums


def _names(case: Case) -> set[str]:
    specs = (case.record.order.white, case.record.order.black)
    named = [spec.network for spec in specs if spec.network]
    named += [name for spec in specs for name in (spec.command[0], *spec.checksums)]
    return {pathlib.PurePath(name).name for name in named}
