"""XBoard's text: what engines really write is read, and no bytes whatever raise."""

from __future__ import annotations

import re

import chess
import made
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.arbiter import board, clock
from worker_cpu.protocols import base, registry, uci, uci_engine, xboard, xboard_engine

SIDE: contract.Side = "white"
WORDS = st.sampled_from(
    re.split(
        " ",
        'feature option= done=1 done=0 ping=1 myname=" -spin -check -combo /// move My is : 1. ... '
        "e2e4 O-O e7e8Q resign 1-0 0-1 1/2-1/2 {White mates} Illegal Error offer draw pong 1 "
        "tellusererror 9 156 -100003 1084 48000 99999999999999999999 \t + ! ? ½ \x00 \r \n \n",
    )
)
GARBAGE = st.binary(max_size=400) | st.lists(WORDS, max_size=40).map(lambda w: " ".join(w).encode())


def order(protocol: contract.ProtocolName = "xboard", **fields: object) -> contract.GameOrder:
    """Make an order for pure conversations."""
    engine = contract.EngineSpec(id="x", name="X", protocol=protocol, command=("x",))
    control = contract.TimeControl(base_ms=61_500, increment_ms=500)
    return made.order(engine, engine, **{"time_control": control, **fields})


def begun(side: contract.Side = SIDE, **fields: object) -> xboard_engine.XboardHandshake:
    """Begin the handshake of an XBoard engine."""
    ordered = order(**fields)
    game = board.GameBoard(ordered.opening, ordered.variant)
    return xboard_engine.XboardHandshake(ordered, side, 0, game)


@pytest.mark.parametrize("protocol", ["uci", "xboard"])
@given(output=st.lists(GARBAGE, max_size=8))
def test_no_conversation_raises(protocol: contract.ProtocolName, output: list[bytes]) -> None:
    """A handshake and a player take any output in any order, and stay bounded."""
    ordered = order(protocol)
    game = board.GameBoard(ordered.opening)
    hand = registry.handshake(ordered, "white", 0, game)
    hand.begin()
    for number, line in enumerate(output):
        hand.take(line, number)
    hand.expire(1)
    hand.expire(2)
    assert hand.report(1).pid == 1
    player = hand.player()
    finder = player.finder(fresh=True)
    for chunk in output:
        found = finder.feed(chunk + b"\n")
        if found is not None:
            player.read_move(player.reply(found).text)
    player.search(b"\n".join(output))
    player.aside(b"\n".join(output))


@given(stream=st.lists(GARBAGE, max_size=6).map(b"\n".join), cuts=st.lists(st.integers(1, 9)))
def test_an_answer_does_not_depend_on_how_it_was_cut(stream: bytes, cuts: list[int]) -> None:
    """Both finders find the same line in a stream that came in pieces."""
    for make in (uci.MoveFinder, xboard.AnswerFinder):
        whole = make().feed(stream + b"\n")
        finder, at, found = make(), 0, None
        sizes = [*cuts, len(stream) + 1]
        for size in sizes:
            found = found or finder.feed((stream + b"\n")[at : at + size])
            at += size
        assert found == whole


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        (b"move e2e4\r", base.Reply("move", "e2e4")),
        (b"My move is : d7d5", base.Reply("move", "d7d5")),
        (b"My move is: O-O", base.Reply("move", "O-O")),
        (b"12. ... Nf6", base.Reply("move", "Nf6")),
        (b"resign", base.Reply("resign", "resign")),
        (b"1-0 {White mates}", base.Reply("claim", "1-0 {White mates}", result="1-0")),
        (b"1/2-1/2", base.Reply("claim", "1/2-1/2", result="1/2-1/2")),
        (b"Illegal move: e2e4", base.Reply("claim", "Illegal move: e2e4")),
        (b"moves e2e4", None),
        (b"1-0-0", None),
        (b"1. e2e4", None),
        (b" 9 156 1084 48000 Nf3 Nc6", None),
        (b"Error (unknown command): move", None),
    ],
)
def test_answers(line: bytes, reply: base.Reply | None) -> None:
    """Moves in all their forms, resignations and claims are answers; nothing else is."""
    assert xboard.reply(line) == reply
    found = xboard.AnswerFinder().feed(b"# noise\n" + line + b"\n")
    assert (found is None) is (reply is None)


@pytest.mark.parametrize(
    ("line", "search"),
    [
        (
            b" 9 156 1084 48000 Nf3 Nc6 2. Bb5 {comment} O-O",
            base.Search(contract.Score(cp=156), 9, nodes=48000, pv=("Nf3", "Nc6", "Bb5", "O-O")),
        ),
        (
            b"13 -13 47 195600 23 411789 0\t e7e5 b1c3",
            base.Search(contract.Score(cp=-13), 13, 23, 195600, 411789, 0, pv=("e7e5", "b1c3")),
        ),
        (
            b"  4    +12     1      9000  (e2-e4  Ng8-f6 )",
            base.Search(contract.Score(cp=12), 4, nodes=9000, pv=("e2-e4", "Ng8-f6")),
        ),
        (b"5 100003 1 50 Qh5", base.Search(contract.Score(mate=3), 5, nodes=50, pv=("Qh5",))),
        (b"5 -100002 1 50 Kh8", base.Search(contract.Score(mate=-2), 5, nodes=50, pv=("Kh8",))),
        (b"5. 30 1 50 e4", base.Search(contract.Score(cp=30), 5, nodes=50, pv=("e4",))),
        (b"6 80 1 70 e4 !", base.Search(nodes=70)),
        (b"3 18 0 4175 (+) 9. dxc5 Bxc5", base.Search(nodes=4175)),
        (b"0 0 0 0 (e2-e4 , book1)", base.Search()),
        (b"Hello 1 2 3 4", base.Search()),
    ],
)
def test_thinking_output(line: bytes, search: base.Search) -> None:
    """Score, depth, counters and line of play are read; bounds and book lines are no score."""
    assert xboard.last_search(b"# noise\n" + line + b"\r\nmove e2e4") == search


@pytest.mark.parametrize(
    ("text", "option"),
    [
        (
            "Resign Threshold -spin 800 200 1200",
            uci.Option("Resign Threshold", "spin", "800", 200, 1200),
        ),
        ("Resign -check 1", uci.Option("Resign", "check", "true")),
        (
            "Level -combo Low /// *Normal",
            uci.Option("Level", "combo", "Normal", choices=("Low", "Normal")),
        ),
        ("Ini File -file /a b.ini", uci.Option("Ini File", "string", "/a b.ini")),
        ("Clear Hash -button", uci.Option("Clear Hash", "button")),
        ("Broken -spin 1", None),
        ("nothing", None),
    ],
)
def test_options(text: str, option: uci.Option | None) -> None:
    """All types of XBoard's options are read."""
    assert xboard.option(text) == option


@pytest.mark.parametrize(
    ("control", "words"),
    [
        ("61.5s+500ms", b"level 0 1:02 0.5\n"),
        ("30+5", b"level 0 30 5\n"),
        ("40/60+0", b"level 40 60 0\n"),
        ("5s/move", b"st 5\n"),
        ("500ms/move depth=8", b"st 0.5\nsd 8\n"),
        ("depth=3", b"st 600\nsd 3\n"),
        ("nodes=1000", b"st 1\nnps 1000\n"),
    ],
)
def test_time_controls(control: str, words: bytes) -> None:
    """Every form of a time control has its command."""
    assert xboard.time_control(contract.TimeControl.parse(control), 600_000) == words


def test_a_handshake_from_features_to_pong() -> None:
    """Features are answered, options set, the opening played out, and nothing is early."""
    opening = contract.Opening(moves=("e2e4", "e7e5"))
    hand = begun(opening=opening)
    assert hand.begin() == b"xboard\nprotover 2\n"
    assert hand.take(b"feature done=0", 5) == b"accepted done\n"
    assert hand.deadline_ns == order().timeouts.start_ms * base.NS_PER_MS
    answers = hand.take(b'feature ping=1 usermove=1 memory=1 myname="A B" ics=1', 6)
    assert answers.splitlines()[-1] == b"rejected ics"
    sent = hand.take(b"feature done=1", 7)
    assert sent.splitlines()[0] == b"accepted done"
    for words in (b"memory 16", b"level 0 1:02 0.5", b"post", b"easy", b"force"):
        assert words in sent.splitlines()
    assert sent.splitlines()[-3:] == [b"usermove e2e4", b"usermove e7e5", b"ping 1"]
    assert hand.phase is base.Phase.PREPARING
    assert hand.take(b"pong 1", 8) == b""
    assert hand.phase is base.Phase.READY
    assert hand.report(1).id_name == "A B"


def test_features_that_never_come_are_those_of_version_1() -> None:
    """After their time, or a complaint about protover, an old engine is set up without."""
    hand = begun()
    sent = hand.expire(9)
    assert sent is not None
    assert sent.endswith(b"force\n")
    assert hand.expire(10) == b""
    assert hand.phase is base.Phase.READY
    assert b"force\n" in begun().take(b"Error (unknown command): protover", 1)


@pytest.mark.parametrize(
    ("fields", "features", "refusal"),
    [
        ({"variant": "fischerandom"}, b"feature setboard=1 done=1", "variant"),
        (
            {"opening": contract.Opening(fen="4k3/8/8/8/8/8/8/4K2R w K - 0 1")},
            b"feature done=1",
            "setboard",
        ),
        ({"time_control": contract.TimeControl(nodes=10)}, b"feature done=1", "nodes"),
    ],
)
def test_refusals(fields: dict[str, object], features: bytes, refusal: str) -> None:
    """What an engine cannot play is said in so many words."""
    hand = begun(**fields)
    hand.take(features, 1)
    assert refusal in hand.refusal


@pytest.mark.parametrize("by_words", [True, False])
def test_castling_of_chess960_is_told_as_the_engine_reads_it(by_words: bool) -> None:
    """By words, or king takes rook where a probe before the game was not understood."""
    opening = contract.Opening(fen=xboard_engine.PROBE_FEN, moves=("e1g1",))
    hand = begun("black", variant="fischerandom", opening=opening)
    probe = hand.take(b'feature ping=1 setboard=1 variants="fischerandom" done=1', 1)
    assert probe.splitlines()[-2:] == [b"O-O", b"ping 2"]
    if not by_words:
        hand.take(b"Error (unknown command): O-O", 2)
    sent = hand.take(b"pong 2", 3).splitlines()
    assert sent[-2:] == [b"O-O" if by_words else b"e1g1", b"ping 1"]


def test_the_usual_start_position_is_set_up_again_behind_the_probe() -> None:
    """Chess960's position 518 needs no setboard of its own, but the probe has set up another."""
    hand = begun("black", variant="fischerandom", opening=contract.Opening(moves=("e2e4",)))
    hand.take(b'feature ping=1 setboard=1 variants="fischerandom" done=1', 1)
    sent = hand.take(b"pong 2", 2).splitlines()
    assert sent == [b"setboard " + chess.STARTING_FEN.encode(), b"e2e4", b"ping 1"]
    hand = begun("black", variant="fischerandom", opening=contract.Opening(moves=("e2e4",)))
    sent = hand.take(b'feature ping=1 variants="fischerandom" done=1', 1).splitlines()
    assert sent[-3:] == [b"force", b"e2e4", b"ping 1"], "who cannot set up is not probed"


def test_who_cannot_set_up_a_position_is_told_what_it_can_play() -> None:
    """Each game from a book of positions would be lost so, with nothing that says what to do."""
    hand = begun("black", opening=contract.Opening(fen="4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1"))
    hand.take(b"feature ping=1 done=1", 1)
    assert hand.unable
    assert "it has no setboard" in hand.refusal
    assert "a book of moves (PGN), or by UCI" in hand.refusal


def test_a_turn_is_one_piece_and_go_comes_once() -> None:
    """Clocks, the opponent's move, `go` only after force mode."""
    game = board.GameBoard(contract.Opening())
    player = xboard_engine.XboardPlayer(game, "black")
    control = contract.TimeControl(base_ms=61_500, increment_ms=0)
    clocks: base.Clocks = {"white": clock.EngineClock(control), "black": clock.EngineClock(control)}
    for uci_move, last in (("e2e4", b"go\n"), ("g1f3", b"usermove g1f3\n")):
        move = game.legal(uci_move)
        assert move is not None
        words = player.go(clocks, game.push(move))
        assert words.startswith(b"time 6150\notim 6150\nusermove " + uci_move.encode())
        assert words.endswith(last)
        answer = game.legal("e7e5")
        if answer is not None:
            game.push(answer)


@pytest.mark.parametrize(
    ("control", "go"),
    [
        ("1+1", "wtime 60000 btime 60000 winc 1000 binc 1000"),
        ("40/1+0", "wtime 60000 btime 60000 winc 0 binc 0 movestogo 40"),
        ("2s/move", "movetime 2000"),
        ("depth=4", "depth 4"),
        ("1+0 nodes=5", "wtime 60000 btime 60000 winc 0 binc 0 nodes 5"),
    ],
)
def test_uci_is_told_every_form_of_a_time_control(control: str, go: str) -> None:
    """What an engine does not have is not told."""
    parsed = contract.TimeControl.parse(control)
    clocks: base.Clocks = {"white": clock.EngineClock(parsed), "black": clock.EngineClock(parsed)}
    player = uci_engine.UciPlayer(board.GameBoard(contract.Opening()), "white")
    assert player.go(clocks, "") == f"position startpos\ngo {go}\n".encode()


def test_a_move_said_twice_is_no_second_answer() -> None:
    """The move before in another form, arriving late, is passed over."""
    finder = xboard.AnswerFinder(last="g1f3")
    assert finder.feed(b"My move is : g1f3\n1. ... g1f3\n") is None
    assert finder.feed(b"1. ... f3g5\nMy move is : f3g5\n") == b"1. ... f3g5"
    assert xboard.AnswerFinder(last="Nf3").feed(b"move Nf3\n") == b"move Nf3"


def test_a_flood_is_searched_and_not_kept() -> None:
    """An answer behind 10 MiB of output in small chunks is found; no chunk is kept."""
    finder = xboard.AnswerFinder()
    chunk = b" 9 156 1084 48000 Nf3 Nc6 Bb5 a6 Ba4 Nf6 O-O\n" * 40
    for _ in range(5_000):
        assert finder.feed(chunk) is None
    assert len(finder._line) < 100
    assert finder.feed(b"move e2e4\n") == b"move e2e4"
