"""The description of the read API, and whether answers and events are of its types."""

from __future__ import annotations

import json
import re
from typing import Any

import pydantic

from orchestrator.broadcast.content import answers
from orchestrator.broadcast.web import openapi

DESCRIPTION = openapi.document()
MAKER = "docs/architecture.md, the row of a field or column, says where"
WHAT_TO_DO = {  # by pydantic's type of error
    "missing": f"described, but not made: make it ({MAKER}), or give it a default in answers.py",
    "extra_forbidden": "made, but not described: describe it in broadcast/content/answers.py",
}
OTHER = f"not of its type in broadcast/content/answers.py: change that, or the answer ({MAKER})"


def typed(place: str) -> Any:
    """Return the type of what the API answers at a place of the library."""
    for path, operations in DESCRIPTION["paths"].items():
        pattern = re.sub(r"\{\w+\}", "[^/]+", path.removeprefix("/api/v1/"))
        content = operations["get"]["responses"]["200"]["content"]
        if openapi.JSON in content and re.fullmatch(pattern, place):
            schema = content[openapi.JSON]["schema"]
            one = schema.get("items", schema)["$ref"].rpartition("/")[2]
            answer: type[answers.Answer] = getattr(answers, one)
            return tuple[answer, ...] if "items" in schema else answer  # type: ignore[valid-type]
    raise AssertionError(f"{place} is not described")


def check(kind: Any, body: bytes | str, what: str) -> None:
    """Hold an answer against its type: no field more, none less."""
    try:
        pydantic.TypeAdapter(kind).validate_json(body, strict=True)
    except pydantic.ValidationError as error:
        hints = {WHAT_TO_DO.get(one["type"], OTHER) for one in error.errors()}
        raise AssertionError(f"{what}: {'; '.join(sorted(hints))}: {error}") from error


def check_event(kind: str, data: dict[str, Any]) -> None:
    """Hold an event of the stream against its types."""
    types = openapi.STREAM[kind]
    nothing = kind == "game" and not data["game"]
    check(types[1 if nothing else 0], json.dumps(data), f"event {kind}")
