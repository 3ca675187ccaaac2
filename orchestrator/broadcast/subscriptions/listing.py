"""A season as feeds and calendars list it, from the documents that the API answers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

Row = dict[str, Any]  # a game of a schedule, see ``answers.ScheduledGame``


@dataclasses.dataclass(frozen=True)
class Listing:
    """A season's document, the schedules of its events, and the address of our page."""

    season: dict[str, Any]
    schedules: Sequence[Sequence[Row]]
    page: str

    @property
    def id(self) -> str:
        """Return the season's id."""
        return str(self.season["season"])

    @property
    def link(self) -> str:
        """Return the season's address."""
        return f"{self.page}/#/{self.id}"

    def link_of(self, game: Row) -> str:
        """Return a game's address."""
        return f"{self.link}/game/{game['game']}"

    def event_and_round(self, game: Row) -> str:
        """Return where in the season a game is played."""
        return f"{self._events[game['event']]['name']}, round {game['round']}"

    def mean_seconds(self, event: str) -> float:
        """Return how long a game of an event is expected to take."""
        event_row = self._events[event]
        left = event_row["games"]["total"] - event_row["games"]["played"]
        return float(event_row["remaining_seconds"]) / left if left > 0 else 0.0

    @functools.cached_property
    def _events(self) -> dict[str, dict[str, Any]]:
        return {event["event"]: event for event in self.season["events"]}

    @functools.cached_property
    def finished(self) -> list[Row]:
        """Return the finished games, the latest first."""
        done = [game for game in self._games() if game["result"] is not None]
        return sorted(done, key=lambda game: (ended_ms(game), game["number"]), reverse=True)

    @functools.cached_property
    def coming(self) -> list[Row]:
        """Return the game in flight and those ahead, in their order of play."""
        return [
            game
            for game in self._games()
            if game["running"] or game.get("estimated_start_ms") is not None
        ]

    def _games(self) -> Iterator[Row]:
        for schedule in self.schedules:
            yield from (game for game in schedule if not game["cancelled"])

    @property
    def at_ms(self) -> int:
        """Return the last moment that is known of the season."""
        latest = ended_ms(self.finished[0]) if self.finished else 0
        running = [int(game["started_ms"]) for game in self.coming if game["running"]]
        return max(latest, int(self.season["launched_ms"]), *running)


def ended_ms(game: Row) -> int:
    """Return when a finished game ended."""
    return int(game["started_ms"]) + round(1000 * float(game["duration_seconds"]))


def players(game: Row) -> str:
    """Return who meets whom, White first."""
    return f"{game['white']} v {game['black']}"


def summary(game: Row) -> str:
    """Return how a finished game went: its end, length and opening."""
    moves = (int(game["plies"]) + 1) // 2
    parts = [game["details"], f"{moves} moves" if moves else "", game.get("opening", "")]
    noted = ["the result does not count"] if game["annulled"] else []
    return "; ".join([*filter(None, parts), *noted])
