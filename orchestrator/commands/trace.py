"""``farm trace``: all that is known of one game in one timeline: journal, logs, protocol.

Lines of logs are found by the ids that every line about a game carries: season and game, or the
attempt. Each line keeps its own source's time: the journal's is Redis', a log's that of its host,
and the protocol's monotonic one is set so that its last line ends with the game.
"""

from __future__ import annotations

import datetime as dt
import json
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import click

from orchestrator import contract
from orchestrator.arbiter import game_zip
from orchestrator.commands import common, paths, programs
from orchestrator.common import bounds
from orchestrator.common import text as texts

LOGS = "*.log*"  # in the data directory's folder of logs, those that were rotated away too
ATTEMPT_FILES = "*/attempts/{attempt}.deadman.jsonl"  # below the halls' folder: of this host
SAID = 200  # characters of what an engine said
LINE_BYTES = 1 << 20  # of a log: longer lines are no log's
_ENVELOPE = frozenset({"event", "timestamp", "level", "logger"})


class Line(NamedTuple):
    """One line of the timeline; ``at_ms`` since 1970."""

    at_ms: float
    source: str
    what: str
    facts: dict[str, Any]


@click.command()
@click.argument("game")
@common.season_option
@click.option(
    "--log",
    "logs",
    type=click.Path(path_type=pathlib.Path, exists=True, allow_dash=True),
    multiple=True,
    help="A log of JSON lines, or a folder of them; - is standard input. Default: this farm's.",
)
@click.option("--info", is_flag=True, help="Show the engines' info lines too.")
@paths.archive
@paths.halls
@common.json_option
def trace(
    game: str,
    season: str | None,
    logs: tuple[pathlib.Path, ...],
    archive: pathlib.Path,
    halls: pathlib.Path,
    *,
    info: bool,
    as_json: bool,
) -> None:
    """Show GAME as one timeline: facts of the journal, lines of all logs, what engines were told.

    The logs of `farm up` are found by themselves. Those of systemd's services are given: collect
    them on their hosts (journalctl -o cat -u 'farm-*') and name the files, or pipe them (--log -).
    What was sent to engines is in the archive: without that the timeline has no such lines.

    Example: farm trace league.4 --info
    """
    with common.open_ledger() as ledger:
        folded = common.choose(ledger, season)
        name = folded.launched.id
        folded.game(game)
        entries = list(common.journal(ledger, name))
    attempts = {str(e.data["attempt"]) for e in entries if _is_about(e, game) and _attempt(e)}
    files = logs or _own_logs()
    if paths.is_elsewhere(archive):
        programs.warn([paths.elsewhere(archive, "what was sent to engines is")])
    lines = [
        *_journaled(entries, game, attempts),
        *_logged(files, name, game, attempts),
        *_dead_men(halls, attempts),
        *_protocol(archive / name / "games" / game, info=info),
    ]
    lines.sort(key=lambda line: line.at_ms)
    if as_json:
        common.print_json([{"at": _moment(entry.at_ms), **entry._asdict()} for entry in lines])
        return
    for entry in lines:
        fields = " ".join(f"{key}={_short(value)}" for key, value in entry.facts.items())
        click.echo(f"{_moment(entry.at_ms)}  {entry.source:<10} {entry.what} {fields}".rstrip())


def _own_logs() -> tuple[pathlib.Path, ...]:
    """Return the folder of logs of this machine's `farm up`; say so where there is none."""
    folder = common.data_directory() / "logs"
    if folder.exists():
        return (folder,)
    programs.warn([f"no logs are read: {folder} does not exist; name them by --log"])
    return ()


def _is_about(entry: contract.Entry, game: str) -> bool:
    return entry.data.get("game") == game


def _attempt(entry: contract.Entry) -> bool:
    return bool(entry.data.get("attempt"))


def _journaled(entries: Iterable[contract.Entry], game: str, attempts: set[str]) -> Iterator[Line]:
    for entry in entries:
        if _names(entry.data, game, attempts):
            plain = {k: v for k, v in entry.data.items() if not isinstance(v, dict | list)}
            fields = {"by": entry.by, **plain}
            yield Line(entry.at_ms, "journal", entry.kind, fields)


def _names(value: Any, game: str, attempts: set[str]) -> bool:
    """Say whether a fact names the game, or one of its attempts, at any depth."""
    if isinstance(value, dict):
        if game in (value.get("game"), value.get("id")) or value.get("attempt") in attempts:
            return True
        value = list(value.values())
    return isinstance(value, list) and any(_names(item, game, attempts) for item in value)


def _logged(
    files: Iterable[pathlib.Path], season: str, game: str, attempts: set[str]
) -> Iterator[Line]:
    for path in _unfolded(files):
        with click.open_file(str(path), errors="replace") as file:
            while text := file.readline(LINE_BYTES + 1):
                line = _line(text, path)
                if line is not None and _concerns(line.facts, season, game, attempts):
                    yield line


def _unfolded(files: Iterable[pathlib.Path]) -> Iterator[pathlib.Path]:
    for path in files:
        yield from sorted(path.glob(LOGS)) if path.is_dir() else ([path] if path.name else [])


def _line(text: str, path: pathlib.Path) -> Line | None:
    if len(text) > LINE_BYTES or not text.startswith("{"):
        return None
    try:
        raw = json.loads(text)
        at_ms = dt.datetime.fromisoformat(raw["timestamp"]).timestamp() * 1000
        fields = {key: value for key, value in raw.items() if key not in _ENVELOPE}
        parts = str(raw.get("logger") or path.stem).split(".")
        source = parts[1] if len(parts) > 1 else parts[0]  # the room of the module that logs
        return Line(at_ms, source, str(raw["event"]), fields)
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def _concerns(fields: dict[str, Any], season: str, game: str, attempts: set[str]) -> bool:
    attempt = fields.get("attempt")
    if isinstance(attempt, str) and attempt in attempts:
        return True
    return fields.get("game") == game and fields.get("season") == season


def _dead_men(halls: pathlib.Path, attempts: set[str]) -> Iterator[Line]:
    """Yield what the supervisors of this host's attempts wrote down before they killed."""
    for attempt in sorted(attempts):
        for path in halls.glob(ATTEMPT_FILES.format(attempt=attempt)):
            for text in path.read_text("utf-8", "replace").splitlines():
                try:
                    raw = json.loads(text)
                    fields = {key: raw[key] for key in ("why", "silence_ms") if key in raw}
                    yield Line(float(raw["at_ms"]), "supervisor", str(raw["event"]), fields)
                except (ValueError, KeyError, TypeError):
                    continue  # a torn line


def _protocol(folder: pathlib.Path, *, info: bool) -> Iterator[Line]:
    """Yield what was said between referee and engines, once the game is archived."""
    try:
        ended_ms = contract.GameRecord.decode((folder / "record.json").read_bytes()).ended_ms
    except (OSError, ValueError):  # a hall wrote it
        return
    spoken, last_ns = [], 0
    for line in bounds.packed_lines(folder / "protocol.log.gz", game_zip.MEMBER_BYTES):
        at, seat, said = [*line.decode("utf-8", "replace").rstrip("\n").split(" ", 2), "", ""][:3]
        at_ns = texts.whole(at)
        if at_ns is None or not said:
            continue
        last_ns = at_ns
        if info or not said.startswith("info "):
            spoken.append((at_ns, seat, said[:SAID]))
    for at_ns, seat, said in spoken:
        at_ms = ended_ms - (last_ns - at_ns) / 1e6
        yield Line(at_ms, f"seat {seat}", said, {})


def _moment(at_ms: float) -> str:
    at_ms = min(max(at_ms, 0.0), contract.LATEST_MS)  # a log's line may name any time
    return dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC).isoformat(timespec="milliseconds")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."
