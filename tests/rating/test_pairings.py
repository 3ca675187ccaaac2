"""Counting games, and which engines can be compared at all."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.rating import components, headers, pairings

NAMES = st.sampled_from("ABCDEF")
GAMES = st.lists(st.tuples(NAMES, NAMES, st.sampled_from([*pairings.RESULTS, "*"])), max_size=30)


def pgn(games: list[tuple[str, str, str]]) -> bytes:
    """Write an archive of headers."""
    return "".join(
        f'[White "{white}"]\n[Black "{black}"]\n[Result "{result}"]\n\n{result}\n\n'
        for white, black, result in games
    ).encode()


def by_hand(games: list[tuple[str, str, str]], families: dict[str, str]) -> pairings.Pairings:
    """Count one game after the other, as one would with pencil and paper."""
    numbers: dict[str, int] = {}
    cells: dict[tuple[int, int], list[int]] = {}
    for white, black, result in games:
        if result in pairings.RESULTS:
            names = [families.get(name, name) for name in (white, black)]
            one, other = (numbers.setdefault(name, len(numbers)) for name in names)
            if one != other:
                cells.setdefault((one, other), [0, 0, 0])[pairings.RESULTS[result]] += 1
    sides = np.array(list(cells), dtype=np.int64).reshape(-1, 2)
    counts = np.array(list(cells.values()), dtype=np.float64).reshape(-1, 3)
    return pairings.Pairings(tuple(numbers), sides[:, 0], sides[:, 1], *counts.T)


def same(one: pairings.Pairings, other: pairings.Pairings) -> bool:
    """Say whether two counts agree, engines and pairs in the same order."""
    return one.engines == other.engines and all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name))
        for field in dataclasses.fields(pairings.Pairings)[1:]
    )


@settings(deadline=None)
@given(GAMES, GAMES, st.dictionaries(NAMES, st.sampled_from(["A", "X"]), max_size=3))
def test_whichever_way_games_come_the_count_is_that_of_pencil_and_paper(
    first: list[tuple[str, str, str]],
    second: list[tuple[str, str, str]],
    families: dict[str, str],
) -> None:
    """Two archives, or the games with their number: pairs and engines in order of appearance."""
    expected = by_hand(first + second, families)
    reader = headers.Reader()
    reader.take(pgn(first))
    reader.take(pgn(second))
    table = reader.table()
    assert same(pairings.count(table, families), expected)
    assert table.unfinished() == sum(result == "*" for _, _, result in first + second)
    counted = pairings.count(collections.Counter(first + second), families)
    assert counted.games.sum() == expected.games.sum()
    assert counted.engines == expected.engines


@settings(deadline=None)
@given(GAMES)
def test_one_component_is_seen_at_once_and_by_the_search(
    games: list[tuple[str, str, str]],
) -> None:
    """Everybody reaches everybody exactly where the components are one; they share nobody."""
    counted = by_hand(games, {})
    reached = np.eye(len(counted.engines), dtype=bool)
    for white, black, won, drawn, lost in zip(
        counted.white, counted.black, counted.wins, counted.draws, counted.losses, strict=True
    ):
        reached[black, white] |= won + drawn > 0
        reached[white, black] |= lost + drawn > 0
    for middle in range(len(reached)):
        reached |= np.outer(reached[:, middle], reached[middle])
    both = reached & reached.T
    parts = components.connected(counted)
    assert components.is_connected(counted) == (len(parts) == 1)
    assert sorted(engine for part in parts for engine in part) == list(range(len(both)))
    for part in parts:
        assert np.flatnonzero(both[part[0]]).tolist() == part
