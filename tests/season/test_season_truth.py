"""Schedules and standings against TCEC's real events (``tests/data/tcec/README.md``).

Source of the data: the public TCEC game archive, © TCEC organization, CC BY-SA 3.0.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import driver
import pytest
import tcec_events

import orchestrator
from orchestrator import contract
from orchestrator.season.fold import standings, tally, tiebreaks
from orchestrator.season.formats import base, match, round_robin
from orchestrator.season.spec import model

LEAGUES = [
    "Season_13_-_Division_3",
    "Season_16_-_Frc_Cpu_League_2",
    "Season_16_-_League_1_Playoff",
    "Season_18_-_Qualification_League",
    "Season_19_-_League_3",
    "Season_19_-_Frc2_Semileague_2",
    "Season_22_-_Frc5_Final_League",
    "Season_22_-_Frc5_League_A",
    "Season_22_-_Frc5_League_B",
    "Season_4_-_Stage_2a",
]
MATCHES = ["Season_4_-_Superfinal", "Season_22_-_Frc5_Final"]
FRC = Path(orchestrator.__file__).parent / "seasons" / "frc.toml"
TAGS_RESTART = {"Season_13_-_Division_3": 84}  # the archive counts its last cycle anew
CRITERIA = {
    "crash": model.Criterion.CRASHES,
    "de": model.Criterion.DIRECT_ENCOUNTER,
    "wins": model.Criterion.WINS,
    "sb": model.Criterion.SONNEBORN_BERGER,
    "black": model.Criterion.BLACK_GAMES,
    "bwins": model.Criterion.BLACK_WINS,
}
NUMBERS = {
    "crashes": model.Criterion.CRASHES,
    "direct_encounter": model.Criterion.DIRECT_ENCOUNTER,
    "wins": model.Criterion.WINS,
    "sonneborn_berger": model.Criterion.SONNEBORN_BERGER,
    "opponents_score": model.Criterion.OPPONENTS_SCORE,
    "black_games": model.Criterion.BLACK_GAMES,
    "black_wins": model.Criterion.BLACK_WINS,
}
ENDINGS = {"disconnect": contract.Ending.DISCONNECT, "stall": contract.Ending.STALL}


@pytest.fixture(name="event", params=LEAGUES)
def _event(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A real league: players, seeds, games with results, standings."""
    return tcec_events.expected(request.param)


def games(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the event's games with their columns by name."""
    return [dict(zip(event["columns"], game, strict=True)) for game in event["games"]]


def test_real_schedule_is_reproduced(event: dict[str, Any]) -> None:
    """Pairs, order, colours, round tags and shared openings are TCEC's own."""
    schedule, players = event["schedule"], event["players"]
    table = "berger" if schedule["generator"] == "berger" else "circle"
    seeds = schedule["seeds"]
    ours = round_robin.RoundRobin(
        len(seeds), schedule["cycles"] // 2, "berger" if table == "berger" else "circle"
    )
    rounds = [ours.pair(index, base.History()) for index in range(ours.rounds)]
    boards = [board for pairing in rounds for board in pairing.boards]
    real = games(event)
    assert [(seeds[b.white], seeds[b.black]) for b in boards] == [
        (players[game["white"]], players[game["black"]]) for game in real
    ]
    tagged = TAGS_RESTART.get(event["event"], len(real))
    assert [board.tag for board in boards[:tagged]] == [game["round"] for game in real[:tagged]]
    if event["reverse_games"]["different_opening"] == 0:
        shared: dict[int, set[int]] = {}
        for board, game in zip(boards, real, strict=True):
            shared.setdefault(board.slot, set()).add(game["opening"])
        assert all(len(openings) == 1 for openings in shared.values())


@pytest.mark.parametrize("name", MATCHES)
def test_real_match_is_reproduced(name: str) -> None:
    """S16-8a, FRC-2b: colours turn with every game, openings run 1, 1, 2, 2, to the last."""
    event = tcec_events.expected(name)
    real = games(event)
    ours = match.Match(len(real), first_white=real[0]["white"])
    drawn = [ours.pair(index, base.History()) for index in range(ours.rounds)]
    boards = [board for pairing in drawn if pairing is not None for board in pairing.boards]
    assert [(b.white, b.black) for b in boards] == [(g["white"], g["black"]) for g in real]
    assert [board.slot + 1 for board in boards] == [game["opening"] for game in real]
    assert [board.tag for board in boards] == [game["round"] for game in real]


def test_real_frc_trees_are_those_of_the_season_file() -> None:
    """FRC-2d, 2f: A1 B1 C2 D2 and C1 D1 A2 B2, then the first two of each."""
    season = tomllib.loads(FRC.read_text())
    seeded = {event["id"]: event.get("seeding", []) for event in season["event"]}
    for tree in tcec_events.expected("frc_placement").values():
        for number in ("1", "2"):
            places = {
                f"league-{place[0].lower()}.{place[1]}"
                for place in tree[f"semileague_{number}"]
                if place[1] in "12"
            }
            assert places == set(seeded[f"semi-{number}"])


def test_real_standings_are_reproduced(event: dict[str, Any]) -> None:
    """Points, every tiebreak number, the order and those who went on are TCEC's own."""
    players = event["players"]
    counted = tally.Tally(tuple(event["schedule"]["seeds"]))
    for game in games(event):
        ending = ENDINGS.get(game["reason"], contract.Ending.CHECKMATE)
        white, black = players[game["white"]], players[game["black"]]
        counted.add(white, black, driver.finished("g", "a", (game["result"], ending)))
    chain = [CRITERIA[name] for name in event["tiebreak_order"] if name in CRITERIA]
    rows = standings.rank(counted, chain)
    real = {row["name"]: row for row in event["standings"]}
    for row in rows:
        assert row.points == real[row.engine]["points"]
        for name, criterion in NUMBERS.items():
            if criterion is model.Criterion.DIRECT_ENCOUNTER and criterion not in row.tiebreaks:
                continue  # the record has it also for engines that were not level any more
            value = tiebreaks.points(criterion, row.tiebreaks[criterion])
            assert value == real[row.engine][name], (row.engine, name)
    # Engines that only r-mobility parted share a rank here.
    ranks = {row.engine: row.rank for row in rows}
    order = [ranks[row["name"]] for row in event["standings"]]
    assert order == sorted(order)
    cut = event["advancement"]["cut"]
    assert all(ranks[row["name"]] <= cut for row in event["standings"] if row["went_on"])
