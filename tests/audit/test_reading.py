"""PGN as other programs write it: what is read, and what is refused, game by game."""

from __future__ import annotations

import contextlib
import gzip
import json
import pathlib

import click.testing
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import commands
from orchestrator.audit import pgn, reading, remarks, replaying, unpacking
from orchestrator.common import errors
from orchestrator.contract import Adjudication, Score, Side

HEAD = '[Event "e"]\n[White "A"]\n[Black "B"]\n[Result "1-0"]\n'
MOVES = "1. e4 f5 2. d4 g5 3. Qh5# 1-0"
PLAYED = ["e2e4", "f7f5", "d2d4", "g7g5", "d1h5"]


def run_audit(path: pathlib.Path, *options: str) -> click.testing.Result:
    """Run ``farm audit``."""
    arguments = ["audit", str(path), "--rules", "s16", *options]
    return click.testing.CliRunner().invoke(commands.farm, arguments)


def moves_of(body: str, head: str = HEAD) -> list[str]:
    """Return the moves of the only game of a text, in UCI notation."""
    (game,) = reading.games(f"{head}\n{body}\n")
    return [told.move for told in game.plies]


@pytest.mark.parametrize(
    "body",
    [
        MOVES,
        "1.e4 f5 2.d4 g5 3.Qh5# 1-0",
        "1 e4 1... f5 2 . d4 g5 3. Qh5+ 1-0",
        "1. e4! f5?! 2. d4!? g5?? $4 3. Qh5# +- 1-0",
        "1. e4 (1. d4 d5 (1... Nf6 {an aside}) 2. c4) 1... f5 2. d4 g5 3. Qh5# 1-0",
        "1. e4 {see (1. d4) and 1-0} f5 2. d4 ; 2. Nf3 is (also\n g5 3. Qh5# {mate} 1-0 {over}",
        "1. e4 f5\n%an escaped line (\n2. d4 g5 3. Qh5# 1-0",
        "1. e2e4 f7-f5 2. d2-d4 g7g5 3. d1h5 1-0",
    ],
)
def test_one_main_line_in_many_hands(body: str) -> None:
    """Numbers, glyphs, variations, remarks and long notation leave the moves alone."""
    assert moves_of(body) == PLAYED


@pytest.mark.parametrize(
    "head",
    [
        '[White "A"] [Black "B"] [Result "1-0"] [Event "e"]\n',
        '[Result "1-0"]\n\n[Black "B"]\n[White "A"]\n',
        '  [White   "A"]\n[ Black "B" ]\n%escaped\n[Result "1-0"]\n',
        '[White "A"]\n[Black "B"]\n',
    ],
)
def test_games_are_told_apart_by_their_tags_in_any_order(head: str) -> None:
    """No tag has to come first, and games without moves or blank lines are games."""
    text = f"{head}{MOVES}\n{head}\n1-0\n\n\n{head}\n{MOVES}\n"
    games = list(reading.games(text))
    assert [len(game.plies) for game in games] == [5, 0, 5]
    assert {(game.white, game.black, game.result) for game in games} == {("A", "B", "1-0")}
    assert len(reading.chunks(text)) == 3


def test_names_lose_their_escapes() -> None:
    """Quotes, backslashes and brackets belong to a name."""
    (game,) = reading.games('[White "A \\"a\\" \\\\ [x]"]\n[Black "B"]\n[Result "*"]\n\n*')
    assert game.white == 'A "a" \\ [x]'
    assert game.result is None


def test_a_remark_may_hold_what_looks_like_a_tag() -> None:
    """A line of a remark begins no game; an open remark swallows no neighbour."""
    tagged = HEAD + '\n1. e4 {from\n[White "C"]\nonwards} f5 2. d4 g5 3. Qh5# 1-0\n\n'
    assert [len(game.plies) for game in reading.games(tagged * 2)] == [5, 5]
    texts = reading.chunks(HEAD + "\n1. e4 {never closed\n\n" + HEAD + "\n" + MOVES)
    assert len(texts) == 2
    with pytest.raises(ValueError, match="remark is not closed"):
        pgn.read(texts[0])


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("1. e4 e5 2. Ke3 *", "ply 3: illegal san: 'Ke3'"),
        ('[FEN "7k/6Q1/6K1/8/8/8/8/8 b - - 0 1"]\n\n1-0', "no legal move is left"),
        ("1. e4 -- *", "ply 2: '--' is a null move"),
        ("1. e4 (1. d4 d5 *", "a variation is not closed"),
        ("1. e4 ) e5 *", "without a '('"),
        ("1. e4 e5 1-0 2. Nf3", "'Nf3' stands behind the result 1-0"),
    ],
)
def test_what_cannot_be_read_is_named_with_file_game_line_and_ply(
    tmp_path: pathlib.Path, body: str, problem: str
) -> None:
    """The operator finds the place at once."""
    path = tmp_path / "broken.pgn"
    path.write_text(f"{HEAD}\n{MOVES}\n\n{HEAD}\n{body}\n")
    with pytest.raises(errors.UsageError) as caught:
        reading.archive([path])
    assert f"{path}: game 2 (from line 8) cannot be read" in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("tags", "variant"),
    [
        ("", "standard"),
        ('[Variant "From Position"]\n[FEN "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"]\n', "standard"),
        ('[Variant "Chess960"]\n', "fischerandom"),
        (
            '[FEN "nrkbbqnr/pppppppp/8/8/8/8/PPPPPPPP/NRKBBQNR w HBhb - 0 1"]\n',
            "fischerandom",
        ),
    ],
)
def test_chess960_is_known_by_its_names_and_castling_rights(tags: str, variant: str) -> None:
    """Whatever a program calls it, or says nothing at all."""
    (game,) = reading.games(f"{HEAD}{tags}\n1. e4 *")
    assert game.variant == variant


def test_other_variants_are_refused() -> None:
    """Another game than chess is not played out by the rules of chess."""
    with pytest.raises(ValueError, match="'Atomic' is none that the farm knows"):
        list(reading.games(f'{HEAD}[Variant "Atomic"]\n\n{MOVES}'))


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("Müller".encode(), "Müller"),
        (b"\xef\xbb\xbf" + HEAD.encode(), "A"),
        ("Müller".encode("latin-1"), "Müller"),
        (f'[White "Müller"]\n[Black "B"]\n\n{MOVES}'.encode("utf-16"), "Müller"),
        (f'[White "A"]\n[Black "B"]\n\n{MOVES}'.replace("\n", "\r").encode(), "A"),
        (f'[White "A"]\r\n[Black "B"]\r\n\r\n{MOVES}\r\n'.encode(), "A"),
        (gzip.compress(f'[White "A"]\n[Black "B"]\n\n{MOVES}'.encode(), mtime=0), "A"),
    ],
)
def test_encodings_and_line_ends(tmp_path: pathlib.Path, raw: bytes, name: str) -> None:
    """UTF-8 with and without its mark, UTF-16, Latin-1; line ends of three systems; gzip."""
    path = tmp_path / "games.pgn"
    if b"[" not in raw and not raw.startswith(b"\x1f\x8b"):
        raw = HEAD.encode().replace(b'"A"', b'"' + raw + b'"') + b"\n" + MOVES.encode()
    elif raw.endswith(HEAD.encode()):
        raw += b"\n" + MOVES.encode()
    path.write_bytes(raw)
    (game,) = reading.archive([path])
    assert (game.white, game.result, len(game.plies)) == (name, "1-0", 5)
    rated = click.testing.CliRunner().invoke(
        commands.farm, ["rate", str(path), "--errors", "0", "--json"]
    )
    told = raw.decode("utf-8", "replace").count("Result")
    assert rated.exit_code == (0 if told else 2), rated.output


@pytest.mark.parametrize(
    "head", [b"PK\x03\x04", b"7z\xbc\xaf'", b"BZh9", b"\xfd7zXZ", b"(\xb5/\xfd"]
)
def test_foreign_packing_is_named(tmp_path: pathlib.Path, head: bytes) -> None:
    """What is packed otherwise than by gzip is refused with the way out, not read as text."""
    path = tmp_path / "games.pgn"
    path.write_bytes(head + b"\x00" * 40)
    with pytest.raises(errors.UsageError, match="unpack it first"):
        unpacking.content(path)
    assert click.testing.CliRunner().invoke(commands.farm, ["rate", str(path)]).exit_code == 2


@pytest.mark.parametrize(
    ("remark", "white", "black"),
    [
        ("d=20, wv=-1.25, R50=49,", Score(cp=-125), Score(cp=125)),
        ("+1.25/20 0.5s", Score(cp=125), Score(cp=125)),
        ("-0.07/9 0.011s, n=12, tl=3.2s, Draw by adjudication", Score(cp=-7), Score(cp=-7)),
        ("(Nf3) +0.10/12 3", Score(cp=10), Score(cp=10)),
        ("-M4/30 1.0s", Score(mate=-2), Score(mate=-2)),
        ("[%eval -0.5] [%clk 0:03:00]", Score(cp=-50), Score(cp=50)),
        ("[%eval #-3]", Score(mate=-2), Score(mate=2)),
        ("[%clk 0:03:00]", None, None),
        ("wv=inf,", None, None),
        ("d=20, wv=-1.25", Score(cp=-125), Score(cp=125)),
        ("d=1, sd=1, s=0, n=0, pv=, tb=null, wv=0.00,", None, None),
        ("d=1, sd=1, s=0, n=0, pv=Kg1, tb=null, wv=0.00,", Score(cp=0), Score(cp=0)),
        ("d=1, sd=38, s=0, n=0, pv=, tb=0, wv=0.00,", Score(cp=0), Score(cp=0)),
        ("book", None, None),
    ],
)
def test_evals_of_several_programs(remark: str, white: Score | None, black: Score | None) -> None:
    """The mover's score is read from White's view or from the mover's, as each writes it.

    TCEC's program wrote a missing one as 0.00 at depth 1 without a variation.
    """
    sides: tuple[tuple[Side, Score | None], ...] = (("white", white), ("black", black))
    for side, score in sides:
        told = remarks.told_eval(remarks.fields(remark, side))
        assert remarks.score(told, side) == score


def report_of(body: str, head: str = HEAD) -> dict[str, dict[str, int]]:
    """Return how the rules of chess and of adjudication bear out one game."""
    found = replaying.report(reading.games(f"{head}\n{body}"), Adjudication())
    return {name: counts for name, counts in found.items() if counts}


@pytest.mark.parametrize(
    ("body", "reproduced"),
    [
        ("1. e4 f5 2. d4 g5 3. Qh5# {+M1/2 0.1s, White mates} 1-0", True),
        ("1. e4 f5 2. d4 g5 3. Qh5# {Draw by 3-fold repetition} 1-0", False),
        ("1. e4 f5 2. d4 g5 3. Qg4 {White mates} 1-0", False),
        ("1. e4 f5 2. d4 g5 3. Qh5# {White mates} 0-1", False),
        ("1. e4 {book} f5 {book} 2. d4 {book} g5 {book} 3. Qh5# {book, White mates} 1-0", True),
    ],
)
def test_ends_on_the_board_are_held_against_the_record(body: str, reproduced: bool) -> None:
    """The closing words of cutechess and fastchess name the ending; result and ply agree."""
    found = report_of(body, HEAD.replace("1-0", body[-3:]))
    assert found["board"] == {"recorded": 1, "reproduced": int(reproduced)}
    assert bool(found.get("mismatches")) is not reproduced


@pytest.mark.parametrize("tag", ["", '[Termination "Normal"]\n', '[Termination "adjudication"]\n'])
def test_a_record_without_a_reason_is_held_to_its_result(tag: str) -> None:
    """Mate that nobody calls by name contradicts nothing, unless the result is another."""
    mate = "1. e4 f5 2. d4 g5 3. Qh5# "
    for result, mismatches in (("1-0", 0), ("0-1", 1), ("1/2-1/2", 1), ("*", 0)):
        head = HEAD.replace("1-0", result) + tag
        games = reading.games(f"{head}\n{mate}{result}")
        found = replaying.report(games, Adjudication())["mismatches"]
        assert len(found) == mismatches, result


def test_a_game_that_went_on_after_its_end_is_named() -> None:
    """The third repetition ends a game, whatever the file says later."""
    shuffle = "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 5. e4 e5 1-0"
    (wrong,) = replaying.report(reading.games(f"{HEAD}\n{shuffle}"), Adjudication())["mismatches"]
    assert (wrong["rule"], wrong["computed_ply"], wrong["recorded_ply"]) == ("board", 8, 10)


def test_contradicting_results_and_unmarked_openings_are_told(tmp_path: pathlib.Path) -> None:
    """The tag counts, the moves' last word is held against it; no book, no claim of openings."""
    path = tmp_path / "two.pgn"
    other = HEAD.replace('"A"', '"C"').replace('"B"', '"A"').replace('"C"', '"B"')
    path.write_text(f"{HEAD}\n{MOVES.replace('1-0', '0-1')}\n\n{other}\n{MOVES}")
    found = json.loads(run_audit(path, "--json").output)
    assert found["results"] == [{"game": 1, "tag": "1-0", "moves": "0-1"}]
    assert found["openings"] is None
    words = run_audit(path).output
    assert "game 1: tag Result 1-0, behind the moves 0-1" in words


@pytest.mark.parametrize("pairs", [("AB", "BA", "AC", "CA"), ("AB", "BA", "CD", "DC")])
def test_a_pool_has_no_order_of_play(tmp_path: pathlib.Path, pairs: tuple[str, ...]) -> None:
    """Gauntlets and the games of rating lists: points are counted, no order is missed."""
    path = tmp_path / "pool.pgn"
    heads = (f'[White "{pair[0]}"]\n[Black "{pair[1]}"]\n' for pair in pairs)
    path.write_text("".join(f"{head}\n{MOVES}\n\n" for head in heads))
    found = json.loads(run_audit(path, "--json").output)
    assert found["schedule"] is None
    assert {row["engine"]: row["points"] for row in found["standings"]} == {
        engine: sum(pair[0] == engine for pair in pairs) for engine in set("".join(pairs))
    }


def test_nobody_plays_against_himself(tmp_path: pathlib.Path) -> None:
    """Lines of a book, and games under one name, have no table: the game is named.

    A game without names and result, as TCEC's archive has one, was never played.
    """
    path = tmp_path / "book.pgn"
    alone = HEAD.replace('"A"', '"B"')
    unknown = '[White "?"]\n[Black "?"]\n[Result "?"]\n'
    path.write_text(f"{HEAD}\n{MOVES}\n\n{unknown}\n1. e4 *\n\n{HEAD}\n{MOVES}")
    assert run_audit(path).output.startswith("2 games\n")
    path.write_text(f"{unknown}\n*\n")
    assert run_audit(path).exit_code == 2
    path.write_text(f"{HEAD}\n{MOVES}\n\n{alone}\n{MOVES}")
    result = run_audit(path)
    assert result.exit_code == 2
    assert "game 2 (from line 8) cannot be read: White and Black are both 'B'" in result.output


def test_a_broken_game_spoils_no_other(tmp_path: pathlib.Path) -> None:
    """It is named with its place and counts nowhere; the others keep number and judgement.

    Exit code 2 says that not all was judged; so does the JSON report, which stays whole.
    """
    paths = [tmp_path / "one.pgn", tmp_path / "two.pgn"]
    other = HEAD.replace('"A"', '"C"').replace('"B"', '"A"').replace('"C"', '"B"')
    paths[0].write_text(f"{HEAD}\n1. e4 e5 2. Ke3 1-0\n\n{other}\n{MOVES}\n")
    paths[1].write_text(f"{HEAD}\n{MOVES}\n\n{HEAD}\n1. e4 (1. d4 1-0\n\n{HEAD}\n1. e4 0-1\n")
    arguments = ["audit", *map(str, paths), "--rules", "s16"]
    words = click.testing.CliRunner().invoke(commands.farm, arguments)
    assert words.exit_code == 2
    assert words.stdout.startswith(f"3 games\n  {paths[0]}: game 1 (from line 1) cannot be read")
    assert f"  {paths[1]}: game 2 (from line 8) cannot be read: a variation" in words.stdout
    assert "2 of 5 games cannot be read" in words.stderr
    told = click.testing.CliRunner().invoke(commands.farm, [*arguments, "--json"])
    assert told.exit_code == 2
    found = json.loads(told.stdout)
    assert [(one["game"], one["place"], one["line"]) for one in found["unreadable"]] == [
        (1, 1, 1),
        (4, 2, 8),
    ]
    assert {row["engine"]: row["played"] for row in found["standings"]} == {"A": 3, "B": 3}
    assert [one["game"] for one in found["results"]] == [5]


def test_the_order_of_play_numbers_games_as_the_archive_does(tmp_path: pathlib.Path) -> None:
    """Behind a broken game a game out of order has its own number, not one less."""
    path = tmp_path / "match.pgn"
    other = HEAD.replace('"A"', '"C"').replace('"B"', '"A"').replace('"C"', '"B"')
    broken = f"{HEAD}\n1. Ke3 1-0\n\n"
    path.write_text(broken + "".join(f"{head}\n{MOVES}\n\n" for head in (HEAD, HEAD, other)))
    schedule = json.loads(run_audit(path, "--json").stdout)["schedule"]
    assert [wrong["game"] for wrong in schedule["mismatches"]] == [3, 4]


PIECES = [
    '[White "A"]',
    '[Black "B"]',
    '[Result "1-0"]',
    "\n",
    "\n\n",
    " ",
    "1.",
    "e4",
    "e5",
    "Nf3",
]
PIECES += [
    "{",
    "}",
    "(",
    ")",
    ";",
    "%",
    "$3",
    "!?",
    "*",
    "1-0",
    '[FEN "8/8 w"]',
    '"',
    "[",
    "\\",
    "--",
]


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_no_text_does_more_than_be_refused(words: list[str]) -> None:
    """However tags, moves and remarks are broken up, a game is read or named as unreadable."""
    text = "".join(words)
    assert [text[first:last].strip() for first, last in pgn.spans(text)] == pgn.chunks(text)
    for chunk in pgn.chunks(text):
        with contextlib.suppress(ValueError, errors.BookError):
            list(reading.games(chunk))
