"""Hints of the audit: one sentence for many disagreements of one cause."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import click.testing
import pytest

from orchestrator import commands

HEAD = '[Event "e"]\n[White "A"]\n[Black "B"]\n[Result "1-0"]\n[SetUp "1"]\n'
FEW_MEN = '[FEN "7k/8/4K3/8/8/8/8/6Q1 w - - 0 1"]\n'
TABLES = '[TerminationDetails "TB position"]\n'
MATED = f"{HEAD}{FEW_MEN}\n1. Kf7 Kh7 2. Qh1# {{White mates}} 1-0\n\n"
BY_TABLES = f"{HEAD}{FEW_MEN}{TABLES}\n1. Kf7 1-0\n\n"
BY_TABLES_LATE = f"{HEAD}{FEW_MEN}{TABLES}\n1. Kf7 Kh7 2. Kf6 1-0\n\n"


def audit(path: pathlib.Path, text: str, *options: str) -> tuple[dict[str, int] | None, str]:
    """Return the hint of ``farm audit --rules s17`` on a text, and what it says in words."""
    path.write_text(text)
    runner, words = click.testing.CliRunner(), ["audit", str(path), "--rules", "s17", *options]
    told: dict[str, Any] = json.loads(runner.invoke(commands.farm, [*words, "--json"]).output)
    return told["tablebase_hint"], runner.invoke(commands.farm, words).output


def test_a_season_without_tables_is_told_of_the_option_once(tmp_path: pathlib.Path) -> None:
    """Where no game ended by a tablebase and some should have, --no-tablebase is named."""
    hint, words = audit(tmp_path / "g.pgn", 3 * MATED)
    assert hint == {"recorded": 0, "missed": 3, "agree": 3}
    assert words.count("--no-tablebase") == 1
    hint, words = audit(tmp_path / "g.pgn", 3 * MATED, "--no-tablebase")
    assert hint is None
    assert "hint" not in words


def test_tables_of_fewer_men_are_hinted_at_too(tmp_path: pathlib.Path) -> None:
    """Where some games did end by a tablebase, others may have had more men than its files."""
    hint, words = audit(tmp_path / "g.pgn", BY_TABLES + MATED)
    assert hint == {"recorded": 1, "missed": 1, "agree": 1}
    assert "--tb-men" in words


@pytest.mark.parametrize("text", [BY_TABLES, BY_TABLES + BY_TABLES_LATE])
def test_no_hint_is_given_where_it_would_not_help(tmp_path: pathlib.Path, text: str) -> None:
    """Neither where tables ended what they should, nor where the miss stays without them."""
    hint, words = audit(tmp_path / "g.pgn", text)
    assert hint is None
    assert "hint" not in words
