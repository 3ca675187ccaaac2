"""Options: the event's limits are set, lowered where needed, and recorded."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from types import MappingProxyType

import hall
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from worker_cpu.protocols import option_policy, options, uci

STOCKFISH = (
    uci.Option("Debug Log File", "string", ""),
    uci.Option("Hash", "spin", "16", 1, 1024),
    uci.Option("Threads", "spin", "1", 1, 8),
    uci.Option("Clear Hash", "button"),
    uci.Option("Ponder", "check", "false"),
    uci.Option("OwnBook", "check", "true"),
    uci.Option("Style", "combo", "Solid", choices=("Solid", "Risky")),
    uci.Option("SyzygyPath", "string", "<empty>"),
    uci.Option("UCI_Chess960", "check", "false"),
)


def plan_of(
    offered: tuple[uci.Option, ...] = STOCKFISH,
    variant: str = "standard",
    limits: contract.Limits | None = None,
    author: Mapping[str, str | int | bool] = MappingProxyType({}),
) -> options.Plan:
    """Plan an engine's options with limits beyond what it can take."""
    limits = limits or contract.Limits(threads=16, hash_mb=512, syzygy_path="/tb")
    spec = contract.EngineSpec(id="x", name="X", command=("x",), options=author)
    order = hall.order(spec, spec, limits=limits, variant=variant)
    return options.plan(offered, order, spec)


def setting(plan: options.Plan, name: str) -> contract.OptionSetting:
    """Return the one record of an option."""
    (found,) = [setting for setting in plan.settings if setting.name == name]
    return found


def test_limits_come_first_and_threads_before_all() -> None:
    """Threads, Hash and tablebases are set in this order, then books and pondering off."""
    assert plan_of().commands == (
        b"setoption name Threads value 8\n",
        b"setoption name Hash value 512\n",
        b"setoption name SyzygyPath value /tb\n",
        b"setoption name OwnBook value false\n",
        b"setoption name Ponder value false\n",
    )


def test_a_limit_beyond_the_engines_is_lowered_and_recorded() -> None:
    """The record says what was asked, what is offered, what was set and why."""
    assert setting(plan_of(), "Threads") == contract.OptionSetting(
        name="Threads",
        asked="16",
        offered="spin 1..8, default 1",
        set="8",
        remark="lowered to the engine's maximum 8",
    )


def test_an_option_the_engine_lacks_is_recorded_and_not_sent() -> None:
    """Nothing is sent for it; the record says so."""
    plan = plan_of(offered=(), author={"Skill": 3})
    assert plan.commands == ()
    assert [s.name for s in plan.settings] == ["Threads", "Hash", "SyzygyPath", "Skill"]
    assert {s.remark for s in plan.settings} == {"engine has no such option"}


def test_author_options_are_set_in_their_order_by_the_engines_spelling() -> None:
    """Names match in any case; buttons are pressed; choices are checked; empties written."""
    plan = plan_of(author={"style": "risky", "clear hash": True, "Debug Log File": ""})
    assert plan.commands[-3:] == (
        b"setoption name Style value Risky\n",
        b"setoption name Clear Hash\n",
        b"setoption name Debug Log File value <empty>\n",
    )
    assert setting(plan_of(author={"Style": "wild"}), "Style").set is None


def test_the_event_wins_over_an_author() -> None:
    """An author cannot raise the limits or open an own book."""
    plan = plan_of(author={"Threads": 8, "OwnBook": True})
    assert b"OwnBook value true" not in b"".join(plan.commands)
    assert [s.remark for s in plan.settings if s.name == "OwnBook"] == [
        "",
        "the event sets this option",
    ]


def test_fischerandom_is_told_to_the_engine() -> None:
    """Chess960 is switched on for that variant only."""
    command = b"setoption name UCI_Chess960 value true\n"
    assert command in plan_of(variant="fischerandom").commands
    assert command not in plan_of().commands


@given(
    lines=st.lists(st.binary(max_size=80).map(lambda tail: b"option name A type spin " + tail)),
    value=st.text(max_size=20) | st.integers() | st.booleans(),
)
def test_any_offer_and_any_value_give_one_line_each(
    lines: list[bytes], value: str | int | bool
) -> None:
    """Whatever is offered and asked, every command is exactly one line."""
    offered = tuple(option for line in lines if (option := uci.option(line)) is not None)
    plan = plan_of(offered=offered, author={"A": value})
    assert all(c.endswith(b"\n") and c.count(b"\n") == 1 for c in plan.commands)
    assert all(s.set is not None or s.remark for s in plan.settings)


# -- all limits of the rule texts -------------------------------------------------------------

OLD_TIMER = (
    uci.Option("Number of Threads", "spin", "1", 1, 16),
    uci.Option("Hash", "combo", "16", choices=("16", "64", "256", "1024")),
    uci.Option("Pawn Hash", "spin", "64", 1, 4096),
    uci.Option("Eval Cache KB", "spin", "32768", 0, 1 << 22),
    uci.Option("NalimovPath", "string", ""),
    uci.Option("NalimovCache", "spin", "1", 1, 256),
    uci.Option("GaviotaTbPath", "string", ""),
    uci.Option("Bitbases Path", "string", "/usr/share/egbb/"),
    uci.Option("Use Large Pages", "check", "true"),
    uci.Option("Never Clear Hash", "check", "false"),
    uci.Option("Contempt", "spin", "12", -100, 100),
    uci.Option("Split Depth", "spin", "12", 4, 99),
    uci.Option("Fallback to Internal Book", "check", "true"),
)
N1 = contract.Limits(
    threads=16,
    hash_mb=800,
    minor_hash_mb=1024,
    tablebase_cache_mb=1024,
    nalimov_path="/nalimov",
    gaviota_path="/gaviota",
    tablebases="one",
    author_settings="restricted",
)


def test_every_limit_is_set_by_the_engines_own_names() -> None:
    """Threads, hash, caches, paths and switches are found whatever they are called."""
    plan = plan_of(OLD_TIMER, limits=N1, author={"Split Depth": 8, "Contempt": 50})
    assert [command.decode().split(" ", 2)[2].strip() for command in plan.commands] == [
        "Number of Threads value 16",
        "Hash value 256",
        "NalimovCache value 256",
        "NalimovPath value /nalimov",
        "Fallback to Internal Book value false",
        "Use Large Pages value false",
        "Never Clear Hash value true",
        "Split Depth value 8",
    ]
    remarks = {setting.name: setting.remark for setting in plan.settings if setting.remark}
    assert remarks == {
        "Hash": "lowered to the engine's next choice",
        "Pawn Hash": "within 1024 MB together",
        "Eval Cache KB": "within 1024 MB together",
        "GaviotaTbPath": "one kind an engine: Nalimov path",
        "Contempt": "the event leaves this at its default",
    }


def test_an_author_may_ask_for_less_but_not_for_more() -> None:
    """Below a limit the author's value is set; above it the limit, with a remark."""
    limits = contract.Limits(threads=4, hash_mb=64)
    less = plan_of(limits=limits, author={"Threads": 2, "Hash": "32"})
    assert (setting(less, "Threads").set, setting(less, "Hash").set) == ("2", "32")
    more = setting(plan_of(limits=limits, author={"Hash": 128}), "Hash")
    assert (more.asked, more.set) == ("128", "64")
    assert more.remark == "lowered to the event's limit 64 MB"


def test_minor_hashes_too_large_together_are_lowered_in_proportion() -> None:
    """64 MB and 32 MB (in KB) within 24 MB become 16 MB and 8 MB, each in its own unit."""
    plan = plan_of(OLD_TIMER, limits=contract.Limits(minor_hash_mb=24))
    pawn, evals = setting(plan, "Pawn Hash"), setting(plan, "Eval Cache KB")
    assert (pawn.asked, pawn.set) == ("64", "16")
    assert (evals.asked, evals.set) == ("32768", "8192")
    assert pawn.remark == "96 MB together; lowered to 24 MB"


SIZES = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 1 << 10)), max_size=8)


@given(sizes=SIZES, limit=st.integers(0, 1 << 20))
def test_sizes_are_fitted_into_any_limit(sizes: list[tuple[int, int]], limit: int) -> None:
    """The sum is within the limit (or all are at their floors), and nothing ever grows."""
    floors = [floor for _, floor in sizes]
    fitted = option_policy.fit([size for size, _ in sizes], floors, limit)
    assert sum(fitted) <= limit or fitted == floors
    assert all(
        floor <= f <= max(size, floor) for f, (size, floor) in zip(fitted, sizes, strict=True)
    )


@given(
    offered=st.lists(
        st.builds(
            uci.Option,
            name=st.sampled_from(
                ["Pawn Hash", "Eval Hash", "MCTS Hash", "King Table", "NNUE Cache"]
            ),
            type=st.just("spin"),
            default=st.integers(1, 5000).map(str),
            min=st.just(1),
            max=st.just(8192),
        ),
        unique_by=lambda option: option.name,
    ),
    author=st.dictionaries(st.sampled_from(["Pawn Hash", "Eval Hash"]), st.integers(1, 9000)),
    limit=st.integers(8, 4096),
)
def test_minor_hashes_stay_within_their_limit(
    offered: list[uci.Option], author: dict[str, int], limit: int
) -> None:
    """Whatever is offered and asked: what the engine has afterwards fits together."""
    plan = plan_of(tuple(offered), limits=contract.Limits(minor_hash_mb=limit), author=author)
    sizes = {option.name: int(option.default or 0) for option in offered}
    sizes |= {s.name: int(s.set) for s in plan.settings if s.name in sizes and s.set is not None}
    assert sum(sizes.values()) <= limit


def test_a_free_match_sets_only_what_authors_ask_for() -> None:
    """``farm match`` behaves as other match runners: no limit, no switch, Threads first."""
    plan = plan_of(limits=contract.Limits(free=True), author={"Hash": 4, "threads": 2})
    assert plan.commands == (
        b"setoption name Threads value 2\n",
        b"setoption name Hash value 4\n",
    )


def test_xboard_engines_have_the_same_limits() -> None:
    """Features and options are set by CECP's commands; checks are 0 and 1."""
    offered = (
        uci.Option("Ponder", "check", "true"),
        uci.Option("Pawn Hash", "spin", "8", 1, 64),
        uci.Option("Style", "combo", "Solid", choices=("Solid", "Risky")),
        uci.Option("Clear", "button"),
    )
    features = options.CecpFeatures(memory=True, smp=True, egt=("syzygy", "nalimov"))
    spec = contract.EngineSpec(
        id="x", name="X", command=("x",), options={"Style": "risky", "Clear": True, "Nope": 1}
    )
    limits = contract.Limits(threads=2, hash_mb=32, minor_hash_mb=4, syzygy_path="/tb")
    plan = options.plan_xboard(offered, features, hall.order(spec, spec, limits=limits), spec)
    assert plan.commands == (
        b"cores 2\n",
        b"memory 32\n",
        b"option Pawn Hash=4\n",
        b"egtpath syzygy /tb\n",
        b"option Ponder=0\n",
        b"option Style=Risky\n",
        b"option Clear\n",
    )
    assert setting(plan, "Nope").remark == "engine has no such option"


# -- real engines --------------------------------------------------------------------------

REAL = ("stockfish", "ethereal-chess", "fairy-stockfish", "toga2", "glaurung")
SMALL = contract.Limits(threads=2, hash_mb=8, minor_hash_mb=4, tablebase_cache_mb=32)


def talk(engine: contract.EngineSpec, words: bytes) -> list[bytes]:
    """Say all words to an engine and return its answer."""
    done = subprocess.run(engine.command, input=words, capture_output=True, timeout=60, check=False)
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", REAL)
def test_real_engines_take_what_is_planned(name: str) -> None:
    """Threads and hash reach every engine by its own name; none complains of an option."""
    engine = hall.installed(name)
    offered = [o for line in talk(engine, b"uci\nquit\n") if (o := uci.option(line)) is not None]
    # Debian's Ethereal 12.00 ends by a missing symbol when it is given a SyzygyPath.
    path = None if name == "ethereal-chess" else "/nowhere"
    limits = SMALL.model_copy(update={"syzygy_path": path})
    plan = options.plan(offered, hall.order(engine, engine, limits=limits), engine)
    threads, hash_ = plan.settings[:2]
    assert (threads.set, hash_.set) == ("2", "8")
    by_name = {option.name: option for option in offered}
    for switch in ("OwnBook", "Ponder"):
        if switch in by_name:
            assert setting(plan, switch).set == "false"
    answer = talk(engine, b"uci\n" + b"".join(plan.commands) + b"isready\nquit\n")
    assert b"readyok" in answer
    assert not [line for line in answer if b"no such option" in line.lower()]


def test_chess960_is_off_in_standard_games() -> None:
    """An engine that has it on by default would write castling as king takes rook."""
    line = b"option name UCI_Chess960 type check default true"
    offered = tuple(option for option in (uci.option(line),) if option is not None)
    engine = contract.EngineSpec(id="x", name="X", command=("x",))
    order = hall.order(engine, engine)
    command = b"setoption name UCI_Chess960 value false\n"
    assert command in options.plan(offered, order, engine).commands
    free = order.model_copy(update={"variant": "fischerandom"})
    assert command not in options.plan(offered, free, engine).commands


@pytest.mark.parametrize(("asked", "said"), [(None, [b"true"]), (False, [b"false"])])
def test_wins_draws_and_losses_are_asked_for(asked: bool | None, said: list[bytes]) -> None:
    """Spectators see them; an author who says otherwise, and ``farm match``, are left alone."""
    offered = (uci.Option("UCI_ShowWDL", "check", "false"),)
    author = {} if asked is None else {"UCI_ShowWDL": asked}
    plan = plan_of(offered, author=author)
    assert plan.commands == tuple(b"setoption name UCI_ShowWDL value %s\n" % v for v in said)
    assert plan_of(offered, limits=contract.Limits(free=True)).commands == ()


ASKING = (
    uci.Option("UCI_Opponent", "string", ""),
    uci.Option("UCI_RatingAdv", "spin", "0", -400, 400),
)


@pytest.mark.parametrize(
    ("rating", "told", "ahead"),
    [
        (3100, "none 3100 computer Rival 2.1", "400"),
        (3700, "none 3700 computer Rival 2.1", "-99"),
        (None, "none none computer Rival 2.1", None),
    ],
)
def test_an_engine_that_asks_is_told_whom_it_plays(
    rating: int | None, told: str, ahead: str | None
) -> None:
    """Name and ratings go to those options alone, on either side, and only where the event says."""
    own = contract.EngineSpec(id="own", name="Own", command=("x",), rating=3601)
    rival = contract.EngineSpec(
        id="rival", name="Rival", version="2.1", command=("x",), rating=rating
    )
    for white, black in ((own, rival), (rival, own)):
        order = hall.order(white, black, limits=contract.Limits(threads=1))
        silent = options.plan(ASKING, order, own)
        assert not any(one.name in {"UCI_Opponent", "UCI_RatingAdv"} for one in silent.settings)
        telling = options.plan(ASKING, order.model_copy(update={"tell_opponent": True}), own)
        assert setting(telling, "UCI_Opponent").set == told
        advantage = [one.set for one in telling.settings if one.name == "UCI_RatingAdv"]
        assert advantage == ([] if ahead is None else [ahead])
        unasked = options.plan((), order.model_copy(update={"tell_opponent": True}), own)
        assert not any(one.name.startswith("UCI_") for one in unasked.settings)
