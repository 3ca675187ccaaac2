"""The operator's desk: a fresh clone, ansible, the farm's commands, and the pages to follow.

What an operator does on hosts is written on the pages, and here it is read from them: a block
is found by words that stand in it, so a step that a page does not show cannot be done.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import base
import host
import yaml

BLOCK = re.compile(r"<!-- ansible[\w ]* -->\n```sh\n(?P<text>.*?)```", re.DOTALL)
# What work leaves in a tree.
MADE = shutil.ignore_patterns(
    *(".venv", ".farm", ".*_cache", "__pycache__", "build", "dist", "*.egg-info", "node_modules")
)
PLAYBOOK = 1500.0  # s: a playbook on a busy machine
RECAP = re.compile(r"^(?P<host>\S+)\s+: (?P<counts>ok=.*)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    text: str

    def counts(self) -> dict[str, dict[str, int]]:
        """Return ansible's last lines: counts by host."""
        return {
            line["host"]: {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", line["counts"])}
            for line in RECAP.finditer(self.text)
        }

    def total(self, name: str) -> int:
        """Return one of ansible's counts over all hosts."""
        return sum(counts[name] for counts in self.counts().values())

    def tail(self, size: int = 6000) -> str:
        """Return the end of it, and in front what ansible says of tasks that failed."""
        failed = re.findall(r"^(?:fatal|failed): .*(?:\n(?!\n).*){0,25}", self.text, re.MULTILINE)
        return "\n".join([*failed[-6:], "…", self.text[-size:]])


class Desk:
    """A clone of the repository at a desk from which all hosts are reached."""

    def __init__(self, hosts: host.Hosts, log: pathlib.Path) -> None:
        """Clone the present commit, or copy the release; ``log`` gets what every command prints."""
        self.hosts, self.log = hosts, log
        self.clone = hosts.folder / "clone"
        if (base.ROOT / ".git").exists():
            base.run("git", "clone", "-q", "--no-hardlinks", base.ROOT, self.clone)
            commit = base.run("git", "-C", base.ROOT, "rev-parse", "HEAD").strip()
            base.run("git", "-C", self.clone, "checkout", "-q", "--detach", commit)
        else:  # a source distribution that was unpacked
            shutil.copytree(base.ROOT, self.clone, ignore=MADE)
        (hosts.folder / "ssh" / "config").write_text("Host *.example.org\n  User debian\n")
        self.here = self.source = self.clone
        self.production = self.clone / "ansible" / "inventory" / "production"
        self.files = self.production / "files"
        self.environment: dict[str, str] = {}
        self._members: dict[str, Sequence[str]] = {}

    @contextlib.contextmanager
    def without_source(self) -> Iterator[None]:
        """Run the operator's own programs from this repository while the clone is broken."""
        self.source = base.ROOT
        try:
            yield
        finally:
            self.source = self.clone

    # -- commands ----------------------------------------------------------------------

    def sh(self, text: str, timeout: float = PLAYBOOK, expect: int | None = 0) -> Said:
        """Run lines of bash where the last ones ended; fail with all that they printed."""
        where = self.hosts.folder / "where"
        script = f"set -eo pipefail\n{text}\npwd > {where}\n"
        told = self._run(["bash", "-c", script], self.here, timeout)
        if told.code == 0:
            self.here = pathlib.Path(where.read_text().strip())
        if expect is not None and told.code != expect:
            raise AssertionError(f"ended with {told.code}:\n{text}\n{told.tail()}")
        return told

    def _run(self, words: Sequence[str], cwd: pathlib.Path, timeout: float) -> Said:
        with self._started(words, cwd) as process:
            text, _ = process.communicate(timeout=timeout)
        with self.log.open("a") as log:
            log.write(f"$ {words[-1]}\n{text}[{process.returncode}]\n")
        return Said(process.returncode, text)

    @contextlib.contextmanager
    def _started(self, words: Sequence[str], cwd: pathlib.Path) -> Iterator[subprocess.Popen[str]]:
        """Start a command at the desk; whatever of it runs at the block's end is killed."""
        programs = pathlib.Path(sys.executable).parent
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(pathlib.Path.home()),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(self.source),  # before what the environment has installed
            "PYTHONDONTWRITEBYTECODE": "1",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.hosts.folder / "cp"),
            "ANSIBLE_LOCAL_TEMP": str(self.hosts.folder / "tmp"),
            **self.environment,
        }
        process = subprocess.Popen(
            self.hosts.desk(words),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def follow(
        self, page: str, *words: str, expect: int | None = 0, named: Mapping[str, str] | None = None
    ) -> Said:
        """Run the one block of a page in which all ``words`` stand.

        ``named``: what stands there in another's name, such as a host's, and what to write for it.
        """
        text = self._block(page, *words)
        for theirs, ours in (named or {}).items():
            text = text.replace(theirs, ours)
        return self.sh(text, expect=expect)

    @contextlib.contextmanager
    def beside(self, page: str, *words: str) -> Iterator[Callable[[], Said | None]]:
        """Run a page's block while something else is done; what is yielded says how it ended."""
        script = ["bash", "-eo", "pipefail", "-c", self._block(page, *words)]
        with self._started(script, self.here) as process:
            said: list[str] = []
            reader = threading.Thread(target=lambda: said.extend(process.stdout or ()), daemon=True)
            reader.start()

            def ended() -> Said | None:
                if process.poll() is None:
                    return None
                reader.join(10)
                return Said(process.returncode, "".join(said))

            try:
                yield ended
            finally:
                with self.log.open("a") as log:
                    log.write(f"$ {script[-1]}\n{''.join(said)}[{process.poll()}]\n")

    def _block(self, page: str, *words: str) -> str:
        path = self.clone / "docs" / "how-to" / f"{page}.md"
        blocks = [found["text"] for found in BLOCK.finditer(path.read_text())]
        fitting = [text for text in blocks if all(word in text for word in words)]
        if len(fitting) != 1:
            said = "no block" if not fitting else f"{len(fitting)} blocks"
            raise AssertionError(f"{path.name} shows {said} of commands with {' and '.join(words)}")
        return fitting[0]

    def play(self, playbook: str, *words: str, expect: int | None = 0) -> Said:
        """Run a playbook as the pages do, with more words than they show."""
        line = f"ansible-playbook playbooks/{playbook}.yml -i inventory/production"
        return self.sh(f"cd {self.clone}/ansible; {line} {' '.join(words)}", expect=expect)

    # -- the farm's own commands ----------------------------------------------------------

    def as_operator(self, name: str, control: str) -> None:
        """Speak to the farm from now on as an operator, by what the page has one export."""
        page = self._block("operate-hosts", "FARM_REDIS_URL")
        lines = page.replace("anna", name).replace(f"control.{host.DOMAIN}", control)
        said = self.sh(f"cd {self.clone}/ansible\n{lines}env | grep ^FARM_REDIS_")
        told = dict(line.split("=", 1) for line in said.text.splitlines())
        self.environment = told | {"FARM_DATA": str(self.hosts.folder / "desk")}

    def farm(self, *words: str, expect: int | None = 0) -> str:
        """Run a command of the farm at the desk; return what it prints."""
        program = pathlib.Path(sys.executable).with_name("farm")
        told = self._run([str(program), *words], self.clone, 300)
        if expect is not None and told.code != expect:
            raise AssertionError(f"farm {' '.join(words)} ended with {told.code}:\n{told.text}")
        return told.text

    def ask(self, *words: str) -> Any:
        """Return what a command of the farm prints as JSON; None while it cannot."""
        program = pathlib.Path(sys.executable).with_name("farm")
        told = self._run([str(program), *words, "--json"], self.clone, 300)
        begin = told.text.find("{")
        said = told.code in {0, 3} and begin >= 0  # `farm status` with an alarm ends with 3
        return json.loads(told.text[begin:]) if said else None

    # -- the inventory --------------------------------------------------------------------

    def groups(self, members: Mapping[str, Sequence[str]]) -> None:
        """Write which host is what, where it has changed: the page's "set host names".

        A host that is in no group any more stays as a line below ``all: hosts:``.
        """
        self._members |= members
        children = {
            group: {"hosts": {f"{name}.{host.DOMAIN}": None for name in names}}
            for group, names in self._members.items()
        }
        every = {one.full: None for one in self.hosts.up.values()}
        self._yaml(self.production / "hosts.yml", {"all": {"hosts": every, "children": children}})

    def set(self, where: str, **values: object) -> None:
        """Set variables of a group, or of a host where ``where`` is one's full name."""
        kind = "host_vars" if where.endswith(host.DOMAIN) else "group_vars"
        path = self.production / kind / f"{where}.yml"
        path.parent.mkdir(exist_ok=True)
        old = yaml.safe_load(path.read_text()) if path.exists() else {}
        self._yaml(path, {**(old or {}), **values})

    @staticmethod
    def _yaml(path: pathlib.Path, content: object) -> None:
        path.write_text("---\n" + yaml.safe_dump(content, sort_keys=False))
