"""``farm match keep``: what keeps the test matches that were submitted, all in one process.

``farm serve`` starts it when there is one, and it ends by itself when none is left. Invariants:

* each match has a file, ``kept.json``, in its folder: ``open`` while it is to be kept, whatever
  dies meanwhile; it goes on where its mirror ends;
* SIGTERM and Ctrl-C end this process and no match: lanes and workers play on until it is back;
* whatever fails in one match ends that one, with its reason, and no other.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import click
import structlog

from orchestrator import contract
from orchestrator.commands import common, keeping, planning, services, source_builds
from orchestrator.common import errors, files, logs
from orchestrator.engines import sources
from orchestrator.ledger import batches, farm_journal, store, submissions
from orchestrator.serve import doorbell
from orchestrator.testmatch import catalogue, kept, orders, sprt_match

log = structlog.get_logger()

WAIT_MS: Final = 1_000  # ms: a look at submissions and lanes at least this often
PASS_SECONDS: Final = 0.1  # s: between two passes, however fast results come: each looks at all
REST: Final = 4.0  # times as long as a pass took: many matches are looked at less often
AWAY_SECONDS: Final = 1.0  # s: between two tries while Redis is away
TELL_SECONDS: Final = 60.0  # s: between two lines of a match in the log
DISK_SECONDS: Final = 30.0  # s: until a match whose disk took no more is opened again


class Match:
    """A match that is kept here."""

    def __init__(
        self,
        ledger: store.RedisLedger,
        directory: pathlib.Path,
        spec: orders.Spec,
        terms: sprt_match.Terms,
        submission: str,
    ) -> None:
        """Open it; raise ``FarmError`` where it cannot be kept."""
        self._submission = submission
        self.spec, self.terms, self._directory, self._ledger = spec, terms, directory, ledger
        self._author = common.author(ledger, sprt_match.KEEPER)
        self._told_at, self._unbuilt = float("-inf"), 0
        self._holds = contextlib.ExitStack()
        try:
            source_builds.require_kept(spec)
            self._holds.enter_context(source_builds.held(spec))
            self._keeper = keeping.keeper_of(ledger, directory, spec, terms, self._author)
            self._holds.callback(self._keeper.close)
            # First: whoever comes after a kill goes on with it.
            kept.write(directory, kept.OPEN, submission=submission)
            self._keeper.open(self._author)
        except BaseException:
            self._holds.close()
            raise

    @property
    def position(self) -> tuple[str, int]:
        """Return the match's journal, and the last of its entries that is kept."""
        return self._keeper.position

    def step(self, ring: Callable[[str], None]) -> str:
        """Take what is new; return why the match has ended, '' while it goes on."""
        standing = self._keeper.step(ring, 0)
        for failure in standing.failed_builds[self._unbuilt :]:
            log.warning("test.build_failed", match=self.spec.id, why=failure)
        self._unbuilt = len(standing.failed_builds)
        score = keeping.line(standing, self.terms.test)
        if time.monotonic() - self._told_at > TELL_SECONDS:
            self._told_at = time.monotonic()
            log.info("test.stands", match=self.spec.id, score=score)
        if not standing.over and self._keeper.stopped is None:
            return ""
        why = keeping.why_ended(standing, self._keeper)
        self.end(why, score)
        return why

    def end(self, why: str, score: str = "") -> None:
        """End the match for good, and tell people."""
        self._keeper.finish()
        names = [engine.name for engine in self.spec.engines]
        keeping.announce_end(self._ledger, self.spec.id, names, self._author, why, score)
        kept.write(self._directory, kept.ENDED, why, self._submission)
        log.info("test.ended", match=self.spec.id, why=why, score=score)

    def close(self) -> None:
        """Let go of the match, which stays as it is."""
        self._holds.close()


class Keepers:
    """All matches that are kept here."""

    def __init__(self, ledger: store.RedisLedger, root: pathlib.Path) -> None:
        self._ledger, self._root = ledger, root
        self._submitted = submissions.RedisSubmissions(ledger.server)
        self._batches = batches.RedisBatches(ledger.server)
        self._ring = doorbell.at(common.redis_url())
        self._matches: dict[str, Match] = {}
        # To open, and when (s, monotonic): of an earlier life, or with a full disk.
        self._left = dict.fromkeys(kept.open_matches(root), 0.0)
        data = root.parent
        store = sources.Store(data / "sources")
        self._planner = planning.Planner(catalogue.Catalogue(data), store)
        self._fetched: set[str] = set()  # matches whose sources are on their way
        self._failures: dict[str, str] = {}  # why a match could not be opened

    def run(self, ended: threading.Event, parent: int = 0) -> None:
        """Keep matches until none is left, somebody ends this process, or its parent is gone."""
        away = False
        try:
            while not ended.is_set() and parent in {0, os.getppid()}:
                try:
                    began = time.monotonic()
                    self._batches.lapse()
                    if not self._pass():
                        return
                    rest = max(PASS_SECONDS, REST * (time.monotonic() - began))
                    away = False
                    positions = dict(match.position for match in self._matches.values())
                    self._ledger.wait(positions, WAIT_MS)
                    ended.wait(min(rest, WAIT_MS / 1_000))
                except errors.LedgerForeignError:
                    raise
                except errors.LedgerAwayError as error:
                    if not away:
                        log.warning("redis.away", error=str(error))
                    away = True
                    ended.wait(AWAY_SECONDS)
        finally:
            for match in self._matches.values():
                match.close()

    def _pass(self) -> bool:
        """Take what waits, and look at each match; return whether there is one."""
        self._fetched.clear()
        ready = [submission for submission in self._submitted.all() if submission.ready]
        for submission in ready:
            self._take(submission)
        for name in self._left.keys() - {submission.match for submission in ready}:
            if self._is_due(name):
                self._open(name, None)
        for name in list(self._matches):
            with self._guarded(name):
                if self._matches[name].step(self._ring):
                    self._matches.pop(name).close()
        return bool(self._matches or self._left or self._fetched)

    def _take(self, submission: submissions.Submission) -> None:
        name = submission.match
        order = self._submitted.order(name)
        made_here = submission.goes_on or submission.copy_of or submission.proposed
        if order is None and not made_here:
            return  # it was refused just now
        why = self._is_another(submission)
        if not why and self._is_due(name):
            self._open(name, order, submission)
        if why or (name not in self._left and name not in self._fetched):
            why = why or self._failures.pop(name, "")
            if why and submissions.BY_GATEWAY in submission.by:
                self._submitted.fail(name, why)  # its author looks there, and nowhere else
            else:
                self._submitted.remove(name)
            if submissions.BY_GATEWAY in submission.approved_by:  # the gateway writes no such entry
                draft = contract.Draft(submissions.APPROVED, {"match": name, "reason": ""})
                farm_journal.append(self._ledger, draft, submission.approved_by)

    def _is_another(self, submission: submissions.Submission) -> str:
        """Say why a match cannot be made of a submission: another one has its name."""
        directory = self._root / submission.match
        made = submission.copy_of or submission.proposed
        if (
            made
            and sprt_match.is_kept(directory)
            and kept.submission(directory) != _mark(submission)
        ):
            return f"there is a test match {submission.match} already"
        return ""

    def _is_due(self, name: str) -> bool:
        return time.monotonic() >= self._left.get(name, 0.0)

    def _open(
        self, name: str, order: str | None, submission: submissions.Submission | None = None
    ) -> None:
        """Keep a match from now on, by its order or the one in its folder, or another's."""
        with self._guarded(name):
            if name not in self._matches:
                directory = self._root / name
                mark = kept.submission(directory) if submission is None else _mark(submission)
                if order is not None:
                    spec, terms = sprt_match.decoded(contract.loads(order))
                elif sprt_match.is_kept(directory):  # or a keeper was killed as it took it
                    spec, terms = sprt_match.load(directory)
                elif submission is not None and submission.copy_of:
                    spec, terms = self._copied(submission)
                elif submission is not None and submission.proposed:
                    plan = self._planner.plan(submission)
                    if plan is None:
                        self._fetched.add(name)
                        return
                    spec, terms = plan
                else:
                    spec, terms = sprt_match.load(directory)
                self._matches[name] = Match(self._ledger, directory, spec, terms, mark)
                log.info("test.kept", match=name, what=keeping.outline(spec))
            self._left.pop(name, None)

    def _copied(self, submission: submissions.Submission) -> tuple[orders.Spec, sprt_match.Terms]:
        spec, terms = sprt_match.load(self._root / submission.copy_of)
        return spec.copied(submission.match, submission.changes), terms

    @contextlib.contextmanager
    def _guarded(self, match: str) -> Iterator[None]:
        """End a match whatever goes wrong with it; one whose disk is full waits for room."""
        try:
            yield
        except (errors.DiskError, OSError) as error:
            log.exception("test.waits", match=match, error=str(error))
            self._left[match] = time.monotonic() + DISK_SECONDS
            if (failed := self._matches.pop(match, None)) is not None:
                failed.close()
        except errors.FarmError as error:
            if errors.is_outage(error):
                raise
            self._fail(match, str(error))
        except Exception as error:
            log.exception("test.failed", match=match)
            self._fail(match, f"{type(error).__name__}: {error}")

    def _fail(self, match: str, why: str) -> None:
        log.error("test.failed", match=match, why=why)
        failed = self._matches.get(match)
        if failed is not None:
            failed.end(f"failed: {why}")
            failed.close()
            del self._matches[match]
            return
        self._failures[match] = why
        author = common.author(self._ledger, sprt_match.KEEPER)
        keeping.announce_end(self._ledger, match, (), author, f"failed: {why}", "")
        self._left.pop(match, None)
        if match in kept.open_matches(self._root):
            kept.write(self._root / match, kept.ENDED, why)


def _mark(submission: submissions.Submission) -> str:
    """Return what a submission is known by in the folder of its match."""
    return f"{submission.by} {submission.at_ms}"


@contextlib.contextmanager
def _only_one(root: pathlib.Path) -> Iterator[None]:
    """Hold a folder's matches for this process; raise ``RefusedError`` when another has them."""
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root / "keep.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            files.lock(descriptor)
        except BlockingIOError:
            raise errors.RefusedError(
                f"another `farm match keep` keeps the test matches of {root}"
            ) from None
        yield
    finally:
        os.close(descriptor)


@click.command("keep-tests")
@click.option("--parent", type=int, default=0, hidden=True, help="End when this process is gone.")
def keep_tests(parent: int) -> None:
    """Keep the test matches that were submitted (`--submit`), until none is left.

    `farm serve`, and with it `farm up`, starts this by itself where there are any, on the host
    whose FARM_DATA they are to be kept in. Stopped, it ends no match: it goes on when it is back.

    Example: farm keep-tests
    """
    logs.configure()
    services.shorten_pauses()
    ended, root = services.until_ended(), common.matches_folder()
    with _only_one(root), common.open_ledger() as ledger:
        Keepers(ledger, root).run(ended, parent)
