"""``farm evidence``: what an author may see of a game, in one file an engine."""

from __future__ import annotations

import pathlib

import click

from orchestrator import contract
from orchestrator.commands import common, paths, tables
from orchestrator.ledger import store
from orchestrator.ops.recovery import journal_copies
from orchestrator.season import views
from orchestrator.season.fold import state
from orchestrator.serve import evidence as packs


@click.command()
@click.argument("game")
@common.season_option
@click.option("--for", "engine", help="The engine whose author it is for; default: one each.")
@click.option("--to", "target", type=paths.FOLDER, default=".", help="Where to write it.")
@paths.archive
@paths.halls
@common.json_option
def evidence(
    game: str,
    season: str | None,
    engine: str | None,
    target: pathlib.Path,
    archive: pathlib.Path,
    halls: pathlib.Path,
    *,
    as_json: bool,
) -> None:
    """Pack what the author of an engine may see of GAME: SEASON.GAME.ENGINE.tar.gz.

    The author's engine: settings, protocol, plies, errors, exit, scratch and core. The opponent:
    what the PGN shows. Binaries and networks never leave.

    Example: farm evidence league.4 --for stockfish
    """
    paths.require_here(archive, "the archive is")
    with common.open_ledger() as ledger:
        folded = common.choose(ledger, season)
        name = folded.launched.id
        folded.game(game)
        ended, checksums = _attempts_and_checksums(ledger, name, game)
    case = packs.read(archive / name / "games" / game, halls, ended, checksums)
    order = case.record.order
    target.mkdir(parents=True, exist_ok=True)
    written = {}
    for engine_id in [engine] if engine else [order.white.id, order.black.id]:
        path = target / f"{name}.{game}.{engine_id}.tar.gz"
        packed = packs.members(case, case.side(engine_id))
        written[str(path)] = packs.write(path, packed, case.record.ended_ms)
    packed_files = [f"{path}: {len(names)} files" for path, names in written.items()]
    sentence = "\n".join([_what(folded, game), *packed_files])
    common.report(as_json, {"season": name, "game": game, "packs": written}, sentence)


def _what(folded: state.SeasonState, game: str) -> str:
    """Say which game was packed, as the tables have it: an id is soon mistyped."""
    row = views.game(folded, game)
    if row["result"] is None:
        return f"{game}: {row['white']} - {row['black']}, without a result that counts"
    return f"{game}: {tables.played(row)}{', annulled' if row['annulled'] else ''}"


def _attempts_and_checksums(
    ledger: store.RedisLedger, season: str, game: str
) -> tuple[list[contract.AttemptEnded], set[str]]:
    """Return the interrupted attempts at a game, and the hashes of all files of the season."""
    ended = []
    checksums: set[str] = set()
    for entry in journal_copies.from_ledger(ledger, season):
        if entry.kind == "attempt_ended" and entry.data["game"] == game:
            ended.append(contract.AttemptEnded.model_validate(entry.data))
        elif entry.kind == "game_finished":
            done = contract.GameFinished.model_validate(entry.data)
            checksums |= {*done.white_files.values(), *done.black_files.values()}
    return ended, checksums
