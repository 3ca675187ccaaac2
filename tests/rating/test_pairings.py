"""Counting games, and which engines can be compared at all."""

from __future__ import annotations

import collections
import dataclasses
import itertools

import numpy as np
import pytest
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
@given(GAMES, st.lists(st.integers(0, 2_000), max_size=6))
def test_blocks_may_end_anywhere(games: list[tuple[str, str, str]], cuts: list[int]) -> None:
    """An archive that is read in blocks has the games of one that is read whole."""
    content = pgn(games)
    whole, blocks = headers.Reader(), headers.Reader()
    whole.take(content)
    ends = sorted({min(cut, len(content)) for cut in cuts} | {0, len(content)})
    blocks.take_blocks(content[a:b] for a, b in itertools.pairwise(ends))
    one, other = whole.table(), blocks.table()
    assert one.texts == other.texts
    for column in ("white", "black", "result", "times"):
        assert np.array_equal(getattr(one, column), getattr(other, column))


def test_memory_grows_with_the_pairs_and_not_with_the_games(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four times the games of the same engines are as many rows."""
    monkeypatch.setattr(headers, "_COUNTED", 50)
    games = [(f"e{n % 7}", f"f{n % 5}", ("1-0", "0-1", "1/2-1/2")[n % 3]) for n in range(500)]
    rows = []
    for times in (1, 4):
        reader = headers.Reader()
        reader.take_blocks(pgn(games) for _ in range(times))
        rows.append(len(reader.table().white))
        assert reader.table().times.sum() == 500 * times
    assert rows == [105, 105]


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
