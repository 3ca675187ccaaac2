"""``farm ratings`` and ``farm forecast`` over a real Redis with a half-played season."""

from __future__ import annotations

import collections
import json
import pathlib
import statistics
from collections.abc import Iterator

import harness
import pytest
from click import testing

import orchestrator
from orchestrator import commands, contract
from orchestrator.forecast import game_model, rating_list, season_simulation
from orchestrator.ledger import store
from orchestrator.rating import ordo
from orchestrator.season.file import load

SEASONS = pathlib.Path(orchestrator.__file__).parent / "seasons"


@pytest.fixture(scope="module")
def played() -> season_simulation.Simulation:
    """Play a season of the FRC rules, with crashes."""
    loaded = load.load(SEASONS / "frc.toml")
    return season_simulation.Simulation.launched(loaded, 3, game_model.Chances(crash=0.02)).run()


@pytest.fixture
def farm(
    played: season_simulation.Simulation, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[store.RedisLedger]:
    """Run a Redis whose journal is the first half of that season."""
    with harness.Redis(tmp_path / "redis") as server:
        monkeypatch.setenv("FARM_REDIS_URL", server.url_of(harness.OPERATOR))
        with store.connect(server.url) as ledger:
            append(ledger, played, 0, len(played.journal) // 2)
            yield ledger


def append(
    ledger: store.RedisLedger, played: season_simulation.Simulation, at: int, end: int
) -> None:
    """Journal some entries of the season."""
    drafts = [contract.Draft(entry.kind, entry.data) for entry in played.journal[at:end]]
    ledger.append("frc", at, drafts, "test")


def run(*words: str) -> str:
    """Run a command of the farm."""
    result = testing.CliRunner().invoke(commands.farm, words)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_counts_every_official_game(
    farm: store.RedisLedger, played: season_simulation.Simulation
) -> None:
    """Crashed games count; who has not finished an event is provisional (S16-14)."""
    half = played.journal[: len(played.journal) // 2]
    finished = sum(entry.kind == "game_finished" for entry in half)
    facts = json.loads(run("ratings", "--json", "--errors", "0"))
    assert sum(row["played"] for row in facts["ratings"]) == 2 * finished
    ranked = {
        row["engine"]
        for entry in half
        if entry.kind == "event_ranked"
        for row in entry.data["rows"]
    }
    names = {played.state.engines[engine].name for engine in ranked}
    assert {row["engine"] for row in facts["ratings"] if not row["provisional"]} == names
    append(farm, played, len(half), len(played.journal))
    after = json.loads(run("ratings", "--json", "--errors", "0", "--scope", "frc"))
    assert not any(row["provisional"] for row in after["ratings"])


def test_live_elo_starts_from_the_roster(farm: store.RedisLedger) -> None:
    """Points only wander: the mean stays near that of the roster."""
    rows = json.loads(run("ratings", "--live", "--json"))["ratings"]
    given = [e.rating for e in load.load(SEASONS / "frc.toml").engines if e.rating is not None]
    assert len(rows) == len(given)
    mean = sum(row["rating"] for row in rows) / len(rows)
    assert mean == pytest.approx(sum(given) / len(given), abs=5)


def test_the_list_is_written_whole(farm: store.RedisLedger, tmp_path: pathlib.Path) -> None:
    """--write leaves the JSON that --json prints."""
    path = tmp_path / "ratings.json"
    run("ratings", "--write", str(path), "--errors", "0")
    assert json.loads(path.read_text()) == json.loads(run("ratings", "--json", "--errors", "0"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--live", "--los"), "--live and --los: live Elo is a table, or --json"),
        (("--live", "--write", "list.json"), "--live and --write: live Elo"),
        (("--write", "list.json", "--csv"), "--write and --csv: the file is the list as JSON"),
        (("--json", "--csv"), "--json and --csv: a list has one form"),
    ],
)
def test_options_that_a_list_would_leave_aside_are_refused(
    words: tuple[str, ...], told: str
) -> None:
    """Before a farm is looked for."""
    result = testing.CliRunner().invoke(commands.farm, ["season", "ratings", *words])
    assert result.exit_code == 2
    assert told in result.output


def test_who_is_stronger_stands_in_json_too(farm: store.RedisLedger) -> None:
    """As many rows as engines, in the order of the list."""
    facts = json.loads(run("ratings", "--json", "--los", "--errors", "0"))
    assert len(facts["superiority"]) == len(facts["ratings"])
    assert facts["superiority"][0][-1] > 0.5


def test_too_few_games_tell_no_figure_that_misleads(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, played: season_simulation.Simulation
) -> None:
    """No white advantage of a thousand points, no draw rate, no error of naught: a word, a dash."""
    ends = [n for n, entry in enumerate(played.journal) if entry.kind == "game_finished"]
    with harness.Redis(tmp_path / "redis") as server:
        monkeypatch.setenv("FARM_REDIS_URL", server.url_of(harness.OPERATOR))
        with store.connect(server.url) as ledger:
            append(ledger, played, 0, ends[3] + 1)
            model = ("--white-advantage", "--draw-rate")
            told = run("ratings", *model)
            facts = json.loads(run("ratings", *model, "--json"))
    assert "White advantage and draw rate: too few games to tell, 4 games" in told
    assert any(row["rating"] is not None for row in facts["ratings"])
    assert "provisional, with a rating: it has not finished an event yet" in told
    assert (facts["white_advantage"], facts["draw_rate"]) == (None, None)
    assert all(row["error"] is None or row["error"] > 1 for row in facts["ratings"])


def test_the_running_season_is_forecast(farm: store.RedisLedger) -> None:
    """Without a name it is the running season; the table and the JSON come of one seed."""
    facts = json.loads(run("forecast", "--runs", "20", "--seed", "4", "--json"))
    assert facts["season"] == "frc"
    assert sum(one["chance"] for one in facts["champion"]) == pytest.approx(1)
    shown = run("forecast", "frc", "--runs", "20", "--seed", "4")
    assert "Champion:" in shown
    assert "The season ends about" in shown


def test_the_kept_list_is_the_list_made_anew(played: season_simulation.Simulation) -> None:
    """Game by game a kept list needs a few steps, and ends where a fresh one does."""
    settings = ordo.Settings(white=None, draws=None)
    games = rating_list.results([played.state])
    kept = rating_list.RatingList(settings)
    half = len(games) // 2
    steps = []
    for end in range(half, half + 30):
        last = kept.update(collections.Counter(games[:end]))
        steps.append(last.fit.steps)
    cold = rating_list.RatingList(settings).update(collections.Counter(games[:end]))
    assert last.ratings == pytest.approx(cold.ratings, abs=1e-4)
    assert statistics.median(steps) <= 4 < cold.fit.steps
