"""The events' PGN: the games as they are published, in the order of play."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from orchestrator.ops.fsck import findings
from orchestrator.season import published


def check(season: findings.Season) -> Iterator[findings.Finding]:
    """Compare each event's PGN with the journal's results and the folders of its games."""
    seqs = {
        entry.data["game"]: entry.seq for entry in season.entries if entry.kind == "game_finished"
    }
    behind = season.entries[season.archived :]
    if any(entry.kind in published.CORRECTIONS for entry in behind):
        return  # `serve` is about to write them again
    for event in season.state.events.values():
        played = [game for game in event.order if season.state.game(game).finished]
        if any(seqs.get(game, 0) > season.archived for game in played):
            continue  # `serve` is about to write it
        texts = list(published.of_event(season.state, event, season.archive.pgn))
        if not season.archive.holds(event.id, texts):
            path = season.archive.event_pgn(event.id)
            rebuild = functools.partial(season.archive.rebuild_event, event.id, texts)
            problem = "not the games of its event in their order, with the results that count"
            yield findings.Finding(str(path), problem, rebuild)
