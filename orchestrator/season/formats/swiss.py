"""Swiss: each round pairs engines of like score who have not met (FIDE Dutch, ``dutch``).

N1 stage 1: 7 rounds, round 1 by halves of the rating list with alternating colours,
ranking by points, then cumulative opponents' score, then seed; the boards of a round are
played from the last to the first, and every game has an opening of its own. An odd field
gives a bye, a win without a game, to nobody twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal

from orchestrator.season.formats import base, colours, dutch


@dataclasses.dataclass(frozen=True)
class Swiss:
    """The schedule of a Swiss tournament."""

    entrants: int
    rounds: int
    ranking: Literal["seed", "opponents-score"] = "seed"
    first_board: Literal["top", "bottom"] = "top"

    @property
    def games(self) -> int:
        """Return the games of all rounds."""
        return self.rounds * (self.entrants // 2)

    @property
    def openings(self) -> int:
        """Return one opening for each game."""
        return self.games

    @property
    def open_ended(self) -> bool:
        """Say that no game is ever added."""
        return False

    def remaining(self, played: base.History) -> Iterator[tuple[int, int]]:
        """Yield the rounds that are not paired yet."""
        staying = self.entrants - len(played.out)
        for index in range(played.paired, self.rounds):
            yield index + 1, staying // 2

    def pair(self, index: int, played: base.History) -> base.Pairing | None:
        """Draw a round once the one before is played."""
        if index != played.paired or not played.all_played:
            return None
        ranked = ranking(self.entrants, self.ranking, played)
        last = self.rounds if index + 1 == self.rounds else 0
        pairs, bye = dutch.pair(ranked, last_round_of=last)
        boards = [
            base.Board(
                white=ranked[white].number,
                black=ranked[black].number,
                slot=index * (self.entrants // 2) + number - 1,
                tag=f"{index + 1}.{number}",
            )
            for number, (white, black) in enumerate(pairs, start=1)
        ]
        if self.first_board == "bottom":
            boards.reverse()
        byes = () if bye is None else (ranked[bye].number,)
        return base.Pairing(cycle=1, round=index + 1, boards=tuple(boards), byes=byes)

    def complete(self, paired: int, played: base.History) -> bool:
        """Say whether the last round is paired, or nobody is left to be paired."""
        return paired >= self.rounds or self.entrants - len(played.out) < 2

    def built_from(self, number: int) -> int:
        """Return the next round."""
        return number + 1

    def order(self, played: base.History) -> None:
        """Leave the places to points and tiebreaks."""
        del played


def ranking(entrants: int, by: str, played: base.History) -> list[colours.Player]:
    """Return the engines still in the event, ranked for the next round."""
    players = _players(entrants, played)
    scores = {player.number: player.score for player in players}

    def rank(player: colours.Player) -> tuple[int, int, int]:
        cumulative = sum(scores[opponent] for opponent in player.opponents)
        second = cumulative + player.score * player.had_bye if by == "opponents-score" else 0
        return -player.score, -second, player.number

    return sorted((p for p in players if p.number not in played.out), key=rank)


def _players(entrants: int, played: base.History) -> list[colours.Player]:
    """Replay all rounds: scores, opponents, colours and floats of every engine."""
    players = [colours.Player(engine) for engine in range(entrants)]
    for number in range(1, played.paired + 1):
        seats = {
            engine: game
            for game in played.games
            if game.round == number
            for engine in (game.white, game.black)
        }
        byes = {engine for round_number, engine in played.byes if round_number == number}
        players = [_after(player, players, seats, byes, played) for player in players]
    return players


def _after(
    player: colours.Player,
    before: list[colours.Player],
    seats: dict[int, base.Game],
    byes: set[int],
    played: base.History,
) -> colours.Player:
    """Return a player after a round; games of engines that have left score nothing."""
    engine, game = player.number, seats.get(player.number)
    if game is None:
        bye = engine in byes
        return dataclasses.replace(
            player,
            score=player.score + 2 * bye,
            colours=player.colours + "-",
            floats=(*player.floats, colours.DOWN if bye else ""),
            had_bye=player.had_bye or bye,
        )
    opponent = game.white + game.black - engine
    gap = player.score - before[opponent].score
    counts = played.out.isdisjoint((engine, opponent))
    return dataclasses.replace(
        player,
        score=player.score + (played.taken(engine, (game,)) if counts else 0),
        opponents=player.opponents | {opponent},
        colours=player.colours + ("w" if game.white == engine else "b"),
        floats=(*player.floats, colours.DOWN if gap > 0 else colours.UP if gap < 0 else ""),
    )
