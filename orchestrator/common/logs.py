"""Logs: JSON lines by structlog for programs, a console form on a terminal.

Event names are dotted nouns (``game.started``), facts are fields; season, event, game
and attempt are bound once and carried by every line of the context, also by those of
Celery and other libraries. Secrets never reach a line: URLs lose their passwords.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from typing import Any

import structlog

_PASSWORD = re.compile(r"(\w+://[^:@/\s]*):[^\s\"']+@|(password=)[^&\s\"']+")


def configure(level: str | None = None) -> None:
    """Send every log line of this process through structlog, to standard error.

    ``FARM_LOG=console`` or ``FARM_LOG=json`` chooses the form, ``FARM_LOG_LEVEL`` the level.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(),
                _without_passwords,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level or os.environ.get("FARM_LOG_LEVEL", "INFO"))


def _renderers() -> list[structlog.typing.Processor]:
    form = os.environ.get("FARM_LOG", "console" if sys.stderr.isatty() else "json")
    if form == "console":
        return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    return [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]


def _without_passwords(_logger: Any, _method: str, line: Any) -> Any:
    """Mask the finished line: a password may stand in an exception's text or a nested value."""
    return mask(line) if isinstance(line, str) else line


def mask(text: str) -> str:
    """Replace the password of every URL in a text by ``***``."""
    return _PASSWORD.sub(
        lambda match: f"{match[1]}:***@" if match[2] is None else "password=***", text
    )
