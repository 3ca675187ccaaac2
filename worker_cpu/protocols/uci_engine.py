"""A UCI engine: handshake and player.

The options are set after ``uciok`` and before ``ucinewgame``; the ``isready`` behind them
is the only one of the game. An engine that is to ponder does so where it has the option
``Ponder``, which says that it can, and names the reply that it expects. Castling of Chess960
is king takes rook, which an engine has to offer by the option ``UCI_Chess960``. ``e7e8Q`` is
``e7e8q``: UCI's text shows small letters and forbids no capital, and TCEC's manager (cutechess)
took both.
"""

from __future__ import annotations

import chess

from orchestrator import contract
from orchestrator.arbiter import board, clock
from worker_cpu.protocols import base, options, uci

NOTHING = base.Aside()
NEW_GAME = b"ucinewgame\nisready\n"
PONDER = "Ponder"  # the option, as the protocol text writes it
OPTION_LIMIT = 1000  # options kept of one engine: more is a flood, not an offer


class UciHandshake:
    """A UCI engine's way from its start to ``readyok``, fed line by line."""

    def __init__(
        self, order: contract.GameOrder, side: contract.Side, now_ns: int, game: board.GameBoard
    ) -> None:
        self.phase = base.Phase.STARTING
        self.deadline_ns = now_ns + order.timeouts.start_ms * base.NS_PER_MS
        self.refusal, self.unable = "", False
        self._spec, self._order = order.engine(side), order
        self._player = UciPlayer(game, side)
        self._names = {"name": "", "author": ""}
        self._offered: list[uci.Option] = []
        self._settings: tuple[contract.OptionSetting, ...] = ()

    @property
    def reusable(self) -> bool:
        """Say that UCI engines play as many games as they are asked to."""
        return True

    def begin(self) -> bytes:
        """Return the words that open the conversation."""
        return b"uci\n"

    def again(
        self, order: contract.GameOrder, side: contract.Side, now_ns: int, game: board.GameBoard
    ) -> bytes:
        """Begin another game: the options stand, the engine clears its hash."""
        self._spec, self._order = order.engine(side), order
        self._player = UciPlayer(game, side)
        self._set_pondering()
        self._prepare(now_ns)
        return NEW_GAME

    def take(self, line: bytes, now_ns: int) -> bytes:
        """Take a line of output; return the commands that answer it, ``b''`` for none."""
        if self.phase is base.Phase.STARTING:
            return self._introduction(line, now_ns)
        if self.phase is base.Phase.PREPARING and uci.is_reply(line, b"readyok"):
            self.phase = base.Phase.READY
        return b""

    def expire(self, now_ns: int) -> bytes | None:  # noqa: ARG002 - the protocol's signature
        """Return ``None``: a UCI engine has to answer."""
        return None

    def late(self) -> str:
        """Say what was waited for in vain."""
        limits = self._order.timeouts
        if self.phase is base.Phase.STARTING:
            return f"no uciok within {limits.start_ms} ms"
        return f"no readyok within {limits.ready_ms} ms"

    def report(self, pid: int) -> contract.EngineReport:
        """Return what the engine said of itself and what was set."""
        return contract.EngineReport(
            id_name=self._names["name"],
            id_author=self._names["author"],
            options=self._settings,
            pid=pid,
        )

    def player(self) -> UciPlayer:
        """Return the player of this engine."""
        return self._player

    def _introduction(self, line: bytes, now_ns: int) -> bytes:
        identity = uci.identity(line)
        option = uci.option(line)
        if identity is not None:
            self._names[identity.field] = identity.text
        elif option is not None and len(self._offered) < OPTION_LIMIT:
            self._offered.append(option)
        if not uci.is_reply(line, b"uciok"):
            return b""
        return self._preparation(now_ns)

    def _preparation(self, now_ns: int) -> bytes:
        self._prepare(now_ns)
        offered = {option.name.lower() for option in self._offered}
        if self._order.variant == "fischerandom" and "uci_chess960" not in offered:
            self.refusal, self.unable = "it has no option UCI_Chess960", True
            return b""
        plan = options.plan(self._offered, self._order, self._spec)
        self._settings = plan.settings
        self._set_pondering()
        first = b"".join(f"{line}\n".encode() for line in self._spec.init)
        return first + b"".join(plan.commands) + NEW_GAME

    def _set_pondering(self) -> None:
        able = any(setting.name == PONDER and setting.set == "true" for setting in self._settings)
        self._player.ponders = self._spec.ponder and able

    def _prepare(self, now_ns: int) -> None:
        self.phase = base.Phase.PREPARING
        self.deadline_ns = now_ns + self._order.timeouts.ready_ms * base.NS_PER_MS


class UciPlayer:
    """A UCI engine at its turns."""

    stop = b"stop\n"
    ponderhit = b"ponderhit\n"

    def __init__(self, game: board.GameBoard, side: contract.Side) -> None:
        self._game, self._side = game, side
        self.ponders = False

    def go(self, clocks: base.Clocks, last_san: str) -> bytes:  # noqa: ARG002 - as above
        """Write ``position`` and ``go`` as one piece."""
        limits = _limits(clocks[self._side], clocks)
        return uci.position_and_go(self._game.position_command(), limits)

    def ponder(self, clocks: base.Clocks, expected: str) -> base.Expected | None:
        """Write ``position`` with the expected reply, and ``go ponder`` with both clocks."""
        reply = self.read_move(expected) if self.ponders else None
        if reply is None:
            return None
        after = self._game.position().copy(stack=False)
        move = after.uci(reply)
        after.push(reply)
        if not any(after.generate_legal_moves()):
            return None
        limits = _limits(clocks[self._side], clocks)
        position = f"{self._game.position_command()} {move}"
        return base.Expected(move, uci.position_and_go(position, limits, ponder=True))

    def finder(self, *, fresh: bool) -> uci.MoveFinder:
        """Return a finder of ``bestmove``."""
        return uci.MoveFinder(fresh=fresh)

    def reply(self, line: bytes) -> base.Reply:
        """Read a ``bestmove`` line."""
        best = uci.best_move(line)
        return base.Reply("move", best.move, best.ponder)

    def read_move(self, text: str) -> chess.Move | None:
        """Read a move in UCI notation; a promotion's letter may be a capital."""
        return self._game.legal(text[:4] + text[4:].lower())

    def search(self, output: bytes) -> base.Search:
        """Read the info lines of a search."""
        return uci.last_search(output)

    def aside(self, output: bytes) -> base.Aside:  # noqa: ARG002 - as above
        """Return nothing: UCI has no words for it."""
        return NOTHING


def _limits(own: clock.EngineClock, clocks: base.Clocks) -> str:
    """Return the arguments of ``go``; clocks that an engine does not have are not told."""
    control = own.control
    limits = ""
    if control.move_ms is not None:
        limits = f" movetime {own.told_ms()}"  # less than the control's behind a search in vain
    elif control.base_ms:
        limits = _clock_times(own, clocks)
        if control.moves is not None:
            limits += f" movestogo {own.moves_to_go}"
    if control.nodes is not None:
        limits += f" nodes {control.nodes}"
    if control.depth is not None:
        limits += f" depth {control.depth}"
    return limits


def _clock_times(own: clock.EngineClock, clocks: base.Clocks) -> str:
    """Return both clocks; an opponent without one is taken to have as much time."""
    white, black = clocks["white"], clocks["black"]
    white_ms = (white if white.clocked else own).told_ms()
    black_ms = (black if black.clocked else own).told_ms()
    increments = f"winc {white.increment_ms} binc {black.increment_ms}"
    return f" wtime {white_ms} btime {black_ms} {increments}"
