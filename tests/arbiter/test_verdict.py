"""The words of every ending, as statistics and viewers match on them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.arbiter import score, verdict

WORDS = [
    (verdict.checkmate("black"), "1-0", "White mates", None, "White mates"),
    (verdict.checkmate("white"), "0-1", "Black mates", None, "Black mates"),
    (verdict.stalemate(), "1/2-1/2", "Stalemate", None, "Draw by stalemate"),
    (
        verdict.insufficient(),
        "1/2-1/2",
        "Insufficient material",
        None,
        "Draw by insufficient mating material",
    ),
    (verdict.fifty_moves(), "1/2-1/2", "Fifty moves rule", None, "Draw by fifty moves rule"),
    (verdict.threefold(), "1/2-1/2", "3-Fold repetition", None, "Draw by 3-fold repetition"),
    (verdict.time("black"), "1-0", "Black loses on time", "time forfeit", "Black loses on time"),
    (verdict.disconnect("white"), "0-1", "White disconnects", "abandoned", "White disconnects"),
    (
        verdict.stall("white", "no readyok"),
        "0-1",
        "White's connection stalls",
        "stalled connection",
        "White's connection stalls",
    ),
    (
        verdict.illegal("white", "a1a1"),
        "0-1",
        "White makes an illegal move",
        "illegal move",
        "White makes an illegal move: a1a1",
    ),
    (verdict.resign("white"), "0-1", "White resigns", None, "White resigns"),
    (
        verdict.false_claim("black", "0-1 {Black mates}"),
        "1-0",
        "Black makes a false claim",
        "rules infraction",
        "Black makes a false claim: 0-1 {Black mates}",
    ),
    (
        verdict.tablebase("black"),
        "1-0",
        "SyzygyTB",
        "adjudication",
        "White wins by adjudication: SyzygyTB",
    ),
    (
        verdict.tablebase(None),
        "1/2-1/2",
        "SyzygyTB",
        "adjudication",
        "Draw by adjudication: SyzygyTB",
    ),
    (
        verdict.eval_draw(),
        "1/2-1/2",
        "TCEC draw rule",
        "adjudication",
        "Draw by adjudication: TCEC draw rule",
    ),
    (
        verdict.few_pieces_draw(),
        "1/2-1/2",
        "TCEC draw rule",
        "adjudication",
        "Draw by adjudication: TCEC draw rule",
    ),
    (
        verdict.eval_win("white"),
        "0-1",
        "TCEC win rule",
        "adjudication",
        "Black wins by adjudication: TCEC win rule",
    ),
    (
        verdict.max_moves(),
        "1/2-1/2",
        "TCEC max moves rule",
        "adjudication",
        "Draw by adjudication: TCEC max moves rule",
    ),
    (
        verdict.interrupted("black", "evals"),
        "1-0",
        "Interruption rule",
        "adjudication",
        "White wins by adjudication: Interruption rule",
    ),
    (
        verdict.score_draw(),
        "1/2-1/2",
        "Draw by adjudication",
        "adjudication",
        "Draw by adjudication",
    ),
    (
        verdict.score_resign("black"),
        "1-0",
        "White wins by adjudication",
        "adjudication",
        "White wins by adjudication",
    ),
    (verdict.agreement(), "1/2-1/2", "Draw by agreement", None, "Draw by agreement"),
]


@pytest.mark.parametrize(("outcome", "result", "details", "tag", "sentence"), WORDS)
def test_every_ending_has_its_words(
    outcome: contract.Outcome, result: str, details: str, tag: str | None, sentence: str
) -> None:
    """Result, details, Termination tag and closing sentence are those of docs/rules."""
    assert (outcome.result, outcome.details) == (result, details)
    assert (verdict.termination(outcome), verdict.sentence(outcome)) == (tag, sentence)


def test_no_ending_is_without_words() -> None:
    """The table above holds every ending that a referee can give; organizers use their own."""
    given = set(contract.Ending) - {contract.Ending.ORGANIZERS}
    assert {row[0].ending for row in WORDS} == given, "its row in WORDS above; arbiter/verdict.py"


def test_only_disconnect_and_stall_are_crashes() -> None:
    """A time loss and an illegal move are plain losses (S16-15c as practised)."""
    crashes = {row[0].ending for row in WORDS if verdict.is_crash(row[0])}
    assert crashes == {contract.Ending.DISCONNECT, contract.Ending.STALL}


@given(st.text())
def test_what_an_engine_wrote_instead_of_a_move_stays_one_short_line(text: str) -> None:
    """The move's text is kept printable and bounded, whatever the engine wrote."""
    note = verdict.illegal("black", text).note
    assert len(note) <= 60
    assert note.isprintable()


@pytest.mark.parametrize(
    ("given_score", "mover", "shown"),
    [
        (contract.Score(cp=0), "black", "0.00"),
        (contract.Score(cp=8), "black", "-0.08"),
        (contract.Score(cp=-1234), "black", "12.34"),
        (contract.Score(cp=-21929), "white", "-219.29"),
        (contract.Score(mate=3), "white", "M5"),
        (contract.Score(mate=-6), "white", "-M12"),
        (contract.Score(mate=3), "black", "-M5"),
        (contract.Score(mate=-6), "black", "M12"),
        (contract.Score(mate=0), "black", "M0"),
        (contract.Score(), "white", ""),
    ],
)
def test_scores_are_shown_from_whites_side(
    given_score: contract.Score, mover: contract.Side, shown: str
) -> None:
    """Pawns with two decimals, mates in plies, never a minus zero, never a mate from pawns."""
    assert score.text(given_score, mover) == shown


@given(st.integers(-30_000, 30_000), st.sampled_from(["white", "black"]))
def test_turning_a_score_twice_gives_it_back(cp: int, mover: contract.Side) -> None:
    """White's view of White's view is the same score, and it favours the same side."""
    own = contract.Score(cp=cp)
    white = score.white_view(own, mover)
    assert score.white_view(white, mover) == own
    assert score.favours(white, "white") == score.favours(own, mover)
