"""TCEC's own Swiss, gauntlets and other formats of today, against games that it played.

Source of the games: the public TCEC game archive, © TCEC organization, CC BY-SA 3.0.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import chess
import driver
import made_tcec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.audit import record
from orchestrator.common import errors
from orchestrator.season.fold import openings, orders, seeding, tally
from orchestrator.season.formats import base, encounters, registry, round_robin, tcec_swiss
from orchestrator.season.spec import model

NOBODY = base.History()


def played_rounds(event: record.Event, seeds: Sequence[str]) -> list[list[base.Game]]:
    """Return the games of an event by round, engines as numbers of their seeds."""
    rounds: dict[int, list[base.Game]] = {}
    for game in event.games:
        number = int(game.round.split(".")[0])
        halves = None if game.result is None else tally.halves(game.result)
        one = base.Game(seeds.index(game.white), seeds.index(game.black), number, halves)
        rounds.setdefault(number, []).append(one)
    return list(rounds.values())


def sides(games: Iterable[base.Game | base.Board]) -> list[tuple[int, int]]:
    """Return White and Black of games in their order."""
    return [(game.white, game.black) for game in games]


@pytest.mark.parametrize(
    ("name", "each", "rounds"),
    [("Season_20_-_Swiss_Test_2", 1, 5), ("Season_20_-_Swiss_Test_4", 2, 2)],
)
def test_a_swiss_is_paired_as_tcecs_program_paired_it(name: str, each: int, rounds: int) -> None:
    """Every pair, its colours and its place in the round are those that TCEC's program drew."""
    event = made_tcec.events()[name]
    seeds = seeding.by_groups(sorted(event.engines), 6)
    swiss = tcec_swiss.TcecSwiss(len(seeds), rounds, each)
    before: list[base.Game] = []
    for index, games in enumerate(played_rounds(event, seeds)):
        drawn = swiss.pair(index, base.History(index, before.copy))
        assert drawn is not None
        assert sides(drawn.boards) == sides(games)
        before += games


def played_out(swiss: tcec_swiss.TcecSwiss, seed: int) -> tuple[list[base.Game], list[int]]:
    """Play a Swiss to its end with drawn results; return its games and byes."""
    lot = random.Random(seed)
    games: list[base.Game] = []
    byes: list[tuple[int, int]] = []
    for index in range(swiss.rounds):
        drawn = swiss.pair(index, base.History(index, games.copy, byes))
        assert drawn is not None
        byes += [(index + 1, engine) for engine in drawn.byes]
        for board in drawn.boards:
            halves = lot.choice([(2, 0), (1, 1), (0, 2)])
            games.append(base.Game(board.white, board.black, index + 1, halves))
    return games, [engine for _, engine in byes]


@settings(deadline=None)
@given(st.integers(4, 24), st.integers(0, 2**32))
def test_a_swiss_of_pairs_keeps_its_promises(entrants: int, seed: int) -> None:
    """Nobody meets twice while that is possible; both colours in each meeting; byes in turn."""
    rounds = entrants // 2
    games, byes = played_out(tcec_swiss.TcecSwiss(entrants, rounds, 2), seed)
    met = [frozenset((game.white, game.black)) for game in games[::2]]
    assert len(set(met)) == len(met)
    assert all(a == b[::-1] for a, b in zip(sides(games)[::2], sides(games)[1::2], strict=True))
    assert len(byes) == (2 * rounds if entrants % 2 else 0)
    assert max((byes.count(engine) for engine in byes), default=2) == 2


@settings(deadline=None)
@given(st.integers(2, 9), st.integers(0, 2**32))
def test_a_swiss_longer_than_its_field_forgets_its_first_rounds(entrants: int, seed: int) -> None:
    """Where no new meeting is left the oldest may be repeated, so it always ends."""
    games, _ = played_out(tcec_swiss.TcecSwiss(entrants, 2 * entrants, 2), seed)
    assert len(games) == 2 * entrants * (entrants // 2) * 2


@settings(deadline=None)
@given(st.integers(2, 12).map(lambda half: 2 * half), st.integers(0, 2**32))
def test_colours_of_single_games_stay_balanced(entrants: int, seed: int) -> None:
    """In a Swiss of single games nobody has one colour more than twice beyond the other."""
    games, _ = played_out(tcec_swiss.TcecSwiss(entrants, entrants // 2, 1), seed)
    for engine in range(entrants):
        whites = sum(game.white == engine for game in games)
        blacks = sum(game.black == engine for game in games)
        assert abs(whites - blacks) <= 2


@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("27", ("Stockfish", "LCZero", "Berserk", "KomodoDragon")),
        ("28", ("Stockfish", "LCZero", "Obsidian", "Berserk")),
    ],
)
def test_cutechess_order_with_the_reverse_game_at_once(name: str, seeds: tuple[str, ...]) -> None:
    """The viewers' openings were played in cutechess' order, both games of a pair at once."""
    event = made_tcec.events()[f"Season_{name}_-_Viewer_Submitted_Openings_Bonus_{name}"]
    names = [next(e for e in event.engines if e.startswith(seed)) for seed in seeds]
    double = len(event.games) // 12
    schedule = round_robin.RoundRobin(4, double, "cutechess", reverse="at-once")
    drawn = [
        board for index in range(schedule.rounds) for board in schedule.pair(index, NOBODY).boards
    ]
    games = [game for games in played_rounds(event, names) for game in games]
    assert sides(drawn) == sides(games)
    assert [board.tag for board in drawn] == [game.round for game in event.games]
    assert len({board.slot for board in drawn}) == schedule.openings


@given(st.integers(2, 12), st.integers(1, 3), st.sampled_from(["berger", "circle", "cutechess"]))
def test_at_once_every_pair_still_meets_equally_often(n: int, k: int, table: str) -> None:
    """Each ordered pair meets k times, and the two games of a pair share their opening."""
    spec = model.RoundRobin.model_validate(
        {"kind": "round-robin", "double_rounds": k, "table": table, "reverse": "at-once"}
    )
    schedule = registry.build(spec, base.Field(n))
    paired = [schedule.pair(index, NOBODY) for index in range(schedule.rounds)]
    boards = [board for pairing in paired if pairing for board in pairing.boards]
    assert sorted(sides(boards)) == sorted(
        (a, b) for a in range(n) for b in range(n) if a != b for _ in range(k)
    )
    assert len(boards) == schedule.games
    for one, other in zip(boards[::2], boards[1::2], strict=True):
        assert (one.white, one.black, one.slot) == (other.black, other.white, other.slot)


@pytest.mark.parametrize("name", ["Game_Length_Testing", "Game_Length_Update_Testing_2"])
def test_a_gauntlet_is_played_as_tcec_plays_it(name: str) -> None:
    """The hub meets all others in their order, with White first, the reverse game at once."""
    event = made_tcec.events()[f"Season_28_-_{name}"]
    seeds = event.engines
    ours = encounters.gauntlet(len(seeds), 1, 1, "hub")
    drawn = [board for index in range(ours.rounds) for board in ours.pair(index, NOBODY).boards]
    assert sides(drawn) == [(seeds.index(g.white), seeds.index(g.black)) for g in event.games]
    assert [board.tag for board in drawn] == [game.round for game in event.games]


EVENT = """
[[event]]
id = "bonus"
name = "Bonus"
format = {format}
entrants = "roster"
time_control = "30+3"
{more}
"""


def bonus(folder: Path, format_: str, more: str = "", engines: int = 4) -> driver.Driver:
    """Play a season of one event to its end."""
    text = driver.season_text(engines).split("[[event]]")[0] + EVENT.format(
        format=format_, more=more
    )
    return driver.Driver.launched(driver.load(folder, text)).play()


@pytest.mark.parametrize(
    ("format_", "games"),
    [
        ('{ kind = "gauntlet", hubs = 2, double_rounds = 3 }', 2 * 2 * 3 * 2),
        ('{ kind = "encounters", meetings = [[1, 2], [4, 3], [2, 1]], games = 3 }', 9),
        ('{ kind = "swiss", rounds = 3, pairing = "tcec", games = 2 }', 12),
        ('{ kind = "round-robin", table = "cutechess", reverse = "at-once" }', 12),
    ],
)
def test_a_season_plays_such_an_event_to_its_end(tmp_path: Path, format_: str, games: int) -> None:
    """The season core plays every game of the new formats and ranks the event."""
    played = bonus(tmp_path, format_)
    assert played.state.finished
    assert len(played.state.games) == games


@pytest.mark.parametrize(
    ("format_", "told"),
    [
        ('{ kind = "swiss", rounds = 3, games = 2 }', 'pairing = "tcec" only'),
        ('{ kind = "swiss", rounds = 3, pairing = "tcec", ranking = "opponents-score" }', "dutch"),
        ('{ kind = "encounters", meetings = [[2, 2]] }', "is one engine"),
        ('{ kind = "encounters", meetings = [[1, 5]] }', "5 engines"),
        ('{ kind = "gauntlet", hubs = 4 }', "5 engines or more"),
    ],
)
def test_what_cannot_be_played_is_refused(tmp_path: Path, format_: str, told: str) -> None:
    """A format whose keys contradict each other or the field is refused with the reason."""
    with pytest.raises(errors.SeasonFileError, match=told):
        bonus(tmp_path, format_)


def test_double_random_positions_are_drawn_for_each_side(tmp_path: Path) -> None:
    """Both games of a pair have the same start position, no other pair has it (DFRC)."""
    played = bonus(
        tmp_path, '{ kind = "round-robin" }', 'variant = "fischerandom"\ndouble_random = true'
    )
    state = played.state
    fens: dict[frozenset[str], set[str]] = {}
    for game in state.games.values():
        fen = openings.of_game(state, game).fen
        assert fen is not None
        assert chess.Board(fen, chess960=True).is_valid()
        fens.setdefault(frozenset((game.white, game.black)), set()).add(fen)
    assert all(len(own) == 1 for own in fens.values())
    assert len(set().union(*fens.values())) == len(fens)
    rows = [next(iter(own)).split()[0].split("/") for own in fens.values()]
    assert any(row[0] != row[-1].lower() for row in rows)


def test_seeds_by_lot_and_by_groups(tmp_path: Path) -> None:
    """A lot orders a field by the season's seed alone; groups are cut from the top."""
    drawn = bonus(tmp_path, '{ kind = "round-robin" }', 'seeding = "lot"', 8).state
    again = bonus(tmp_path, '{ kind = "round-robin" }', 'seeding = "lot"', 8).state
    field = drawn.events["bonus"].entrants
    assert field == again.events["bonus"].entrants
    assert sorted(field) == [f"e{number}" for number in range(1, 9)] != list(field)
    grouped = bonus(tmp_path, '{ kind = "round-robin" }', "seeding = { groups = 3 }", 8).state
    assert grouped.events["bonus"].entrants == ("e1", "e4", "e7", "e2", "e5", "e8", "e3", "e6")


def test_an_event_gives_odds_tells_opponents_and_has_tcecs_limits(tmp_path: Path) -> None:
    """A game's order has the odds of one engine, whom both play, 176 threads and 256 GB."""
    more = (
        'odds = { e2 = "60+5.3" }\ntell_opponent = true\n'
        "limits = { threads = 176, hash_mb = 262144 }"
    )
    state = bonus(tmp_path, '{ kind = "round-robin" }', more, 3).state
    for game in state.games.values():
        order = orders.game_order(state, game.id)
        clocks = {order.white.id: order.control("white"), order.black.id: order.control("black")}
        for engine, control in clocks.items():
            assert str(control) == ("3600+5.3" if engine == "e2" else "1800+3")
        assert order.tell_opponent
        assert (order.limits.threads, order.limits.hash_mb) == (176, 262144)
    with pytest.raises(errors.SeasonFileError, match="odds"):
        bonus(tmp_path, '{ kind = "round-robin" }', 'odds = { e9 = "60+5" }')
