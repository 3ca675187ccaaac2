"""The rules that end games early: thresholds, resets, order, clocks."""

from __future__ import annotations

import archive
import chess
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.arbiter.adjudication import judge, presets
from orchestrator.contract import Ending

QUIET = "4k3/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR {} - - {} 1"
FEW = "4k3/8/8/8/8/3PPP2/8/RRB1K3 {} - - {} 1"  # five pieces with the kings
MANY = "4k3/8/8/8/8/3PPP2/8/RRBQK2N {} - - {} 1"  # seven
NO_EVAL = None


class Game:
    """Plies made of a score and a kind of move, fed to a judge one after the other."""

    def __init__(self, rules: contract.Adjudication, first_ply: int = 1, fen: str = QUIET) -> None:
        self.judge = judge.Judge(rules)
        self.ply, self.fen = first_ply - 1, fen

    def play(
        self, score: int | contract.Score | None, *, zeroing: bool = False, fen: str = ""
    ) -> judge.Ruling:
        """Feed one ply; a number is centipawns in White's view."""
        self.ply += 1
        white = self.ply % 2 == 1
        board = chess.Board((fen or self.fen).format("b" if white else "w", 0 if zeroing else 9))
        if isinstance(score, int):
            score = contract.Score(cp=score if white else -score)
        return self.judge.take(board, self.ply, score)

    def until(self, score: int | contract.Score | None, limit: int = 300) -> int:
        """Repeat a ply until the game ends; return the ply."""
        while self.ply < limit:
            if self.play(score).outcome:
                return self.ply
        pytest.fail(f"no end within {limit} plies")


S16 = presets.PRESETS["s16"].model_copy(update={"syzygy": None})
CUP = presets.PRESETS["cup"].model_copy(update={"syzygy": None})
UCI_DRAW = contract.Adjudication(draw=contract.MovesDraw(move_number=35, move_count=5, score_cp=8))


# -- the draw rule ------------------------------------------------------------------------


def test_the_draw_rule_waits_for_move_35_and_counts_before_it() -> None:
    """A row that begins at ply 61 is complete at ply 70; one at ply 1 waits until then."""
    assert Game(S16, 61).until(8) == 70
    assert Game(S16, 1).until(-8) == 70
    assert Game(S16, 62).until(0) == 71
    assert Game(presets.PRESETS["ntcec1"], 1).until(5) == 82


@pytest.mark.parametrize(("rules", "end"), [(S16, 76), (UCI_DRAW, 75)])
def test_a_pawn_move_begins_the_row_anew(rules: contract.Adjudication, end: int) -> None:
    """TCEC does not count the zeroing ply itself, cutechess does."""
    game = Game(rules, 61)
    for _ in range(5):
        assert game.play(0).outcome is None
    assert game.play(0, zeroing=True).outcome is None
    assert game.until(0) == end


@pytest.mark.parametrize("score", [9, -9, NO_EVAL, contract.Score(mate=40), contract.Score()])
def test_what_is_not_inside_the_bound_breaks_the_row(score: int | contract.Score | None) -> None:
    """An eval of 0.09, a mate score and no eval at all set the count to 0."""
    game = Game(S16, 100)
    for _ in range(9):
        game.play(8)
    assert game.play(score).counters.plies_to_draw == 10
    assert game.until(8) == 119


def test_the_new_draw_rule_counts_through_captures_and_pawn_moves() -> None:
    """Eight plies with six pieces or fewer within 0.25, at any move number, are a draw."""
    game = Game(CUP, 3, FEW)
    for _ in range(7):
        assert game.play(25, zeroing=True).outcome is None
    found = game.play(-25).outcome
    assert found == verdict.few_pieces_draw()
    assert (game.ply, found.details) == (10, "TCEC draw rule")


@pytest.mark.parametrize("score", [26, -26, NO_EVAL])
def test_the_new_draw_rule_starts_again_without_an_eval_in_range(score: int | None) -> None:
    """0.26, and a missing eval, restart the count."""
    game = Game(CUP, 1, FEW)
    for _ in range(7):
        game.play(0)
    assert game.play(score).counters.plies_to_draw == 8
    assert game.until(0) == 16


def test_a_promotion_to_a_seventh_piece_starts_the_new_draw_rule_again() -> None:
    """Too many pieces never count, and the printed clock stands idle then."""
    game = Game(CUP, 1, FEW)
    for _ in range(7):
        game.play(0)
    counters = game.play(0, fen=MANY).counters
    assert (counters.plies_to_draw, counters.rd) == (8, -9)
    assert Game(CUP, 1, FEW).until(0) == 8


def test_a_limit_of_pawns_belongs_to_the_new_draw_rule_where_it_is_set() -> None:
    """FRC5 played with at most eight pieces and eight pawns."""
    few = contract.FewPiecesDraw(pieces=8, pawns=2, bound_cp=20, plies=2)
    assert Game(contract.Adjudication(few_pieces_draw=few), 1, FEW).play(0).counters.rd == -3
    few = few.model_copy(update={"pawns": 3})
    assert Game(contract.Adjudication(few_pieces_draw=few), 1, FEW).until(0) == 2


# -- the win rule -------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
def test_the_win_rule_needs_both_engines_ten_plies_long(sign: int) -> None:
    """White from move 40, Black from move 41: the game ends after Black's 45th move."""
    game = Game(S16, 79)
    game.play(1000 * sign)
    game.play(999 * sign)
    assert game.until(1000 * sign) == 90
    assert game.play(1000 * sign).outcome == verdict.eval_win("black" if sign > 0 else "white")


def test_the_win_rule_is_not_reset_by_captures_and_knows_no_first_move() -> None:
    """Zeroing plies count, and so do mate scores."""
    game = Game(S16)
    for ply in range(1, 10):
        mates = contract.Score(mate=5 if ply % 2 else -5)
        assert game.play(mates, zeroing=True).outcome is None
    assert game.play(2000).outcome == verdict.eval_win("black")


@pytest.mark.parametrize("score", [999, -1000, NO_EVAL, contract.Score()])
def test_what_claims_no_win_for_the_same_side_breaks_the_row(
    score: int | contract.Score | None,
) -> None:
    """9.99 and a missing eval are no claims; a claim for the other side begins its own row."""
    game = Game(S16, 101)
    for _ in range(9):
        game.play(1000)
    counters = game.play(score).counters
    assert counters.plies_to_win == (9 if score == -1000 else 10)
    assert game.until(1000) == 120


def test_captures_reset_the_win_rule_where_the_event_says_so() -> None:
    """The reset rule is a parameter of the event."""
    win = contract.EvalWin(bound_cp=500, plies=2, zeroing="reset")
    game = Game(contract.Adjudication(eval_win=win))
    game.play(500)
    assert game.play(500, zeroing=True).outcome is None
    assert game.until(500) == 4


# -- cutechess' -draw and -resign, the maximum of moves -------------------------------------


@pytest.mark.parametrize(("twosided", "end"), [(False, 6), (True, 8)])
def test_resign_counts_each_sides_own_moves(*, twosided: bool, end: int) -> None:
    """Three lost scores of Black's end the game; two-sided, White's third win comes first."""
    rule = contract.MovesResign(move_count=3, score_cp=700, twosided=twosided)
    game = Game(contract.Adjudication(resign=rule))
    for number in range(1, 9):
        white = 700 if number > 2 else 699
        ruling = game.play(white if number % 2 else 700)
        if ruling.outcome:
            break
    assert (game.ply, ruling.outcome) == (end, verdict.score_resign("black"))


def test_a_winners_score_alone_ends_nothing() -> None:
    """One-sided resignation looks at the loser's scores, on the loser's moves."""
    rule = contract.MovesResign(move_count=1, score_cp=500)
    game = Game(contract.Adjudication(resign=rule))
    assert game.play(900).outcome is None
    assert game.play(NO_EVAL).outcome is None
    assert game.play(-500).outcome == verdict.score_resign("white")


def test_the_longest_game_ends_after_so_many_moves_of_both() -> None:
    """A game of 40 moves at most is drawn at ply 80, if nothing else applies there."""
    game = Game(contract.Adjudication(max_moves=40), 70)
    assert game.until(300) == 80
    both = S16.model_copy(update={"max_moves": 35})
    game = Game(both, 60)
    for _ in range(10):
        game.play(0)
    assert game.play(0).outcome == verdict.eval_draw()


def test_without_rules_nothing_ends_and_nothing_counts() -> None:
    """The defaults are no rules; only the fifty-move clock runs."""
    ruling = Game(contract.Adjudication()).play(0)
    assert ruling == (None, contract.Counters(moves_to_fifty=45))


# -- clocks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "rds"), [(20, [-10, -9, -8]), (69, [9, 8, 7]), (55, [-10, -9, -8, -7, -6, -5])]
)
def test_rd_is_negative_while_it_would_come_too_early(first: int, rds: list[int]) -> None:
    """The printed draw clock is that of TCEC's viewers, -11 when idle."""
    game = Game(S16, first - 1)
    assert game.play(50).counters.rd == -11
    assert [game.play(0).counters.rd for _ in rds] == rds


def test_rr_counts_down_to_zero() -> None:
    """The printed win clock is -11 when idle, 9 after the first claim, 0 at the end."""
    game = Game(S16)
    assert game.play(0).counters.rr == -11
    assert [game.play(1500).counters.rr for _ in range(10)] == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]


RULES = {
    "s16": S16,
    "cup": CUP,
    "cutechess": UCI_DRAW.model_copy(
        update={"resign": contract.MovesResign(move_count=4, score_cp=600, twosided=True)}
    ),
    "one-sided": contract.Adjudication(resign=contract.MovesResign(move_count=3, score_cp=400)),
}
SCORES = st.sampled_from([0, 8, -8, 25, 30, 450, 650, 1200, -450, -1200, None])


@given(
    st.sampled_from(sorted(RULES)),
    st.lists(st.tuples(SCORES, st.booleans())),
    st.integers(1, 90),
    st.sampled_from([0, 1500, -1500]),
)
@example("s16", [(1200, False)] * 12, 1, 0)
@example("cutechess", [(0, False)] * 12, 75, 0)
def test_the_clocks_say_the_truth(
    name: str, past: list[tuple[int | None, bool]], first: int, future: int
) -> None:
    """If all goes on alike, the game ends exactly when the clocks have said."""
    game = Game(RULES[name], first, FEW)
    for score, zeroing in past:
        if (ruling := game.play(score, zeroing=zeroing)).outcome:
            assert 0 in (ruling.counters.plies_to_draw, ruling.counters.plies_to_win)
            return
    if any(game.play(future).outcome for _ in range(2)):
        return
    kind = "plies_to_win" if future else "plies_to_draw"
    left = getattr(game.play(future).counters, kind)
    promised = [getattr(game.play(future).counters, kind) for _ in range(left or 0)]
    assert promised == list(range((left or 0) - 1, -1, -1))


@pytest.mark.parametrize(
    ("without", "ending"),
    [
        ((), Ending.SYZYGY),
        (("syzygy",), Ending.EVAL_DRAW),
        (("syzygy", "eval_draw"), Ending.EVAL_WIN),
        (("syzygy", "eval_draw", "eval_win"), Ending.MAX_MOVES),
        (("syzygy", "eval_draw", "eval_win", "max_moves"), None),
    ],
)
def test_the_first_rule_that_applies_names_the_result(
    without: tuple[str, ...], ending: Ending | None
) -> None:
    """On one ply: tablebases, draw rule, win rule, maximum of moves."""
    rules = contract.Adjudication(
        syzygy=contract.Syzygy(),
        eval_draw=contract.EvalDraw(bound_cp=500, plies=1, zeroing="ignore"),
        eval_win=contract.EvalWin(bound_cp=500, plies=1),
        max_moves=1,
    ).model_copy(update=dict.fromkeys(without))
    board = chess.Board("8/8/8/3k4/8/8/8/K6Q b - - 9 80")
    found = judge.Judge(rules, archive.Known("1-0")).take(board, 5, contract.Score(cp=500))
    assert (found.outcome and found.outcome.ending) == ending
