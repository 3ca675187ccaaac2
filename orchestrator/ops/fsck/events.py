"""The events' PGN: the games' own, in the order of play."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from orchestrator.ops.fsck import findings


def check(season: findings.Season) -> Iterator[findings.Finding]:
    """Compare each event's PGN with the folders of its games."""
    seqs = {
        entry.data["game"]: entry.seq for entry in season.entries if entry.kind == "game_finished"
    }
    for event in season.state.events.values():
        played = [game for game in event.order if season.state.game(game).finished]
        if any(seqs.get(game, 0) > season.archived for game in played):
            continue  # `serve` is about to write it
        texts = [text for text in map(season.archive.pgn, played) if text is not None]
        wanted = b"".join(text.rstrip(b"\n") + b"\n\n" for text in texts)
        path = season.archive.event_pgn(event.id)
        content = path.read_bytes() if path.exists() else b""
        if content != wanted:
            rebuild = functools.partial(season.archive.rebuild_event, event.id, played)
            yield findings.Finding(str(path), "not the games of its event in their order", rebuild)
