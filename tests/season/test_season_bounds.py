"""Wrong numbers in a season file end in an error that names them, at once."""

from __future__ import annotations

import pathlib

import driver
import pytest

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season.amend import operations
from orchestrator.season.fold import events, pairing, state

WRONG = [
    ("double_rounds = 1 ", "double_rounds = 999999999 ", "100000 or less"),
    ("double_rounds = 1 ", "double_rounds = 99999 ", "at most 100,000 games in a season"),
    ("top = 2", "top = 999999999", "10000 or less"),
    ("games = 4", "games = 99999998", "100000 or less"),
    ('break = "10m"', f'break = "{"9" * 400}d"', "at most 3650"),
    ('break = "10m"', 'break = "3650.1d"', "at most 3650"),
    ('name = "League"', 'name = "L"\nlimits = { hash_mb = 1000000000000 }', "16777216 or less"),
    ('name = "League"', 'name = "L"\nlimits = { threads = 99999999 }', "65536 or less"),
    ('name = "League"', 'name = "L"\ntimeouts = { start_ms = 10000000000 }', "864000000 or less"),
    ('name = "League"', 'name = "Lea\u202egue"', "one line"),
    ('file = "short.epd"', 'file = "/dev/zero"\nkind = "epd"', "PGN or EPD"),
]


@pytest.mark.parametrize(("right", "wrong", "allowed"), WRONG)
def test_a_number_beyond_any_season_is_refused(
    tmp_path: pathlib.Path, right: str, wrong: str, allowed: str
) -> None:
    """The error names the file, the place and what is allowed."""
    text = driver.season_text()
    assert right in text
    with pytest.raises(errors.SeasonFileError, match=allowed):
        driver.load(tmp_path, text.replace(right, wrong))


def test_the_least_and_the_most_are_allowed(tmp_path: pathlib.Path) -> None:
    """A bound that a message names may be reached; who writes a default down is not refused."""
    zero = ("time_margin_ms", "relegate", "seeding_places", "disqualify_after")
    lines = ['break = "3650d"', *(f"{name} = 0" for name in zero), "max_engines = 2"]
    text = driver.season_text().replace('break = "10m"', "\n".join(lines))
    final = driver.load(tmp_path, text).season.event("final")
    assert final.break_ms == 3650 * 86_400_000
    assert [getattr(final, name) for name in zero] == [0, 0, 0, 0]


def test_a_season_file_has_a_size(tmp_path: pathlib.Path) -> None:
    """What is longer than any season is not parsed."""
    with pytest.raises(errors.SeasonFileError, match="more than 4 MiB"):
        driver.load(tmp_path, driver.season_text() + "# long\n" * (1 << 20))


def test_a_huge_event_is_paired_as_it_is_played(tmp_path: pathlib.Path) -> None:
    """However many games an event has, no more than some two thousand are paired ahead."""
    rounds = driver.season_text().replace("double_rounds = 1 ", "double_rounds = 1000 ")
    rounds = rounds.replace('file = "short.epd"', 'file = "short.epd"\nrepeat = true')
    loaded = driver.load(tmp_path, rounds)
    folded = state.SeasonState()

    def add(drafts: list[contract.Draft]) -> None:
        for draft in drafts:
            folded.apply(contract.Entry(folded.seq + 1, 1, draft.kind, "x", draft.data))

    add(operations.launch(loaded, "s", "seed", driver.HALL, "0"))
    while drafts := driver.decide.decide(folded, 1):
        add(drafts)
    event: events.EventState = folded.events["league"]
    assert 2_000 <= len(event.order) < 2_600
    assert not pairing.complete(folded, event)
