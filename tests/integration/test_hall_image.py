"""The image of a hall: made in a bare Debian, its worker plays a season in bubblewrap."""

from __future__ import annotations

import pathlib
import socket
import threading
import urllib.parse

import base
import harness
import host
import image
import pytest

from orchestrator.commands import launch
from orchestrator.season.file import load

HALL = "hall-2"  # the farm's own worker has the other
SEASON = """
schema = 1
id = "s"
name = "In a container"
sandbox = "bubblewrap"  # else no game is played
[[roster.engine]]
id = "one"
name = "One"
command = ["/opt/farm/venv/bin/farm-engine"]
[[roster.engine]]
id = "two"
name = "Two"
command = ["/opt/farm/venv/bin/farm-engine", "--name", "two"]
[[event]]
id = "match"
name = "Match"
format = { kind = "round-robin", double_rounds = 1 }
entrants = ["one", "two"]
time_control = "5s+0.1s"
adjudication = { max_moves = 20 }
"""


@pytest.mark.long
def test_a_hall_in_its_image_plays_a_season(tmp_path: pathlib.Path) -> None:
    """As the image's user, with what the image has and no more; a drain ends its worker."""
    if why := host.problem():
        pytest.skip(f"hardware: no root of the laboratory can be made here: {why}")
    file = tmp_path / "season.toml"
    file.write_text(SEASON)
    with harness.running(tmp_path / "farm") as farm:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        said_yes = farm.redis.cli("admin", "config", "set", "port", str(port))
        assert said_yes.returncode == 0, said_yes  # a container reaches it there
        launch.start(farm.ledger, load.load(file), "s", HALL, "00", "test")
        whose = urllib.parse.urlsplit(farm.redis.as_user("redis://127.0.0.1", "worker")).password
        secret = "umask 077; echo $SECRET > worker; export FARM_REDIS_PASSWORD_FILE=$PWD/worker"
        words = (
            f"SECRET={whose}; {secret}; export FARM_REDIS_URL=redis://127.0.0.1:{port}/0"
            f" FARM_HALL={HALL}; {image.entry_point(image.HALL)} 2>&1"
        )
        said: list[str] = []
        place = tmp_path / "image"
        worker = threading.Thread(
            target=lambda: said.append(image.built(image.HALL, place, "id -u", words))
        )
        worker.start()
        farm.wait(lambda: not worker.is_alive() or farm.state("s").finished, 300, "its games")
        assert worker.is_alive(), said
        whole = farm.finish("s")
        farm.operate("host", "drain", HALL, "--reason", "the season is over")
        worker.join(120)
        assert not worker.is_alive()
    assert "10001" in said[0].splitlines()
    finished = [game.finished for game in whole.games.values() if game.finished]
    assert [one.hall for one in finished] == [HALL, HALL]
    base.run("rm", "-rf", "--one-file-system", place)
