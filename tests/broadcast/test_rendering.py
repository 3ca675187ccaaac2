"""What is kept of a season's documents is what would be rendered whole, and costs no more work."""

from __future__ import annotations

import json
import pathlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import driver
import pytest
import theatre

from orchestrator.broadcast.content import statistics, tables
from orchestrator.broadcast.feeds.tcec import names, schedule
from orchestrator.forecast import game_model
from orchestrator.season import graph
from orchestrator.season.amend import operations
from orchestrator.season.fold import corrections
from orchestrator.season.fold import state as season_state

ESTIMATE_MS = 2  # an estimate is a sum of means: the order of adding them rounds it


def shown(made: theatre.Projected, place: str) -> Any:
    """Return a document as data."""
    document = made.shelf.get(place)
    assert document is not None, place
    return json.loads(document.body)


def plain(value: Any) -> Any:
    """Return data as it comes out of JSON."""
    return json.loads(json.dumps(value))


def compare(made: theatre.Projected, season: str) -> None:
    """Compare a season's documents with those that are made whole, from its state."""
    known = made.projector.seasons[season]
    state, place = known.state, f"seasons/{season}"
    whole = graph.build(state, by_round=True).data()
    assert shown(made, f"{place}/graph") == plain(whole)
    assert shown(made, f"{place}/log") == plain(known.log.lines)
    assert shown(made, f"{place}/statistics") == plain(statistics.of_season(state).as_json())
    assert shown(made, place) == plain(tables.season(state))
    for event in state.events:
        assert shown(made, f"{place}/events/{event}") == plain(tables.event(state, event)), event
        rows = shown(made, f"{place}/events/{event}/schedule")
        wanted = plain(tables.schedule(state, event, known.brief))
        for row, other in zip(rows, wanted, strict=True):
            starts = row.pop("estimated_start_ms", -1), other.pop("estimated_start_ms", -1)
            assert (starts[0] is None) == (starts[1] is None)
            assert abs((starts[0] or 0) - (starts[1] or 0)) <= ESTIMATE_MS
            assert row == other


@pytest.mark.parametrize("name", ["demo", "cup"])
def test_what_is_kept_is_what_would_be_rendered(name: str, tmp_path: pathlib.Path) -> None:
    """After many entries, and after single ones, a document is as the whole state makes it."""
    tape = theatre.simulated(name, luck=game_model.Chances(crash=0.05))
    made = theatre.projected(tape, tmp_path)
    jump = len(tape.journal) // 7
    while tape.shown < len(tape.journal):
        for step in (jump, 1, 1):
            tape.shown = min(len(tape.journal), tape.shown + step)
            made.projector.look()
        compare(made, tape.season)


def test_statistics_leave_annulled_games_out(tmp_path: pathlib.Path) -> None:
    """They count the games that the table counts, before an engine is out and after it."""
    tape = theatre.one_out(tmp_path)
    made = theatre.projected(tape, tmp_path)
    annulled = 0
    while tape.shown < len(tape.journal):
        tape.shown += 1
        made.projector.look()
        if "league" not in made.projector.seasons["test"].state.events:
            continue
        table = shown(made, "seasons/test/events/league")
        figures = table["statistics"]
        assert 2 * figures["games"] == sum(row["games"] for row in table["rows"])
        assert figures["games"] == sum(figures["endings"].values())
        sides = {row["engine"]: (row["white"], row["black"]) for row in figures["engines"]}
        for row in table["rows"]:
            white, black = sides[row["engine"]]
            for key in ("wins", "draws", "losses"):
                assert white[key] + black[key] == row[key], (row["engine"], key)
        rows = shown(made, "seasons/test/events/league/schedule")
        annulled = sum(row["annulled"] for row in rows)
        assert figures["games"] == sum(row["result"] is not None for row in rows) - annulled
        final = shown(made, "seasons/test/events/final")["statistics"]["games"]
        assert shown(made, "seasons/test/statistics")["games"] == figures["games"] + final
    assert annulled


def test_last_results_are_those_that_ended_last(tmp_path: pathlib.Path) -> None:
    """A game that is played again has its old number, and the place of its end."""
    season = driver.Driver.launched(driver.load(tmp_path, driver.season_text()), driver.drawn)
    season.play(3)
    first = season.state.events["league"].order[0]
    season.append(operations.pause(season.state, "ann", "a fault"))
    season.append(corrections.replay(season.state, first, "ann", "a fault"))
    season.append(operations.resume(season.state, "ann", "repaired"))
    season.play(1)
    tape = theatre.Tape(season.journal)
    tape.shown = len(season.journal)
    made = theatre.projected(tape, tmp_path)
    made.projector.look()
    last = shown(made, "seasons/test/events/league")["last"]
    played = sorted(
        (game for game in season.state.games.values() if game.counts),
        key=lambda game: game.finished.ended_ms if game.finished else 0,
    )
    assert last == [game.id for game in reversed(played)]
    assert last[0] == f"{first}.replay1"
    assert first not in last
    assert len(last) == 3


def counting(counts: Counter[str], name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that counts its calls."""

    def counted(*args: Any) -> Any:
        counts[name] += 1
        return real(*args)

    return counted


def work(
    root: pathlib.Path, engines: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Counter[str], int]:
    """Return what the entries of two games encode late in a round robin, and its games."""
    root.mkdir()
    tape = theatre.round_robin(root, engines)
    made = theatre.projected(tape, root)
    tape.shown = len(tape.journal) * 3 // 4
    made.projector.look()
    while tape.journal[tape.shown].kind != "attempt_started":
        tape.shown += 1
    made.projector.look()
    counts: Counter[str] = Counter()
    with monkeypatch.context() as patched:
        for owner, name in (
            (tables, "schedule_row"),
            (tables, "cell"),
            (schedule, "_game"),
            (schedule, "_cell"),
            (schedule, "_gain"),
            (graph, "_node_state"),
            (statistics.Counts, "count"),
            (season_state.SeasonState, "dropped"),
        ):
            patched.setattr(owner, name, counting(counts, name, getattr(owner, name)))
        for _ in range(4):
            tape.shown += 1
            made.projector.look()
    return counts, len(made.projector.seasons[tape.season].state.games)


def test_an_entry_costs_the_same_late_in_a_long_event(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, cells, counts and nodes that are made for two games do not grow with the event's."""
    small, few = work(tmp_path / "small", 8, monkeypatch)
    large, many = work(tmp_path / "large", 24, monkeypatch)
    assert many > 8 * few
    for name in small | large:
        assert 0 < large[name] <= small[name] + 2, (name, small, large)


def test_an_unread_schedule_is_not_joined(tmp_path: pathlib.Path) -> None:
    """The bytes of a document that grows with the event are made when somebody asks for them."""
    tape = theatre.round_robin(tmp_path, 6)
    tape.shown = len(tape.journal) // 2
    made = theatre.projected(tape, tmp_path)
    made.projector.look()
    document = made.shelf.get("seasons/test/events/league/schedule")
    assert document is not None
    assert "body" not in vars(document)
    assert json.loads(document.body)


def test_abbreviations_do_not_run_out() -> None:
    """Two letters are enough for 260 engines of like names; beyond, there are more letters."""
    engines = [f"Engine {number}" for number in range(700)]
    short = names.abbreviations(engines)
    assert len(set(short.values())) == len(engines)
    assert {len(one) for one in list(short.values())[:200]} == {2}
