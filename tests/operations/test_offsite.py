"""The program that takes a backup off its host: restic and rsync, into a folder beside it."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest
import watched_run as run

PROGRAM = run.ROOT / "deploy" / "backup" / "farm-offsite"


@pytest.fixture
def copy(tmp_path: pathlib.Path) -> pathlib.Path:
    """Give a folder that looks like a backup."""
    made = tmp_path / "copy"
    (made / "s").mkdir(parents=True)
    (made / "backup.json").write_text("{}")
    (made / "s" / "journal.jsonl").write_text("one\n")
    return made


def offsite(copy: pathlib.Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the program with settings."""
    program = settings.get("FARM_OFFSITE", "")
    if program in {"restic", "rsync"} and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed (scripts/system-packages.txt)")
    environment = {"PATH": os.environ["PATH"], "HOME": str(copy.parent), **settings}
    return subprocess.run(
        [PROGRAM, copy], env=environment, capture_output=True, text=True, check=False
    )


def test_rsync_keeps_a_copy_a_day_and_no_more_than_wanted(
    copy: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Unchanged files are links to the copy before; the oldest go, and nothing that is not ours."""
    away = tmp_path / "away"
    settings = {
        "FARM_OFFSITE": "rsync",
        "FARM_OFFSITE_TARGET": str(away),
        "FARM_OFFSITE_KEEP": "2",
    }
    for day in ("2020-01-01", "2020-01-02", "2020-01-03"):
        shutil.copytree(copy, away / f"farm-{day}", copy_function=shutil.copy2)
    (away / "somebody-else").mkdir()
    done = offsite(copy, **settings)
    assert done.returncode == 0, done.stderr
    kept = sorted(path.name for path in away.iterdir())
    assert len(kept) == 3
    assert kept[0] == "farm-2020-01-03"
    assert kept[2] == "somebody-else"
    today, before = away / kept[1], away / kept[0]
    assert (today / "s" / "journal.jsonl").read_text() == "one\n"
    assert (today / "backup.json").stat().st_ino == (before / "backup.json").stat().st_ino
    (copy / "s" / "journal.jsonl").write_text("one\ntwo\n")
    assert offsite(copy, **settings).returncode == 0
    assert (today / "s" / "journal.jsonl").read_text() == "one\ntwo\n"
    assert (before / "s" / "journal.jsonl").read_text() == "one\n", "an old copy is never changed"


def test_restic_keeps_encrypted_copies_that_can_be_restored(
    copy: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Two runs are two snapshots; the latest restores what was backed up."""
    settings = {
        "FARM_OFFSITE": "restic",
        "RESTIC_REPOSITORY": str(tmp_path / "repository"),
        "RESTIC_PASSWORD_FILE": str(tmp_path / "password"),
    }
    (tmp_path / "password").write_text("secret\n")
    refused = offsite(copy, **settings)
    assert refused.returncode != 0, "there is no repository yet"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **settings}
    subprocess.run(["restic", "-q", "init"], env=environment, check=True)
    assert offsite(copy, **settings).returncode == 0
    (copy / "s" / "journal.jsonl").write_text("one\ntwo\n")
    done = offsite(copy, **settings)
    assert done.returncode == 0, done.stderr
    words = ["restic", "-q", "restore", "latest", "--target", str(tmp_path / "back")]
    subprocess.run(words, env=environment, check=True)
    found = tmp_path / "back" / copy.relative_to("/") / "s" / "journal.jsonl"
    assert found.read_text() == "one\ntwo\n"
    for path in (tmp_path / "repository").rglob("*"):
        assert not path.is_file() or b"two" not in path.read_bytes()


@pytest.mark.parametrize(
    ("repository", "asked"),
    [
        ("sftp:farm@backup.example.org:{0}", "-i key farm@backup.example.org -s sftp"),
        (
            "sftp://farm@backup.example.org:2222/{0}",
            "-i key -p 2222 farm@backup.example.org -s sftp",
        ),
    ],
)
def test_restic_goes_by_the_key_that_hosts_are_given(
    copy: pathlib.Path, tmp_path: pathlib.Path, repository: str, asked: str
) -> None:
    """SFTP is spoken through FARM_OFFSITE_SSH: the user of the unit has no key of his own."""
    server = pathlib.Path("/usr/lib/openssh/sftp-server")
    if not server.exists():
        pytest.skip("openssh-server is not installed (scripts/system-packages.txt)")
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\nexec {server}\n')
    ssh.chmod(0o755)
    (tmp_path / "password").write_text("secret\n")
    place = {"RESTIC_PASSWORD_FILE": str(tmp_path / "password")}
    here = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **place}
    words = ["restic", "-q", "-r", str(tmp_path / "repository"), "init"]
    if shutil.which("restic"):
        subprocess.run(words, env=here, check=True)
    done = offsite(
        copy,
        FARM_OFFSITE="restic",
        FARM_OFFSITE_SSH=f"{ssh} -i key",
        RESTIC_REPOSITORY=repository.format(tmp_path / "repository"),
        **place,
    )
    assert done.returncode == 0, done.stderr
    assert set((tmp_path / "asked").read_text().splitlines()) == {asked}
    assert list((tmp_path / "repository" / "snapshots").iterdir())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "FARM_OFFSITE: found ''; allowed: restic, rsync"),
        ({"FARM_OFFSITE": "scp"}, "found 'scp'"),
        ({"FARM_OFFSITE": "rsync"}, "FARM_OFFSITE_TARGET is not set"),
        ({"FARM_OFFSITE": "restic"}, "RESTIC_REPOSITORY is not set"),
        ({"FARM_OFFSITE": "rsync", "FARM_OFFSITE_KEEP": "0"}, "FARM_OFFSITE_KEEP: found '0'"),
        ({"FARM_OFFSITE": "rsync", "FARM_OFFSITE_TARGET": "h:/a b;rm"}, "without blanks"),
    ],
)
def test_wrong_settings_are_named(copy: pathlib.Path, settings: dict[str, str], said: str) -> None:
    """Nothing is copied, and what is wrong is said with what is allowed."""
    done = offsite(copy, **settings)
    assert done.returncode != 0
    assert said in done.stderr


def test_a_folder_that_is_no_backup_is_refused(tmp_path: pathlib.Path) -> None:
    """Such as a disk that is not mounted: an empty folder would replace the copies."""
    done = offsite(tmp_path, FARM_OFFSITE="rsync", FARM_OFFSITE_TARGET=str(tmp_path / "away"))
    assert done.returncode == 1
    assert "is no backup of a farm" in done.stderr
    assert not (tmp_path / "away").exists()
