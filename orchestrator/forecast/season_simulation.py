"""Play a whole season under virtual time: the real core, and games that nobody plays.

Everything that a farm decides is decided here by the same functions (``decide``,
``decisions``, ``operations``); only the hall, the organizers and the clock are played by
this module. Games are drawn by ``game_model``, the organizers' answers by the seed. What
happens next follows from the journal and the chances alone: the same seed gives the same
journal to the byte, and a journal that was cut anywhere goes on as it did before.

The organizers answer when nothing else can be played; the clock jumps to a gate when
nobody else can go on; a season that the farm holds is resumed.
"""

from __future__ import annotations

import bisect
import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from orchestrator import contract
from orchestrator.common import errors, version
from orchestrator.forecast import game_model as game_chances
from orchestrator.season import decide, decisions, interruption, views
from orchestrator.season.amend import operations
from orchestrator.season.file import load
from orchestrator.season.fold import entries, events
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import seeded_random

HALL: Final = "simulation"
START_MS: Final = 1_577_836_800_000  # 2020-01-01, when every simulated season is launched
ANSWER_MS: Final = 6 * 3_600_000  # how long the organizers take
OUTAGE_MS: Final = 30 * 60_000  # how long a lost host, or a held season, stands still

_DAY_MS: Final = 86_400_000


class Simulation:
    """A season in play; ``journal`` and ``state`` always agree."""

    def __init__(
        self,
        journal: Iterable[contract.Entry] = (),
        chances: game_chances.Chances | None = None,
    ) -> None:
        """Go on from a journal; raise ``LedgerDamagedError`` for what is none."""
        self.chances = chances or game_chances.Chances()
        self.journal: list[contract.Entry] = []
        self.state = season_state.SeasonState()
        self._attempts: dict[str, int] = {}
        for entry in journal:
            self._record(entry)

    @classmethod
    def launched(
        cls, loaded: load.Loaded, seed: int, chances: game_chances.Chances | None = None
    ) -> Simulation:
        """Launch a season; raise ``UsageError`` for chances of engines that it lacks."""
        made = cls(chances=chances)
        roster = {engine.id for engine in loaded.engines}
        unknown = sorted({*made.chances.crashes, *made.chances.time_losses} - roster)
        if unknown:
            raise errors.UsageError(f"no engine {', '.join(unknown)} in {loaded.season.id}")
        drafts = operations.launch(loaded, loaded.season.id, str(seed), HALL, version.VERSION)
        made._append(drafts, "operator", START_MS)
        return made

    @property
    def seed(self) -> str:
        """Return the seed of all draws."""
        return self.state.launched.seed

    @property
    def waited_ms(self) -> int:
        """Return how long people and lost hosts were waited for, which is no play and no break."""
        return sum(_waits_ms(self.journal))

    def run(self) -> Simulation:
        """Play to the end; raise ``OrganizerError`` where a season cannot go on."""
        while self.step():
            pass
        return self

    def step(self) -> bool:
        """Let the next thing happen; say whether the season goes on."""
        if follows := interruption.following(self.state):
            self._append(follows, "organizer", self.state.at_ms)
            return True
        if self.state.lost is not None:
            self._judge(self.state.lost)
            return True
        drafts = decide.decide(self.state, self.state.at_ms)
        if drafts:
            self._append(drafts, "serve", self.state.at_ms)
            return True
        if self.state.over:
            return False
        if self.state.ready_game() is not None:
            self._play(self.state.ready_game() or "")
        elif self.state.held:
            resumed = operations.resume(self.state, "simulation", "the host was repaired")
            self._append(resumed, "operator", self.state.at_ms + OUTAGE_MS)
        elif asked := decisions.outstanding(self.state):
            self._answer(asked[0])
        elif unjudged := interruption.outstanding(self.state):
            self._answer_interruption(unjudged[0])
        else:
            self._jump()
        return True

    def _play(self, game_id: str) -> None:
        """Begin the next game, or end the attempt in flight."""
        running = self.state.running
        if running is None:
            number = self._attempts.get(game_id, 0) + 1
            begun = contract.AttemptStarted(
                game=game_id,
                attempt=f"{game_id}.attempt{number}",
                hall=HALL,
                lane="",
                host=HALL,
                worker=HALL,
            )
            self._append(
                [contract.Draft.of(entries.ATTEMPT_STARTED, begun)], "worker", self.state.at_ms
            )
            return
        drawn = self._drawn(self.state.game(game_id), running.attempt)
        ended_ms = running.started_ms + drawn.duration_ms
        if drawn.interrupted is None:
            finished = contract.Draft.of(entries.GAME_FINISHED, _finished(running, drawn, ended_ms))
            self._append([finished], "worker", ended_ms)
        else:
            lost = contract.Draft.of(
                entries.ATTEMPT_ENDED, _interrupted(running, drawn.interrupted)
            )
            self._append([lost], "serve", ended_ms + OUTAGE_MS)

    def _drawn(self, game: events.Game, attempt: str) -> game_chances.Drawn:
        engines = self.state.engines
        control = game.time_control or self.state.events[game.event].spec.time_control
        return game_chances.draw(
            self.chances, self.seed, attempt, engines[game.white], engines[game.black], control
        )

    def _judge(self, lost: season_state.Lost) -> None:
        """Judge an interruption by the season's rules, on evals and men that are drawn."""
        position = game_chances.interrupted(self.seed, lost.ended.attempt, lost.ended.ply)
        self._append(interruption.judged_by(self.state, position), "serve", self.state.at_ms)

    def _answer_interruption(self, question: str) -> None:
        """Let the organizers draw the result of an interrupted game by lot."""
        results = interruption.ANSWERS[:-1]
        lot = seeded_random.shuffle(self.seed, f"simulation:{question}", len(results))[0]
        answer = interruption.answer(self.state, question, results[lot], "simulation", "lots")
        self._append(answer, "organizer", self.state.at_ms + ANSWER_MS)

    def _answer(self, asked: entries.DecisionNeeded) -> None:
        """Let the organizers draw lots."""
        drawn = seeded_random.shuffle(self.seed, f"simulation:{asked.decision}", len(asked.engines))
        choice = [asked.engines[lot] for lot in drawn[: asked.choose]]
        answer = decisions.decide(self.state, asked.decision, choice, "simulation", "lots")
        self._append(answer, "organizer", self.state.at_ms + ANSWER_MS)

    def _jump(self) -> None:
        """Open the next gate: at its deadline, or as the operator does where it has none."""
        shut = [e for e in self.state.events.values() if e.status is events.Status.GATE]
        if shut and all(event.opens_at_ms is None for event in shut):
            opened = operations.open_gate(self.state, shut[0].id, "simulation", "it may begin")
            self._append(opened, "operator", self.state.at_ms + ANSWER_MS)
            return
        at_ms = self.state.next_deadline_ms()
        drafts = [] if at_ms is None else decide.decide(self.state, at_ms)
        if at_ms is None or not drafts:
            raise errors.OrganizerError(
                f"{self.state.launched.id} cannot go on after entry {self.state.seq}:"
                " no game, no gate and no decision is left, and no champion is found"
            )
        self._append(drafts, "serve", at_ms)

    def _append(self, drafts: Iterable[contract.Draft], by: str, at_ms: int) -> None:
        for draft in drafts:
            self._record(contract.Entry(self.state.seq + 1, at_ms, draft.kind, by, draft.data))

    def _record(self, entry: contract.Entry) -> None:
        self.state.apply(entry)
        self.journal.append(entry)
        if entry.kind == entries.ATTEMPT_STARTED:
            game = str(entry.data["game"])
            self._attempts[game] = self._attempts.get(game, 0) + 1


def _waits_ms(journal: Sequence[contract.Entry]) -> list[int]:
    """Return how long people or a lost host were waited for before each entry but the first."""
    return [
        entry.at_ms - before.at_ms
        if entry.by in {"operator", "organizer"}
        else OUTAGE_MS * (entry.kind == entries.ATTEMPT_ENDED)
        for before, entry in itertools.pairwise(journal)
    ]


class Playback:
    """A simulated season that happens again, as whoever shows seasons reads a ledger.

    Its time runs ``speed`` times as fast as ``clock`` (s), from the launch on, and jumps over what
    people and lost hosts were waited for: nothing happens then. After the last
    entry it stands still. Without a clock all of it has happened. A ledger's plies and records
    are not here: nobody played a simulated season's games, and others' are in the archive.
    """

    def __init__(
        self,
        journal: Sequence[contract.Entry],
        speed: float = 1.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Begin now."""
        self._journal, self._speed, self._clock = journal, speed, clock
        self._begun = clock() if clock else 0.0
        self._season = str(journal[0].data["id"])
        self._waited_ms = [0, *itertools.accumulate(_waits_ms(journal))]  # up to each entry
        self._shown_ms = [
            entry.at_ms - waited for entry, waited in zip(journal, self._waited_ms, strict=True)
        ]

    def now_ms(self) -> int:
        """Return the season's time of day."""
        if self._clock is None:
            return self._journal[-1].at_ms
        passed_ms = (self._clock() - self._begun) * self._speed * 1000
        shown_ms = self._journal[0].at_ms + round(passed_ms)
        happened = bisect.bisect_right(self._shown_ms, shown_ms)
        return min(shown_ms + self._waited_ms[happened - 1], self._journal[-1].at_ms)

    def seasons(self) -> tuple[str, ...]:
        """Return the one season."""
        return (self._season,)

    def resting(self) -> dict[str, int]:
        """Return none: nothing is archived."""
        return {}

    def read(self, journal: str, after: int = 0, limit: int = 1000) -> list[contract.Entry]:
        """Return entries after a number, as far as they have happened."""
        return list(self._journal[after : min(self.last(journal), after + limit)])

    def last(self, journal: str) -> int:
        """Return the number of the last entry that has happened."""
        if journal != self._season:
            return 0
        if self._clock is None:
            return len(self._journal)
        return bisect.bisect_right(self._journal, self.now_ms(), key=lambda entry: entry.at_ms)

    def plies(self, attempt: str, after: int = 0) -> list[tuple[int, str]]:  # noqa: ARG002 - as a ledger
        """Return no plies."""
        return []

    def live(self, hall: str) -> str | None:  # noqa: ARG002 - as a ledger
        """Return that no hall shows anything."""
        return None

    def record(self, attempt: str) -> bytes | None:  # noqa: ARG002 - as a ledger
        """Return that no game has a record."""
        return None


def marked(loaded: load.Loaded) -> load.Loaded:
    """Return a season whose name says that it is simulated; nothing else of it changes."""
    name = f"{loaded.season.name} (simulated)"
    return dataclasses.replace(loaded, season=loaded.season.model_copy(update={"name": name}))


def as_json(played: Simulation) -> dict[str, Any]:
    """Return what came of a simulated season, as plain data; days are of virtual time."""
    state = played.state
    kinds = [entry.kind for entry in played.journal]
    return {
        "season": state.launched.id,
        "seed": int(played.seed),
        "champion": state.champion,
        "games": sum(event.tally.games for event in state.events.values()),
        "virtual_days": round((state.at_ms - state.launched_ms) / _DAY_MS, 2),
        "journal_sha256": hashlib.sha256(journal_bytes(played.journal)).hexdigest(),
        "decisions": sum(  # by the organizers: a playoff's answer has no name
            entry.kind == entries.DECIDED and bool(entry.data["name"]) for entry in played.journal
        ),
        "disqualifications": kinds.count(entries.ENGINE_EXCLUDED),
        "interruptions": kinds.count(entries.ATTEMPT_ENDED),
        "waited_days": round(played.waited_ms / _DAY_MS, 2),
        "unrated": game_chances.without_rating(state.engines.values()),
        "events": [
            {
                "id": event.id,
                "name": event.spec.name,
                "games": event.tally.games,
                "standings": views.standings(state, event.id)["rows"],
            }
            for event in state.events.values()
        ],
    }


def journal_bytes(journal: Iterable[contract.Entry]) -> bytes:
    """Return a journal as the bytes of its ``journal.jsonl``."""
    return "".join(f"{entry.line()}\n" for entry in journal).encode()


def _finished(
    running: season_state.Attempt, drawn: game_chances.Drawn, ended_ms: int
) -> contract.GameFinished:
    outcome = drawn.outcome
    return contract.GameFinished(
        game=running.game,
        attempt=running.attempt,
        hall=running.hall,
        lane=running.lane,
        host=running.host,
        result=outcome.result,
        ending=outcome.ending,
        loser=outcome.loser,
        details=outcome.details,
        plies=drawn.plies,
        white_clock_ns=0,
        black_clock_ns=0,
        started_ms=running.started_ms,
        ended_ms=ended_ms,
        record_sha256="",
        r_mobility=drawn.white_points,
    )


def _interrupted(running: season_state.Attempt, ply: int) -> contract.AttemptEnded:
    return contract.AttemptEnded(
        game=running.game,
        attempt=running.attempt,
        hall=running.hall,
        lane=running.lane,
        host=running.host,
        cause="host lost",
        ply=ply,
    )
