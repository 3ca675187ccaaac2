"""Every word of both programs' manuals: what docs/match.md says of it is what comes of it."""

from __future__ import annotations

import pathlib
import re
import shlex
from collections.abc import Iterator

import pytest

from orchestrator.common import errors
from worker_cpu.match import arguments, command, engines, programs

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "match.md"
ROW = re.compile(r"^\| `(.+?)` \| (both|cutechess-cli|fastchess) \| (done|note|refused)\b(.*) \|$")
ENGINES = ("-engine", "cmd=one", "tc=1", "-engine", "cmd=other", "tc=1")
BESIDE = {  # what has no effect alone
    "-seeds": "-tournament gauntlet",
    "-srand": "-variant fischerandom",
    "-crc32": "-pgnout games.pgn",
}
FIRST = {*command.HELP_WORDS, *command.VERSION_WORDS, command.COMPLIANCE}  # read before the rest
# The switches (with a dash) and the keys behind them, as the two manuals list them.
CUTECHESS = """-help -version -engines -engine -each -variant -concurrency -draw movenumber
movecount score -resign twosided -maxmoves -tb -tbpieces -tbignore50 -tournament -event -games
-rounds -sprt elo0 elo1 alpha beta -ratinginterval -outcomeinterval -debug -openings file format
order plies start policy -bookmode -pgnout min fi -epdout -recover -repeat -noswap -reverse
-seeds -site -srand -wait -resultformat conf name cmd dir arg initstr stderr restart trust proto
tc st timemargin book bookdepth whitepov depth nodes ponder tscale debug option.Hash"""
FASTCHESS = """-version -help -quick cmd book -concurrency -force-concurrency -rounds -games
-repeat -sprt elo0 elo1 alpha beta model -tournament -seeds -variant -noswap -reverse -wait
-each -engine name args tc timemargin st nodes restart plies depth proto dir option.Hash -draw
movenumber movecount score -resign twosided -maxmoves -tb -tbpieces -tbignore50 -tbadjudicate
-openings file format order start policy -srand -output -pgnout notation append seldepth nps
hashfull tbhits pv timeleft latency min match_line -epdout -event -site -ratinginterval
-scoreinterval -report penta -config discard outname stats -recover -autosaveinterval
--compliance -crc32 pgn -check-mate-pvs -show-latency -testEnv -strict -log level compress
realtime engine -use-affinity -startup-ms -ucinewgame-ms -ping-ms -debug"""


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engines of the words are not here."""
    monkeypatch.setattr(programs, "command", lambda text, *_, **__: [text])
    monkeypatch.setattr(programs, "directory", lambda text, *_: pathlib.Path(text))
    monkeypatch.setattr(
        engines, "configured", lambda name: engines.Wishes({"cmd": name, "name": name})
    )


def rows() -> Iterator[tuple[list[str], str, str, str]]:
    """Yield words, the manual, what comes of them, and what is said of it."""
    for line in DOCS.read_text(encoding="utf-8").splitlines():
        if found := ROW.match(line):
            yield shlex.split(found[1]), found[2], found[3], found[4]


def read(words: list[str]) -> arguments.Settings:
    """Read a line of the table beside two engines; its own take the first one's place."""
    switch = words[0]
    if switch == "-quick":
        return arguments.read(words)
    if switch == "-engine":
        clock = [] if any(word.startswith(("tc=", "st=")) for word in words) else ["tc=1"]
        every = ["-each", "book=book.bin"] if "book=book.bin" in words else []
        return arguments.read([*words, *clock, *ENGINES[3:], *every])
    return arguments.read([*ENGINES, *words, *BESIDE.get(switch, "").split()])


@pytest.mark.parametrize(
    ("words", "comes", "said"), [pytest.param(w, c, s, id=" ".join(w)) for w, _, c, s in rows()]
)
def test_what_the_table_says_comes_of_it(words: list[str], comes: str, said: str) -> None:
    """Done without a note; taken with one; refused, with what to write."""
    if words[0] in FIRST:
        assert comes == "done"
    elif comes == "refused":
        with pytest.raises(errors.UsageError, match=r"not supported: |allowed: "):
            read(words)
        assert said.startswith(": ")
    else:
        mine = [one for one in read(words).remarks if one.startswith(words[0])]
        assert bool(mine) == (comes == "note"), mine


@pytest.mark.parametrize(
    ("manual", "text"), [("cutechess-cli", CUTECHESS), ("fastchess", FASTCHESS)]
)
def test_the_table_has_every_word_of_the_manuals(manual: str, text: str) -> None:
    """Each switch and each key stands in a row of its program."""
    mine = [words for words, whose, _, _ in rows() if whose in (manual, "both")]
    found = {word.partition("=")[0] for words in mine for word in words}
    assert not set(text.split()) - found
