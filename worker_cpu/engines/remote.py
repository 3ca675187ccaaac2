"""A remote seat: an engine on a GPU box, with the interface of a local one.

The process at the end of the pipes is the bridge (``seats.bridge``); what it carries are
the agent's records (``worker_gpu/agent.py``). Invariants:

* the engine is charged the time between the agent's stamp of ``go`` and that of its answer,
  on the engine's own clock; what remains of the referee's time is the network's, recorded
  and never charged. An answer is what the referee's finder takes for one, not what the agent
  does: else a word that looks like one would stop the clock of an engine that thinks on;
* only the first stamp of the search that this referee has started counts, and what the agent
  charges is held to the referee's own time: the network cannot have taken more than the link's
  measured round trips allow. A charge that does not fit is an interruption with the figures;
* the deadline is enforced by the agent; the referee's own, ``slack_ns`` later, only interrupts a
  game whose bridge is frozen: what nobody has heard is no verdict;
* of an answer beyond the flag, or none, the agent tells what its host took from the engine
  meanwhile (``host``): a flag in a stall of the box is no verdict either;
* a bridge that ends without having told of the engine's end is an interruption, no verdict.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

from orchestrator import contract
from worker_cpu.engines import agent_wire, local, supervisor_client
from worker_cpu.protocols import base, uci, xboard
from worker_cpu.wire import errors

LINK, HOST = "link", "host"  # causes of interruptions
SLACK_NS = 30_000_000_000  # ns beyond the grace: a handshake, and the kill it may find
QUIT_SLACK_NS = 2_000_000_000  # ns: the way there and back, and the agent's look for a cause
ANSWERS: Mapping[contract.ProtocolName, tuple[str, ...]] = {  # first words, for the agent
    "uci": ("bestmove",),
    "xboard": ("move", "resign", "1-0", "0-1", "1/2-1/2"),
}
_FINDERS: Mapping[contract.ProtocolName, Callable[[], base.Finder]] = {
    "uci": uci.MoveFinder,
    "xboard": xboard.AnswerFinder,
}
TRIPS = 2  # round trips that a search may take: its way there and back, each at its worst
SENT_AGAIN_NS = 250_000_000  # ns: a packet that is lost is sent again after 200 ms and more
DRIFT = 1e-3  # of a search: two monotonic clocks run apart by less
_QUIT = b"quit\n"
_NS = 1_000_000  # ns per ms


class RemoteSeat(local.LocalSeat):
    """The referee's end of an engine that runs elsewhere."""

    def __init__(
        self,
        side: contract.Side,
        address: contract.SeatAddress,
        order: contract.GameOrder,
        name: str = "",
    ) -> None:
        super().__init__(side, name)
        self.address = address
        self.slack_ns = address.grace_ms * _NS + SLACK_NS
        self.quit_slack_ns = QUIT_SLACK_NS
        self.over: supervisor_client.EngineEnd | None = (
            None  # how the engine ended, as the agent told
        )
        self._quit_ms = order.timeouts.quit_ms
        protocol = order.engine(side).protocol
        self._answers, self._finder = ANSWERS[protocol], _FINDERS[protocol]
        self._timeouts = order.timeouts
        self._parser = agent_wire.Parser()
        self._number = 0
        self._armed: dict[str, object] | None = None
        self._begun = False
        self._went_ns = 0
        self._answered_ns = 0
        self._heard_ns = 0
        self._go = 0  # the number of the command that started the search
        self._owed = 0  # the number of a command whose search was over before it began
        self._trip_ns = 0  # the longest round trip of late

    @property
    def command(self) -> list[str]:
        """Return the bridge's command line."""
        shown = self.address.model_copy(update={"secret": ""})
        return [sys.executable, "-m", "worker_cpu.engines.ssh_bridge", shown.encode()]

    def arm(self, allowance_ns: int, stop: bytes) -> None:
        """Give the agent the deadline of the search that the next write starts."""
        stop_ns = allowance_ns + self._timeouts.stop_ms * _NS
        self._armed = {
            "flag_ns": allowance_ns,
            "stop_ns": stop_ns,
            "stall_ns": stop_ns + self._timeouts.stall_ms * _NS,
            "stop": stop.decode(),
            "answers": self._answers,
        }
        self.gave_up = False
        self.network_ns = self.host = None
        self._went_ns = self._answered_ns = self._heard_ns = 0

    def write(self, data: bytes) -> bool:
        """Send words to the engine; ``quit`` also bounds how long it may take."""
        kind, payload = "in", data
        if self._armed is not None:
            kind, payload = "go", contract.dumps(self._armed).encode() + b"\n" + data
            self._armed, self._begun = None, True
        elif data == _QUIT:
            ending = {"quit": data.decode(), "quit_ms": self._quit_ms}
            kind, payload = "end", contract.dumps(ending).encode()
        self._number += 1
        if kind == "go":
            self._go = self._number
        return super().write(agent_wire.Message(kind, self._number, 0, payload).encode())

    def resume(self) -> bool:
        """Send what is left of earlier writes; False when nobody reads any more."""
        data, self._unsent = self._unsent, b""
        return super().write(data)

    def read(self) -> bytes | None:
        """Return output of the engine; raise ``InterruptedGameError`` when the link is lost."""
        chunk = local.read(self.stdout)
        if not chunk:
            return chunk
        try:
            output = b"".join(self._take(message) for message in self._parser.feed(chunk))
        except agent_wire.StreamError as error:
            raise errors.InterruptedGameError(LINK, str(error)) from error
        if output:
            self.at_line_start = output.endswith(b"\n")
        return output or None

    def _take(self, message: agent_wire.Message) -> bytes:
        """Note what a record tells; return what the engine wrote."""
        match message.kind:
            case "out" if self._begun and not self._went_ns and not self.goes_on:
                self.set_aside(message.payload)  # from before the search: it is no answer
                return b""
            case "out" | "ans":
                self._heard_ns = message.stamp
                if message.kind == "ans" and self._finder().feed(message.payload) is not None:
                    self._answered_ns = self._answered_ns or message.stamp
                return message.payload
            case "went":
                self._note_went(message)
            case "trip":
                self._trip_ns = message.stamp
            case "late":
                self._heard_ns = message.stamp
                self.gave_up = True
            case "host":
                self.host = contract.loads(message.payload)
            case "over":
                self.over = _end(contract.loads(message.payload))
            case "lost":
                loss = contract.loads(message.payload)
                raise errors.InterruptedGameError(loss["cause"], loss["evidence"])
        return b""

    def _note_went(self, message: agent_wire.Message) -> None:
        """Take the stamp of this search's start, once; any other search is nobody's here."""
        number = int(message.payload)
        if number == self._owed:
            self._owed = 0
            return
        if number != self._go or self._went_ns:
            evidence = (
                f"{self.address.box}: the agent tells of a search that the hall has not started"
                f" (command {number}; the hall's was {self._go})"
            )
            raise errors.InterruptedGameError(LINK, evidence)
        self._went_ns = message.stamp

    def confirm_silence(self) -> None:
        """Raise ``InterruptedGameError`` unless the agent told that the engine did not answer."""
        if not self.gave_up:
            evidence = f"{self.address.box}: no word of the agent's on a search that is overdue"
            raise errors.InterruptedGameError(LINK, evidence)

    def charged_ns(self, start_ns: int, stop_ns: int) -> int:
        """Return what the engine took on its own clock; the rest was the network's."""
        until_ns = self._answered_ns or self._heard_ns
        if self.goes_on and until_ns and (not self._went_ns or until_ns < self._went_ns):
            return self._crossed(stop_ns - start_ns)
        if not self._went_ns or until_ns < self._went_ns:
            raise errors.InterruptedGameError(LINK, "an answer without the agent's stamps")
        charged_ns = until_ns - self._went_ns
        self._hold_to(stop_ns - start_ns, charged_ns)
        self.network_ns = stop_ns - start_ns - charged_ns
        return charged_ns

    def _crossed(self, waited_ns: int) -> int:
        """Charge nothing for an answer that left the engine before its clock began.

        It ended its search in the opponent's turn by itself, and its word and the one that was
        to end it crossed on their way. The agent's stamp of the latter is still to come.
        """
        self._owed = 0 if self._went_ns else self._go
        self.network_ns = waited_ns
        return 0

    def _hold_to(self, waited_ns: int, charged_ns: int) -> None:
        """Raise ``InterruptedGameError`` where a charge does not fit the referee's own time."""
        drift_ns = round(waited_ns * DRIFT) + _NS
        most_ns = TRIPS * self._trip_ns + SENT_AGAIN_NS + drift_ns
        if -drift_ns <= waited_ns - charged_ns <= most_ns:
            return
        evidence = (
            f"{self.address.box}: the agent charges {charged_ns / _NS:.1f} ms, the referee waited"
            f" {waited_ns / _NS:.1f} ms; the link's round trips took {self._trip_ns / _NS:.1f} ms"
            f" at most, which explains {most_ns / _NS:.1f} ms"
        )
        raise errors.InterruptedGameError(LINK, evidence)

    def end(self, bridge: supervisor_client.EngineEnd) -> supervisor_client.EngineEnd:
        """Return how the engine is; its bridge's end alone says nothing of it."""
        if self.over is not None or bridge.running:
            return self.over or bridge
        how = bridge.reason or bridge.status
        evidence = f"{self.address.box}: the bridge to the engine ended: {how}"
        raise errors.InterruptedGameError(LINK, evidence)


def environment(given: Mapping[str, str], address: contract.SeatAddress) -> dict[str, str]:
    """Return the bridge's environment: an engine's, where this program lies, and the secret."""
    own = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return {**given, **own, agent_wire.SECRET: address.secret}


def _end(end: dict[str, str]) -> supervisor_client.EngineEnd:
    return supervisor_client.EngineEnd(
        running=False,
        status=str(end["status"]),
        by_farm=end["by"] == "farm",
        reason=str(end["reason"]),
    )
