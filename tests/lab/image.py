"""The image of ``deploy/compose``: its Dockerfile's steps, run one by one in a root of their own.

No container engine is needed: ``RUN`` in a bare Debian root, ``COPY`` of what ``.dockerignore``
lets through, then the image's entry point as its user, with the environment that the file sets.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import base

DOCKERFILE = base.ROOT / "deploy" / "compose" / "Dockerfile"
SCRIPT = pathlib.Path(__file__).with_name("image.sh")


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, each with its words."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    lines = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
    return [(kind, words) for kind, words in lines]


def context(folder: pathlib.Path) -> pathlib.Path:
    """Copy what a builder would get of this checkout: committed files that .dockerignore allows."""
    made = folder / "context"
    allowed = (base.ROOT / ".dockerignore").read_text().splitlines()
    parts = [line[1:] for line in allowed if line.startswith("!")]
    listed = base.run("git", "-C", base.ROOT, "ls-files", "-z", "--", *parts)
    for name in filter(None, listed.split("\0")):
        target = made / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(base.ROOT / name, target)
    return made


def built(folder: pathlib.Path, *asked: str) -> str:
    """Build the image below a folder, run commands as its user, and return what was printed."""
    steps, environment, user = list[str](), "PATH=/usr/bin:/bin", "0:0"
    for kind, words in instructions():
        if kind == "RUN":
            steps.append(f"run {words}")
        elif kind == "COPY":
            steps.append(f"copy {words}")
        elif kind == "ENV":
            environment = words
        elif kind == "USER":
            user = words
    steps += [f"as {user} cd /var/lib/farm; export {environment}; {words}" for words in asked]
    layers = (base.wheels(), base.packages(), base.root())
    place = [":".join(map(str, layers)), str(folder), str(context(folder))]
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", SCRIPT, *place],
        input="\n".join(steps) + "\n",
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,  # of a busy machine: it installs all that the lock names
    )
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(steps)}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def works(folder: pathlib.Path) -> None:
    """Build the image; the farm, and what takes backups off the host, start as its user."""
    kinds = dict(instructions())
    assert kinds["FROM"] == f"debian:{base.SUITE}-slim", "the laboratory's root is another Debian"
    farm = "".join(json.loads(kinds["ENTRYPOINT"]))
    refused = "farm-offsite /nowhere || echo refused"
    said = built(folder, f"{farm} --version", "id -u", "restic version", refused).splitlines()
    for line in ("10001", "refused"):
        assert line in said, said
    assert any(line.startswith("farm, version ") for line in said), said
    subprocess.run(["rm", "-rf", "--one-file-system", folder], check=True)
