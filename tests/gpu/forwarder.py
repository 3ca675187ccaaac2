"""A network between two TUN devices, in user space: it delays, drops, and can be cut.

``python forwarder.py NAME_A NAME_B`` makes both devices and says ``ready``; it then obeys
lines on its stdin: ``set DELAY_MS JITTER_MS LOSS_PERCENT``, ``cut`` and ``mend``. It ends
with its stdin, and the devices with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
PACKET_BYTES = 1 << 16


class Network:
    """The packets on their way, by the time at which they arrive."""

    def __init__(self) -> None:
        self.delay_ms, self.jitter_ms, self.loss = 0.0, 0.0, 0.0
        self.cut = False
        self._flying: list[tuple[float, int, int, bytes]] = []
        self._count = 0
        self._random = random.Random(1)

    def obey(self, line: str) -> None:
        """Take a command."""
        verb, *words = line.split()
        if verb == "set":
            self.delay_ms, self.jitter_ms, percent = map(float, words)
            self.loss = percent / 100
        else:
            self.cut = verb == "cut"

    def take(self, packet: bytes, to: int) -> None:
        """Let a packet start, unless it is lost."""
        if self.cut or self._random.random() < self.loss:
            return
        delay = self.delay_ms + self._random.uniform(-self.jitter_ms, self.jitter_ms)
        self._count += 1
        due = time.monotonic() + max(0.0, delay) / 1000
        heapq.heappush(self._flying, (due, self._count, to, packet))

    def deliver(self) -> float | None:
        """Let arrive what is due; return the seconds until the next arrival."""
        while self._flying:
            left = self._flying[0][0] - time.monotonic()
            if left > 0:
                return left
            _, _, to, packet = heapq.heappop(self._flying)
            if not self.cut:
                with contextlib.suppress(OSError):  # a device that is not up yet, or any more
                    os.write(to, packet)
        return None


def device(name: str) -> int:
    """Make a TUN device and return its descriptor."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    os.set_blocking(fd, False)
    return fd


def main() -> None:
    """Carry packets until stdin ends."""
    ends = [device(name) for name in sys.argv[1:3]]
    network = Network()
    print("ready", flush=True)
    while True:
        left = network.deliver()
        ready, _, _ = select.select([0, *ends], [], [], left)
        if 0 in ready:
            told = os.read(0, 1 << 12)
            if not told:
                return
            for line in told.decode().splitlines():
                network.obey(line)
                print("done", flush=True)
        for fd in set(ready) & set(ends):
            network.take(os.read(fd, PACKET_BYTES), ends[fd == ends[0]])


if __name__ == "__main__":
    main()
