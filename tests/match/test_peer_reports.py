"""``-output format=fastchess|cutechess``: their lines letter for letter, and their PGN comments.

The expected lines were printed by fastchess 1.8.2 for the same results, and are those of
cutechess-cli's documentation and of the parsers that read them.
"""

from __future__ import annotations

import itertools
import pathlib
import re

import pytest

from orchestrator import contract
from orchestrator.arbiter import record, verdict
from orchestrator.testmatch import match_journal, standings
from worker_cpu.match import arguments, peer_reports, schedule
from worker_cpu.protocols import options
from worker_cpu.referee import result as referee_result

TWO = ("-engine", "cmd=true", "name=A", "-engine", "cmd=true", "name=B", "-each", "tc=8+0.08")
PAIRS = ("option.Hash=16", "option.Threads=1", "-games", "2", "-repeat")


def finished(slot: schedule.Slot, outcome: contract.Outcome) -> match_journal.Result:
    """Return the result of a game as the journal has it."""
    return match_journal.Result(
        number=slot.number,
        round=slot.round,
        white="A",
        black="B",
        opening=slot.opening,
        result=outcome.result,
        ending=outcome.ending,
        loser=outcome.loser,
        details=outcome.details,
        note=outcome.note,
        plies=4,
        started_ms=0,
        ended_ms=1,
    )


def outcome_of(letter: str) -> contract.Outcome:
    """Return how a game ends: White or Black mates, a draw, and faults of White."""
    return {
        "W": verdict.checkmate("black"),
        "B": verdict.checkmate("white"),
        "D": verdict.threefold(),
        "T": verdict.time("white", "512.700 ms of 500.000 ms"),
        "X": verdict.disconnect("white"),
        "S": verdict.stall("white"),
        "I": verdict.illegal("white", "a1a8"),
        "R": verdict.score_resign("white"),
        "M": verdict.max_moves(),
        "A": verdict.score_draw(),
        "6": verdict.tablebase(None),
    }[letter]


def printed_lines(
    words: tuple[str, ...], games: str, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Let a report tell a match whose games end as ``games`` has it; return its lines."""
    settings = arguments.read(words)
    names = [engine.spec.name for engine in settings.engines]
    table = standings.Standings(names)
    slots = schedule.slots(settings.plan)
    report = peer_reports.of(settings, table, len(slots))
    report.opens(len(slots), "1 opening")
    for slot, letter in zip(slots, games, strict=True):
        report.started(slot)
        result = finished(slot, outcome_of(letter))
        table.add(slot, result)
        report.finished(slot, result)
    report.end("")
    return capsys.readouterr().out.splitlines()


def test_fastchess_prints_a_block_of_whole_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    """The closing block has pairs, ratios and conditions, as fastchess prints them."""
    words = (*TWO, *PAIRS, "-rounds", "15", "-ratinginterval", "2", "-output", "format=fastchess")
    lines = printed_lines(words, "WDBBDDWWDB" * 3, capsys)
    assert lines[:3] == [
        "Started game 1 of 30 (A vs B)",
        "Finished game 1 (A vs B): 1-0 {White mates}",
        "Started game 2 of 30 (B vs A)",
    ]
    assert lines[3] == "Finished game 2 (B vs A): 1/2-1/2 {Draw by 3-fold repetition}"
    assert lines[-10:-2] == [
        "-" * 50,
        "Results of A vs B (8+0.08, 1t, 16MB):",
        "Elo: 70.44 +/- 45.15, nElo: 200.59 +/- 124.33",
        "LOS: 99.92 %, DrawRatio: 60.00 %, PairsRatio: inf",
        "Games: 30, Wins: 12, Losses: 6, Draws: 12, Points: 18.0 (60.00 %)",
        "Ptnml(0-2): [0, 0, 9, 6, 0], WL/DD Ratio: 2.00",
        "-" * 50,
        "Finished match",
    ]
    assert sum(line.startswith("Results of") for line in lines) == 8  # 7 intervals and the end


@pytest.mark.parametrize(
    ("games", "block"),
    [
        (
            "WB",
            [
                "Elo: inf +/- -nan, nElo: inf +/- -nan",
                "LOS: 100.00 %, DrawRatio: 0.00 %, PairsRatio: inf",
                "Games: 2, Wins: 2, Losses: 0, Draws: 0, Points: 2.0 (100.00 %)",
                "Ptnml(0-2): [0, 0, 0, 0, 1], WL/DD Ratio: -nan",
            ],
        ),
        (
            "DD",
            [
                "Elo: -0.00 +/- 0.00, nElo: -nan +/- -nan",
                "LOS: -nan %, DrawRatio: 100.00 %, PairsRatio: -nan",
                "Games: 2, Wins: 0, Losses: 0, Draws: 2, Points: 1.0 (50.00 %)",
                "Ptnml(0-2): [0, 0, 1, 0, 0], WL/DD Ratio: 0.00",
            ],
        ),
        (
            "WBDD",
            [
                "Elo: 190.85 +/- nan, nElo: 245.67 +/- 340.48",
                "LOS: 92.14 %, DrawRatio: 50.00 %, PairsRatio: inf",
                "Games: 4, Wins: 2, Losses: 0, Draws: 2, Points: 3.0 (75.00 %)",
                "Ptnml(0-2): [0, 0, 1, 0, 1], WL/DD Ratio: 0.00",
            ],
        ),
    ],
)
def test_few_games_have_fastchess_infinities(
    games: str, block: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing is known the numbers are those of its floating point, signs included."""
    rounds = ("-rounds", str(len(games) // 2))
    lines = printed_lines((*TWO, *PAIRS, *rounds, "-output", "format=fastchess"), games, capsys)
    assert lines[-8:-4] == block


def test_a_pair_counts_when_both_its_games_are_over(capsys: pytest.CaptureFixture[str]) -> None:
    """Fishtest asserts that games in the block are twice its pairs, whatever comes first."""
    settings = arguments.read(
        (*TWO, *PAIRS, "-rounds", "2", "-ratinginterval", "1", "-output", "format=fastchess")
    )
    table = standings.Standings(["A", "B"])
    slots = schedule.slots(settings.plan)
    report = peer_reports.of(settings, table, len(slots))
    for at in (0, 2, 3, 1):  # the second pair is over before the first
        table.add(slots[at], finished(slots[at], outcome_of("W")))
        report.finished(slots[at], finished(slots[at], outcome_of("W")))
    out = capsys.readouterr().out
    games = [int(count) for count in re.findall(r"Games: (\d+), Wins", out)]
    pairs = [sum(map(int, five.split(","))) for five in re.findall(r"\(0-2\): \[([^]]*)\]", out)]
    assert (games, pairs) == ([2, 4], [1, 2])


def test_the_test_is_told_as_fastchess_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    """LLR, its share of the bound, bounds and Elo; at the end which hypothesis holds."""
    sprt = ("-sprt", "elo0=0", "elo1=200", "alpha=0.05", "beta=0.1", "-ratinginterval", "1")
    words = (*TWO, *PAIRS, "-rounds", "7", *sprt, "-output", "format=fastchess")
    lines = printed_lines(words, "WBWBWBWBWBWDWB", capsys)
    ratios = [line for line in lines if line.startswith("LLR: ")]
    assert ratios[0] == "LLR: 0.49 (16.9%) (-2.25, 2.89) [0.00, 200.00]"
    assert ratios[5:] == [
        "LLR: 2.78 (96.3%) (-2.25, 2.89) [0.00, 200.00]",
        *["LLR: 3.27 (113.3%) (-2.25, 2.89) [0.00, 200.00]"] * 2,
    ]
    end = lines.index("SPRT ([0.00, 200.00]) completed - H1 was accepted")
    assert (lines[end - 1], lines[end + 1]) == ("-" * 50, "Finished match")


def test_faults_are_told_in_the_words_that_parsers_look_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each fault is named once, so that a worker counts it once; players are listed."""
    words = (*TWO, *PAIRS, "-rounds", "4", "-output", "format=fastchess")
    lines = printed_lines(words, "TXSIRM6D", capsys)
    assert [line for line in lines if line.startswith(("Warning", "Finished game"))] == [
        "Finished game 1 (A vs B): 0-1 {White loses on time (12ms overrun)}",
        "Finished game 2 (B vs A): 0-1 {White disconnects}",
        "Warning; Engine A is not responsive",
        "Finished game 3 (A vs B): 0-1 {White's connection stalls}",
        "Warning; Illegal move a1a8 played by B",
        "Finished game 4 (B vs A): 0-1 {White makes an illegal move}",
        "Finished game 5 (A vs B): 0-1 {Black wins by adjudication}",
        "Finished game 6 (B vs A): 1/2-1/2 {Draw by adjudication}",
        "Finished game 7 (A vs B): 1/2-1/2 {Draw by adjudication: SyzygyTB}",
        "Finished game 8 (B vs A): 1/2-1/2 {Draw by 3-fold repetition}",
    ]
    text = "\n".join(lines)
    assert len(re.findall("disconnect|stall", text)) == 2
    assert len(re.findall("on time|timeout", text)) == 1
    for name, timeouts, crashes in (("A", 1, 1), ("B", 0, 1)):
        assert f"Player: {name}\n  Timeouts: {timeouts}\n  Crashed: {crashes}\n" in text


def test_an_option_that_is_not_there_is_fastchess_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Test farms end a task by these lines; the farm's own notes go to stderr."""
    settings = arguments.read((*TWO, "-output", "format=fastchess"))
    report = peer_reports.of(settings, standings.Standings(["A", "B"]), 1)
    missing = referee_result.Unmet("A", "Threds", "2", options.MISSING)
    report.notes([missing, missing, referee_result.Unmet("B", "Hash", "-1", "lowered"), "a note"])
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "Warning; A doesn't have option Threds",
        "Warning; Invalid value for option Hash; -1",
    ]
    assert err == "Note: a note\n"


def test_the_checksum_of_the_pgn_is_told(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With every game: fishtest's worker reads no further when its test is decided."""
    pgn = tmp_path / "g.pgn"
    pgn.write_bytes(b"123456789")
    words = (*TWO, "-output", "format=fastchess", "-pgnout", f"file={pgn}", "-crc32", "pgn=true")
    lines = printed_lines((*words, "-games", "2"), "WB", capsys)
    assert lines.count(f"File {pgn} has CRC32: 0xcbf43926") == 2


def test_cutechess_prints_scores_ranking_and_outcomes(capsys: pytest.CaptureFixture[str]) -> None:
    """The score after each game; sides, Elo, test and outcomes at the end."""
    words = (*TWO, "-rounds", "5", "-games", "2", "-ratinginterval", "0")
    words = (*words, "-sprt", "elo0=0", "elo1=5", "-output", "format=cutechess")
    lines = printed_lines(words, "WBDDIIWBDD", capsys)
    assert lines[3:6] == [
        "Started game 2 of 10 (B vs A)",
        "Finished game 2 (B vs A): 0-1 {Black mates}",
        "Score of A vs B: 2 - 0 - 0  [1.000] 2",
    ]
    assert "Finished game 5 (A vs B): 0-1 {White makes an illegal move: a1a8}" in lines
    begin = lines.index("...      A playing White: 2 - 1 - 2  [0.600] 5")
    assert lines[begin + 1 : begin + 4] == [
        "...      A playing Black: 3 - 0 - 2  [0.800] 5",
        "...      White vs Black: 2 - 4 - 4  [0.400] 10",
        "Elo difference: 147.2 +/- 197.9, LOS: 94.9 %, DrawRatio: 40.0 %",
    ]
    assert re.fullmatch(r"SPRT: llr \S+ \(\S+%\), lbound -2\.94, ubound 2\.94", lines[begin + 4])
    assert lines[begin + 5 : begin + 8] == ["", "Player: A", '   "Draw by 3-fold repetition": 4']
    assert lines[-1] == "Finished match"


def test_tuners_read_each_games_result_from_cutechess_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As chess-tuning-tools does: what the score grew by is the result of the game told before."""
    words = (*TWO, "-games", "2", "-repeat", "-rounds", "2", "-recover", "-dialect", "cutechess")
    text = "\n".join(printed_lines(words, "WDBD", capsys))
    scores = re.findall(r"Score of.*:\s*([0-9]+)\s-\s([0-9]+)\s-\s([0-9]+)", text)
    counts = [(0, 0, 0), *(tuple(map(int, score)) for score in scores)]
    grown = [tuple(b - a for a, b in itertools.pairwise(one)) for one in zip(*counts, strict=True)]
    games = re.findall(r"Finished game ([0-9]+)", text)
    assert games == ["1", "2", "3", "4"]
    found = list(zip(*grown, strict=True))
    assert found[: len(games)] == [(1, 0, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1)]
    assert set(found[len(games) :]) <= {(0, 0, 0)}  # the score at the end once more


def test_fields_of_three_engines_have_the_peers_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """Columns are as wide as theirs, so that scripts that cut lines find them."""
    field = (*TWO, "-engine", "cmd=true", "name=C", *("-games", "2", "-repeat"))
    lines = printed_lines((*field, "-output", "format=fastchess"), "WWBBDD", capsys)
    rows = [line for line in lines if line[:4].strip().isdigit()]
    assert rows[0] == (
        "   1 A                              -0.00       0.00       -nan       -nan"
        "          4      50.0%     100.0%      [0, 0, 2, 0, 0]"
    )
    lines = printed_lines((*field, "-output", "format=cutechess"), "WWBBDD", capsys)
    assert "Rank Name                          Elo     +/-   Games   Score    Draw " in lines


def test_the_farms_own_table_of_a_field_counts_opponents(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a gauntlet the hub's number is no average of its opponents': one list of all games."""
    field = (*TWO, "-engine", "cmd=true", "name=C", "-tournament", "gauntlet")
    lines = printed_lines((*field, "-games", "2", "-rounds", "2"), "WDWWDDBD", capsys)
    rows = [line.split() for line in lines if line[:4].strip().isdigit()]
    numbers = {row[1]: float(row[2]) for row in rows[-3:]}
    assert sum(numbers.values()) == pytest.approx(0, abs=0.2)
    assert list(numbers.values()) == sorted(numbers.values(), reverse=True)
    assert rows[-1][11] == "-", "nobody is below the last one"


# -- PGN ---------------------------------------------------------------------------------


def game() -> contract.GameRecord:
    """Return a game of a book move and three moves of engines."""
    names = ("A", "B")
    specs = [contract.EngineSpec(id=name, name=name, command=(name,)) for name in names]
    order = contract.GameOrder(
        **dict.fromkeys(("season", "season_name", "event", "event_name", "game"), "m"),
        number=1,
        round="1",
        white=specs[0],
        black=specs[1],
        time_control=contract.TimeControl(base_ms=60_000, increment_ms=100),
        opening=contract.Opening(moves=("f2f3",)),
    )
    plies = [
        ply(2, "e7e5", 450, contract.Score(cp=29), depth=19, seldepth=25, nodes=1234),
        ply(3, "g2g4", 12, contract.Score(mate=-1), depth=7),
        ply(4, "d8h4", 2_500, None),
    ]
    return contract.GameRecord(
        order=order,
        attempt="a",
        started_ms=0,
        ended_ms=1,
        white=contract.EngineReport(),
        black=contract.EngineReport(),
        plies=tuple(plies),
        outcome=verdict.checkmate("white"),
        final_fen="8/8/8/8/8/8/8/K1k5 w - - 0 1",
    )


def ply(
    number: int, move: str, ms: int, score: contract.Score | None, **said: int
) -> contract.PlyRecord:
    """Return a ply that took so long."""
    return contract.PlyRecord(
        ply=number,
        side="black" if number % 2 == 0 else "white",
        move=move,
        san="",
        think_ns=ms * 1_000_000,
        margin_ns=50_000 * 1_000_000,
        overhead_ns=0,
        white_clock_ns=50_100 * 1_000_000,
        black_clock_ns=50_100 * 1_000_000,
        score=score,
        **said,
    )


CUTECHESS = "1. f3 {book} e5 {+0.29/19 0.45s} 2. g4 {-M2/7 0.012s} Qh4# {2.5s, Black mates} 0-1"
FASTCHESS = (
    "1. f3 {book} e5 {+0.29/19 0.450s, n=1234} 2. g4 {-M2/7 0.012s, n=0}"
    " Qh4# {/0 2.500s, n=0, Black mates} 0-1"
)


@pytest.mark.parametrize(
    ("style", "moves"),
    [("cutechess", CUTECHESS), ("fastchess", FASTCHESS)],
)
def test_comments_are_the_other_programs(style: record.Comments, moves: str) -> None:
    """Score, depth and time of the mover, the verdict behind the last; no other comments."""
    text = record.pgn(game(), comments=style, fields={"nodes"})
    assert " ".join(text.split("\n\n")[1].split()) == moves


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (
            "cutechess",
            {
                "M": "Draw by adjudication: maximal game length",
                "T": "White loses on time",
                "6": "Draw by adjudication: SyzygyTB",
                "A": "Draw by adjudication",
                "R": "Black wins by adjudication",
                "I": "White makes an illegal move: a1a8",
            },
        ),
        (
            "fastchess",
            {
                "M": "Draw by adjudication",
                "T": "White loses on time (12ms overrun)",
                "6": "Draw by adjudication: SyzygyTB",
                "A": "Draw by adjudication",
                "R": "Black wins by adjudication",
            },
        ),
    ],
)
def test_the_last_comment_has_the_words_of_the_printed_line(
    program: record.Comments, words: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are what the other program says of such an end: scripts count reasons by either."""
    letters = "".join(words)
    rounds = ("-rounds", str(len(letters)), "-output", f"format={program}")
    lines = printed_lines((*TWO, *rounds), letters, capsys)
    finished_games = [line for line in lines if line.startswith("Finished game")]
    printed = [line.partition("{")[2].removesuffix("}") for line in finished_games]
    commented = [closing_words(outcome_of(letter), program) for letter in letters]
    assert printed == commented == list(words.values())


def test_the_illegal_move_is_in_fastchess_comment_alone() -> None:
    """Its line of the result leaves the move out, since a warning before it has named it."""
    told = "White makes an illegal move: a1a8"
    assert closing_words(outcome_of("I"), "fastchess") == told


def closing_words(outcome: contract.Outcome, program: record.Comments) -> str:
    """Return what follows the last move's time in its comment."""
    text = record.pgn(game().model_copy(update={"outcome": outcome}), comments=program)
    (last,) = re.findall(r"\{[^{}]*2\.50*s, ([^{}]*)\} (?:1-0|0-1|1/2-1/2)$", text.strip())
    return str(last)


def test_no_line_ends_within_a_comment() -> None:
    """Scripts read a move and its comment from one line, as the other programs write them."""
    fields = {"nodes", "seldepth", "nps", "hashfull", "tbhits", "timeleft", "pv"}
    text = record.pgn(game(), comments="fastchess", fields=fields)
    lines = text.split("\n\n")[1].splitlines()
    assert len(lines) > 2
    assert all(line.count("{") == line.count("}") for line in lines)
    assert all(len(line) <= record.COLUMNS or line.count("{") == 1 for line in lines)


def test_engines_with_one_clock_and_other_limits_keep_the_tag_of_the_clock() -> None:
    """OpenBench's client looks for TimeControl; the limits are in each side's own tag."""
    played = game()
    limited = contract.TimeControl(base_ms=60_000, increment_ms=100, nodes=9)
    black = played.order.black.model_copy(update={"time_control": limited})
    order = played.order.model_copy(update={"black": black})
    tags = record.tags(played.model_copy(update={"order": order}))
    assert tags["TimeControl"] == tags["WhiteTimeControl"] == "60+0.1"
    assert tags["BlackTimeControl"] == "60+0.1 nodes=9"


def test_comments_follow_the_output_unless_they_are_named() -> None:
    """``comments=`` decides; else a script that asks for fastchess' lines has its PGN, too."""
    styles = {
        (): "tcec",
        ("-output", "format=fastchess"): "fastchess",
        ("-output", "format=cutechess"): "cutechess",
        ("-output", "format=fastchess", "-pgnout", "file=g.pgn", "comments=tcec"): "tcec",
        ("-pgnout", "file=g.pgn", "comments=cutechess"): "cutechess",
    }
    for words, style in styles.items():
        assert arguments.read((*TWO, *words)).comment_style == style
