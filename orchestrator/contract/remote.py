"""What a remote worker and the gateway tell each other over HTTPS, as JSON.

Each request carries the worker's access token in its ``Authorization`` header. A batch is named
by the worker before its first try, so that a claim whose answer was lost may be repeated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import pydantic

from orchestrator.contract import codec, played, records
from orchestrator.contract import orders as game_orders

MOST_GAMES = 64  # of one batch
LINE = 100  # moves told and kept of a line that an engine expects
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
Name = Annotated[str, pydantic.Field(pattern=f"^{NAME.pattern}$")]
Digest = Annotated[str, pydantic.Field(pattern=r"^[0-9a-f]{64}$")]


class BatchWanted(codec.Message):
    """A claim: what the worker can play, by the SHA-256 of each engine's files that it has."""

    schema_version: int = codec.SCHEMA
    batch: Name
    host: Name
    games: int = pydantic.Field(ge=1, le=MOST_GAMES)
    cores: int = pydantic.Field(ge=1)  # of one game
    memory_mb: int = pydantic.Field(ge=0)  # of one game
    files: tuple[Digest, ...] = pydantic.Field(max_length=1_000)


class BatchDealt(codec.Message):
    """The answer to a claim: games to play before the lease ends, or how long to wait.

    ``orders`` is empty where there is nothing to play, and ``why`` says why.
    """

    schema_version: int = codec.SCHEMA
    token: str = ""
    match: str = ""
    lease_ms: int = 0
    orders: tuple[game_orders.GameOrder, ...] = ()
    wait_ms: int = 0
    why: str = ""


class BatchNamed(codec.Message):
    """A request about a batch: to renew its lease, or to end it."""

    schema_version: int = codec.SCHEMA
    batch: Name
    token: str = pydantic.Field(max_length=64)


class BatchRenewed(codec.Message):
    """``abort`` says why the games are no longer wanted, '' while they are."""

    schema_version: int = codec.SCHEMA
    abort: str = ""


class PlayedGame(codec.Message):
    """A finished game as the worker tells it: all that the gateway checks and writes down."""

    number: int = pydantic.Field(ge=1)
    plies: tuple[played.PlyRecord, ...] = pydantic.Field(max_length=12_000)
    outcome: records.Outcome
    final_fen: str = pydantic.Field(max_length=128)
    white: records.EngineReport = records.EngineReport()
    black: records.EngineReport = records.EngineReport()
    wall_ms: int = pydantic.Field(ge=0)  # from the order to the end


class GamesTold(codec.Message):
    """Results of a batch, some at a time."""

    schema_version: int = codec.SCHEMA
    batch: Name
    token: str = pydantic.Field(max_length=64)
    games: tuple[PlayedGame, ...] = pydantic.Field(min_length=1, max_length=MOST_GAMES)


class GamesHeard(codec.Message):
    """Which games are journaled now or were before, and why others never will be.

    ``over`` says why the batch has ended beside them, '' while its games are still awaited.
    """

    schema_version: int = codec.SCHEMA
    recorded: tuple[int, ...] = ()
    refused: Mapping[int, str] = {}
    over: str = ""
