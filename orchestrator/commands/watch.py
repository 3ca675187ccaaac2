"""``farm watch``: the running game and its event on a terminal, as they change."""

from __future__ import annotations

import dataclasses
import pathlib
import textwrap
import time
from typing import Any

import chess
import click
import rich.console
import rich.live
import rich.panel
import rich.table
import rich.text

from orchestrator import contract
from orchestrator.arbiter import board as arbiter_board
from orchestrator.arbiter import score
from orchestrator.broadcast.content import game_store
from orchestrator.commands import common, paths, tables
from orchestrator.ledger import store
from orchestrator.season import decisions, views
from orchestrator.season.file import wording
from orchestrator.season.fold import events, orders, progress, state

REFRESH_SECONDS = 0.25  # s: clocks on the screen run in quarters of a second
LAST_MOVES = 12  # plies shown under the board, those that fit into MOVE_LINES
MOVE_LINES = 2
BOARD_WIDTH = 34  # characters
TABLE_WIDTH = 32  # what a table of ranks and points alone needs; a narrower one goes below


@dataclasses.dataclass(frozen=True)
class _Beside:
    """The game with its event beside it, or below it where the terminal is narrow."""

    game: rich.console.RenderableType
    event: rich.console.RenderableType

    def __rich_console__(
        self, _console: rich.console.Console, options: rich.console.ConsoleOptions
    ) -> rich.console.RenderResult:
        grid = rich.table.Table.grid(padding=(0, 2))
        grid.add_column(min_width=BOARD_WIDTH + 4)  # a board that is folded is none
        if options.max_width < BOARD_WIDTH + 4 + TABLE_WIDTH + 4:
            grid.add_row(self.game)
            grid.add_row(self.event)
        else:
            grid.add_row(self.game, self.event)
        yield grid


class Screen:
    """One season as it is shown: folds the journal as it grows, asks for the rest.

    ``archive``: where the last moves of a finished game are once Redis has them no longer.
    """

    def __init__(
        self,
        ledger: store.RedisLedger,
        chosen: state.SeasonState,
        archive: pathlib.Path,
        *,
        inked: bool = True,
    ) -> None:
        self._ledger, self._inked = ledger, inked
        self._album = game_store.Album(archive, ledger)
        self.state = chosen
        self._game = ""
        self._board: arbiter_board.GameBoard | None = None
        self._plies: list[contract.PlyRecord] = []
        self._attempt = ""

    def refresh(self) -> None:
        """Read what has happened since the last look."""
        for _ in common.follow(self._ledger, self.state.launched.id, self.state):
            pass
        running = self.state.running
        if running is not None and running.attempt != self._attempt:
            order = orders.game_order(self.state, running.game)
            self._game, self._attempt, self._plies = running.game, running.attempt, []
            self._board = arbiter_board.GameBoard(order.opening, order.variant)
        if self._board is not None:
            self._read_plies(self._board)

    def _read_plies(self, board: arbiter_board.GameBoard) -> None:
        new = [
            contract.PlyRecord.decode(payload)
            for _, payload in self._ledger.plies(self._attempt, self._last_number)
        ]
        if not new and self._lacks_moves:
            record = self._album.game(self.state.launched.id, self._game, self._attempt)
            plies = () if record is None else record.plies
            new = [ply for ply in plies if ply.ply > self._last_number]
        for ply in new:
            move = board.legal(ply.move)
            if move is not None:
                board.push(move)
                self._plies.append(ply)

    @property
    def _last_number(self) -> int:
        return self._plies[-1].ply if self._plies else 0

    @property
    def _lacks_moves(self) -> bool:
        """Say whether the game has ended with moves that are not shown."""
        finished = self.state.game(self._game).finished
        return (
            finished is not None
            and finished.attempt == self._attempt
            and finished.plies > self._last_number
        )

    def render(self) -> rich.console.RenderableType:
        """Draw the screen: where the season stands comes first, as low terminals cut the end off.

        The game has 22 lines at most: with a heading of two it fits into the usual 24.
        """
        live = self._ledger.live(self.state.hall)
        picture: dict[str, Any] = contract.loads(live) if live else {}
        if picture.get("attempt") != self._attempt:
            picture = {}
        return rich.console.Group(
            self._heading(), _Beside(self._game_panel(picture), self._tables())
        )

    # -- the game -------------------------------------------------------------------

    def _game_panel(self, picture: dict[str, Any]) -> rich.panel.Panel:
        if self._board is None:
            return rich.panel.Panel("no game is in flight", title="Game", width=BOARD_WIDTH + 6)
        shown_game = self.state.game(self._game)
        now_ms = self._ledger.now_ms()
        lines = [
            self._player(shown_game.black, "black", picture, now_ms),
            _draw(
                self._board.fen(), self._plies[-1].move if self._plies else "", inked=self._inked
            ),
            self._player(shown_game.white, "white", picture, now_ms),
        ]
        counters = self._plies[-1].counters if self._plies else None
        if counters is not None and not shown_game.finished:
            lines.append(rich.text.Text(_counters(counters), "dim"))
        lines.append(self._last_moves())
        title = f"{self._game}  round {shown_game.round}"
        if shown_game.finished is not None:
            title += f"  {shown_game.finished.result} {shown_game.finished.details}"
        return rich.panel.Panel(rich.console.Group(*lines), title=title, width=BOARD_WIDTH + 6)

    def _player(
        self, engine: str, side: contract.Side, picture: dict[str, Any], now_ms: int
    ) -> rich.text.Text:
        side_picture = picture.get(side, {})
        clock_ms = side_picture.get("clock_ms")
        over = self.state.game(self._game).finished is not None
        thinking = picture.get("thinking") == side and not over
        if thinking and clock_ms is not None:
            clock_ms = max(0, clock_ms - max(0, now_ms - picture["since_ms"]))
        name = views.name(self.state, engine, self.state.game(self._game).event)
        text = rich.text.Text(f"{name[:24]:<24} ")
        text.append(_clock(clock_ms), style="bold green" if thinking else "")
        search = side_picture.get("search") if thinking else None
        text.append(f"\n  {self._said(side, search)}", style="dim")
        if lag := network(self._last_ply(side)):
            text.append(f"\n  {lag}", style="dim")
        return text

    def _last_ply(self, side: contract.Side) -> contract.PlyRecord | None:
        return next((ply for ply in reversed(self._plies) if ply.side == side), None)

    def _said(self, side: contract.Side, search: dict[str, Any] | None) -> str:
        """Return eval (White's view), depth and speed: of this search, else of the last move."""
        if search is None:
            last = self._last_ply(side)
            search = {} if last is None else _searched(last)
        parts = []
        if search.get("cp") is not None or search.get("mate") is not None:
            claimed = contract.Score(cp=search.get("cp"), mate=search.get("mate"))
            parts.append(score.text(claimed, side))
        if search.get("depth"):
            parts.append(f"depth {search['depth']}/{search.get('seldepth') or search['depth']}")
        if search.get("nps"):
            parts.append(f"{search['nps'] / 1000:,.0f} kN/s")
        return "  ".join(parts) or "-"

    def _last_moves(self) -> rich.text.Text:
        moves = []
        for ply in self._plies[-LAST_MOVES:]:
            number = (ply.ply + 1) // 2
            moves.append(f"{number}. {ply.san}" if ply.side == "white" else ply.san)
        if self._lacks_moves:
            moves.append("… the last moves are in the PGN")
        lines = textwrap.wrap(" ".join(moves), BOARD_WIDTH + 2)[-MOVE_LINES:]
        return rich.text.Text("\n".join(lines), style="cyan")

    # -- the event ------------------------------------------------------------------

    def _tables(self) -> rich.console.RenderableType:
        begun = [event for event in self.state.events.values() if event.entrants]
        if not begun:
            return rich.text.Text("no event has begun")
        return tables.standings(views.standings(self.state, begun[-1].id))

    def _heading(self) -> rich.text.Text:
        seen = self.state
        parts = [f"{seen.launched.season.name}: {views.status(seen)}"]
        for event_id, done in progress.of_events(seen).items():
            event = seen.events[event_id]
            left = "" if event.rows else f", about {wording.duration(done.remaining_seconds)} left"
            if event.status is events.Status.GATE:
                left = f", opens {tables.moment(event.opens_at_ms)}"
                if event.opens_at_ms is None:
                    left = f", `farm season open-gate {event_id}` begins it"
            parts.append(f"{event.spec.name} {done.played}/{done.total}{left}")
        if asked := ", ".join(awaited.decision for awaited in decisions.outstanding(seen)):
            parts.append(f"the organizers must decide {asked} (`farm season decisions`)")
        if reason := seen.abandoned or ("" if seen.over else seen.held or seen.paused):
            parts.append(reason)
        if seen.finished:
            parts.append(f"champion: {views.name(seen, seen.champion)}")
        return rich.text.Text("  |  ".join(parts))


def network(ply: contract.PlyRecord | None) -> str:
    """Say what the network took of a move on a GPU box, '' of one in the hall."""
    if ply is None or ply.network_ns is None:
        return ""
    return f"network {ply.network_ns / 1e6:.0f} ms, not charged"


def _searched(ply: contract.PlyRecord) -> dict[str, Any]:
    claimed = ply.score
    return {
        "cp": None if claimed is None else claimed.cp,
        "mate": None if claimed is None else claimed.mate,
        "depth": ply.depth,
        "seldepth": ply.seldepth,
        "nps": ply.nps,
    }


def _counters(counters: contract.Counters) -> str:
    """Say how near the game is to its early ends, as the last ply left it."""
    ends = [
        ("fifty-move rule", counters.moves_to_fifty, "move", "moves"),
        ("draw rule", counters.plies_to_draw, "ply", "plies"),
        ("win rule", counters.plies_to_win, "ply", "plies"),
    ]
    return "\n".join(
        f"{rule} in {left} {unit if left == 1 else units}"
        for rule, left, unit, units in ends
        if left is not None
    )


def _clock(clock_ms: int | None) -> str:
    if clock_ms is None:
        return "--:--"
    seconds, tenths = clock_ms // 1000, clock_ms % 1000 // 100
    if seconds < 60:
        return f"{seconds:>2}.{tenths}"
    minutes, seconds = divmod(seconds, 60)
    return (
        f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
        if minutes >= 60
        else f"{minutes}:{seconds:02}"
    )


def _inked() -> bool:
    """Tell whether the terminal has colours that part White from Black."""
    console = common.console()
    return console.color_system is not None and not console.no_color


def _draw(fen: str, last: str, *, inked: bool) -> rich.text.Text:
    """Draw a position from White's side; the last move's squares are marked.

    Filled shapes read better than outlines where the ink tells the side; without colours
    (``inked``) the outlines are White.
    """
    position = chess.Board(fen)
    marked = {last[:2], last[2:4]}
    text = rich.text.Text()
    for rank in range(7, -1, -1):
        text.append(f"{rank + 1} ", style="dim")
        for file in range(8):
            square = chess.square(file, rank)
            piece = position.piece_at(square)
            sign = piece.unicode_symbol() if piece else " "
            light = (file + rank) % 2
            ground = (
                "yellow"
                if chess.square_name(square) in marked
                else ("grey62" if light else "grey42")
            )
            ink = "bright_white" if piece and piece.color else "black"
            if piece and inked:
                sign = chess.UNICODE_PIECE_SYMBOLS[piece.symbol().lower()]
            text.append(f" {sign}  ", style=f"{ink} on {ground}")
        text.append("\n")
    text.append("   " + "   ".join("abcdefgh"), style="dim")
    return text


def follow(screen: Screen, console: rich.console.Console) -> None:
    """Show the screen until the season is over."""
    with rich.live.Live(console=console, auto_refresh=False, transient=False) as shown:
        while True:
            screen.refresh()
            shown.update(screen.render(), refresh=True)
            if screen.state.over:
                return
            time.sleep(REFRESH_SECONDS)


@click.command()
@common.season_argument
@click.option("--once", is_flag=True, help="Show the screen as it is now, and end.")
@paths.archive
@common.json_option
def watch(season: str | None, archive: pathlib.Path, *, once: bool, as_json: bool) -> None:
    """Watch the running game: board, clocks, evals, last moves, table, time left.

    Ctrl-C ends the watching, never the game. Example: farm watch
    """
    with common.open_ledger() as ledger:
        screen = Screen(ledger, common.choose(ledger, season), archive, inked=_inked())
        screen.refresh()
        if as_json:
            live = ledger.live(screen.state.hall)
            picture = contract.loads(live) if live else None
            common.print_json({"season": views.season(screen.state), "live": picture})
        elif once or not common.console().is_terminal:
            common.console().print(screen.render())
        else:
            try:
                follow(screen, common.console())
            except KeyboardInterrupt:
                common.console().print("the farm plays on")
