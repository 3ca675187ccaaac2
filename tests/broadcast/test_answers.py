"""The description of the read API: every answer and every event is of the type that it names."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import described
import harness
import httpx
import jsonschema
import pytest
import theatre

from orchestrator.broadcast.content import answers, documents, messages
from orchestrator.broadcast.web import openapi
from orchestrator.forecast import game_model


@pytest.mark.parametrize("name", ["cup", "frc"])
def test_every_document_and_event_is_of_its_type(name: str, tmp_path: pathlib.Path) -> None:
    """From the launch to the end, with crashes: every document, every message of the stream."""
    tape = theatre.simulated(name, luck=game_model.Chances(crash=0.02, interruption=0.05))
    stage = theatre.projected(tape, tmp_path)
    for share in (0.01, 0.1, 0.4, 0.7, 0.9, 1):
        tape.shown = max(1, round(share * len(tape.journal)))
        stage.projector.look()
        for place in stage.shelf.places():
            found = stage.shelf.get(place)
            assert found is not None
            described.check(described.typed(place), found.body, place)
    told = [one for one in stage.told if isinstance(one, messages.Delta)]
    assert {"season", "tables", "result", "game"} <= {one.kind for one in told}
    for one in told[-200:]:
        described.check_event(
            one.kind, json.loads(documents.of_json(one.data | {"now_ms": 1}).body)
        )


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({}, "described, but not made"),
        ({"status": "ok", "percent": 1}, "made, but not described"),
        ({"status": 1}, "not of its type"),
    ],
)
def test_what_is_wrong_with_an_answer_is_said(fields: dict[str, Any], hint: str) -> None:
    """Whoever adds a field reads where: it is made in one place and described in another."""

    class Trial(answers.Answer):
        status: str

    with pytest.raises(AssertionError, match=f"^trial: {hint}") as refused:
        described.check(Trial, json.dumps(fields), "trial")
    assert sum(words in str(refused.value) for words in ("not made", "not described")) <= 1


class Client:
    """A client that knows nothing but the description it is given."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.described = httpx.get(f"{url}/api/v1/openapi.json").json()
        self.operations = {
            operations["get"]["operationId"]: (path, operations["get"])
            for path, operations in self.described["paths"].items()
        }

    def ask(self, name: str, **values: Any) -> httpx.Response:
        """Ask by an operation's name and parameters; the answer has the shape that is told."""
        path, operation = self.operations[name]
        places = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
        asked = {one["name"] for one in operation["parameters"] if one["in"] == "query"}
        assert places <= set(values) <= places | asked, name
        query = {key: value for key, value in values.items() if key in asked}
        answer = httpx.get(self.url + path.format(**values), params=query, timeout=60)
        content = operation["responses"][str(answer.status_code)].get("content", {})
        media_type = answer.headers["content-type"].partition(";")[0]
        schema = content[media_type]["schema"]
        if media_type == openapi.JSON:
            whole = schema | {"components": self.described["components"]}
            jsonschema.validate(answer.json(), whole, jsonschema.Draft202012Validator)
        return answer


def every(client: Client, operation: str, values: dict[str, Any]) -> Iterator[Any]:
    """Yield a list page by page."""
    offset = 0
    while True:
        answer = client.ask(operation, **values, offset=offset, limit=7)
        page = answer.json()
        assert 0 < len(page) <= 7
        yield from page
        offset += len(page)
        assert answer.headers["x-total-count"].isdigit()
        if "link" not in answer.headers:
            assert offset == int(answer.headers["x-total-count"])
            return
        assert f"offset={offset}" in answer.headers["link"]


def test_a_client_made_of_the_description_reads_every_answer(tmp_path: pathlib.Path) -> None:
    """It finds its way from the list of seasons to every game; lists come whole or in pages."""
    tape = theatre.simulated("demo")
    tape.shown = len(tape.journal)
    with theatre.served(tape, tmp_path) as url:
        harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"], "the season")
        client = Client(url)
        (season,) = client.ask("listSeasons").json()
        values = {"season": season["season"]}
        for name in ("getSeason", "getLiveGame", "getGraph", "listLog", "getStatistics"):
            assert client.ask(name, **values).status_code == 200, name
        assert client.ask("getForecast", **values).json()["absent"]
        assert client.ask("getRatings").status_code == 200
        for name in ("getSeasonResults", "getSeasonCalendar"):
            assert client.ask(name, **values).status_code == 200, name
        games = []
        for event in client.ask("getSeason", **values).json()["events"]:
            place = values | {"event": event["event"]}
            assert client.ask("getEvent", **place).json()["rows"]
            listed = client.ask("listSchedule", **place).json()
            assert list(every(client, "listSchedule", place)) == listed
            games += [game["game"] for game in listed]
        assert len(games) == season["games"]["total"]
        told = client.ask("getGame", **values, game=games[0]).json()
        first = client.ask("getPly", **values, game=games[0], ply=1).json()
        assert first["fen"] == told["plies"][0]["fen"]
        assert client.ask("getGame", **values, game="nothing").status_code == 404
        for wrong in ({"limit": 0}, {"offset": -1}, {"limit": "1e3"}, {"offset": "0" * 5_000}):
            answer = client.ask("listSchedule", **place, **wrong)
            assert (answer.status_code, "allowed" in answer.json()["error"]) == (400, True), wrong
        assert httpx.get(f"{url}/api/v1/seasons/demo?limit=3").status_code == 400
        one = client.ask("listSchedule", **place, limit=1)
        again = httpx.get(one.url, headers={"If-None-Match": one.headers["etag"]})
        assert again.status_code == 304
        with httpx.stream("GET", f"{url}/api/v1/live", timeout=60) as answer:
            first_event = next(theatre.events(answer))
        described.check_event(first_event.kind, first_event.data)


def test_operations_and_schemas_have_names_of_their_own() -> None:
    """Each operation has one name, each reference a schema, and no schema is left over."""
    names = [one["get"]["operationId"] for one in described.DESCRIPTION["paths"].values()]
    assert len(names) == len(set(names))
    text = json.dumps(described.DESCRIPTION)
    wanted = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert wanted == set(described.DESCRIPTION["components"]["schemas"])
    for schema in described.DESCRIPTION["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["description"]
    assert openapi.document("https://a.example")["servers"] == [{"url": "https://a.example"}]
