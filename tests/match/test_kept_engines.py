"""Engines that stay between the games of a match: who stays, who is replaced, what they hear."""

from __future__ import annotations

import collections
import pathlib
import sys

import pytest
import table

MANY = ("-games", "2", "-repeat", "-log", "file=log.txt")
ENGINE = """
import os, sys
moves = {"good": (("e2e4", "f1c4", "d1h5", "h5f7"), ("e7e5", "d8h4")),
         "bad": (("f2f3", "g2g4"), ("e7e5", "b8c6", "g8f6"))}[sys.argv[1]]
games, played = 0, []
for line in sys.stdin:
    words = line.split()
    if words[:1] == ["uci"]: print("id name %d" % os.getpid(), "uciok", sep=chr(10))
    if words[:1] == ["isready"]: print("readyok")
    if words[:1] == ["ucinewgame"]: games += 1
    if words[:1] == ["position"]:
        played = words[words.index("moves") + 1 :] if "moves" in words else []
    if words[:1] == ["go"]:
        own = moves[len(played) % 2]
        if sys.argv[2:] == ["crash-%d" % games]: sys.exit(3)
        illegal = sys.argv[2:] == ["illegal-%d" % games]
        print("bestmove", "e1e5" if illegal else own[len(played) // 2])
    if words[:1] == ["quit"]:
        open("quit-%d" % os.getpid(), "w").close()
        break
    sys.stdout.flush()
    if words[:1] == ["go"] and sys.argv[2:] == ["mate-and-go"] and played[-1:] and (
        len(played) // 2 == len(own) - 1
    ): sys.exit()
"""


def engine(directory: pathlib.Path, skill: str, *more: str) -> list[str]:
    """Return ``-engine`` and its words; one argument makes the game of a fault."""
    program = directory / "engine.py"
    program.write_text(ENGINE)
    arguments = [f"arg={word}" for word in ("-I", "-S", "-u", str(program), skill, *more[:1])]
    return ["-engine", f"cmd={sys.executable}", f"name={skill}", *arguments, *more[1:]]


def starts(directory: pathlib.Path) -> dict[str, int]:
    """Return how often each engine was told ``uci``: once a process."""
    return heard(directory, "uci")


def heard(directory: pathlib.Path, word: str) -> dict[str, int]:
    """Return how often each engine was told a word, by the match's log."""
    lines = [line.split() for line in (directory / "log.txt").read_text().splitlines()]
    return collections.Counter(line[2] for line in lines if line[3:] == [">", word])


def play(directory: pathlib.Path, *engines: str, rounds: int = 3) -> dict[str, object]:
    """Play a match of short games and return its numbers."""
    words = [*engines, "-each", "tc=20", *MANY, "-rounds", str(rounds)]
    found = table.run_json(directory, *words)
    assert found["complete"]
    assert not table.survivors(directory)
    return found


def test_engines_stay_and_are_told_of_each_new_game(tmp_path: pathlib.Path) -> None:
    """Two processes play six games, with ucinewgame before and quit behind all of them."""
    found = play(tmp_path, *engine(tmp_path, "good"), *engine(tmp_path, "bad"))
    assert found["matches"][0]["pentanomial"] == [0, 0, 0, 0, 3]  # type: ignore[index]
    assert starts(tmp_path) == {"good": 1, "bad": 1}
    assert heard(tmp_path, "ucinewgame") == {"good": 6, "bad": 6}
    assert len(list(tmp_path.glob("quit-*"))) == 2


def test_an_engine_may_ask_for_a_new_start(tmp_path: pathlib.Path) -> None:
    """restart=on starts that engine anew for each game, and only that one."""
    play(tmp_path, *engine(tmp_path, "good"), *engine(tmp_path, "bad", "0", "restart=on"))
    assert starts(tmp_path) == {"good": 1, "bad": 6}


@pytest.mark.parametrize(("fault", "ending"), [("illegal-2", "illegal"), ("crash-2", "disconnect")])
def test_an_engine_with_a_fault_is_replaced(
    tmp_path: pathlib.Path, fault: str, ending: str
) -> None:
    """Whoever plays an illegal move or crashes starts anew; the opponent stays."""
    found = play(tmp_path, *engine(tmp_path, "good"), *engine(tmp_path, "bad", fault))
    assert [one["faults"][ending] for one in found["engines"]] == [0, 3]  # type: ignore[attr-defined]
    assert starts(tmp_path) == {"good": 1, "bad": 3}


def test_an_engine_that_ended_between_two_games_is_started_anew(tmp_path: pathlib.Path) -> None:
    """The end of a process that was not playing is nobody's loss."""
    found = play(
        tmp_path, *engine(tmp_path, "good", "mate-and-go"), *engine(tmp_path, "bad"), rounds=1
    )
    assert found["matches"][0]["pentanomial"] == [0, 0, 0, 0, 1]  # type: ignore[index]
    assert starts(tmp_path) == {"good": 2, "bad": 1}


def test_xboard_engines_stay_and_change_sides(tmp_path: pathlib.Path) -> None:
    """An XBoard engine that can be used again hears `new` before each game."""
    both = [
        word
        for name in ("One", "Two")
        for word in [*table.scripted(name, "--protocol", "xboard"), "proto=xboard"]
    ]
    words = [*both, "-each", "tc=20", *MANY, "-rounds", "2", "-maxmoves", "6"]
    found = table.run_json(tmp_path, *words)
    assert (found["complete"], found["played"]) == (True, 4)
    assert heard(tmp_path, "xboard") == {"One": 1, "Two": 1}
    assert heard(tmp_path, "new") == {"One": 4, "Two": 4}


def test_three_engines_take_turns_at_one_board(tmp_path: pathlib.Path) -> None:
    """An engine that does not play the next game leaves; who plays on stays."""
    names = ("One", "Two", "Three")
    engines = [word for name in names for word in table.scripted(name)]
    words = [*engines, "-each", "tc=20", *MANY, "-maxmoves", "4"]
    found = table.run_json(tmp_path, *words)
    assert (found["complete"], found["played"]) == (True, 6)
    assert starts(tmp_path) == {"One": 1, "Two": 2, "Three": 1}
    assert all(not sum(one["faults"].values()) for one in found["engines"])
    assert not table.survivors(tmp_path)


def test_an_engine_without_ping_is_started_anew(tmp_path: pathlib.Path) -> None:
    """It could not say when the game before is over; its opponent stays all the same."""
    old = table.scripted("Old", "--protocol", "xboard", "--fault", "no-features")
    engines = [*old, "proto=xboard", *table.scripted("New")]
    words = [*engines, "-each", "tc=20", "-log", "file=log.txt", "-maxmoves", "1"]
    plan = ["-rounds", "2", "-noswap", "-startup-ms", "3000"]
    found = table.run_json(tmp_path, *words, *plan)
    assert [sum(one["faults"].values()) for one in found["engines"]] == [0, 0]
    assert heard(tmp_path, "xboard") == {"Old": 2}
    assert starts(tmp_path) == {"New": 1}
