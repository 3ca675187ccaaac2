"""The ledger in Redis: every verb is one Lua script of ``scripts`` or one read.

Invariants are those of ``api``, whose values the verbs take and answer with. Scripts are called
by their hash and loaded again when the server has forgotten them (a restart). Nothing is cached
here: two objects, in two processes, on one server are one ledger.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from orchestrator import contract
from orchestrator.common import text
from orchestrator.ledger import api, connection, keys, replies, requests, restoring


def connect(url: str, prefix: str = keys.PREFIX) -> RedisLedger:
    """Return the ledger at a Redis URL (redis, rediss or unix); nothing is sent yet.

    Raises:
        UsageError: the URL is none that we can use.
    """
    return RedisLedger(connection.Server(url), prefix)


class RedisLedger:
    """The verbs of the ledger, on one Redis server.

    Any of them may raise ``LedgerUnreachableError``.
    """

    def __init__(self, server: connection.Server, prefix: str = keys.PREFIX) -> None:
        self.server = server
        self._keys = keys.Keys(prefix)

    def __enter__(self) -> Self:
        """Use the ledger and close its sockets after."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all sockets; the next verb opens them again."""
        self.server.close()

    def whoami(self) -> str:
        """Return the authenticated Redis user."""
        return self.server.whoami()

    def check_durability(self) -> list[str]:
        """Return complaints about the server's settings, none where it loses no write."""
        with self.server.asked():
            return connection.check_durability(self.server.client)

    # -- journal ---------------------------------------------------------------------

    def now_ms(self) -> int:
        """Return Redis' time of day in milliseconds."""
        return self.server.now_ms()

    def seasons(self) -> tuple[str, ...]:
        """Return the ids of all launched seasons in the order of their launch."""
        with self.server.asked():
            raw: list[Any] = self.server.client.lrange(self._keys.seasons, 0, -1)
        return tuple(map(replies.any_text, raw))

    def resting(self) -> dict[str, int]:
        """Return the seasons that are over and wholly archived, each with its last entry.

        One whose journal has grown since is none of them.
        """
        ends = {
            name.removeprefix(requests.OVER): text.whole(last)
            for name, last in self.server.table(self._keys.checked).items()
            if name.startswith(requests.OVER)
        }
        return {season: last for season, last in ends.items() if last is not None}

    def append(
        self,
        journal: str,
        expected: int,
        drafts: Sequence[contract.Draft],
        by: str,
        effects: Sequence[api.Effect] = (),
    ) -> api.Appended | api.Stale:
        """Append drafts and effects if the journal still ends at ``expected``; 0 launches a season.

        All of them are written, or none. A new season's journal is listed in ``seasons``, too.

        After a lost reply, repeat the call with the same arguments: the entries carry a
        hash of journal, place, author, drafts and effects, so a repeat of what is
        already in answers ``Appended`` (with the number of the own last entry), and
        ``Stale`` always means that these drafts are not in at this place.

        Raises:
            ValueError: no draft, too many of them, or a negative ``expected``.
        """
        requests.check_append(expected, drafts)
        names = [self._keys.journal(journal), self._keys.seasons, self._keys.checked]
        arguments: list[str | int] = [expected, by]
        arguments.append(requests.operation_id(journal, expected, drafts, by, effects))
        arguments += ["" if journal == api.FARM else journal, contract.SCHEMA, len(drafts)]
        for draft in drafts:
            arguments += [draft.kind, contract.dumps(draft.data)]
        for effect in effects:
            name, *rest = self._effect(effect)
            names.append(name)
            arguments += rest
        return replies.appended(self.server.run("append", names, *arguments))

    def _effect(self, effect: api.Effect) -> tuple[str, str, str, str]:
        match effect:
            case api.Hold(scope, name, reason):
                return self._keys.holds(scope), "hold", name, requests.non_empty(reason)
            case api.Release(scope, name):
                return self._keys.holds(scope), "release", name, ""
            case api.Abort(hall, attempt, reason):
                return self._keys.slot(hall), "abort", attempt, requests.non_empty(reason)
            case api.Drain(hall, worker, reason):
                return self._keys.drains(hall), "drain", worker, requests.non_empty(reason)
            case api.Undrain(hall, worker):
                return self._keys.drains(hall), "release", worker, ""
            case api.Settle(season, game):
                return self._keys.results(season), "settle", game, f"0 {requests.VERDICT}"

    def read(self, journal: str, after: int = 0, limit: int = 1000) -> list[contract.Entry]:
        """Return up to ``limit`` entries after sequence number ``after``, in order."""
        with self.server.asked():
            raw: Any = self.server.client.xrange(
                self._keys.journal(journal), min=f"{after + 1}-0", count=limit
            )
        return [replies.entry(entry_id, fields) for entry_id, fields in raw]

    def last(self, journal: str) -> int:
        """Return the last sequence number of a journal, 0 where there is none."""
        with self.server.asked():
            raw: Any = self.server.client.xrevrange(self._keys.journal(journal), count=1)
        return replies.stream_number(raw[0][0], 0) if raw else 0

    def wait(self, after: Mapping[str, int], timeout_ms: int) -> bool:
        """Block until one of the journals has grown past its number; say whether one has."""
        ends = time.monotonic() + timeout_ms / 1000
        streams: dict[Any, Any] = {
            self._keys.journal(journal): f"{seq}-0" for journal, seq in after.items()
        }
        if not streams:
            time.sleep(timeout_ms / 1000)
            return False
        while True:
            left_ms = round((ends - time.monotonic()) * 1000)
            block = min(left_ms, connection.BLOCK_MS) if left_ms > 0 else None
            with self.server.asked():
                if self.server.blocking.xread(streams, count=1, block=block):
                    return True
            if block is None:
                return False

    # -- mirror and archive ------------------------------------------------------------

    def mirrored(self, journal: str) -> int:
        """Return the last entry known to be in the mirror on disk."""
        return int(self._field(self._keys.mirrored, journal) or 0)

    def set_mirrored(self, journal: str, seq: int, archived: Sequence[str] = ()) -> None:
        """Say that all entries up to ``seq`` are in the mirror; never goes back.

        Record and plies of the ``archived`` attempts are forgotten at the same moment: a process
        that ends between the two would leave them behind once its season is over.
        """
        keys = [self._keys.mirrored]
        for attempt in archived:
            keys += (self._keys.record(attempt), self._keys.plies(attempt))
        self.server.run("set_mirrored", keys, journal, seq)

    def run_id(self) -> str:
        """Return the name of the server process that answers: another after every restart."""
        with self.server.asked():
            info: Any = self.server.client.info("server")
        return str(info["run_id"])

    def set_checked(self, journal: str, run_id: str, over: int = 0) -> bool:
        """Let halls write to a journal that was compared with its mirror in this server.

        ``over`` is the last entry of a season that is over and wholly archived: it rests.

        Until then ``append``, ``claim``, ``complete``, ``give_up`` and ``revoke`` raise
        ``LedgerUncheckedError`` and change nothing. A launch is checked by itself, a restore
        takes all marks away. False when the server has been started again meanwhile.
        """
        names = [self._keys.checked, self._keys.journal(journal)]
        raw = self.server.run("set_checked", names, journal, run_id, over)
        return replies.word(raw) == "checked"

    def alarms(self) -> dict[str, str]:
        """Return what ``serve`` finds wrong with a journal: its name to a sentence."""
        return self.server.table(self._keys.alarms)

    def set_alarms(self, reasons: Mapping[str, str]) -> None:
        """Publish what is wrong with journals, in place of what was before."""
        over = self.alarms().keys() - reasons.keys()
        with self.server.asked(), self.server.client.pipeline(transaction=True) as pipe:
            if over:
                pipe.hdel(self._keys.alarms, *over)
            for journal, reason in reasons.items():
                pipe.hset(self._keys.alarms, journal, reason)
            pipe.execute()

    def record(self, attempt: str) -> bytes | None:
        """Return the finished game's record as it came with ``complete``."""
        with self.server.asked():
            raw: Any = self.server.client.get(self._keys.record(attempt))
        return None if raw is None else bytes(raw)

    def archived(self, attempt: str) -> None:
        """Forget record and plies of an attempt: they are in the archive."""
        with self.server.asked():
            self.server.client.delete(self._keys.record(attempt), self._keys.plies(attempt))

    def plies_archived(self, attempt: str) -> None:
        """Forget the plies of an attempt that was given up; its record may have come since."""
        with self.server.asked():
            self.server.client.delete(self._keys.plies(attempt))

    # -- halls, from the orchestrator's side -------------------------------------------

    def halls(self) -> tuple[str, ...]:
        """Return the names of all known halls, sorted; what is no name is no hall."""
        with self.server.asked():
            raw: Any = self.server.client.smembers(self._keys.halls)
        return tuple(sorted(filter(contract.is_name, map(replies.any_text, raw))))

    def offer(
        self, hall: str, season: str, game: str, order: str, expected: int
    ) -> api.Offered | api.Stale | api.NotReady:
        """Make a game the hall's ready game if the season's journal ends at ``expected``.

        It replaces any other game offered by the same season. ``NotReady`` when the
        game already has its result, and for a season that was never launched.
        """
        names = [
            self._keys.journal(season),
            self._keys.results(season),
            self._keys.offers(hall),
            self._keys.orders(hall),
            self._keys.halls,
        ]
        return replies.offered(self.server.run("offer", names, hall, season, game, order, expected))

    def withdraw(self, hall: str, season: str) -> None:
        """Take back the season's offer to a hall; a running attempt goes on."""
        self.server.run("withdraw", [self._keys.offers(hall), self._keys.orders(hall)], season)

    def offered(self, hall: str) -> dict[str, str]:
        """Return the hall's ready games: season id to game id."""
        return self.server.table(self._keys.offers(hall))

    def slot(self, hall: str) -> api.Slot | None:
        """Return who holds the hall now."""
        with self.server.asked(), self.server.client.pipeline(transaction=True) as pipe:
            pipe.time()
            pipe.hgetall(self._keys.slot(hall))
            (seconds, micros), raw = pipe.execute()
        return replies.slot(hall, raw, seconds * 1000 + micros // 1000)

    def holds(self, scope: str) -> dict[str, str]:
        """Return the holds of a scope: name to reason."""
        return self.server.table(self._keys.holds(scope))

    def suspect(self, hall: str, token: contract.Token, chain: str) -> api.Suspected | api.Alive:
        """Mark an overdue lease with a chain of looks; a renewal clears the mark.

        A mark of an older chain is replaced. Repeating it with the same chain while
        the lease stays overdue answers ``Suspected``.
        """
        requests.check_chain(chain)
        raw = self.server.run("suspect", [self._keys.slot(hall)], str(token), chain)
        return replies.suspected(raw)

    def revoke(
        self,
        hall: str,
        token: contract.Token,
        chain: str,
        end: contract.AttemptEnded,
        *,
        suspended: bool = False,
    ) -> api.Recorded | api.Freed | api.Alive:
        """Free the slot of a lease that is overdue and still marked with ``chain``.

        Journals ``attempt_ended`` in the season's journal and takes the game's offer back
        in the same step. A ``suspended`` season's journal that was not compared with its mirror
        is not written to: its attempt goes (``Freed``), so that other seasons have the hall.
        """
        requests.check_chain(chain)
        season = self._season_of(hall, str(token))
        if season is None:
            return api.Alive()
        names = [self._keys.slot(hall), self._keys.ended(hall), self._keys.journal(season)]
        names += [self._keys.offers(hall), self._keys.orders(hall), self._keys.checked]
        arguments = [season, end.attempt, str(token), chain, end.encode(), api.FARM]
        raw = self.server.run("revoke", names, *arguments, contract.SCHEMA, int(suspended))
        return replies.revoked(raw)

    def _season_of(self, hall: str, token: str) -> str | None:
        # Which journal the script will need; the script itself checks it once more.
        for key in (self._keys.slot(hall), self._keys.ended(hall)):
            slot = self.server.table(key)
            if slot.get("token") == token:
                return slot["season"]
        return None

    # -- halls, from the worker's side -------------------------------------------------

    def open_hall(self, hall: str, host: str, worker: str) -> api.Opened | api.Foreign:
        """Say that a worker of ``host`` plays in the hall; the first host keeps it."""
        names = [self._keys.hall(hall), self._keys.halls]
        return replies.opened(self.server.run("open_hall", names, hall, host, worker))

    def worker(self, hall: str) -> str:
        """Return the worker that opened the hall last, '' when none ever did."""
        return self._field(self._keys.hall(hall), "worker") or ""

    def drained(self, hall: str, worker: str) -> str:
        """Return why this worker should end, '' when it should not."""
        return self._field(self._keys.drains(hall), worker) or ""

    def claim(
        self, claim: api.Claim
    ) -> api.Claimed | api.Busy | api.NotReady | api.Held | api.Foreign:
        """Take the hall for an attempt at its ready game; journals ``attempt_started``.

        A hall that nobody has opened is opened by its first claim. ``NotReady`` also
        for an attempt that held a slot before: it is over and never comes back.
        """
        hall, season = claim.hall, claim.season
        names = [
            self._keys.slot(hall),
            self._keys.hall(hall),
            self._keys.halls,
            self._keys.holds(season),
            self._keys.holds(keys.hall_scope(hall)),
            self._keys.drains(hall),
            self._keys.offers(hall),
            self._keys.orders(hall),
            self._keys.results(season),
            self._keys.attempts(season),
            self._keys.latest(season),
            self._keys.epoch,
            self._keys.tokens(hall),
            self._keys.journal(season),
            self._keys.leases(hall),
            self._keys.checked,
            self._keys.due(hall),
        ]
        arguments = [hall, season, claim.game, claim.attempt, claim.worker, claim.host, claim.lane]
        fact = requests.started(claim).encode()
        raw = self.server.run("claim", names, *arguments, claim.ttl_ms, fact, contract.SCHEMA)
        return replies.claimed(raw)

    def write_ply(
        self,
        hall: str,
        token: contract.Token,
        attempt: str,
        ply: int,
        payload: str,
        first: int = 0,
    ) -> api.Written | api.Gap | api.Fenced:
        """Write a completed ply under stream id ``0-<ply>``.

        The first that is written may have any number, but where the caller names the
        attempt's ``first``: ``Gap(0)`` says then that Redis has lost all before.
        """
        requests.check_ply(ply)
        names = [self._keys.slot(hall), self._keys.epoch, self._keys.plies(attempt)]
        return replies.written(
            self.server.run("write_ply", names, attempt, str(token), ply, payload, first)
        )

    def renew(
        self, hall: str, token: contract.Token, attempt: str, ply: int, last_move_ms: int
    ) -> api.Renewed | api.Fenced:
        """Extend the lease by its ttl from now, carry progress, bring back wishes."""
        names = [self._keys.slot(hall), self._keys.epoch, self._keys.drains(hall)]
        return replies.renewed(
            self.server.run("renew", names, attempt, str(token), ply, last_move_ms)
        )

    def complete(
        self,
        hall: str,
        token: contract.Token,
        season: str,
        finished: contract.GameFinished,
        record: bytes,
    ) -> api.Recorded | api.Refused:
        """Journal ``game_finished``, keep the record for the archive, free the slot."""
        names = [
            self._keys.slot(hall),
            self._keys.offers(hall),
            self._keys.orders(hall),
            self._keys.results(season),
            self._keys.attempts(season),
            self._keys.latest(season),
            self._keys.epoch,
            self._keys.journal(season),
            self._keys.record(finished.attempt),
            self._keys.checked,
        ]
        arguments = [season, finished.game, finished.attempt, str(token), finished.encode()]
        raw = self.server.run("complete", names, *arguments, record, contract.SCHEMA)
        return replies.completed(raw)

    def give_up(
        self, hall: str, token: contract.Token, season: str, end: contract.AttemptEnded
    ) -> api.Recorded | api.Fenced:
        """Journal ``attempt_ended``, free the slot and take the game's offer back.

        The game is offered again after a verdict on its interruption, so that nobody
        begins it again before.
        """
        names = [
            self._keys.slot(hall),
            self._keys.ended(hall),
            self._keys.epoch,
            self._keys.journal(season),
            self._keys.offers(hall),
            self._keys.orders(hall),
            self._keys.checked,
        ]
        arguments = [season, end.attempt, str(token), end.encode()]
        return replies.given_up(self.server.run("give_up", names, *arguments, contract.SCHEMA))

    # -- what is shown of the game in flight -------------------------------------------

    def plies(self, attempt: str, after: int = 0) -> list[tuple[int, str]]:
        """Return the written plies of an attempt after ply ``after``: number and payload."""
        with self.server.asked():
            raw: Any = self.server.client.xrange(self._keys.plies(attempt), min=f"0-{after + 1}")
        return [(replies.stream_number(ply, 1), replies.text(p[b"p"])) for ply, p in raw]

    def set_live(self, hall: str, payload: str, ttl_ms: int) -> None:
        """Publish what is going on in the hall at this moment."""
        with self.server.asked():
            self.server.client.set(self._keys.live(hall), payload, px=max(1, ttl_ms))

    def live(self, hall: str) -> str | None:
        """Return what was last published of the hall, while it is fresh."""
        with self.server.asked():
            raw: Any = self.server.client.get(self._keys.live(hall))
        return None if raw is None else replies.text(raw)

    # -- hosts -------------------------------------------------------------------------

    def set_vitals(self, host: str, payload: str) -> None:
        """Publish how a host is; replaces what it told before."""
        with self.server.asked():
            self.server.client.hset(self._keys.vitals, host, payload)

    def vitals(self) -> dict[str, str]:
        """Return each host's last heartbeat, however long ago."""
        return self.server.table(self._keys.vitals)

    def forget_host(self, host: str) -> None:
        """Drop the heartbeat of a host that is gone; no error where there is none."""
        with self.server.asked():
            self.server.client.hdel(self._keys.vitals, host)

    # -- services ----------------------------------------------------------------------

    def set_service(self, name: str, payload: str) -> None:
        """Publish the report of a service; replaces its last one."""
        with self.server.asked():
            self.server.client.hset(self._keys.services, name, payload)

    def services(self) -> dict[str, str]:
        """Return the last report of each service, however long ago."""
        return self.server.table(self._keys.services)

    # -- restore -----------------------------------------------------------------------

    def present_epoch(self) -> int:
        """Return the present epoch."""
        with self.server.asked():
            raw: Any = self.server.client.get(self._keys.epoch)
        return replies.epoch(raw)

    def raise_epoch(self, epoch: int) -> int:
        """Raise the epoch and free every hall; return the epoch that stands now.

        From now on nothing is written under a token of an older epoch. A wish that is
        not above the present epoch changes nothing.
        """
        halls = self.halls()
        names = [self._keys.epoch, self._keys.checked, *map(self._keys.due, halls)]
        for hall in halls:
            names += [self._keys.slot(hall), self._keys.offers(hall)]
            names += [self._keys.orders(hall), self._keys.ended(hall)]
        return int(self.server.run("raise_epoch", names, epoch, len(halls))[1])

    def forget_journal(self, journal: str) -> None:
        """Delete a journal that a restore writes again, whole: the farm's own, when it parted."""
        with self.server.asked():
            self.server.client.delete(self._keys.journal(journal))

    def load(self, journal: str, entries: Sequence[contract.Entry]) -> api.Appended | api.Stale:
        """Write entries of a mirror, as they are, to the end of a journal that they follow."""
        requests.check_entries(entries)
        arguments: list[str | int] = [entries[0].seq - 1, len(entries)]
        for entry in entries:
            arguments += [entry.schema_version, entry.kind, entry.at_ms, entry.by, entry.token]
            arguments.append(contract.dumps(entry.data))
        self._forget_end(journal, entries[0].seq - 1)
        return replies.appended(self.server.run("load", [self._keys.journal(journal)], *arguments))

    def _forget_end(self, journal: str, last: int) -> None:
        """Let a stream that ends at ``last`` forget later entries that somebody has deleted.

        It would refuse their numbers. Only who restores may do this.
        """
        key = self._keys.journal(journal)
        if self.last(journal) != last:
            return
        with self.server.asked():
            if not last:
                self.server.client.delete(key)
            elif self.server.client.xinfo_stream(key)["last-generated-id"] != f"{last}-0".encode():
                self.server.client.execute_command("XSETID", key, f"{last}-0")  # type: ignore[no-untyped-call]

    def reindex(self, index: restoring.Index) -> None:
        """Replace what is kept of a season beside its journal by what its facts say."""
        names = [
            self._keys.results(index.season),
            self._keys.latest(index.season),
            self._keys.attempts(index.season),
            self._keys.holds(index.season),
            self._keys.seasons,
            self._keys.halls,
            self._keys.mirrored,
        ]
        tables = {
            "results": index.results,
            "latest": index.latest,
            "attempts": index.attempts,
            "holds": index.holds,
        }
        arguments: list[str | int] = [index.season, index.mirrored, contract.dumps(tables)]
        for hall, host in index.hosts.items():
            names += [self._keys.hall(hall), self._keys.tokens(hall)]
            arguments += [hall, host, index.tokens[hall]]
        self.server.run("reindex", names, *arguments)

    def give_back(
        self, attempt: str, record: bytes | None, plies: Sequence[tuple[int, str]]
    ) -> None:
        """Put back the record and the plies of an attempt that the archive does not have."""
        with self.server.asked(), self.server.client.pipeline(transaction=True) as pipe:
            if record is not None:
                pipe.set(self._keys.record(attempt), record)
            if plies:
                pipe.delete(self._keys.plies(attempt))
            for ply, payload in plies:
                pipe.xadd(self._keys.plies(attempt), {"p": payload}, id=f"0-{ply}")
            pipe.execute()

    def _field(self, key: str, name: str) -> str | None:
        with self.server.asked():
            raw: Any = self.server.client.hget(key, name)
        return None if raw is None else replies.text(raw)
