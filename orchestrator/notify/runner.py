"""The notifying loop: read what is new, take notices, send, remind.

A process of its own beside ``farm serve``: it only reads the ledger, so a mail server
that hangs delays no game. Redis away, a channel away: it goes on and tries again.
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import threading
from collections.abc import Iterator
from typing import Final

import structlog

from orchestrator.common import errors
from orchestrator.ledger import api, store, vitals
from orchestrator.notify import channels, notices, outbox, settings, templates
from orchestrator.season.fold import state as season_state

log = structlog.get_logger()

WAIT_MS: Final = 1_000  # ms: a pass at least this often
RETRY_MS: Final = 60_000  # ms: a channel that failed is tried again
ACKNOWLEDGED: Final = "notice_acknowledged"  # a fact of the farm's own journal


class Runner:
    """Turns journals into notices and sends them."""

    def __init__(
        self, ledger: store.RedisLedger, notify_settings: settings.Settings, box: outbox.Outbox
    ) -> None:
        """Begin where the outbox ended; one without a past begins with what comes."""
        self._ledger, self._settings, self._box = ledger, notify_settings, box
        self._states: dict[str, season_state.SeasonState] = {}
        self._damaged: dict[str, tuple[int, int]] = {}  # journal to the epoch and entries of then
        self._rested: dict[str, int] = {}  # seasons that are over, archived, and read to the end
        self._first = box.fresh

    def run(self, stop: threading.Event) -> None:
        """Work until ``stop`` is set."""
        while not stop.is_set():
            try:
                self.once()
                others = self._rested.keys() | self._damaged
                read = {name: seq for name, seq in self._box.read.items() if name not in others}
                self._ledger.wait(read, WAIT_MS)
            except errors.LedgerAwayError as error:
                log.warning("redis.away", error=str(error))
                stop.wait(WAIT_MS / 1000)

    def once(self) -> None:
        """Read, take and send what there is now."""
        now_ms = self._ledger.now_ms()
        self._read()
        self._look(now_ms)
        self._send(now_ms)
        self._box.save()

    def _read(self) -> None:
        resting = self._ledger.resting()
        self._rested = {name: last for name, last in resting.items() if self._knows(name, last)}
        for name in self._rested:
            self._states.pop(name, None)
        for season in self._ledger.seasons():
            if season not in self._rested:
                with self._guarded(season):
                    self._season(season)
        with self._guarded(api.FARM):
            self._acknowledgements()
        self._first = False

    @contextlib.contextmanager
    def _guarded(self, journal: str) -> Iterator[None]:
        """Let a journal that cannot be read keep no other from being told of.

        It is read again when it has grown, or when a restore has raised the epoch.
        """
        try:
            yield
        except Exception as error:
            if errors.is_outage(error):
                raise
            self._states.pop(journal, None)
            if journal not in self._damaged:
                unforeseen = None if isinstance(error, errors.FarmError) else error
                about = {"journal": journal, "error": str(error)}
                log.error("journal.damaged", **about, exc_info=unforeseen)  # noqa: TRY400 - as above
            self._damaged[journal] = self._position(journal)

    def _position(self, journal: str) -> tuple[int, int]:
        try:
            return self._ledger.present_epoch(), self._ledger.last(journal)
        except errors.LedgerForeignError:
            return 0, 0

    def _acknowledgements(self) -> None:
        seen = self._box.read.get(api.FARM, 0)
        while entries := self._ledger.read(api.FARM, seen):
            for entry in entries:
                if entry.kind == ACKNOWLEDGED:
                    self._box.acknowledge(str(entry.data.get("notice")))
                elif not self._first:  # an outbox without a past begins with what comes
                    self._box.add(notices.of_farm(entry))
            seen = self._box.read[api.FARM] = entries[-1].seq
        self._damaged.pop(api.FARM, None)

    def _knows(self, season: str, last: int) -> bool:
        """Say whether a season was read to its end; an outbox without a past begins there."""
        return self._box.read.setdefault(season, last if self._first else 0) == last

    def _season(self, season: str) -> None:
        if season in self._damaged:
            position = self._position(season)
            self._box.read[season] = max(self._box.read.get(season, 0), position[1])
            if self._damaged[season] == position:
                return
        state = self._states.setdefault(season, season_state.SeasonState(season))
        last_notified_seq = self._box.read.get(
            season, self._ledger.last(season) if self._first else 0
        )
        for entry in season_state.follow(state, functools.partial(self._ledger.read, season)):
            if entry.seq > last_notified_seq:
                self._box.settle(state)
                self._box.add(notices.of_entry(state, entry))
                if state.abandoned:
                    self._box.close_season(season)
        self._box.read[season] = state.seq
        self._damaged.pop(season, None)

    def _look(self, now_ms: int) -> None:
        ahead_ms = round(self._settings.deadline_hours * 3_600_000)
        for season, state in list(self._states.items()):
            with self._guarded(season):
                if state.seq and not state.over:
                    self._box.add(notices.of_deadlines(state, now_ms, ahead_ms))
        hosts = vitals.read(self._ledger)
        silent_ms = round(self._settings.host_silent_seconds * 1000)
        silent = [
            notice
            for notice in notices.of_hosts(hosts, now_ms, silent_ms)
            if not vitals.host_drained(self._ledger, hosts[notice.facts["host"]])
        ]
        self._box.add(silent)
        for host in hosts.keys() - {notice.facts["host"] for notice in silent}:
            self._box.close(f"silent:{host}")

    def _send(self, now_ms: int) -> None:
        """Send each notice by every channel that is due; keep at once what came of it.

        A kill repeats at most the message in flight, however long a channel before it took.
        """
        for waiting in list(self._box.waiting.values()):
            wanted = [
                channel for channel in self._settings.channel if channel.wants(waiting.notice)
            ]
            sent = waiting
            for channel in wanted:
                if self._due(waiting, channel.name, now_ms):
                    self._box.waiting[waiting.id] = sent = self._sent(sent, channel, now_ms)
                    self._box.save()
            whole = all(channel.name in sent.sent_ms for channel in wanted)
            if whole and not waiting.notice.asks:
                del self._box.waiting[waiting.id]

    def _sent(
        self, waiting: outbox.Waiting, channel: settings.Channel, now_ms: int
    ) -> outbox.Waiting:
        """Send a notice by a channel; return it with what came of it."""
        sent, failed = dict(waiting.sent_ms), dict(waiting.failed)
        try:
            subject, body = templates.render(waiting.notice, self._settings.templates)
            again = "Reminder: " if channel.name in sent else ""
            channels.send(channel, waiting.notice, again + subject, body)
        except errors.FarmError as error:
            failed[channel.name] = str(error)
            log.warning("notice.failed", channel=channel.name, error=str(error))
        else:
            sent[channel.name] = now_ms
            failed.pop(channel.name, None)
            log.info("notice.sent", channel=channel.name, notice=waiting.id)
        return waiting.model_copy(update={"sent_ms": sent, "failed": failed, "tried_ms": now_ms})

    def _due(self, waiting: outbox.Waiting, channel: str, now_ms: int) -> bool:
        if channel in waiting.failed:
            return now_ms - waiting.tried_ms >= RETRY_MS
        if channel not in waiting.sent_ms:
            return True
        remind_ms = self._settings.remind_minutes * 60_000
        return waiting.notice.asks and now_ms - waiting.sent_ms[channel] >= remind_ms


def paths(data: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Return where the settings and the outbox are by default."""
    return data / "notify.toml", data / "notify" / "outbox.json"
