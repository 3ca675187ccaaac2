"""Lanes and test matches in Redis: every verb is one script of ``scripts`` or one read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator import contract
from orchestrator.ledger import api, connection, keys, lanes, replies

TABLES = ("", "specs", "next", "again", "served", "last", "mirrored")  # of open matches


def connect(url: str, prefix: str = keys.PREFIX) -> RedisLanes:
    """Return the lanes at a Redis URL; nothing is sent yet. Raise ``UsageError``."""
    return RedisLanes(connection.Server(url), prefix)


class RedisLanes:
    """The verbs of ``lanes.Lanes`` on one Redis server."""

    def __init__(self, server: connection.Server, prefix: str = keys.PREFIX) -> None:
        self.server = server
        self._keys = keys.Keys(prefix)

    def close(self) -> None:
        """Close all sockets; the next verb opens them again."""
        self.server.close()

    # -- lanes -------------------------------------------------------------------------

    def open_lane(self, lane: lanes.Lane) -> api.Opened | api.Foreign | lanes.Overlap:
        """Make a lane known, or change it; refused where its cores are another's."""
        hall = lane.hall
        names = [
            self._keys.hall(hall),
            self._keys.halls,
            self._keys.lanes(hall),
            self._keys.leases(hall),
        ]
        facts = contract.dumps(lane.facts())
        raw = self.server.run("open_lane", names, hall, lane.name, lane.host, facts)
        if replies.word(raw) == "overlap":
            return lanes.Overlap(replies.text(raw[1]))
        return replies.opened(raw)

    def close_lane(self, hall: str, lane: str) -> None:
        """Forget a lane; a game that runs there goes on."""
        with self.server.asked():
            self.server.client.hdel(self._keys.lanes(hall), lane)

    def lanes_of(self, hall: str) -> list[lanes.Lane]:
        """Return the lanes of a hall by name."""
        told = self.server.table(self._keys.lanes(hall))
        return [_lane(contract.loads(told[name])) for name in sorted(told)]

    def leases(self, hall: str) -> list[lanes.Lease]:
        """Return the games that run in a hall's lanes."""
        told = self.server.table(self._keys.leases(hall))
        return [_lease(hall, name, contract.loads(told[name])) for name in sorted(told)]

    # -- matches -----------------------------------------------------------------------

    def open_match(self, match: lanes.Match, by: str = api.FARM, seq: int = 0) -> None:
        """Let a match be dealt, or change how; ``seq`` is its mirror's last entry."""
        *tables, mirrored = self._tables()
        names = [*tables, self._keys.journal(lanes.journal(match.id))]
        names += [self._keys.tests("runs"), mirrored]
        again = " ".join(map(str, match.again))
        told: list[str | int] = [contract.dumps(match.facts()), match.spec, match.next, again, seq]
        opened = contract.dumps({"match": match.id, "next": match.next})
        self.server.run("open_match", names, match.id, *told, opened, contract.SCHEMA, by)

    def _tables(self) -> list[str]:
        return [self._keys.tests(what) for what in TABLES]

    def close_match(self, match: str) -> None:
        """End a match: nothing more is dealt or recorded; its journal is forgotten."""
        journal = lanes.journal(match)
        names = [*self._tables(), self._keys.journal(journal)]
        self.server.run("close_match", names, match)

    def matches(self) -> dict[str, lanes.Match]:
        """Return the open matches, their progress included."""
        with self.server.asked(), self.server.client.pipeline(transaction=True) as pipe:
            for table in self._tables()[:4]:
                pipe.hgetall(table)
            tables: list[Any] = pipe.execute()
        open_, specs, next_, again = (
            {replies.text(name): replies.text(value) for name, value in one.items()}
            for one in tables
        )
        return {
            name: _match(name, contract.loads(open_[name]), specs, next_, again)
            for name in sorted(open_)
        }

    def spec(self, match: str) -> str | None:
        """Return the specification of an open match."""
        with self.server.asked():
            raw: Any = self.server.client.hget(self._keys.tests("specs"), match)
        return None if raw is None else replies.text(raw)

    # -- games -------------------------------------------------------------------------

    def claim_lane(
        self, claim: lanes.LaneClaim
    ) -> lanes.Dealt | api.Busy | api.Held | api.NotReady:
        """Take a lane for the next game of the match whose turn it is; see ``lanes``."""
        hall = claim.hall
        names = [
            self._keys.slot(hall),
            self._keys.offers(hall),
            self._keys.holds(keys.hall_scope(hall)),
            self._keys.drains(hall),
            self._keys.lanes(hall),
            self._keys.leases(hall),
            self._keys.lane_ended(hall),
            self._keys.lane_tokens(hall),
            self._keys.epoch,
            *(table for table in self._tables() if table != self._keys.tests("specs")),
        ]
        words: list[str | int] = [
            hall,
            claim.lane,
            claim.attempt,
            claim.worker,
            claim.host,
            claim.ttl_ms,
        ]
        raw = self.server.run("claim_lane", names, *words, lanes.LEAD, lanes.OFFICIAL)
        answer = replies.word(raw)
        if answer == "dealt":
            token = contract.Token.parse(replies.text(raw[1]))
            return lanes.Dealt(token, replies.text(raw[2]), int(raw[3]))
        if answer == "not-ready":
            return api.NotReady()
        detail = replies.text(raw[1])
        return api.Busy(detail) if answer == "busy" else api.Held(detail)

    def renew_lane(
        self, hall: str, lane: str, token: contract.Token, attempt: str
    ) -> api.Renewed | api.Fenced:
        """Extend the lease by its ttl; ``abort`` tells that the match is over."""
        names = [
            self._keys.slot(hall),
            self._keys.leases(hall),
            self._keys.epoch,
            self._keys.tests(),
            self._keys.drains(hall),
        ]
        raw = self.server.run("renew_lane", names, lane, attempt, str(token), lanes.STOPPED)
        return replies.renewed(raw)

    def complete_lane(
        self, lease: lanes.Lease, data: str, kind: str = lanes.GAME
    ) -> api.Recorded | api.Fenced:
        """Journal a result and free the lane. Of kind ``LOST`` the game is dealt again."""
        names = [
            self._keys.leases(lease.hall),
            self._keys.lane_ended(lease.hall),
            self._keys.epoch,
            *(self._keys.tests(what) for what in ("", "again", "last")),
            self._keys.journal(lanes.journal(lease.match)),
        ]
        words: list[str | int] = [
            lease.lane,
            lease.attempt,
            str(lease.token),
            lease.match,
            lease.game,
        ]
        lost = int(kind == lanes.LOST)
        raw = self.server.run(
            "complete_lane", names, *words, kind, data, contract.SCHEMA, lost, lease.worker
        )
        return replies.given_up(raw)

    def replay(self, match: str, games: Sequence[int], draft: contract.Draft, by: str) -> bool:
        """Journal that results are set aside and deal their games again; False: not open."""
        names = [self._keys.tests(what) for what in ("", "again", "last")]
        names.append(self._keys.journal(lanes.journal(match)))
        numbers, data = " ".join(map(str, games)), contract.dumps(draft.data)
        raw = self.server.run(
            "replay", names, match, numbers, draft.kind, data, contract.SCHEMA, by
        )
        return replies.word(raw) == "replayed"

    def forget(self, match: str, upto: int) -> None:
        """Drop journal entries below ``upto``: all up to it are in the mirror."""
        key = self._keys.journal(lanes.journal(match))
        with self.server.asked(), self.server.client.pipeline(transaction=True) as pipe:
            pipe.hset(self._keys.tests("mirrored"), match, str(upto))
            pipe.xtrim(key, minid=f"{upto}-0", approximate=False)
            pipe.execute()


def _lane(raw: dict[str, Any]) -> lanes.Lane:
    return lanes.Lane(**{**raw, "cpus": frozenset(raw["cpus"])})


def _lease(hall: str, lane: str, raw: dict[str, Any]) -> lanes.Lease:
    return lanes.Lease(
        hall=hall,
        lane=lane,
        attempt=raw["attempt"],
        token=contract.Token.parse(raw["token"]),
        match=raw["match"],
        game=int(raw["game"]),
        worker=raw["worker"],
        host=raw["host"],
        deadline_ms=int(raw["deadline"]),
    )


def _match(
    name: str,
    facts: dict[str, Any],
    specs: dict[str, str],
    next_: dict[str, str],
    again: dict[str, str],
) -> lanes.Match:
    needs = ("threads", "memory_mb", "gpus", "one_node", "nps")
    return lanes.Match(
        id=name,
        games=facts["games"],
        spec=specs[name],
        halls=tuple(facts["halls"].split()),
        priority=facts["priority"],
        share=facts["share"],
        needs=lanes.Needs(**{need: facts[need] for need in needs}),
        next=int(next_[name]),
        again=tuple(map(int, again[name].split())),
    )
