"""The checker: what must hold after any fault, judged from outside Redis.

It reads three things that no ledger script can bend: the journal's mirror on disk, the
archive, and the engines' own records of their lives. It raises ``AssertionError`` with
what is wrong.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import pathlib
from collections import Counter
from collections.abc import Iterable

import chess.pgn
import faults

from orchestrator import contract
from orchestrator.season import views
from orchestrator.season.fold import state


@dataclasses.dataclass
class Life:
    """The life of all engines one dead man started, in nanoseconds of CLOCK_MONOTONIC."""

    first: int
    last: int


def lives(path: pathlib.Path) -> list[Life]:
    """Return the lives of all attempts, by their beginning; engines of a game share one."""
    owner: dict[int, str] = {}  # the numbers of processes begin again after 32,768
    found: dict[tuple[int, str], Life] = {}
    for line in path.read_text().splitlines():
        fact = json.loads(line)
        if fact["event"] == "start":
            owner[fact["pid"]] = f"{fact['parent']}@{fact['parent_started']}"
        key = (fact["pid"], owner[fact["pid"]])
        life = found.setdefault(key, Life(fact["t"], fact["t"]))
        life.last = fact["t"]
    attempts: dict[str, Life] = {}
    for (_, parent), life in found.items():
        whole = attempts.setdefault(parent, life)
        whole.first = min(whole.first, life.first)
        whole.last = max(whole.last, life.last)
    return sorted(attempts.values(), key=lambda life: life.first)


def check_lives(path: pathlib.Path) -> int:
    """Assert that engines of different attempts never lived at the same time."""
    found = lives(path)
    for before, after in itertools.pairwise(found):
        overlap_ms = (before.last - after.first) / 1e6
        assert overlap_ms < 0, f"engines of two attempts overlap by {overlap_ms:.1f} ms"
    return len(found)


def check_season(archive: pathlib.Path, season: str) -> state.SeasonState:
    """Assert that a finished season is whole: journal, order, archive; return its state."""
    folder = archive / season
    entries = [
        contract.Entry.from_line(line)
        for line in (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    folded = state.fold(entries)
    assert folded.finished, f"{season} is not finished"
    finished = [entry for entry in entries if entry.kind == "game_finished"]
    counted = Counter(entry.data["game"] for entry in finished)
    played = {game.id for game in folded.games.values() if not game.cancelled}
    assert set(counted) == played, "a game is missing in the journal"
    assert set(counted.values()) == {1}, f"a game is counted twice: {counted.most_common(1)}"
    order = [game for event in folded.events.values() for game in event.order if game in played]
    assert [entry.data["game"] for entry in finished] == order, "the order of play is broken"
    _check_tokens(entries)
    _check_plies(folder, entries)
    _check_resumed(folder, entries)
    for event in folded.events.values():
        _check_pgn(folder / f"{event.id}.pgn", folded, event.id)
    return folded


def _check_tokens(entries: list[contract.Entry]) -> None:
    tokens = [contract.Token.parse(e.token) for e in entries if e.kind == "attempt_started"]
    assert tokens == sorted(set(tokens)), "tokens do not grow"


def _check_plies(folder: pathlib.Path, entries: list[contract.Entry]) -> None:
    """Assert that the plies of finished and given-up attempts are kept."""
    for entry in entries:
        if entry.kind == "game_finished":
            record = folder / "games" / entry.data["game"] / "record.json"
            game = contract.GameRecord.decode(record.read_bytes())
            assert game.attempt == entry.data["attempt"]
            book = len(game.order.opening.moves)
            assert [ply.ply for ply in game.plies] == list(
                range(book + 1, book + 1 + len(game.plies))
            )
        elif entry.kind == "attempt_ended" and entry.data["ply"]:
            kept = folder / "games" / entry.data["game"] / "given-up"
            lines = (kept / f"{entry.data['attempt']}.jsonl").read_text().splitlines()
            assert json.loads(lines[-1])["ply"] == entry.data["ply"], "journaled plies are lost"


def _check_resumed(folder: pathlib.Path, entries: list[contract.Entry]) -> None:
    """Assert that a resumed game is one record that begins with what was journaled before."""
    for entry in entries:
        if entry.kind != "attempt_judged" or entry.data["scenario"] != "resumed":
            continue
        game = folder / "games" / entry.data["game"]
        record = contract.GameRecord.decode((game / "record.json").read_bytes())
        given_up = game / "given-up" / f"{entry.data['attempt']}.jsonl"
        if not given_up.exists():
            continue  # it had no ply, which is asserted above
        before = [contract.PlyRecord.decode(line) for line in given_up.read_text().splitlines()]
        assert [(ply.ply, ply.move) for ply in record.plies[: len(before)]] == [
            (ply.ply, ply.move) for ply in before
        ], f"{entry.data['game']} went on from other moves than were journaled"


def check_wounds(
    calm: state.SeasonState, wounded: state.SeasonState, killed: Iterable[faults.Killed]
) -> int:
    """Assert that killed engines lost just their games; return how many did.

    An engine that was killed after its game's last move has lost nothing.
    """
    lost = 0
    hit = {one.game: one for one in killed}
    for game in wounded.games.values():
        now, before = game.finished, calm.game(game.id).finished
        assert now is not None
        assert before is not None
        if now.ending is contract.Ending.DISCONNECT:
            assert game.id in hit, f"{game.id} was lost by a crash that nobody made"
            loser = game.white if now.loser == "white" else game.black
            why = f"{game.id}: {loser} has lost, {hit[game.id]}; {now}"
            assert loser == hit[game.id].name, why
            lost += 1
        else:
            assert (now.result, now.plies) == (before.result, before.plies), game.id
    return lost


def _check_pgn(path: pathlib.Path, folded: state.SeasonState, event: str) -> None:
    """Assert that python-chess reads the event's PGN cleanly, with the table's results."""
    text = io.StringIO(path.read_text(encoding="utf-8"))
    results = []
    while (game := chess.pgn.read_game(text)) is not None:
        assert not game.errors, game.errors
        results.append((game.headers["White"], game.headers["Black"], game.headers["Result"]))
    expected = [
        (row["white"], row["black"], "*" if row["annulled"] else row["result"])
        for row in views.schedule(folded, event, 0)
        if not row["cancelled"]
    ]
    assert results == expected, f"{path.name} and the journal disagree"


def table(folded: state.SeasonState) -> list[tuple[str, float, str]]:
    """Return all events' final tables in a form that can be compared."""
    return [
        (f"{event}:{row['name']}", row["points"], row["decided_by"])
        for event in folded.events
        for row in views.standings(folded, event)["rows"]
    ]
