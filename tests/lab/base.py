"""What all hosts of the laboratory are made from, once a machine: a root, a mirror, wheels.

The root is Debian's minimal system with systemd, sshd and Python, as an installer leaves a
bare server; the mirror is a folder of packages that its apt installs from, as the hosts reach
no other network; the wheels are what ``install-farm`` needs there. All lie in ``folder()``.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping

ROOT = pathlib.Path(__file__).parents[2]
MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"
BARE = (
    *("systemd", "systemd-sysv", "dbus", "openssh-server", "ca-certificates"),
    *("python3", "python3-apt", "iproute2", "procps", "sudo"),
)
# What roles, pages and seasons of the laboratory install by apt; their dependencies follow.
INSTALLABLE = (
    *("chrony", "bubblewrap", "python3-venv", "redis-server", "nginx-light", "openssl", "rsync"),
    *("prometheus", "prometheus-alertmanager", "prometheus-node-exporter", "restic", "curl"),
    *("numactl", "cpufrequtils", "irqbalance", "nftables"),
    *("stockfish", "g++", "make"),
)


def run(*words: str | pathlib.Path, timeout: float = 900, **more: Mapping[str, str]) -> str:
    """Run a command; fail with all that it printed."""
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        **more,  # type: ignore[call-overload]
    )
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(map(str, words))}\n{done.stdout}\n{done.stderr}")
    return str(done.stdout)


def folder() -> pathlib.Path:
    """Return where root, mirror and wheels are kept (``FARM_LAB_CACHE``)."""
    kept = pathlib.Path(os.environ.get("FARM_LAB_CACHE", "/var/tmp/farm-lab"))
    kept.mkdir(parents=True, exist_ok=True)
    return kept


@contextlib.contextmanager
def _alone(path: pathlib.Path) -> Iterator[bool]:
    """Hold a folder's lock; yield whether the folder is yet to be made, and note that it was."""
    done = path.with_suffix(".done")
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            yield False
            return
        shutil.rmtree(path, ignore_errors=True)
        yield True
        done.touch()


def _named(kind: str, *facts: str) -> pathlib.Path:
    return folder() / f"{kind}-{hashlib.sha256(' '.join(facts).encode()).hexdigest()[:12]}"


def root() -> pathlib.Path:
    """Return the bare host's root, read-only from now on; make it if there is none."""
    mirror = os.environ.get("FARM_MIRROR", MIRROR)
    made = _named("root", SUITE, mirror, *BARE)
    with _alone(made) as missing:
        if missing:
            words = ["--variant=minbase", f"--include={','.join(BARE)}", SUITE]
            run("debootstrap", *words, made, mirror)
            (made / "etc/apt/sources.list").write_text("deb [trusted=yes] file:/srv/mirror ./\n")
            (made / "etc/machine-id").write_text("")  # the first boot gives each host its own
            for key in (made / "etc/ssh").glob("ssh_host_*"):
                key.unlink()
            lists = made / "var/lib/apt/lists"  # of the world's mirror: as old as can be
            shutil.rmtree(lists)
            lists.mkdir()
            os.utime(lists, (0, 0))
            # Whom an installer asks for: who logs in, and may become root.
            run("chroot", made, "useradd", "--create-home", "--shell", "/bin/bash", "debian")
            (made / "etc/sudoers.d/debian").write_text("debian ALL=(ALL) NOPASSWD: ALL\n")
            # A host that is thrown away need not sync each file that dpkg unpacks.
            (made / "etc/dpkg/dpkg.cfg.d/lab").write_text("force-unsafe-io\n")
    return made


def packages() -> pathlib.Path:
    """Return the layer that holds ``/srv/mirror``: packages, and the index that apt reads."""
    source = os.environ.get("FARM_MIRROR", MIRROR)
    made = _named("mirror", SUITE, source, *BARE, *INSTALLABLE)
    bare = root()
    with _alone(made) as missing:
        if missing:
            mirror = made / "srv/mirror"
            lists = made / "lists"
            for path in (mirror / "partial", lists / "partial"):
                path.mkdir(parents=True)
            sources = made / "sources.list"
            keys = bare / "usr/share/keyrings/debian-archive-keyring.gpg"
            sources.write_text(f"deb [signed-by={keys}] {source} {SUITE} main\n")
            settings = {
                "Dir::Etc::sourcelist": sources,
                "Dir::Etc::sourceparts": "/dev/null",
                "Dir::State::lists": lists,
                "Dir::State::status": bare / "var/lib/dpkg/status",
                "Dir::Cache": made / "cache",
                "Dir::Cache::archives": mirror,
                "Debug::NoLocking": "true",
                "APT::Sandbox::User": "root",
            }
            apt = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in settings.items())]
            (made / "cache").mkdir()
            run(*apt, "update")
            wanted = ("--no-install-recommends", "--download-only", "-y", *INSTALLABLE)
            run(*apt, "install", *wanted)
            for path in (lists, made / "cache", mirror / "partial"):
                shutil.rmtree(path)
            sources.unlink()
            _index(mirror)
    return made


def _index(mirror: pathlib.Path) -> None:
    """Write the index of a flat repository; what ``dpkg-scanpackages`` would write."""
    entries = []
    for path in sorted(mirror.glob("*.deb")):
        told = run("dpkg-deb", "--field", path).rstrip("\n")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        entries.append(
            f"{told}\nFilename: ./{path.name}\nSize: {path.stat().st_size}\nSHA256: {digest}\n"
        )
    (mirror / "Packages").write_text("\n".join(entries))


def wheels() -> pathlib.Path:
    """Return the layer that holds ``/srv/wheels``: all that the present lock asks for."""
    lock = (ROOT / "requirements.lock").read_text()
    made = _named("wheels", lock)
    with _alone(made) as missing:
        if missing:
            kept = made / "srv/wheels"
            kept.mkdir(parents=True)
            pip = [sys.executable, "-m", "pip", "download", "-q", "-d", str(kept)]
            if sys.version_info[:2] != (3, 11):  # Debian's
                pip += ["--python-version", "3.11", "--only-binary", ":all:"]
            run(*pip, "--require-hashes", "-r", ROOT / "requirements.lock")
            # Debian's Python is 3.11.2: the lock asks for this one below 3.11.3.
            older = re.findall(r"^(async-timeout==\S+)", lock, re.MULTILINE)
            run(*pip, "--no-deps", "setuptools>=68", "wheel", *older)
    return made
