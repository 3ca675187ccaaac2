"""Batches: games of test matches that are leased to remote workers, and their verbs in Redis.

A remote worker is nobody's hall: it has no cores that the farm knows, and speaks to the
gateway alone (``orchestrator.gateway``), which calls these verbs for it. Invariants:

* a game is in one batch at most; from the end of a lease on it may be dealt again, and
  whatever comes under the old lease is fenced;
* a game of a batch is journaled once: the same result told again is answered as before;
* both games of a pair that are new go into one batch;
* what a claim costs does not grow with games, matches, batches or workers; leases that have run out
  are ended by ``lapse``, which the gateway and the keeper of a match call from time to time.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from orchestrator import contract
from orchestrator.ledger import api, connection, keys, lane_store, lanes, replies

OWES_NONE = "-"  # a worker has played the last check that it was asked
PAGE = 8  # matches read at once where a worker's turn is looked for
LAPSED_AT_ONCE = 100  # batches: Redis does nothing else while one script ends them


@dataclasses.dataclass(frozen=True)
class Claim:
    """A request for games; ``batch`` is named by the worker before its first try.

    ``owner`` is the id of its access token, ``matches`` those that it may and can play, with the
    nodes a second of each one's base on the worker (0: not known). ``checks`` are the numbers of
    checks that are asked of it beside games, from 1; with an exclamation mark alone, without games.
    """

    batch: str
    owner: str
    worker: str
    ttl_ms: int
    games: int
    most_batches: int
    matches: Mapping[str, int]
    checks: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Batch:
    """The worker has these games, until the end of its lease, under ``token``.

    ``run`` is the number of the match's opening, ``begun_ms`` the time of the claim, and
    ``heard_ms`` that of the last result, or of the claim; both by Redis' clock. ``nps`` is the
    speed of the match's base that its clocks are scaled by, 0 where it was not known.
    """

    id: str
    owner: str
    worker: str
    token: contract.Token
    match: str
    run: str
    begun_ms: int
    nps: int
    games: tuple[int, ...]
    heard_ms: int


@dataclasses.dataclass(frozen=True)
class ForeignGame:
    """The game is none of the batch's."""


@dataclasses.dataclass(frozen=True)
class OpenMatch:
    """What a claim looks at of an open match; ``run`` changes with each opening."""

    id: str
    run: str
    halls: tuple[str, ...]
    needs: lanes.Needs
    priority: int = 0


class _Place(NamedTuple):
    """Where a match stands in the queue (``place_in_queue`` of the scripts)."""

    text: str
    kind: str
    turns: float
    match: str

    @classmethod
    def of(cls, text: str) -> _Place:
        kind, _, turns, match = text.split(" ")
        return cls(text, kind, float(turns), match)


class RedisBatches:
    """The verbs on one Redis server. Any of them may raise ``LedgerAwayError``."""

    def __init__(self, server: connection.Server, prefix: str = keys.PREFIX) -> None:
        self.server = server
        self._keys = keys.Keys(prefix)

    def open_matches(self) -> list[OpenMatch]:
        """Return the open matches, without their specifications."""
        return list(replies.each(self.server.table(self._keys.tests()), _open_match))

    def in_turn(self, fits: Callable[[OpenMatch], bool]) -> Iterator[OpenMatch]:
        """Yield matches that have games, in the order in which they are dealt: it costs by those.

        ``fits`` is asked once for all matches of a kind (halls, cores, memory, GPUs, speed). More
        of them are read as they are asked for.
        """
        kinds: list[Iterator[tuple[tuple[int, float, str], OpenMatch]]] = []
        begin = "-"
        while places := self._places(begin, PAGE):
            kind = places[0].kind
            begin = f"({kind}!"
            page = [place for place in places if place.kind == kind]
            matches = self._read(page)
            if matches and fits(matches[0][1]):
                kinds.append(self._of_kind(page, matches))
        for _, match in heapq.merge(*kinds, key=lambda turn: turn[0]):
            yield match

    def _of_kind(
        self, page: list[_Place], matches: list[tuple[_Place, OpenMatch]]
    ) -> Iterator[tuple[tuple[int, float, str], OpenMatch]]:
        """Yield the matches of a kind with their turns, a page after the other."""
        most = PAGE
        while True:
            for place, match in matches:
                yield (-match.priority, place.turns, match.id), match
            if len(page) < most:
                return
            most *= 8  # who looks for few of many reads in few steps
            last = page[-1]
            page = [each for each in self._places(f"({last.text}", most) if each.kind == last.kind]
            matches = self._read(page)

    def _places(self, begin: str, most: int) -> list[_Place]:
        with self.server.asked():
            raw: Any = self.server.client.zrangebylex(
                self._keys.tests("queue"), begin, "+", start=0, num=most
            )
        return [_Place.of(replies.text(place)) for place in raw]

    def _read(self, places: Sequence[_Place]) -> list[tuple[_Place, OpenMatch]]:
        """Return matches by their places; those that were closed meanwhile are left out."""
        if not places:
            return []
        with self.server.asked():
            raw: Any = self.server.client.hmget(
                self._keys.tests(), [place.match for place in places]
            )
        return [
            (place, _open_match(place.match, contract.loads(replies.text(facts))))
            for place, facts in zip(places, raw, strict=True)
            if facts is not None
        ]

    def run(self, match: str) -> str | None:
        """Return the run of an open match, ``None`` where it is not open."""
        with self.server.asked():
            raw: Any = self.server.client.hget(self._keys.tests(), match)
        return None if raw is None else str(contract.loads(replies.text(raw))["run"])

    def spec(self, match: str, run: str) -> str | None:
        """Return the specification of a match that is open in a run, which was seen before."""
        with self.server.asked():
            raw: Any = self.server.client.hget(self._keys.tests("specs"), match)
        # No two openings have one run: if it is this one still, it was while this was read.
        return None if raw is None or self.run(match) != run else replies.text(raw)

    def values(self, match: str, iteration: int) -> str | None:
        """Return the entry's data by which an iteration of a tuning is dealt; see ``lanes``."""
        return lane_store.values_of(self.server, self._keys, match, iteration)

    def now_ms(self) -> int:
        """Return the time by Redis' clock, which leases go by."""
        return self.server.now_ms()

    def claim(self, claim: Claim) -> Batch | api.Busy | api.NotReady:
        """Take the next games of the match whose turn it is among ``matches``."""
        tables = ("", "next", "repeats", "served", "last", "mirrored", "queue")
        names = [
            *self._leases(),
            self._keys.epoch,
            self._keys.batches("tokens"),
            *(self._keys.tests(what) for what in tables),
        ]
        arguments: list[str | int] = [claim.batch, claim.owner, claim.worker, claim.ttl_ms]
        arguments += [claim.games, lanes.LEAD, claim.most_batches]
        for match, nps in claim.matches.items():
            arguments += [match, nps, claim.checks.get(match, "")]
        raw = self.server.run("claim_batch", names, *arguments)
        answer = replies.word(raw)
        if answer == "dealt":
            dealt = _dealt(raw[1:])
            return Batch(claim.batch, claim.owner, claim.worker, *dealt, heard_ms=dealt[3])
        return api.Busy(replies.text(raw[1])) if answer == "busy" else api.NotReady()

    def batch(self, batch: str) -> Batch | None:
        """Return a batch by its name; of one that is over no game is left."""
        with self.server.asked():
            raw: Any = self.server.client.hget(self._keys.batches(), batch)
        if raw is None:
            return None
        stored = contract.loads(raw)
        fields = [stored[name] for name in ("token", "match", "run", "begun")]
        fields += [stored.get("nps", "0"), stored["games"]]
        heard = int(stored.get("heard", stored["begun"]))
        return Batch(batch, stored["owner"], stored["worker"], *_dealt(fields), heard)

    def renew(self, batch: str, owner: str, token: str) -> api.Renewed | api.Fenced:
        """Extend a lease by its ttl; ``abort`` tells that the match is over."""
        batches, due, _ = self._leases()
        names = [batches, due, self._keys.epoch, self._keys.tests()]
        arguments = (batch, owner, token, lanes.STOPPED)
        return replies.renewed(self.server.run("renew_batch", names, *arguments))

    def record(
        self, leased: Batch, game: int, data: str, kind: str = lanes.GAME
    ) -> api.Recorded | api.Fenced | ForeignGame:
        """Journal the result of one game; a result that was journaled is answered again."""
        names = [
            *self._leases(),
            self._keys.epoch,
            self._keys.tests(),
            self._keys.tests("last"),
            self._keys.batches("counted"),
            self._keys.journal(lanes.journal(leased.match)),
        ]
        arguments = (leased.id, leased.owner, str(leased.token), game, kind, data, contract.SCHEMA)
        raw = self.server.run("record_batch_game", names, *arguments)
        return ForeignGame() if replies.word(raw) == "foreign" else replies.given_up(raw)

    def give_back(
        self, batch: str, owner: str, token: str, *, refused: bool = False
    ) -> int | api.Fenced:
        """End a batch; return how many of its games are dealt again.

        ``refused`` counts a wrong result against the access token.
        """
        names = [
            *self._leases(),
            self._keys.epoch,
            *self._dealt(),
            self._keys.batches("refused"),
        ]
        raw = self.server.run("return_batch", names, batch, owner, token, int(refused))
        return int(raw[1]) if replies.word(raw) == "returned" else api.Fenced()

    def record_build(
        self, match: str, run: str, worker: str, data: str
    ) -> api.Recorded | api.Fenced:
        """Journal what became of a build on a worker; fenced where the match is over."""
        names = [
            self._keys.tests(),
            self._keys.tests("last"),
            self._keys.journal(lanes.journal(match)),
        ]
        arguments = (match, run, lanes.BUILD, data, contract.SCHEMA, worker)
        return replies.given_up(self.server.run("record_build", names, *arguments))

    def end_all(self, owner: str) -> None:
        """End all batches of an access token: their games are dealt again."""
        for name, raw in self.server.table(self._keys.batches()).items():
            batch = contract.loads(raw)
            if batch["owner"] == owner and batch["games"]:
                self.give_back(name, owner, batch["token"])

    def lapse(self) -> int:
        """End the batches whose leases have run out; return how many there were."""
        names = [*self._leases(), *self._dealt()]
        ended = 0
        while True:
            raw = self.server.run("lapse_batches", names, LAPSED_AT_ONCE)
            ended += int(raw[1])
            if int(raw[1]) < LAPSED_AT_ONCE:
                return ended

    def owed(self, worker: str, matches: Sequence[str]) -> dict[str, str]:
        """Return how a worker stands with each match's checks.

        The number that it owes and the batch that has it, ``OWES_NONE``, or '' where it was
        never asked. ``worker`` is the token's id and the host.
        """
        if not matches:
            return {}
        fields = [_checked(match, worker) for match in matches]
        with self.server.asked():
            raw: Any = self.server.client.hmget(self._keys.batches("checks"), fields)
        return {
            match: "" if state is None else replies.text(state)
            for match, state in zip(matches, raw, strict=True)
        }

    def note_check(self, match: str, worker: str, owed: str) -> None:
        """Note the check that a worker owes, or ``OWES_NONE``; '' asks it as if it were new.

        Of a match that is no longer open nothing is noted.
        """
        names = [self._keys.tests(), self._keys.batches("checks")]
        self.server.run("note_check", names, match, _checked(match, worker), owed)

    def forget_checks(self, match: str) -> None:
        """Forget how all workers stand with the checks of a match that has ended."""
        name = self._keys.batches("checks")
        states = self.server.table(name)
        fields = [field for field in states if field.startswith(f"{match} ")]
        if fields:
            with self.server.asked():
                self.server.client.hdel(name, *fields)

    def _dealt(self) -> Sequence[str]:
        return [self._keys.tests(what) for what in ("", "repeats", "queue", "served")]

    def _leases(self) -> Sequence[str]:
        return [self._keys.batches(what) for what in ("", "due", "held")]


def _checked(match: str, worker: str) -> str:
    return f"{match} {worker}"


def _dealt(raw: Sequence[Any]) -> tuple[contract.Token, str, str, int, int, tuple[int, ...]]:
    token, match, run, begun, nps, games = map(replies.text, raw)
    numbers = tuple(map(int, games.split()))
    return contract.Token.parse(token), match, run, int(begun), int(nps), numbers


def _open_match(name: str, fields: dict[str, Any]) -> OpenMatch:
    needs = {field.name: fields[field.name] for field in dataclasses.fields(lanes.Needs)}
    halls = tuple(fields["halls"].split())
    return OpenMatch(name, str(fields["run"]), halls, lanes.Needs(**needs), fields["priority"])
