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


def test_the_manuals_table_is_that_of_the_results(tmp_path: pathlib.Path) -> None:
    """It is cut out of the results' page, what is around it stays; so it is in this tree."""
    results, manual = tmp_path / "RESULTS.md", tmp_path / "manual.md"
    rows, gap = tmp_path / "rows.txt", tmp_path / "gap.txt"
    results.write_text("# Results\n", encoding="utf-8")
    rows.write_text("rows: monday, load 1\n| row | what |\n|---|---|\n| 1 | a |\n1 passed in 9s\n")
    gap.write_text("gap: monday, load 1\nwords\n")
    bench_report.write({"rows": rows, "gap": gap}, results)
    manual.write_text(f"Before.\n\n{bench_report.COSTS}\nold\n{bench_report.COSTS_END}\nBehind.\n")
    bench_report.cut(results, manual)
    told = manual.read_text(encoding="utf-8")
    assert "| 1 | a |" in told
    assert "monday" in told
    for word in ("old", "words", "passed"):
        assert word not in told
    assert told.startswith("Before.\n")
    assert told.endswith("Behind.\n")
    own = tmp_path / "own.md"
    own.write_bytes(bench_report.MANUAL.read_bytes())
    bench_report.cut(manual=own)
    assert own.read_bytes() == bench_report.MANUAL.read_bytes(), "make bench PARTS=rows"


PARTS = {
    "clock": "| farm match | 0.04 | 0.03 | 0.8 | 1.0 | 2.0 | 0.00% | 2 | 0.09 [0.07] | 0.2 | 9 |\n"
    "| fastchess | 0.04 | 0.03 | 0.8 | 1.0 | 2.0 | 0.00% | 621 | 0.09 [0.07] | 0.2 | 9 |\n"
    "| think 2 ms, 0 info lines, 1 game at a time | 23 [21..25] | 52 | 105 | 1800 |\n"
    "| think 2 ms, 50 info lines, 1 game at a time | 18 [18..19] | 60 | 81 | 1800 |\n",
    "gap": "gap, result to `uci`, beside 0 busy loops a core: p50 52 ms, max 71 ms over 50 pauses\n"
    "gap, result to `uci`, beside 2 busy loops a core: p50 164 ms, max 215 ms over 50 pauses\n",
    "rating": "rating list of 100000 games, 200 engines:\n farm match rate: 0.32 s [0.3..0.3]\n"
    "  ordo -W -D: 0.566 s [0.5..0.6], 1.00 of Ordo's\n",
    "spectators": "every other of 12 games before 2000, load 1.7\n"
    "move to event: p50 8.7, p99 169.4\n",
}


def test_what_is_promised_is_what_was_measured(tmp_path: pathlib.Path) -> None:
    """Each figure of README's table comes from the results; so it does in this tree."""
    measured = bench_report.promises(PARTS)
    assert len(measured) == len(PARTS)
    figures = " ".join(measured.values())
    for words in ("0.023 ms", "0.060 ms", "2 undercharged", "52 ms", "169 ms before 2,000"):
        assert words in figures
    assert "100,000 games in 0.32 s, Ordo itself 0.57 s" in figures
    assert bench_report.promises({}) == {}
    assert set(bench_report.promises(bench_report.parts_of())) == set(measured), "all are found"
    readme = bench_report.README.read_text(encoding="utf-8")
    for about in measured:
        assert readme.count(f"| {about} | ") == 1
    own = tmp_path / "README.md"
    own.write_text(readme, encoding="utf-8")
    bench_report.promise(readme=own)
    assert own.read_text(encoding="utf-8") == readme, "make bench PARTS=..."
