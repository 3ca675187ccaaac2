"""A remote worker's requests to its gateway over HTTPS, one at a time, and their errors.

Proxies and certificates are those of the environment (``HTTPS_PROXY``, ``NO_PROXY``,
``SSL_CERT_FILE``). A token goes to the address that the worker was given and to no other:
redirections are errors, and plain HTTP is for this machine alone.
"""

from __future__ import annotations

import http.client
import ipaddress
import secrets
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any, TypeVar

from orchestrator import contract
from orchestrator.common import errors, output, text
from orchestrator.contract import remote
from worker_cpu.engines import handles

TIMEOUT_SECONDS = 30.0  # s: of each wait for the gateway; longer is a dropped link
ANSWER_BYTES = 32 << 20  # bytes of an answer: 64 orders have 200 kB
_PIECE = 1 << 20  # bytes: one read of a source
RETRY = frozenset({408, 425, 429, 500, 502, 503, 504})  # statuses that pass by themselves

Answer = TypeVar("Answer", bound=contract.Message)


class AwayError(Exception):
    """The gateway cannot be reached, or asks to wait; ``seconds`` where it says how long."""

    def __init__(self, why: str, seconds: float | None = None) -> None:
        super().__init__(why)
        self.seconds = seconds


class BatchOverError(Exception):
    """The gateway knows no such batch any more."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow nothing: the answer is an error."""


class Gateway:
    """The gateway at an address, for the holder of a token."""

    def __init__(self, url: str, token: str) -> None:
        """Check the address; raise ``UsageError``. Nothing is sent yet."""
        self.url = _checked(url)
        self._token = token
        self._process = secrets.token_hex(8)
        self._heard: remote.AnswerCame | None = None
        self._opener = urllib.request.build_opener(_NoRedirect)

    def token(self) -> dict[str, Any]:
        """Return what the gateway knows of the token."""
        token: dict[str, Any] = contract.loads(self._ask("GET", "token", None))
        return token

    def claim(self, wanted: remote.BatchWanted) -> remote.BatchDealt:
        """Ask for games."""
        fields = wanted.model_dump(mode="json", exclude_defaults=True)  # older gateways know less
        return self._answer_to(remote.BatchDealt, "claim", contract.dumps(fields).encode())

    def built(self, told: remote.BuildTold) -> None:
        """Tell what became of a build."""
        self._ask("POST", "built", told.encode().encode())

    def fetch(self, digest: str) -> Iterator[bytes]:
        """Yield a source, or a file of one; raise ``BatchOverError`` where it is not served."""
        try:
            yield from self._pieces(digest)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                with error:
                    raise BatchOverError(_reason(error)) from None
            raise _refusal(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise _away(error) from None

    def _pieces(self, digest: str) -> Iterator[bytes]:
        with self._opener.open(
            self._request("GET", f"files/{digest}", None), timeout=TIMEOUT_SECONDS
        ) as answer:
            while piece := answer.read(_PIECE):
                yield piece

    def results(self, batch: str, token: str, games: list[bytes]) -> remote.GamesHeard:
        """Tell finished games, as they were written down."""
        clock = remote.WorkerClock(
            process=self._process,
            boot_ms=_boot_ms(),
            day_ms=time.time_ns() // 1_000_000,
            heard=self._heard,
        )
        stood = clock.model_dump(mode="json", exclude_none=True)  # older gateways know less
        message = {"batch": batch, "token": token, "clock": stood}
        head = contract.dumps(message)[:-1].encode()
        return self._answer_to(
            remote.GamesHeard, "results", head + b',"games":[' + b",".join(games) + b"]}"
        )

    def show(self, game: remote.GameShown) -> float:
        """Tell how a game stands; return after how many seconds it may be told again."""
        shown = self._answer_to(remote.ShownAgain, "show", game.encode().encode())
        return shown.wait_ms / 1000

    def renew(self, batch: str, token: str) -> remote.BatchRenewed:
        """Extend a lease."""
        named = remote.BatchNamed(batch=batch, token=token)
        return self._answer_to(remote.BatchRenewed, "renew", named.encode().encode())

    def give_back(self, batch: str, token: str) -> None:
        """Let the games of a batch be dealt again."""
        named = remote.BatchNamed(batch=batch, token=token)
        self._ask("POST", "return", named.encode().encode())

    def _answer_to(self, kind: type[Answer], verb: str, body: bytes) -> Answer:
        raw = self._ask("POST", verb, body)
        try:
            return kind.decode(raw)
        except ValueError as error:
            raise AwayError(f"it answers what this version cannot read: {error}") from None

    def _ask(self, method: str, verb: str, body: bytes | None) -> bytes:
        request = self._request(method, verb, body)
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                content: bytes = answer.read(ANSWER_BYTES + 1)
                farm_ms = text.whole(answer.headers.get(remote.FARM_TIME), 15)
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise _away(error) from None
        if len(content) > ANSWER_BYTES:
            raise AwayError(f"its answer has more than {ANSWER_BYTES} bytes")
        if farm_ms is not None:
            self._heard = remote.AnswerCame(at_ms=farm_ms, boot_ms=_boot_ms())
        return content

    def _request(self, method: str, verb: str, body: bytes | None) -> urllib.request.Request:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "User-Agent": "farm-work",
        }
        return urllib.request.Request(  # noqa: S310 - the scheme is checked
            f"{self.url}/work/v1/{verb}", data=body, headers=headers, method=method
        )


def _boot_ms() -> int:
    return handles.boottime_ns() // 1_000_000


def _away(error: Exception) -> AwayError:
    """Return what a link that failed means to the worker."""
    return AwayError(str(getattr(error, "reason", None) or error) or type(error).__name__)


def _refusal(error: urllib.error.HTTPError) -> Exception:
    """Return what an answer with an error status means to the worker."""
    with error:
        why = _reason(error)
    if error.code in RETRY:
        wait = error.headers.get("Retry-After", "")
        return AwayError(why, float(wait) if wait.isdecimal() else None)
    if error.code == 409:
        return BatchOverError(why)
    if error.code == 401:
        return errors.UsageError(f"the gateway refuses the token: {why}")
    return errors.RefusedError(f"the gateway refuses a request ({error.code}): {why}")


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        reason = contract.loads(error.read(10_000))["error"]
    except (ValueError, LookupError, TypeError, OSError, http.client.HTTPException):
        reason = error.reason
    return output.plain(str(reason))


def _checked(url: str) -> str:
    """Return an address without an end of its own; raise ``UsageError``."""
    allowed = "https://HOST[:PORT][/PATH], or http:// on this machine"
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
        parts = urllib.parse.SplitResult("", "", "", "", "")
    del port
    plain = parts.scheme == "http" and _is_here(host)
    if not host or (parts.scheme != "https" and not plain) or parts.username or parts.query:
        raise errors.UsageError(f"URL: found {url!r}; allowed: {allowed}")
    return url.rstrip("/")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def hostname() -> str:
    """Return this machine's name as the gateway takes it."""
    kept = "".join(
        character if character.isalnum() and character.isascii() else "-"
        for character in socket.gethostname()
    )
    return kept.strip("-")[:63] or "worker"
