"""What spectators read of hosts' words: no folders, and everything else as it was."""

from __future__ import annotations

import pytest

from orchestrator.arbiter import redact


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ("[Errno 2] No such file: '/srv/my engines/x'", "[Errno 2] No such file: 'x'"),
        ("bwrap: execvp /opt/engines/sf_16: no such file", "bwrap: execvp sf_16: no such file"),
        ("Igel: net.nn (/srv/farm/net.nn) is not the pinned file", None),
        ("x (/srv/my nets/x 1.0/y.nn) is not it", "x (y.nn) is not it"),
        ("look at ~/logs/hall.log, or ~anna/x.", "look at hall.log, or x."),
        ("tables in /srv/syzygy/6men/; none", "tables in 6men; none"),
        ("path=/var/lib/farm:/srv/x", "path=farm:x"),
    ],
)
def test_of_a_path_the_last_name_stays(told: str, read: str | None) -> None:
    """It still says which file, and no longer where on the host that is."""
    wanted = "Igel: net.nn (net.nn) is not the pinned file" if read is None else read
    assert redact.text(told) == wanted
    assert redact.text(wanted) == wanted


@pytest.mark.parametrize(
    "told",
    [
        "",
        "1/2-1/2 and 1/2",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "W/D/L 1/0/3, n/a, +/- 3",
        "see https://example.org/rules/16, clause 15b",
        "exit 4 [/end]",
        "263.843 ms of 259.661 ms",
        "bestmove e2/e4/x",
        "books/demo.pgn and ./engine",
    ],
)
def test_what_is_no_path_is_told_as_it_was(told: str) -> None:
    """Results, positions, addresses and markup have slashes, too."""
    assert redact.text(told) == told


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("/srv/tables/syzygy", "syzygy"),
        ("/srv/syzygy/6:/mnt/syzygy/7/", "6:7"),
        ("/srv/a;/srv/b", "a:b"),
        ("/tables", "tables"),
        ("/", "/"),
        ("~/nets/big.nn", "big.nn"),
        ("--weights=/srv/nets/t40.pb", "--weights=t40.pb"),
        ("<empty>", "<empty>"),
        ("true", "true"),
        ("", ""),
    ],
)
def test_an_option_keeps_a_name_for_each_folder(value: str, read: str) -> None:
    """Spectators see that tables were given, and how many, not where they lie."""
    assert redact.option(value) == read
