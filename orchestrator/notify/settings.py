"""``notify.toml``: by which channels whom is told of what. Secrets stand in files of their own."""

from __future__ import annotations

import pathlib
from typing import Annotated, Literal

import pydantic

from orchestrator import contract
from orchestrator.common import bounds, errors
from orchestrator.notify import notices

EXAMPLE = """\
remind_minutes = 60          # notices that ask are told again so often, until acknowledged
deadline_hours = 24          # gates and submission deadlines are told so long before
host_silent_seconds = 120

[[channel]]
kind = "mail"
name = "organizers"
host = "mail.example.org"
port = 587
tls = "starttls"             # or "tls", or "none" on one host
user = "farm"
password_file = "/etc/farm/notify/mail-password"
sender = "farm@example.org"
to = ["organizers@example.org"]

[[channel]]
kind = "webhook"
name = "chat"
url_file = "/etc/farm/notify/webhook-url"       # Discord, Slack, Google Chat, Teams: by their host
# service = "mattermost"                        # others by name; "farm": all facts as JSON
secret_file = "/etc/farm/notify/webhook-secret" # signs the body: X-Farm-Signature
only = ["event-over", "season-over"]            # kinds: docs/operating.md, Notices
"""


class _Channel(contract.Message):
    name: str = pydantic.Field(min_length=1)
    only: tuple[notices.Kind, ...] = ()

    def wants(self, notice: notices.Notice) -> bool:
        """Say whether the channel is for this kind of notice."""
        return not self.only or notice.kind in self.only


class Mail(_Channel):
    """A mailbox, by SMTP."""

    kind: Literal["mail"]
    host: str
    port: int = 587
    tls: Literal["starttls", "tls", "none"] = "starttls"
    user: str = ""
    password_file: pathlib.Path | None = None
    sender: str
    to: tuple[str, ...] = pydantic.Field(min_length=1)


Service = Literal["farm", "discord", "slack", "mattermost", "google-chat", "teams"]


class Webhook(_Channel):
    """An address that takes JSON by POST; where it is a secret, it stands in a file.

    Chat services refuse another service's JSON: ``service`` says whose it is, where its host
    does not. ``farm`` is the farm's own, with all facts.
    """

    kind: Literal["webhook"]
    url: str = ""
    url_file: pathlib.Path | None = None
    service: Service | None = None
    secret_file: pathlib.Path | None = None

    @pydantic.model_validator(mode="after")
    def _one_address(self) -> Webhook:
        if bool(self.url) == (self.url_file is not None):
            raise ValueError("give either url or url_file")
        return self


Channel = Annotated[Mail | Webhook, pydantic.Field(discriminator="kind")]


class Settings(contract.Message):
    """The whole file."""

    remind_minutes: float = pydantic.Field(default=60, gt=0)
    deadline_hours: float = pydantic.Field(default=24, gt=0)
    host_silent_seconds: float = pydantic.Field(default=120, gt=0)
    templates: pathlib.Path | None = None
    channel: tuple[Channel, ...] = pydantic.Field(min_length=1)

    @pydantic.model_validator(mode="after")
    def _names(self) -> Settings:
        names = [channel.name for channel in self.channel]
        if len(set(names)) < len(names):
            raise ValueError("two channels have one name")
        return self


def load(path: pathlib.Path) -> Settings:
    """Read the file; raise ``UsageError`` with the place that is wrong."""
    try:
        read = Settings.model_validate(bounds.toml(path))
        _check_templates(path, read.templates)
    except FileNotFoundError as error:
        raise errors.UsageError(
            f"{path} does not exist; `farm notify example > {path}` writes one to begin with (on"
            " hosts made by ansible they are on the control host: --settings /etc/farm/notify.toml)"
        ) from error
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise errors.UsageError(f"{path}: {where}: {first['msg']}") from error
    except bounds.DAMAGED as error:  # also what is no TOML, or no UTF-8
        raise errors.UsageError(f"{path} cannot be read: {errors.reason(error)}") from error
    return read


def _check_templates(path: pathlib.Path, directory: pathlib.Path | None) -> None:
    """Raise ``UsageError`` for a folder of texts that is not there, or a text of no kind."""
    if directory is None:
        return
    if not directory.is_dir():
        raise errors.UsageError(f"{path}: templates: no folder {directory}")
    kinds = {kind.value for kind in notices.Kind}
    if strange := sorted(file for file in directory.glob("*.txt") if file.stem not in kinds):
        raise errors.UsageError(
            f"{path}: templates: {strange[0]} is no kind's; kinds: {', '.join(notices.Kind)}"
        )


def secret(path: pathlib.Path | None) -> str:
    """Return what a secret's file holds, '' without one; raise ``UsageError``."""
    if path is None:
        return ""
    try:
        return bounds.text(path, bounds.SECRET_BYTES).strip()
    except bounds.DAMAGED as error:
        raise errors.UsageError(f"secret {path} cannot be read: {errors.reason(error)}") from error
