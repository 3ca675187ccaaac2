"""Logos of a roster: only small pictures are taken, and nothing else of their files goes on."""

from __future__ import annotations

import pathlib
import struct
import zlib

import harness
import httpx
import pytest
import theatre

from orchestrator.broadcast.content import badges
from orchestrator.common import errors
from orchestrator.forecast import season_simulation
from orchestrator.season.file import load, logos
from orchestrator.season.fold import state as season_state

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, data: bytes, crc: int | None = None) -> bytes:
    """Return a part of a PNG."""
    sum_of = zlib.crc32(kind + data) if crc is None else crc
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", sum_of)


def png(
    width: int = 4,
    height: int = 4,
    *,
    head: bytes = b"\x08\x06\0\0\0",
    pixels: bytes | None = None,
    colours: bytes = b"",
) -> bytes:
    """Return a PNG with a remark of 2 KB in it."""
    if pixels is None:
        pixels = (b"\0" + b"\x10\x20\x30\xff" * width) * height
    size = struct.pack(">II", width, height)
    return (
        SIGNATURE
        + chunk(b"IHDR", size + head)
        + chunk(b"tEXt", b"Comment\0<script>" + b"x" * 2_000)
        + (chunk(b"PLTE", colours) if colours else b"")
        + chunk(b"IDAT", zlib.compress(pixels))
        + chunk(b"IEND", b"")
    )


def test_a_logo_is_the_picture_and_nothing_else() -> None:
    """Remarks and what stands behind the end are left out; the rest is taken again, unchanged."""
    kept = logos.picture(png() + b"<html>")
    assert b"script" not in kept
    assert b"html" not in kept
    assert logos.picture(kept) == kept
    assert kept.startswith(SIGNATURE + chunk(b"IHDR", struct.pack(">II", 4, 4) + b"\x08\x06\0\0\0"))


@pytest.mark.parametrize(
    ("kind", "samples", "colours"),
    [(0, 1, b""), (2, 3, b""), (3, 1, b"\x10\x20\x30"), (4, 2, b""), (6, 4, b"")],
    ids=["grey", "colours", "palette", "grey with alpha", "colours with alpha"],
)
def test_every_kind_of_png_is_taken(kind: int, samples: int, colours: bytes) -> None:
    """A pixel has as many bytes as its colour type says (PNG, table 11.1), and no more."""
    head = bytes((8, kind, 0, 0, 0))
    kept = logos.picture(png(head=head, pixels=bytes(1 + 4 * samples) * 4, colours=colours))
    assert logos.picture(kept) == kept
    with pytest.raises(ValueError, match="other pixels"):
        logos.picture(png(head=head, pixels=bytes(2 + 4 * samples) * 4, colours=colours))


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>", "no PNG"),
        (b"\xff\xd8\xff\xe0", "no PNG"),
        (png()[:-20], "a damaged PNG"),
        (SIGNATURE + chunk(b"IHDR", b"short", 1), "a damaged PNG"),
        (SIGNATURE + chunk(b"IHDR", b"short") + chunk(b"IEND", b""), "a PNG without a head"),
        (SIGNATURE + chunk(b"IEND", b""), "a PNG without a head"),
        (png(30_000, 30_000, pixels=b""), "30000 by 30000 pixels"),
        (png(0, 4), "0 by 4 pixels"),
        (png(head=b"\x08\x06\0\0\1"), "an interlaced PNG"),
        (png(head=b"\x03\x06\0\0\0"), "a PNG of no known kind"),
        (png(head=b"\x08\x03\0\0\0", pixels=(b"\0" * 5) * 4), "a PNG without its colours"),
        (png(pixels=b"\0" * 10_000_000), "other pixels than its size asks for"),
        (png(pixels=b"\0" * 7), "other pixels than its size asks for"),
        (png(pixels=(b"\x09" + b"\0" * 16) * 4), "other pixels than its size asks for"),
        (SIGNATURE + chunk(b"IHDR", struct.pack(">II", 4, 4) + b"\x08\x06\0\0\0")
         + chunk(b"IDAT", b"rubbish") + chunk(b"IEND", b""), "a damaged PNG"),
    ],
)  # fmt: skip
def test_what_is_no_small_picture_is_refused(file: bytes, told: str) -> None:
    """Other formats, other sizes, bombs and damage."""
    with pytest.raises(ValueError, match=told):
        logos.picture(file)


def test_a_seasons_logos_are_journaled_and_named(tmp_path: pathlib.Path) -> None:
    """From a roster file's folder; each is served by its checksum, beside the flag."""
    rows = [{"id": f"e{n}", "name": f"Engine {n}", "command": ["true"]} for n in range(3)]
    rows[0] |= {"logo": "a.png", "country": "GER"}
    rows[1] |= {"country": "no"}
    (tmp_path / "a.png").write_bytes(png())
    file = harness.league(tmp_path / "season.toml", rows)
    journal = season_simulation.Simulation.launched(load.load(file), 7).run().journal
    state = season_state.fold(journal)
    assert badges.png(state.launched.logos["e0"]) == logos.picture(png())
    named = badges.of_season(state)
    assert [named["Engine 0"]["flag"], named["Engine 1"]["flag"]] == [
        "\N{REGIONAL INDICATOR SYMBOL LETTER D}\N{REGIONAL INDICATOR SYMBOL LETTER E}",
        "\N{REGIONAL INDICATOR SYMBOL LETTER N}\N{REGIONAL INDICATOR SYMBOL LETTER O}",
    ]
    assert named["Engine 0"]["logo"] == badges.path(state.launched.logos["e0"])
    assert "Engine 2" not in named
    assert badges.flag("Atlantis") is None
    tape = theatre.Tape(journal)
    tape.shown = len(journal)
    with theatre.served(tape, tmp_path) as url:
        logo = named["Engine 0"]["logo"]
        harness.wait(lambda: httpx.get(f"{url}/{logo}").status_code == 200, "the logo")
        answer = httpx.get(f"{url}/{logo}")
        assert answer.content == logos.picture(png())
        assert answer.headers["content-type"] == "image/png"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "immutable" in answer.headers["cache-control"]
        assert httpx.get(f"{url}/logos/{'0' * 20}.png").status_code == 404
        assert httpx.get(f"{url}/api/v1/seasons/{tape.season}").json()["badges"] == named
    (tmp_path / "a.png").write_bytes(b"GIF89a")
    with pytest.raises(errors.SeasonFileError, match=r"logo.*'a.png' \(no PNG; .*a PNG of at most"):
        load.load(file)
