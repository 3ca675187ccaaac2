"""The ledger in memory: the twin of ``store``, with the same semantics.

For tests that need no server, or that step its clock; ``tests/ledger`` asks the same of both.
One object is one ledger; it may be used by several threads.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import api, keys, lanes, requests, restoring

P = ParamSpec("P")
R = TypeVar("R")


def wall_clock_ms() -> int:
    """Return this machine's time of day in milliseconds."""
    return time.time_ns() // 1_000_000


@dataclasses.dataclass
class _Fact:
    entry: contract.Entry
    data: str
    op: str

    def read(self) -> contract.Entry:
        # Decoded again for each reader: what one does to it concerns no other.
        return dataclasses.replace(self.entry, data=contract.loads(self.data))


@dataclasses.dataclass
class _Lease:
    claim: api.Claim
    token: contract.Token
    order: str
    deadline_ms: int
    ply: int = 0
    last_move_ms: int = 0
    suspect: str = ""
    abort: str = ""


@dataclasses.dataclass
class _Ended:
    attempt: str
    token: contract.Token
    seq: int


@dataclasses.dataclass
class _Hall:
    host: str | None = None
    worker: str = ""
    known: bool = False
    tokens: int = 0
    lease: _Lease | None = None
    ended: _Ended | None = None
    offers: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    drains: dict[str, str] = dataclasses.field(default_factory=dict)
    live: tuple[str, int] | None = None

    def holder(self, attempt: str, token: contract.Token) -> _Lease | None:
        lease = self.lease
        if lease and lease.claim.attempt == attempt and lease.token == token:
            return lease
        return None

    def free(self, lease: _Lease) -> None:
        self.lease = None
        if self.offers.get(lease.claim.season, ("", ""))[0] == lease.claim.game:
            del self.offers[lease.claim.season]


@dataclasses.dataclass
class _Season:
    results: dict[str, tuple[int, str]] = dataclasses.field(default_factory=dict)
    latest: dict[str, str] = dataclasses.field(default_factory=dict)
    attempts: dict[str, tuple[contract.Token, str]] = dataclasses.field(default_factory=dict)


def _atomic(
    verb: Callable[Concatenate[MemoryLedger, P], R],
) -> Callable[Concatenate[MemoryLedger, P], R]:
    @functools.wraps(verb)
    def locked(self: MemoryLedger, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.grown:
            return verb(self, *args, **kwargs)

    return locked


class MemoryLedger:
    """The ledger of ``store.RedisLedger``, kept in this process.

    ``epoch`` may be raised from outside, as a restore does with the key in Redis.
    """

    def __init__(self, clock: Callable[[], int] = wall_clock_ms) -> None:
        """Start empty; ``clock`` returns milliseconds and stands for Redis' TIME."""
        self.epoch = 1
        self.grown = threading.Condition(threading.RLock())
        self._clock = clock
        self._seasons: list[str] = []
        self._journals: defaultdict[str, list[_Fact]] = defaultdict(list)
        self._season: defaultdict[str, _Season] = defaultdict(_Season)
        self._hall: defaultdict[str, _Hall] = defaultdict(_Hall)
        self._holds: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._mirrored: dict[str, int] = {}
        self.server_run = "memory"  # a test gives it another name: the server was restarted
        self._checked: dict[str, str] = {}
        self._over: dict[str, int] = {}
        self._alarms: dict[str, str] = {}
        self._plies: dict[str, dict[int, str]] = {}
        self._records: dict[str, bytes] = {}
        self.lane_leases: defaultdict[str, dict[str, lanes.Lease]] = defaultdict(dict)
        self._vitals: dict[str, str] = {}
        self._services: dict[str, str] = {}

    def whoami(self) -> str:
        """Return the user whom changes are journaled for: nobody logs in here."""
        return "memory"

    def check_durability(self) -> list[str]:
        """Return the one complaint there is about a ledger in memory."""
        return ["the ledger is in memory only, and is lost when this process ends"]

    def close(self) -> None:
        """Do nothing: there is no socket to close."""

    # -- journal ---------------------------------------------------------------------

    def now_ms(self) -> int:
        """Return the clock's time of day in milliseconds."""
        return self._clock()

    @_atomic
    def seasons(self) -> tuple[str, ...]:
        """Return the ids of all launched seasons in the order of their launch."""
        return tuple(self._seasons)

    @_atomic
    def resting(self) -> dict[str, int]:
        """Return the seasons that are over and wholly archived; see ``api``."""
        return dict(self._over)

    @_atomic
    def append(
        self,
        journal: str,
        expected: int,
        drafts: Sequence[contract.Draft],
        by: str,
        effects: Sequence[api.Effect] = (),
    ) -> api.Appended | api.Stale:
        """Append drafts and effects if the journal still ends at ``expected``."""
        requests.check_append(expected, drafts)
        op = requests.operation_id(journal, expected, drafts, by, effects)
        entries = self._journals[journal]
        if expected and journal in self._checked:
            self._require_checked(journal)
        if len(entries) != expected:
            if len(entries) > expected and entries[expected].op == op:
                return api.Appended(expected + len(drafts))
            return api.Stale(len(entries))
        for draft in drafts:
            self._journalize(journal, draft.kind, contract.dumps(draft.data), by, op=op)
        if expected == 0 and journal != api.FARM:
            self._seasons.append(journal)
            self._checked[journal] = self.server_run
        for effect in effects:
            self._apply(effect)
        return api.Appended(len(entries))

    def _journalize(
        self,
        journal: str,
        kind: str,
        data: str,
        by: str,
        token: contract.Token | None = None,
        op: str = "",
    ) -> int:
        entries = self._journals[journal]
        self._over.pop(journal, None)
        at_ms = max(self._clock(), entries[-1].entry.at_ms if entries else 0)
        seq = len(entries) + 1
        entry = contract.Entry(seq, at_ms, kind, by, {}, "" if token is None else str(token))
        entries.append(_Fact(entry, data, op))
        self.grown.notify_all()
        return seq

    def _apply(self, effect: api.Effect) -> None:
        match effect:
            case api.Hold(scope, name, reason):
                self._holds[scope][name] = requests.non_empty(reason)
            case api.Release(scope, name):
                self._holds[scope].pop(name, None)
            case api.Abort(hall, attempt, reason):
                lease = self._hall[hall].lease
                if lease and lease.claim.attempt == attempt:
                    lease.abort = requests.non_empty(reason)
            case api.Drain(hall, worker, reason):
                self._hall[hall].drains[worker] = requests.non_empty(reason)
            case api.Undrain(hall, worker):
                self._hall[hall].drains.pop(worker, None)
            case api.Settle(season, game):
                self._season[season].results[game] = (0, requests.VERDICT)

    @_atomic
    def read(self, journal: str, after: int = 0, limit: int = 1000) -> list[contract.Entry]:
        """Return up to ``limit`` entries after sequence number ``after``, in order."""
        return [fact.read() for fact in self._journals[journal][after : after + limit]]

    @_atomic
    def last(self, journal: str) -> int:
        """Return the last sequence number of a journal, 0 where there is none."""
        return len(self._journals[journal])

    def wait(self, after: Mapping[str, int], timeout_ms: int) -> bool:
        """Block until one of the journals has grown past its number; say whether one has."""
        with self.grown:
            return self.grown.wait_for(
                lambda: any(len(self._journals[name]) > seq for name, seq in after.items()),
                timeout_ms / 1000,
            )

    # -- mirror and archive ------------------------------------------------------------

    @_atomic
    def mirrored(self, journal: str) -> int:
        """Return the last entry known to be in the mirror on disk."""
        return self._mirrored.get(journal, 0)

    @_atomic
    def set_mirrored(self, journal: str, seq: int, archived: Sequence[str] = ()) -> None:
        """Say that all entries up to ``seq`` are in the mirror; see ``api``."""
        self._mirrored[journal] = max(seq, self._mirrored.get(journal, 0))
        for attempt in archived:
            self._records.pop(attempt, None)
            self._plies.pop(attempt, None)

    def run_id(self) -> str:
        """Return the name of this server, which a restart would change."""
        return self.server_run

    @_atomic
    def set_checked(self, journal: str, run_id: str, over: int = 0) -> bool:
        """Let halls write to a journal that was compared with its mirror; see ``api``."""
        if run_id != self.server_run:
            return False
        self._checked[journal] = run_id
        if over and len(self._journals[journal]) == over:
            self._over[journal] = over
        return True

    def _require_checked(self, journal: str) -> None:
        if self._checked.get(journal) != self.server_run:
            raise errors.LedgerUncheckedError(f"nobody has compared {journal} with its mirror")

    @_atomic
    def alarms(self) -> dict[str, str]:
        """Return what ``serve`` finds wrong with a journal: its name to a sentence."""
        return dict(self._alarms)

    @_atomic
    def set_alarms(self, reasons: Mapping[str, str]) -> None:
        """Publish what is wrong with journals, in place of what was before."""
        self._alarms = dict(reasons)

    @_atomic
    def record(self, attempt: str) -> bytes | None:
        """Return the finished game's record as it came with ``complete``."""
        return self._records.get(attempt)

    @_atomic
    def archived(self, attempt: str) -> None:
        """Forget record and plies of an attempt: they are in the archive."""
        self._records.pop(attempt, None)
        self._plies.pop(attempt, None)

    @_atomic
    def plies_archived(self, attempt: str) -> None:
        """Forget the plies of an attempt that was given up; its record may have come since."""
        self._plies.pop(attempt, None)

    # -- halls, from the orchestrator's side -------------------------------------------

    @_atomic
    def halls(self) -> tuple[str, ...]:
        """Return the names of all known halls, sorted; what is no name is no hall."""
        opened = (name for name, hall in self._hall.items() if hall.known)
        return tuple(sorted(filter(contract.is_name, opened)))

    @_atomic
    def offer(
        self, hall: str, season: str, game: str, order: str, expected: int
    ) -> api.Offered | api.Stale | api.NotReady:
        """Make a game the season's ready game in a hall; see ``api``."""
        last = len(self._journals[season])
        if last == 0 or game in self._season[season].results:
            return api.NotReady()
        room = self._hall[hall]
        if room.offers.get(season) == (game, order):
            return api.Offered()
        if last != expected:
            return api.Stale(last)
        room.offers[season] = (game, order)
        room.known = True
        return api.Offered()

    @_atomic
    def withdraw(self, hall: str, season: str) -> None:
        """Take back the season's offer to a hall; a running attempt goes on."""
        self._hall[hall].offers.pop(season, None)

    @_atomic
    def offered(self, hall: str) -> dict[str, str]:
        """Return the hall's ready games: season id to game id."""
        return {season: game for season, (game, _) in self._hall[hall].offers.items()}

    @_atomic
    def slot(self, hall: str) -> api.Slot | None:
        """Return who holds the hall now."""
        lease = self._hall[hall].lease
        if lease is None:
            return None
        claim = lease.claim
        return api.Slot(
            hall=hall,
            season=claim.season,
            game=claim.game,
            attempt=claim.attempt,
            token=lease.token,
            worker=claim.worker,
            host=claim.host,
            lane=claim.lane,
            ttl_ms=claim.ttl_ms,
            deadline_ms=lease.deadline_ms,
            ply=lease.ply,
            last_move_ms=lease.last_move_ms,
            overdue=self._overdue(lease),
            suspect=lease.suspect,
            abort=lease.abort,
            order=lease.order,
        )

    def _overdue(self, lease: _Lease) -> bool:
        return self._clock() > lease.deadline_ms

    @_atomic
    def holds(self, scope: str) -> dict[str, str]:
        """Return the holds of a scope: name to reason."""
        return dict(self._holds[scope])

    @_atomic
    def suspect(self, hall: str, token: contract.Token, chain: str) -> api.Suspected | api.Alive:
        """Mark an overdue lease with a chain of looks; a renewal clears the mark."""
        requests.check_chain(chain)
        lease = self._hall[hall].lease
        if lease is None or lease.token != token or not self._overdue(lease):
            return api.Alive()
        lease.suspect = chain
        return api.Suspected()

    @_atomic
    def revoke(
        self,
        hall: str,
        token: contract.Token,
        chain: str,
        end: contract.AttemptEnded,
        *,
        suspended: bool = False,
    ) -> api.Recorded | api.Freed | api.Alive:
        """Free the slot of a lease that is overdue and still marked with ``chain``."""
        requests.check_chain(chain)
        room = self._hall[hall]
        replay = self._end_of(room, end.attempt, token)
        if replay:
            return replay
        lease = room.holder(end.attempt, token)
        if lease is None or lease.suspect != chain or not self._overdue(lease):
            return api.Alive()
        season = lease.claim.season
        if suspended and self._checked.get(season) != self.server_run:
            room.free(lease)
            return api.Freed()
        self._require_checked(season)
        return self._end(room, lease, end, api.FARM)

    def _end_of(self, room: _Hall, attempt: str, token: contract.Token) -> api.Recorded | None:
        ended = room.ended
        if ended and ended.attempt == attempt and ended.token == token:
            return api.Recorded(ended.seq)
        return None

    def _end(self, room: _Hall, lease: _Lease, end: contract.AttemptEnded, by: str) -> api.Recorded:
        seq = self._journalize(
            lease.claim.season, "attempt_ended", end.encode(), by, token=lease.token
        )
        room.ended = _Ended(end.attempt, lease.token, seq)
        room.free(lease)
        return api.Recorded(seq)

    # -- halls, from the worker's side -------------------------------------------------

    @_atomic
    def open_hall(self, hall: str, host: str, worker: str) -> api.Opened | api.Foreign:
        """Say that a worker of ``host`` plays in the hall; the first host keeps it."""
        room = self._hall[hall]
        if room.host is None:
            room.host = host
        if room.host != host:
            return api.Foreign(room.host)
        room.worker, room.known = worker, True
        return api.Opened()

    @_atomic
    def worker(self, hall: str) -> str:
        """Return the worker that opened the hall last, '' when none ever did."""
        return self._hall[hall].worker

    @_atomic
    def drained(self, hall: str, worker: str) -> str:
        """Return why this worker should end, '' when it should not."""
        return self._hall[hall].drains.get(worker, "")

    @_atomic
    def claim(
        self, claim: api.Claim
    ) -> api.Claimed | api.Busy | api.NotReady | api.Held | api.Foreign:
        """Take the hall for an attempt at its ready game; journals ``attempt_started``."""
        room = self._hall[claim.hall]
        lease = room.lease
        if lease and lease.claim.attempt == claim.attempt:
            return api.Claimed(lease.token, lease.order)
        if room.host not in {None, claim.host}:
            return api.Foreign(room.host or "")
        self._require_checked(claim.season)
        if lease:
            return api.Busy(lease.claim.attempt)
        tested = self._playing_in_lane(claim.hall)
        if tested:
            return api.Busy(tested)
        hold = self._hold_against(claim)
        if hold:
            return api.Held(hold)
        season = self._season[claim.season]
        game, order = room.offers.get(claim.season, ("", ""))
        if game != claim.game or game in season.results or claim.attempt in season.attempts:
            return api.NotReady()
        return self._grant(claim, order)

    def _playing_in_lane(self, hall: str) -> str:
        now = self._clock()
        for lease in self.lane_leases[hall].values():
            if lease.deadline_ms >= now and lease.token.epoch == self.epoch:
                return lease.attempt
        return ""

    def _hold_against(self, claim: api.Claim) -> str:
        for scope in (claim.season, keys.hall_scope(claim.hall)):
            holds = self._holds[scope]
            if holds:
                name = min(holds)
                return f"{name}: {holds[name]}"
        drain = self._hall[claim.hall].drains.get(claim.worker)
        return f"drain: {drain}" if drain else ""

    def _grant(self, claim: api.Claim, order: str) -> api.Claimed:
        room, season = self._hall[claim.hall], self._season[claim.season]
        room.host, room.known = claim.host, True
        room.tokens += 1
        token = contract.Token(self.epoch, room.tokens)
        room.lease = _Lease(claim, token, order, self._clock() + claim.ttl_ms)
        season.attempts[claim.attempt] = (token, claim.worker)
        season.latest[claim.game] = claim.attempt
        fact = requests.started(claim).encode()
        self._journalize(claim.season, "attempt_started", fact, claim.worker, token=token)
        return api.Claimed(token, order)

    def _writer(self, hall: str, token: contract.Token, attempt: str) -> _Lease | None:
        return self._hall[hall].holder(attempt, token) if token.epoch == self.epoch else None

    @_atomic
    def write_ply(
        self,
        hall: str,
        token: contract.Token,
        attempt: str,
        ply: int,
        payload: str,
        first: int = 0,
    ) -> api.Written | api.Gap | api.Fenced:
        """Write a completed ply; see ``api``."""
        requests.check_ply(ply)
        if self._writer(hall, token, attempt) is None:
            return api.Fenced()
        plies = self._plies.setdefault(attempt, {})
        last = max(plies, default=ply - 1)
        if plies.get(ply) == payload:
            return api.Written()
        if ply != last + 1:
            return api.Gap(last)
        if not plies and first not in {0, ply}:
            return api.Gap(0)
        plies[ply] = payload
        return api.Written()

    @_atomic
    def renew(
        self, hall: str, token: contract.Token, attempt: str, ply: int, last_move_ms: int
    ) -> api.Renewed | api.Fenced:
        """Extend the lease by its ttl from now, carry progress, bring back wishes."""
        lease = self._writer(hall, token, attempt)
        if lease is None:
            return api.Fenced()
        lease.deadline_ms = self._clock() + lease.claim.ttl_ms
        lease.ply, lease.last_move_ms, lease.suspect = ply, last_move_ms, ""
        drain = self._hall[hall].drains.get(lease.claim.worker, "")
        return api.Renewed(abort=lease.abort, drain=drain)

    @_atomic
    def complete(
        self,
        hall: str,
        token: contract.Token,
        season: str,
        finished: contract.GameFinished,
        record: bytes,
    ) -> api.Recorded | api.Refused:
        """Journal ``game_finished``, keep the record for the archive, free the slot."""
        game, attempt = finished.game, finished.attempt
        kept, room = self._season[season], self._hall[hall]
        self._require_checked(season)
        if game in kept.results:
            seq, winner = kept.results[game]
            return api.Recorded(seq) if winner == attempt else requests.refusal("result", winner)
        if token.epoch != self.epoch:
            return requests.refusal("epoch", str(self.epoch))
        given, worker = kept.attempts.get(attempt, (None, ""))
        newest = kept.latest.get(game)
        if given != token or newest is None:
            return requests.refusal("unknown", attempt)
        if newest != attempt:
            return requests.refusal("newer", newest)
        seq = self._journalize(season, "game_finished", finished.encode(), worker, token=token)
        kept.results[game] = (seq, attempt)
        self._records[attempt] = record
        if room.offers.get(season, ("", ""))[0] == game:
            del room.offers[season]
        if room.holder(attempt, token):
            room.lease = None
        return api.Recorded(seq)

    @_atomic
    def give_up(
        self, hall: str, token: contract.Token, season: str, end: contract.AttemptEnded
    ) -> api.Recorded | api.Fenced:
        """Journal ``attempt_ended``, free the slot, take the offer back."""
        room = self._hall[hall]
        self._require_checked(season)
        replay = self._end_of(room, end.attempt, token)
        if replay:
            return replay
        lease = self._writer(hall, token, end.attempt)
        if lease is None or lease.claim.season != season:
            return api.Fenced()
        return self._end(room, lease, end, lease.claim.worker)

    # -- what is shown of the game in flight -------------------------------------------

    @_atomic
    def plies(self, attempt: str, after: int = 0) -> list[tuple[int, str]]:
        """Return the written plies of an attempt after ply ``after``: number and payload."""
        plies = self._plies.get(attempt, {})
        return [(ply, payload) for ply, payload in plies.items() if ply > after]

    @_atomic
    def set_live(self, hall: str, payload: str, ttl_ms: int) -> None:
        """Publish what is going on in the hall at this moment."""
        self._hall[hall].live = (payload, self._clock() + max(1, ttl_ms))

    @_atomic
    def live(self, hall: str) -> str | None:
        """Return what was last published of the hall, while it is fresh."""
        live = self._hall[hall].live
        return live[0] if live and self._clock() < live[1] else None

    # -- hosts -------------------------------------------------------------------------

    @_atomic
    def set_vitals(self, host: str, payload: str) -> None:
        """Publish how a host is; replaces what it told before."""
        self._vitals[host] = payload

    @_atomic
    def vitals(self) -> dict[str, str]:
        """Return each host's last heartbeat, however long ago."""
        return dict(self._vitals)

    @_atomic
    def forget_host(self, host: str) -> None:
        """Drop the heartbeat of a host that is gone; no error where there is none."""
        self._vitals.pop(host, None)

    # -- services ----------------------------------------------------------------------

    @_atomic
    def set_service(self, name: str, payload: str) -> None:
        """Publish the report of a service; replaces its last one."""
        self._services[name] = payload

    @_atomic
    def services(self) -> dict[str, str]:
        """Return the last report of each service, however long ago."""
        return dict(self._services)

    # -- restore -----------------------------------------------------------------------

    def present_epoch(self) -> int:
        """Return the present epoch."""
        return self.epoch

    @_atomic
    def raise_epoch(self, epoch: int) -> int:
        """Raise the epoch, free every hall; return the epoch that stands now."""
        if epoch > self.epoch:
            self.epoch = epoch
            self._checked.clear()
            self._over.clear()
            for hall in self._hall.values():
                hall.lease = hall.ended = None
                hall.offers.clear()
        return self.epoch

    @_atomic
    def forget_journal(self, journal: str) -> None:
        """Delete a journal that a restore writes again, whole."""
        self._journals[journal].clear()

    @_atomic
    def load(self, journal: str, entries: Sequence[contract.Entry]) -> api.Appended | api.Stale:
        """Write entries of a mirror to the end of a journal that they follow."""
        requests.check_entries(entries)
        stored = self._journals[journal]
        if len(stored) != entries[0].seq - 1:
            return api.Stale(len(stored))
        for entry in entries:
            bare = dataclasses.replace(entry, data={})
            stored.append(_Fact(bare, contract.dumps(entry.data), ""))
        self.grown.notify_all()
        return api.Appended(len(stored))

    @_atomic
    def reindex(self, index: restoring.Index) -> None:
        """Replace what is kept of a season beside its journal."""
        kept = _Season(latest=dict(index.latest))
        for game, packed in index.results.items():
            seq, _, attempt = packed.partition(" ")
            kept.results[game] = (int(seq), attempt)
        for attempt, packed in index.attempts.items():
            token, _, worker = packed.partition(" ")
            kept.attempts[attempt] = (contract.Token.parse(token), worker)
        self._season[index.season] = kept
        self._holds[index.season] = dict(index.holds)
        self._mirrored[index.season] = index.mirrored
        if index.season not in self._seasons:
            self._seasons.append(index.season)
        for name, host in index.hosts.items():
            hall = self._hall[name]
            hall.host, hall.known = hall.host or host, True
            hall.tokens = max(hall.tokens, index.tokens[name])

    @_atomic
    def give_back(
        self, attempt: str, record: bytes | None, plies: Sequence[tuple[int, str]]
    ) -> None:
        """Put back what the archive does not have yet of an attempt."""
        if record is not None:
            self._records[attempt] = record
        if plies:
            self._plies[attempt] = dict(plies)
