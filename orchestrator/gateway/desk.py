"""What the gateway does for a worker: deals batches, hears results, renews, takes back.

Each method is one request of a worker whose token is valid, and blocks as long as Redis needs.
Nothing that a worker says reaches further than its own batch: its games are read from the
ledger, their orders from the match's specification, and each result is played again
(``testmatch.remote_game_check``) before it is journaled under the batch's token.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import secrets
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import structlog

from orchestrator import contract
from orchestrator.arbiter import board
from orchestrator.arbiter import record as records
from orchestrator.common import errors
from orchestrator.contract import remote
from orchestrator.ledger import (
    api,
    batches,
    lane_store,
    lanes,
    live_games,
    submissions,
    worker_tokens,
)
from orchestrator.testmatch import catalogue, orders, remote_game_check, spsa, worker_review

log = structlog.get_logger()

SPECS: Final = 64  # specifications kept: a match's book may have megabytes
BRIEFS: Final = 10_000  # matches of which is kept what they need
CANDIDATES: Final = 8  # matches that a claim may be dealt, those whose turn is next
NAMED: Final = 3  # matches whose files a worker lacks, in an answer
CLAIMS: Final = 4  # looks for a match with games: those without are out of the queue by then
PGN_BYTES: Final = 1 << 19  # of a game: Redis keeps it in memory; a longer one goes uncommented
WAIT_MS: Final = 10_000  # ms: a worker without a game asks again so soon
OVER: Final = "the batch has ended: its lease ran out, or it was given back, or its match is over"
FULL: Final = "the workers of this token hold {} batches, as many as they may; send results first"
STALLED_MS: Final = 1_800_000  # ms without a result: beyond, and beyond LONG_GAMES, a batch ends
LONG_GAMES: Final = 3  # games in a row: one is played, one more may be waited for
UNCLOCKED_MS: Final = 14_400_000  # ms: four hours, of a game that no clock ends
MOVES: Final = 300  # of each side, in a game that is called long
MEASURED_NS: Final = 1_000_000_000  # ns of thinking: less tells little of a machine's speed
FASTEST: Final = 10**12  # nodes a second: no machine has more
DIGITS: Final = 16  # of a SHA-256: enough to tell builds apart
SILENT: Final = (
    "no result has come for {} minutes, longer than games of this match take: dealt again"
)
MOST_WAITING: Final = 8  # test matches of one author that wait to be approved or kept
PROPOSED_BYTES: Final = 8_192  # of what an author wants to be tested: it waits in Redis
NO_AUTHOR: Final = "this token may not steer that test match (farm worker-token create --author)"
OUT_OF_SCOPE: Final = "{}: the test's name must match {}, which this token is for"
NO_BUILD: Final = "no open match of this token has such an engine to build"
CHECK_WAIT_MS: Final = 2_000  # ms: a check takes about a second
CHECKING: Final = "a short game that shows this worker's builds comes first, and is being played"
CHECK_EVERY: Final = 16  # batches of a worker: one of them, by lot, has a check beside its games
SHOWN_MS: Final = 5_000  # ms: a game that people look at is told so often
NO_ROOM_MS: Final = 300_000  # ms: others are shown; of a thousand workers three ask in a second
STAMP_NS: Final = 1_000_000  # ns: whole multiples of it are rounded by somebody


class RefusedBatchError(Exception):
    """The batch is not this worker's, or is no more."""


@dataclasses.dataclass(frozen=True)
class _Match:
    """A match that remote workers may play, and the files that they need for it."""

    run: str
    spec: orders.Spec
    builds: Mapping[str, remote.SourceBuild]  # by id: what workers build of them

    @property
    def named(self) -> dict[str, str]:
        """Return the SHA-256 of all that its workers must have, and whose file each is."""
        return {
            digest: engine.name
            if digest in self.builds
            else f"{engine.name}'s {path.rpartition('/')[2]}"
            for engine in self.spec.engines
            for path, digest in engine.checksums.items()
        }

    @property
    def served(self) -> frozenset[str]:
        """Return the SHA-256 of the files that its workers may fetch."""
        return frozenset(digest for build in self.builds.values() for digest in build.needed)


class _Brief(NamedTuple):
    """What is looked at of a match before its turn: whether, and by which files, it is played."""

    run: str
    remote: bool
    files: Mapping[str, str]  # SHA-256 to whose file it is, in words
    builds: frozenset[str]

    def lacking(self, missing: Collection[str]) -> str:
        """Return what a worker lacks for it, in words."""
        return " and ".join(
            f"{words} built from its source (farm work --build)"
            if digest in self.builds
            else f"{words} with SHA-256 {digest[:DIGITS]}…"
            for digest, words in self.files.items()
            if digest in missing
        )


class _Lacking(NamedTuple):
    """An open match that a worker cannot play, and the files that it lacks for it."""

    match: str
    brief: _Brief
    files: Collection[str]

    def __str__(self) -> str:
        return f"{self.match} wants {self.brief.lacking(self.files)}"


class Desk:
    """The gateway's side of all batches."""

    def __init__(
        self,
        ledger_batches: batches.RedisBatches,
        tokens: worker_tokens.RedisTokens,
        lease_ms: int,
        offered: catalogue.Catalogue,
    ) -> None:
        self._batches, self._tokens, self._lease_ms = ledger_batches, tokens, lease_ms
        self.catalogue = offered
        self._lanes = lane_store.RedisLanes(ledger_batches.server)
        self._submitted = submissions.RedisSubmissions(ledger_batches.server)
        self._live = live_games.RedisLiveGames(ledger_batches.server)
        self._matches: dict[str, _Match] = {}
        self._briefs: dict[str, _Brief] = {}
        self._lock = threading.Lock()  # requests come in threads

    def claim(
        self, token: worker_tokens.WorkerToken, wanted: remote.BatchWanted
    ) -> remote.BatchDealt:
        """Deal the next games that the worker can play."""
        for _ in range(CLAIMS):
            reply = self._claim(token, wanted)
            if not isinstance(reply, api.NotReady):
                break
        if isinstance(reply, api.NotReady):
            return remote.BatchDealt(wait_ms=WAIT_MS, why=remote.NOTHING)
        if isinstance(reply, remote.BatchDealt):
            return reply
        own, worker = f"{token.id}/{wanted.host}", f"{token.name}/{wanted.host}"
        name = _name(token, wanted.batch)
        match = self._match(reply.match, reply.run)
        if match is None:  # it was closed just now
            return remote.BatchDealt(wait_ms=WAIT_MS, why=remote.NOTHING)
        numbers = sorted(reply.games, key=lambda game: not match.spec.is_check(game))
        if numbers and match.spec.is_check(numbers[0]):
            asked = numbers[0] - orders.LAST_GAME
            self._batches.note_check(match.spec.id, own, f"{asked} {name}")
        self._tokens.see(token.id, {"host": wanted.host, "at_ms": self._batches.now_ms()})
        log.info("batch.dealt", worker=worker, match=reply.match, games=len(reply.games))
        return remote.BatchDealt(
            token=str(reply.token),
            match=reply.match,
            lease_ms=self._lease_ms,
            orders=tuple(self._order(match.spec, game, reply.nps) for game in numbers),
        )

    def _claim(
        self, token: worker_tokens.WorkerToken, wanted: remote.BatchWanted
    ) -> batches.Batch | api.NotReady | remote.BatchDealt:
        """Take games of the match whose turn it is, or answer why there are none."""
        own, name = f"{token.id}/{wanted.host}", _name(token, wanted.batch)
        if self._batches.batch(name) is not None:  # dealt before: its answer was lost
            return self._take(token, wanted, [], {})
        able, unbuilt, lacking = self._able(token, wanted)
        if unbuilt is not None:
            builds = tuple(
                build for name, build in unbuilt.builds.items() if name not in wanted.files
            )
            return remote.BatchDealt(match=unbuilt.spec.id, builds=builds)
        if not able:
            why = "; ".join([remote.NOTHING, *map(str, lacking)])
            return remote.BatchDealt(wait_ms=WAIT_MS, why=why)
        checks, able = self._checks(own, name, able)
        if not able:
            return remote.BatchDealt(wait_ms=CHECK_WAIT_MS, why=CHECKING)
        return self._take(token, wanted, able, checks)

    def _take(
        self,
        token: worker_tokens.WorkerToken,
        wanted: remote.BatchWanted,
        able: list[_Match],
        checks: Mapping[str, str],
    ) -> batches.Batch | api.NotReady | remote.BatchDealt:
        reply = self._batches.claim(
            batches.Claim(
                batch=_name(token, wanted.batch),
                owner=token.id,
                worker=f"{token.name}/{wanted.host}",
                ttl_ms=self._lease_ms,
                games=wanted.games,
                most_batches=token.batches,
                matches=self._speeds(token, wanted.host, able),
                checks=checks,
            )
        )
        if isinstance(reply, api.Busy):
            return remote.BatchDealt(wait_ms=WAIT_MS, why=FULL.format(reply.attempt))
        return reply

    def renew(
        self, token: worker_tokens.WorkerToken, named: remote.BatchNamed
    ) -> remote.BatchRenewed:
        """Extend a lease; raise ``RefusedBatchError`` where it has ended.

        It ends, too, when no result has come for longer than games take: a worker that renews
        and never plays would keep its games from all others.
        """
        batch = self._batches.batch(_name(token, named.batch))
        silent_ms = 0 if batch is None else self._batches.now_ms() - batch.heard_ms
        if batch is not None and silent_ms > self._patience_ms(batch):
            self.give_back(token, named)
            raise RefusedBatchError(SILENT.format(silent_ms // 60_000))
        reply = self._batches.renew(_name(token, named.batch), token.id, named.token)
        if isinstance(reply, api.Fenced):
            raise RefusedBatchError(OVER)
        return remote.BatchRenewed(abort=reply.abort)

    def give_back(self, token: worker_tokens.WorkerToken, named: remote.BatchNamed) -> int:
        """End a batch; return how many games are dealt again, 0 where it had ended before."""
        reply = self._batches.give_back(_name(token, named.batch), token.id, named.token)
        games = 0 if isinstance(reply, api.Fenced) else reply
        log.info("batch.given_back", worker=token.name, batch=named.batch, games=games)
        return games

    def hear(
        self, token: worker_tokens.WorkerToken, reported: remote.GamesTold
    ) -> remote.GamesHeard:
        """Check results and journal them. One that is wrong ends the batch.

        Raise ``RefusedBatchError`` where the batch is not this worker's or has ended.
        """
        at_ms = self._batches.now_ms()
        batch = self._batches.batch(_name(token, reported.batch))
        if batch is None or (batch.owner, str(batch.token)) != (token.id, reported.token):
            raise RefusedBatchError(OVER)
        recorded: list[int] = []
        seen: dict[str, object] = {}
        if reported.clock is not None:
            clock = reported.clock.model_dump(mode="json", exclude_none=True)
            seen["clock"] = {"at_ms": at_ms, **clock}  # beside Redis'
        for game in reported.games:
            try:
                reply = self._record(batch, game, seen)
            except (remote_game_check.WrongGameError, errors.BookError) as error:
                self._batches.give_back(batch.id, token.id, reported.token, refused=True)
                ids = {"match": batch.match, "game": game.number, "batch": batch.id}
                log.warning("game.refused", worker=batch.worker, why=str(error), **ids)
                refused = {game.number: str(error)}
                return remote.GamesHeard(
                    at_ms=at_ms,
                    recorded=tuple(recorded),
                    refused=refused,
                    over="a result was wrong; the other games of the batch are dealt again",
                )
            if isinstance(reply, api.Fenced):
                return remote.GamesHeard(at_ms=at_ms, recorded=tuple(recorded), over=OVER)
            recorded.append(game.number)
        self._live.end(batch.id, recorded)
        self._learn(token, batch, reported.games)
        return remote.GamesHeard(at_ms=at_ms, recorded=tuple(recorded))

    def show(self, token: worker_tokens.WorkerToken, told: remote.GameShown) -> remote.ShownAgain:
        """Show how a game stands, where there is room for it; raise ``RefusedBatchError``.

        Its moves are played again: nothing is shown that could not be on a board.
        """
        batch = self._batches.batch(_name(token, told.batch))
        if batch is None or (batch.owner, str(batch.token)) != (token.id, told.token):
            raise RefusedBatchError(OVER)
        match, now_ms = self._match(batch.match, batch.run), self._batches.now_ms()
        if match is None or told.number not in batch.games or match.spec.is_check(told.number):
            raise RefusedBatchError(OVER)
        if not self._live.has_room(batch.match, batch.id, told.number, now_ms):
            return remote.ShownAgain(wait_ms=NO_ROOM_MS)
        order = self._order(match.spec, told.number, batch.nps)
        played = board.GameBoard(order.opening, order.variant)
        for uci in told.moves:
            move = played.legal(uci)
            if move is None:
                raise RefusedBatchError(f"game {told.number}: {uci} is no legal move")
            played.push(move)
        self._live.put(
            live_games.LiveGame(
                match=batch.match,
                number=told.number,
                batch=batch.id,
                worker=batch.worker,
                white=order.white.name,
                black=order.black.name,
                fen=played.fen(),
                last=played.last_move if told.moves else "",
                plies=played.ply,
                white_clock_ns=told.white_clock_ns,
                black_clock_ns=told.black_clock_ns,
                at_ms=now_ms,
            )
        )
        return remote.ShownAgain(wait_ms=SHOWN_MS)

    def built(self, token: worker_tokens.WorkerToken, told: remote.BuildTold) -> dict[str, bool]:
        """Journal what became of a build; raise ``RefusedBatchError`` for one that nobody wants."""
        match = self._allowed(token, told.match, self._batches.run(told.match))
        if match is None or told.build not in match.builds:
            raise RefusedBatchError(NO_BUILD)
        worker = f"{token.name}/{told.host}"
        build = match.builds[told.build]
        fields = {"worker": worker, "name": build.name, "commit": build.commit}
        data = contract.dumps(
            fields | told.model_dump(mode="json", exclude={"schema_version", "match", "host"})
        )
        reply = self._batches.record_build(told.match, match.run, worker, data)
        if isinstance(reply, api.Fenced):
            raise RefusedBatchError(OVER)
        log.info("engine.built", worker=worker, match=told.match, why=told.why)
        return {"recorded": True}

    def steer(self, token: worker_tokens.WorkerToken, asked: remote.Steered) -> dict[str, bool]:
        """Write down what an author asks of a match; raise ``RefusedBatchError``.

        The match's keeper follows, as it follows an operator's command.
        """
        _require_author(token, asked.match)
        data: dict[str, object] = {"reason": asked.reason}
        if not asked.stop:
            data |= {"priority": asked.priority, "share": asked.share}
        draft = contract.Draft(lanes.STOP if asked.stop else lanes.CHANGE, data)
        by = _author(token)
        if not self._lanes.replay(asked.match, (), draft, by):
            raise RefusedBatchError(f"no test match {asked.match} is open")
        log.info("match.steered", match=asked.match, by=by, kind=draft.kind)
        return {"recorded": True}

    def copy(self, token: worker_tokens.WorkerToken, asked: remote.Copied) -> dict[str, bool]:
        """Submit a match as an author asks; raise ``RefusedBatchError``. Somebody approves it."""
        _require_author(token, asked.match, asked.name)
        fields = {"time_control", "games"}
        changes = asked.model_dump(mode="json", include=fields, exclude_none=True)
        control = "" if asked.time_control is None else f" at {asked.time_control.spoken}"
        games = "" if asked.games is None else f", {asked.games} games"
        about = f"{asked.match} once more{control}{games}"
        other = {"asks": True, "copy_of": asked.match, "changes": changes}
        return self._submit(token, asked.name, about, **other)

    def propose(self, token: worker_tokens.WorkerToken, asked: remote.Proposed) -> dict[str, bool]:
        """Submit a test of two revisions; raise ``RefusedBatchError``. Somebody approves it."""
        _require_author(token, asked.name)
        try:
            self.catalogue.check(asked)
        except errors.UsageError as error:
            raise RefusedBatchError(str(error)) from None
        proposed = asked.model_dump(mode="json")
        if len(contract.dumps(proposed)) > PROPOSED_BYTES:
            raise RefusedBatchError("its fields are too long")
        return self._submit(token, asked.name, _outline(asked), asks=True, proposed=proposed)

    def go_on(self, token: worker_tokens.WorkerToken, asked: remote.Agreed) -> dict[str, bool]:
        """Submit a match that was stopped to go on; raise ``RefusedBatchError``."""
        _require_author(token, asked.match)
        about = "goes on with its missing games"
        return self._submit(token, asked.match, about, asks=True, goes_on=True)

    def _submit(
        self, token: worker_tokens.WorkerToken, match: str, about: str, **other: Any
    ) -> dict[str, bool]:
        by = _author(token)
        others = [waiting for waiting in self._submitted.all() if waiting.match != match]
        if sum(waiting.is_by(by) for waiting in others) >= MOST_WAITING:
            raise RefusedBatchError(f"{MOST_WAITING} test matches of yours wait, or have failed")
        if self._batches.run(match) is not None:
            raise RefusedBatchError(f"a test match {match} is open already")
        at_ms = self._batches.now_ms()
        submission = submissions.Submission(match, by, at_ms, about, journaled=False, **other)
        if not self._submitted.submit(submission, ""):
            raise RefusedBatchError(f"a test match {match} waits already")
        log.info("match.submitted", match=match, by=by)
        return {"recorded": True}

    def approve(self, token: worker_tokens.WorkerToken, asked: remote.Agreed) -> dict[str, bool]:
        """Let a match be played that somebody else has submitted; raise ``RefusedBatchError``."""
        submission, by = self._waiting(token, asked.match), _author(token)
        if submission.is_by(by):
            raise RefusedBatchError(f"{asked.match} is your own: somebody else approves it")
        if not submission.approved_by:
            self._submitted.approve(asked.match, by)
            log.info("match.approved", match=asked.match, by=by)
        return {"recorded": True}

    def refuse(self, token: worker_tokens.WorkerToken, asked: remote.Refused) -> dict[str, bool]:
        """Take out a match that waits, also an own one; raise ``RefusedBatchError``."""
        self._waiting(token, asked.match)
        self._submitted.refuse(asked.match, _author(token), asked.reason)
        log.info("match.refused", match=asked.match, by=_author(token))
        return {"recorded": True}

    def _waiting(self, token: worker_tokens.WorkerToken, match: str) -> submissions.Submission:
        """Return a match that waits, of this author's scope; raise ``RefusedBatchError``."""
        _require_author(token, match)
        submission = self._submitted.find(match)
        if submission is None or submission.refused_by:
            raise RefusedBatchError(f"no test match {match} waits")
        return submission

    def waiting(self, token: worker_tokens.WorkerToken) -> list[submissions.Submission]:
        """Return the matches of a token's scope that wait."""
        return [waits for waits in self._submitted.all() if token.allows(waits.match)]

    def is_own(self, token: worker_tokens.WorkerToken, submission: submissions.Submission) -> bool:
        """Say whether a token's owner has submitted a match."""
        return submission.is_by(_author(token))

    def now_ms(self) -> int:
        """Return the time by Redis' clock."""
        return self._batches.now_ms()

    def serves(self, token: worker_tokens.WorkerToken, digest: str) -> bool:
        """Say whether a token's workers need a file for a match that they may play."""
        return any(
            match is not None and digest in match.served
            for match in (
                self._allowed(token, open_match.id, open_match.run)
                for open_match in self._batches.open_matches()
            )
        )

    def _allowed(
        self, token: worker_tokens.WorkerToken, name: str, run: str | None
    ) -> _Match | None:
        """Return an open match that a token's workers may play."""
        if run is None or not token.allows(name):
            return None
        match = self._match(name, run)
        return match if match is not None and match.spec.remote else None

    def lapse(self) -> None:
        """End batches whose leases have run out."""
        if ended := self._batches.lapse():
            log.warning("batches.lapsed", batches=ended)

    def _record(
        self, batch: batches.Batch, game: remote.PlayedGame, seen: dict[str, object]
    ) -> api.Recorded | api.Fenced:
        """Check one result and journal it; raise ``WrongGameError``."""
        data = "{}"  # of a game that was journaled before: the script answers by its number
        if game.number in batch.games:
            match = self._match(batch.match, batch.run)
            if match is None:
                return api.Fenced()
            order = self._order(match.spec, game.number, batch.nps)
            entry = _journaled(batch, order, game, self._batches.now_ms())
            if match.spec.tuning is not None:
                reports = (*game.white.options, *game.black.options)
                settings_set = ((setting.name, setting.remark) for setting in reports)
                entry["unmet"] = match.spec.tuning.unmet(settings_set)
            data = contract.dumps(entry | seen)
        reply = self._batches.record(batch, game.number, data)
        if isinstance(reply, batches.ForeignGame):
            raise remote_game_check.WrongGameError(f"game {game.number} is none of this batch's")
        match = self._match(batch.match, batch.run)
        recorded = isinstance(reply, api.Recorded)
        if recorded and match is not None and match.spec.is_check(game.number):
            host = batch.worker.rpartition("/")[2]
            self._batches.note_check(batch.match, f"{batch.owner}/{host}", batches.OWES_NONE)
        return reply

    def _order(self, spec: orders.Spec, game: int, nps: int) -> contract.GameOrder:
        """Write a game's order, of a tuning with the values that its iteration is dealt with."""
        if spec.tuning is None or spec.is_check(game):
            return spec.order(game, nps)
        dealt = self._batches.values(spec.id, spec.tuning.iteration(game))
        return spec.order(game, nps, spsa.values(dealt))

    def _checks(
        self, worker: str, claim: str, able: list[_Match]
    ) -> tuple[dict[str, str], list[_Match]]:
        """Choose the checks that a worker is asked: first of all, then now and then, by lot.

        Whoever owes one is given it again, and no game before it is played. Return the checks by
        match, and the matches that have anything for the worker while it plays what it owes.
        """
        numbers = {match.spec.id: match.spec.checks for match in able if match.spec.checks}
        asked, busy = {}, set()
        for match, owed in self._batches.owed(worker, list(numbers)).items():
            drawn = 1 + secrets.randbelow(numbers[match])
            number, _, leased = owed.partition(" ")
            if owed == batches.OWES_NONE:
                asked[match] = "" if secrets.randbelow(CHECK_EVERY) else str(drawn)
                continue
            asked[match] = f"{number or drawn}!"
            batch = self._batches.batch(leased) if leased and leased != claim else None
            if batch is not None and batch.games:
                busy.add(match)
        return asked, [match for match in able if match.spec.id not in busy]

    def _patience_ms(self, batch: batches.Batch) -> float:
        """Return how long a batch may go without a result."""
        match = self._match(batch.match, batch.run)
        if match is None or not batch.games:
            return math.inf
        if match.spec.is_check(batch.games[0]):  # it is alone: batches tell of checks last
            return STALLED_MS
        order = match.spec.order(batch.games[0], batch.nps)
        controls = (order.control("white"), order.control("black"))
        longest = sum(control.nominal_ms(MOVES) for control in controls)
        if not all(control.clocked for control in controls):
            longest = UNCLOCKED_MS
        return max(STALLED_MS, LONG_GAMES * longest)

    # -- matches -------------------------------------------------------------------------

    def _able(
        self, token: worker_tokens.WorkerToken, wanted: remote.BatchWanted
    ) -> tuple[list[_Match], _Match | None, list[_Lacking]]:
        """Return the open matches that a worker can play: it has their files, cores, memory.

        The second is one that it has to build engines for first, since none that it can play goes
        before it. The third says of some that it cannot play which files it lacks.
        """
        files, declined = frozenset(wanted.files), frozenset(wanted.declined)
        able: list[_Match] = []
        lacking: list[_Lacking] = []
        highest = -math.inf
        for open_match in self._batches.in_turn(lambda kind: _fits(kind, wanted)):
            brief = self._brief(open_match) if token.allows(open_match.id) else None
            if brief is None or not brief.remote:
                continue
            missing = brief.files.keys() - files
            buildable = wanted.builds and missing <= brief.builds and not missing & declined
            unmet = missing - declined
            if not buildable and unmet and len(lacking) < NAMED:
                lacking.append(_Lacking(open_match.id, brief, unmet))
            if missing and (not buildable or open_match.priority < highest):
                continue
            match = self._match(open_match.id, open_match.run)
            if match is not None and missing:
                return able, match, lacking
            if match is not None:
                able.append(match)
                highest = max(highest, open_match.priority)
            if len(able) == CANDIDATES:
                break
        return able, None, lacking

    def _brief(self, open_match: batches.OpenMatch) -> _Brief | None:
        """Return what a match needs, kept of each open one; its specification may be large."""
        kept = self._briefs.get(open_match.id)
        if kept is not None and kept.run == open_match.run:
            return kept
        match = self._match(open_match.id, open_match.run)
        if match is None:
            return None
        brief = _Brief(match.run, match.spec.remote, match.named, frozenset(match.builds))
        with self._lock:
            if len(self._briefs) >= BRIEFS:
                self._briefs.pop(next(iter(self._briefs)))
            self._briefs[open_match.id] = brief
        return brief

    def _speeds(
        self, token: worker_tokens.WorkerToken, host: str, able: list[_Match]
    ) -> dict[str, int]:
        """Return how fast each match's base is on a machine, as its games showed; 0: not known."""
        scaled = any(match.spec.reference_nps for match in able)
        speeds = self._tokens.speeds(token.id) if scaled else {}
        return {match.spec.id: speeds.get(_machine(host, match.spec), 0) for match in able}

    def _learn(
        self,
        token: worker_tokens.WorkerToken,
        batch: batches.Batch,
        games: Sequence[remote.PlayedGame],
    ) -> None:
        """See from counted games how fast the match's base is on the machine.

        It is measured there while the machine's other cores play, which is what clocks are
        scaled for; who tells fewer nodes gives both engines more time, and gains nothing.
        """
        match = self._match(batch.match, batch.run)
        if match is None or not match.spec.reference_nps or not match.spec.base:
            return
        nodes = thought_ns = 0
        for game in games:
            if match.spec.is_check(game.number):
                continue
            base = "black" if match.spec.white_is_tested(game.number) else "white"
            for ply in game.plies:
                if ply.side == base and ply.nodes and match.spec.opponent(game.number) == 1:
                    nodes, thought_ns = nodes + ply.nodes, thought_ns + ply.think_ns
        if thought_ns >= MEASURED_NS:
            host = batch.worker.rpartition("/")[2]
            nps = min(FASTEST, max(1, nodes * 1_000_000_000 // thought_ns))
            self._tokens.learn(token.id, _machine(host, match.spec), nps)

    def _match(self, name: str, run: str) -> _Match | None:
        """Return an open match's specification, read once for each of its openings.

        ``None`` where another opening's is stored by now: the match was closed, and opened again.
        """
        kept = self._matches.get(name)
        if kept is not None and kept.run == run:
            return kept
        text = self._batches.spec(name, run)
        if text is None:
            return None
        spec = orders.Spec.decode(text).for_workers()
        builds = {build.id: build for build in spec.builds if build is not None}
        match = _Match(run, spec, builds)
        with self._lock:
            if len(self._matches) >= SPECS:
                self._matches.pop(next(iter(self._matches)))
            self._matches[name] = match
        return match


def _fits(kind: batches.OpenMatch, wanted: remote.BatchWanted) -> bool:
    """Say whether a worker can play matches that need what this one does."""
    needs = kind.needs
    fits = needs.threads <= wanted.cores and needs.memory_mb <= wanted.memory_mb
    return fits and not (kind.halls or needs.gpus or needs.one_node or needs.nps)


def _machine(host: str, spec: orders.Spec) -> str:
    """Return what a speed is kept under: a machine and the build that was measured."""
    return f"{host}/{spec.base[:DIGITS]}"


def _require_author(token: worker_tokens.WorkerToken, *matches: str) -> None:
    """Raise ``RefusedBatchError`` where a token's owner may not steer these matches."""
    if not token.author:
        raise RefusedBatchError(NO_AUTHOR)
    for match in matches:
        if not token.allows(match):
            raise RefusedBatchError(OUT_OF_SCOPE.format(match, token.scope))


def _outline(asked: remote.Proposed) -> str:
    """Return what an author wants to be tested, in a line."""
    if asked.tuning is not None:
        count = f"{asked.tuning.iterations} iterations of {asked.tuning.pairs} pairs"
        return f"{asked.engine}: {asked.tested} tuned, {count} at {asked.time_control.spoken}"
    others = ", ".join((asked.against, *asked.also))
    games = f"{asked.games} games at {asked.time_control.spoken}"
    return f"{asked.engine}: {asked.tested} against {others}, {games}"


def _author(token: worker_tokens.WorkerToken) -> str:
    """Return who is written into journals for the owner of a token."""
    return f"{token.name}@{submissions.BY_GATEWAY}{token.id}"


def _name(token: worker_tokens.WorkerToken, batch: str) -> str:
    """Return a batch's name in the ledger: no two tokens share one."""
    return f"{token.id}/{batch}"


def _journaled(
    batch: batches.Batch, order: contract.GameOrder, game: remote.PlayedGame, now_ms: int
) -> dict[str, object]:
    """Return what the journal keeps of a result, as a lane writes it; raise ``WrongGameError``."""
    checked = remote_game_check.verified(order, game, now_ms - batch.begun_ms)
    whole = remote_game_check.record(
        order, game, checked, attempt=batch.id, host=batch.worker, ended_ms=now_ms
    )
    outcome, text = whole.outcome, records.pgn(whole, played=checked.played)
    if len(text.encode()) > PGN_BYTES:
        text = records.pgn(whole, minimal=True, played=checked.played)
    return {
        "game": game.number,
        "lane": "",
        "hall": "",
        "host": batch.worker,
        "attempt": batch.id,
        "result": outcome.result,
        "ending": outcome.ending,
        "loser": outcome.loser,
        "details": outcome.details,
        "plies": whole.plies[-1].ply if whole.plies else 0,
        "pgn": text,
        "stamps": _stamps(whole.plies),
        **worker_review.said(outcome, whole.final_fen, _stderr_of(whole)),
    }


def _stderr_of(whole: contract.GameRecord) -> str:
    """Return what the loser of a game wrote to stderr last, as its worker tells it."""
    if whole.outcome.loser is None:
        return ""
    return (whole.white if whole.outcome.loser == "white" else whole.black).stderr_tail


def _stamps(plies: Sequence[contract.PlyRecord]) -> dict[str, int]:
    """Return what the stamps of a game show of its clock: plies, those that repeat, overhead.

    A clock counts nanoseconds: two moves of a game hardly ever take as long as each other, and
    none a whole number of milliseconds.
    """
    times = collections.Counter(ply.think_ns for ply in plies)
    repeated = sum(
        number for think_ns, number in times.items() if number > 1 or not think_ns % STAMP_NS
    )
    overhead_ns = sum(max(0, ply.overhead_ns) for ply in plies)
    return {"plies": len(plies), "repeated": repeated, "overhead_ns": overhead_ns}
