"""A small season by every kind of rule, through Redis and Celery with real processes.

Eight engines: a league with one that crashes and is disqualified, a playoff whose tie waits
for an organizer, a Cup of eight with a bronze match, and a superfinal that is drawn, drawn
again at rapid and won at blitz. Results follow from who resigns when: an engine that
resigns later beats one that resigns sooner, and a move limit before both resignations
makes a draw.
"""

from __future__ import annotations

import json
import pathlib

import checker
import harness

from orchestrator.season import final_standings, views
from orchestrator.season.fold import state

RESIGNS = {"e2": 19, "e3": 23, "e4": 27, "e5": 9, "e6": 7, "e7": 5}  # at this ply or the next
LATE_MS = 1400  # e1's first move: in time at the long controls, lost on time at blitz
CUP = ("quarterfinal", "semifinal", "bronze", "cup-final")

EVENTS = """
[books.b]
file = "{book}"
repeat = true

[[event]]
id = "league"
name = "League"
format = {{ kind = "round-robin", double_rounds = 1 }}
entrants = ["e5", "e6", "e7", "e8"]
time_control = "20s+1s"
book = "b"
tiebreaks = ["crashes", "direct-encounter", "wins", "sonneborn-berger", "organizers"]
disqualify_after = 3
promote = [{{ top = 1, to = "playoff" }}]

[[event]]
id = "playoff"
name = "Playoff"
format = {{ kind = "round-robin", double_rounds = 1 }}
entrants = ["e3", "e4"]
time_control = "20s+1s"
book = "b"
tiebreaks = ["crashes", "direct-encounter", "wins", "sonneborn-berger", "organizers"]
adjudication = {{ max_moves = 10 }}
promote = [{{ top = 1, to = "superfinal" }}]

[[event]]
id = "quarterfinal"
name = "Cup Quarterfinal"
format = {{ kind = "knockout", pairs = 1, bracket = "equal-distance", placed = 8 }}
entrants = "roster"
break = "100ms"
time_control = "20s+1s"
book = "b"
tiebreaks = ["organizers"]
promote = [{{ top = 4, to = "semifinal" }}]

[[event]]
id = "semifinal"
name = "Cup Semifinal"
format = {{ kind = "knockout", pairs = 1 }}
time_control = "20s+1s"
book = "b"
tiebreaks = ["organizers"]
promote = [{{ ranks = [3, 4], to = "bronze" }}, {{ ranks = [1, 2], to = "cup-final" }}]

[[event]]
id = "bronze"
name = "Cup Bronze Match"
format = {{ kind = "knockout", pairs = 1 }}
time_control = "20s+1s"
book = "b"
tiebreaks = ["organizers"]

[[event]]
id = "cup-final"
name = "Cup Final"
format = {{ kind = "knockout", pairs = 1 }}
time_control = "20s+1s"
book = "b"
tiebreaks = ["organizers"]

[[event]]
id = "superfinal"
name = "Superfinal"
entrants = ["e1"]
break = "100ms"
time_control = "20s+1s"
book = "b"
tiebreaks = ["organizers"]
adjudication = {{ max_moves = 5 }}

[event.format]
kind = "match"
games = 2
extensions = [
  {{ games = 2, time_control = "10s+500ms", openings = "season" }},
  {{ games = 2, time_control = "1s", openings = "season", repeat = true }},
]
"""


def _faults(engine: str) -> str:
    if engine == "e1":
        return f"late:{LATE_MS}@1"
    return "crash@3" if engine == "e8" else f"resign@{RESIGNS[engine]}"


def _season(farm: harness.Farm) -> pathlib.Path:
    book = farm.root / "book.epd"
    book.write_text("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n")
    rows = ['schema = 1\nid = "small"\nname = "Small Season"\n[roster]']
    for number in range(1, 9):
        words = ("--protocol", "xboard", "--seed", str(number), "--fault", _faults(f"e{number}"))
        entry = harness.scripted(farm.life, 0, *words)
        entry |= {"id": f"e{number}", "name": f"Engine {number}", "protocol": "xboard"}
        rows += harness.roster([entry])
    path = farm.root / "small.toml"
    path.write_text("\n".join(rows) + EVENTS.format(book=book), encoding="utf-8")
    return path


def test_a_small_season_ends_with_its_champion(tmp_path: pathlib.Path) -> None:
    """Each rule that ends an event does, in journal, tables, archive and commands alike."""
    with harness.running(tmp_path) as farm:
        farm.launch(_season(farm), "small")
        farm.wait(lambda: bool(views.season(farm.state("small"))["decisions"]), 60, "a question")
        (asked,) = json.loads(farm.operate("decisions", "small", "--json"))
        assert sorted(asked["engines"]) == ["e3", "e4"]
        why = ("--by", "ann", "--reason", "lots were drawn", "--season", "small")
        farm.operate("decide", asked["decision"], "--choose", "e4", *why)
        farm.finish("small", 120)
        told = json.loads(farm.operate("outcome", "small", "--json"))
    folded = checker.check_season(farm.archive, "small")
    checker.check_lives(farm.life)
    _check_league(folded)
    _check_playoff(folded, asked["decision"])
    _check_cup(folded)
    _check_superfinal(folded)
    assert told["champion"] == folded.champion == "e4"
    assert told == json.loads(json.dumps(final_standings.outcome(folded)))


def _table(folded: state.SeasonState, event: str) -> list[tuple[str, float]]:
    rows = views.standings(folded, event)["rows"]
    return [(row["engine"], row["points"]) for row in rows]


def _results(folded: state.SeasonState, event: str) -> list[tuple[str, str]]:
    finished = [folded.game(game).finished for game in folded.events[event].order]
    return [(fact.result, fact.ending.value) for fact in finished if fact is not None]


def _check_league(folded: state.SeasonState) -> None:
    """The third crash disqualifies: last, results annulled for all, the rest cancelled."""
    event = folded.events["league"]
    assert "e8" in event.tally.excluded
    assert _table(folded, "league") == [("e5", 4), ("e6", 2), ("e7", 0), ("e8", 0)]
    crashes = [ending for _, ending in _results(folded, "league") if ending == "disconnect"]
    assert len(crashes) == 3
    of_e8 = [g for g in folded.games.values() if g.event == "league" and "e8" in (g.white, g.black)]
    assert sum(game.cancelled for game in of_e8) == 3
    assert event.rows[0].decided_by == "points"


def _check_playoff(folded: state.SeasonState, question: str) -> None:
    """The first two are level by every criterion; the organizer's choice stands, with why."""
    assert _table(folded, "playoff") == [("e4", 3), ("e3", 3), ("e5", 0)]
    assert question.startswith("playoff:")
    assert folded.events["playoff"].rows[0].decided_by == "organizers"
    assert folded.events["playoff"].arrivals["league"].engines == ("e5",)
    assert folded.events["superfinal"].arrivals["playoff"].engines == ("e4",)


def _check_cup(folded: state.SeasonState) -> None:
    """Placed seeds and drawn others, winners go on, losers of the semifinals play for bronze."""
    pairs = {event: _pairs(folded, event) for event in CUP}
    placed, drawn = zip(*sorted(pairs["quarterfinal"]), strict=True)
    assert (placed, set(drawn)) == (("e1", "e2", "e3", "e4"), {"e5", "e6", "e7", "e8"})
    assert pairs["semifinal"] == {("e1", "e3"), ("e2", "e4")}
    assert pairs["bronze"] == {("e2", "e3")}
    assert pairs["cup-final"] == {("e1", "e4")}
    medals = [_table(folded, "cup-final")[n][0] for n in (0, 1)] + [_table(folded, "bronze")[0][0]]
    assert medals == ["e1", "e4", "e3"]


def _pairs(folded: state.SeasonState, event: str) -> set[tuple[str, ...]]:
    games = [folded.game(game) for game in folded.events[event].order]
    return {tuple(sorted((game.white, game.black))) for game in games}


def _check_superfinal(folded: state.SeasonState) -> None:
    """Drawn, drawn at rapid, won at blitz on time; openings of the sets are the season's."""
    results = _results(folded, "superfinal")
    assert [result for result, _ in results[:4]] == ["1/2-1/2"] * 4
    assert {ending for _, ending in results[4:]} == {"time"}
    assert _table(folded, "superfinal") == [("e4", 4.0), ("e1", 2.0)]
