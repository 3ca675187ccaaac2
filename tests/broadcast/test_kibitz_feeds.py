"""What kibitzers found, as viewers read it: views, plies, what is withdrawn, what is rebuilt."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import chess
import jsonschema
import pytest
import schemas
import test_game_pages
import theatre
from twins import kibitz_memory, memory

from orchestrator import contract
from orchestrator.broadcast.content import games, messages
from orchestrator.broadcast.feeds import files, kibitzing
from orchestrator.broadcast.feeds.tcec import kibitz

ATTEMPT, STEM = "a1", "The_Season_-_League"


def said_at(ply: int, *pv: str, cp: int | None = 30, mate: int | None = None, **more: Any) -> str:
    """Return an evaluation from the mover's side as a kibitzer tells it."""
    told = {"engine": "Kib 1", "description": "2 cores", "ply": ply, "depth": 20, "seldepth": 31}
    told |= {"nodes": 1_234_567, "nps": 21_400_000, "tbhits": 3, "wdl": (100, 850, 50)}
    told |= {"score": {"cp": None if mate else cp, "mate": mate}, "pv": pv}
    return contract.Evaluation.model_validate(told | more).encode()


class Stage:
    """A game that grows, desks, and the folder of feeds."""

    def __init__(self, root: pathlib.Path, **order: Any) -> None:
        self.line = games.GameLine(test_game_pages.order(**order))
        self.desks = kibitz_memory.MemoryKibitzing(memory.MemoryLedger())
        self.root = root
        self.follower = self.rebuilt(root)

    def rebuilt(self, root: pathlib.Path) -> kibitzing.Kibitzing:
        """Return what follows from nothing into a folder."""
        return kibitzing.Kibitzing(self.desks, files.Directory(root))

    def hear(self, *, over: bool = False) -> kibitzing.Heard:
        """Look once."""
        return self.follower.hear("s", ATTEMPT, self.line, front=True, over=over)

    def push(self, move: str) -> None:
        """Play a ply."""
        self.line.push(test_game_pages.ply(self.line.last + 1, move))

    def file(self, name: str) -> Any:
        """Return a file's content, None where there is none; it must fit its schema."""
        path = self.root / name
        if not path.exists():
            return None
        told = json.loads(path.read_bytes())
        jsonschema.validate(told, schemas.FILES[name])
        return told


@pytest.fixture
def stage(tmp_path: pathlib.Path) -> Stage:
    """Give a game after 1. e4 e5 that nobody has kibitzed yet."""
    return Stage(tmp_path / "feeds")


def test_without_a_kibitzer_there_is_nothing(stage: Stage) -> None:
    """No file, no message, however the game goes on."""
    assert stage.hear()[:2] == ([], [])
    stage.push("g1f3")
    assert stage.hear()[:2] == ([], [])
    assert not list(stage.root.glob("*.json"))


def test_views_and_plies_are_those_that_viewers_read(stage: Stage) -> None:
    """data.json is White's view; moves of liveeval.json the mover's, numbered by their ply."""
    stage.desks.tell(0, ATTEMPT, 2, said_at(2, "g1f3", "b8c6", "f1b5"))
    stage.hear()
    data = stage.file("data.json")
    assert (data["eval"], data["wdl"], data["pv"]) == (0.3, "100 850 50", "2. Nf3 Nc6 3. Bb5")
    assert (data["color"], data["plynum"], data["round"], data["gameno"]) == (0, 2, 1.1, 1)
    assert (data["speed"], data["depth"]) == ("21Mn/s", "20/31")
    assert stage.file("liveeval.json") is None  # the game has left no position with a word on it
    stage.push("g1f3")
    stage.desks.tell(0, ATTEMPT, 3, said_at(3, "b8c6", "f1b5", cp=-45))
    stage.hear()
    data, whole = stage.file("data.json"), stage.file("liveeval.json")
    assert (data["eval"], data["wdl"], data["pv"]) == (0.45, "50 850 100", "2... Nc6 3. Bb5")
    assert (data["color"], data["plynum"]) == (1, 3)
    assert [(one["eval"], one["pv"]) for one in whole["moves"]] == [(0.3, "2. Nf3 Nc6 3. Bb5")]
    stage.push("b8c6")
    stage.hear()
    told = [(one["eval"], one["wdl"]) for one in stage.file("liveeval.json")["moves"]]
    assert told == [(0.3, "100 850 50"), (-0.45, "100 850 50")]


def test_a_mate_is_told_in_plies_and_words(stage: Stage) -> None:
    """Mates are strings: the mover's sign in moves, White's in data.json."""
    stage.push("g1f3")
    stage.desks.tell(0, ATTEMPT, 3, said_at(3, "b8c6", mate=3))
    stage.hear()
    assert stage.file("data.json")["eval"] == "-M5"
    stage.push("b8c6")
    stage.hear()
    assert stage.file("liveeval.json")["moves"][0]["eval"] == "M5"


def test_a_word_is_withdrawn_when_the_game_moves_on(stage: Stage) -> None:
    """The line on the old position goes at once, in the files and for our page."""
    stage.desks.tell(0, ATTEMPT, 2, said_at(2, "g1f3"))
    heard = stage.hear()
    (card,) = heard.cards
    assert (card["engine"], card["eval"], card["ply"]) == ("Kib 1", "0.30", 3)
    assert [step["san"] for step in card["line"]] == ["Nf3"]
    stage.push("d2d4")
    heard = stage.hear()
    assert heard.cards == []
    (past,) = heard.remarks.evals(stage.line)
    assert past == {key: card[key] for key in past}
    assert {"desk", "ply", "cp", "mate", "wdl"} < past.keys()
    deltas = [one for one in heard.told if isinstance(one, messages.Delta)]
    assert [(one.kind, one.data["kibitzers"]) for one in deltas] == [("kibitz", [])]
    assert stage.file("data.json") is None
    assert len(stage.file("liveeval.json")["moves"]) == 1


@pytest.mark.parametrize(
    "word",
    [
        "not json",
        json.dumps({"schema_version": 99, "from": "the future"}),
        said_at(2),
        said_at(2, "e7e5"),
        said_at(2, "nonsense", "g1f3"),
    ],
)
def test_a_word_that_viewers_would_break_on_is_no_file(stage: Stage, word: str) -> None:
    """Neither a list without moves nor a move without a variation is ever written."""
    stage.desks.tell(0, ATTEMPT, 2, word)
    stage.hear()
    stage.push("g1f3")
    stage.hear()
    assert stage.file("data.json") is None
    assert stage.file("liveeval.json") is None


def test_a_kibitzer_ahead_of_the_projector_is_waited_for(stage: Stage) -> None:
    """A word on a ply that is not known here yet is shown when the ply comes."""
    stage.desks.tell(0, ATTEMPT, 3, said_at(3, "b8c6"))
    assert stage.hear().cards == []
    assert stage.file("data.json") is None
    stage.push("g1f3")
    assert [card["ply"] for card in stage.hear().cards] == [4]
    assert stage.file("data.json")["plynum"] == 3


def test_desks_have_files_of_their_own(stage: Stage) -> None:
    """The second kibitzer's files and events are TCEC's with a 1."""
    stage.desks.tell(1, ATTEMPT, 2, said_at(2, "g1f3", engine="Second"))
    heard = stage.hear()
    pushed = [one for one in heard.told if isinstance(one, messages.TcecFile)]
    assert [(one.name, one.event, one.volatile) for one in pushed] == [
        ("data1.json", "liveeval1", True)
    ]
    assert stage.file("data.json") is None
    assert stage.file("data1.json")["engine"] == "Second"
    stage.push("g1f3")
    pushed = [one for one in stage.hear().told if isinstance(one, messages.TcecFile)]
    assert [(one.name, one.event) for one in pushed] == [("liveeval1.json", "livechart1")]


def test_the_next_game_begins_without_the_last_ones_words(stage: Stage) -> None:
    """Files of another attempt are withdrawn, also those that an earlier process left."""
    stage.desks.tell(0, ATTEMPT, 2, said_at(2, "g1f3"))
    stage.push("g1f3")
    stage.hear()
    assert stage.file("liveeval.json") is not None
    fresh = stage.rebuilt(stage.root)
    fresh.hear("s", "a2", games.GameLine(test_game_pages.order()), front=True)
    assert stage.file("liveeval.json") is None


def test_chess960_and_a_start_with_black_are_numbered_from_their_position(
    tmp_path: pathlib.Path,
) -> None:
    """Castling is read as king takes rook; the number is the position's own."""
    fen = "rk2r3/pppppppp/8/8/8/8/PPPPPPPP/RK2R3 b KQkq - 0 12"
    stage = Stage(tmp_path / "feeds", moves=(), fen=fen, variant="fischerandom")
    stage.desks.tell(0, ATTEMPT, 0, said_at(0, "b8e8", "b1a1"))
    stage.hear()
    data = stage.file("data.json")
    assert (data["pv"], data["color"], data["plynum"]) == ("12... O-O 13. O-O-O", 1, 23)


def test_a_rebuild_writes_the_same_bytes(stage: Stage, tmp_path: pathlib.Path) -> None:
    """Who saw a game grow, word by word, has what one has that reads it all at its end."""
    for number, move in enumerate(("g1f3", "b8c6", "f1b5", "a7a6"), start=2):
        for cp in (10, 20, 30 + number):
            stage.desks.tell(0, ATTEMPT, number, said_at(number, move, cp=cp))
            stage.hear()
        stage.push(move)
        stage.hear()
    stage.desks.tell(0, ATTEMPT, stage.line.last, said_at(stage.line.last, "b5a4"))
    stage.hear()
    running = tmp_path / "running"
    stage.rebuilt(running).hear("s", ATTEMPT, stage.line, front=True)
    assert theatre.tree(running) == theatre.tree(stage.root)
    assert set(theatre.tree(running)) == {"liveeval.json", "data.json"}
    stage.hear(over=True)
    stage.follower.keep(ATTEMPT, lambda: stage.line, STEM)
    stage.desks.tell(0, ATTEMPT, 5, said_at(5, "a7a6", cp=99))  # a last word that came late
    assert stage.follower.behind("s")
    stage.follower.catch_up()
    stage.hear(over=True)
    whole = tmp_path / "whole"
    again = stage.rebuilt(whole)
    again.keep(ATTEMPT, lambda: stage.line, STEM)
    again.hear("s", ATTEMPT, stage.line, front=True, over=True)
    after = theatre.tree(stage.root)
    assert theatre.tree(whole) == after
    assert set(after) == {"liveeval.json", f"archive/{STEM.lower()}_liveeval_1.1.json"}
    assert json.loads(after["liveeval.json"])["moves"][-1]["eval"] == 0.99


@pytest.mark.parametrize(
    ("nps", "word"),
    [(0, "0n/s"), (950, "950n/s"), (1_500, "1.5kn/s"), (999_999_999, "1000Mn/s")],
)
def test_a_speed_has_a_unit(nps: int, word: str) -> None:
    """Speeds are short whatever their size."""
    assert kibitz.speed(nps) == word


def test_a_variation_ends_where_it_is_nonsense() -> None:
    """A numbered variation holds legal moves only."""
    board = chess.Board()
    assert kibitz.numbered(board, ("e2e4", "e7e5", "a1a8")) == "1. e4 e5"
    assert kibitz.numbered(board, ("a1a8",)) == ""
