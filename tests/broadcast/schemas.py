"""JSON Schemas of TCEC's files: the fields that its viewers read, and their types."""

from __future__ import annotations

from typing import Any

STRING, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
RESULT = {"enum": ["1-0", "0-1", "1/2-1/2", "*"]}


def table(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the schema of an object without other fields."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def rows(of: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an array."""
    return {"type": "array", "items": of}


def by_name(of: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with free keys."""
    return {"type": "object", "additionalProperties": of}


SCHEDULE = rows(
    table(
        {"Game": INTEGER, "White": STRING, "Black": STRING},
        {
            "Start": {"type": "string", "pattern": r"^\d\d:\d\d:\d\d on \d{4}\.\d\d\.\d\d$"},
            "Result": RESULT,
            "Termination": STRING,
            "Duration": {"type": "string", "pattern": r"^\d\d:\d\d:\d\d$"},
            "Moves": INTEGER,
            "WhiteEv": STRING,
            "BlackEv": STRING,
            "ECO": STRING,
            "Opening": STRING,
            "FinalFen": STRING,
            "RMobilityResult": {"type": "string", "pattern": r"^-?G\d+\.\d$"},
        },
    )
)
SCORE = table(
    {
        "Game": INTEGER,
        "Result": {"enum": [0, 0.5, 1]},
        "Winner": {"enum": ["White", "Black", "None"]},
    }
)
CELL = table(
    {"H2h": NUMBER, "Text": {"type": "string", "pattern": "^[01=]*$"}, "Scores": rows(SCORE)}
)
_COUNTS = ("Games", "GamesAsWhite", "GamesAsBlack", "WinsAsWhite", "WinsAsBlack", "LossAsWhite")
LINE = table(
    {
        "Rank": INTEGER,
        "Abbreviation": {"type": "string", "pattern": "^..$"},
        "Rating": INTEGER,
        "Elo": NUMBER,
        "Score": NUMBER,
        **dict.fromkeys((*_COUNTS, "LossAsBlack", "Strikes"), INTEGER),
        "Neustadtl": NUMBER,
        "Performance": NUMBER,
        "Results": by_name(CELL),
    },
    {"RMobilityScore": NUMBER, "Opponent": STRING},
)
CROSSTABLE = table({"Event": STRING, "Type": STRING, "Order": rows(STRING), "Table": by_name(LINE)})
TOURNAMENT = table(
    {
        "startgame": INTEGER,
        "season": STRING,
        "cup": INTEGER,
        "twitchaccount": STRING,
        "link": STRING,
    }
)
SUB = table(
    {"id": STRING, "no": STRING, "dno": STRING, "menu": STRING, "abb": STRING, "url": STRING},
    {"frc": INTEGER},
)
SEASON = table(
    {"download": STRING, "proceed": INTEGER, "sub": rows(SUB)},
    {"seasonName": STRING, "eventtag": STRING, "cup": INTEGER, "frc": INTEGER},
)
GAMELIST = table({"Seasons": by_name(SEASON)})
WINNERS = rows(table(dict.fromkeys(("name", "link", "winner", "runner", "score", "date"), STRING)))
_CRASH = ("gameno", "White", "Black", "Reason", "decision", "action", "Result", "Log")
CRASH = rows(table(dict.fromkeys(_CRASH, STRING)))
MATCH = table(
    {
        **dict.fromkeys(("Engines", "Winner", "Runner", "Points", "Crashes"), STRING),
        "Games": INTEGER,
        "Score": {"type": "string", "pattern": "^[01=]*$"},
        "Gamesno": STRING,
    }
)
TEAM = table({"name": STRING, "winner": {"enum": [1, -1]}, "score": NUMBER, "flag": STRING})
LEAD = table(
    {"name": STRING, "origscore": NUMBER, "lead": INTEGER, "score": INTEGER, "manual": INTEGER}
)
PAIR = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}
CUP = table(
    {
        "EventTable": by_name(MATCH),
        "CrossTable": by_name(
            table({"Event": STRING, "Order": rows(STRING), "Table": by_name({})})
        ),
        "teams": rows(rows(TEAM)),
        "matchresults": rows(rows(LEAD)),
        "results": rows(rows(rows(PAIR))),
    }
)
_OPTION = table({"Name": STRING, "Value": STRING})
_STEP = table(dict.fromkeys(("m", "from", "to", "fen"), STRING))
MOVE = table(
    {
        **dict.fromkeys(("m", "from", "to", "fen"), STRING),
        "book": {"type": "boolean"},
        **dict.fromkeys(("d", "sd", "mt", "s", "n", "tb", "ph", "wv"), STRING),
        "material": table(dict.fromkeys("pnbrq", INTEGER)),
        "adjudication": table(dict.fromkeys(("FiftyMoves", "Draw", "ResignOrWin"), INTEGER)),
        "pv": table({"San": STRING, "Moves": rows(_STEP)}),
    },
    dict.fromkeys(("tl", "h", "pd"), STRING),
)
_SENT = ("gameChanged", "numMovesToSend", "totalSent", "lastMoveLoaded", "Users", "Round")
LIVE = table(
    {
        "Headers": by_name(STRING),
        "WhiteEngineOptions": rows(_OPTION),
        "BlackEngineOptions": rows(_OPTION),
        "Moves": rows(MOVE),
        **dict.fromkeys(_SENT, INTEGER),
    }
)
_EVAL = {
    "depth": {"type": "string", "pattern": r"^\d+/\d+$"},
    "eval": {"anyOf": [NUMBER, {"type": "string", "pattern": r"^-?M\d+$"}]},
    "nodes": INTEGER,
    "pv": {"type": "string", "pattern": r"^\d+\.(\.\.)? \S+"},
    "speed": {"type": "string", "pattern": r"^\d+(\.\d)?[kMG]?n/s$"},
    "tbhits": INTEGER,
}
_WDL = {"wdl": {"type": "string", "pattern": r"^\d+ \d+ \d+$"}}
_KIBITZER = {
    **dict.fromkeys(("engine", "desc"), STRING),
    "round": {"type": ["number", "null"]},
    "gameno": INTEGER,
}
LIVE_EVAL = table(
    {**_KIBITZER, "moves": {"type": "array", "items": table(_EVAL, _WDL), "minItems": 1}}
)
DATA = table({**_KIBITZER, **_EVAL, "color": {"enum": [0, 1]}, "plynum": INTEGER}, _WDL)
FILES = {
    "schedule.json": SCHEDULE,
    "crosstable.json": CROSSTABLE,
    "tournament.json": TOURNAMENT,
    "gamelist.json": GAMELIST,
    "winners.json": WINNERS,
    "crash.json": CRASH,
    "Eventcrosstable.json": CUP,
    "live.json": LIVE,
    **dict.fromkeys(("liveeval.json", "liveeval1.json"), LIVE_EVAL),
    **dict.fromkeys(("data.json", "data1.json"), DATA),
}
