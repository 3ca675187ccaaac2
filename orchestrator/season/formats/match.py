"""A match of two engines: colours turn with every game, openings run 1, 1, 2, 2 and so on.

S16-8a, S17-8a: the reverse game with the same opening follows at once; S16-8b, S17-8b: the
match is played to its last game even when it is decided. A drawn match goes on with its
extensions, each played in full: a rapid set (S16-8c, S17-8c), then blitz sets until one is
won (S16-8d, S17-8d); 4 more games at a time (N1 Superfinal); pairs until an engine wins one
(FRC-2i). A round is one pair of games.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from orchestrator.season.formats import base
from orchestrator.season.spec import model


@dataclasses.dataclass(frozen=True)
class Match:
    """The schedule of a match; ``first_white`` is the number of game 1's White."""

    games: int
    first_white: int = 0
    extensions: tuple[model.Extension, ...] = ()

    @property
    def openings(self) -> int:
        """Return one opening for each pair of games of the match proper."""
        return self.games // 2

    @property
    def rounds(self) -> int:
        """Return the number of pairs of games of the match proper."""
        return self.games // 2

    @property
    def open_ended(self) -> bool:
        """Say whether extensions may take more exits of the event's book."""
        return any(extension.openings == "book" for extension in self.extensions)

    def remaining(self, played: base.History) -> Iterator[tuple[int, int]]:
        """Yield the pairs of games of the match proper that are not paired yet."""
        for index in range(played.paired, self.rounds):
            yield index + 1, 2

    def pair(self, index: int, played: base.History) -> base.Pairing | None:
        """Draw the pair of games ``index``; only the start of an extension needs results."""
        if index < self.rounds:
            return self._pairing(index, None)
        start, extension = self._set_of(index)
        begun = index > start or (index == played.paired and self._tied(played))
        return self._pairing(index, extension) if extension is not None and begun else None

    def complete(self, paired: int, played: base.History) -> bool:
        """Say whether the last set is paired in full, and nobody need play on."""
        if paired < self.rounds:
            return False
        start, extension = self._set_of(paired)
        if extension is None:
            return True
        return paired == start and played.all_played and not self._tied(played)

    def built_from(self, number: int) -> int:
        """Return the first round of the set after that of a round: it was drawn so far."""
        if number <= self.rounds:
            return self.rounds + 1
        start, extension = self._set_of(number - 1)
        return start + 1 + (0 if extension is None else extension.games // 2)

    def order(self, played: base.History) -> None:
        """Leave the places to points: every set but the last was drawn."""
        del played

    def _pairing(self, index: int, extension: model.Extension | None) -> base.Pairing:
        first, second = self.first_white, 1 - self.first_white
        boards = (
            base.Board(white=first, black=second, slot=index, tag=f"{2 * index + 1}.1"),
            base.Board(white=second, black=first, slot=index, tag=f"{2 * index + 2}.1"),
        )
        return base.Pairing(
            cycle=1,
            round=index + 1,
            boards=boards,
            time_control=None if extension is None else extension.time_control,
            replayed=extension is not None and extension.openings == "season",
        )

    def _set_of(self, index: int) -> tuple[int, model.Extension | None]:
        """Return the extension that a pair of games belongs to, and its set's first pair."""
        start, extension = self.rounds, None
        for extension in self.extensions:
            pairs = extension.games // 2
            if extension.repeat:
                return start + (index - start) // pairs * pairs, extension
            if index < start + pairs:
                return start, extension
            start += pairs
        return start, None

    def _tied(self, played: base.History) -> bool:
        if played.paired < self.rounds or not played.all_played or played.out:
            return False
        return played.taken(0, played.games) == played.taken(1, played.games)
