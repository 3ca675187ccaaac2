"""Faults of old: put back into the clone, each must turn the laboratory red at the step named.

``make lab UNDO=3`` puts back what point 3 took away. An edit whose text is not there any more
fails at once, so that this list is kept.
"""

from __future__ import annotations

import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True)
class Edit:
    """A text of a file that is replaced; in all files that match, where it stands."""

    files: str
    old: str
    new: str


@dataclasses.dataclass(frozen=True)
class Fault:
    """What was wrong, how it is put back, which form of the laboratory finds it, and where."""

    words: str
    edits: tuple[Edit, ...]
    form: str
    red_at: str


ACCESS = "orchestrator/ops/acl.py"
SANDBOX = "worker_cpu/engines/sandbox.py"
VISIBLE = "worker_cpu/engines/mounts.py"
HALL = "deploy/systemd/farm-hall@.service"

SECRETS = "ansible/roles/program/tasks/secrets.yml"
REDIS = "ansible/roles/redis/tasks/main.yml"
REDIS_FILES = "ansible/roles/redis/tasks/files.yml"
USERS = "  when: redis_acl_src | length > 0\n  no_log: true\n"
NOTIFY = "  notify: Restart what keeps what it was started with\n"
SITE = "ansible/playbooks/site.yml"
INSTALL = "deploy/install/install-farm"
SEASONS = "orchestrator/metrics/seasons.py"
WAITS = """

def _waits(state: season_state.SeasonState) -> bool:
    return state.ready_game() is not None and state.running is None


def waiting("""
NOTHING = "  ansible.builtin.debug:\n    msg: nothing\n"

FAULTS = {
    "1": Fault(
        "the default user may do nothing, so Redis drops transactions when it loads them",
        (Edit(ACCESS, "{' '.join(DEFAULT)}", "off resetkeys resetchannels -@all"),),
        "short",
        "a season is launched",
    ),
    "2": Fault(
        "the sandbox asks for a name of its own, which the hall's unit forbids",
        (
            Edit(
                SANDBOX,
                "        *_rights(),\n",
                '        *_rights(),\n        "--hostname", "x",\n',
            ),
        ),
        "short",
        "a game is played",
    ),
    "3": Fault(
        "a hall's worker does not find the farm's own engine",
        (
            Edit(HALL, "PATH=/opt/farm/venv/bin:", "PATH="),
            Edit(VISIBLE, "os.pathsep.join([own, ", "os.pathsep.join(["),
        ),
        "short",
        "a game is played",
    ),
    "4": Fault(
        "what has kept a password is not restarted when there is a new one",
        (Edit(SECRETS, NOTIFY, ""),),
        "changes",
        "secrets are rotated in mid-game",
    ),
    "4b": Fault(
        "Redis is restarted for a new operator",
        (Edit(REDIS_FILES, USERS, f"{USERS}  notify: Restart Redis\n"),),
        "changes",
        "an operator is added in mid-game",
    ),
    "5": Fault(
        "a run that fails leaves Redis with the configuration of before",
        (
            Edit(REDIS, "  ansible.builtin.meta: flush_handlers\n", NOTHING),
            Edit(REDIS, "  ansible.builtin.import_tasks: running.yml\n", NOTHING),
            Edit(SITE, "  force_handlers: true\n", ""),
        ),
        "changes",
        "site.yml again makes all hosts",
    ),
    "6": Fault(
        "a version that cannot be imported is switched to",
        (Edit(INSTALL, 'works "$place" || {', "true || {"),),
        "changes",
        "an upgrade fails to build",
    ),
    "11": Fault(
        "a season that waits behind another one in its hall is told as late",
        (
            Edit(SEASONS, "(name for name in halls if name not in busy)", "halls"),
            Edit(SEASONS, "if season.state.ready_game() is not None]", "if _waits(season.state)]"),
            Edit(
                SEASONS,
                "if ready and not any(season.state.running for season in here):",
                "if ready:",
            ),
            Edit(SEASONS, "\n\ndef waiting(", WAITS),
        ),
        "changes",
        "a season queues behind another",
    ),
}


def put_back(clone: pathlib.Path, fault: Fault) -> None:
    """Edit the files of a clone; fail where the text of an edit is not found."""
    for edit in fault.edits:
        found = [path for path in clone.glob(edit.files) if edit.old in path.read_text()]
        if not found:
            raise LookupError(f"{edit.files}: {edit.old!r} is not there: bring undo.py up to date")
        for path in found:
            path.write_text(path.read_text().replace(edit.old, edit.new))
