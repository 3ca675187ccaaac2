"""Wrong words of every kind, a few of each (`make fuzz` gives a million), and all past finds."""

from __future__ import annotations

import itertools
import pathlib
import random
from collections.abc import Iterator

import mutations
import pytest
import run_fuzz
import targets

FINDS = sorted((pathlib.Path(__file__).parent / "finds").glob("*/*.input"))
SEED = 20261122
INPUTS = 60  # of each target


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    """End what the targets have started."""
    with targets.OPEN:
        yield


@pytest.mark.parametrize("name", sorted(targets.BY_NAME))
def test_no_wrong_word_ends_in_an_error_nobody_foresaw(name: str) -> None:
    """A fixed handful of inputs; the long form draws others each time."""
    target = targets.BY_NAME[name]
    for data in itertools.islice(run_fuzz.inputs(target, SEED), INPUTS):
        find = run_fuzz.attempt(target, data)
        assert find is None, f"{find.place}\n{find.text}\ninput: {data!r}"


@pytest.mark.parametrize("path", FINDS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_was_found_once_is_not_found_again(path: pathlib.Path) -> None:
    """Each input that once ended in an unforeseen error."""
    find = run_fuzz.attempt(targets.BY_NAME[path.parent.name], path.read_bytes())
    assert find is None, find and find.text


def test_the_seeds_are_read_without_an_error() -> None:
    """What is mutated is right by itself: wrong seeds would only try the first check of each."""
    targets._uci(targets.UCI_TEXT.encode())
    assert targets.uci.last_search(targets.UCI_TEXT.encode()).score is not None
    targets._toml(targets.driver.season_text().encode())
    assert len(list(targets.reading.games(targets.PGN_TEXT))) == 2
    assert len(targets.openings.parse(targets.EPD_TEXT, "epd", 16, "book")) == 2
    targets._game_order(mutations.as_json(targets._order()).encode())
    targets._boxes(targets.BOXES_TEXT.encode())
    ring = mutations.as_json(targets.RING).encode()
    assert targets.rings.plain(ring, "farm.play.hall-1") is not None
    assert set(targets.game_zip.unpack(targets._packed())) == set(targets.game_zip.MEMBERS)


def test_an_unforeseen_error_is_found_and_made_small() -> None:
    """The instrument itself: a target with a fault is found out, by its shortest input."""

    def run(data: bytes) -> None:
        if b"bug" in data:
            raise KeyError("unforeseen")

    broken = targets.Target("broken", lambda rng: b"", run)
    find = run_fuzz.attempt(broken, b"some words around a bug in the middle of a long text")
    assert find is not None
    assert "KeyError" in find.place
    assert run_fuzz.smallest(broken, find).data == b"bug"


def test_inputs_are_known_by_target_seed_and_number() -> None:
    """The same seed makes the same inputs, another seed others."""
    target = targets.BY_NAME["uci"]
    first, again, other = (
        list(itertools.islice(run_fuzz.inputs(target, seed), 20)) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert mutations.of_bytes(random.Random(1), b"abc") == mutations.of_bytes(
        random.Random(1), b"abc"
    )
