"""Test matches that were submitted: ``farm serve`` keeps them, once somebody else agrees."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import signal
import threading

import harness
import pytest
import test_test_command

from orchestrator import contract
from orchestrator.commands import keep_tests, serve
from orchestrator.ledger import api, lanes, store, submissions
from orchestrator.ops import supervisor
from orchestrator.testmatch import kept

PLAYED = ("--games", "2", "--tc", "20s+1s", "--maxmoves", "4")


def _state(root: pathlib.Path, match: str) -> dict[str, str]:
    path = root / "tests" / match / kept.FILE
    return dict(contract.loads(path.read_bytes())) if path.exists() else {}


def test_what_is_submitted_is_kept_through_a_killed_keeper_until_it_is_over(
    tmp_path: pathlib.Path,
) -> None:
    """No keeper is started by hand; one that waits for approval is played after it, not before."""
    file = test_test_command.roster(tmp_path)
    with harness.running(tmp_path) as farm:
        farm.redis.need_users()
        environment = farm.environment(harness.OPERATOR)

        def said(*words: str, code: int = 0, user: str = harness.OPERATOR) -> str:
            return harness.farm(*words, code=code, env=farm.environment(user))

        def test(name: str, *more: str) -> tuple[str, ...]:
            words = ("test", "dev", "--against", "base", "--file", str(file), "--id", name)
            return (*words, *PLAYED, *more)

        said(*test("asks", "--approval"))
        said(*test("plain", "--submit"))
        harness.wait(lambda: _state(tmp_path, "plain").get("state") == kept.OPEN, "a keeper")
        assert "open already" in said(*test("plain", "--submit"), code=3)
        assert "waits already" in said(*test("asks", "--submit"), code=3)
        (waiting,) = json.loads(said("waiting-tests", "--json"))
        assert (waiting["match"], waiting["asks"], waiting["approved_by"]) == ("asks", True, "")
        assert "somebody else approves it" in said("approve-test", "asks", "--by", "eve", code=3)
        assert _state(tmp_path, "asks") == {}
        said("approve-test", "asks", "--by", "berta", user="admin")
        harness.wait(lambda: _state(tmp_path, "asks").get("state") == kept.OPEN, "the approved")
        said("stop-test", "plain", "--reason", "rebased")
        harness.wait(lambda: _state(tmp_path, "plain").get("state") == kept.ENDED, "the stop")
        assert f"@{harness.OPERATOR}: rebased" in _state(tmp_path, "plain")["why"]
        said("continue-test", "plain", "--submit")
        harness.wait(lambda: _state(tmp_path, "plain").get("state") == kept.OPEN, "the next one")
        (keeper,) = harness.children(farm.serve.pid)
        harness.kill(keeper, signal.SIGKILL)
        lane = supervisor.lane("a=0", farm.worker, harness.HALL)
        lane.start()
        try:
            for name in ("asks", "plain"):
                harness.wait(
                    lambda name=name: _state(tmp_path, name).get("state") == kept.ENDED, name
                )
                facts = json.loads(harness.farm("show-test", name, "--json", env=environment))
                assert facts["games"] == 2
        finally:
            lane.kill()
        harness.wait(lambda: not harness.children(farm.serve.pid), "the end of what keeps nothing")
        assert json.loads(said("waiting-tests", "--json")) == []
        told = [one for one in farm.ledger.read(api.FARM) if one.kind == lanes.ENDED]
        assert [one.data["match"] for one in told][:1] == ["plain"]
        whys = {str(one.data["why"]) for one in told[1:]}
        assert whys == {"all games were played"}
        approvals = [one for one in farm.ledger.read(api.FARM) if one.kind == submissions.APPROVED]
        assert [(one.data["match"], one.by) for one in approvals] == [("asks", "berta@admin")]


def test_a_match_is_played_once_more_as_an_author_asked_by_the_gateway(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The farm's journal says who submitted and who approved it, though no gateway writes there."""
    monkeypatch.setenv("FARM_DATA", str(tmp_path))
    with harness.Redis(tmp_path / "redis") as redis:
        monkeypatch.setenv("FARM_REDIS_URL", redis.url_of("orchestrator"))
        environment = {"FARM_REDIS_URL": redis.url_of(harness.OPERATOR)}
        file = ("--file", str(test_test_command.roster(tmp_path)))
        words = ("test", "dev", "--against", "base", "--submit", "--id", "first")
        harness.farm(*words, *file, env=environment)
        with store.connect(redis.url_of("orchestrator")) as ledger:
            waiting = submissions.RedisSubmissions(ledger.server)
            keepers = keep_tests.Keepers(ledger, tmp_path / "tests")
            assert keepers._pass()
            asked = submissions.Submission(
                "again", "berta@token:1", 1, "first once more", asks=True
            )
            changes = {"games": 40, "time_control": {"base_ms": 60_000}}
            asked = dataclasses.replace(asked, copy_of="first", changes=changes, journaled=False)
            onto = dataclasses.replace(asked, match="first", approved_by="x@token:2")
            assert waiting.submit(asked, "")
            tests = serve.TestKeeper(ledger)
            assert not tests._is_ready(), "nothing is approved"
            assert not tests._is_ready()
            waiting.approve("again", "carl@token:2")
            assert tests._is_ready()
            assert keepers._pass()
            assert keepers._matches["again"].spec.games == 40
            assert keepers._matches["again"].spec.time_control.base_ms == 60_000
            kinds = {submissions.SUBMITTED, submissions.APPROVED}
            told = [one for one in ledger.read(api.FARM) if one.kind in kinds]
            assert [(one.kind, one.data["match"], one.by) for one in told[1:]] == [
                (submissions.SUBMITTED, "again", "berta@token:1"),
                (submissions.APPROVED, "again", "carl@token:2"),
            ]
            keepers._matches.pop("first").close()
            assert waiting.submit(onto, "")
            assert keepers._pass(), "none is copied onto another"
            assert list(keepers._matches) == ["again"]
            assert waiting.find("first").failed == "there is a test match first already"
            listed = harness.farm("waiting-tests", env=environment)
            assert ("failed:" in listed, "approval" in listed) == (True, False), listed
            waiting.remove("first")
            keepers._matches["again"].close()
            # The keeper was killed as it took one, and had not removed it yet.
            assert waiting.submit(dataclasses.replace(asked, approved_by="carl@token:2"), "")
            after = keep_tests.Keepers(ledger, tmp_path / "tests")
            assert after._pass()
            assert sorted(after._matches) == ["again", "first"]
            assert waiting.all() == []
            for match in after._matches.values():
                match.close()


def test_what_fails_in_one_match_ends_no_other(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One cannot be kept, one finds a full disk and waits for room, one is kept."""
    monkeypatch.setenv("FARM_DATA", str(tmp_path))
    with harness.Redis(tmp_path / "redis") as redis:
        monkeypatch.setenv("FARM_REDIS_URL", redis.url_of("orchestrator"))
        environment = {"FARM_REDIS_URL": redis.url_of(harness.OPERATOR)}
        words = ("test", "dev", "--against", "base", "--submit")
        file = ("--file", str(test_test_command.roster(tmp_path)))
        for name in ("full", "good"):
            harness.farm(*words, *file, "--id", name, env=environment)
        harness.farm("continue-test", "nowhere", "--submit", env=environment)
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests" / "full").write_text("no folder can be made here")
        with store.connect(redis.url_of("orchestrator")) as ledger:
            keepers = keep_tests.Keepers(ledger, tmp_path / "tests")
            assert keepers._pass()
            assert (list(keepers._matches), list(keepers._left)) == (["good"], ["full"])
            failed = [one for one in ledger.read(api.FARM) if one.kind == lanes.ENDED]
            assert [one.data["match"] for one in failed] == ["nowhere"]
            assert "there is no test match 'nowhere'" in str(failed[0].data["why"])
            (tmp_path / "tests" / "full").unlink()
            assert keepers._pass()
            assert list(keepers._matches) == ["good"], "it is not tried again at once"
            keepers._left["full"] = 0.0
            assert keepers._pass()
            assert sorted(keepers._matches) == ["full", "good"]
            keepers.run(threading.Event(), parent=-1)  # at once: its parent is gone
