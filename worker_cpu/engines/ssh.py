"""One SSH connection to the agent of a seat: pinned host key, no Nagle, one channel.

Invariants: a host whose key is not the pinned one is told nothing; what a broken network
may repair (``OSError``, ``paramiko``'s own) is told apart from what only people can
(``RefusedHostError``).
"""

from __future__ import annotations

import contextlib
import pathlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping

import paramiko

from orchestrator import contract
from orchestrator.common import errors

KEY_TYPES = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}  # where the two names differ
BROKEN = (OSError, paramiko.SSHException, EOFError)  # a network that may be there again
USER_TIMEOUT_MS = 60_000  # ms: unacknowledged bytes end a connection long after the grace


class RefusedHostError(errors.HostError):
    """The host is not the one that was pinned, or does not let the hall in."""


@contextlib.contextmanager
def transport(seat: contract.SeatAddress, key: str, seconds: float) -> Iterator[paramiko.Transport]:
    """Yield a transport to a seat's host, let in with ``key``; raise as ``Connection`` does."""
    deadline = time.monotonic() + seconds
    sock = socket.create_connection((seat.address, seat.port), seconds)
    try:
        made = paramiko.Transport(sock)
        try:
            _let_in(made, seat, key, deadline)
            yield made
        finally:
            made.close()
    finally:
        sock.close()


def put(
    seat: contract.SeatAddress,
    key: str,
    seconds: float,
    files: Mapping[str, pathlib.Path],
    meanwhile: Callable[[], None],
) -> None:
    """Put files of this host to paths there, each whole or not at all; raise as ``transport``.

    ``seconds`` are for the connection; ``meanwhile`` is called while files are on their way.
    """
    with transport(seat, key, seconds) as made:
        sftp = paramiko.SFTPClient.from_transport(made)
        assert sftp is not None
        for path, file in files.items():
            sftp.put(str(file), f"{path}.part", callback=lambda *_: meanwhile())
            sftp.posix_rename(f"{path}.part", path)


class Connection:
    """A connection to one seat, from its handshake on; all calls but the first never block."""

    def __init__(self, seat: contract.SeatAddress, seconds: float) -> None:
        """Connect within ``seconds``; raise ``OSError`` or ``RefusedHostError``."""
        deadline = time.monotonic() + seconds
        sock = socket.create_connection((seat.address, seat.port), seconds)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)
        self._transport: paramiko.Transport | None = None
        try:
            self._transport = paramiko.Transport(sock)
            self._channel = _opened(self._transport, seat, deadline)
        except (paramiko.SSHException, EOFError) as error:
            self.close()
            sock.close()
            raise ConnectionError(f"no SSH connection: {error or type(error).__name__}") from error
        except BaseException:
            self.close()
            sock.close()
            raise

    def fileno(self) -> int:
        """Return a descriptor that is readable when there is something to receive."""
        return int(self._channel.fileno())

    def receive(self) -> bytes | None:
        """Return what has come, ``b''`` at the end, ``None`` when there is nothing."""
        try:
            data: bytes = self._channel.recv(1 << 16)
        except TimeoutError:
            return None
        return data

    def send(self, data: bytes) -> int:
        """Send as much as is taken now; raise ``OSError`` when the channel is closed."""
        try:
            return int(self._channel.send(data))
        except TimeoutError:
            return 0

    def close(self) -> None:
        """Close everything; never raises."""
        if self._transport is not None:
            with contextlib.suppress(Exception):
                self._transport.close()


def _opened(
    transport: paramiko.Transport, seat: contract.SeatAddress, deadline: float
) -> paramiko.Channel:
    """Come in and run the forced command, or that of a seat whose key has none."""
    _let_in(transport, seat, seat.key, deadline)
    channel = transport.open_session(timeout=_left(deadline))
    channel.settimeout(_left(deadline))
    channel.exec_command(seat.command or f"seat {seat.seat}")
    channel.settimeout(0)
    return channel


def _let_in(
    transport: paramiko.Transport, seat: contract.SeatAddress, path: str, deadline: float
) -> None:
    """Shake hands, hold the host's key against the pinned one, show the own key."""
    kind, _, wanted = seat.host_key.partition(" ")
    transport.get_security_options().key_types = KEY_TYPES.get(kind, (kind,))
    transport.banner_timeout = transport.auth_timeout = _left(deadline)
    transport.start_client(timeout=_left(deadline))
    shown = transport.get_remote_server_key()
    if (shown.get_name(), shown.get_base64()) != (kind, wanted.split()[0] if wanted else ""):
        raise RefusedHostError(
            f"{seat.box}: the host key is not the pinned one: found"
            f" {shown.get_name()} {shown.get_base64()}"
        )
    key = _private_key(seat, path)
    try:
        transport.auth_publickey(seat.user, key)
    except (OSError, paramiko.AuthenticationException) as error:
        if isinstance(error, ConnectionError | EOFError) or not transport.is_active():
            raise ConnectionError(str(error)) from error
        raise RefusedHostError(f"{seat.box}: {seat.user} cannot log in: {error}") from error


def _private_key(seat: contract.SeatAddress, path: str) -> paramiko.PKey:
    """Read the own key; a bad file is told apart by no error of its own (``TypeError`` too)."""
    try:
        return paramiko.PKey.from_path(path)
    except (OSError, TypeError, ValueError, paramiko.UnknownKeyType) as error:
        raise RefusedHostError(
            f"{seat.box}: {seat.user} cannot log in: {path} is no private key that can be used"
            f" here, in OpenSSH's or PEM form and without a passphrase: {error}"
        ) from error


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())
