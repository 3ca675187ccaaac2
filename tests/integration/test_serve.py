"""The reconciling loop against the ledger in memory: what it does in which order."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import pathlib
import re
import resource
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import harness
import pytest
from twins import memory

from orchestrator import contract
from orchestrator.arbiter import game_zip
from orchestrator.commands import launch
from orchestrator.common import errors
from orchestrator.ledger import api
from orchestrator.season.amend import operations
from orchestrator.season.file import load
from orchestrator.season.fold import corrections, pairing, state
from orchestrator.serve import archive, loop
from orchestrator.serve import season as serve_season


class Hall:
    """A hall that plays every offered game at once, through the ledger's verbs alone."""

    def __init__(self, ledger: memory.MemoryLedger) -> None:
        self._ledger = ledger
        self.rings = 0

    def ring(self, hall: str) -> None:
        """Hear the doorbell and do nothing yet: a ring carries no truth."""
        self.rings += 1

    def play(self, attempt: str) -> str | None:
        """Play the offered game and record it; return its id."""
        for season, game in self._ledger.offered(harness.HALL).items():
            claim = harness.claim(season, game, attempt)
            claimed = self._ledger.claim(claim)
            token = claimed.token  # type: ignore[union-attr]
            order = contract.GameOrder.decode(claimed.order)  # type: ignore[union-attr]
            finished, record = harness.invented(order, claim, token)
            self._ledger.complete(harness.HALL, token, season, finished, record)
            return game
        return None


LOOK_MS = 100  # ms: from one look at the clock to the next


def launched(folder: pathlib.Path) -> Callable[[], memory.MemoryLedger]:
    """Return what makes a ledger with one launched season."""
    engines = [harness.scripted(folder / "life", strength) for strength in range(4)]
    loaded = load.load(harness.league(folder / "season.toml", engines))

    def make() -> memory.MemoryLedger:
        clock = itertools.count(1_700_000_000_000, LOOK_MS)  # what is waited for comes by itself
        made = memory.MemoryLedger(lambda: next(clock))
        launch.start(made, loaded, "s", harness.HALL, "00", "test")
        return made

    return make


@pytest.fixture
def ledger(tmp_path: pathlib.Path) -> memory.MemoryLedger:
    """Return a ledger with one launched season."""
    return launched(tmp_path)()


def play_all(
    ledger: memory.MemoryLedger, root: pathlib.Path, season: str = "s"
) -> state.SeasonState:
    """Run passes until the season is over; a new server now and then, as after a crash."""
    hall = Hall(ledger)
    for number in range(200):
        server = loop.Server(ledger, root, hall.ring)
        server.once()
        server.close()
        hall.play(f"attempt-{number}")
        if ledger.read(season, ledger.last(season) - 1)[-1].kind == "season_finished":
            return state.fold(ledger.read(season, 0, 10_000))
    raise AssertionError("the season did not end")


def test_a_season_is_driven_to_its_end_by_servers_that_forget_everything(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """Each pass by a new server goes on where the journal ends; every game is archived once."""
    folded = play_all(ledger, tmp_path / "archive")
    assert folded.finished
    folder = tmp_path / "archive" / "s"
    assert len(list((folder / "games").iterdir())) == 16
    assert (folder / "league.pgn").read_bytes().count(b"[Event ") == 12
    lines = (folder / "journal.jsonl").read_text().splitlines()
    assert len(lines) == folded.seq == ledger.mirrored("s")


def test_an_attempt_whose_lease_is_gone_is_given_up(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """Nobody could renew or revoke it: evicted, deleted, or freed while its season stood still.

    The game is offered again behind its end; what the first attempt's hall still tells counts
    while no newer one was begun.
    """
    server = loop.Server(ledger, tmp_path / "archive", lambda _: None)
    server.once()
    claim = harness.claim("s", "league.1", "first")
    claimed = ledger.claim(claim)
    assert isinstance(claimed, api.Claimed)
    server.once()
    assert ledger.read("s")[-1].kind == "attempt_started"
    ledger._hall[harness.HALL].lease = None
    for _ in range(3):
        server.once()
    server.close()
    ends = [entry for entry in ledger.read("s") if entry.kind == "attempt_ended"]
    assert [(end.data["attempt"], end.data["cause"]) for end in ends] == [("first", "lease lost")]
    assert ledger.offered(harness.HALL) == {"s": "league.1"}
    assert "s" not in ledger.alarms()
    assert Hall(ledger).play("second") == "league.1"


def test_a_hall_that_cannot_be_tended_is_an_alarm_of_its_season(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The season stands still, and `farm status` says so."""
    server = loop.Server(ledger, tmp_path / "archive", lambda _: None)
    server.once()

    def foreign(_: str) -> NoReturn:
        raise errors.LedgerForeignError("another type")

    with monkeypatch.context() as patched:
        patched.setattr(ledger, "slot", foreign)
        server.once()
        assert harness.HALL in ledger.alarms()["s"]
    server.once()
    server.close()
    assert ledger.alarms() == {}


def test_a_rebuilt_archive_is_the_same(ledger: memory.MemoryLedger, tmp_path: pathlib.Path) -> None:
    """An event's PGN that is gone is written again from the games' folders, byte for byte."""
    play_all(ledger, tmp_path / "archive")
    pgn = tmp_path / "archive" / "s" / "league.pgn"
    before = pgn.read_bytes()
    pgn.unlink()
    harness.serve_once(ledger, tmp_path / "archive")
    assert pgn.read_bytes() == before


def test_a_game_played_again_stands_in_its_place(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """An event's PGN is in the schedule's order at once, so another season can take it over."""
    hall = Hall(ledger)
    server = loop.Server(ledger, tmp_path / "archive", hall.ring)

    def append(make: Callable[..., list[contract.Draft]], *words: str) -> None:
        folded = state.fold(ledger.read("s", 0, 100))
        ledger.append("s", folded.seq, make(folded, *words), "test")

    for attempt in ("first", "second", "again", "third"):
        if attempt == "again":
            append(operations.pause, "ann", "wrong network")
            append(corrections.replay, "league.1", "ann", "wrong network")
            append(operations.resume, "ann", "")
        server.once()
        hall.play(attempt)
    server.once()
    server.close()
    text = (tmp_path / "archive" / "s" / "league.pgn").read_text()
    assert re.findall(r'\[Round "(.+?)"\]', text) == ["1.1", "1.2", "2.1"]


def test_nothing_is_offered_while_the_season_is_paused(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """A pause takes the offer back, a resume brings it again."""
    server = loop.Server(ledger, tmp_path / "archive", lambda _: None)
    server.once()
    assert ledger.offered(harness.HALL) == {"s": "league.1"}
    for kind, offered in (("paused", {}), ("resumed", {"s": "league.1"})):
        draft = contract.Draft(kind, {"reason": "r", "name": "n"})
        ledger.append("s", ledger.last("s"), [draft], "test")
        server.once()
        assert ledger.offered(harness.HALL) == offered
    server.close()


def test_a_journal_that_lost_entries_is_not_written_to(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """A Redis with fewer entries than the mirror takes the season out of service."""
    harness.serve_once(ledger, tmp_path / "archive")
    poorer = memory.MemoryLedger()
    first = ledger.read("s", 0, 1)[0]
    poorer.append("s", 0, [contract.Draft(first.kind, first.data)], first.by)
    mirror = (tmp_path / "archive" / "s" / "journal.jsonl").read_bytes()
    harness.serve_once(poorer, tmp_path / "archive")
    assert poorer.last("s") == 1
    assert poorer.offered(harness.HALL) == {}
    assert (tmp_path / "archive" / "s" / "journal.jsonl").read_bytes() == mirror


def test_whatever_is_wrong_with_a_season_concerns_no_other(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault that nobody foresaw suspends its season with the reason; the other plays on."""
    engines = [harness.scripted(tmp_path / "life", strength) for strength in range(2)]
    other = load.load(harness.league(tmp_path / "other.toml", engines, final_games=2))
    launch.start(ledger, other, "other", harness.HALL, "00", "test")
    rightly = serve_season.decide.decide

    def stumble(folded: state.SeasonState, now_ms: int) -> list[contract.Draft]:
        if folded.launched.id == "s" and len(folded.games) > 4:
            raise IndexError("tuple index out of range")
        return rightly(folded, now_ms)

    monkeypatch.setattr(serve_season.decide, "decide", stumble)
    hall, server = Hall(ledger), loop.Server(ledger, tmp_path / "archive", lambda _: None)
    for number in range(60):
        server.once()
        hall.play(f"attempt-{number}")
    assert "IndexError" in ledger.alarms()["s"]
    assert state.fold(ledger.read("other", 0, 1_000)).finished
    server.close()


@pytest.mark.parametrize("name", ["../../pwned", "x\0y", "*", "a/b"])
def test_a_name_that_is_a_path_is_none(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path, name: str
) -> None:
    """What a hall's user could write as an attempt, or as a season, makes no file."""
    archive_ = tmp_path / "archive"
    server = loop.Server(ledger, archive_, lambda _: None)
    server.once()
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    for kind in ("attempt_started", "attempt_ended"):
        fact = {"game": "league.1", "attempt": name, "hall": harness.HALL, "lane": "", "host": "h"}
        fact |= {"worker": "w"} if kind == "attempt_started" else {"cause": "x"}
        ledger.append("s", ledger.last("s"), [contract.Draft(kind, fact)], "x")
    ledger.append(name, 0, [contract.Draft("season_launched", {})], "x")
    server.once()
    assert {"s", name} <= ledger.alarms().keys()
    journal = archive_ / "s" / "journal.jsonl"
    assert {path for path in tmp_path.rglob("*") if path.is_file()} - before <= {journal}
    server.close()


@contextlib.contextmanager
def no_room(path: pathlib.Path) -> Iterator[None]:
    """Let no file grow beyond the present size of one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_waited_for(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mirror that cannot grow holds its season, told once; with room it goes on by itself."""
    archive_ = tmp_path / "archive"
    hall = Hall(ledger)
    server = loop.Server(ledger, archive_, hall.ring)
    server.once()
    hall.play("attempt-first")
    journal = archive_ / "s" / "journal.jsonl"
    before = journal.read_bytes()
    with no_room(journal):
        for _ in range(3):
            server.once()
        assert ledger.offered(harness.HALL) == {}
    assert journal.read_bytes() == before
    assert capsys.readouterr().out.count("season.suspended") == 1
    server.once()
    assert ledger.offered(harness.HALL) != {}
    server.close()
    assert play_all(ledger, archive_).finished


def test_an_archive_that_cannot_be_written_is_waited_for(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """What refuses a game's folder is told; once it is away nothing is missing in any PGN."""
    archive_ = tmp_path / "archive"
    hall = Hall(ledger)
    server = loop.Server(ledger, archive_, hall.ring)
    server.once()
    (game,) = ledger.offered(harness.HALL).values()
    hall.play("attempt-first")
    folder = archive_ / "s" / "games" / game
    (folder / "game.pgn.tmp").mkdir(parents=True)
    server.once()
    assert not (folder / "game.pgn").exists()
    (folder / "game.pgn.tmp").rmdir()
    server.once()
    assert (folder / "game.pgn").exists()
    assert (archive_ / "s" / "league.pgn").read_text().count("[Event ") == 1
    server.close()


def test_an_outage_at_the_opening_leaves_no_lock(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis that goes away while a season is opened does not lock it against the next look."""
    server = loop.Server(ledger, tmp_path, lambda _: None)
    for verb in ("mirrored", "last"):
        with monkeypatch.context() as away:
            away.setattr(ledger, verb, _away)
            with pytest.raises(errors.LedgerUnreachableError):
                server.once()
    server.once()
    assert ledger.offered(harness.HALL) != {}
    server.close()


def _away(*_: object) -> NoReturn:
    raise errors.LedgerUnreachableError("away")


class Killed(BaseException):
    """``serve`` is no more: nothing in it may catch this."""


def _killed(*_: object) -> NoReturn:
    raise Killed


class Outage:
    """A ledger that is away at one call: the request is lost, or ``late``, the reply.

    With ``end`` something else than an outage happens there.
    """

    def __init__(
        self,
        ledger: memory.MemoryLedger,
        at: int,
        *,
        late: bool,
        end: Callable[[], NoReturn] = _away,
    ) -> None:
        self.asked: list[str] = []
        self._ledger, self._at, self._late, self._end = ledger, at, late, end

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def ask(*args: Any) -> Any:
            self.asked.append(verb)
            away = len(self.asked) == self._at
            reply = None if away and not self._late else getattr(self._ledger, verb)(*args)
            return self._end() if away else reply

        return ask


def play_through(ledger: memory.MemoryLedger, root: pathlib.Path, outage: Outage) -> None:
    """Play a season by one server that meets an outage, as its loop does, to the end."""
    hall, number = Hall(ledger), 0
    server = loop.Server(outage, root, hall.ring)  # type: ignore[arg-type]
    while not state.fold(ledger.read("s", 0, 10_000)).finished:
        with contextlib.suppress(errors.LedgerAwayError):
            server.once()
            hall.play(f"attempt-{number}")
        number += 1
        assert number < 200, "the season does not end"
    for _ in range(2):  # one pass may still meet the outage
        with contextlib.suppress(errors.LedgerAwayError):
            server.once()
    server.close()


EVERY = 1 if os.environ.get("FARM_LONG") else 20  # calls from one outage to the next season's


def moments(verbs: list[str]) -> list[int]:
    """Return calls to be met: some of all, and each verb's last, which no later one mends."""
    last = {verb: number for number, verb in enumerate(verbs, 1)}
    return sorted({*range(1, len(verbs) + 1, EVERY), *last.values()})


@pytest.mark.parametrize("late", [False, True], ids=["request lost", "reply lost"])
def test_an_outage_at_any_call_leaves_nothing_undone(tmp_path: pathlib.Path, *, late: bool) -> None:
    """Whichever call it meets: the season ends as without, all of it mirrored and archived."""
    make = launched(tmp_path)
    undisturbed = make()
    whole = Outage(undisturbed, 0, late=False)
    play_through(undisturbed, tmp_path / "calm", whole)
    calm = sorted(path.name for path in (tmp_path / "calm" / "s" / "games").iterdir())
    for at in moments(whole.asked):
        ledger, root = make(), tmp_path / f"at-{at}"
        play_through(ledger, root, Outage(ledger, at, late=late))
        assert ledger.mirrored("s") == ledger.last("s"), f"call {at}"
        folders = sorted((root / "s" / "games").iterdir())
        assert [path.name for path in folders] == calm
        assert all((path / "record.json").exists() for path in folders)


def play_until_killed(
    ledger: memory.MemoryLedger, root: pathlib.Path, at: int, *, late: bool
) -> None:
    """Play a season to its end by a server that is killed at a call, and by the next one."""
    hall, asked = Hall(ledger), Outage(ledger, at, late=late, end=_killed)
    server = loop.Server(asked, root, hall.ring)  # type: ignore[arg-type]
    rest = 2  # passes behind the end, in which the last game is archived
    for number in range(200):
        rest -= state.fold(ledger.read("s", 0, 10_000)).finished
        try:
            server.once()
        except Killed:
            server.close()
            server = loop.Server(ledger, root, hall.ring)
            server.once()
        if not rest:
            break
        hall.play(f"attempt-{number}")
    server.close()


@pytest.mark.parametrize("late", [False, True], ids=["before the call", "behind the call"])
def test_a_kill_at_any_call_leaves_no_record_behind(tmp_path: pathlib.Path, *, late: bool) -> None:
    """What is in the archive is not in Redis any more, also once the season is over."""
    make = launched(tmp_path)
    undisturbed = make()
    whole = Outage(undisturbed, 0, late=False)
    play_through(undisturbed, tmp_path / "calm", whole)
    for at in moments(whole.asked):
        ledger = make()
        play_until_killed(ledger, tmp_path / f"at-{at}", at, late=late)
        entries = ledger.read("s", 0, 10_000)
        attempts = [e.data["attempt"] for e in entries if e.kind == "game_finished"]
        assert attempts
        left = [attempt for attempt in attempts if ledger.record(attempt) is not None]
        assert not left, f"call {at}, {whole.asked[at - 1]}"


def test_one_archive_has_one_writer(ledger: memory.MemoryLedger, tmp_path: pathlib.Path) -> None:
    """A second loop on the same archive is refused at once."""
    with archive.sole_writer(tmp_path):
        server = loop.Server(ledger, tmp_path, lambda _: None)
        with pytest.raises(errors.RefusedError, match="another"):
            server.run(threading.Event())


def test_plies_of_a_given_up_attempt_survive_a_second_archiving(tmp_path: pathlib.Path) -> None:
    """A crash between archive and pointer brings the entry again, then without plies."""
    folder = archive.SeasonArchive(tmp_path, "s")
    folder.keep_given_up("league.1", "a", [(1, '{"ply":1}')])
    folder.keep_given_up("league.1", "a", [])
    kept = tmp_path / "s" / "games" / "league.1" / "given-up" / "a.jsonl"
    assert kept.read_text() == '{"ply":1}\n'


def test_a_damaged_record_is_told(tmp_path: pathlib.Path) -> None:
    """Bytes that are no packed game raise an error for the host and leave no folder."""
    folder = archive.SeasonArchive(tmp_path, "s")
    with pytest.raises(errors.HostError, match="damaged"):
        folder.keep_game("league.1", b"nonsense")
    assert not (tmp_path / "s" / "games" / "league.1").exists()
    with pytest.raises(errors.HostError, match="damaged"):
        game_zip.unpack(b"")


def test_a_lost_ring_is_followed_by_another_one_soon(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """No pass waits for a second while a hall does not take its game; later ever longer."""
    hall = Hall(ledger)
    server = loop.Server(ledger, tmp_path / "archive", hall.ring)
    server.once()
    first = hall.rings
    assert first
    assert server._wait_ms() <= 100
    while hall.rings == first:
        server.once()
    assert server._wait_ms() <= 300
    hall.play("first")
    known = hall.rings
    server.once()
    assert hall.rings == known + 1  # for the next game, at once
    server.close()


class Counting:
    """A ledger that counts what is asked of it."""

    def __init__(self, ledger: memory.MemoryLedger) -> None:
        self._ledger = ledger
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        """Count a verb of the ledger."""
        self.calls += 1
        return getattr(self._ledger, name)


def calls_of_a_pass(folder: pathlib.Path, seasons: int) -> tuple[int, int]:
    """Return the ledger's verbs in a pass, and the files opened by a start, after so many."""
    folder.mkdir()
    engines = [harness.scripted(folder / "life", strength) for strength in range(2)]
    loaded = load.load(harness.league(folder / "season.toml", engines))
    clock = itertools.count(1_700_000_000_000, LOOK_MS)
    ledger = memory.MemoryLedger(lambda: next(clock))
    for number in range(seasons):
        launch.start(ledger, loaded, f"s{number}", harness.HALL, "00", "test")
        play_all(ledger, folder / "archive", f"s{number}")
    counting = Counting(ledger)
    server = loop.Server(counting, folder / "archive", lambda _: None)  # type: ignore[arg-type]
    server.once()
    assert not server._runners
    counting.calls = 0
    server.once()
    server.close()
    return counting.calls, len(server._resting)


def test_finished_seasons_cost_a_pass_nothing(tmp_path: pathlib.Path) -> None:
    """A farm with three past seasons asks no more of Redis than one with a single one."""
    one, three = (calls_of_a_pass(tmp_path / str(n), n) for n in (1, 3))
    assert (one[1], three[1]) == (1, 3)
    assert three[0] == one[0]


def test_a_finished_season_wakes_when_its_journal_grows(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """What is journaled behind the end is mirrored, and then the season rests again."""
    play_all(ledger, tmp_path / "archive")
    server = loop.Server(ledger, tmp_path / "archive", lambda _: None)
    server.once()
    last = ledger.last("s")
    assert server._resting == {"s": last}
    draft = contract.Draft(kind="paused", data={"name": "ann", "reason": "too late"})
    ledger.append("s", last, [draft], "test")
    server.once()
    mirrored = (tmp_path / "archive" / "s" / "journal.jsonl").read_text().splitlines()
    assert len(mirrored) == last + 1
    assert ledger.mirrored("s") == last + 1
    server.close()


def test_a_large_swiss_round_is_paired_beside_the_passes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a round is paired, passes look at the halls' leases; then its games are there."""
    monkeypatch.setattr(pairing, "_SOON_PAIRED", 3)
    paired, real, hall_looks = threading.Event(), pairing.pair, 0

    def held(*arguments: Any) -> Any:
        assert paired.wait(60)
        return real(*arguments)

    monkeypatch.setattr(pairing, "pair", held)
    engines = [harness.scripted(tmp_path / "life", strength) for strength in range(4)]
    file = harness.league(tmp_path / "season.toml", engines)
    text = file.read_text().replace('"round-robin", double_rounds = 1', '"swiss", rounds = 2')
    file.write_text(text)
    ledger = memory.MemoryLedger()
    launch.start(ledger, load.load(file), "s", harness.HALL, "00", "test")
    looked = ledger.slot

    def slot(hall: str) -> Any:
        nonlocal hall_looks
        hall_looks += 1
        return looked(hall)

    monkeypatch.setattr(ledger, "slot", slot)
    server = loop.Server(ledger, tmp_path / "archive", lambda _: None)
    for _ in range(5):
        server.once()
    [runner] = server._living()
    assert (runner.pairing, hall_looks, server._wait_ms()) == (True, 5, loop.PAIRING_MS)
    assert not runner.state.games
    paired.set()
    harness.wait(lambda: not runner.pairing, "the round")
    server.once()
    server.close()
    assert runner.ready == "league.1"
    assert ledger.offered(harness.HALL) == {"s": "league.1"}


def test_a_hall_is_rung_when_a_season_that_rests_was_compared(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """What it has spooled for that season waited for this, and no game of it will ring."""
    play_all(ledger, tmp_path / "archive")
    harness.serve_once(ledger, tmp_path / "archive")
    hall = Hall(ledger)
    server = loop.Server(ledger, tmp_path / "archive", hall.ring)
    server.once()
    server.once()
    assert server._resting
    assert hall.rings == 1
    server.close()


def test_a_season_that_cannot_be_closed_is_not_opened_with_each_pass(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk keeps a season that is over in service, folded once; later it rests."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    play_all(ledger, tmp_path / "archive")
    (tmp_path / "archive" / "s" / archive.CLOSED).unlink(missing_ok=True)
    server = loop.Server(ledger, tmp_path / "archive", lambda _: None)
    with monkeypatch.context() as disk:
        disk.setattr(archive.SeasonArchive, "close", full)
        server.once()
        runner = server._runners["s"]
        server.once()
        assert server._runners["s"] is runner
    server.once()
    assert not server._runners
    assert server._resting == {"s": ledger.last("s")}
    server.close()


def test_a_lost_finished_season_is_an_alarm(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path
) -> None:
    """A Redis that has forgotten a season that is over has lost facts."""
    play_all(ledger, tmp_path / "archive")
    server = loop.Server(ledger, tmp_path / "archive", lambda _: None)
    server.once()
    ledger.seasons = tuple  # type: ignore[method-assign]
    server.once()
    assert "lost" in ledger.alarms()["s"]
    server.close()


def test_a_game_is_added_to_its_events_pgn(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A game writes its own bytes, however long the file is that they are added to."""
    play_all(ledger, tmp_path / "archive")
    kept = archive.SeasonArchive(tmp_path / "archive", "s")
    path = kept.event_pgn("league")
    written: list[int] = []
    for size in (path.stat().st_size, 50 * path.stat().st_size):
        path.write_bytes((path.read_bytes() * 50)[:size])
        before = path.stat()
        kept.extend_event("league", kept.pgn("league.1") or b"")
        assert path.stat().st_ino == before.st_ino
        written.append(path.stat().st_size - before.st_size)
    assert written[0] == written[1]


@pytest.mark.parametrize("cut", [1, 2, 30, 10_000_000])
def test_a_torn_game_of_an_events_pgn_is_written_again(
    ledger: memory.MemoryLedger, tmp_path: pathlib.Path, cut: int
) -> None:
    """A power cut amid a game leaves part of it, or nothing: the next start finds that."""
    hall = Hall(ledger)
    server = loop.Server(ledger, tmp_path / "archive", hall.ring)
    for number in range(5):
        server.once()
        hall.play(f"a{number}")
    server.once()
    server.close()
    path = tmp_path / "archive" / "s" / "league.pgn"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    harness.serve_once(ledger, tmp_path / "archive")
    assert path.read_bytes() == whole
    assert path.read_text().count("[Event ") == 5
