"""The help of every command, and the documents that a newcomer opens first."""

from __future__ import annotations

import ast
import pathlib
import re
import shlex
from collections.abc import Iterator

import click
import pytest
from click import testing

from orchestrator import commands
from orchestrator.commands import console, families
from worker_cpu.match import arguments, engines, programs, quick_match

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = re.compile(r"Examples?:\s*(?P<first>.*)")
PROGRAM = {"farm": 1, "celery": 4}  # words before the command's own: celery -A orchestrator farm


def walk(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """Yield a command and all below it, each with its context."""
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, f"{context.command_path} lists {name} and has it not"
            yield from walk(inner, click.Context(inner, info_name=name, parent=context))


EVERY = {
    context.command_path: context
    for context in walk(commands.farm, click.Context(commands.farm, info_name="farm"))
}


def examples(text: str) -> Iterator[list[str]]:
    """Yield the words of each command line that a help shows, without the program's name."""
    found = EXAMPLE.search(text)
    shown = "" if found is None else text[found.start("first") :].replace("\\\n", " ")
    for line in shown.splitlines():
        bare = re.split(r"\s{3,}", line.strip())[0]  # what stands behind says what it does
        for part in re.split(r"\s*(?:\||>|;|&&)\s*", bare):
            program = part.partition(" ")[0]
            if program in PROGRAM:
                yield shlex.split(part)[PROGRAM[program] :]


@pytest.mark.parametrize("path", EVERY)
def test_every_help_shows_an_example(path: str) -> None:
    """Somebody who reads the help of any command sees how it is typed."""
    assert EXAMPLE.search(EVERY[path].command.help or ""), f"`{path} --help` has no Example:"


@pytest.mark.parametrize("path", EVERY)
def test_every_help_says_what_the_command_does(path: str) -> None:
    """The list of commands has a sentence for each."""
    assert EVERY[path].command.get_short_help_str(200)


@pytest.mark.parametrize("path", EVERY)
def test_every_option_says_what_it_does(path: str) -> None:
    """Its name and its default alone leave somebody who is tired to guess."""
    options = [one for one in EVERY[path].command.params if isinstance(one, click.Option)]
    texts = {option.opts[0]: re.sub(r"\[.*\]", "", option.help or "").strip() for option in options}
    silent = [name for name, text in texts.items() if not text]
    assert not silent, f"{path}: give {', '.join(silent)} a text: help=... of its click.option"


def test_the_list_of_commands_has_the_line_that_each_begins_with() -> None:
    """It is read from the source of a command, which is not loaded for it."""
    farm = commands.farm
    assert isinstance(farm, commands.FarmGroup)
    context = click.Context(farm, info_name="farm")
    for name in farm.list_commands(context):
        loaded = EVERY[f"farm {name}"].command
        outline = farm.outline(context, name)
        assert outline.get_short_help_str(200) == loaded.get_short_help_str(200), name


def test_every_command_has_one_place_and_answers_to_its_name_alone() -> None:
    """A family's or the farm's own; what it was called before there were families is taken."""
    farm = commands.farm
    assert isinstance(farm, commands.FarmGroup)
    registered = {*commands.COMMANDS, *commands._registered()}
    own = set(farm.list_commands(click.Context(farm))) - set(families.FAMILIES)
    bases = {family.base for family in families.FAMILIES.values()} - {""}
    words = [name for family in families.FAMILIES.values() for name in family.verbs.values()]
    assert len(words) == len(set(words))
    assert registered == own | set(words) | bases
    for name, said in families.ALIASES.items():
        path = f"farm {said.strip()}"
        before = farm.get_command(click.Context(farm), name)
        assert before is not None
        if name not in bases:
            assert before is EVERY[path].command, name


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("Example: farm launch x.toml && farm watch", "farm season launch x.toml && farm watch"),
        ("see `farm games`, `farm release-hall`", "see `farm game list`, `farm host release`"),
        ("    farm hosts forget h1 | farm test a", "    farm host forget h1 | farm match test a"),
        ("`farm season launch`, `farm match test`", "`farm season launch`, `farm match test`"),
        ("the farm games of a farm test", "the farm games of a farm test"),
    ],
)
def test_help_shows_commands_as_they_are_said_now(told: str, said: str) -> None:
    """Command lines are renamed, sentences are not, and nothing twice."""
    assert families.said_now(told).endswith(said)
    assert families.said_now(families.said_now(told)) == families.said_now(told)


def test_a_word_that_no_family_has_is_refused_with_the_nearest() -> None:
    """The family is named, and the command that was probably meant."""
    done = testing.CliRunner().invoke(commands.farm, ["season", "lanch"])
    assert done.exit_code == 2
    assert "No such command 'lanch' in `farm season`. Did you mean 'launch'?" in done.output


def test_a_word_of_another_family_is_named_with_it() -> None:
    """Engines are withdrawn by `farm engine`, whatever else a season's family changes."""
    done = testing.CliRunner().invoke(commands.farm, ["season", "withdraw", "stockfish"])
    assert done.exit_code == 2
    assert "'withdraw' in `farm season`. It is `farm engine withdraw`." in done.output


def test_every_example_is_understood() -> None:
    """Command, options and values of the examples are parsed by the program itself."""
    told = [line for context in EVERY.values() for line in examples(context.command.help or "")]
    assert len(told) > len(EVERY) / 2
    for line in told:
        parse(line)


def parse(words: list[str]) -> None:
    """Let click parse a command line; a file that is not here is nobody's mistake."""
    command: click.Command = commands.farm
    context = click.Context(command, info_name="farm")
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert found is not None, words
        command, context = found, click.Context(found, info_name=name, parent=context)
    try:
        command.parse_args(context, list(words))
    except click.BadParameter as wrong:
        if "does not exist" not in str(wrong):
            raise AssertionError(f"{context.command_path} {words}: {wrong}") from wrong


BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", ["match.md", "test-matches.md"])
def test_the_command_lines_of_the_pages_about_matches_are_read(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line of their blocks: options by click, switches of `farm match` by its own reader."""
    monkeypatch.setattr(programs, "command", lambda text, *_, **__: [text])
    monkeypatch.setattr(programs, "directory", lambda text, *_: pathlib.Path(text))
    listed = engines.Wishes({"cmd": "rook", "name": "Rook"})  # what engines.json says
    monkeypatch.setattr(engines, "configured", lambda _: listed)
    blocks = "".join(BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8")))
    told = [line for line in blocks.replace("\\\n", " ").splitlines() if line.startswith("farm ")]
    assert len(told) > 10
    for line in told:
        words = shlex.split(line, comments=True)[1:]
        words = words[: words.index(">")] if ">" in words else words
        parse(words)
        if words[0] == "match" and words[1] not in families.FAMILIES["match"].verbs:
            arguments.read(quick_match.whole(words[1:]))


SAID = re.compile(r"`(farm [^`]+)`")
KINDS = {"SEASON", "GAME", "EVENT", "HALL", "HOST", "JOURNAL", "MATCH", "FILE"}  # NAME says less


def sources() -> list[pathlib.Path]:
    """Return the program's own modules."""
    rooms = ("orchestrator", "worker_cpu", "worker_gpu")
    found = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    assert len(found) > 300
    return found


def in_sentences() -> Iterator[tuple[str, list[str]]]:
    """Yield each command that a page or the program's own texts name, with where it stands."""
    pages = [path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts]
    assert len(pages) > 100
    for path in (*pages, *sources()):
        text = re.sub(r"(?ms)^ *```.*?^ *```", "", path.read_text(encoding="utf-8"))
        for line in SAID.findall(text):
            said = families.said_now("`" + re.sub(r'["\s]+', " ", line))[1:]
            yield str(path.relative_to(ROOT)), said.split(" ")


def test_commands_in_sentences_have_such_options_and_take_what_is_named() -> None:
    """What takes a journal is not said to take a season: whoever types it is refused."""
    wrong = []
    for where, words in in_sentences():
        path, rest = words[0], words[1:]
        while rest and f"{path} {rest[0]}" in EVERY:
            path, rest = f"{path} {rest[0]}", rest[1:]
        command = EVERY[path].command
        if isinstance(command, click.Group) or path == "farm match play":
            continue  # a family's name alone; `farm match` reads cutechess' switches
        options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        named = [re.split(r"[^\w-]", word)[0] for word in rest if re.match(r"--\w", word)]
        wrong += [(where, path, name) for name in named if name not in {*options, "--help"}]
        given = rest[0].split("…")[0] if rest else ""
        arguments_ = [one for one in command.params if isinstance(one, click.Argument)]
        taken = {word for one in arguments_ for word in (one.metavar or one.name or "").split("|")}
        kinds = {word.strip("[].").upper() for word in taken} & KINDS
        wrong += [(where, path, given)] if given in KINDS and kinds and given not in kinds else []
    assert wrong == [], "(where, command, what it does not take): write it as `--help` says"


USUAL = {"farm match play"}  # what a family does where no word of it is said


def test_every_command_is_on_a_page_that_people_read() -> None:
    """Beside the generated reference: `farm season x`, or as the next word behind such a one."""
    written = {"reference", "decisions"}  # by a program, and for programmers
    pages = [path for path in (ROOT / "docs").rglob("*.md") if not written & {*path.parts}]
    text = re.sub(r"\s+", " ", " ".join(path.read_text(encoding="utf-8") for path in pages))
    unsaid = []
    for path in EVERY.keys() - USUAL:
        *family, word = path.split()
        listed = rf"`{' '.join(family)} [^`]+`(?: `[^`]+`)* `{word}[ `]"
        if not re.search(rf"{path}(?![\w-])", text) and not re.search(listed, text):
            unsaid.append(path)
    assert unsaid == [], "say in docs/operating.md, or where its reader looks, what it does"


SHELL = (
    "docs/**/*.md",
    "*.md",
    "orchestrator/seasons/*.toml",
    "orchestrator/**/*.js",
    "orchestrator/**/*.json",
    "orchestrator/**/*.html",
    "Makefile",
    "ansible/**/*",
    "deploy/**/*",
)
IN_CODE = re.compile(r"^ *```.*?^ *```|`[^`]+`", re.DOTALL | re.MULTILINE)
BEFORE = re.compile(rf"(?<![\w.-])farm\s+(?:{'|'.join(families.ALIASES)})(?![\w-])")
# What was said before is said where the change is: "are taken as before, until release 0.3".
TOLD = {("CHANGELOG.md", "farm launch")}


def test_documents_say_commands_as_they_are_said_now() -> None:
    """No command line of documents, units, playbooks and season files has a name of before."""
    paths = {path for pattern in SHELL for path in ROOT.glob(pattern) if path.is_file()}
    assert len(paths) > 200, "nearly nothing was read"
    for path in paths:
        text = path.read_bytes().decode(errors="replace")
        parts = IN_CODE.findall(text) if path.suffix == ".md" else [text]
        name = str(path.relative_to(ROOT))
        said = {found for part in parts for found in BEFORE.findall(part)}
        before = {words for words in said if (name, words) not in TOLD}
        now = ", ".join(families.said_now(f"`{words}`") for words in before)
        assert not before, f"{name} has {before}: write {now}"


def literals(path: pathlib.Path) -> Iterator[str]:
    """Yield the texts of a source that people may be shown; what helps say is renewed."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    explained = [
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and node not in explained:
            yield str(node.value)


def test_the_program_says_commands_as_they_are_said_now() -> None:
    """Neither a message nor the console, from which directors learn them, has a name of before."""
    texts = [(path, text) for path in sources() for text in literals(path)]
    assert len(texts) > 10_000
    assert [(path, text) for path, text in texts if BEFORE.search(text)] == []
    for act in (*console.ACTS, console.DECIDE, console.DISMISS):
        assert f"farm {act.words[0]} {act.words[1]}" in EVERY, act
    assert {f"farm {name}" for name in (*console.LOOKS, *console._commands())} <= EVERY.keys()
    assert not families.ALIASES.keys() & console.LOOKS


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_the_first_documents_lead_somewhere(name: str) -> None:
    """Every relative link and every picture is a file of the repository."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text):
        assert (ROOT / link).exists(), f"{name}: {link}"
