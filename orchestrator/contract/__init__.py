"""Messages between orchestrator and workers, and the one JSON codec for them.

Every message carries the schema version of its writer. A reader accepts its own
version and older ones; fields are only ever added, with a default. Times of day are
milliseconds since the epoch by Redis' clock (``_ms``), durations on an engine's clock
are nanoseconds (``_ns``), depths are plies, scores are centipawns or moves to mate
from the mover's side.
"""

from __future__ import annotations

from orchestrator.contract.codec import (
    LATEST_MS,
    SCHEMA,
    DeferredMessage,
    Message,
    Moment,
    ProtocolName,
    Result,
    Side,
    dumps,
    first_wrong,
    loads,
)
from orchestrator.contract.engines import (
    EngineSpec,
    GpuUse,
    HostBench,
    SeatAddress,
    SeatAnswer,
    SeatRequest,
)
from orchestrator.contract.findings import Finding
from orchestrator.contract.ids import is_name
from orchestrator.contract.journal import (
    AttemptEnded,
    AttemptStarted,
    Draft,
    Entry,
    GameFinished,
    Token,
    table,
)
from orchestrator.contract.orders import GameOrder, Opening, PgnComments, PgnStyle
from orchestrator.contract.played import (
    Counters,
    Evaluation,
    Interruption,
    PlyRecord,
    Progress,
    Score,
    Wdl,
)
from orchestrator.contract.records import (
    Ending,
    EngineReport,
    GameRecord,
    OptionSetting,
    Outcome,
    RMobility,
)
from orchestrator.contract.rules import (
    DRAW_WORDS,
    RESIGN_WORDS,
    Adjudication,
    EvalDraw,
    EvalWin,
    FewPiecesDraw,
    Interruptions,
    Limits,
    MovesDraw,
    MovesResign,
    Syzygy,
    Timeouts,
    missing_words,
)
from orchestrator.contract.timecontrol import TimeControl

__all__ = [
    "DRAW_WORDS",
    "LATEST_MS",
    "RESIGN_WORDS",
    "SCHEMA",
    "Adjudication",
    "AttemptEnded",
    "AttemptStarted",
    "Counters",
    "DeferredMessage",
    "Draft",
    "Ending",
    "EngineReport",
    "EngineSpec",
    "Entry",
    "EvalDraw",
    "EvalWin",
    "Evaluation",
    "FewPiecesDraw",
    "Finding",
    "GameFinished",
    "GameOrder",
    "GameRecord",
    "GpuUse",
    "HostBench",
    "Interruption",
    "Interruptions",
    "Limits",
    "Message",
    "Moment",
    "MovesDraw",
    "MovesResign",
    "Opening",
    "OptionSetting",
    "Outcome",
    "PgnComments",
    "PgnStyle",
    "PlyRecord",
    "Progress",
    "ProtocolName",
    "RMobility",
    "Result",
    "Score",
    "SeatAddress",
    "SeatAnswer",
    "SeatRequest",
    "Side",
    "Syzygy",
    "TimeControl",
    "Timeouts",
    "Token",
    "Wdl",
    "dumps",
    "first_wrong",
    "is_name",
    "loads",
    "missing_words",
    "table",
]
