"""Follows what kibitzers find: their cards on our page, TCEC's files of the shown game.

What was found in a position is shown while that position is on the board, and withdrawn
when the game moves on; a kibitzer that is slow, silent or gone changes nothing else. The
files of a desk follow from the game's plies and what the ledger holds of the desk, so a
rebuild within the three days that the ledger keeps it gives the same bytes (decision 026).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pydantic

from orchestrator import contract
from orchestrator.arbiter import score
from orchestrator.broadcast.content import games, messages, season_view, variations
from orchestrator.broadcast.feeds import files as feeds_files
from orchestrator.broadcast.feeds.tcec import kibitz

RECENT: Final = 4  # finished games that a last word may still come for


class Desk:
    """What one kibitzer has found in one attempt's positions, by the plies before them."""

    def __init__(self) -> None:
        self.found: dict[int, contract.Evaluation] = {}
        self._payloads: dict[int, str] = {}
        self._moves: dict[int, tuple[contract.Evaluation, dict[str, Any] | None]] = {}

    def read(self, payloads: dict[int, str]) -> None:
        """Take what the ledger holds; what this version cannot read is left out."""
        for ply, payload in payloads.items():
            if self._payloads.get(ply) != payload:
                self._payloads[ply] = payload
                self._take(ply, payload)

    def _take(self, ply: int, payload: str) -> None:
        try:
            self.found[ply] = contract.Evaluation.decode(payload)
        except pydantic.ValidationError:
            self.found.pop(ply, None)

    def moves(self, line: games.GameLine) -> dict[int, dict[str, Any]]:
        """Return what was found up to the last position, as TCEC's files have it."""
        rendered = ((ply, self._move(line, ply)) for ply in self.found if ply <= line.last)
        return {ply: entry for ply, entry in rendered if entry is not None}

    def _move(self, line: games.GameLine, ply: int) -> dict[str, Any] | None:
        """Render an evaluation once: there may be hundreds, and one changes at a time."""
        kept = self._moves.get(ply)
        if kept is None or kept[0] is not self.found[ply]:
            entry = kibitz.move(kibitz.position(line, ply), self.found[ply])
            kept = self._moves[ply] = (self.found[ply], entry)
        return kept[1]

    def files(
        self, line: games.GameLine, names: kibitz.Files, *, over: bool
    ) -> Iterator[tuple[messages.TcecFile, bool]]:
        """Yield the desk's files, and whether they are to be there at all."""
        moves = self.moves(line)
        whole = kibitz.whole(line, moves, self.found[max(moves)]) if moves else None
        yield messages.TcecFile(names.whole, names.whole_event, whole), whole is not None
        now = None if over else moves.get(line.last)
        latest = None if now is None else kibitz.latest(line, now, self.found[line.last])
        latest_file = messages.TcecFile(names.latest, names.latest_event, latest, volatile=True)
        yield latest_file, latest is not None


class Remarks:
    """What all desks have found in one attempt's positions, as far as it has been read.

    ``cards`` are what our page shows of it; ``shown`` says for which last ply, whether to
    TCEC's viewers, too, and whether of a game that is over.
    """

    def __init__(self, attempt: str) -> None:
        self.attempt = attempt
        self.desks = [Desk() for _ in kibitz.FILES]
        self.cards: list[dict[str, Any]] = []
        self.shown: tuple[int, bool, bool] | None = None
        self._marks = (0,) * len(kibitz.FILES)

    def look(self, comments: season_view.Comments) -> bool:
        """Read what is new; say whether there was something."""
        marks = comments.marks(self.attempt)
        if marks == self._marks:
            return False
        for number, (desk, old) in enumerate(zip(self.desks, self._marks, strict=True)):
            if old != marks[number]:
                desk.read(comments.comments(number, self.attempt))
        self._marks = marks  # only now: a read that fails is made again
        return True

    def behind(self, comments: season_view.Comments) -> bool:
        """Say whether there is something that has not been read."""
        return comments.marks(self.attempt) != self._marks

    def evals(self, line: games.GameLine) -> list[dict[str, Any]]:
        """Return what all desks thought of the positions so far, in White's view, in order."""
        return [
            _eval(line, number, ply, desk.found[ply])
            for number, desk in enumerate(self.desks)
            for ply in sorted(desk.found)
            if ply <= line.last
        ]

    def on_board(self, line: games.GameLine) -> list[dict[str, Any]]:
        """Return the cards of the position on the board."""
        evaluations = (
            (number, desk.found.get(line.last)) for number, desk in enumerate(self.desks)
        )
        return [
            card(line, number, evaluation)
            for number, evaluation in evaluations
            if evaluation is not None
        ]


class Heard(NamedTuple):
    """What our page shows of kibitzers now, and what is new for those who listen."""

    cards: list[dict[str, Any]]
    told: list[messages.Message]
    remarks: Remarks


class Finished(NamedTuple):
    """A finished game of the archive, and what had been found of it when it was written."""

    remarks: Remarks
    line: Callable[[], games.GameLine | None]
    stem: str


class Kibitzing:
    """Follows the kibitzers of all seasons' games."""

    def __init__(self, comments: season_view.Comments, directory: feeds_files.Directory) -> None:
        """Read from ``comments``; write to ``directory``."""
        self._comments, self._directory = comments, directory
        self._remarks: dict[str, Remarks] = {}
        self._finished: dict[str, Finished] = {}  # the latest, by attempt

    def hear(
        self, season: str, attempt: str, line: games.GameLine, *, front: bool, over: bool = False
    ) -> Heard:
        """Bring files and cards of a season's game up to what has been found."""
        remarks = self._remarks.get(season)
        if remarks is None or remarks.attempt != attempt:
            remarks = self._remarks[season] = Remarks(attempt)
        now = (line.last, front, over)
        if not remarks.look(self._comments) and remarks.shown == now:
            return Heard(remarks.cards, [], remarks)
        remarks.shown = now
        changes: list[messages.Message] = []
        cards = [] if over else remarks.on_board(line)
        if cards != remarks.cards:
            remarks.cards = cards
            data = {"season": season, "game": line.order.game, "kibitzers": cards}
            changes.append(messages.Delta("kibitz", data))
        if front:
            changes += self._write(remarks, line, over=over)
        return Heard(cards, changes, remarks)

    def behind(self, season: str) -> bool:
        """Say whether something was told of a season's last game after it was looked at."""
        remarks = self._remarks.get(season)
        return remarks is not None and remarks.behind(self._comments)

    def keep(self, attempt: str, line: Callable[[], games.GameLine | None], stem: str) -> None:
        """Write the archive's files of a finished game; ``line`` reads its record."""
        self._finished[attempt] = Finished(Remarks(attempt), line, stem)
        self._write_archive(self._finished[attempt])
        while len(self._finished) > RECENT:
            del self._finished[next(iter(self._finished))]

    def catch_up(self) -> None:
        """Write the files of games that a last word has come for since they were written."""
        for finished in self._finished.values():
            self._write_archive(finished)

    def _write_archive(self, finished: Finished) -> None:
        if finished.remarks.look(self._comments) and (line := finished.line()) is not None:
            self._directory.write(archived(finished.remarks, line, finished.stem))

    def _write(
        self, remarks: Remarks, line: games.GameLine, *, over: bool
    ) -> Iterator[messages.Message]:
        """Write and withdraw the files of all desks; yield those that are pushed."""
        for desk, names in zip(remarks.desks, kibitz.FILES, strict=True):
            for file, there in desk.files(line, names, over=over):
                if not there:
                    self._directory.withdraw(file.name)
                elif self._directory.write({file.name: feeds_files.encode(file.data)}):
                    yield file


def card(line: games.GameLine, desk: int, evaluation: contract.Evaluation) -> dict[str, Any]:
    """Return one kibitzer's word on the position on the board, its eval in White's view."""
    steps = variations.steps(line.position, evaluation.pv)
    return _eval(line, desk, line.last, evaluation) | {
        "description": evaluation.description,
        **{
            key: getattr(evaluation, key) for key in ("depth", "seldepth", "nodes", "nps", "tbhits")
        },
        "line": [step.data() for step in steps],
    }


def _eval(line: games.GameLine, desk: int, ply: int, found: contract.Evaluation) -> dict[str, Any]:
    """Return a kibitzer's eval of the position after a ply, under the number of the next one."""
    fen = line.shown[ply - 1].fen if ply else line.start_fen
    mover: contract.Side = "white" if fen.split(" ")[1] == "w" else "black"
    seen = score.white_view(found.score, mover)
    return {
        "desk": desk,
        "engine": found.engine,
        "ply": ply + 1,
        "eval": score.text(found.score, mover) or None,
        "cp": seen.cp,
        "mate": seen.mate,
        "wdl": None if found.wdl is None else score.white_wdl(found.wdl, mover),
    }


def archived(remarks: Remarks, line: games.GameLine, stem: str) -> dict[str, bytes]:
    """Return the archive's files of a finished game, {} where nobody kibitzed."""
    files = {}
    for desk, names in zip(remarks.desks, kibitz.FILES, strict=True):
        file, there = next(desk.files(line, names, over=True))
        if there:
            word = names.whole.removesuffix(".json")
            name = f"archive/{stem.lower()}_{word}_{line.order.round}.json"
            files[name] = feeds_files.encode(file.data)
    return files
