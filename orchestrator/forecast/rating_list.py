"""The farm's own rating list, from the journals of its seasons (S16-14, N1 Engine Ratings).

All official games count: lost on time, crashed, annulled, rapid and blitz (S16-14b,
S17-14b); test games from a time control on (S16-14c, S17-14c). Versions of an engine are
one engine: within a season its entry is one whatever its name became by updates, across
seasons entries of one name are, and a mapping of names to families joins what is left
(S16-14d, S17-14d). An engine that has not finished an event yet is provisional (S16-14e,
S17-14e). After one more game the list is a few steps from the last one.
"""

from __future__ import annotations

import collections
import dataclasses
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.rating import error_bars, headers, lists, live, ordo, pairings
from orchestrator.season.fold import events
from orchestrator.season.fold import state as season_state

Result = tuple[str, str, str]  # White, Black, result
Record = tuple[str, str, int, str]  # families of White and Black, the end in ms, result


def results(states: Iterable[season_state.SeasonState]) -> list[Result]:
    """Return every official game of some seasons in the order in which they ended.

    A game counts for who played it, also where a substitute has taken its result over. What
    the organizers scored without a move is none. A game of one season that was imported into
    another (the same end at the same millisecond) counts once, and so does one that was
    imported into several.
    """
    finished: list[tuple[contract.GameFinished, Result]] = []
    earlier: collections.Counter[Record] = collections.Counter()
    for state in states:
        for game, done in _not_yet(earlier, state):
            white, black = (_name(state, engine) for engine in game.players)
            finished.append((done, (white, black, done.result)))
    here = {(done.ended_ms, done.result) for done, _ in finished if not done.imported}
    finished.sort(key=lambda item: item[0].ended_ms)
    return [
        result
        for done, result in finished
        if not (done.imported and (done.ended_ms, done.result) in here)
    ]


def _not_yet(
    earlier: collections.Counter[Record], state: season_state.SeasonState
) -> Iterator[tuple[events.Game, contract.GameFinished]]:
    """Yield a season's games but those imported ones that seasons before it have; note its own.

    Games of one season are never one another's copies: where a record tells no time, all of
    an import end together.
    """
    mine: collections.Counter[Record] = collections.Counter()
    for game in state.games.values():
        if (done := game.finished) is None or not _begun(game, done):
            continue
        if done.imported:
            record = _record(state, game, done)
            mine[record] += 1
            if mine[record] <= earlier[record]:
                continue
        yield game, done
    earlier |= mine


def _record(
    state: season_state.SeasonState, game: events.Game, done: contract.GameFinished
) -> Record:
    """Return what an imported game has in common wherever it stands, whatever versions play."""
    white, black = (state.engines[engine] for engine in game.players)
    return _family(white), _family(black), done.ended_ms, done.result


def _family(engine: contract.EngineSpec) -> str:
    return engine.family or engine.name.partition(" ")[0]


def _begun(game: events.Game, done: contract.GameFinished) -> bool:
    """Say whether a hall has played a game, were it only until an interruption."""
    return bool(done.attempt or (game.progress and game.progress.plies))


def _name(state: season_state.SeasonState, engine: str) -> str:
    return state.engines[engine].name


def established(states: Iterable[season_state.SeasonState]) -> set[str]:
    """Return who has finished an event; everybody else is provisional (S16-14e).

    Who was excluded from an event has not finished it.
    """
    return {
        _name(state, engine)
        for state in states
        for event in state.events.values()
        if event.status is events.Status.RANKED
        for engine in event.entrants
        if engine not in event.excluded
    }


def established_families(
    states: Sequence[season_state.SeasonState], families: Mapping[str, str]
) -> set[str]:
    """Return the established engines by the names of their families."""
    return {families.get(name, name) for name in established(states)}


def first_ratings(states: Iterable[season_state.SeasonState]) -> dict[str, float]:
    """Return what each engine starts with in live Elo: its first roster's figure."""
    ratings: dict[str, float] = {}
    for state in states:
        launched = {engine.id: engine.rating for engine in state.launched.engines}
        for engine in state.engines.values():
            first = launched.get(engine.id)
            rating = engine.rating if first is None else first
            if rating is not None:
                ratings.setdefault(engine.name, float(rating))
    return ratings


@dataclasses.dataclass(frozen=True)
class Scale:
    """Where a list lies: the mean of its rated engines, and how many of them a roster rates."""

    average: float
    rosters: int


def scale(
    states: Sequence[season_state.SeasonState],
    games: Mapping[Result, int],
    families: Mapping[str, str],
) -> Scale:
    """Return the whole number that lays a list on the scale of the rosters.

    Engines that are rated and that a roster rates have the same mean on both: who is only
    provisional, or unrated there, moves nothing. Bounds (of who won or lost every game) count
    where there is nothing better; without any rating it is Ordo's average.
    """
    settings = ordo.Settings(white=None, draws=None, average=0.0)
    rated = RatingList(settings, families).update(games)
    given = {families.get(name, name): at for name, at in reversed(first_ratings(states).items())}
    offsets = list(_off(rated, given, rated.core)) or list(_off(rated, given, rated.perfect))
    if not offsets:
        return Scale(ordo.AVERAGE, 0)
    return Scale(float(round(statistics.fmean(offsets))), len(offsets))


def _off(rated: ordo.Rated, given: Mapping[str, float], engines: Iterable[int]) -> Iterator[float]:
    """Yield how far engines that have both ratings are below the given one."""
    for engine in engines:
        name = rated.counted.engines[engine]
        if name in given and engine in rated.ratings:
            yield given[name] - rated.ratings[engine]


class RatingList:
    """A list that is kept up to date game by game."""

    def __init__(self, settings: ordo.Settings, families: Mapping[str, str] | None = None) -> None:
        """Start with no list; ``settings`` are those of ``rating.ordo``.

        The maximum itself is kept: Ordo's walk knows no last list to go on from.
        """
        self._settings = dataclasses.replace(settings, exact=True)
        self._families = families or {}
        self._last: ordo.Rated | None = None

    def update(self, games: Mapping[Result, int]) -> ordo.Rated:
        """Rate all games, a few steps from the list before."""
        counted = pairings.count(games, self._families)
        self._last = ordo.rate(counted, self._settings, self._last)
        return self._last

    def listed(
        self,
        games: Mapping[Result, int],
        states: Sequence[season_state.SeasonState],
        runs: int | None = None,
    ) -> tuple[error_bars.Spread, tuple[lists.Row, ...]]:
        """Return the list with its errors; raise ``RefusedError`` before the first result.

        ``states`` say who is provisional; ``runs`` are those of ``rating.spread.of``.
        """
        if not any(result in pairings.RESULTS for _, _, result in games):
            raise errors.RefusedError("no game has been finished yet: nothing can be rated")
        rated = error_bars.of(self.update(games), runs)
        return rated, marked(rated, established_families(states, self._families))


def marked(known_spread: error_bars.Spread, finished: set[str]) -> tuple[lists.Row, ...]:
    """Return the list with those marked provisional who have not finished an event."""
    return tuple(
        dataclasses.replace(row, provisional=row.provisional or row.engine not in finished)
        for row in lists.rows(known_spread)
    )


def live_elo(
    states: Sequence[season_state.SeasonState],
    families: Mapping[str, str],
    unrated: float,
) -> live.LiveElo:
    """Return nTCEC's live Elo after all games; who has no first rating starts at ``unrated``."""
    start = {families.get(name, name): rating for name, rating in _starts(states, unrated)}
    made = live.LiveElo(start, families)
    made.play_all(results(states))
    return made


def _starts(
    states: Sequence[season_state.SeasonState], unrated: float
) -> Iterator[tuple[str, float]]:
    given = first_ratings(states)
    for name in {engine.name for state in states for engine in state.engines.values()} - set(given):
        yield name, unrated
    yield from reversed(given.items())  # a family's first version gives its first rating


def long_enough(content: bytes, least: contract.TimeControl | None) -> headers.Games:
    """Count the test games of a PGN archive that were played at least that slowly.

    Without a least time control all count, those too that tell none.
    """
    if least is None:
        return headers.read(content)
    counted: headers.Games = collections.Counter()
    for (white, black, result, *controls), times in headers.read_controlled(content).items():
        if min(map(_nominal_seconds, controls)) >= _nominal(least):
            counted[white, black, result] += times
    return counted


def _nominal(control: contract.TimeControl) -> float:
    return control.nominal_ms(_MOVES) / 1000


_MOVES = 60  # a usual game, by which time controls of different kinds are compared


def _nominal_seconds(tag: str) -> float:
    """Return the seconds a side has for 60 moves by PGN's ``TimeControl``, 0 if it says none."""
    total, moves_left = 0.0, _MOVES
    for field in tag.replace("*", "").split(":"):
        span, _, increment = field.partition("+")
        moves, slash, base = span.partition("/")
        try:
            seconds = float(base if slash else span)
            total += seconds * (_MOVES / float(moves) if slash else 1.0)
            total += float(increment or 0) * moves_left
        except (ValueError, ZeroDivisionError):
            return 0.0
        if slash:
            return total
    return total
