"""The image of a remote worker: made in a bare Debian, it builds engines and plays them."""

from __future__ import annotations

import json

import base
import host
import image
import pytest
import remote_stage


@pytest.mark.long
def test_a_worker_in_its_image_plays_a_test_to_its_decision(stage: remote_stage.Stage) -> None:
    """As the image's user, with what the image has and no more: compiler, sandbox, Python."""
    if why := host.problem():
        pytest.skip(f"hardware: no root of the laboratory can be made here: {why}")
    recipe = remote_stage.repository(stage.root)
    stage.one_host("gateway")
    stage.serve()
    match = stage.revisions(recipe, *remote_stage.QUICK)
    stage.wait(lambda: stage.batches.open_matches() or match.poll() is not None, "the match")
    worker = f"{image.entry_point(image.WORKER)} {stage.url} --token - --build --until-idle"
    told = f"echo {stage.token.read_text().strip()} | {worker} --concurrency 1 2>&1"
    folder = stage.root / "image"
    said = image.built(image.WORKER, folder, "id -u", told)
    stage.wait(lambda: match.poll() is not None, "the decision")
    log = stage.log("match")
    facts = json.loads(log[log.index("{") :])
    assert (match.returncode, facts["verdict"], facts["failed_builds"]) == (0, "H1", []), said
    assert "10001" in said.splitlines()
    assert "built in" in said
    base.run("rm", "-rf", "--one-file-system", folder)
