"""Limits: what option names mean, and which settings of an author break a limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.engines import limits

# Names of TCEC's public archive and of Debian's engines.
NAMES = {
    limits.Role.THREADS: ["Threads", "SMP Threads", "CPUs", "Number of Threads", "cores"],
    limits.Role.HASH: ["Hash", "hash", "Main Hash Size", "memory"],
    limits.Role.MINOR_HASH: [
        *("Pawn Hash", "PawnHash", "MCTS Hash", "Table Memory", "Thread Memory (MB)"),
        *("Eval Cache", "NNUE Cache", "EvalHash", "Pawn Hash KB"),
    ],
    limits.Role.TABLEBASE_CACHE: ["NalimovCache", "GaviotaTbCache", "Bitbases Cache Size"],
    limits.Role.SYZYGY: ["SyzygyPath", "SyzygyTbPath", "wdlPath", "dtzPath", "egtpath syzygy"],
    limits.Role.NALIMOV: ["NalimovPath"],
    limits.Role.GAVIOTA: ["GaviotaTbPath"],
    limits.Role.SCORPIO: ["Bitbases Path", "EGBB Path"],
    limits.Role.OWN_BOOK: ["OwnBook", "UseBook", "Fallback to Internal Book", "Use Own Book"],
    limits.Role.OPPONENT: ["UCI_Opponent", "UCI_RatingAdv"],
    limits.Role.SHOW_WDL: ["UCI_ShowWDL"],
    limits.Role.PONDER: ["Ponder"],
    limits.Role.LARGE_PAGES: ["Use Large Pages", "LargePages"],
    limits.Role.KEEP_HASH: ["Never Clear Hash", "Keep Hash Tables", "Preserve Analysis"],
    limits.Role.CHESS960: ["UCI_Chess960"],
    limits.Role.CONTEMPT: ["Contempt", "ContemptDrawPenalty", "Analysis Contempt"],
    limits.Role.SPLIT_DEPTH: ["Minimum Split Depth", "Split Depth"],
    limits.Role.OTHER: [
        *("Clear Hash", "Maximum Number of Threads per Split Point", "Threads per GPU"),
        *("NNCacheSize", "Cache", "BackendOptions", "SyzygyProbeDepth", "SyzygyMen", "Style"),
        *("BookFile", "Book File", "Move Overhead", "RamLimitMb", "King Safety", "Material"),
        *("Pawn Structure", "GPUCores", "MultiPV", "Use NNUE", "EvalFile", "NNUE file", ""),
    ],
}
TIGHT = contract.Limits(threads=4, hash_mb=64, minor_hash_mb=32, tablebase_cache_mb=16)


@pytest.mark.parametrize(
    ("role", "name"), [(role, name) for role, names in NAMES.items() for name in names]
)
def test_a_name_has_its_role(role: limits.Role, name: str) -> None:
    """Each real name of an option means to the rules what it means to its author."""
    assert limits.role(name) is role


@given(st.text(max_size=40))
def test_any_name_has_one_role_in_any_case(name: str) -> None:
    """Case, blanks and hyphens of ASCII names never change a role; nothing raises."""
    assert limits.role(name) in limits.Role
    ascii_name = name.encode("ascii", "ignore").decode()
    assert limits.role(ascii_name.upper()) is limits.role(f" {ascii_name.lower()}-")


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [
        ("Threads", 5, "4 threads or less"),
        ("SMP Threads", "many", "a whole number, 4 threads or less"),
        ("Hash", 65, "64 MB or less"),
        ("Pawn Hash", 33, "32 MB together or less (minor hashes)"),
        ("Pawn Hash KB", 33 * 1024, "32 MB together or less (minor hashes)"),
        ("NalimovCache", 17, "16 MB together or less (tablebase cache)"),
        ("OwnBook", True, "false (own book off)"),
        ("Ponder", "true", "false (pondering off)"),
        ("Large Pages", True, "false (large pages off)"),
        ("UCI_Chess960", True, "the farm sets it, as the game is"),
    ],
)
def test_a_breach_names_option_value_and_limit(
    name: str, value: str | int | bool, limit: str
) -> None:
    """One step beyond a limit is named with the option, its value and the limit."""
    (breach,) = limits.breaches({name: value}, TIGHT)
    assert breach == limits.Breach(name, limits.text(value), limit)


def test_what_is_within_the_limits_is_no_breach() -> None:
    """The limits themselves, and all that no rule limits, are allowed."""
    author = {
        "Threads": 4,
        "Hash": 64,
        "PawnHash": 20,
        "Eval Cache": 12,
        "NalimovCache": 16,
        "OwnBook": False,
        "Ponder": "False".lower(),
        "Contempt": 30,
        "Style": "wild",
    }
    assert not list(limits.breaches(author, TIGHT))


def test_minor_hashes_are_counted_together() -> None:
    """Two tables that are each within the limit break it together, and both are named."""
    (breach,) = limits.breaches({"PawnHash": 20, "EvalHash": 13}, TIGHT)
    assert (breach.name, breach.value) == ("PawnHash + EvalHash", "20 + 13")


def test_a_restricted_event_leaves_authors_split_depth_and_keep_hash() -> None:
    """N1: contempt and all other settings stay at their defaults."""
    n1 = TIGHT.model_copy(update={"author_settings": "restricted"})
    author = {"Contempt": 5, "Split Depth": 8, "Never Clear Hash": True, "Threads": 2, "Style": "x"}
    assert [breach.name for breach in limits.breaches(author, n1)] == ["Contempt", "Style"]


def test_a_free_match_has_no_limits() -> None:
    """``farm match`` judges no author's setting."""
    assert not list(limits.breaches({"Threads": 999}, contract.Limits(free=True)))


def test_settings_of_an_event_replace_options_of_the_same_name() -> None:
    """Names match in any case; what is new comes last."""
    merged = limits.merged({"hash": 16, "Style": "a"}, {"Hash": 32, "New": True})
    assert list(merged.items()) == [("Hash", 32), ("Style", "a"), ("New", True)]
