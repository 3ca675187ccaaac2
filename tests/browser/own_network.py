"""A network namespace with nothing but a loopback, for the tests of the page.

Chromium breaks off all requests when an address of its machine changes, and the tests of hosts
and GPU boxes beside these change them. Who may not make a namespace cannot do that either.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import subprocess
from collections.abc import Iterator

NEW_NETWORK = 0x40000000  # CLONE_NEWNET, which Python knows from 3.12 on
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def own_network() -> Iterator[None]:
    """Let this thread, and what it starts, live in a network of its own, where that may be."""
    with pathlib.Path("/proc/thread-self/ns/net").open("rb") as before:
        try:
            _call("unshare", NEW_NETWORK)
        except PermissionError:
            yield
            return
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            _call("setns", before.fileno(), NEW_NETWORK)


def _call(name: str, *numbers: int) -> None:
    if getattr(_LIBC, name)(*numbers) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
