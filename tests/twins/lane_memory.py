"""Lanes and test matches in memory: the twin of ``lane_store``, on a ``MemoryLedger``.

It shares the ledger's lock, epoch and lane leases, so that claims of lanes and of the
whole hall exclude each other as the scripts do.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from twins import memory

from orchestrator import contract
from orchestrator.ledger import api, keys, lanes


@dataclasses.dataclass
class _Open:
    match: lanes.Match
    next: int
    again: list[int]
    served: int
    run: str
    last: int = 0
    mirrored: int = 0
    values: dict[int, str] = dataclasses.field(default_factory=dict)  # by their first iteration

    def deal_again(self, games: Sequence[int]) -> None:
        self.again = sorted({*self.again, *games})

    def take(self, most: int) -> tuple[int, ...]:
        games, self.again = self.again[:most], self.again[most:]
        first = self.next
        while self.next <= self.match.games and (
            len(games) < most or (most > 1 and self.next > first and self.next % 2 == 0)
        ):
            games.append(self.next)
            self.next += 1
        return tuple(games)


class MemoryLanes:
    """The verbs of ``lane_store.RedisLanes``, kept in this process."""

    def __init__(self, ledger: memory.MemoryLedger) -> None:
        self._ledger = ledger
        self._lanes: defaultdict[str, dict[str, lanes.Lane]] = defaultdict(dict)
        self._ended: dict[tuple[str, str], tuple[str, int, int]] = {}  # attempt, game, entry
        self._tokens: defaultdict[str, int] = defaultdict(int)
        self._ttl_ms: dict[str, int] = {}
        self._dealt_by: dict[str, _Open] = {}
        self._open: dict[str, _Open] = {}
        self._runs = 0

    # -- lanes -------------------------------------------------------------------------

    def open_lane(self, lane: lanes.Lane) -> api.Opened | api.Foreign | lanes.Overlap:
        """Make a lane known, or change it; refused where a core or box is another's."""
        with self._ledger.grown:
            reply = self._ledger.open_hall(lane.hall, lane.host, self._ledger.worker(lane.hall))
            if isinstance(reply, api.Foreign):
                return reply
            lanes_here = self._lanes[lane.hall]
            plays = lane.name in self._ledger.lane_leases[lane.hall]
            if plays and lanes_here.get(lane.name, lane) != lane:
                return lanes.Overlap(lane.name)
            for name in sorted(lanes_here.keys() - {lane.name}):
                if lanes_here[name].cpus & lane.cpus or lanes_here[name].boxes & lane.boxes:
                    return lanes.Overlap(name)
            lanes_here[lane.name] = lane
            return api.Opened()

    def close_lane(self, hall: str, lane: str) -> None:
        """Forget a lane; a game that runs there goes on."""
        with self._ledger.grown:
            self._lanes[hall].pop(lane, None)

    def lanes_of(self, hall: str) -> list[lanes.Lane]:
        """Return the lanes of a hall by name."""
        with self._ledger.grown:
            return [self._lanes[hall][name] for name in sorted(self._lanes[hall])]

    def leases(self, hall: str) -> list[lanes.Lease]:
        """Return the games that run in a hall's lanes."""
        with self._ledger.grown:
            held = self._ledger.lane_leases[hall]
            return [held[name] for name in sorted(held)]

    # -- matches -----------------------------------------------------------------------

    def open_match(
        self, match: lanes.Match, by: str = api.FARM, seq: int = 0
    ) -> api.Opened | lanes.Elsewhere:
        """Let a match be dealt, or change how; ``seq`` is its mirror's last entry."""
        with self._ledger.grown:
            entry = self._open.get(match.id)
            if entry is not None and (entry.match.spec != match.spec or entry.mirrored > seq):
                return lanes.Elsewhere()
            if entry is None:
                peers = [
                    peer.served / peer.match.share
                    for peer in self._open.values()
                    if peer.match.priority == match.priority
                ]
                served = int(min(peers, default=0) * match.share)
                self._runs += 1
                run, again = str(self._runs), sorted(match.again)
                entry = _Open(match, match.next, again, served, run, values=dict(match.values))
                self._open[match.id] = entry
            entry.match = match
            if self._last(match.id) == 0:
                data: dict[str, object] = {"match": match.id, "next": match.next}
                entry.last = self._journal(match.id, contract.Draft(lanes.OPENED, data), by)
            return api.Opened()

    def _last(self, match: str) -> int:
        return self._ledger.last(lanes.journal(match))

    def _journal(self, match: str, draft: contract.Draft, by: str, token: str = "") -> int:
        seq = self._last(match) + 1
        at_ms = self._ledger.now_ms()
        entry = contract.Entry(seq, at_ms, draft.kind, by, draft.data, token)
        return self._ledger.load(lanes.journal(match), [entry]).last

    def close_match(self, match: str) -> None:
        """End a match: nothing more is dealt or recorded. Its journal stays readable here."""
        with self._ledger.grown:
            self._open.pop(match, None)

    def matches(self) -> dict[str, lanes.Match]:
        """Return the open matches, their progress included."""
        with self._ledger.grown:
            return {
                name: dataclasses.replace(entry.match, next=entry.next, again=tuple(entry.again))
                for name, entry in sorted(self._open.items())
            }

    def spec(self, match: str) -> str | None:
        """Return the specification of an open match."""
        with self._ledger.grown:
            entry = self._open.get(match)
            return None if entry is None else entry.match.spec

    # -- games -------------------------------------------------------------------------

    def claim_lane(
        self, claim: lanes.LaneClaim
    ) -> lanes.Dealt | api.Busy | api.Held | api.NotReady:
        """Take a lane for the next game of the match whose turn it is; see ``lanes``."""
        with self._ledger.grown:
            held = self._ledger.lane_leases[claim.hall]
            for lease in list(held.values()):
                if lease.attempt == claim.attempt and lease.token.epoch == self._ledger.epoch:
                    return lanes.Dealt(lease.token, lease.match, lease.games, lease.run)
                self._drop_if_over(lease)
            refused = self._refusal(claim)
            if refused is not None:
                return refused
            lane = self._lanes[claim.hall].get(claim.lane)
            over = self._ended.get((claim.hall, claim.lane), ("", 0, 0))[0] == claim.attempt
            if lane is None or lane.host != claim.host or over:
                return api.NotReady()
            turn = self._turn(lane)
            return api.NotReady() if turn is None else self._deal(claim, turn)

    def _drop_if_over(self, lease: lanes.Lease) -> None:
        old = lease.token.epoch != self._ledger.epoch
        if old or lease.deadline_ms < self._ledger.now_ms():
            del self._ledger.lane_leases[lease.hall][lease.lane]
            entry = self._still_open(lease)
            if entry is not None:
                entry.deal_again(lease.games)

    def _still_open(self, lease: lanes.Lease) -> _Open | None:
        """Return the match of a lease; a match opened again has dealt its game again."""
        entry = self._open.get(lease.match)
        return entry if entry is self._dealt_by.get(lease.attempt) else None

    def _refusal(self, claim: lanes.LaneClaim) -> api.Busy | api.Held | None:
        slot = self._ledger.slot(claim.hall)
        if slot is not None:
            return api.Busy(slot.attempt)
        if self._ledger.offered(claim.hall):
            return api.Held(lanes.OFFICIAL)
        holds = self._ledger.holds(keys.hall_scope(claim.hall))
        if holds:
            return api.Held(f"{min(holds)}: {holds[min(holds)]}")
        drain = self._ledger.drained(claim.hall, claim.worker)
        if drain:
            return api.Held(f"drain: {drain}")
        running = self._ledger.lane_leases[claim.hall].get(claim.lane)
        return None if running is None else api.Busy(running.attempt)

    def _turn(self, lane: lanes.Lane) -> _Open | None:
        able = [entry for entry in self._open.values() if self._may_play(entry, lane)]

        def rank(entry: _Open) -> tuple[int, float, str]:
            return -entry.match.priority, entry.served / entry.match.share, entry.match.id

        return min(able, key=rank, default=None)

    def _may_play(self, entry: _Open, lane: lanes.Lane) -> bool:
        match = entry.match
        waiting = entry.last - entry.mirrored
        here = not match.halls or lane.hall in match.halls
        has_game = bool(entry.again) or entry.next <= match.games
        return here and has_game and waiting <= lanes.LEAD and not match.needs.unmet(lane)

    def _deal(self, claim: lanes.LaneClaim, turn: _Open) -> lanes.Dealt:
        games = turn.take(claim.most)
        turn.served += len(games)
        self._tokens[claim.hall] += 1
        token = contract.Token(self._ledger.epoch, self._tokens[claim.hall])
        self._ttl_ms[claim.attempt] = claim.ttl_ms
        self._dealt_by[claim.attempt] = turn
        self._ledger.lane_leases[claim.hall][claim.lane] = lanes.Lease(
            hall=claim.hall,
            lane=claim.lane,
            attempt=claim.attempt,
            token=token,
            match=turn.match.id,
            games=games,
            worker=claim.worker,
            host=claim.host,
            deadline_ms=self._ledger.now_ms() + claim.ttl_ms,
            run=turn.run,
        )
        return lanes.Dealt(token, turn.match.id, games, turn.run)

    def _held(
        self, hall: str, lane: str, token: contract.Token, attempt: str
    ) -> lanes.Lease | None:
        lease = self._ledger.lane_leases[hall].get(lane)
        matches = lease is not None and (lease.attempt, lease.token) == (attempt, token)
        return lease if matches and token.epoch == self._ledger.epoch else None

    def renew_lane(
        self, hall: str, lane: str, token: contract.Token, attempt: str
    ) -> api.Renewed | api.Fenced:
        """Extend the lease by its ttl; ``abort`` tells that the match is over."""
        with self._ledger.grown:
            lease = self._held(hall, lane, token, attempt)
            if lease is None or self._ledger.slot(hall) is not None:
                return api.Fenced()
            deadline = self._ledger.now_ms() + self._ttl_ms[attempt]
            renewed = dataclasses.replace(lease, deadline_ms=deadline)
            self._ledger.lane_leases[hall][lane] = renewed
            abort = lanes.STOPPED if self._still_open(lease) is None else ""
            return api.Renewed(abort, self._ledger.drained(hall, lease.worker))

    def complete_lane(
        self, lease: lanes.Lease, data: str, kind: str = lanes.GAME, *, goes_on: bool = True
    ) -> lanes.Counted | api.Fenced:
        """Journal the result of a lease's first game; see ``lanes``."""
        with self._ledger.grown:
            lane_key = (lease.hall, lease.lane)
            attempt, game, seq = self._ended.get(lane_key, ("", 0, 0))
            held = self._held(*lane_key, lease.token, lease.attempt)
            if (attempt, game) == (lease.attempt, lease.game):
                return lanes.Counted(seq, () if held is None else held.games)
            if held is None or (held.match, held.game) != (lease.match, lease.game):
                return api.Fenced()
            entry = self._still_open(held)
            if entry is None:
                del self._ledger.lane_leases[lease.hall][lease.lane]
                return api.Fenced()
            draft = contract.Draft(kind, contract.loads(data))
            entry.last = self._journal(lease.match, draft, lease.worker, str(lease.token))
            self._ended[lane_key] = (lease.attempt, lease.game, entry.last)
            return lanes.Counted(entry.last, self._left(held, entry, kind, goes_on=goes_on))

    def _left(
        self, held: lanes.Lease, entry: _Open, kind: str, *, goes_on: bool
    ) -> tuple[int, ...]:
        """Renew the lease for its other games, or free the lane and deal them again."""
        hall, rest = held.hall, held.games[1:]
        ledger = self._ledger
        wanted = ledger.slot(hall) or ledger.offered(hall) or ledger.drained(hall, held.worker)
        stops = wanted or ledger.holds(keys.hall_scope(hall)) or not goes_on
        if kind == lanes.LOST or not rest or stops:
            del ledger.lane_leases[hall][held.lane]
            entry.deal_again(held.games if kind == lanes.LOST else rest)
            return ()
        deadline = ledger.now_ms() + self._ttl_ms[held.attempt]
        renewed = dataclasses.replace(held, games=rest, deadline_ms=deadline)
        ledger.lane_leases[hall][held.lane] = renewed
        return rest

    def replay(self, match: str, games: Sequence[int], draft: contract.Draft, by: str) -> bool:
        """Journal that results are set aside and deal their games again; False: not open."""
        with self._ledger.grown:
            entry = self._open.get(match)
            if entry is None:
                return False
            entry.last = self._journal(match, draft, by)
            entry.deal_again(games)
            return True

    def tune(self, match: str, tuned: lanes.Tuned, by: str) -> bool:
        """Journal values of a tuning's parameters; see ``lanes``."""
        with self._ledger.grown:
            entry = self._open.get(match)
            first = 0 if entry is None else -(-(entry.next - 1) // tuned.games) + 1
            if entry is None or first > tuned.iterations:
                return False
            data: dict[str, object] = {"first": first, **tuned.data()}
            entry.last = self._journal(match, contract.Draft(lanes.TUNED, data), by)
            kept = {before: text for before, text in entry.values.items() if before < first}
            entry.values = {**kept, first: contract.dumps(data)}
            return True

    def values(self, match: str, iteration: int) -> str | None:
        """Return the entry's data by which an iteration is dealt; see ``lanes``."""
        with self._ledger.grown:
            entry = self._open.get(match)
            dealt = {} if entry is None else entry.values
            first = max((first for first in dealt if first <= iteration), default=None)
            return None if first is None else dealt[first]

    def forget(self, match: str, upto: int) -> None:
        """Say that entries are in the mirror; this twin keeps them all the same."""
        with self._ledger.grown:
            if match in self._open:
                self._open[match].mirrored = upto

    def close(self) -> None:
        """Do nothing: there is no socket to close."""
