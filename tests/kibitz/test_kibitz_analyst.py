"""The kibitzer's engine: real processes that answer, hang, end, flood or lack an option."""

from __future__ import annotations

import pathlib
import shutil
import sys
import time

import pytest

from orchestrator.common import errors
from worker_cpu.engines import sandbox
from worker_cpu.kibitz import analyst

START = "position startpos"
HOUSE = (sys.executable, "-m", "worker_cpu.builtin_engine.uci")
# An engine in a few lines: {go} is what it does when it is to search.
TOY = """
import sys, time
say = lambda text: print(text, flush=True)
for line in sys.stdin:
    word = line.split()[:1]
    if word == ["uci"]: say("id name Toy\\noption name Hash type spin default 1\\nuciok")
    if word == ["isready"]: say("readyok")
    if word == ["go"]: {go}
    if word == ["stop"]: {stop}
    if word == ["quit"]: {quit}
"""
INFO = "say('info depth 3 seldepth 5 score cp 12 wdl 300 600 100 nodes 9 pv e2e4 e7e5')"


def toy(go: str = INFO, stop: str = "say('bestmove e2e4')", leave: str = "break") -> analyst.Engine:
    """Return an engine that does these things."""
    text = TOY.format(go=go, stop=stop, quit=leave)
    return analyst.Engine((sys.executable, "-c", text), {})


def at_ply(ply: int = 0, attempt: str = "a") -> analyst.Place:
    """Return a position of the normal start."""
    moves = ["e2e4", "e7e5", "g1f3", "b8c6"][:ply]
    return analyst.Place(attempt, ply, f"{START} moves {' '.join(moves)}" if moves else START)


def heard(engine: analyst.Analyst, seconds: float = 90.0) -> analyst.Heard:
    """Return the next thing the engine says."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (said := engine.listen(0.1)) is not None:
            return said
    raise AssertionError("the engine says nothing")


def test_what_is_heard_belongs_to_the_position_it_is_said_of() -> None:
    """A new position is searched after the old search has ended, and each is told apart."""
    with analyst.Analyst(analyst.Engine(HOUSE, {"Hash": "1"})) as engine:
        assert engine.name.startswith("Farmhand")
        for ply in range(4):
            engine.analyse(at_ply(ply))
            said = heard(engine)
            while said.place.ply != ply:
                said = heard(engine)
            assert said.search.score is not None
            first = said.search.pv[0]
            assert first[1] in ("12" if ply % 2 == 0 else "78"), f"ply {ply}: {first}"
        engine.analyse(None)
        while not (last := heard(engine)).final:
            pass
        assert last.place.ply == 3
        assert engine.listen(0.2) is None


def test_wins_draws_and_losses_are_read() -> None:
    """``wdl`` is told beside the score where an engine says it."""
    with analyst.Analyst(toy()) as engine:
        engine.analyse(at_ply())
        said = heard(engine)
    assert said.search.wdl == (300, 600, 100)
    assert (said.search.depth, said.search.seldepth) == (3, 5)


def test_an_engine_that_ends_its_search_by_itself_waits_for_the_next_position() -> None:
    """A ``bestmove`` without ``stop`` is final; the next position is searched all the same."""
    with analyst.Analyst(toy(go=f"{INFO}; say('bestmove e2e4')", stop="pass")) as engine:
        for ply in (0, 1):
            engine.analyse(at_ply(ply))
            while not (said := heard(engine)).final:
                pass
            assert said.place.ply == ply


def test_an_engine_that_does_not_stop_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ``bestmove`` in time after ``stop`` ends it; what it leaves is killed."""
    monkeypatch.setattr(analyst, "STOP_SECONDS", 0.3)
    monkeypatch.setattr(analyst, "QUIT_SECONDS", 0.3)
    with analyst.Analyst(toy(stop="pass", leave="pass")) as engine:
        engine.analyse(at_ply())
        heard(engine)
        engine.analyse(at_ply(1))
        with pytest.raises(analyst.LostEngineError, match="no bestmove within"):
            heard(engine)


@pytest.mark.parametrize(
    ("go", "words"),
    [("print('out of memory', flush=True); sys.exit(3)", "it has ended"), ("1/0", "ZeroDivision")],
)
def test_an_engine_that_ends_is_lost_with_its_last_words(go: str, words: str) -> None:
    """Its end is seen at once, and told with what it said."""
    with analyst.Analyst(toy(go)) as engine:
        engine.analyse(at_ply())
        with pytest.raises(analyst.LostEngineError, match=words):
            heard(engine)


def test_what_cannot_be_started_or_does_not_answer_is_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """A missing program, a silent one and one that is no engine are all the engine's loss."""
    monkeypatch.setattr(analyst, "START_SECONDS", 0.5)
    monkeypatch.setattr(analyst, "QUIT_SECONDS", 0.2)
    for command in ((str(tmp_path / "none"),), ("cat",), ("true",), ("sleep", "60")):
        with pytest.raises(analyst.LostEngineError):
            analyst.Analyst(analyst.Engine(command, {})).__enter__()


def test_a_flood_is_heard_by_its_end() -> None:
    """However much an engine writes, memory is bounded and its last word is what counts."""
    flood = "[print('info depth', n, 'score cp', n, 'pv e2e4') for n in range(200_000)]"
    with analyst.Analyst(toy(go=f"{flood}; sys.stdout.flush()")) as engine:
        engine.analyse(at_ply())
        deadline = time.monotonic() + 180
        depth: int | None = 0
        while depth != 199_999:
            assert time.monotonic() < deadline, depth
            said = engine.listen(0.1)
            depth = said.search.depth if said else depth
            assert len(engine._output) <= analyst.HEARD_BYTES


def test_an_option_that_is_not_offered_is_the_operators_error() -> None:
    """It is named, with those that there are: starting the engine again would not help."""
    wrong = analyst.Engine(toy().command, {"Contempt": "0"})
    with pytest.raises(errors.UsageError, match="found Contempt; Toy offers: Hash"):
        analyst.Analyst(wrong).__enter__()


def test_no_secret_reaches_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment names neither Redis nor a password file."""
    monkeypatch.setenv("FARM_REDIS_PASSWORD_FILE", "/secret")
    told = 'int("FARM_REDIS_PASSWORD_FILE" in os.environ)'
    tell = f"import os; say(f'info depth 1 score cp {{{told}}} pv e2e4')"
    with analyst.Analyst(toy(go=tell)) as engine:
        engine.analyse(at_ply())
        score = heard(engine).search.score
        assert score is not None
        assert score.cp == 0


def test_in_a_sandbox_it_has_no_network_and_thinks_all_the_same() -> None:
    """A real engine in bubblewrap answers; its namespace has no interface but ``lo``."""
    if sandbox.describe().kind != "bubblewrap":
        pytest.skip("package bubblewrap does not work here")
    path = shutil.which("stockfish", path="/usr/games:/usr/bin:/usr/local/bin")
    if path is None:
        pytest.skip("package stockfish is not installed")
    with analyst.Analyst(analyst.Engine((path,), {}, kind="bubblewrap")) as engine:
        engine.analyse(at_ply())
        assert heard(engine).search.score is not None
        pid = engine._process.pid if engine._process else 0
        inner = _descendants(pid)[-1]
        seen = pathlib.Path(f"/proc/{inner}/net/dev").read_text()
    assert [line.split(":")[0].strip() for line in seen.splitlines()[2:]] == ["lo"]


def _descendants(pid: int) -> list[int]:
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    found = [int(one) for one in text.split()]
    return [*found, *(inner for one in found for inner in _descendants(one))]
