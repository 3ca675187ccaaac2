"""Lanes and test matches in Redis: every verb is one script of ``scripts`` or one read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator import contract
from orchestrator.common import text
from orchestrator.ledger import api, connection, keys, lanes, replies

DEALT = ("", "queue", "repeats", "served")  # what giving games of a match back looks at


def connect(url: str, prefix: str = keys.PREFIX) -> RedisLanes:
    """Return the lanes at a Redis URL; nothing is sent yet. Raise ``UsageError``."""
    return RedisLanes(connection.Server(url), prefix)


class RedisLanes:
    """The verbs of lanes, on one Redis server; any may raise ``LedgerUnreachableError``."""

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
        payload = contract.dumps(lane.as_json())
        raw = self.server.run("open_lane", names, hall, lane.name, lane.host, payload)
        if replies.word(raw) == "overlap":
            return lanes.Overlap(replies.text(raw[1]))
        return replies.opened(raw)

    def close_lane(self, hall: str, lane: str) -> None:
        """Forget a lane; a game that runs there goes on."""
        with self.server.asked():
            self.server.client.hdel(self._keys.lanes(hall), lane)

    def lanes_of(self, hall: str) -> list[lanes.Lane]:
        """Return the lanes of a hall by name."""
        table = self.server.table(self._keys.lanes(hall))
        return list(replies.each(table, lambda _, raw: _lane(raw)))

    def leases(self, hall: str) -> list[lanes.Lease]:
        """Return the games that run in a hall's lanes.

        A lease without any, as an earlier version could leave it, is none; ``open_lane`` drops it.
        """
        table = self.server.table(self._keys.leases(hall))
        return list(replies.each(table, lambda lane, raw: _lease(hall, lane, raw)))

    # -- matches -----------------------------------------------------------------------

    def open_match(
        self, match: lanes.Match, by: str = api.FARM, seq: int = 0
    ) -> api.Opened | lanes.Elsewhere:
        """Let a match be dealt, or change how; one that is open keeps what was dealt.

        ``seq`` is the last entry of its mirror, where it was played before. ``Elsewhere`` where it
        is open with another specification, or a mirror that is not this one has more of it.
        """
        names = self._tests("", "specs", "next", "repeats", "served", "last")
        names.append(self._keys.journal(lanes.journal(match.id)))
        names += self._tests("runs", "mirrored", "queue", f"values:{match.id}")
        again = " ".join(map(str, match.again))
        arguments: list[str | int] = [
            contract.dumps(match.as_json()),
            match.spec,
            match.next,
            again,
            seq,
        ]
        opened = contract.dumps({"match": match.id, "next": match.next})
        arguments += [opened, contract.SCHEMA, by]
        values = [word for dealt in match.values for word in dealt]
        raw = self.server.run("open_match", names, match.id, *arguments, *values)
        return lanes.Elsewhere() if replies.word(raw) == "elsewhere" else api.Opened()

    def _tests(self, *tables: str) -> list[str]:
        return [self._keys.tests(what) for what in tables]

    def close_match(self, match: str) -> None:
        """End a match: nothing more is dealt or recorded; its journal is forgotten."""
        names = [*self._tests(*DEALT), self._keys.journal(lanes.journal(match))]
        names += self._tests(f"values:{match}", "specs", "next", "last", "mirrored")
        self.server.run("close_match", names, match)

    def matches(self) -> dict[str, lanes.Match]:
        """Return the open matches, their progress included."""
        with self.server.asked(), self.server.client.pipeline(transaction=True) as pipe:
            for table in self._tests("", "specs", "next"):
                pipe.hgetall(table)
            pipe.zrange(self._keys.tests("repeats"), 0, -1)
            *tables, repeats = pipe.execute()
        open_, specs, next_ = (
            {replies.any_text(name): replies.any_text(value) for name, value in table.items()}
            for table in tables
        )
        again: dict[str, list[int]] = {}
        for raw in repeats:
            match, _, game = replies.any_text(raw).rpartition(" ")
            if (number := text.whole(game)) is not None:
                again.setdefault(match, []).append(number)
        read = replies.each(open_, lambda name, raw: _match(name, raw, specs, next_, again))
        return {match.id: match for match in read}

    def spec(self, match: str) -> str | None:
        """Return the specification of an open match."""
        with self.server.asked():
            raw: Any = self.server.client.hget(self._keys.tests("specs"), match)
        return None if raw is None else replies.text(raw)

    # -- games -------------------------------------------------------------------------

    def claim_lane(
        self, claim: lanes.LaneClaim
    ) -> lanes.Dealt | api.Busy | api.Held | api.NotReady:
        """Take a lane for the next games of the match whose turn it is.

        ``NotReady`` where no match has a game that the lane may play, or the lane is not
        known on this host; ``Busy`` while an official game runs in the hall.
        """
        hall = claim.hall
        names = [
            self._keys.slot(hall),
            self._keys.offers(hall),
            self._keys.holds(keys.hall_scope(hall)),
            self._keys.drains(hall),
            self._keys.lanes(hall),
            self._keys.leases(hall),
            self._keys.due(hall),
            self._keys.lane_ended(hall),
            self._keys.lane_tokens(hall),
            self._keys.epoch,
            *self._tests("", "queue", "next", "repeats", "served", "last", "mirrored"),
        ]
        arguments: list[str | int] = [
            hall,
            claim.lane,
            claim.attempt,
            claim.worker,
            claim.host,
            claim.ttl_ms,
            lanes.LEAD,
            lanes.OFFICIAL,
            claim.most,
            lanes.LAPSED_AT_ONCE,
        ]
        raw = self.server.run("claim_lane", names, *arguments)
        answer = replies.word(raw)
        if answer == "dealt":
            token = contract.Token.parse(replies.text(raw[1]))
            match, run = replies.text(raw[2]), replies.text(raw[4])
            return lanes.Dealt(token, match, _games(raw[3]), run)
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
            self._keys.due(hall),
            self._keys.epoch,
            self._keys.tests(),
            self._keys.drains(hall),
        ]
        raw = self.server.run("renew_lane", names, lane, attempt, str(token), lanes.STOPPED)
        return replies.renewed(raw)

    def complete_lane(
        self, lease: lanes.Lease, data: str, kind: str = lanes.GAME, *, goes_on: bool = True
    ) -> lanes.Counted | api.Fenced:
        """Journal the result of a lease's first game; free the lane unless it goes on.

        It goes on with the next game of its lease unless an official game waits, its hall is held,
        its worker is to drain or does not want to (``goes_on``); what is not played, and a game of
        kind ``LOST``, is dealt again.
        """
        hall = lease.hall
        names = [
            self._keys.slot(hall),
            self._keys.offers(hall),
            self._keys.holds(keys.hall_scope(hall)),
            self._keys.drains(hall),
            self._keys.leases(hall),
            self._keys.due(hall),
            self._keys.lane_ended(hall),
            self._keys.epoch,
            *self._tests(*DEALT, "last"),
            self._keys.journal(lanes.journal(lease.match)),
        ]
        arguments: list[str | int] = [
            lease.lane,
            lease.attempt,
            str(lease.token),
            lease.match,
            lease.game,
        ]
        lost = int(kind == lanes.LOST)
        arguments += [kind, data, contract.SCHEMA, lost, lease.worker, int(goes_on and not lost)]
        raw = self.server.run("complete_lane", names, *arguments)
        reply = replies.given_up(raw)
        return reply if isinstance(reply, api.Fenced) else lanes.Counted(reply.seq, _games(raw[2]))

    def replay(self, match: str, games: Sequence[int], draft: contract.Draft, by: str) -> bool:
        """Journal that results are set aside and deal their games again; False: not open."""
        names = self._tests(*DEALT, "last")
        names.append(self._keys.journal(lanes.journal(match)))
        numbers, data = " ".join(map(str, games)), contract.dumps(draft.data)
        raw = self.server.run(
            "replay", names, match, numbers, draft.kind, data, contract.SCHEMA, by
        )
        return replies.word(raw) == "replayed"

    def tune(self, match: str, tuned: lanes.Tuned, by: str) -> bool:
        """Journal values of a tuning's parameters, and deal all iterations that come with them.

        The first one is that of which no game was dealt. False where there is none, or the match is
        not open.
        """
        names = self._tests("", "next", "last", f"values:{match}")
        names.append(self._keys.journal(lanes.journal(match)))
        # The script completes the object by the first iteration: it would round the values.
        data = contract.dumps(tuned.data()).removeprefix("{")
        arguments = (match, tuned.games, tuned.iterations, lanes.TUNED, data, contract.SCHEMA, by)
        return replies.word(self.server.run("tune_match", names, *arguments)) == "tuned"

    def values(self, match: str, iteration: int) -> str | None:
        """Return the entry's data by which an iteration is dealt, None where it has the first ones.

        Once a game of the iteration was dealt this does not change.
        """
        return values_of(self.server, self._keys, match, iteration)

    def forget(self, match: str, upto: int) -> None:
        """Drop journal entries below ``upto``: all up to it are in the mirror."""
        names = self._tests("", "queue", "served", "mirrored")
        self.server.run("mirror_match", names, match, upto)
        journal = self._keys.journal(lanes.journal(match))
        with self.server.asked():
            self.server.client.xtrim(journal, minid=f"{upto}-0", approximate=False)


def values_of(
    server: connection.Server, names: keys.Keys, match: str, iteration: int
) -> str | None:
    """Return the entry's data by which an iteration of a tuning is dealt."""
    with server.asked():
        raw: Any = server.client.zrevrangebyscore(
            names.tests(f"values:{match}"), iteration, "-inf", start=0, num=1
        )
    return replies.text(raw[0]) if raw else None


def _lane(raw: dict[str, Any]) -> lanes.Lane:
    lists = {name: frozenset(raw.get(name, ())) for name in ("cpus", "boxes")}
    return lanes.Lane(**{**raw, **lists})


def _lease(hall: str, lane: str, raw: dict[str, Any]) -> lanes.Lease:
    if not _games(raw["games"]):
        raise ValueError(f"lane {hall}.{lane}: nobody plays under a lease without games")
    return lanes.Lease(
        hall=hall,
        lane=lane,
        attempt=raw["attempt"],
        token=contract.Token.parse(raw["token"]),
        match=raw["match"],
        games=_games(raw["games"]),
        worker=raw["worker"],
        host=raw["host"],
        deadline_ms=int(raw["deadline"]),
        run=raw["run"],
    )


def _match(
    name: str,
    fields: dict[str, Any],
    specs: dict[str, str],
    next_: dict[str, str],
    again: dict[str, list[int]],
) -> lanes.Match:
    needs = ("threads", "memory_mb", "gpus", "one_node", "nps")
    return lanes.Match(
        id=name,
        games=fields["games"],
        spec=specs[name],
        halls=tuple(fields["halls"].split()),
        priority=fields["priority"],
        share=fields["share"],
        needs=lanes.Needs(
            **{need: fields[need] for need in needs}, boxes=tuple(fields.get("boxes", "").split())
        ),
        next=int(next_[name]),
        again=tuple(again.get(name, ())),
    )


def _games(raw: bytes | str) -> tuple[int, ...]:
    return tuple(map(int, replies.text(raw).split()))
