"""An XBoard engine: handshake and player.

It keeps a board of its own. Everything that takes time (features, memory, the start
position, the opening's moves) is told before the game and behind it stands a ``ping``, so
that none of it is charged. At its turn an engine gets both clocks and its opponent's
move, and ``go`` only where it has been in force mode: at its first turn.

Features that were not told within ``features_ms`` are taken for those of version 1: no
``setboard``, no ``ping`` (ready after ``settle_ms``), moves without ``usermove``. An engine
that cannot be brought to the game's start (no ``setboard``, no variant) is refused.
Castling of Chess960 is ``O-O``; engines that take king takes rook instead are found out by
a castling move in a position of its own, before the game's.
"""

from __future__ import annotations

import chess

from orchestrator import contract
from orchestrator.arbiter import board, clock
from worker_cpu.protocols import base, options, uci, xboard

OPTION_LIMIT = 1000  # options kept of one engine: more is a flood, not an offer
FEATURE_LIMIT = 200  # features answered: likewise
PING, PROBE_PING, LAST_PING = 1, 2, 3  # the numbers of a game's pings
PROBE_FEN = "1r2k1r1/pppppppp/8/8/8/8/PPPPPPPP/1R2K1R1 w KQkq - 0 1"  # both sides castle
_USED = frozenset(
    {
        *("ping", "setboard", "usermove", "san", "time", "nps", "done", "myname"),
        *("variants", "option", "memory", "smp", "egt", "reuse", "colors", "sigint", "sigterm"),
    }
)


class XboardHandshake:
    """An XBoard engine's way from its start to ``pong``, fed line by line."""

    def __init__(
        self, order: contract.GameOrder, side: contract.Side, now_ns: int, game: board.GameBoard
    ) -> None:
        timeouts = order.timeouts
        wait_ms = min(timeouts.features_ms, timeouts.start_ms)
        self.phase = base.Phase.STARTING
        self.deadline_ns = now_ns + wait_ms * base.NS_PER_MS
        self.refusal, self.unable = "", False
        self._start_ns = now_ns + timeouts.start_ms * base.NS_PER_MS
        self._order, self._side, self._game = order, side, game
        self._features: dict[str, str] = {}
        self._offered: list[uci.Option] = []
        self._settings: tuple[contract.OptionSetting, ...] = ()
        self._patient = False
        self._king_takes_rook = False
        self._probing = False
        self._resting = False

    @property
    def reusable(self) -> bool:
        """Say whether it lets itself be used again, and tells when it is ready."""
        return self._has("reuse", default=True) and self._has("ping") and not self.refusal

    def begin(self) -> bytes:
        """Return the words that open the conversation."""
        return b"xboard\nprotover 2\n"

    def again(
        self, order: contract.GameOrder, side: contract.Side, now_ns: int, game: board.GameBoard
    ) -> bytes:
        """Begin another game; first all that is said of the game before has to be out."""
        self._order, self._side, self._game = order, side, game
        self.phase = base.Phase.PREPARING
        self.deadline_ns = now_ns + order.timeouts.ready_ms * base.NS_PER_MS
        self._resting = True
        return b"force\nping %d\n" % LAST_PING

    def take(self, line: bytes, now_ns: int) -> bytes:
        """Take a line of output; return the commands that answer it, ``b''`` for none."""
        if self.phase is base.Phase.STARTING:
            return self._negotiation(line, now_ns)
        if self.phase is base.Phase.PREPARING:
            if self._resting:
                return self._rest(line, now_ns)
            if self._probing:
                return self._probe(line)
            if xboard.is_refusal(line):
                reason = line.decode(errors="replace").strip()[: uci.TEXT_LIMIT]
                self.refusal = f"it does not take the start of the game: {reason}"
            elif xboard.is_pong(line, PING):
                self.phase = base.Phase.READY
        return b""

    def expire(self, now_ns: int) -> bytes | None:
        """Go on without features or ``pong`` that were not promised."""
        if self.phase is base.Phase.STARTING and not self._patient:
            return self._preparation(now_ns)
        if self.phase is base.Phase.PREPARING and not self._has("ping"):
            self.phase = base.Phase.READY
            return b""
        return None

    def late(self) -> str:
        """Say what was waited for in vain."""
        limits = self._order.timeouts
        if self.phase is base.Phase.STARTING:
            return f"no feature done=1 within {limits.start_ms} ms"
        return f"no pong within {limits.ready_ms} ms"

    def report(self, pid: int) -> contract.EngineReport:
        """Return what the engine said of itself and what was set."""
        name = self._features.get("myname", "")[: uci.TEXT_LIMIT]
        return contract.EngineReport(id_name=name, options=self._settings, pid=pid)

    def player(self) -> XboardPlayer:
        """Return the player of this engine, which stands in force mode."""
        return XboardPlayer(
            self._game,
            self._side,
            by_san=self._has("san"),
            usermove=self._has("usermove"),
            clocks=self._has("time", default=True),
            king_takes_rook=self._king_takes_rook,
        )

    def _has(self, name: str, *, default: bool = False) -> bool:
        value = self._features.get(name)
        return default if value is None else value == "1"

    def _negotiation(self, line: bytes, now_ns: int) -> bytes:
        if xboard.is_no_version_2(line):
            return self._preparation(now_ns)
        answers = b"".join(self._feature(*pair) for pair in xboard.features(line))
        if "done" not in self._features:
            return answers
        if self._features["done"] == "1":
            return answers + self._preparation(now_ns)
        self._patient = True
        self.deadline_ns = self._start_ns
        return answers

    def _feature(self, name: str, value: str) -> bytes:
        """Take one feature; answer whether it will be used."""
        option = xboard.option(value) if name == "option" else None
        if option is not None and len(self._offered) < OPTION_LIMIT:
            self._offered.append(option)
        elif name != "option" and len(self._features) < FEATURE_LIMIT:
            self._features[name] = value
        verdict = "accepted" if name in _USED else "rejected"
        return f"{verdict} {name}\n".encode()

    # -- from the features to the start of the game -------------------------------------

    def _preparation(self, now_ns: int) -> bytes:
        self.phase = base.Phase.PREPARING
        timeouts = self._order.timeouts
        wait_ms = timeouts.ready_ms if self._has("ping") else timeouts.settle_ms
        self.deadline_ns = now_ns + wait_ms * base.NS_PER_MS
        self.refusal = self._inability()
        self.unable = bool(self.refusal)
        if self.refusal:
            return b""
        spec = self._order.engine(self._side)
        commands = [f"{line}\n".encode() for line in spec.init]
        commands += self._set_options()
        return b"".join([*commands, *self._new_game()])

    def _rest(self, line: bytes, now_ns: int) -> bytes:
        """Wait for the end of the game before; then begin the new one, options standing."""
        if not xboard.is_pong(line, LAST_PING):
            return b""
        self._resting = False
        self.deadline_ns = now_ns + self._order.timeouts.ready_ms * base.NS_PER_MS
        self.refusal = self._inability()
        self.unable = bool(self.refusal)
        return b"" if self.refusal else b"".join(self._new_game())

    def _new_game(self) -> list[bytes]:
        commands = [b"new\n"]
        if self._order.variant != "standard":
            commands.append(f"variant {self._order.variant}\n".encode())
        control = self._order.control(self._side)
        bound_ms = self._order.timeouts.move_ms
        commands += [xboard.time_control(control, bound_ms), b"post\n"]
        commands.append(b"hard\n" if self._order.engine(self._side).ponder else b"easy\n")
        commands.append(b"force\n")
        answers = self._has("ping") and self._has("setboard")
        self._probing = self._game.chess960 and answers and not self._has("san")
        self._king_takes_rook = False
        commands += self._probe_words() if self._probing else self._position()
        return commands

    def _probe_words(self) -> list[bytes]:
        """Ask how an engine reads castling: by words, as CECP has it, or king takes rook."""
        setboard = f"setboard {PROBE_FEN}\n".encode()
        return [setboard, self.player().move_command("e1g1", "O-O"), b"ping %d\n" % PROBE_PING]

    def _probe(self, line: bytes) -> bytes:
        if xboard.is_complaint(line):
            self._king_takes_rook = True
        if not xboard.is_pong(line, PROBE_PING):
            return b""
        self._probing = False
        return b"".join(self._position(probed=True))

    def _inability(self) -> str:
        """Say why this engine cannot play this game, '' when it can."""
        variants = self._features.get("variants", "normal").replace(" ", "").split(",")
        control = self._order.control(self._side)
        if self._order.variant not in ("standard", *variants):
            return f"it does not play the variant {self._order.variant}"
        if self._game.start_fen is not None and not self._has("setboard"):
            return (
                "it has no setboard, and the game does not begin at the start position; it can play"
                " from a book of moves (PGN), or by UCI where it speaks that"
            )
        if control.nodes is not None and not self._has("nps"):
            return "it has no nps, so its nodes cannot be limited"
        return ""

    def _position(self, *, probed: bool = False) -> list[bytes]:
        """Write the start position, the opening's moves in force mode, and the ping.

        Behind a probe also the usual start position (Chess960's 518) has to be set up.
        """
        fen = self._game.start_fen or (chess.STARTING_FEN if probed else "")
        commands = [f"setboard {fen}\n".encode()] if fen else []
        player = self.player()
        commands += [player.move_command(move, san) for move, san in self._game.book()]
        return [*commands, b"ping %d\n" % PING] if self._has("ping") else commands

    def _set_options(self) -> tuple[bytes, ...]:
        kinds = self._features.get("egt", "").replace(" ", "").split(",")
        features = options.CecpFeatures(
            memory=self._has("memory"), smp=self._has("smp"), egt=tuple(filter(None, kinds))
        )
        spec = self._order.engine(self._side)
        plan = options.plan_xboard(self._offered, features, self._order, spec)
        self._settings = plan.settings
        return plan.commands


class XboardPlayer:
    """An XBoard engine at its turns."""

    stop = b"?\n"
    ponderhit = b""

    def __init__(
        self,
        game: board.GameBoard,
        side: contract.Side,
        *,
        by_san: bool = False,
        usermove: bool = True,
        clocks: bool = True,
        king_takes_rook: bool = False,
    ) -> None:
        self._game, self._side = game, side
        self._by_san, self._clocks = by_san, clocks
        self._castles_by_words = game.chess960 and not king_takes_rook
        self._prefix = "usermove " if usermove else ""
        self._forced = True
        self._last = ""

    def go(self, clocks: base.Clocks, last_san: str) -> bytes:
        """Write both clocks, the opponent's move, and ``go`` after force mode."""
        commands = self._times(clocks) if self._clocks else b""
        if last_san:
            commands += self.move_command(self._game.moves[-1], last_san)
        if self._forced:
            commands += b"go\n"
            self._forced = False
        return commands

    def ponder(self, clocks: base.Clocks, expected: str) -> None:
        """Return ``None``: after ``hard`` it ponders by itself, and its turn begins as ever."""

    def move_command(self, move: str, san: str) -> bytes:
        """Write a move (UCI notation and SAN) as this engine reads moves."""
        castling = self._castles_by_words and san.startswith("O-O")
        text = san if self._by_san else san.rstrip("+#") if castling else move
        return f"{self._prefix}{text}\n".encode()

    def finder(self, *, fresh: bool) -> xboard.AnswerFinder:
        """Return a finder of a move, a resignation or a claim."""
        return xboard.AnswerFinder(fresh=fresh, last=self._last)

    def reply(self, line: bytes) -> base.Reply:
        """Read the line that answers."""
        reply = xboard.reply(line) or base.Reply("move")
        self._last = reply.text
        return reply

    def read_move(self, text: str) -> chess.Move | None:
        """Read a move in coordinates or SAN."""
        return self._game.read(text)

    def search(self, output: bytes) -> base.Search:
        """Read thinking output."""
        return xboard.last_search(output)

    def aside(self, output: bytes) -> base.Aside:
        """Read resignations, claims and offers beside the answers."""
        return xboard.aside(output) if output else base.Aside()

    def _times(self, clocks: base.Clocks) -> bytes:
        own = clocks[self._side]
        other = clocks["black" if self._side == "white" else "white"]
        if not own.control.clocked:
            return b""
        return xboard.clocks(own.told_ms(), _shown(other, own))


def _shown(other: clock.EngineClock, own: clock.EngineClock) -> int:
    """Return the opponent's time in ms; one without a clock is taken to have as much."""
    return other.told_ms() if other.control.clocked else own.told_ms()
