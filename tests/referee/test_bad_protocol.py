"""Whatever an engine says, the referee reads it as something or as nothing; it never breaks."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from orchestrator.common import errors
from worker_cpu.match import engines
from worker_cpu.protocols import uci, xboard

WORDS = st.from_regex(
    r"info|depth|score|cp|mate|lowerbound|pv|e2e4|bestmove|ponder|option|name|type|spin|default"
    r"|min|max|combo|var|check|string|button|id|author|readyok|uciok|nodes|nps|9{20}|-1|1e9|NaN"
    r"|feature|done=1|ping=1|myname=|move|resign|1-0|offer|draw|pong|Error|Illegal"
    r"|upperbound|seldepth|multipv|tbhits|option=|-spin|-combo|///|My move is :|1\. \.\.\. Nf6"
    r"|½|\x00",
    fullmatch=True,
)
LINES = st.lists(WORDS, max_size=12).map(lambda words: " ".join(words).encode()) | st.binary(
    max_size=60
)
READERS: list[Callable[[bytes], Any]] = [
    uci.tokens,
    uci.identity,
    uci.option,
    uci.best_move,
    lambda line: uci.last_search(line).score,
    lambda line: uci.is_reply(line, b"readyok"),
    lambda line: uci.MoveFinder().feed(line),
    xboard.features,
    lambda line: xboard.option(line.decode("utf-8", "replace")),
    xboard.reply,
    xboard.aside,
    xboard.last_search,
    lambda line: xboard.is_pong(line, 1),
    xboard.is_refusal,
    xboard.is_complaint,
    xboard.is_no_version_2,
    lambda line: xboard.AnswerFinder().feed(line),
]


@pytest.mark.parametrize("reader", READERS)
@hypothesis.given(line=LINES)
@hypothesis.settings(max_examples=60, deadline=None)
def test_no_line_of_an_engine_breaks_a_reader(reader: Callable[[bytes], Any], line: bytes) -> None:
    """Half words, huge numbers, bytes that are no text: an answer or none, never an exception."""
    reader(line)
    reader(line + b"\n")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "command", "options", "value", "protocol", "initStrings", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@hypothesis.given(
    content=st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode())
)
@hypothesis.settings(max_examples=80, deadline=None)
def test_any_engines_json_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """An ``engines.json``, damaged in any way, is an error that names it."""
    path = tmp_path_factory.mktemp("engines") / "engines.json"
    path.write_bytes(content)
    said = str(path)
    try:
        engines.configured("Mine", [path])
    except errors.UsageError as error:
        said = str(error)
    assert str(path) in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "a JSON list of engines"),
        (b'{"name": "Mine"}', "a JSON list of engines"),
        (b"[]", "Mine"),
        (b'[{"name": "Other", "command": "x"}]', "Other"),
        (b'[{"name": "Other", "command": "x", "ponder": true}]', "Other"),
    ],
)
def test_an_engines_json_that_cannot_be_used_says_why(
    tmp_path: pathlib.Path, content: bytes, said: str
) -> None:
    """Damage, an engine that is not in it, and what no engine may do here."""
    path = tmp_path / "engines.json"
    path.write_bytes(content)
    with pytest.raises(errors.UsageError, match=f"(?s){path}.*{said}"):
        engines.configured("Mine", [path])
