"""The images of ``deploy``: their Dockerfiles' steps, run one by one in a root of their own.

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

CONTROL, WORKER, HALL = (
    base.ROOT / "deploy" / name / "Dockerfile" for name in ("compose", "worker", "hall")
)
SCRIPT = pathlib.Path(__file__).with_name("image.sh")


def instructions(file: pathlib.Path) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile, each with its words."""
    text = re.sub(r"^#.*\n", "", file.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    lines = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
    return [(kind, words) for kind, words in lines]


def context(folder: pathlib.Path) -> pathlib.Path:
    """Copy what .dockerignore lets through of this tree, as a builder would get it."""
    made = folder / "context"
    lines = (base.ROOT / ".dockerignore").read_text().splitlines()
    left = shutil.ignore_patterns(*(line[3:] for line in lines if line.startswith("**/")))
    for name in (line[1:] for line in lines if line.startswith("!")):
        place, target = base.ROOT / name, made / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            shutil.copytree(place, target, ignore=left)
        else:
            shutil.copy2(place, target)
    return made


def entry_point(file: pathlib.Path) -> str:
    """Return what an image starts, for a shell."""
    return shlex.join(json.loads(dict(instructions(file))["ENTRYPOINT"]))


def built(file: pathlib.Path, folder: pathlib.Path, *asked: str) -> str:
    """Build an image below a folder, run commands as its user, and return what was printed."""
    steps, environment, user = list[str](), "PATH=/usr/bin:/bin", "0:0"
    for kind, words in instructions(file):
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
    """Build the control side's; its farm, and what takes backups off it, start as its user."""
    assert dict(instructions(CONTROL))["FROM"] == f"debian:{base.SUITE}-slim", "another Debian"
    refused = "farm-offsite /nowhere || echo refused"
    asked = (f"{entry_point(CONTROL)} --version", "id -u", "restic version", refused)
    said = built(CONTROL, folder, *asked).splitlines()
    for line in ("10001", "refused"):
        assert line in said, said
    assert any(line.startswith("farm, version ") for line in said), said
    base.run("rm", "-rf", "--one-file-system", folder)
