"""Hosts whose clocks differ: games are played all the same, and the skew is shown."""

from __future__ import annotations

import json
import pathlib

import harness
import pytest

LIBRARIES = sorted(map(str, pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1")))


@pytest.mark.skipif(not LIBRARIES, reason="hardware: libfaketime is not installed")
@pytest.mark.parametrize(("serve", "hall"), [("-1h", "+0"), ("+0", "+3600s"), ("+61s", "-1d")])
def test_a_season_is_played_whatever_the_clocks_say(
    serve: str, hall: str, tmp_path: pathlib.Path
) -> None:
    """Serve and hall are apart by a minute, an hour, a day: no game waits, and status says it."""
    farm = harness.Farm(tmp_path, harness.CALM)
    farm.start()
    try:
        for process, offset in ((farm.serve, serve), (farm.worker, hall)):
            process.stop(30)
            process.environment = {
                **process.environment,
                "LD_PRELOAD": LIBRARIES[0],
                "FAKETIME": offset,
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FARM_HOST": f"host-of-{process.name}",
            }
            process.start()
        engines = [harness.scripted(farm.life, strength) for strength in (1, 2)]
        farm.launch(harness.league(tmp_path / "s.toml", engines, final_games=2), "s")
        folded = farm.finish("s")
        assert folded.finished
        apart = {"-1h": 3600, "+0": 0, "+3600s": 3600, "+61s": 61, "-1d": 86_400}
        seconds = {apart[serve], apart[hall]} - {0}

        def shown() -> bool:
            told = json.loads(farm.operate("status", "--json"))["clocks"]
            return seconds <= {round(abs(skew)) for skew in told.values()}

        farm.wait(shown, 60, f"clocks {seconds} s apart in the status")
        assert "Redis' clock" in farm.operate("status")
    finally:
        farm.stop()
