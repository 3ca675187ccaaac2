"""The PGN record: TCEC's dialect, reproduced from real games, and safe from any text.

The real games are those of TCEC's public game archive (TCEC organization, CC BY-SA 3.0),
whole, from ``tests/data/tcec/whole``.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import re
from collections.abc import Callable, Iterator

import chess
import chess.pgn
import made
import pytest
import tcec_events
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import clock, pgn_comments, record, verdict
from orchestrator.common import errors

FILES: dict[str, boards.Variant] = {
    "Cup_12_Final": "standard",
    "Season_16_-_League_1_Playoff": "standard",
    "Season_22_-_Frc5_Final": "fischerandom",
}
REPRODUCED = ("d", "sd", "pd", "mt", "tl", "s", "n", "pv", "tb", "h", "wv", "mb")
ENDINGS = {
    "White mates": verdict.checkmate("black"),
    "Black mates": verdict.checkmate("white"),
    "3-Fold repetition": verdict.threefold(),
    "Fifty moves rule": verdict.fifty_moves(),
    "Insufficient material": verdict.insufficient(),
    "Stalemate": verdict.stalemate(),
}
OURS = {"Event", "Site", "GameDuration"}  # tags that need not be those of the archive


# -- records of real games ---------------------------------------------------------------


def fields_of(comment: str) -> dict[str, str]:
    """Split a move comment into its fields."""
    return dict(re.findall(r"(\w+)=([^,]*),", " ".join(comment.split())))


def score_of(text: str, mover: contract.Side) -> contract.Score:
    """Read ``wv`` back into the mover's score."""
    sign = 1 if (not text.startswith("-")) == (mover == "white") else -1
    number = text.lstrip("-")
    if not number.startswith("M"):
        return contract.Score(cp=sign * round(100 * float(number)))
    plies = int(number[1:])
    return contract.Score(mate=sign * ((plies + 1) // 2))


def line_of(board: chess.Board, sans: str) -> tuple[str, ...]:
    """Turn a line of SAN into UCI."""
    line, ucis = board.copy(stack=False), []
    for san in sans.split():
        move = line.parse_san(san)
        ucis.append(line.uci(move))
        line.push(move)
    return tuple(ucis)


def ply_of(
    node: chess.pgn.ChildNode, clocks: dict[bool, int], increment_ms: int
) -> contract.PlyRecord:
    """Build the ply record behind a real move and its comment."""
    board, told = node.parent.board(), fields_of(node.comment)
    side: contract.Side = "white" if board.turn else "black"
    left_ns = int(told["tl"]) * clock.NS_PER_MS
    clocks[board.turn] = left_ns
    later = node.next() and node.next().next()  # type: ignore[union-attr]
    expected = fields_of(later.comment).get("pd") if later else None
    return contract.PlyRecord(
        ply=node.ply(),
        side=side,
        move=board.uci(node.move),
        san=node.san(),
        think_ns=int(told["mt"]) * clock.NS_PER_MS,
        margin_ns=left_ns - increment_ms * clock.NS_PER_MS,
        overhead_ns=0,
        white_clock_ns=clocks[chess.WHITE],
        black_clock_ns=clocks[chess.BLACK],
        score=score_of(told["wv"], side),
        depth=int(told["d"]),
        seldepth=int(told["sd"]),
        nodes=int(told["n"]),
        nps=int(told["s"]),
        tbhits=None if told["tb"] == "null" else int(told["tb"]),
        hashfull=round(10 * float(told["h"])),
        pv=line_of(board, told["pv"]),
        ponder=line_of(node.board(), expected)[0] if expected else None,
    )


def record_of(game: chess.pgn.Game, variant: boards.Variant) -> contract.GameRecord:
    """Build the record of a real game."""
    nodes = list(game.mainline())
    book = [node for node in nodes if node.comment.startswith("book")]
    base, increment = game.headers["TimeControl"].split("+")
    control = contract.TimeControl(base_ms=int(base) * 1000, increment_ms=int(increment) * 1000)
    clocks = dict.fromkeys((chess.WHITE, chess.BLACK), control.base_ms * clock.NS_PER_MS)
    names = [game.headers.get(tag) for tag in ("Opening", "Variation")]
    opening = contract.Opening(
        fen=game.headers.get("FEN"),
        moves=tuple(node.parent.board().uci(node.move) for node in book),
        name=": ".join(name for name in names if name),
        eco=game.headers.get("ECO", ""),
    )
    return finished(
        opening=opening,
        variant=variant,
        time_control=control,
        plies=tuple(ply_of(n, clocks, control.increment_ms) for n in nodes[len(book) :]),
        outcome=ENDINGS[game.headers["TerminationDetails"]],
        headers=game.headers,
    )


def finished(
    *,
    opening: contract.Opening,
    plies: tuple[contract.PlyRecord, ...],
    outcome: contract.Outcome,
    variant: boards.Variant = "standard",
    time_control: contract.TimeControl | None = None,
    headers: chess.pgn.Headers | None = None,
    options: tuple[contract.OptionSetting, ...] = (),
) -> contract.GameRecord:
    """Build a record around plies; tags come from ``headers`` where there are any."""
    said = headers if headers is not None else {}
    order = contract.GameOrder(
        season="s",
        season_name="Season",
        event="e",
        event_name="Event",
        game="g",
        number=1,
        round=said.get("Round", "1.1"),
        white=engine("w", said.get("White", "White engine"), said.get("WhiteElo")),
        black=engine("b", said.get("Black", "Black engine"), said.get("BlackElo")),
        time_control=time_control or contract.TimeControl.parse("2s+50ms"),
        opening=opening,
        variant=variant,
    )
    return contract.GameRecord(
        order=order,
        attempt="a",
        started_ms=milliseconds(said.get("GameStartTime")),
        ended_ms=milliseconds(said.get("GameEndTime")),
        white=contract.EngineReport(options=options),
        black=contract.EngineReport(options=options),
        plies=plies,
        outcome=outcome,
        final_fen="",
    )


def engine(name: str, shown: str, rating: str | None) -> contract.EngineSpec:
    """Make a roster entry."""
    elo = int(rating) if rating else None
    return contract.EngineSpec(id=name, name=shown, command=(name,), rating=elo)


def milliseconds(text: str | None) -> int:
    """Read the archive's time of day."""
    moment = dt.datetime.fromisoformat((text or "2020-01-01T00:00:00.000")[:23] + "+00:00")
    return round(moment.timestamp() * 1000)


def real_games() -> Iterator[tuple[chess.pgn.Game, boards.Variant]]:
    """Yield two real games that ended on the board from each file."""
    for name, variant in FILES.items():
        found = 0
        with gzip.open(tcec_events.whole_games(name), "rt", encoding="utf-8") as text:
            while found < 2 and (game := chess.pgn.read_game(text)):
                if game.headers["TerminationDetails"] in ENDINGS and all(
                    "book" in node.comment or "wv=" in node.comment for node in game.mainline()
                ):
                    found += 1
                    yield game, variant


@pytest.mark.parametrize(
    ("elapsed_ms", "told"), [(0, "00:00:00"), (61_999, "00:01:01"), (3_725_000, "01:02:05")]
)
def test_a_game_s_duration_is_told_in_hours_minutes_seconds(elapsed_ms: int, told: str) -> None:
    """The tag ``GameDuration``, which imports read where the times are missing."""
    game = fools_mate()
    timed = game.model_copy(update={"ended_ms": game.started_ms + elapsed_ms})
    assert record.tags(timed)["GameDuration"] == told


def moves_to_mate(value: str | None) -> str | None:
    """Turn mates in plies into moves: the archive's own parity is not always right."""
    match = re.fullmatch(r"(-?)M(\d+)", value or "")
    return f"{match[1]}mate in {(int(match[2]) + 1) // 2}" if match else value


def read_back(text: str) -> chess.pgn.Game:
    """Read a PGN text that must hold exactly one game without an error."""
    handle = io.StringIO(text)
    game = chess.pgn.read_game(handle)
    assert game is not None
    assert not game.errors
    assert chess.pgn.read_game(handle) is None
    return game


def test_real_games_are_written_as_the_archive_has_them() -> None:
    """Tags, moves and twelve comment fields of real games come out as TCEC wrote them."""
    games = 0
    for original, variant in real_games():
        games += 1
        ours = read_back(record.pgn(record_of(original, variant)))
        for tag in original.headers:
            if tag not in OURS and "Standard Time" not in original.headers[tag]:
                assert ours.headers.get(tag) == original.headers[tag], tag
        assert list(ours.headers) == list(original.headers)
        for node, reference in zip(ours.mainline(), original.mainline(), strict=True):
            assert node.move == reference.move
            told, expected = fields_of(node.comment), fields_of(reference.comment)
            for name in REPRODUCED:
                assert moves_to_mate(told.get(name)) == moves_to_mate(expected.get(name)), (
                    node.ply(),
                    name,
                )
        assert verdict.sentence(ENDINGS[original.headers["TerminationDetails"]]) in " ".join(
            ours.end().comment.split()
        )
    assert games == 6


# -- the dialect --------------------------------------------------------------------------


def fools_mate(**changes: object) -> contract.GameRecord:
    """Return the record of the shortest mate, one book ply and three engine plies."""
    board = chess.Board()
    board.push_uci("f2f3")
    plies = []
    for uci in ("e7e5", "g2g4", "d8h4"):
        side: contract.Side = "white" if board.turn else "black"
        san = board.san_and_push(chess.Move.from_uci(uci))
        ply = contract.PlyRecord(
            ply=board.ply(),
            side=side,
            move=uci,
            san=san,
            think_ns=1_234_567,
            margin_ns=1_998_765_433,
            overhead_ns=0,
            white_clock_ns=2_048_765_433,
            black_clock_ns=2_048_765_433,
            ponder="g2g4" if uci == "e7e5" else None,
        )
        plies.append(ply.model_copy(update=changes))
    return finished(
        opening=contract.Opening(moves=("f2f3",), name="Barnes: Fool's", eco="A00"),
        plies=tuple(plies),
        outcome=verdict.checkmate("white"),
    )


def comments_of(game: chess.pgn.Game) -> list[str]:
    """Return all move comments with white space folded."""
    return [" ".join(node.comment.split()) for node in game.mainline()]


def test_what_an_engine_did_not_say_is_not_made_up() -> None:
    """Without output there is no pv and no wv, tb is null, and numbers are 0."""
    book, first, second, last = comments_of(read_back(record.pgn(fools_mate())))
    rest = "tb=null, h=0.0, ph=0.0, R50=50, Rd=-1000, Rr=-1000, mb=+0+0+0+0+0,"
    assert book == "book, mb=+0+0+0+0+0,"
    assert first == second == f"d=1, sd=1, mt=2, tl=2048, s=0, n=0, {rest}"
    assert last.startswith("d=1, sd=1, pd=g4, mt=2, ")
    assert "ph=100.0" in last
    assert last.endswith("mb=+0+0+0+0+0, Black mates")


def test_a_line_is_cut_where_it_becomes_illegal() -> None:
    """A principal variation keeps its legal beginning; none at all leaves the field out."""
    cut = fools_mate(pv=("e7e5", "g2g4", "a1a8", "a2a3"))
    told = [fields_of(comment).get("pv") for comment in comments_of(read_back(record.pgn(cut)))]
    assert told == [None, "e5 g4", None, None]


def test_tags_stand_in_tcec_order() -> None:
    """The seven-tag roster comes first, the others follow in alphabetical order."""
    names = list(record.tags(fools_mate()))
    assert names[:7] == ["Event", "Site", "Date", "Round", "White", "Black", "Result"]
    assert names[7:] == sorted(names[7:])
    assert "Termination" not in names
    assert record.tags(fools_mate())["Opening"] == "Barnes"
    assert record.tags(fools_mate())["Variation"] == "Fool's"


def test_the_site_is_the_seasons_else_the_hall() -> None:
    """A season that names where it is played has that name in its games."""
    plain = fools_mate().model_copy(update={"hall": "hall-1"})
    placed = plain.order.model_copy(update={"site": "Club house"})
    assert record.tags(plain)["Site"] == "hall-1"
    assert record.tags(plain.model_copy(update={"order": placed}))["Site"] == "Club house"


def test_lines_are_wrapped_at_80_columns() -> None:
    """No line of the movetext is longer than 80 columns."""
    text = record.pgn(fools_mate(pv=("e7e5", "g2g4", "d8h4")))
    movetext = text.split("\n\n")[1].splitlines()
    assert len(movetext) > 5
    assert max(len(line) for line in movetext) <= 80


def test_a_game_without_a_move_is_still_a_game() -> None:
    """An engine that never started loses in a readable PGN without plies."""
    empty = finished(opening=contract.Opening(), plies=(), outcome=verdict.disconnect("white"))
    game = read_back(record.pgn(empty))
    assert game.headers["Termination"] == "abandoned"
    assert game.headers["PlyCount"] == "0"
    assert " ".join(game.comment.split()).endswith("White disconnects")


def test_a_game_that_starts_with_black_is_numbered_rightly() -> None:
    """A start position with Black to move gives ``3...`` and its FEN."""
    fen = "4k3/8/8/8/8/8/4q3/K7 b - - 0 3"
    plies = tuple(
        ply.model_copy(update={"move": "e8d8", "ply": 1, "side": "black"})
        for ply in fools_mate().plies[:1]
    )
    text = record.pgn(
        finished(opening=contract.Opening(fen=fen), plies=plies, outcome=verdict.time("white"))
    )
    assert "3... Kd8 {" in text.replace("\n", " ")
    assert read_back(text).headers["FEN"] == fen


def test_a_ply_that_cannot_be_played_is_refused() -> None:
    """A damaged record is an error that names the ply, never a wrong PGN."""
    damaged = fools_mate(move="a1a8")
    with pytest.raises(errors.LedgerDamagedError, match="ply 2: 'a1a8'"):
        record.pgn(damaged)


@settings(deadline=None)
@given(st.text(), st.text(min_size=1), st.text())
def test_no_text_of_an_engine_breaks_the_file(name: str, value: str, move: str) -> None:
    """Whatever names, option values and illegal moves hold, the game reads back whole."""
    options = (contract.OptionSetting(name=name, asked=value, offered="", set=value),)
    base = fools_mate()
    spec = base.order.white.model_copy(update={"name": f'{name}"] \\ {value}'})
    game = base.model_copy(
        update={
            "order": base.order.model_copy(update={"white": spec}),
            "white": contract.EngineReport(options=options),
            "outcome": verdict.illegal("white", move),
        }
    )
    again = read_back(record.pgn(game))
    assert [node.move.uci() for node in again.mainline()] == ["f2f3", "e7e5", "g2g4", "d8h4"]
    assert again.headers["Result"] == "0-1"
    assert len(again.headers) == len(record.tags(game))


@given(st.integers(1, 10**13), st.integers(0, 10**10), st.integers(0, 60_000))
def test_told_times_add_up_exactly(margin_ns: int, think_ns: int, increment_ms: int) -> None:
    """``tl`` is ``tl`` before less ``mt`` plus the increment, in whole milliseconds."""
    left_ns = margin_ns + increment_ms * clock.NS_PER_MS
    ply = (
        fools_mate()
        .plies[0]
        .model_copy(
            update={"margin_ns": margin_ns, "think_ns": think_ns, "black_clock_ns": left_ns}
        )
    )
    before_ms = (margin_ns + think_ns) // clock.NS_PER_MS
    assert (
        pgn_comments.time_left_ms(ply) == before_ms - pgn_comments.move_time_ms(ply) + increment_ms
    )


@pytest.mark.parametrize("plies", [8, 40])
def test_a_game_is_played_once_to_be_written(plies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ply and each move of a variation is one move on a board, and nothing more."""
    counts = {"push": 0, "generate_legal_moves": 0}
    for name in counts:
        monkeypatch.setattr(chess.Board, name, counted(counts, name))
    shuffle = ("g1f3", "g8f6", "f3g1", "f6g8")
    moves = [shuffle[at % 4] for at in range(plies + 4)]
    told = tuple(
        made.ply(at + 1, moves[at], "", pv=tuple(moves[at : at + 4])) for at in range(plies)
    )
    outcome = verdict.disconnect("white")
    record.pgn(finished(opening=contract.Opening(), plies=told, outcome=outcome))
    assert counts == {"push": 5 * plies, "generate_legal_moves": 0}


def counted(counts: dict[str, int], name: str) -> Callable[..., object]:
    """Return a method of a board that counts its calls."""
    method = getattr(chess.Board, name)

    def call(*arguments: object, **more: object) -> object:
        counts[name] += 1
        return method(*arguments, **more)

    return call


@pytest.mark.parametrize(("cp", "said"), [(0, "0.00"), (1, "+0.01"), (-120, "-1.20")])
def test_a_score_is_said_in_pawns(cp: int, said: str) -> None:
    """A level one has no sign."""
    ply = made.ply(1, "e2e4", "e4", score=contract.Score(cp=cp))
    assert pgn_comments._own_score(ply) == said


@pytest.mark.parametrize(("mate", "said"), [(3, "+M5"), (1, "+M1"), (-3, "-M6"), (-1, "-M2")])
def test_a_mate_is_said_in_plies(mate: int, said: str) -> None:
    """The mover mates at its own ply; it is mated at its opponent's."""
    ply = made.ply(1, "e2e4", "e4", score=contract.Score(mate=mate))
    assert pgn_comments._own_score(ply) == said
