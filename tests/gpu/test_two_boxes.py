"""Games between two boxes: each engine on the clock of its own host, each over its own link."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import bed
import boxed_farm
import hall
import handovers
import harness
import pytest
import remote_games as games

from orchestrator import contract
from worker_cpu.wire import frames

LONG = os.environ.get("FARM_LONG") == "1"
SIDES: tuple[contract.Side, ...] = ("white", "black")
OWN = {"box-1": ["GPU-aaaa", "GPU-bbbb"], "box-2": ["GPU-cccc"]}
PATIENT = contract.Timeouts(start_ms=20_000, ready_ms=20_000, stop_ms=300, stall_ms=20_000)


@dataclasses.dataclass
class Far:
    """A side of the game: a box behind a link of its own, and the probe's own log."""

    box: bed.Box
    network: bed.Network
    seat: contract.SeatAddress
    spec: contract.EngineSpec
    log: pathlib.Path

    def cut(self, seconds: float) -> None:
        """Cut the link; it is mended after a while."""
        self.network.say("cut")
        games.later(seconds, lambda: self.network.say("mend"))

    def run(self, name: str) -> pathlib.Path:
        """Name a file that the agent keeps of its seat."""
        return self.box.farm / "run" / self.seat.seat / name

    def moves(self) -> list[handovers.Move]:
        """Return all moves, as the box's agent and the probe have stamped them."""
        return handovers.moves(self.run("log").parent, games.stamps(self.log))


@contextlib.contextmanager
def two(root: pathlib.Path, think_ms: str, **box: Any) -> Iterator[dict[contract.Side, Far]]:
    """Run a box for either side, each behind a network of its own; nothing of them is left."""
    with contextlib.ExitStack() as stack:
        found = {side: _far(stack, root, side, think_ms, box) for side in SIDES}
        yield found
        assert all(bed.gone(far.box.farm) for far in found.values())


def _far(
    stack: contextlib.ExitStack,
    root: pathlib.Path,
    side: contract.Side,
    think_ms: str,
    fields: dict[str, Any],
) -> Far:
    box, network = stack.enter_context(bed.remote(root / side, **fields))
    log = root / f"{side}.log"
    command = (sys.executable, str(games.PROBE), str(log), "--think-ms", think_ms, "--name", side)
    gpu = f"GPU-{side}"
    seat = box.seat(list(command), (gpu,)).model_copy(update={"box": f"{side}-box", "gpus": (gpu,)})
    spec = contract.EngineSpec(id=side, name=side, command=command, box=seat.box)
    return Far(box, network, seat, spec, log)


def play(
    root: pathlib.Path, far: dict[contract.Side, Far], moves: int, deeds: Sequence[games.At] = ()
) -> hall.Played:
    """Play one game between both boxes; the deeds are done in the order of their plies."""
    order = hall.order(
        far["white"].spec,
        far["black"].spec,
        seats={side: one.seat for side, one in far.items()},
        adjudication=contract.Adjudication(max_moves=moves),
        timeouts=PATIENT,
    )

    def on_frame(frame: frames.Frame) -> None:
        for deed in deeds:
            deed(frame)

    place = root / "hall"
    place.mkdir()
    with hall.opened(place) as opened:
        return opened.play(order, on_frame, 150)


def cuts(far: dict[contract.Side, Far], seconds: float) -> list[games.At]:
    """Return what cuts each link while its own engine thinks, in the long form the other, too."""

    def cut(side: contract.Side) -> Callable[[], object]:
        return lambda: far[side].cut(seconds)

    own = [games.At(3, cut("white")), games.At(6, cut("black"), "black")]
    idle = [games.At(9, cut("black")), games.At(12, cut("white"), "black")]
    return own + idle if LONG else own


def test_both_links_break_in_turn_and_the_game_goes_on(tmp_path: pathlib.Path) -> None:
    """Either engine pays by its own host's clock for its own time, whichever link is away."""
    seconds, grace_ms, beat_ms = (10.0, 30_000, 2_000) if LONG else (1.5, 20_000, 200)
    with two(tmp_path, "300", grace_ms=grace_ms, beat_ms=beat_ms) as far:
        played = play(tmp_path, far, 8 if LONG else 4, cuts(far, seconds))
        locks = {side: list((one.box.farm / "gpus").iterdir()) for side, one in far.items()}
        moves = {side: one.moves() for side, one in far.items()}
    assert played.outcome.ending is contract.Ending.MAX_MOVES
    for side in SIDES:
        plies = [ply for ply in played.plies if ply.side == side]
        assert max(ply.network_ns or 0 for ply in plies) / 1e9 > seconds / 2, "its link was away"
        assert [ply.think_ns for ply in plies] == [move.charged_ns for move in moves[side]]
        assert played.report(side).box == f"{side}-box"
        assert [one.name for one in locks[side]] == [f"GPU-{side}.lock"], (
            "either box has locked its own GPU"
        )


@pytest.mark.long
@pytest.mark.parametrize("lost", SIDES)
def test_a_link_that_stays_away_ends_the_game_for_nobody(
    tmp_path: pathlib.Path, lost: contract.Side
) -> None:
    """The lost link may be that of the engine that waits: an interruption that names its box."""
    with two(tmp_path, "2000", grace_ms=3_000, beat_ms=200) as far:
        cut = games.At(3, lambda: far[lost].network.say("cut"))
        played = play(tmp_path, far, 8, [cut])
    ended = json.loads(far[lost].run("ended").read_bytes())
    assert played.finished is None
    assert played.interrupted is not None
    assert played.interrupted["cause"] == "link"
    assert f"{lost}-box: nothing heard for 3 s" in played.interrupted["evidence"]
    assert "no permission from the hall for 3 s" in ended["reason"]


@pytest.mark.long
def test_a_league_is_played_between_two_boxes(tmp_path: pathlib.Path, nvml: pathlib.Path) -> None:
    """Either box's worker answers and samples for its own engine; a dead agent names its box."""
    with boxed_farm.running(tmp_path, nvml, "box-1", "box-2") as boxed:
        farm = boxed.farm
        farm.launch(boxed_farm.league(boxed, 150, gpus="shared"), "gpu")
        for name, site in boxed.sites.items():
            before = len(boxed_farm.evidence(boxed, "gpu"))
            after = boxed.interrupted_at("gpu") if before else 0
            boxed_farm.playing(boxed, after)
            assert harness.kill(boxed_farm.identity(site, *OWN[name])["agent"], signal.SIGKILL)
            farm.wait(lambda: len(boxed_farm.evidence(boxed, "gpu")) > before, 60, "the end")  # noqa: B023 - called at once
            assert boxed_farm.evidence(boxed, "gpu")[-1].startswith(f"link: {name}: ")
        farm.finish("gpu", 90)
        records = boxed.records("gpu")
    assert [record.outcome.ending for record in records] == [contract.Ending.MAX_MOVES] * 2
    for record in records:
        for side in SIDES:
            report: contract.EngineReport = getattr(record, side)
            assert report.box == record.order.engine(side).box
            assert [label.rpartition(" ")[2] for label in report.gpus] == OWN[report.box]
            assert [use.uuid for use in report.gpu_use] == OWN[report.box]
            assert all(use.samples > 0 for use in report.gpu_use)
        assert {record.white.box, record.black.box} == {"box-1", "box-2"}
