"""Find faulty or cheating remote workers from the journal of a test match.

Four kinds of evidence, each of which may be looked at after every game:

* **results**: pairs that do not fit those of all others (``rating.residuals``), and games that end
  by a fault more often than elsewhere;
* **checks**: short games of a fixed number of nodes a move, which the same builds play alike
  everywhere: lanes of the farm play them, too, and each move must be the same;
* **clocks**: the worker's clock beside Redis', as both stood when results came and were answered;
* **stamps**: thinking times that no clock shows: repeated again and again.

Owners of access tokens are judged, for a machine's name is the worker's own word. Everything is a
function of the journal's entries in their order, so that a keeper that starts again knows the same.
"""

from __future__ import annotations

import collections
import dataclasses
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import chess.pgn

from orchestrator import contract
from orchestrator.rating import residuals
from orchestrator.testmatch import match_journal, orders

ALPHA: Final = 2.5e-6  # probability that results alone condemn an honest owner, for each match
LIMIT: Final = -math.log(ALPHA)  # nats of evidence: 12.9
DOUBT: Final = 3.0  # nats: by chance one honest owner in 20; no verdict rests on his games alone
SUSPECT: Final = 5.0  # nats: by chance one honest owner in 150; shown, and checked once more
FAULTS: Final = frozenset(
    {
        contract.Ending.TIME,
        contract.Ending.ILLEGAL,
        contract.Ending.DISCONNECT,
        contract.Ending.STALL,
        contract.Ending.FALSE_CLAIM,
    }
)
SAID_LINES, SAID_LETTERS = 10, 1_000  # kept of what an engine wrote to stderr before its fault
HALF_POINTS: Final = {"1-0": 2, "1/2-1/2": 1, "0-1": 0}  # of White
CHECKS_WRONG: Final = 2  # of one owner; a single one may be a cosmic ray
LANE_RUNS: Final = 2  # of a check: what two runs play differently is no check
QUORUM: Final = 3  # owners that agree, where no lane of the farm plays
CLOCK_MS: Final = 60_000  # of a look at a clock, at least
CLOCK_OFF: Final = 0.02  # of the time: an honest clock is off by 0.0001
CLOCK_LOOKS: Final = 3  # that must be off to the same side, and no fewer than are right
STEP_MS: Final = 2_000  # a clock of the day that jumped by more was set
STAMPED_PLIES: Final = 20  # of a game whose thinking times are looked at
STAMPED_GAMES: Final = 3  # with more repeated times than others; stamps are in nanoseconds


@dataclasses.dataclass(frozen=True)
class Finding:
    """Why an owner is not believed: by which rule, in words for him, with what evidence."""

    token: str
    rule: str
    reason: str
    nats: float = 0.0


@dataclasses.dataclass(frozen=True)
class Review:
    """What is known of an owner's workers in a match; ``state`` is '', suspect or condemned."""

    token: str
    workers: tuple[str, ...]
    games: int
    faults: int
    nats: float
    by: str
    checks: int
    checks_wrong: int
    clock_off: float
    clock_steps: int
    overhead_ms: float
    state: str
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the review as plain data."""
        return dataclasses.asdict(self)


@dataclasses.dataclass
class _Clock:
    """A worker's clock: how it stood where a look at it begins, and how its looks were.

    Results that the worker sent at ``boot_ms`` came at ``at_ms`` of Redis; the answer that it had
    last was given at ``heard_at_ms``, and came at ``heard_boot_ms``.
    """

    at_ms: int
    boot_ms: int
    day_ms: int
    heard_at_ms: int
    heard_boot_ms: int
    looks: int = 0
    fast: int = 0
    slow: int = 0


@dataclasses.dataclass
class _Owner:
    """All about an owner but his residuals."""

    workers: set[str] = dataclasses.field(default_factory=set)
    games: int = 0
    faults: int = 0
    stamped: int = 0  # games with impossible thinking times
    overhead_ns: int = 0
    plies: int = 0
    steps: int = 0
    off: float = 0.0  # of the clock that was off last
    clocks: dict[str, _Clock] = dataclasses.field(default_factory=dict)
    answers: dict[int, set[str]] = dataclasses.field(default_factory=dict)  # check to lines


def owner(data: Mapping[str, Any]) -> str:
    """Return the access token's id that a result came under, '' for a lane of the farm."""
    if data.get("hall"):
        return residuals.TRUSTED
    token, slash, _ = str(data.get("attempt", "")).partition("/")
    return token if slash else residuals.TRUSTED


def said(outcome: contract.Outcome, final_fen: str, stderr_tail: str) -> dict[str, str]:
    """Return what a result's entry keeps of a fault: its note, and the end of the loser's stderr.

    A move or a claim alone does not say that it was wrong, so its position stands behind it. Redis
    has all of it until it is in the mirror.
    """
    position = f" in {final_fen}" if outcome.ending in match_journal.MISPLAYED else ""
    lines = stderr_tail.strip().splitlines()[-SAID_LINES:] if outcome.ending in FAULTS else []
    text = "\n".join(lines)[-SAID_LETTERS:]
    return {"note": f"{outcome.note}{position}", **({"stderr": text} if text else {})}


class WorkerReview:
    """The evidence on all owners of a match."""

    def __init__(self, spec: orders.Spec) -> None:
        """Start with nothing known."""
        self._spec = spec
        self._owners: dict[str, _Owner] = collections.defaultdict(_Owner)
        self._residuals = residuals.Residuals()
        self._open: dict[int, tuple[str, str, int, int]] = {}  # pair: its first game
        self._lanes: dict[int, list[str]] = collections.defaultdict(list)  # check to lines
        self._condemned: dict[str, str] = {}  # token to reason
        self._changed: set[str] = set()  # owners that there is something new to say of
        self._truth: dict[int, str | None] = {}  # how checks go, as far as looked at
        self._block_ended = False

    # -- what the journal says --------------------------------------------------------------

    def game(self, data: Mapping[str, Any]) -> None:
        """Take a result that counts."""
        token, game = owner(data), int(data["game"])
        fault = data["ending"] in FAULTS
        if token:
            token_owner = self._owner(token, data)
            token_owner.games += 1
            token_owner.faults += fault
            self._stamps(token_owner, data)
        half_points = HALF_POINTS[data["result"]]
        if not self._spec.white_is_tested(game):
            half_points = 2 - half_points
        self._pair(token, str(data["host"]), game, half_points, fault=fault)

    def check(self, data: Mapping[str, Any]) -> None:
        """Take a check: from a lane what is right, from a worker what it played."""
        token, number, line = owner(data), int(data["game"]), _line(data)
        self._truth.clear()
        if not token:
            self._lanes[number].append(line)
            self._changed.update(self._owners)
            return
        self._owner(token, data).answers.setdefault(number, set()).add(line)
        self._changed.add(token)

    def carry(self, nats: Mapping[str, Sequence[float]]) -> None:
        """Take what earlier matches found."""
        self._residuals.carry(nats)

    def condemn(self, token: str, reason: str) -> None:
        """Believe nothing of an owner from here on."""
        self._condemned[token] = reason
        self._residuals.forget(token)

    def pardon(self, token: str) -> None:
        """Forget all evidence against an owner."""
        self._condemned.pop(token, None)
        self._residuals.forget(token)
        workers = self._owners[token].workers
        self._owners[token] = _Owner(workers=workers)
        self._truth.clear()

    # -- what follows -----------------------------------------------------------------------

    def condemned(self, token: str) -> bool:
        """Say whether an owner's results do not count."""
        return token in self._condemned

    def findings(self) -> list[Finding]:
        """Return owners against whom the evidence suffices since the last call, each once."""
        if self._block_ended:
            self._block_ended = False
            self._changed.update(
                token
                for token, evidence in self._residuals.evidence().items()
                if evidence.nats >= LIMIT
            )
        changed, self._changed = sorted(self._changed), set()
        each = (self._finding(token) for token in changed if not self.condemned(token))
        return [finding for finding in each if finding is not None]

    def carried(self) -> dict[str, list[float]]:
        """Return what later matches begin with, of owners that are not condemned (nats)."""
        return self._residuals.carried()

    def wanted(self) -> list[int]:
        """Return the checks that lanes have yet to play: workers have answered them."""
        asked = {number for token_owner in self._owners.values() for number in token_owner.answers}
        return sorted(number for number in asked if len(self._lanes[number]) < LANE_RUNS)

    def doubtful(self, token: str) -> bool:
        """Say whether an owner should be checked again soon."""
        wrong = len(self._wrong(token))
        return wrong == 1 or self._residuals.of(token).nats >= SUSPECT

    def doubted(self) -> set[str]:
        """Return the owners without whom a verdict must stand, too."""
        evidence = self._residuals.evidence()
        doubted = {token for token, against in evidence.items() if against.nats >= DOUBT}
        return doubted | {token for token in self._owners if self._wrong(token)}

    def lane_runs(self, number: int) -> int:
        """Return how often lanes have played a check."""
        return len(self._lanes[number])

    def tokens(self) -> list[str]:
        """Return the owners that have played."""
        return sorted(self._owners)

    def reviews(self) -> list[Review]:
        """Return what is known of each owner, the most evidence first."""
        reviewed = [self._review(token, token_owner) for token, token_owner in self._owners.items()]
        return sorted(
            reviewed, key=lambda review: (_STATES.index(review.state), -review.nats, review.token)
        )

    def unreliable(self) -> bool:
        """Say whether checks say nothing: workers differ from lanes as a rule."""
        answered = [token for token in self._owners if self._judged(token)]
        wrong = [token for token in answered if self._wrong(token)]
        return len(wrong) > 1 and 2 * len(wrong) >= len(answered)

    # -- the parts --------------------------------------------------------------------------

    def _owner(self, token: str, data: Mapping[str, Any]) -> _Owner:
        token_owner = self._owners[token]
        token_owner.workers.add(str(data["host"]))
        if clock := data.get("clock"):
            self._look(token, token_owner, clock)
        return token_owner

    def _pair(self, token: str, host: str, game: int, half_points: int, *, fault: bool) -> None:
        pair = (game + 1) // 2
        before = self._open.pop(pair, None)
        if before is None:
            self._open[pair] = (token, host, half_points, int(fault))
        elif before[:2] == (token, host):  # of two workers nobody's pair
            seen = residuals.Pair(before[2] + half_points, before[3] + fault)
            self._block_ended |= self._residuals.add(token, host, seen)

    def _stamps(self, known: _Owner, data: Mapping[str, Any]) -> None:
        seen = data.get("stamps")
        if not seen:
            return
        known.overhead_ns += seen["overhead_ns"]
        known.plies += seen["plies"]
        if self._spec.time_control.clocked and seen["plies"] >= STAMPED_PLIES:
            known.stamped += 2 * seen["repeated"] > seen["plies"]
            self._changed.add(owner(data))

    def _look(self, token: str, known: _Owner, told: Mapping[str, Any]) -> None:
        """Look at a clock between two results, however long the net kept either.

        From sending the first to having an answer after it the worker's clock shows no less than
        passed between the two here; from having the first's last answer to sending the second, no
        more. So its speed lies between two bounds, and the look lasts until they tell.
        """
        heard = told.get("heard")
        if heard is None or heard["at_ms"] > told["at_ms"]:
            return
        now = _Clock(
            told["at_ms"], told["boot_ms"], told["day_ms"], heard["at_ms"], heard["boot_ms"]
        )
        last = known.clocks.setdefault(told["process"], now)
        passed = now.heard_at_ms - last.at_ms
        if passed < CLOCK_MS:
            return
        most = (now.heard_boot_ms - last.boot_ms) / passed
        least = (now.boot_ms - last.heard_boot_ms) / (now.at_ms - last.heard_at_ms)
        fast, slow = least > 1 + CLOCK_OFF, most < 1 - CLOCK_OFF
        if not (fast or slow) and most - least > CLOCK_OFF:
            return
        if fast or slow:
            known.off = (least if fast else most) - 1
            self._changed.add(token)
        known.steps += abs((now.day_ms - last.day_ms) - (now.boot_ms - last.boot_ms)) > STEP_MS
        now.looks, now.fast, now.slow = last.looks + 1, last.fast + fast, last.slow + slow
        known.clocks[told["process"]] = now

    def _right(self, number: int) -> str | None:
        """Return how a check goes, ``None`` where that is not known, or is not one line."""
        if number not in self._truth:
            self._truth[number] = self._agreed(number)
        return self._truth[number]

    def _agreed(self, number: int) -> str | None:
        runs = self._lanes[number]
        if runs:
            return runs[0] if len(runs) >= LANE_RUNS and len(set(runs)) == 1 else None
        lines: collections.Counter[str] = collections.Counter()
        for token_owner in self._owners.values():
            lines.update(token_owner.answers.get(number, ()))
        if not lines:
            return None
        (line, times), *others = lines.most_common(2)
        return line if times >= QUORUM and (not others or times > 2 * others[0][1]) else None

    def _judged(self, token: str) -> list[int]:
        answers = self._owners[token].answers
        return [number for number in answers if self._right(number) is not None]

    def _wrong(self, token: str) -> list[int]:
        """Return the checks that an owner has played otherwise, or in several ways."""
        answers = self._owners[token].answers
        return [n for n in self._judged(token) if answers[n] != {self._right(n)}]

    def _finding(self, token: str) -> Finding | None:
        holder, evidence = self._owners[token], self._residuals.of(token)
        wrong = self._wrong(token)
        if len(wrong) >= CHECKS_WRONG and not self.unreliable():
            numbers = ", ".join(str(number - orders.LAST_GAME) for number in sorted(wrong))
            reason = (
                f"checks {numbers} went otherwise than on the farm's own machines: these are not"
                " the builds of the match, or the machine computes wrongly"
            )
            return Finding(token, "checks", reason)
        for clock in holder.clocks.values():
            off = max(clock.fast, clock.slow)
            if off >= CLOCK_LOOKS and 2 * off >= clock.looks:
                reason = (
                    f"its clock runs {holder.off:+.1%} beside the farm's: engines get wrong time"
                )
                return Finding(token, "clock", reason)
        if holder.stamped >= STAMPED_GAMES:
            reason = f"thinking times of {holder.stamped} games repeat: no clock shows such"
            return Finding(token, "stamps", reason)
        if evidence.nats >= LIMIT:
            reason = (
                f"{_WORDS[evidence.kind]} do not fit those of all others in the same match"
                f" (by chance once in 10^{evidence.nats / math.log(10):.0f})"
            )
            return Finding(token, evidence.kind, reason, evidence.nats)
        return None

    def _review(self, token: str, one: _Owner) -> Review:
        evidence = self._residuals.of(token)
        suspect = "suspect" if self.doubtful(token) else ""
        return Review(
            token=token,
            workers=tuple(sorted(one.workers)),
            games=one.games,
            faults=one.faults,
            nats=round(evidence.nats, 2),
            by=evidence.kind,
            checks=len(self._judged(token)),
            checks_wrong=len(self._wrong(token)),
            clock_off=round(one.off, 4),
            clock_steps=one.steps,
            overhead_ms=round(one.overhead_ns / 1e6 / one.plies, 3) if one.plies else 0.0,
            state="condemned" if self.condemned(token) else suspect,
            reason=self._condemned.get(token, ""),
        )


_STATES: Final = ("condemned", "suspect", "")
_WORDS: Final = {
    "": "results",
    "score": "its results",
    "draws": "its pairs, by how many are drawn,",
    "faults": "its losses by time, crash or illegal move",
}


def _line(data: Mapping[str, Any]) -> str:
    """Return the moves of a check, and how it ended."""
    game = chess.pgn.read_game(io.StringIO(data["pgn"]))
    moves = [] if game is None else [move.uci() for move in game.mainline_moves()]
    return " ".join([*moves, data["result"], str(data["ending"])])
