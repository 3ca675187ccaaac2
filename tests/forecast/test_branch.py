"""The results-only path of the forecast against the season's core."""

from __future__ import annotations

import collections
import functools
import pathlib

import driver
import pytest

import orchestrator
from orchestrator import contract
from orchestrator.forecast import fast_simulation, forecast, game_model, season_simulation
from orchestrator.season.amend import amending
from orchestrator.season.file import load
from orchestrator.season.fold import events, state
from orchestrator.season.spec import seeded_random

SEASONS = pathlib.Path(orchestrator.__file__).parent / "seasons"
CUTS = (0.0, 0.3, 0.8, 1.0)  # parts of the journal after which the branch takes over
BROKEN = game_model.Chances(draw=0.7, crash=0.03, time_loss=0.01, interruption=0.02)


@functools.cache
def played(name: str, seed: int) -> season_simulation.Simulation:
    """Play a season by the core, with crashes, lost hosts and many ties."""
    loaded = load.load(SEASONS / f"{name}.toml")
    return season_simulation.Simulation.launched(loaded, seed, BROKEN).run()


class Replay:
    """The results of a season again, from a cut on."""

    def __init__(self, whole: state.SeasonState, cut: state.SeasonState) -> None:
        self.left: dict[tuple[str, str, str], collections.deque[contract.GameFinished]] = (
            collections.defaultdict(collections.deque)
        )
        for event in whole.events.values():
            for game in map(whole.game, event.order):
                known = cut.games.get(game.id)
                if game.finished is not None and (known is None or known.finished is None):
                    self.left[event.id, game.white, game.black].append(game.finished)

    def __call__(self, event: str, white: str, black: str) -> contract.GameFinished:
        """Return the next result of these two."""
        return self.left[event, white, black].popleft()

    @property
    def unused(self) -> int:
        """Return how many results were not asked for."""
        return sum(map(len, self.left.values()))


def by_lot(seed: int) -> fast_simulation.Lot:
    """Draw lots as the simulation's organizers do."""

    def lot(decision: str, count: int) -> list[int]:
        return list(seeded_random.shuffle(str(seed), f"simulation:{decision}", count))

    return lot


@pytest.mark.parametrize("name", ["season16", "season17", "cup", "frc", "ntcec1"])
@pytest.mark.parametrize("cut", CUTS)
def test_branch_and_core_agree_on_the_same_results(name: str, cut: float) -> None:
    """Standings with every tiebreak, promotions and the champion are those of the core."""
    seed = 5
    core = played(name, seed)
    part = core.journal[: max(1, round(cut * len(core.journal)))]
    before = state.fold(part)
    replay = Replay(core.state, before)
    found = fast_simulation.Branch(before, replay, by_lot(seed)).run()
    for event in core.state.events.values():
        there = found.state.events[event.id]
        assert _ranks(there) == _ranks(event), event.id
        sent = {source: arrival.engines for source, arrival in there.arrivals.items()}
        assert sent == {source: arrival.engines for source, arrival in event.arrivals.items()}
    assert found.champion == core.state.champion
    assert replay.unused == 0


def _ranks(event: events.EventState) -> list[tuple[object, ...]]:
    return [(row.rank, row.engine, row.half_points, dict(row.tiebreaks)) for row in event.rows]


def test_a_branch_leaves_its_origin_alone() -> None:
    """A thousand branches of one state cannot influence each other."""
    core = played("season16", 5)
    before = state.fold(core.journal[: len(core.journal) // 2])
    twin = state.fold(core.journal[: len(core.journal) // 2])
    known = forecast.Forecast(before, 1)
    first = known.odds(range(3))
    assert known.odds(range(3)) == first
    for name, event in before.events.items():
        assert event.rows == twin.events[name].rows
        assert event.arrivals == twin.events[name].arrivals
        assert event.tally.scores == twin.events[name].tally.scores


def test_what_waits_for_a_host_is_played_on_by_a_branch(tmp_path: pathlib.Path) -> None:
    """A farm that plays others meanwhile has no game left: its forecast goes on."""
    season = driver.Driver.launched(driver.load(tmp_path, driver.season_text())).play(3)
    season.append(amending.set_away_policy(season.state, "others", "ann", ""))
    season.append(amending.host_away(season.state, "box", list(season.state.engines), "ann", ""))
    assert season.state.current is None
    found = forecast.Forecast(season.state, 1).run(0)
    assert found.champion in season.state.engines
    assert found.games == {"league": 9, "final": 4}
