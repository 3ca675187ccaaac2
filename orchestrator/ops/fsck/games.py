"""Finished games and given-up attempts: each in the archive, whole, and as it was journaled."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import pathlib
import zlib
from collections.abc import Iterator

import chess.pgn

from orchestrator import contract
from orchestrator.arbiter import game_zip, record
from orchestrator.common import files
from orchestrator.ops.fsck import findings

RECORD, PGN, PROTOCOL = game_zip.MEMBERS
BACKUP = "look for it in a backup: `farm restore --from`"


def check(season: findings.Season) -> Iterator[findings.Finding]:
    """Look at every game and attempt that the archive is said to have."""
    for entry in season.entries[: season.archived]:
        if entry.kind == "game_finished":
            finished = contract.GameFinished.model_validate(entry.data)
            yield from findings.readable(_game(season, finished))
        elif entry.kind == "attempt_ended":
            ended = contract.AttemptEnded.model_validate(entry.data)
            yield from findings.readable(_given_up(season, ended))
    yield from findings.readable(_strangers(season))


def _game(season: findings.Season, finished: contract.GameFinished) -> Iterator[findings.Finding]:
    folder = season.folder / "games" / finished.game
    whole = _record(folder, finished)
    if whole is None:
        yield _broken(season, folder, finished)
        return
    if _moves(folder / PGN) != (whole.outcome.result, _played(whole)):
        problem = "missing, damaged, or not the game of its record"
        text = record.pgn(whole).encode()
        yield findings.Finding(str(folder / PGN), problem, lambda: files.write(folder / PGN, text))
    if not _unpacks(folder / PROTOCOL):
        packed = season.leftovers.record(finished)
        yield findings.Finding(
            str(folder / PROTOCOL),
            "missing or damaged",
            None if packed is None else lambda: season.archive.keep_game(finished.game, packed),
            BACKUP,
        )


def _record(folder: pathlib.Path, finished: contract.GameFinished) -> contract.GameRecord | None:
    """Return the game's record if it is the one that was journaled."""
    try:
        content = (folder / RECORD).read_bytes()
        stored = contract.GameRecord.decode(content)
    except (FileNotFoundError, ValueError):
        return None
    digest = hashlib.sha256(content).hexdigest()
    return stored if finished.record_sha256 in ("", digest) else None


def _broken(
    season: findings.Season, folder: pathlib.Path, finished: contract.GameFinished
) -> findings.Finding:
    packed = season.leftovers.record(finished)
    there = (folder / RECORD).exists()
    problem = "not the record that was journaled" if there else "missing"
    if packed is None:
        return findings.Finding(str(folder / RECORD), problem, advice=BACKUP)

    def repair() -> None:
        season.archive.keep_game(finished.game, packed)

    return findings.Finding(str(folder / RECORD), problem, repair)


def _played(game: contract.GameRecord) -> list[str]:
    return [*game.order.opening.moves, *(ply.move for ply in game.plies)]


def _moves(path: pathlib.Path) -> tuple[str, list[str]] | None:
    """Return result and moves of a PGN, None where it cannot be read."""
    try:
        game = chess.pgn.read_game(io.StringIO(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return None
    if game is None or game.errors:
        return None
    board = game.board()
    moves = []
    for move in game.mainline_moves():
        moves.append(board.uci(move))
        board.push(move)
    return game.headers.get("Result", "*"), moves


def _unpacks(path: pathlib.Path) -> bool:
    """Say whether a protocol log can be read, to its end and within its bound."""
    with contextlib.suppress(FileNotFoundError, gzip.BadGzipFile, EOFError, zlib.error):
        with gzip.open(path, "rb") as log:
            left = game_zip.MEMBER_BYTES
            while left > 0 and (piece := log.read(1 << 20)):
                left -= len(piece)
        return left > 0
    return path.exists() and path.stat().st_size == 0  # a game that no engine was started for


def _given_up(season: findings.Season, ended: contract.AttemptEnded) -> Iterator[findings.Finding]:
    path = season.folder / "games" / ended.game / "given-up" / f"{ended.attempt}.jsonl"
    if path.exists():
        return
    plies = season.leftovers.plies(ended.game, ended.attempt)
    if not plies and ended.ply:
        yield findings.Finding(str(path), "the plies of a given-up attempt are lost", None, BACKUP)
        return

    def repair() -> None:
        season.archive.keep_given_up(ended.game, ended.attempt, plies)

    yield findings.Finding(str(path), "missing", repair)


def _strangers(season: findings.Season) -> Iterator[findings.Finding]:
    for folder in sorted((season.folder / "games").glob("*")):
        if folder.name not in season.state.games:
            yield findings.Finding(str(folder), "no game of this season", None, "look, and move it")
        for path in sorted(folder.rglob("*.tmp")):
            yield findings.Finding(str(path), "left by a write that was cut off", path.unlink)
