"""Where the farm's Redis is and how to come in: from the environment or from files.

A secret is never an argument of a command (every user of a host reads those) and never
in a log. Read are:

``FARM_REDIS_URL``            the address; may carry user and password
``FARM_REDIS_URL_FILE``       a file with the same (systemd's LoadCredential=, a mounted secret)
``FARM_REDIS_USER``           the user, where the address names none
``FARM_REDIS_PASSWORD_FILE``  a file with the password, where the address has none
``FARM_REDIS_CA``             the CA that signed the server's certificate (``rediss://``)
``FARM_REDIS_CERT`` ``_KEY``  this client's own certificate and key, where the server asks
"""

from __future__ import annotations

import os
import pathlib
import re
import ssl
import urllib.parse
from collections.abc import Mapping
from typing import Any

from orchestrator.common import bounds, errors

_TLS = {
    "FARM_REDIS_CA": "ssl_ca_certs",
    "FARM_REDIS_CERT": "ssl_certfile",
    "FARM_REDIS_KEY": "ssl_keyfile",
}


def url(environment: Mapping[str, str] | None = None) -> str:
    """Return the whole address, '' where none is set; raise ``UsageError`` for a bad file."""
    env = os.environ if environment is None else environment
    address = env.get("FARM_REDIS_URL") or _file(env, "FARM_REDIS_URL_FILE")
    if not address:
        return ""
    if problem := wrong(address):
        raise errors.UsageError(f"FARM_REDIS_URL: {masked(address)}: {problem}")
    return _with_tls(_with_user(address, env), env)


def masked(url: str) -> str:
    """Return a Redis URL with its password, in whatever part, replaced by ``***``."""
    if "://" not in url:
        return "(no scheme)"
    # By text, not by parts: a password with an unescaped / or # would end up in other parts.
    shown = re.sub(r"://([^:@/]*):.*@", r"://\1:***@", url)
    return re.sub(r"(password=)[^&]*", r"\1***", shown)


def wrong(address: str) -> str:
    """Say what is wrong with an address without a piece of it, '' where nothing is seen.

    What a library says of a password with an unescaped letter shows a part of the password.
    """
    escaped = "a password's # / ? @ : % [ ] are written %23 %2F %3F %40 %3A %25 %5B %5D"
    try:
        parts = urllib.parse.urlsplit(address)
        port_and_host = parts.port, parts.hostname
    except ValueError:
        return f"host or port cannot be read; {escaped}"
    del port_and_host
    behind = address.partition("://")[2]
    if parts.scheme in {"redis", "rediss"} and "@" in behind and "@" not in parts.netloc:
        return f"the part before the @ cannot be read; {escaped}"
    return ""


def tls(address: str) -> dict[str, Any] | None:
    """Return what Celery needs for a ``rediss`` address, ``None`` for another."""
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "rediss":
        return None
    query = dict(urllib.parse.parse_qsl(parts.query))
    files = {name: query[name] for name in _TLS.values() if name in query}
    return {"ssl_cert_reqs": ssl.CERT_REQUIRED, **files}


def broker(address: str) -> str:
    """Return the address as Celery wants it: TLS apart, unix sockets in its own words.

    Celery reads a socket's user and password in front of the path only, and calls the number of the
    database its virtual host; redis-py reads them behind the path as well.
    """
    parts = urllib.parse.urlsplit(address)
    if parts.scheme == "rediss":
        return parts._replace(query="").geturl()
    if parts.scheme != "unix":
        return address
    given = dict(urllib.parse.parse_qsl(parts.query))
    quoted = [
        urllib.parse.quote(given.get(name) or urllib.parse.unquote(before or ""), safe="")
        for name, before in (("username", parts.username), ("password", parts.password))
    ]
    user = f"{':'.join(quoted)}@" if any(quoted) else ""
    database = f"?virtual_host={given['db']}" if "db" in given else ""
    return f"redis+socket://{user}{parts.path}{database}"


def _file(env: Mapping[str, str], name: str) -> str:
    path = env.get(name, "")
    if not path:
        return ""
    try:
        return bounds.text(pathlib.Path(path), bounds.SECRET_BYTES).strip()
    except bounds.DAMAGED as error:
        raise errors.UsageError(f"{name}: {path} cannot be read: {errors.reason(error)}") from error


def _with_user(address: str, env: Mapping[str, str]) -> str:
    parts = urllib.parse.urlsplit(address)
    password = _file(env, "FARM_REDIS_PASSWORD_FILE")
    user = env.get("FARM_REDIS_USER", "")
    if not (user or password) or parts.password:
        return address
    if parts.scheme == "unix":
        credentials = {"username": user or parts.username or "", "password": password}
        query = urllib.parse.urlencode({key: value for key, value in credentials.items() if value})
        return f"{address}{'&' if parts.query else '?'}{query}"
    host = parts.netloc.rpartition("@")[2]
    name = urllib.parse.quote(user or parts.username or "", safe="")
    secret = f":{urllib.parse.quote(password, safe='')}" if password else ""
    return parts._replace(netloc=f"{name}{secret}@{host}").geturl()


def _with_tls(address: str, env: Mapping[str, str]) -> str:
    files = {theirs: env[ours] for ours, theirs in _TLS.items() if env.get(ours)}
    if not files:
        return address
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "rediss":
        shown = masked(address)
        raise errors.UsageError(
            f"FARM_REDIS_CA, _CERT and _KEY need a rediss:// address, not {shown}"
        )
    query = "&".join(filter(None, [parts.query, urllib.parse.urlencode(files)]))
    return parts._replace(query=query).geturl()
