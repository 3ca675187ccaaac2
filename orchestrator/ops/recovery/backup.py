"""Export and backup: a copy of the farm in another folder, from which ``restore`` makes it again.

    <copy>/backup.json                    when, by which version, how far
    <copy>/<journal>/journal.jsonl        every journal, the farm's own too, as Redis has it
    <copy>/<season>/unarchived/…          records and plies the archive does not have yet
    <copy>/<season>/games/…  <event>.pgn  the archive's games (a backup only)

A copy has the layout of an archive and is brought up to date by the next run: journals
and games only grow. Invariants: a copy whose journal parts from Redis' is left as it is, so
a damaged farm never spoils its backup; a Redis that has lost facts which the copy or the
archive still has is refused before anything is written; whatever a hall or a season calls
itself, nothing is written outside the copy. The farm runs on meanwhile.
"""

from __future__ import annotations

import dataclasses
import pathlib
import subprocess
from collections.abc import Iterator, Sequence

from orchestrator import contract
from orchestrator.common import errors, files, version
from orchestrator.ledger import api, journal_mirror, restoring, store
from orchestrator.ops.recovery import games as archived_games
from orchestrator.ops.recovery import journal_copies, leftovers

MANIFEST = "backup.json"


@dataclasses.dataclass(frozen=True)
class Made:
    """What a copy holds now: the last entry of each journal, and the games copied by this run.

    ``lacking`` counts the finished games whose records are neither in the copy nor in the archive
    that was given, because this is not where the farm's archive is.
    """

    journals: dict[str, int]
    games: int
    lacking: int = 0


def export(ledger: store.RedisLedger, target: pathlib.Path) -> Made:
    """Bring a copy up to what Redis alone knows.

    Raises:
        RefusedError: the folder holds something else, or more than Redis does.
        LedgerDamagedError: its journals part from Redis'.
    """
    _require_copy(target)
    _refuse_lost_facts(ledger, target, target)
    lengths = {}
    for name in (*filter(contract.is_name, ledger.seasons()), api.FARM):
        entries = journal_copies.from_ledger(ledger, name)
        if entries:
            _keep_journal(target, name, entries)
            lengths[name] = len(entries)
            if name != api.FARM:
                _keep_leftovers(ledger, target / name, name, entries)
    _write_manifest(ledger, target, lengths)
    return Made(lengths, 0)


def backup(ledger: store.RedisLedger, archive: pathlib.Path, target: pathlib.Path) -> Made:
    """Bring a copy up to what Redis and the archive know; see ``export``."""
    if target.resolve().is_relative_to(archive.resolve()):
        raise errors.UsageError(f"{target} lies in the archive itself; choose another disk")
    _refuse_lost_facts(ledger, archive, target)
    elsewhere = [name for name in ledger.seasons() if _is_elsewhere(ledger, archive, name)]
    made = export(ledger, target)  # first: what is archived meanwhile is in the archive then
    seasons = [name for name in made.journals if name != api.FARM]
    copied = sum(archived_games.copy(archive, target, name) for name in seasons)
    for name in seasons:
        _forget_archived(target / name)
    lacking = sum(_lacking(target / name) for name in seasons if name in elsewhere)
    return Made(made.journals, copied, lacking)


def take_away(program: pathlib.Path, target: pathlib.Path) -> None:
    """Run the program that takes a copy off this host; raise ``HostError`` when it fails."""
    done = subprocess.run([program.absolute(), target.absolute()], check=False)
    if done.returncode:
        raise errors.HostError(
            f"{target} is complete, but {program} ended with {done.returncode}: the copy is on"
            " this host alone. What it printed stands above; run it again by hand with"
            f" `{program} {target}`"
        )


def _is_elsewhere(ledger: store.RedisLedger, archive: pathlib.Path, season: str) -> bool:
    """Say whether a folder is not the archive that ``serve`` keeps: its mirror is behind that."""
    archived = ledger.mirrored(season)  # first: the mirror is written before this is said
    path = archive / season / journal_copies.FILE
    return (_entries(path) if path.exists() else 0) < archived


def _lacking(season: pathlib.Path) -> int:
    """Count the finished games of a copy of which it has no record."""
    return sum(
        entry.kind == "game_finished"
        and not (season / "games" / str(entry.data["game"]) / "record.json").exists()
        and not (season / leftovers.FOLDER / f"{entry.data['attempt']}.record").exists()
        for entry in journal_mirror.entries(season / journal_copies.FILE)
    )


def _require_copy(target: pathlib.Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()) and not (target / MANIFEST).exists():
        raise errors.RefusedError(
            f"{target} is not empty and no copy of a farm; give an empty folder, or one that"
            " `farm export` or `farm backup` has made"
        )


def _refuse_lost_facts(ledger: store.RedisLedger, root: pathlib.Path, target: pathlib.Path) -> None:
    """Look, disk first, for journals that go on further on disk than in Redis.

    Raises:
        RefusedError: there is one.
        LedgerDamagedError: there is one, and Redis' is not its beginning.
    """
    kept = {
        name: _entries(root / name / journal_copies.FILE) for name in journal_copies.on_disk(root)
    }
    lost = []
    for name, count in kept.items():
        if ledger.last(name) < count:
            disk = restoring.Copy(
                str(root / name / journal_copies.FILE),
                journal_mirror.read(root / name / journal_copies.FILE),
            )
            redis = restoring.Copy("Redis", journal_copies.from_ledger(ledger, name))
            restoring.longest(name, [redis, disk])
            lost.append(f"{name}: {count} entries in {disk.place}, {len(redis.entries)} in Redis")
    if lost:
        raise errors.RefusedError(
            f"Redis has lost facts ({'; '.join(lost)}): nothing was copied. Stop `farm serve` and"
            f" bring them back: `farm restore --from {target}`. Move away a folder that is no"
            " season of this farm"
        )


def _entries(path: pathlib.Path) -> int:
    """Count the whole lines of a journal; a torn last one is none."""
    with path.open("rb") as lines:
        return sum(1 for line in lines if line.endswith(b"\n"))


def _keep_journal(target: pathlib.Path, name: str, entries: Sequence[contract.Entry]) -> None:
    path = target / name / journal_copies.FILE
    with journal_mirror.Mirror(path) as kept:
        copy = restoring.Copy(str(path), journal_mirror.read(path))
        whole = restoring.longest(name, [restoring.Copy("Redis", entries), copy])
        if len(whole.entries) > len(entries):
            raise errors.RefusedError(
                f"{path} holds {len(whole.entries)} entries, Redis only {len(entries)}: Redis"
                f" has lost facts; `farm restore --from {target}` brings them back"
            )
        kept.extend(entries[kept.last :])


def _keep_leftovers(
    ledger: store.RedisLedger, season: pathlib.Path, name: str, entries: Sequence[contract.Entry]
) -> None:
    archived = ledger.mirrored(name)
    leftover = leftovers.Leftovers(ledger, (), None)
    folder = season / leftovers.FOLDER
    for kind, data in _late(entries, archived):
        path = folder / f"{data['attempt']}.record"
        packed = ledger.record(data["attempt"]) if kind == "game_finished" else None
        if packed is not None and not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            files.write(path, packed)
        plies = leftover.plies(data["game"], data["attempt"])
        if plies:
            folder.mkdir(parents=True, exist_ok=True)
            lines = "".join(f"{payload}\n" for _, payload in plies)
            files.write(folder / f"{data['attempt']}.plies.jsonl", lines.encode())


def _late(entries: Sequence[contract.Entry], archived: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield kind and data of what tells of attempts that the archive may not have whole.

    Nobody has folded the journal here, and files are named by what halls wrote into it: an entry
    that names no game or no attempt is copied with its journal, and nothing else of it.
    """
    starts = [entry for entry in entries if entry.kind == "attempt_started"][-1:]
    late = [entry for entry in entries[archived:] if entry.kind != "attempt_started"]
    for entry in (*starts, *late):
        named = all(contract.is_name(str(entry.data.get(id_))) for id_ in ("game", "attempt"))
        if entry.kind in {"attempt_started", "attempt_ended", "game_finished"} and named:
            yield entry.kind, dict(entry.data)


def _write_manifest(
    ledger: store.RedisLedger, target: pathlib.Path, lengths: dict[str, int]
) -> None:
    manifest = {
        "at_ms": ledger.now_ms(),
        "version": version.VERSION,
        "schema": contract.SCHEMA,
        "epoch": ledger.present_epoch(),
        "journals": lengths,
    }
    files.write(target / MANIFEST, f"{contract.dumps(manifest)}\n".encode())


def _forget_archived(season: pathlib.Path) -> None:
    """Delete the leftovers of games that the copy's archive has by now."""
    left = list((season / leftovers.FOLDER).glob("*"))
    journal = journal_mirror.entries(season / journal_copies.FILE) if left else ()
    starts = (entry.data for entry in journal if entry.kind == "attempt_started")
    games = {begun["attempt"]: begun["game"] for begun in starts}
    for path in left:
        attempt = path.name.removesuffix(".record").removesuffix(".plies.jsonl")
        record = season / "games" / games.get(attempt, "") / "record.json"
        if record.exists() and contract.GameRecord.decode(record.read_bytes()).attempt == attempt:
            path.unlink()
