"""The link to a Redis server: client settings, scripts, errors, durability.

Invariants: a command is sent once (redis-py's silent retries would repeat a command
whose reply was lost); every read has a time-out; whatever breaks on the way is a
``LedgerUnreachableError`` that names the server and never its password.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.resources
import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import Any

import redis
from redis import backoff
from redis import exceptions as redis_exceptions
from redis import retry as redis_retry

from orchestrator.common import errors
from orchestrator.ledger import address, replies

SCRIPTS = importlib.resources.files("orchestrator.ledger") / "scripts"
SOCKET_TIMEOUT = 5.0  # s: a server that answers later is treated as away
BLOCK_MS = 2_000  # ms: one blocking read; short, so that a half-open link is soon noticed
HEALTH_CHECK = 15  # s: a link idle for longer is pinged before it is used

# What Redis must be told so that an acknowledged write is never lost.
DURABLE = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}
# What Redis says of a key of another type, and of a stream that somebody has cut at its end.
FOREIGN = ("WRONGTYPE", "equal or smaller than the target stream top item")
# What the append-only file holds between MULTI and EXEC: the scripts' writes, and Celery's.
REPLAYED = (
    *(("multi",), ("exec",), ("set", "farm:x", "y"), ("del", "farm:x"), ("incr", "farm:x")),
    *(("hset", "farm:x", "y", "z"), ("sadd", "farm:x", "y"), ("rpush", "farm:x", "y")),
    *(("xadd", "farm:x", "*", "y", "z"), ("pexpireat", "farm:x", "1"), ("select", "0")),
    *(("lpush", "farm:celery:x", "y"), ("zadd", "farm:celery:x", "1", "y")),
)
RELOADING = "and should be `user default off ~* &* +@all`, or a restart drops every transaction"


@functools.cache
def script_text(verb: str) -> str:
    """Return the Lua text of a verb, with the shared pieces in front."""
    common = (SCRIPTS / "_common.lua").read_text("utf-8")
    return f"{common}\n{(SCRIPTS / f'{verb}.lua').read_text('utf-8')}"


class _Credentials(redis.CredentialProvider):
    """User and password as the environment has them at each new connection.

    A password that is changed on the server and in its file is so taken without a restart.
    """

    def __init__(self, first: tuple[str, str]) -> None:
        self._last = first

    @property
    def user(self) -> str:
        """Return the user of the last connection."""
        return self._last[0]

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Read the files again; while one of them cannot be read, the last words stand."""
        with contextlib.suppress(errors.UsageError):
            self._last = _user_and_password(address.url())
        user, password = self._last
        return (user, password) if user else (password,)


def _user_and_password(url: str) -> tuple[str, str]:
    options = redis.connection.parse_url(url)  # type: ignore[no-untyped-call]
    return options.get("username") or "", options.get("password") or ""


def with_fresh_credentials(options: dict[str, Any]) -> dict[str, Any]:
    """Return a connection's options, with a provider where the environment's files name the user.

    An address that somebody gave by hand keeps its own.
    """
    credentials = options.get("username") or "", options.get("password") or ""
    try:
        environment = _user_and_password(address.url())
    except (errors.UsageError, ValueError):
        return options
    if not credentials[1] or credentials != environment:
        return options
    kept = {name: value for name, value in options.items() if name not in ("username", "password")}
    return kept | {"credential_provider": _Credentials(credentials)}


def _client(url: str, socket_timeout: float) -> redis.Redis:
    client = redis.Redis.from_url(
        url,
        socket_timeout=socket_timeout,
        socket_connect_timeout=SOCKET_TIMEOUT,
        health_check_interval=HEALTH_CHECK,
        retry=redis_retry.Retry(backoff.NoBackoff(), 0),
        protocol=2,  # one shape of replies for every server and client version we allow
    )
    pool = client.connection_pool
    pool.connection_kwargs = with_fresh_credentials(pool.connection_kwargs)
    return client


class Server:
    """One Redis server: a client for short commands and one for blocking reads."""

    def __init__(self, url: str) -> None:
        """Prepare both clients; nothing is sent. Raise ``UsageError`` for a bad URL."""
        self.name = address.masked(url)
        allowed = "write redis://host:6379/0, rediss://user:password@host:6379/0 or unix:///path/of/socket"
        if problem := address.wrong(url):
            raise errors.UsageError(f"not a Redis URL: {self.name}: {problem}; {allowed}")
        try:
            self.client = _client(url, SOCKET_TIMEOUT)
            self.blocking = _client(url, BLOCK_MS / 1000 + SOCKET_TIMEOUT)
        except ValueError as error:
            raise errors.UsageError(f"not a Redis URL: {self.name}: {error}; {allowed}") from None

    def now_ms(self) -> int:
        """Return Redis' time of day in milliseconds."""
        with self.asked():
            seconds, micros = self.client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    @contextlib.contextmanager
    def asked(self) -> Iterator[None]:
        """Turn what redis-py raises inside into errors of the farm."""
        try:
            yield
        except redis_exceptions.AuthenticationError as error:
            raise errors.LedgerUnreachableError(
                f"Redis at {self.name} refused user or password: {error}; "
                "correct FARM_REDIS_URL, or FARM_REDIS_USER and the file FARM_REDIS_PASSWORD_FILE"
            ) from error
        except (redis_exceptions.ConnectionError, redis_exceptions.TimeoutError) as error:
            raise errors.LedgerUnreachableError(_unreachable(self.name, error)) from error
        except redis_exceptions.RedisError as error:
            if any(word in str(error) for word in FOREIGN):
                raise errors.LedgerForeignError(
                    f"a key of Redis at {self.name} was not written by the farm: {error};"
                    " `farm fsck` names it"
                ) from error
            raise errors.LedgerRefusedError(
                f"Redis at {self.name} refused a command: {error}; see the server's log, "
                "its memory and disk, and the rights of the user"
            ) from error

    def run(self, verb: str, names: Sequence[str], *arguments: str | int | bytes) -> Any:
        """Run the script of a verb on the keys that it names; return Redis' raw reply."""
        with self.asked():
            raw: Any = self.client.register_script(script_text(verb))(names, arguments)
        if replies.word(raw) == "unchecked":
            raise errors.LedgerUncheckedError(
                f"Redis at {self.name} was started since `farm serve` last compared its journals"
                " with the archive's copies: nothing is added to them before it has. Start `farm"
                " serve` (it needs a second); `farm status` says when Redis has lost entries"
            )
        return raw

    def table(self, key: str) -> dict[str, str]:
        """Return a hash, empty where there is none."""
        with self.asked():
            raw: Any = self.client.hgetall(key)
        return {replies.any_text(name): replies.any_text(value) for name, value in raw.items()}

    def whoami(self) -> str:
        """Return the authenticated Redis user, who is journaled as ``by``."""
        with self.asked():
            try:
                user = self.client.acl_whoami()
            except redis_exceptions.ResponseError:
                # Asking may be forbidden; the link was made under this name all the same.
                options = self.client.connection_pool.connection_kwargs
                provider = options.get("credential_provider")
                given = provider.user if provider else options.get("username")
                return str(given or "default")
        return user.decode() if isinstance(user, bytes) else user

    def close(self) -> None:
        """Close all sockets; the object may be used again."""
        self.client.close()
        self.blocking.close()
        self.client.connection_pool.disconnect()
        self.blocking.connection_pool.disconnect()


def _unreachable(name: str, error: BaseException) -> str:
    """Say why a server cannot be reached, and what to do, by what lies beneath redis-py's error."""
    causes = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return (
            f"Redis at {name} shows a certificate that cannot be verified: {error}; set"
            " FARM_REDIS_CA to the CA that signed it (on hosts made by ansible"
            " /etc/farm/redis-ca.crt), and write the host in FARM_REDIS_URL as the certificate"
            " has it"
        )
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return (
            f"the host of Redis at {name} cannot be found: {error}; correct its name in"
            " FARM_REDIS_URL, or let this machine resolve it (DNS, /etc/hosts)"
        )
    missing = (FileNotFoundError, ConnectionRefusedError)
    if name.startswith("unix:") and any(isinstance(cause, missing) for cause in causes):
        return (
            f"the Redis at {name} has ended, or was never started: `farm up` goes on with a farm"
            " that it made there; else start it, or set FARM_REDIS_URL to the server that holds"
            " the ledger"
        )
    return (
        f"Redis at {name} does not answer: {error}; start it, or set FARM_REDIS_URL to the server"
        " that holds the ledger (a request under way may have been carried out: it is safe to"
        " repeat)"
    )


def check_durability(client: redis.Redis) -> list[str]:
    """Return what in the server's settings could lose an acknowledged write.

    Where ``CONFIG GET`` is forbidden, what INFO tells is checked, and what it cannot
    tell is a complaint too. Raise redis-py's own errors when the server is away.
    """
    try:
        settings = {name: client.config_get(name).get(name) for name in DURABLE}
    except redis_exceptions.ResponseError:
        return _durability_by_info(client)
    complaints = [
        f"{name} is {settings[name] or 'unknown'}, and should be {wanted}"
        for name, wanted in DURABLE.items()
        if settings[name] != wanted
    ]
    return complaints + _reload_complaints(client)


def _reload_complaints(client: redis.Redis) -> list[str]:
    """Say what the server would lose when it loads its append-only file.

    It replays that file as the default user. Redis up to 8.2 and Valkey up to 9.1.1 check this
    user's rules again at each EXEC, and drop the whole transaction where one command is forbidden
    (redis/redis#14541); whether the user is on or off does not matter.
    """
    server: Any = client  # its commands are not typed
    try:
        for command in REPLAYED:
            answer = server.execute_command("ACL", "DRYRUN", "default", *command)
            if replies.text(answer) != "OK":
                return [f"default-user may not run {command[0]}, {RELOADING}"]
    except redis_exceptions.NoPermissionError:
        return [f"default-user cannot be checked (ACL DRYRUN is forbidden), {RELOADING}"]
    except redis_exceptions.ResponseError:
        return _reload_complaints_6(client)
    return []


def _reload_complaints_6(client: redis.Redis) -> list[str]:
    """Say the same of Redis 6, which has no DRYRUN; Redis 5 has no users at all."""
    server: Any = client
    try:
        rules = server.execute_command("ACL", "LIST")
    except redis_exceptions.NoPermissionError:
        return [f"default-user cannot be checked (ACL LIST is forbidden), {RELOADING}"]
    except redis_exceptions.ResponseError:
        return []
    (default,) = (line for line in map(replies.text, rules) if line.startswith("user default "))
    if {"~*", "+@all"} <= set(default.split()):
        return []
    return [f"default-user may not run everything, {RELOADING}"]


def _durability_by_info(client: redis.Redis) -> list[str]:
    info: dict[str, Any] = {}
    with contextlib.suppress(redis_exceptions.ResponseError):
        info = {**client.info("persistence"), **client.info("memory")}
    complaints = []
    if info.get("aof_enabled") != 1:
        complaints.append(f"appendonly is {'no' if info else 'unknown'}, and should be yes")
    complaints.append("appendfsync cannot be seen (CONFIG GET is forbidden); it should be always")
    policy = info.get("maxmemory_policy", "unknown")
    if policy != DURABLE["maxmemory-policy"]:
        complaints.append(f"maxmemory-policy is {policy}, and should be noeviction")
    reloading = _reload_complaints(client)
    return complaints + [complaint.replace("checked (", "seen (") for complaint in reloading]
