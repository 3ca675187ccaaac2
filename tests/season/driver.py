"""Play a season without engines: journal what ``decide`` says and invent the results.

The driver's clock is the journal's own: each entry comes one second after the one
before, and when only a gate is left the clock jumps to it. Whatever the driver does
follows from the journal alone, so any prefix of it can be played on.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import chess

import orchestrator
from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.season import decide, decisions, interruption
from orchestrator.season.amend import operations
from orchestrator.season.file import load as file_load
from orchestrator.season.fold import events, orders, state

SEASONS = Path(orchestrator.__file__).parent / "seasons"
SEED = "a sealed seed"
HALL = "hall"
STEP_MS = 1_000
GAME_MS = 60_000
START_MS = 1_700_000_000_000

Ending = contract.Ending
Verdict = tuple[contract.Result, contract.Ending]
Results = Callable[[events.Game], Verdict]

SEASON = """
schema = 1
id = "test"
name = "Test Season"

[roster]
{engines}

[books.short]
file = "short.epd"

[[event]]
id = "league"
name = "League"
format = {{ kind = "round-robin", double_rounds = {double_rounds} }}
entrants = "roster"
time_control = "30+5"
book = "short"
promote = [{{ top = 2, to = "final" }}]

[[event]]
id = "final"
name = "Final"
format = {{ kind = "match", games = 4 }}
break = "10m"
time_control = "60+5"
book = "short"
"""


SIDE = """
[[event]]
id = "side"
name = "Side"
format = { kind = "match", games = 2 }
entrants = ["e3", "e4"]
time_control = "1+0"
"""


def season_text(engines: int = 4, double_rounds: int = 1) -> str:
    """Return a season file: a league of so many, whose top two play a match."""
    listed = "\n".join(
        f'[[roster.engine]]\nid = "e{n}"\nname = "Engine {n}"\ncommand = ["engine-{n}"]'
        for n in range(1, engines + 1)
    )
    return SEASON.format(engines=listed, double_rounds=double_rounds)


def book_text(lines: int) -> str:
    """Return an EPD book of so many (at most 48) different positions."""
    fens = []
    for number in range(lines):
        file, rank, home = number % 8, number // 8 % 3, number // 24
        middle = ["8", "8", "8", "8"]
        middle[rank + 1] = "".join(t for t in (str(file), "N", str(7 - file)) if t != "0")
        pieces = ("RNBQKB1R", "R1BQKBNR")[home]
        fens.append(f"rnbqkbnr/pppppppp/{'/'.join(middle)}/PPPPPPPP/{pieces} w KQkq - 0 1")
    return "".join(f"{fen}\n" for fen in fens)


@functools.cache
def shipped(name: str) -> file_load.Loaded:
    """Read a season file that comes with the farm, once."""
    return file_load.load(SEASONS / f"{name}.toml")


def load(folder: Path, text: str, lines: int = 32) -> file_load.Loaded:
    """Write a season file and its book into a folder, and load it."""
    (folder / "short.epd").write_text(book_text(lines))
    path = folder / "season.toml"
    path.write_text(text)
    return file_load.load(path, find=lambda names: [])


def by_name(game: events.Game) -> Verdict:
    """Invent a result that only the pairing and the number of the game decide."""
    digest = hashlib.sha256(f"{game.white}/{game.black}/{game.number}".encode()).digest()
    verdicts: Sequence[Verdict] = (
        ("1-0", Ending.CHECKMATE),
        ("1/2-1/2", Ending.THREEFOLD),
        ("0-1", Ending.TIME),
        ("1/2-1/2", Ending.FIFTY_MOVES),
        ("0-1", Ending.DISCONNECT),
        ("1-0", Ending.CHECKMATE),
    )
    return verdicts[digest[0] % len(verdicts)]


def drawn(_game: events.Game) -> Verdict:
    """Invent a world without winners."""
    return "1/2-1/2", Ending.THREEFOLD


def finished(
    game: str, attempt: str, verdict: Verdict, ended_ms: int = START_MS
) -> contract.GameFinished:
    """Return the entry of a finished game."""
    result, ending = verdict
    loser: dict[str, contract.Side] = {"1-0": "black", "0-1": "white"}
    return contract.GameFinished(
        game=game,
        attempt=attempt,
        hall=HALL,
        lane="",
        host="host",
        result=result,
        ending=ending,
        loser=loser.get(result),
        details=ending.value,
        plies=80,
        white_clock_ns=1,
        black_clock_ns=1,
        started_ms=ended_ms - GAME_MS,
        ended_ms=ended_ms,
        record_sha256="",
    )


@dataclasses.dataclass
class Driver:
    """A season in play; ``journal`` and ``state`` always agree."""

    results: Results = by_name
    journal: list[contract.Entry] = dataclasses.field(default_factory=list)
    state: state.SeasonState = dataclasses.field(default_factory=state.SeasonState)

    @classmethod
    def launched(
        cls, loaded: file_load.Loaded, results: Results = by_name, seed: str = SEED
    ) -> Driver:
        """Launch a season."""
        driver = cls(results)
        driver.append(operations.launch(loaded, "test", seed, HALL, "0.1.0"), by="operator")
        return driver

    @classmethod
    def replayed(cls, journal: Iterable[contract.Entry], results: Results = by_name) -> Driver:
        """Go on from a journal."""
        entries = list(journal)
        return cls(results, entries, state.fold(entries))

    @property
    def now_ms(self) -> int:
        """Return the time of the next entry."""
        return self.journal[-1].at_ms + STEP_MS if self.journal else START_MS

    def append(self, drafts: Iterable[contract.Draft], by: str = "serve", at_ms: int = 0) -> None:
        """Journal drafts and apply them, through the text of a journal line."""
        for draft in drafts:
            entry = contract.Entry(
                len(self.journal) + 1, max(at_ms, self.now_ms), draft.kind, by, draft.data
            )
            entry = contract.Entry.from_line(entry.line())
            self.state.apply(entry)
            self.journal.append(entry)

    def undelayed(self) -> list[contract.Draft]:
        """Return what can be decided now, without a jump of the clock."""
        return decide.decide(self.state, self.now_ms)

    def settle(self) -> None:
        """Journal all that can be decided, a jump to the next gate included."""
        while True:
            drafts, at_ms = interruption.judge(self.state, ()) or self.undelayed(), 0
            shut = [e for e in self.state.events.values() if e.status is events.Status.GATE]
            if not drafts and shut and all(event.opens_at_ms is None for event in shut):
                drafts = operations.open_gate(self.state, shut[0].id, "ann", "it may begin")
            if not drafts and self.state.ready_game() is None:
                at_ms = self.state.next_deadline_ms() or 0
                drafts = decide.decide(self.state, max(at_ms, self.now_ms))
            if not drafts:
                return
            self.append(drafts, at_ms=at_ms)

    def start(self, game: str) -> str:
        """Begin an attempt at a game and return its name."""
        attempt = f"{game}-a{len(self.journal)}"
        fact = contract.AttemptStarted(
            game=game, attempt=attempt, hall=HALL, lane="", host="host", worker="worker"
        )
        self.append([contract.Draft("attempt_started", fact.model_dump(mode="json"))], "worker")
        return attempt

    def finish(self, game: str, attempt: str, verdict: Verdict) -> None:
        """End an attempt with a result."""
        fact = finished(game, attempt, verdict, self.now_ms)
        self.append([contract.Draft("game_finished", fact.model_dump(mode="json"))], "worker")

    def interrupt(
        self,
        game: str,
        attempt: str,
        ply: int = 0,
        cause: str = "host lost",
        excused: contract.Side | None = None,
    ) -> None:
        """End an attempt without a result."""
        fact = contract.AttemptEnded(
            game=game,
            attempt=attempt,
            hall=HALL,
            lane="",
            host="host",
            cause=cause,
            ply=ply,
            excused=excused,
        )
        self.append([contract.Draft("attempt_ended", fact.model_dump(mode="json"))], "worker")

    def play_one(self) -> bool:
        """Play the ready game; say whether there was one."""
        game = self.state.ready_game()
        if game is None:
            return False
        running = self.state.running
        attempt = self.start(game) if running is None else running.attempt
        self.finish(game, attempt, self.results(self.state.game(game)))
        return True

    def play(self, games: int = 1_000_000) -> Driver:
        """Play up to so many games, or to the end of the season."""
        self.settle()
        while games and self.play_one():
            self.settle()
            games -= 1
        return self


class Organized(Driver):
    """A season whose organizers answer every question at once."""

    def settle(self) -> None:
        """Journal all that can be decided, the organizers' answers included."""
        super().settle()
        while asked := decisions.outstanding(self.state):
            choice = asked[0].engines[: asked[0].choose]
            self.append(decisions.decide(self.state, asked[0].decision, choice, "ann", "lots"))
            super().settle()


class Patient(Driver):
    """A season whose clock never jumps: it stands before its gates."""

    def settle(self) -> None:
        """Journal all that can be decided now."""
        while drafts := interruption.judge(self.state, ()) or self.undelayed():
            self.append(drafts)


def plies(
    season: Driver, game: str, count: int, cp: int = 300, think_ms: int = 7
) -> list[contract.PlyRecord]:
    """Return so many engine plies of a game, with one eval from White's side."""
    order = orders.game_order(season.state, game)
    board, told = boards.GameBoard(order.opening, order.variant), []
    for _ in range(count):
        move = next(iter(board.position().legal_moves))
        side = board.turn
        told.append(
            contract.PlyRecord(
                ply=board.ply + 1,
                side=side,
                move=chess.Move.uci(move),
                san=board.push(move),
                think_ns=think_ms * 1_000_000,
                margin_ns=0,
                overhead_ns=0,
                white_clock_ns=1_000_000_000,
                black_clock_ns=2_000_000_000,
                score=contract.Score(cp=cp if side == "white" else -cp),
            )
        )
    return told


def paused(played: Driver) -> Driver:
    """Pause a season."""
    played.append(operations.pause(played.state, "ann", "a question"))
    return played


def resumed(played: Driver) -> Driver:
    """Let a season go on."""
    played.append(operations.resume(played.state, "ann", "answered"))
    return played
