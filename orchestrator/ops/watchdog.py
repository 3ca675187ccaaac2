"""Tell systemd that this process is ready and alive; nothing where systemd did not ask.

The datagrams of ``sd_notify(3)``: ``READY=1`` once, ``WATCHDOG=1`` from the loop itself,
so that a loop that hangs is started again (``WatchdogSec=`` in deploy/systemd).
"""

from __future__ import annotations

import os
import socket


class Watchdog:
    """The way to systemd's socket, if there is one."""

    def __init__(self) -> None:
        """Look for the socket in the environment."""
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        self._ready = False

    def alive(self) -> None:
        """Say that one more pass is done; the first time also that the process is ready."""
        if not self._address:
            return
        message = b"WATCHDOG=1" if self._ready else b"READY=1\nWATCHDOG=1"
        self._ready = True
        address = self._address
        name = f"\0{address[1:]}" if address.startswith("@") else address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            try:
                systemd.sendto(message, name)
            except OSError:
                self._ready = False  # systemd is being started again: told again next time
