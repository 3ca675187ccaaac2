"""The documents' commands: each is parsed by the farm's own options; all are run in the long form.

Blocks marked ``sh`` are run in their order in one folder by one shell each. A comment before
a block says how: ``background`` (kept until the document's end), ``until it succeeds``, or
``ansible`` (for hosts: what it names is there; it is run by ``make lab``).
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import click
import pytest
import watched_run
import yaml

from orchestrator import commands
from orchestrator.commands import families

DOCS = watched_run.ROOT / "docs"
REFERENCE = DOCS / "reference"
DOCUMENTS = [DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))]
SHORT = {"add-an-engine", "run-a-cup"}
LONG = os.environ.get("FARM_LONG") == "1"
PLAYED = [path for path in DOCUMENTS if LONG or path.stem in SHORT]
BLOCK = re.compile(r"(?:<!-- (?P<how>[\w ]+) -->\n)?```sh\n(?P<text>.*?)```", re.DOTALL)
PATIENCE = 240.0  # s: the demo season takes a minute on a free machine


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of commands and how it is run."""

    how: str
    text: str


def blocks(path: pathlib.Path) -> list[Block]:
    """Return a document's blocks in their order."""
    return [Block(one["how"] or "", one["text"]) for one in BLOCK.finditer(path.read_text())]


def lines(path: pathlib.Path) -> Iterator[list[str]]:
    """Yield the words of each command line of the farm in a document."""
    for block in blocks(path):
        bare = re.sub(r"<< ?'?TOML'?\n.*?\nTOML\n", "\n", block.text, flags=re.DOTALL)
        for line in bare.replace("\\\n", " ").splitlines():
            for part in re.split(r"\s*(?:\||>|&&)\s*", line):
                words = shlex.split(part, comments=True)
                if words[:1] == ["farm"]:
                    yield words[1:]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_every_command_is_one_the_farm_understands(path: pathlib.Path) -> None:
    """Command, options and arguments of each line are parsed by the program itself."""
    told = list(lines(path))
    hosts_alone = all(block.how == "ansible" for block in blocks(path))
    assert told or hosts_alone, f"{path.name} shows no command"
    for line in told:
        words = line
        command: click.Command = commands.farm
        context = click.Context(command, info_name="farm")
        while isinstance(command, click.Group):
            name, found, words = command.resolve_command(context, words)
            assert found is not None, line
            command = found
            context = click.Context(command, info_name=name, parent=context)
        if "--help" not in words:
            command.parse_args(context, list(words))


@pytest.mark.parametrize("path", PLAYED, ids=lambda path: path.stem)
def test_every_command_of_a_document_runs(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """In order, in an empty folder, each block ends with exit code 0."""
    programs = pathlib.Path(sys.executable).parent
    hidden = {"FARM_REDIS_URL", "FARM_DATA", "FARM_HALL"}
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    env |= {"PATH": f"{programs}:{env['PATH']}:/usr/games", "FARM_LOG": "json"}
    running: list[subprocess.Popen[bytes]] = []
    try:
        for number, block in enumerate(blocks(path)):
            if block.how == "background":
                log = (tmp_path / f"background-{number}.log").open("wb")
                shell = ["bash", "-ec", f"exec {block.text.strip()}"]
                started = subprocess.Popen(
                    shell, cwd=tmp_path, env=env, stdout=log, stderr=log, start_new_session=True
                )
                running.append(started)
                log.close()
            elif block.how in {"ansible", "docker"}:
                elsewhere(block.text)
            else:
                run(block, tmp_path, env)
    finally:
        for process in running:
            end(process)


def run(block: Block, folder: pathlib.Path, env: dict[str, str]) -> None:
    """Run a block; one that may take its time is tried again."""
    deadline = time.monotonic() + (PATIENCE if block.how == "until it succeeds" else 0)
    while True:
        shell = ["bash", "-eo", "pipefail", "-c", block.text]
        done = subprocess.run(
            shell, cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode in {0, 141}:  # 141: head has seen enough
            return
        logs = "".join(path.read_text()[-2000:] for path in folder.glob("background-*.log"))
        told = f"{block.text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{logs}"
        assert time.monotonic() < deadline, told
        time.sleep(1)


def elsewhere(text: str) -> None:
    """Look whether the files of a block are there: ``make lab`` runs them, and the image forms."""
    for line in text.replace("\\\n", " ").splitlines():
        program, *words = shlex.split(line, comments=True) or [""]
        if program == "ansible-playbook":
            assert (watched_run.ROOT / "ansible" / words[0]).exists(), line
        elif program.startswith("scripts/"):
            assert (watched_run.ROOT / program).exists(), line
        elif (program, *words[:2]) == ("docker", "build", "-f"):
            assert (watched_run.ROOT / words[2]).exists(), line


def end(process: subprocess.Popen[bytes]) -> None:
    """End `farm up` at once, as two Ctrl-C do."""
    for _ in range(2):
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def test_every_setting_of_a_role_that_a_page_names_exists() -> None:
    """Pages and runbooks name variables of roles and inventory by their whole names."""
    known, roles = set[str](), list[str]()
    for path in (watched_run.ROOT / "ansible" / "roles").glob("*/meta/argument_specs.yml"):
        roles.append(path.parts[-3])
        known |= yaml.safe_load(path.read_text())["argument_specs"]["main"]["options"].keys()
    playbooks = (watched_run.ROOT / "ansible" / "playbooks").rglob("*.yml")
    known |= {"gpu_boxes"} | {
        word for path in playbooks for word in re.findall(r"\bupgrade_\w+", path.read_text())
    }
    names = re.compile(rf"`((?:{'|'.join([*roles, 'upgrade'])})_[a-z_]+)[`:=]")
    pages = [*DOCS.rglob("*.md"), *(watched_run.ROOT / "ansible").rglob("*.md")]
    for page in (one for one in pages if REFERENCE not in one.parents):  # those are the program's
        assert set(names.findall(page.read_text(encoding="utf-8"))) <= known, page


def test_an_extra_of_a_file_is_asked_for_as_pipx_takes_it() -> None:
    """Pipx (1.1 to 1.18) drops the extra, or refuses it, behind a file's name without a slash."""
    command = re.compile(r"(?:pipx install|uvx --from) '([^']*\[embedded\])'")
    pages = [watched_run.ROOT / "README.md", *DOCS.rglob("*.md")]
    asked = [(page, spec) for page in pages for spec in command.findall(page.read_text("utf-8"))]
    assert {page.name for page, _ in asked} == {"README.md", "tutorial.md"}
    for page, spec in asked:
        assert "/" in spec, (page, spec)


def test_every_page_is_found_in_the_menu() -> None:
    """A page stands in the site's menu, or in the list of its folder, which does."""
    menu = (watched_run.ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in DOCS.rglob("*.md"):
        index = path.with_name("index.md")
        listed = index.exists() and f"]({path.name})" in index.read_text(encoding="utf-8")
        assert listed or f": {path.relative_to(DOCS)}\n" in menu, path


def test_the_site_is_built_with_strict_links(tmp_path: pathlib.Path) -> None:
    """No page leads to a page or an anchor that is not there (with --quiet none is counted)."""
    program = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)]
    done = subprocess.run(
        program, cwd=watched_run.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tutorial" / "index.html").exists()


def test_the_generated_pages_are_what_the_program_says() -> None:
    """Commands, metrics, messages and clauses are written down as they are now.

    By a process of its own: Click keeps the help option that a command was first asked with.
    """
    program = [sys.executable, str(watched_run.ROOT / "scripts" / "reference.py"), "--check"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_reference_pages_are_complete() -> None:
    """They name every command, and parts of each other kind."""
    pages = {path.stem: path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.md")}
    now = [families.ALIASES.get(name, name).strip() for name in commands.COMMANDS]
    assert [name for name in now if f"## farm {name}\n" not in pages["commands"]] == []
    assert "`farm_redis_up`" in pages["metrics"]
    assert "## GameFinished" in pages["contract"]
    assert "| S16-11b | " in pages["clauses"]
