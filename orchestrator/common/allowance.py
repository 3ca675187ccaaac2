"""How much one client may send: an allowance that fills up again with time (token bucket).

And what is one client: ``site_of`` an address.
"""

from __future__ import annotations

import functools
import ipaddress
import time
from typing import Final

_SITE_BITS: Final = 64  # of an IPv6 address: who has one of a network has all of it


class Allowance:
    """So much a second, and so much at once after a silence; messages or bytes alike."""

    def __init__(self, a_second: float, at_once: float) -> None:
        """Begin with all of ``at_once``."""
        self._a_second, self._at_once = a_second, at_once
        self._left, self._filled = at_once, time.monotonic()

    def spent(self) -> bool:
        """Say whether not one is left."""
        self._fill()
        return self._left < 1

    def take(self, amount: float = 1.0) -> bool:
        """Use some of it; return whether there was enough. What is refused costs nothing."""
        self._fill()
        if self._left < amount:
            return False
        self._left -= amount
        return True

    def _fill(self) -> None:
        now = time.monotonic()
        self._left = min(self._at_once, self._left + (now - self._filled) * self._a_second)
        self._filled = now


@functools.lru_cache(maxsize=4_096)
def site_of(host: str) -> str:
    """Return what counts as one address: of IPv6 its /64; what is no address as it is."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, _SITE_BITS), strict=False))
    return str(address)
