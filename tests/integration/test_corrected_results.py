"""What is published after a correction: every PGN, page and feed has the result that counts."""

from __future__ import annotations

import errno
import io
import json
import pathlib
from collections.abc import Callable

import chess.pgn
import harness
import httpx
import pytest
import theatre
from click import testing
from test_recovery import Scene

from orchestrator import commands, contract
from orchestrator.common import files
from orchestrator.ledger import api
from orchestrator.ops import fsck
from orchestrator.ops.fsck import feeds, findings
from orchestrator.rating import headers
from orchestrator.season.amend import operations
from orchestrator.season.fold import corrections, disqualification
from orchestrator.serve import archive

WHY = ("ann", "the lights went out in /srv/hall")


def correct(scene: Scene, *acts: Callable[..., list[contract.Draft]]) -> None:
    """Pause, carry corrections out, go on."""
    for act in (
        lambda state: operations.pause(state, "ann", "a question"),
        *acts,
        lambda state: operations.resume(state, "ann", ""),
    ):
        state = scene.state()
        reply = scene.ledger.append("s", state.seq, act(state), "ann@farm")
        assert isinstance(reply, api.Appended)


def adjudicate(game: str, result: contract.Result) -> Callable[..., list[contract.Draft]]:
    """Return what sets a result."""
    return lambda state: corrections.adjudicate(state, game, result, *WHY)


def games_of(text: str | bytes) -> list[chess.pgn.Game]:
    """Read a PGN as everybody does."""
    stream = io.StringIO(text if isinstance(text, str) else text.decode())
    games = list(iter(lambda: chess.pgn.read_game(stream), None))
    assert not [game.errors for game in games if game.errors]
    return games


def results(text: str | bytes) -> list[tuple[str, str]]:
    """Return round and result of a PGN's games."""
    return [(game.headers["Round"], game.headers["Result"]) for game in games_of(text)]


def event_pgn(scene: Scene) -> bytes:
    """Return the league's PGN of the archive."""
    return (scene.archive / "s" / "league.pgn").read_bytes()


def comments(game: chess.pgn.Game) -> str:
    """Return all that is said in a game."""
    said = [game.comment, *(node.comment for node in game.mainline())]
    return " ".join(" ".join(said).split())


def points(scene: Scene) -> dict[str, float]:
    """Return the table's points by the engines' names."""
    state = scene.state()
    scores = state.events["league"].tally.scores
    return {state.engines[engine].name: score.half_points / 2 for engine, score in scores.items()}


def counted(content: bytes) -> dict[str, float]:
    """Return the points that everybody counts who reads the PGN's tags."""
    taken: dict[str, float] = {}
    worth = {"1-0": (1.0, 0.0), "0-1": (0.0, 1.0), "1/2-1/2": (0.5, 0.5)}
    for (white, black, result), times in headers.read(content).items():
        for name, won in zip((white, black), worth.get(result, (0.0, 0.0)), strict=True):
            taken[name] = taken.get(name, 0.0) + won * times
    return taken


@pytest.fixture
def scene(tmp_path: pathlib.Path) -> Scene:
    """Return a season with four games of its league played, each won by White."""
    made = Scene(tmp_path)
    made.play(4)
    return made


def test_the_events_pgn_has_the_result_that_counts(scene: Scene) -> None:
    """It says what was played, who decided and why; the game's own folder keeps what was played."""
    correct(scene, adjudicate("league.1", "1/2-1/2"))
    scene.serve()
    first, *others = games_of(event_pgn(scene))
    assert [game.headers["Result"] for game in others] == ["1-0"] * 3
    tags = first.headers
    assert (tags["Result"], tags["Termination"]) == ("1/2-1/2", "adjudication")
    assert tags["TerminationDetails"] == "Manual adjudication"
    said = comments(first)
    assert "the organizers set 1/2-1/2 instead of 1-0: the lights went out in hall" in said
    assert "played: 1-0, Black disconnects" in said
    assert "ann" not in event_pgn(scene).decode()
    own = (scene.archive / "s/games/league.1/game.pgn").read_bytes()
    assert games_of(own)[0].headers["Result"] == "1-0"
    assert counted(event_pgn(scene)) == points(scene)
    assert scene.fsck() == []


def test_a_game_that_nobody_plays_stands_without_moves(scene: Scene) -> None:
    """Its result, Termination and reason; its opening may be still to come. Others go before it."""
    correct(scene, adjudicate("league.6", "0-1"))
    scene.serve()
    last = games_of(event_pgn(scene))[-1]
    assert (last.headers["Result"], last.headers["Termination"]) == ("0-1", "adjudication")
    assert not list(last.mainline_moves())
    assert {"FEN", "Opening", "ECO"}.isdisjoint(last.headers)
    assert "it was not played" in comments(last)
    assert scene.fsck() == []
    scene.play(1)
    scene.serve()
    assert [result for _, result in results(event_pgn(scene))] == ["1-0"] * 5 + ["0-1"]
    assert counted(event_pgn(scene)) == points(scene)
    assert scene.fsck() == []


def test_a_game_that_counts_for_nobody_is_annulled(scene: Scene) -> None:
    """A game taken back and those of an engine that has left stay, without a result."""
    engine = scene.state().game("league.2").white

    def leaves(state: object) -> list[contract.Draft]:
        return disqualification.withdraw(state, "league", engine, *WHY)  # type: ignore[arg-type]

    correct(scene, lambda state: corrections.void(state, "league.1", *WHY), leaves)
    scene.serve()
    state = scene.state()
    for game, read in zip(state.events["league"].order, games_of(event_pgn(scene)), strict=False):
        annulled = game == "league.1" or engine in state.game(game).players
        assert (read.headers["Result"] == "*") is annulled
        assert (read.headers.get("Termination") == "annulled") is annulled
        assert ("played: 1-0" in comments(read)) is annulled
    assert counted(event_pgn(scene)) == points(scene)
    assert scene.fsck() == []


def test_a_game_played_again_takes_the_place(scene: Scene) -> None:
    """The event has the new game alone; the old one is annulled where it is asked for."""
    correct(scene, lambda state: corrections.replay(state, "league.1", *WHY))
    scene.serve()
    assert len(games_of(event_pgn(scene))) == 3
    assert scene.fsck() == []
    scene.play(1)
    scene.serve()
    assert scene.state().events["league"].order[0] == "league.1.replay1"
    assert len(games_of(event_pgn(scene))) == 4
    assert counted(event_pgn(scene)) == points(scene)
    assert scene.fsck() == []


@pytest.mark.parametrize("cut", ["before", "amid", "behind"])
def test_what_is_written_again_may_be_cut_anywhere(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    """The next start writes it whole, and whoever reads meanwhile reads the old file or the new."""
    old = event_pgn(scene)
    correct(scene, adjudicate("league.1", "0-1"))
    write = files.write

    def torn(path: pathlib.Path, content: bytes) -> None:
        if path.suffix == ".pgn" and path.parent.name == "s":
            if cut == "amid":
                path.with_name(f"{path.name}.tmp").write_bytes(content[:40])
            raise OSError(errno.EIO, "power cut")
        write(path, content)

    with monkeypatch.context() as power:
        if cut == "behind":
            failing = lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "power cut"))  # noqa: E731
            power.setattr(scene.ledger, "set_mirrored", failing)
        else:
            power.setattr(files, "write", torn)
        scene.serve()
    assert (event_pgn(scene) == old) is (cut != "behind")
    scene.serve()
    assert games_of(event_pgn(scene))[0].headers["Result"] == "0-1"
    assert scene.fsck(repair=True) in ([], scene.fsck())
    assert scene.fsck() == []


def test_a_season_of_before_is_written_again_when_it_is_opened(scene: Scene) -> None:
    """An older farm left what was played in the PGN: `fsck` finds that, `serve` mends it."""
    as_played = event_pgn(scene)
    correct(scene, adjudicate("league.1", "0-1"))
    scene.serve()
    kept = archive.SeasonArchive(scene.archive, "s")
    files.write(kept.event_pgn("league"), as_played)
    (found,) = scene.fsck()
    assert "results that count" in found.finding.problem
    scene.serve()
    assert scene.fsck() == []


def test_spectators_see_the_result_that_counts(scene: Scene, tmp_path: pathlib.Path) -> None:
    """Downloads, filters, page, Lichess' and TCEC's files; no cache shows the old one on."""
    correct(scene, lambda state: corrections.replay(state, "league.3", *WHY))
    scene.serve()
    with theatre.served(scene.ledger, tmp_path) as url:  # type: ignore[arg-type]
        harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"], "the season")
        paths = ("pgn/s.pgn", "pgn/s/league.pgn", "pgn/s/games/league.1.pgn")
        others = ("lichess/s/games/league.1.pgn", "api/v1/seasons/s/games/league.1")
        before = {path: httpx.get(f"{url}/{path}") for path in (*paths, *others)}
        assert all(answer.status_code == 200 for answer in before.values())
        correct(
            scene,
            adjudicate("league.1", "1/2-1/2"),
            adjudicate("league.6", "0-1"),
            lambda state: corrections.void(state, "league.2", *WHY),
        )
        harness.wait(
            lambda: "1/2-1/2" in httpx.get(f"{url}/api/v1/seasons/s/events/league/schedule").text,
            "the correction",
        )
        for path, answer in before.items():
            again = httpx.get(f"{url}/{path}", headers={"If-None-Match": answer.headers["ETag"]})
            assert again.status_code == 200, path
            assert "1/2-1/2" in again.text, path
        told = json.loads(httpx.get(f"{url}/api/v1/seasons/s/games/league.1").text)
        assert (told["result"], told["adjudicated"]) == ("1/2-1/2", True)
        assert (told["details"], told["annulled"]) == ("Manual adjudication", False)
        assert told["note"].startswith("the organizers set 1/2-1/2 instead of 1-0: the lights")
        gone = json.loads(httpx.get(f"{url}/api/v1/seasons/s/games/league.2").text)
        assert gone["annulled"]
        assert gone["note"] == "annulled: by the organizers: the lights went out in hall"
        taken_back = httpx.get(f"{url}/pgn/s/games/league.3.pgn").text
        assert "it is played again as league.3.replay1" in " ".join(taken_back.split())
        assert results(taken_back)[0][1] == "*"
        unplayed = httpx.get(f"{url}/pgn/s/games/league.6.pgn").text
        assert results(unplayed)[0][1] == "0-1"
        drawn = httpx.get(f"{url}/pgn/s/league.pgn", params={"result": "1/2-1/2"}).text
        assert [result for _, result in results(drawn)] == ["1/2-1/2"]
        won = httpx.get(f"{url}/pgn/s/league.pgn", params={"result": "1-0"}).text
        assert [result for _, result in results(won)] == ["1-0"]
        out = httpx.get(f"{url}/pgn/s/league.pgn", params={"ending": "annulled"}).text
        assert [result for _, result in results(out)] == ["*"]
        scene.serve()
        whole = httpx.get(f"{url}/pgn/s/league.pgn").content
        assert whole == event_pgn(scene)
        rows = json.loads(httpx.get(f"{url}/api/v1/seasons/s/events/league/schedule").text)
        by_game = {row["game"]: row for row in rows}
        assert (by_game["league.2"]["annulled"], by_game["league.2"]["cancelled"]) == (True, False)
        harness.wait(
            lambda: not [*feeds_wrong(scene, tmp_path / "feeds")], "TCEC's files follow the journal"
        )
    written = (tmp_path / "feeds/archive/Test_Season_s_-_League_1.pgn").read_bytes()
    assert results(written)[0][1] == "1/2-1/2"
    assert not (tmp_path / "feeds/archive/Test_Season_s_-_League_3.pgn").exists()


def feeds_wrong(scene: Scene, root: pathlib.Path) -> list[findings.Told]:
    """Return what `fsck` finds of TCEC's files."""
    season = findings.Season("s", scene.ledger, scene.archive, None, root)
    return list(fsck.check(season, {"feeds": feeds.check}, repair=False))


def test_a_site_counts_its_games(scene: Scene, tmp_path: pathlib.Path) -> None:
    """Annulled games are in it, and in its count; its PGN is the archive's."""
    correct(
        scene,
        lambda state: corrections.void(state, "league.2", *WHY),
        adjudicate("league.1", "0-1"),
        adjudicate("league.6", "0-1"),
    )
    scene.serve()
    words = ["export-site", "s", "--to", str(tmp_path / "site"), "--archive", str(scene.archive)]
    done = testing.CliRunner().invoke(commands.farm, [*words, "--json"])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.output)
    assert (summary["games"], summary["replays"]) == (5, 4)
    assert (tmp_path / "site/pgn/s/league.pgn").read_bytes() == event_pgn(scene)
    game = json.loads((tmp_path / "site/api/v1/seasons/s/games/league.1.json").read_bytes())
    assert (game["result"], game["adjudicated"]) == ("0-1", True)


def test_the_audit_counts_as_the_farm_does(scene: Scene) -> None:
    """Annulled games count for nobody and keep their place; crashes in them count (S16-15d)."""
    engine = scene.state().game("league.1").white

    def leaves(state: object) -> list[contract.Draft]:
        return disqualification.withdraw(state, "league", engine, *WHY)  # type: ignore[arg-type]

    scene.play(1)
    correct(scene, adjudicate("league.6", "0-1"), leaves)
    scene.serve()
    path = str(scene.archive / "s" / "league.pgn")
    audited = json.loads(harness.farm("audit", path, "--rules", "s16", "--json"))
    state = scene.state()
    scores = state.events["league"].tally.scores
    farms = {state.engines[e].name: (s.half_points / 2, s.crashes) for e, s in scores.items()}
    rows = {row["engine"]: (row["points"], row["crashes"]) for row in audited["standings"]}
    assert rows == farms
    assert audited["schedule"]["matched"] == audited["schedule"]["games"] == 6
    assert audited["openings"]["same_opening"] == audited["openings"]["pairs"]
    assert not audited["adjudication"]["mismatches"]
    assert not audited["results"]


def test_the_audit_knows_the_farms_own_events(scene: Scene) -> None:
    """The archive names files by the events' ids: the tag Event says which one it is."""
    scene.play()
    path = scene.root / "main.pgn"
    path.write_bytes(event_pgn(scene))
    told = harness.farm("audit", str(path), "--season", str(scene.root / "season.toml"), "--json")
    (compared,) = json.loads(told)
    assert (compared["played_as"], compared["agrees"]) == ("league", True), compared
