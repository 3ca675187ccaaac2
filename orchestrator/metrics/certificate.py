"""When Redis' TLS certificate ends: as a client that trusts the farm's CA is shown it.

It is asked for every ten minutes, by a handshake of its own: the connection that carries the
ledger may be older than the certificate. Where Redis speaks no TLS there is no sample.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import Any, Final

import structlog

from orchestrator.ledger import connection
from orchestrator.metrics import families

log = structlog.get_logger()

AGAIN_SECONDS: Final = 600.0  # s: between two handshakes
AGAIN_AFTER_FAILURE_SECONDS: Final = 60.0


class Certificate:
    """The certificate that Redis shows, looked at now and then."""

    def __init__(self, server: connection.Server) -> None:
        """Take address and files from the server's own client; nothing is sent yet."""
        self._told: dict[str, Any] = server.client.connection_pool.connection_kwargs
        self._expires: float | None = None
        self._next = float("-inf")

    def write(self, sheet: families.Sheet) -> None:
        """Write when it ends; what was seen last where the handshake fails."""
        if "ssl_ca_certs" in self._told and time.monotonic() >= self._next:
            try:
                self._expires = self._look()
                self._next = time.monotonic() + AGAIN_SECONDS
            except OSError as error:
                self._next = time.monotonic() + AGAIN_AFTER_FAILURE_SECONDS
                log.warning("certificate.unseen", error=str(error))
        sheet.set("farm_redis_certificate_expiry_timestamp_seconds", self._expires)

    def _look(self) -> float | None:
        context = ssl.create_default_context(cafile=self._told["ssl_ca_certs"])
        if self._told.get("ssl_certfile"):
            context.load_cert_chain(self._told["ssl_certfile"], self._told.get("ssl_keyfile"))
        server = (self._told["host"], int(self._told.get("port", 6379)))
        with (
            socket.create_connection(server, connection.SOCKET_TIMEOUT) as plain,
            context.wrap_socket(plain, server_hostname=server[0]) as secure,
        ):
            shown: Any = secure.getpeercert()
        return float(ssl.cert_time_to_seconds(shown["notAfter"]))
