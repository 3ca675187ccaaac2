"""Write the types of the read API for the page's scripts, from its OpenAPI description.

``Api.Game`` is what the server answers, ``Api.Events`` what its stream says by the event's name,
and ``Api.Answer<place>`` what lies at a place below ``/api/v1/``. Written by ``make reference``.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestrator.broadcast.web import openapi

FILE: Final = pathlib.Path(__file__).parent.parent / "orchestrator/broadcast/page/types/api.d.ts"
HEAD: Final = "// What the read API answers: made of its description by `make reference`."
_ROOT: Final = "/api/v1/"
_PLAIN: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
Schema = Mapping[str, Any]


def text() -> str:
    """Return the declarations of all answers, events and places."""
    described = openapi.document()
    inside = [
        *(
            line
            for name, schema in described["components"]["schemas"].items()
            for line in _declared(name, schema)
        ),
        *_events(described),
        *_places(described),
    ]
    body = "\n".join(f"  {line}" if line else "" for line in inside)
    return f"{HEAD}\n\ndeclare namespace Api {{\n{body}\n}}\n"


def _declared(name: str, schema: Schema) -> Iterator[str]:
    yield from _remark(schema)
    if "properties" not in schema:
        yield f"type {name} = {_type(schema)}"
        return
    yield f"interface {name} {{"
    required = set(schema.get("required", ()))
    for field, described in schema["properties"].items():
        yield from (f"  {line}" for line in _remark(described))
        yield f"  readonly {field}{'' if field in required else '?'}: {_type(described)}"
    yield "}"


def _remark(schema: Schema) -> Iterator[str]:
    if words := " ".join(schema.get("description", "").split()):
        yield f"/** {words} */"


def _type(schema: Schema) -> str:
    """Return a schema as a type; arrays and what is in them cannot be written to."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum") or [schema["const"]]
        return " | ".join(f'"{value}"' for value in values)
    if schema.get("type") == "array":
        if "prefixItems" in schema:
            return f"readonly [{', '.join(map(_type, schema['prefixItems']))}]"
        return f"ReadonlyArray<{_type(schema['items'])}>"
    if schema.get("type") == "object":
        return f"Readonly<Record<string, {_type(schema['additionalProperties'])}>>"
    return _PLAIN[schema["type"]]


def _events(described: Schema) -> Iterator[str]:
    stream = described["paths"][f"{_ROOT}live"]["get"]["responses"]["200"]
    yield "/** What the stream says, by the event's name. */"
    yield "interface Events {"
    for name, schema in stream["content"]["text/event-stream"]["x-events"].items():
        yield f"  {name}: {_type(schema)}"
    yield "}"


def _places(described: Schema) -> Iterator[str]:
    """What lies at a place: the longer one first, since a name stands for any text."""
    answers = {
        path.removeprefix(_ROOT): _type(content["application/json"]["schema"])
        for path, operations in described["paths"].items()
        for content in [operations["get"]["responses"]["200"]["content"]]
        if "application/json" in content
    }
    yield "/** What lies at a place below `/api/v1/`. */"
    yield "type Answer<Place extends string> ="
    for path in sorted(answers, key=lambda one: (-one.count("/"), "{" in one[-1], one)):
        yield f"  Place extends `{re.sub(r'{.*?}', '${string}', path)}` ? {answers[path]} :"
    yield "  never"
