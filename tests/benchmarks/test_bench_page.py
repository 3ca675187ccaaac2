"""The page of the benchmarks: parts run anew are replaced, what was known of others stays."""

from __future__ import annotations

import pathlib

import bench_report


def test_parts_that_were_not_run_keep_what_the_page_says(tmp_path: pathlib.Path) -> None:
    """A run of one part in a fresh checkout replaces that part alone, and no word around."""
    page = tmp_path / "benchmarks.md"
    page.write_text("# Title\n\nBefore.\n", encoding="utf-8")
    clock, gap, never = tmp_path / "clock.txt", tmp_path / "gap.txt", tmp_path / "never.txt"
    parts = {"clock": clock, "gap": gap, "never": never}
    clock.write_text("clock: monday, load 1\n#### think 2 ms\n| a | b |\n| 1 | 2 |\n")
    gap.write_text("gap: monday, load 1\nfirst words\n")
    bench_report.write(parts, page)
    page.write_text(page.read_text(encoding="utf-8") + "\nBehind.\n", encoding="utf-8")
    clock.unlink()
    gap.write_text("gap: tuesday, load 1\nlater words\n")
    bench_report.write(parts, page)
    once = page.read_text(encoding="utf-8")
    for words in ("Before.", "Behind.", "monday", "#### think 2 ms", "| 1 | 2 |", "later words"):
        assert once.count(words) == 1
    assert "first words" not in once
    assert once.count("Not run.") == 1
    bench_report.write(parts, page)
    assert page.read_text(encoding="utf-8") == once
