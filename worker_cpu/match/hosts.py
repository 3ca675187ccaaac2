"""Engines of a match on other machines: ``host=``, reached over SSH, charged by the agent there.

Nothing of the farm has to be installed on the other machine: Python 3.9 and an SSH login by key
are enough. Before the first game a connection to each puts the agent (``worker_gpu/agent.py``)
and a seat's order for each engine under ``~/.cache/farm-match`` there; from then on each start of
an engine is one connection of its bridge (``worker_cpu/engines/ssh_bridge.py``), whose command
makes a seat of that order. Invariants:

* a machine whose key is not pinned (``known_hosts``, or ``host_key`` of ``-boxes``) is told
  nothing;
* what is missing there (login, Python, program, directory) is said before the first game, with what
  to do; later the engine loses its game, and a link that breaks interrupts it;
* a match takes its files away when it ends; what a killed one left goes after ``STALE_DAYS``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import getpass
import hashlib
import importlib.resources
import json
import os
import pathlib
import secrets
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Self

import paramiko

from orchestrator import contract
from orchestrator.common import errors, files
from worker_cpu.engines import ssh
from worker_cpu.hall import gpu_hosts
from worker_cpu.match import cli_values, engines
from worker_cpu.referee import session

ROOT = ".cache/farm-match"  # below the home there
STALE_DAYS = 7  # days: what a match that was killed has left is removed by a later one
CONNECT_SECONDS = 15.0  # s: a handshake over a slow line
ANSWER_SECONDS = 60.0  # s: a machine that starts Python from a cold disk
SECRET_BYTES = 16  # bytes of a seat's secret
KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")  # of ~/.ssh, in ssh's order of late
KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa")  # of host keys: the first that is known
SEAT = "@SEAT@"  # in an order: the seat that is made of it

# Runs there, by the system's Python alone; `told` is put before it.
PREPARE = """
import json, os, shutil, sys, time
def main():
    if sys.version_info < (3, 9):
        return {"problem": "python3 is %d.%d there; the agent needs 3.9" % sys.version_info[:2]}
    home = os.path.expanduser("~")
    root = os.path.join(home, told["root"])
    for folder in ("seats", "run", "orders"):
        os.makedirs(os.path.join(root, folder), mode=0o700, exist_ok=True)
        for name in os.listdir(os.path.join(root, folder)):
            path = os.path.join(root, folder, name)
            try:
                old = os.lstat(path).st_mtime < time.time() - told["stale_days"] * 86400
                if old or told["over"] and name.startswith(told["match"] + "-"):
                    shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
            except FileNotFoundError:
                pass  # another match has taken it away
    if told["over"]:
        return {}
    agent = os.path.join(root, told["agent_file"])
    if not os.path.exists(agent):
        part = "%s.%d" % (agent, os.getpid())  # another match may be at the same
        with open(part, "w", encoding="utf-8") as file:
            file.write(told["agent"])
        os.replace(part, agent)
    path = os.environ.get("PATH", os.defpath) + ":/usr/local/bin:/usr/games:/usr/local/games"
    for one in told["engines"]:
        place = os.path.join(home, os.path.expanduser(one["dir"]))
        if not os.path.isdir(place):
            return {"problem": "%s: there is no directory %s there" % (one["where"], place)}
        program = os.path.expanduser(one["argv"][0])
        found = os.path.join(place, program) if "/" in program else shutil.which(program, path=path)
        if found is None and os.path.isfile(os.path.join(place, program)):
            found = os.path.join(place, program)
        if found is None or not os.path.isfile(found):
            missing = found or program
            return {"problem": "%s: there is no program %s there" % (one["where"], missing)}
        if not os.access(found, os.X_OK):
            return {"problem": "%s: %s cannot be executed there" % (one["where"], found)}
        names = ("LANG", "LD_LIBRARY_PATH", "TZ")
        kept = {name: os.environ[name] for name in names if name in os.environ}
        order = dict(one["order"], argv=[found] + one["argv"][1:], cwd=place)
        order["env"] = dict(kept, PATH=path, HOME=home, **one["order"]["env"])
        with open(os.path.join(root, "orders", one["name"] + ".json"), "w") as file:
            json.dump(order, file)
    return {"root": root}
sys.stdout.write(json.dumps(main()))
"""


@dataclasses.dataclass(frozen=True)
class Prepared:
    """An engine that can be started elsewhere: its order there, and what the agent knows it by."""

    box: gpu_hosts.BoxAddress
    name: str
    secret: str
    root: str
    gpus: tuple[str, ...]

    def seat(self, label: str, seat: str) -> contract.SeatAddress:
        """Return how a bridge reaches a new seat of this order."""
        root = shlex.quote(self.root)
        order, made = f"orders/{self.name}.json", f"seats/{seat}.json"
        script = (
            f"cd {root} && {{ [ -e {made} ] ||"
            f" sed 's/{SEAT}/{seat}/g' {order} > {made}; }} &&"
            f" SSH_ORIGINAL_COMMAND='seat {seat}'"
            f" exec python3 -I -S {agent_file()} --serve --root {root}"
        )
        address = self.box.seat(label, seat, self.gpus, self.secret)
        return address.model_copy(update={"command": f"exec sh -c {shlex.quote(script)}"})


class Hosts:
    """The other machines of one match."""

    def __init__(
        self, field: Sequence[engines.Engine], boxes: pathlib.Path | None, match: str
    ) -> None:
        """Find out how each is reached; raise ``UsageError`` where that is not known."""
        addresses = gpu_hosts.load(boxes, session.LIMIT_SECONDS)
        self._match = match
        self._engines = [engine for engine in field if engine.spec.box]
        self._boxes = {
            engine.spec.box: addresses.get(engine.spec.box) or address(engine.spec.box)
            for engine in self._engines
        }
        self._prepared: dict[str, Prepared] = {}
        self._reached: set[str] = set()  # machines where something may lie

    def _prepare(self) -> None:
        """Put agent and orders where engines will run."""
        for label, box in self._boxes.items():
            own = [engine for engine in self._engines if engine.spec.box == label]
            named = {engine.spec.id: f"{self._match}-{engine.spec.id}" for engine in own}
            seat_secrets = {key: secrets.token_hex(SECRET_BYTES) for key in named}
            request = self._parameters(
                agent=_agent().decode(),
                engines=[self._order(member, box, named, seat_secrets) for member in own],
            )
            answer = _ask(label, box, request)
            self._reached.add(label)
            if problem := answer.get("problem"):
                raise errors.UsageError(f"host={label}: {problem}")
            for engine in own:
                key = engine.spec.id
                self._prepared[key] = Prepared(
                    box, named[key], seat_secrets[key], str(answer["root"]), engine.gpus
                )

    def _order(
        self,
        engine: engines.Engine,
        box: gpu_hosts.BoxAddress,
        named: Mapping[str, str],
        seat_secrets: Mapping[str, str],
    ) -> dict[str, Any]:
        """Return an engine's order, as far as it is known here."""
        spec = engine.spec
        mine = {"FARM_SEAT": SEAT, "FARM_GAME": self._match}
        return {
            "name": named[spec.id],
            "where": spec.name,
            "argv": list(spec.command),
            "dir": spec.directory or "",
            "order": {
                "hall": "match",
                "attempt": self._match,
                "env": mine | engines.visible(engine.gpus),
                "gpus": [],
                "cpus": [],
                "limits": {"CORE": 0, "RTPRIO": 0},
                "checksums": {},
                "secret_sha256": hashlib.sha256(seat_secrets[spec.id].encode()).hexdigest(),
                "grace_ms": round(box.grace_seconds * 1000),
                "beat_ms": round(box.beat_seconds * 1000),
            },
        }

    def _parameters(
        self, *, agent: str = "", engines: Sequence[Any] = (), over: bool = False
    ) -> Any:
        return {
            "root": ROOT,
            "agent_file": agent_file(),
            "agent": agent,
            "engines": engines,
            "match": self._match,
            "over": over,
            "stale_days": STALE_DAYS,
        }

    def seats(self, game: str, sides: Mapping[contract.Side, contract.EngineSpec]) -> Any:
        """Return the seats of a game's engines that play elsewhere, each a new one."""
        return {
            side: self._prepared[spec.id].seat(spec.box, f"{game}-{side}")
            for side, spec in sides.items()
            if spec.box
        }

    def __enter__(self) -> Self:
        """Prepare all; raise ``UsageError`` or ``HostError``."""
        try:
            self._prepare()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Take away what was put there; a machine that is away keeps it until a later match."""
        for label in self._reached:
            with contextlib.suppress(errors.FarmError):
                _ask(label, self._boxes[label], self._parameters(over=True))
        self._prepared.clear()
        self._reached.clear()


def agent_file() -> str:
    """Return the agent's name there: by its content, so that two versions do not meet."""
    return f"agent-{hashlib.sha256(_agent()).hexdigest()[:16]}.py"


def _agent() -> bytes:
    return importlib.resources.files("worker_gpu").joinpath("agent.py").read_bytes()


# -- the way there ------------------------------------------------------------------------


def address(host: str, home: pathlib.Path | None = None) -> gpu_hosts.BoxAddress:
    """Read ``user@host:port`` as ssh would: its configuration, keys and known hosts."""
    folder = (home or pathlib.Path.home()) / ".ssh"
    user, _, rest = host.rpartition("@")
    name, _, port = rest.rpartition(":") if rest.count(":") == 1 else (rest, "", "")
    configured = _configured(folder / "config", name)
    number = cli_values.number(f"host={host}", port or configured.get("port", "22"), 1, 65535)
    target = str(configured.get("hostname", name))
    named = [
        pathlib.Path(name_of_key).expanduser() for name_of_key in configured.get("identityfile", ())
    ]
    key = next(
        filter(files.is_file, [*named, *(folder / name_of_key for name_of_key in KEYS)]), None
    )
    if key is None:
        raise cli_values.refuse(
            f"host={host}",
            f"no private key in {folder}",
            f"one of {', '.join(KEYS)} (`ssh-keygen -t ed25519`, then `ssh-copy-id {host}`),"
            " or a file that -boxes names (docs/match.md#another-machine)",
        )
    return gpu_hosts.BoxAddress(
        address=target,
        port=number,
        user=user or str(configured.get("user", "")) or _login(host),
        key=str(key),
        host_key=_known_key(host, target, number, folder / "known_hosts"),
    )


def _configured(path: pathlib.Path, name: str) -> Mapping[str, Any]:
    if not files.is_file(path):
        return {}
    try:
        return dict(paramiko.SSHConfig.from_path(str(path)).lookup(name))
    except (OSError, ValueError, paramiko.SSHException) as error:
        why = f"{path}: {errors.reason(error)}"
        raise cli_values.refuse(f"host={name}", why, "one that ssh reads") from None


def _known_key(host: str, target: str, port: int, path: pathlib.Path) -> str:
    listed = target if port == 22 else f"[{target}]:{port}"
    host_keys: Mapping[str, paramiko.PKey] = {}
    if files.is_file(path):
        with contextlib.suppress(OSError, paramiko.SSHException):
            host_keys = paramiko.HostKeys(str(path)).lookup(listed) or {}
    kind = next((kind for kind in (*KINDS, *host_keys) if kind in host_keys), None)
    if kind is None:
        raise cli_values.refuse(
            f"host={host}",
            f"no key of {listed} in {path}",
            f"a machine that you know: `ssh -p {port} {host.rpartition(':')[0] or host}` once, and"
            " compare the key that it shows; or host_key in a file that -boxes names",
        )
    return f"{kind} {host_keys[kind].get_base64()}"


def _ask(label: str, box: gpu_hosts.BoxAddress, request: Any) -> dict[str, Any]:
    """Run ``PREPARE`` on another machine; return what it says. Raise ``HostError``."""
    text = f"import json\ntold = json.loads({json.dumps(request)!r})\n{PREPARE}"
    try:
        with ssh.transport(box.seat(label, "-"), box.key, CONNECT_SECONDS) as transport:
            channel = transport.open_session(timeout=CONNECT_SECONDS)
            channel.settimeout(ANSWER_SECONDS)
            channel.exec_command("exec python3 -I -S -")
            channel.sendall(text.encode())
            channel.shutdown_write()
            said = b"".join(iter(lambda: channel.recv(1 << 16), b""))
            wrong = b"".join(iter(lambda: channel.recv_stderr(1 << 16), b""))
    except ssh.RefusedHostError as error:
        way = f"`ssh-copy-id {box.user}@{box.address}`, or key= in a file that -boxes names"
        raise errors.HostError(f"host={error}; farm match logs in with: {way}") from error
    except (OSError, paramiko.SSHException, EOFError) as error:
        where = f"{box.user}@{box.address}:{box.port}"
        raise errors.HostError(
            f"host={label}: {where} is not reached: {error or type(error).__name__}; try"
            f" `ssh -p {box.port} {box.user}@{box.address} true`"
        ) from error
    with contextlib.suppress(ValueError):
        answer = json.loads(said)
        if isinstance(answer, dict):
            return answer
    raise errors.HostError(_unheard(label, said, wrong))


def _unheard(label: str, said: bytes, wrong: bytes) -> str:
    """Say why a login is no use: a hall's key, no Python, a shell that talks."""
    if said.startswith(b"gone "):
        return (
            f"host={label}: its key starts prepared seats and nothing else (a hall's); farm match"
            " prepares its own and needs a key that logs in"
        )
    seen = (wrong or said).decode(errors="replace").strip()[-200:] or "nothing"
    return f"host={label}: no answer of python3 there (3.9 or later is needed), but: {seen}"


def boxes_file(given: pathlib.Path | None) -> pathlib.Path | None:
    """Return the file of ``-boxes``, else that of ``FARM_BOXES``, if there is one."""
    configured = os.environ.get("FARM_BOXES")
    return given or (pathlib.Path(configured) if configured else None)


def _login(host: str) -> str:
    """Return this user's name, as ssh does; refuse a number without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the latter since Python 3.13
        raise cli_values.refuse(
            f"host={host}", f"user {os.getuid()}, who has no name here", f"USER@{host}"
        ) from None
