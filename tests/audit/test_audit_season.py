"""TCEC's Seasons 25 to 29 against their season files, as they were played.

Source of the games: the public TCEC game archive, © TCEC organization, CC BY-SA 3.0.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import made_tcec
import pytest
from click import testing

from orchestrator import commands, contract
from orchestrator.audit import reading, record, replaying, season
from orchestrator.commands import launch
from orchestrator.season.file import load

SEASONS = ("season25", "season26", "season27", "season28", "season29")

# What no rule explains, with the reason.
DIFFERS = {
    "Cup_13_Final": "game 1: lczero - stockfish by the rules, stockfish - lczero",
    "Cup_16_Round16": "game 32: booot - obsidian by the rules, obsidian - booot",
    "Season_25_-_Kibitzer_Bonus": "game 34: clocks 1800+3 by the file, 937+3 v 677+3",
    "Season_28_-_Divp_Testing": "game 27: Ethereal 14.40 - Stockfish_15_300M: no reverse game",
    "Season_28_-_Game_Length_Testing": "1 pairs of games with different openings or clocks",
    "Season_28_-_Sufi_Testing": "1 pairs of games with different openings or clocks",
    "Season_29_-_4k_Testing": "game 41: 4k.c 5.0 - Stockfish_15_10k: no reverse game",
    "Season_29_-_Swiss_9_Testing": "game 57: Torch 20251201-ce805ee - Stockfish_15_1G: no reverse",
}


@functools.cache
def loaded() -> tuple[load.Loaded, ...]:
    """Return the season files of TCEC's Seasons 25 to 29."""
    return tuple(load.load(launch.season_file(name), find=lambda _: []) for name in SEASONS)


def of_today() -> dict[str, record.Event]:
    """Return the record of Seasons 25 to 29 and of their Cups."""
    return {name: event for name, event in made_tcec.events().items() if "Swiss_Test_" not in name}


@functools.cache
def compared() -> dict[str, season.Compared]:
    """Return the whole comparison by the archive's files."""
    found = season.compare(loaded(), tuple(of_today().values()))
    return dict(zip(of_today(), found, strict=True))


def test_every_event_that_a_rule_explains_agrees() -> None:
    """144 of the 150 events and 27 of the 29 Cup rounds; the others are listed with the reason."""
    assert {name for name, one in compared().items() if not one.agrees} == set(DIFFERS)
    assert len(compared()) == 179
    for name, reason in DIFFERS.items():
        assert any(reason in told for told in compared()[name].differs)


def test_every_playoff_that_was_played_is_predicted() -> None:
    """The tied engines of events with a record are those that played their tie off."""
    playoffs = {
        name: one.played_as for name, one in compared().items() if "Tiebreak_" in name + "_"
    }
    of_record = {name for name, played_as in playoffs.items() if "without" not in played_as}
    assert {
        "Season_27_-_Category_0_And_2_Playoff_Tiebreak",
        "Season_28_-_Frd_4_League_D_Tiebreak",
        "Season_29_-_Frd_5_League_B_Tiebreak",
        "Season_29_-_Frd_5_Semileague_1_Tiebreak",
    } <= of_record


def changed(name: str, change: Callable[[record.Event], record.Event]) -> season.Compared:
    """Return the comparison where one event was played otherwise."""
    events = of_today() | {name: change(of_today()[name])}
    found = season.compare(loaded(), tuple(events.values()))
    return dict(zip(events, found, strict=True))[name]


def games(event: record.Event, **fields: object) -> record.Event:
    """Return an event whose fifth game differs in some fields."""
    fifth = dataclasses.replace(event.games[4], **fields)  # type: ignore[arg-type] # any field
    return dataclasses.replace(event, games=(*event.games[:4], fifth, *event.games[5:]))


def turned(event: record.Event) -> record.Event:
    """Turn the colours of a game."""
    return games(event, white=event.games[4].black, black=event.games[4].white)


LEAGUE = "Season_27_-_Frd_3_League_A"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (turned, "game 5"),
        (lambda event: dataclasses.replace(event, games=event.games[:-1]), "60 games by the rules"),
        (lambda event: games(event, opening="another"), "openings are not shared"),
        (lambda event: games(event, clocks=("60+1", "60+1")), "clocks 1800+3 by the file"),
        (lambda event: games(event, start="position"), "start position of kind position"),
        (lambda event: games(event, white="Nobody 1.0"), "not in the roster: Nobody 1.0"),
    ],
)
def test_an_event_that_was_played_otherwise_differs(
    change: Callable[[record.Event], record.Event], told: str
) -> None:
    """Order, colours, number of games, openings, clocks, positions, names: each is compared."""
    found = changed(LEAGUE, change)
    assert not found.agrees
    assert any(told in reason for reason in found.differs)


def test_a_substitute_is_compared_by_a_copy_of_the_file_that_has_it_in_the_seat() -> None:
    """The file knows nobody who came in later, and says what to do; so done, the event agrees."""

    def named(game: record.Game, side: str) -> str:
        name: str = getattr(game, side)
        return "Substitute 2" if name == out else name

    event = of_today()[LEAGUE]
    out = event.games[0].white
    games = (
        dataclasses.replace(game, white=named(game, "white"), black=named(game, "black"))
        for game in event.games
    )
    played = of_today() | {LEAGUE: dataclasses.replace(event, games=tuple(games))}
    differs = season.compare(loaded(), tuple(played.values()))
    (told,) = dict(zip(played, differs, strict=True))[LEAGUE].differs
    assert told.startswith("not in the roster: Substitute 2 (")
    assert "a copy of the file that has the substitute in the seat" in told
    copies = [
        dataclasses.replace(
            file,
            engines=tuple(
                spec.model_copy(update={"name": "Substitute"}) if _is(spec.name, out) else spec
                for spec in file.engines
            ),
        )
        for file in loaded()
    ]
    agreeing = season.compare(copies, tuple(played.values()))
    assert dict(zip(played, agreeing, strict=True))[LEAGUE].agrees


def _is(name: str, played_as: str) -> bool:
    return f"{played_as} ".lower().startswith(f"{name} ".lower())


def won(event: record.Event, engine: str) -> record.Event:
    """Let an engine win all its games."""
    results = {True: "1-0", False: "0-1"}
    return dataclasses.replace(
        event,
        games=tuple(
            dataclasses.replace(game, result=results[game.white.startswith(engine)])  # type: ignore[arg-type] # a result
            if any(name.startswith(engine) for name in (game.white, game.black))
            else game
            for game in event.games
        ),
    )


def test_other_results_predict_another_field_and_other_playoffs() -> None:
    """Advancement follows from the results: the semileague's field, and who plays a tie off."""
    league, semi = "Season_28_-_Frd_4_League_D", "Season_28_-_Frd_4_Semileague_1"
    for engine, name, told in (
        ("Stash", semi, "field"),
        ("Caissa", f"{league}_Tiebreak", "no tie creates"),
    ):
        events = of_today() | {league: won(of_today()[league], engine)}
        found = dict(zip(events, season.compare(loaded(), tuple(events.values())), strict=True))
        assert any(told in reason for reason in found[name].differs)


def test_a_tie_that_was_not_played_off_is_told() -> None:
    """Where the rules create a playoff and the record has none, the tied event differs."""
    events = of_today()
    del events["Season_29_-_Frd_5_League_B_Tiebreak"]
    found = dict(zip(events, season.compare(loaded(), tuple(events.values())), strict=True))
    league = found["Season_29_-_Frd_5_League_B"]
    assert any("no playoff of theirs was played" in told for told in league.differs)


def test_the_command_reads_a_record_and_prints_a_line_an_event() -> None:
    """`farm audit --season` tells of each event whether it agrees, or why not."""
    words = ["audit", "--season", "season29", str(made_tcec.RECORD)]
    told = testing.CliRunner().invoke(commands.farm, [*words, "--json"])
    plain = {one["source"]: one for one in json.loads(told.output)}
    assert plain["TCEC_Season_29_-_Frd_5_League_B_Tiebreak.pgn"]["agrees"]
    assert plain["TCEC_Season_25_-_Frd_1_Final.pgn"]["differs"] == ["no season file has this event"]
    lines = testing.CliRunner().invoke(commands.farm, words).output.splitlines()
    assert "agrees   TCEC_Season_29_-_4k_Vi.pgn (season29 4k)" in lines
    assert lines[-1].endswith("events agree")


def test_games_that_end_otherwise_than_the_rules_say_are_told(tmp_path: Path) -> None:
    """With the moves at hand adjudication is replayed too; one of the options is needed."""
    pgn = tmp_path / "TCEC_Season_27_-_4k_Iv_Minifinal.pgn"
    pgn.write_text(
        '[Event "TCEC Season 27 - 4K IV MiniFinal"]\n[White "4ku 5.1"]\n[Black "ice4 6"]\n'
        '[Result "1/2-1/2"]\n[TimeControl "1800+3"]\n[TerminationDetails "Stalemate"]\n\n'
        "1. e4 e5 1/2-1/2\n"
    )
    told = testing.CliRunner().invoke(commands.farm, ["audit", "--season", "season27", str(pgn)])
    assert "game 1: does not end as the rules say" in told.output
    pgn.write_text(
        '[Event "TCEC Season 27 - 4K IV MiniFinal"]\n[White "4ku 5.1"]\n[Black "ice4 6"]\n'
        '[Result "1-0"]\n[TimeControl "1800+3"]\n[TerminationDetails "Manual adjudication"]\n\n'
        "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 1-0\n"
    )  # a repetition, corrected by the organizers
    told = testing.CliRunner().invoke(commands.farm, ["audit", "--season", "season27", str(pgn)])
    assert "does not end as the rules say" not in told.output
    assert "not compared: the end of game 1: people set its result" in told.output
    words = ["audit", "--season", "season27", "--exclude", "ice4", str(pgn)]
    refused = testing.CliRunner().invoke(commands.farm, words)
    assert (refused.exit_code, "--exclude: not beside --season" in refused.output) == (2, True)
    bare = testing.CliRunner().invoke(commands.farm, ["audit", str(pgn)])
    assert "--rules or --season is needed" in bare.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--no-draw-rule", "--draw-ply", "70"), "--no-draw-rule and --draw-ply"),
        (("--no-win-rule", "--win-cp", "1", "--win-plies", "8"), "--no-win-rule and --win-cp and"),
        (("--no-tablebase", "--tb-men", "6"), "--no-tablebase and --tb-men"),
    ],
)
def test_numbers_of_a_rule_that_was_not_played_are_refused(
    words: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    """One of the two is a mistake, and which one only the director knows."""
    archive = tmp_path / "event.pgn"
    archive.write_text('[White "A"]\n[Black "B"]\n[Result "1-0"]\n\n1. e4 1-0\n')
    asked = ("season", "audit", str(archive), "--rules", "s17", *words)
    refused = testing.CliRunner().invoke(commands.farm, asked)
    assert refused.exit_code == 2
    assert told in refused.output


@pytest.mark.parametrize(
    ("rule", "agrees"),
    [
        ({"move_count": 2, "score_cp": 600}, True),
        ({"move_count": 2, "score_cp": 900}, False),  # it would have gone on
        ({"move_count": 1, "score_cp": 600}, False),  # it would have ended a move before
    ],
)
def test_ends_by_counted_moves_are_replayed(rule: dict[str, int], agrees: bool) -> None:
    """The rules of match runners name neither in the record: a season that has them knows."""
    text = (
        '[Event "Club"]\n[White "a"]\n[Black "b"]\n[Result "1-0"]\n'
        '[TerminationDetails "White wins by adjudication"]\n\n'
        "1. e4 {wv=7.00,} e5 {wv=7.00,} 2. Nf3 {wv=7.00,} Nc6 {wv=7.00,} 1-0\n"
    )
    rules = contract.Adjudication.model_validate({"resign": rule})
    told = replaying.report(reading.games(text), rules)
    assert told[replaying.BY_MOVES] == {"recorded": 1, "reproduced": int(agrees)}
    assert bool(told["mismatches"]) is not agrees
    assert replaying.BY_MOVES not in replaying.report(reading.games(text), contract.Adjudication())
    bare = replaying.report(reading.games(text.replace("wv=7.00", "mt=1")), rules)
    assert (bare[replaying.BY_MOVES]["recorded"], bare["mismatches"]) == (0, [])


def test_a_roster_of_what_a_machine_has_is_compared_with_what_played(tmp_path: Path) -> None:
    """`find` in a roster: the record says who was found, not this machine."""
    games = [
        f'[Event "Demo Season - Demo League"]\n[White "{white}"]\n[Black "{black}"]\n'
        f'[Result "1-0"]\n\n1. e4 e5 1-0\n'
        for white, black in itertools.permutations(("toga2", "stockfish", "glaurung", "Mine"), 2)
    ]
    pgn = tmp_path / "league.pgn"
    pgn.write_text("\n".join(games[:6]))
    told = testing.CliRunner().invoke(commands.farm, ["audit", "--season", "demo", str(pgn)])
    assert "not in the roster: Mine " in told.output
