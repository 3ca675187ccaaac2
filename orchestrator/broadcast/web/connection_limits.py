"""Limits of connections: of all at once, and of one address.

A connection too many is answered by 503 before a byte of it is read, and costs no task.
The reverse proxy speaks for many addresses and limits them itself (``deploy/nginx``): only
the first limit is for it.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import ipaddress
from collections.abc import Sequence
from typing import Final

from orchestrator import contract
from orchestrator.common import allowance, errors

CONNECTIONS: Final = 6_000  # at once
EACH: Final = 256  # of one address, or of one IPv6 /64: a university's, and no more
LOOPBACK: Final = ("127.0.0.1", "::1")
LINGERING: Final = 256  # refused ones that may read why; more are closed at once
LINGER_SECONDS: Final = 1.0  # s: so long they may


class ConnectionLimits:
    """Counts the connections of one server."""

    def __init__(
        self, proxies: Sequence[str] = LOOPBACK, most: int = CONNECTIONS, each: int = EACH
    ) -> None:
        """Trust addresses and networks of ``proxies``; raise ``UsageError`` for other words."""
        self.proxies = tuple(proxies)
        self._networks = [_network(word) for word in proxies]
        self._most, self._each = most, each
        self._inside: dict[asyncio.BaseTransport, str] = {}
        self._of: collections.Counter[str] = collections.Counter()
        self._lingering: set[asyncio.BaseTransport] = set()
        self.whose = functools.lru_cache(maxsize=4_096)(self._look_up)

    @property
    def count(self) -> int:
        """Return how many are inside."""
        return len(self._inside)

    def enter(self, transport: asyncio.Transport) -> bool:
        """Take a connection in, or refuse it and see it off."""
        whose = self.whose(_host(transport))
        if self.count >= self._most:
            self._refuse(transport, "too many spectators at this moment; try again in a minute")
        elif whose and self._of[whose] >= self._each:
            self._refuse(transport, "too many connections from your address; close some")
        else:
            self._inside[transport] = whose
            self._of[whose] += 1
            return True
        return False

    def leave(self, transport: asyncio.BaseTransport) -> None:
        """Forget a connection that has ended, whether it was let in or refused."""
        self._lingering.discard(transport)
        whose = self._inside.pop(transport, None)
        if whose is not None:
            self._of[whose] -= 1
            if not self._of[whose]:
                del self._of[whose]

    def _refuse(self, transport: asyncio.Transport, why: str) -> None:
        """Say why not and close; who is closed at once may not get to read it."""
        transport.write(_refusal(why))
        if len(self._lingering) >= LINGERING:
            transport.close()
            return
        self._lingering.add(transport)
        with contextlib.suppress(OSError):  # it has gone already
            transport.write_eof()
        asyncio.get_running_loop().call_later(LINGER_SECONDS, transport.abort)

    def _look_up(self, host: str) -> str:
        """Return whose a connection is; '' for the proxy's and what has no address."""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:  # a unix socket
            return ""
        if isinstance(address, ipaddress.IPv6Address):
            address = address.ipv4_mapped or address
        if any(address in network for network in self._networks):
            return ""
        return allowance.site_of(host)


def _network(word: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(word)
    except ValueError as error:
        raise errors.UsageError(
            f"--proxy: found {word!r}; allowed: an address or a network, as 172.16.0.0/12 ({error})"
        ) from error


def _host(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else ""


@functools.cache
def _refusal(why: str) -> bytes:
    """Return the whole answer to a connection that is not taken in."""
    body = contract.dumps({"error": why}).encode() + b"\n"
    head = (
        "HTTP/1.1 503 Service Unavailable\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Retry-After: 30\r\n"
        "Access-Control-Allow-Origin: *\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
