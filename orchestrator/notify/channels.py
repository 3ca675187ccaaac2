"""Sending: a mail by SMTP, or a POST of JSON. What fails is a ``HostError`` and tried again."""

from __future__ import annotations

import email.message
import email.utils
import hashlib
import hmac
import http.client
import smtplib
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from typing import Any, Final

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.notify import notices, settings

HOSTS: Final[dict[str, settings.Service]] = {
    "discord.com": "discord",
    "discordapp.com": "discord",
    "hooks.slack.com": "slack",
    "chat.googleapis.com": "google-chat",
    "webhook.office.com": "teams",
    "logic.azure.com": "teams",
    "api.powerplatform.com": "teams",
}
LONGEST: Final = {"discord": 2_000, "google-chat": 4_000, "mattermost": 16_000}  # characters
TIMEOUT_SECONDS: Final = 15.0  # s: a channel that hangs delays the others, never the season


def send(
    channel: settings.Mail | settings.Webhook, notice: notices.Notice, subject: str, body: str
) -> None:
    """Send a notice by a channel; raise ``HostError``, ``UsageError``."""
    if isinstance(channel, settings.Mail):
        _mail(channel, notice, subject, body)
    else:
        _post(channel, notice, subject, body)


def send_to_all(
    wanted: Sequence[settings.Mail | settings.Webhook],
    notice: notices.Notice,
    subject: str,
    body: str,
) -> dict[str, str]:
    """Send a notice by each channel; return "sent" or the error by the channel's name."""
    outcomes = {}
    for channel in wanted:
        try:
            send(channel, notice, subject, body)
            outcomes[channel.name] = "sent"
        except errors.FarmError as error:
            outcomes[channel.name] = str(error)
    return outcomes


def _mail(channel: settings.Mail, notice: notices.Notice, subject: str, body: str) -> None:
    password = settings.secret(channel.password_file)
    try:
        message = _message(channel, notice, subject, body)
        with _server(channel) as server:
            if channel.user:
                server.login(channel.user, password)
            server.send_message(message)
    except UnicodeError:  # its words would tell a letter of the password
        where = f"mail by {channel.host}:{channel.port}"
        raise errors.HostError(f"{where}: user and password must be ASCII") from None
    except (OSError, smtplib.SMTPException, ValueError) as error:  # ValueError: no header
        raise errors.HostError(f"mail by {channel.host}:{channel.port}: {error}") from error


def _message(
    channel: settings.Mail, notice: notices.Notice, subject: str, body: str
) -> email.message.EmailMessage:
    message = email.message.EmailMessage()
    message["From"], message["To"] = channel.sender, ", ".join(channel.to)
    message["Subject"] = subject
    message["Date"] = email.utils.localtime()
    message["X-Farm-Notice"] = notice.id
    hint = f"\nfarm notify ack {notice.id}\n" if notice.asks else ""
    message.set_content(body + hint)
    return message


def _server(channel: settings.Mail) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if channel.tls == "tls":
        return smtplib.SMTP_SSL(
            channel.host, channel.port, timeout=TIMEOUT_SECONDS, context=context
        )
    server = smtplib.SMTP(channel.host, channel.port, timeout=TIMEOUT_SECONDS)
    if channel.tls == "starttls":
        server.starttls(context=context)
    return server


def _post(channel: settings.Webhook, notice: notices.Notice, subject: str, body: str) -> None:
    url = channel.url or settings.secret(channel.url_file)
    message_body = _webhook_message(channel.service or _service(url), notice, subject, body)
    payload = contract.dumps(message_body).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "tournament-farm"}
    if secret := settings.secret(channel.secret_file):
        signed = hmac.new(secret.encode(), payload, hashlib.sha256).hexdigest()
        headers["X-Farm-Signature"] = f"sha256={signed}"
    try:
        request = _request(url, payload, headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):  # noqa: S310 - http(s)
            return
    except (http.client.InvalidURL, ValueError):
        message = f"webhook {channel.name}: its address is no http(s) address"
        raise errors.UsageError(message) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise errors.HostError(f"webhook {channel.name}: {reason}") from error


def _service(url: str) -> settings.Service:
    """Return whose webhook an address is, by its host; the farm's own where none is known."""
    try:
        host = urllib.parse.urlsplit(url).hostname or ""
    except ValueError:
        return "farm"
    hosts = [name for name in HOSTS if host == name or host.endswith(f".{name}")]
    return HOSTS[hosts[0]] if hosts else "farm"


def _webhook_message(
    service: settings.Service, notice: notices.Notice, subject: str, body: str
) -> dict[str, Any]:
    """Return what a service takes; chats get a text, with how to acknowledge it."""
    if service == "farm":
        return {
            "id": notice.id,
            "kind": notice.kind.value,
            "at_ms": notice.at_ms,
            "asks": notice.asks,
            "subject": subject,
            "text": f"{subject}\n{body}",
            "facts": dict(notice.facts),
        }
    hint = f"\nfarm notify ack {notice.id}" if notice.asks else ""
    text = f"{subject}\n{body.strip()}"
    longest = LONGEST.get(service, len(text) + len(hint)) - len(hint)
    text = (text if len(text) <= longest else f"{text[: longest - 1]}…") + hint
    if service == "discord":
        return {"content": text, "allowed_mentions": {"parse": []}}
    if service == "teams":
        block = {"type": "TextBlock", "text": text, "wrap": True}
        card = {"type": "AdaptiveCard", "version": "1.4", "body": [block]}
        kind = "application/vnd.microsoft.card.adaptive"
        return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
    return {"text": text}


def _request(url: str, payload: bytes, headers: dict[str, str]) -> urllib.request.Request:
    """Return the request; raise ``ValueError`` for no address, which may be a secret."""
    if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
        raise ValueError(url)
    return urllib.request.Request(url, payload, headers)  # noqa: S310 - http(s), checked above
