"""Files as all parts of the farm use them."""

from __future__ import annotations

import os
import pathlib

import pytest

from orchestrator.common import files


def test_a_scratch_outlives_nobody_and_goes_while_nobody_holds_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is used stays, however old; so do one just made, another's name, and a link."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed, other, young = (tmp_path / name for name in ("farm-x.1", "farm-y.1", "farm-x.2"))
    link = tmp_path / "farm-x.3"
    for folder in (killed, other, young):
        folder.mkdir()
        (folder / "file").touch()
    link.symlink_to(other)
    with files.scratch("x") as used:
        for folder in (killed, other, used):
            os.utime(folder, (0, 0))
        os.utime(link, (0, 0), follow_symlinks=False)
        with files.scratch("x") as second:
            assert used.is_dir()
            assert second.parent == tmp_path
            assert not killed.exists()
        assert not second.exists()
    assert sorted(tmp_path.iterdir()) == sorted((other, young, link))
