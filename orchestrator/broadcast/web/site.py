"""A season as files for any web host: the live page, all that the API answers, PGN, TCEC's files.

Made from a journal and its archive, without Redis and without a server. A folder holds one season.
Files are named as the API names its answers, with ``.json`` behind; the page reads them by
``page/js/archive.js``. The same journal and archive give the same files.
"""

from __future__ import annotations

import gzip
import pathlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from orchestrator import contract
from orchestrator.broadcast import projector
from orchestrator.broadcast.content import (
    badges,
    documents,
    match_games,
    match_view,
    replays,
    season_view,
)
from orchestrator.broadcast.feeds import files as feeds_files
from orchestrator.broadcast.forecast import documents as forecasts
from orchestrator.broadcast.forecast import settings
from orchestrator.broadcast.web import page_files
from orchestrator.common import errors
from orchestrator.contract import ids
from orchestrator.forecast import season_simulation
from orchestrator.season import published
from orchestrator.season.fold import events
from orchestrator.testmatch import match_journal

PAGE: Final = pathlib.Path(__file__).parent.parent / "page"
MARK: Final = "farm-site.json"  # says that a folder is an export, and may be written again
_API: Final = pathlib.PurePosixPath("api/v1")
# As the server's own, but for what a page cannot say of itself (frames).
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'"
)
_HEAD: Final = (
    f'<head>\n  <meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    '\n  <script type="module" src="archive.js"></script>'
)
_ABSENT: Final = re.compile(  # what the page refers to, and only a server answers
    r'^ *<(?:meta property="og:image|link rel="alternate")[^>]*>\n'
    r'|<a href="(?:api\.html|feeds/[^"]*)"[^>]*>[^<]*</a> ·\s*',
    re.MULTILINE,
)

Progress = Callable[[int, int], None]  # games written, of how many


class _Folder:
    """A folder that the files of a site are written below."""

    def __init__(self, root: pathlib.Path) -> None:
        _claim(root)
        self._root = root

    def write_page(self, season: str) -> None:
        """Write the live page, which reads files."""
        made = page_files.PageFiles(PAGE)
        for path, document in made.static_files().items():
            self.put(path, document.body)
        page = _ABSENT.sub("", made.index).replace("<head>", _HEAD, 1)
        page = page.replace("lichess/live.pgn", f"pgn/{season}.pgn")
        page = page.replace(f'"{page_files.SNAPSHOT}"', f'"{page_files.SNAPSHOT}.json"')
        self.put("index.html", page.encode())
        self.put("archive.js", (PAGE / "js" / "archive.js").read_bytes())
        worker = made.worker(page, "archive.js")
        self.put(page_files.WORKER, worker.body)
        for name in ("manifest.webmanifest", "icon.svg"):  # an exported page is an app, too
            self.put(name, (PAGE / name).read_bytes())
        self.put("favicon.ico", (PAGE / "favicon.ico").read_bytes())

    def write_game(self, season: str, game: str, replay: replays.Replay) -> None:
        """Write a finished game: its document, and all of its plies with their variations."""
        path = _API / "seasons" / season / "games" / game
        self.put(f"{path}.json", documents.of_json(replay.document()).body)
        plies = [replay.ply(ply) for ply in range(1, replay.line.last + 1)]
        packed = gzip.compress(documents.of_json(plies).body, mtime=0)
        self.put(str(path / "plies.bin"), packed)

    def put(self, name: str, body: bytes) -> None:
        """Write a file."""
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)


class Site:
    """Writes one season below a folder."""

    def __init__(
        self, journal: Sequence[contract.Entry], archive: pathlib.Path, root: pathlib.Path
    ) -> None:
        """Fold a journal; raise ``LedgerDamagedError`` or ``RefusedError`` where that fails."""
        self._folder = _Folder(root)
        self._shelf = documents.Library()
        if "id" not in journal[0].data:
            raise errors.LedgerDamagedError(
                f"its first entry is {journal[0].kind}, not a season's launch: it is no season's"
                " journal; those of seasons are in the archive (SEASON/journal.jsonl)"
            )
        source = season_simulation.Playback(journal)
        (season,) = source.seasons()
        if not ids.is_name(season):  # files are named by it, and the journal may be anybody's
            raise errors.LedgerDamagedError(
                f"the season's id {season[:40]!r} is not one of the farm's; allowed: {ids.ALLOWED}"
            )
        directory = feeds_files.Directory(root / "tcec")
        made = projector.Projector(source, archive, self._shelf, directory, lambda _: None)
        made.look()
        (self._season,) = made.seasons.values()
        if self._season.damaged or self._season.failed:
            raise errors.LedgerDamagedError(
                f"the journal of season {self._season.id!r} cannot be shown; the log says why"
            )
        self._album = made.album
        over = self._season.state.over
        outlook = forecasts.Outlook(1 if over else settings.RUNS, {})
        outlook.take(self._season.id, journal)
        self._shelf.put(outlook.documents(source.now_ms()))

    @property
    def season(self) -> season_view.Season:
        """Return the season."""
        return self._season

    @property
    def games(self) -> int:
        """Return how many games are finished, annulled ones included."""
        return len(self._finished())

    @property
    def annulled(self) -> int:
        """Return how many of them count for nobody."""
        state = self._season.state
        return sum(published.annulled(state, game) for game in self._finished())

    def write(self, progress: Progress) -> int:
        """Write all files; return how many games can be replayed."""
        self._folder.write_page(self._season.id)
        for logo in self._season.state.launched.logos.values():
            self._folder.put(badges.path(logo), badges.png(logo))
        for path in self._shelf.places():
            document = self._shelf.get(path)
            assert document is not None
            self._folder.put(str(_API / f"{path}.json"), document.body)
        self._folder.put(str(_API / "snapshot.json"), documents.of_json(self._snapshot()).body)
        return self._write_games(progress)

    def _snapshot(self) -> dict[str, Any]:
        base = f"seasons/{self._season.id}"
        parts = {"season": base, "game": f"{base}/live", "seasons": "seasons"}
        parts_made = {name: self._shelf.get(where) for name, where in parts.items()}
        return {name: part and contract.loads(part.body) for name, part in parts_made.items()}

    def _write_games(self, progress: Progress) -> int:
        finished, counted = self._finished(), set(self._in_order())
        texts: dict[str, list[bytes]] = {}  # by event
        recorded = 0
        for number, game in enumerate(finished, start=1):
            replay = replays.of_game(self._season.state, game, self._album)
            assert replay is not None
            recorded += replay.recorded
            self._folder.write_game(self._season.id, game.id, replay)
            text = self._season.pgn(game)
            if text is not None:
                if game.id in counted:
                    texts.setdefault(game.event, []).append(text.rstrip(b"\n") + b"\n\n")
                self._folder.put(f"pgn/{self._season.id}/games/{game.id}.pgn", text)
            progress(number, len(finished))
        for event, of_event in texts.items():
            self._folder.put(f"pgn/{self._season.id}/{event}.pgn", b"".join(of_event))
        whole = b"".join(b"".join(of_event) for of_event in texts.values())
        self._folder.put(f"pgn/{self._season.id}.pgn", whole)
        return recorded

    def _finished(self) -> list[events.Game]:
        """Return the finished games, those last in whose place another one was played."""
        games = self._season.state.games
        listed = [games[name] for name in dict.fromkeys([*self._in_order(), *games])]
        return [game for game in listed if game.finished is not None]

    def _in_order(self) -> Iterator[str]:
        """Yield the games that PGN of events and season has, as the server's downloads."""
        for event in self._season.state.events.values():
            yield from event.order


class MatchSite:
    """Writes a match of ``farm match`` below a folder, by its journal and its PGN."""

    def __init__(self, journal: pathlib.Path, pgn: pathlib.Path | None, root: pathlib.Path) -> None:
        """Read the journal's last match; raise ``UsageError`` or ``RefusedError``."""
        past = match_journal.past(journal)
        if past.about is None:
            raise errors.UsageError(
                f"{journal}: its match was played by a version whose journals lack its settings;"
                " play it again, or go on with it (farm match -resume)"
            )
        self.name, self._results = past.about.event, past.results
        self._folder = _Folder(root)
        try:
            launched_ms = min((finished.started_ms for finished in past.results), default=0)
            self._view = match_view.MatchView(past.about, launched_ms)
            for result in past.results:
                self._view.add(result)
        except (ValueError, KeyError, TypeError) as error:  # the journal may be anybody's
            raise errors.UsageError(
                f"{journal}: a game is none of this match's ({error!r}); a journal is only"
                " appended to by farm match, take it from where the match was played"
            ) from None
        self._view.reason = ""
        texts = None if pgn is None else match_games.PgnFile(pgn)
        if texts is not None:
            for result in past.results:
                texts.take(result)
        self._games = match_games.Games(past.about, texts)

    @property
    def games(self) -> int:
        """Return how many games the journal tells of."""
        return len(self._results)

    def write(self, progress: Progress) -> int:
        """Write all files; return how many games can be replayed."""
        season = match_view.SEASON
        self._folder.write_page(season)
        ended_ms = max((finished.ended_ms for finished in self._results), default=0)
        made = self._view.made(ended_ms)
        made["seasons"] = documents.of_json([self._view.overview(ended_ms)])
        recorded, live, texts = 0, None, []
        for number, result in enumerate(self._results, start=1):
            replay = self._games.replay(result)
            recorded += replay.recorded
            self._folder.write_game(season, str(result.number), replay)
            live = documents.of_json(replay.document())
            text = self._games.pgn(result)
            if text is not None:
                texts.append(text.rstrip() + "\n\n")
                self._folder.put(f"pgn/{season}/games/{result.number}.pgn", text.encode())
            progress(number, len(self._results))
        if live is not None:
            made[f"seasons/{season}/live"] = live
        for path, document in made.items():
            self._folder.put(str(_API / f"{path}.json"), document.body)
        parts = {"season": f"seasons/{season}", "game": f"seasons/{season}/live"}
        parts_made = {
            name: made.get(path) for name, path in (parts | {"seasons": "seasons"}).items()
        }
        snapshot = {name: part and contract.loads(part.body) for name, part in parts_made.items()}
        self._folder.put(str(_API / "snapshot.json"), documents.of_json(snapshot).body)
        self._folder.put(f"pgn/{season}.pgn", "".join(texts).encode())
        return recorded


def is_match(journal: pathlib.Path) -> bool:
    """Say whether a file is a journal of ``farm match``, by its first line."""
    with journal.open("rb") as file:
        line = file.readline()
    try:
        entry = contract.loads(line)
    except ValueError:
        return False
    return isinstance(entry, dict) and entry.get("kind") == "match"


def _claim(root: pathlib.Path) -> None:
    """Take a folder that is empty, or was taken before; raise ``RefusedError`` for any other."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        if any(root.iterdir()) and not (root / MARK).is_file():
            raise errors.RefusedError(
                f"{root} holds other files; name an empty folder, or one of an earlier export"
            )
        (root / MARK).write_text('{"made_by": "farm export-site"}\n', encoding="utf-8")
    except OSError as error:
        raise errors.HostError(f"{root} cannot be written: {errors.reason(error)}") from error
