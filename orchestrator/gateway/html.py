"""Pages of the gateway as HTML: elements whose text is escaped, and how they look.

There is no script: forms and links are enough, and a policy that forbids all scripts makes nothing
of what an escaped name might still try.
"""

from __future__ import annotations

import html
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from orchestrator.common import text

POLICY: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self';"
        " frame-ancestors 'none'"
    ),
    # With `no-referrer` a browser would call the origin of a form `null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_VOID: Final = frozenset({"input", "meta", "link", "br"})

STYLE: Final = pathlib.Path(__file__).with_name("page.css")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(value: object) -> str:
    """Return what is shown of a value: escaped, without characters that nobody sees."""
    if isinstance(value, Markup):
        return value
    plain = "".join(each for each in str(value) if each in "\n\t" or each not in text.UNSEEN)
    return html.escape(plain, quote=True)


def tag(kind: str, /, *children: object, **attributes: object) -> Markup:
    """Return an element; a name's last underscore is for Python, others are hyphens.

    An attribute of ``None`` or ``False`` is left out, of ``True`` it has no value; children are
    elements or text, ``None`` for none.
    """
    written = "".join(
        f" {_name(key)}" if value is True else f' {_name(key)}="{escaped(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if kind in _VOID:
        return Markup(f"<{kind}{written}>")
    inner = "".join(escaped(child) for child in children if child is not None)
    return Markup(f"<{kind}{written}>{inner}</{kind}>")


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def join(parts: Iterable[object]) -> Markup:
    """Return elements and texts, one behind the other."""
    return Markup("".join(map(escaped, parts)))


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table; a head that ends in a blank is one of numbers."""
    kinds = ["number" if head.endswith(" ") else None for head in heads]
    top = (tag("th", head, class_=kind) for head, kind in zip(heads, kinds, strict=True))
    body = (
        tag("tr", *(tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in rows
    )
    whole = tag("table", tag("thead", tag("tr", *top)), tag("tbody", *body))
    return tag("div", whole, class_="scroll")


def field(label: str, name: str, value: object = "", **attributes: object) -> Markup:
    """Return an input with its label."""
    return tag("label", label, tag("input", name=name, value=value, **attributes))


def lines(label: str, name: str, value: object = "", rows: int = 3) -> Markup:
    """Return a field of several lines with its label."""
    return tag("label", label, tag("textarea", value, name=name, rows=rows))


def choice(label: str, name: str, options: Iterable[tuple[str, str]], chosen: str) -> Markup:
    """Return a selection with its label, of values and what is shown of them."""
    shown = (
        tag("option", words, value=value, selected=value == chosen) for value, words in options
    )
    return tag("label", label, tag("select", *shown, name=name))


def form(action: str, secret: str, *children: object, **attributes: Any) -> Markup:
    """Return a form that posts; ``secret`` shows that it is a page of the session that sends it."""
    hidden = tag("input", type="hidden", name="form", value=secret)
    return tag("form", hidden, *children, method="post", action=action, **attributes)


def graph(
    games: Sequence[float],
    values: Sequence[float | None],
    bounds: Sequence[float] = (),
    errors: Sequence[float | None] = (),
) -> Markup | None:
    """Draw values over games as SVG: LLR between its bounds, Elo within its error."""
    bars = errors or [None] * len(games)
    points = [
        (game, value, error or 0.0)
        for game, value, error in zip(games, values, bars, strict=True)
        if value is not None
    ]
    if len(points) < 2:
        return None
    width, height, left, low = 1000.0, 220.0, 48.0, 20.0
    reach = sorted(value for _, value, _ in points)
    tops = [*bounds, 0.0, reach[0], reach[-1]]
    if errors:  # the first games' errors would flatten the rest
        late = points[len(points) // 4 :]
        tops += [value + sign * error for _, value, error in late for sign in (-1, 1)]
    least, most = min(tops), max(tops)
    span, last = (most - least) or 1.0, max(game for game, _, _ in points)

    def at(game: float, value: float) -> str:
        held = min(most, max(least, value))
        x = left + (width - left - 8) * game / last
        return f"{x:.1f},{8 + (height - low - 8) * (most - held) / span:.1f}"

    def level(value: float, kind: str) -> Markup:
        _, y = at(0, value).split(",")
        line = tag("line", x1=f"{left:g}", x2=f"{width - 8:g}", y1=y, y2=y, class_=kind)
        return join([line, tag("text", f"{value:+.2f}" if value else "0", x="0", y=y, dy="4")])

    band = [at(game, value + error) for game, value, error in points]
    band += [at(game, value - error) for game, value, error in reversed(points)]
    drawn = " ".join(at(game, value) for game, value, _ in points)
    return tag(
        "svg",
        level(0.0, "axis"),
        *(level(bound, "bound") for bound in bounds),
        tag("polygon", points=" ".join(band), class_="band") if errors else None,
        tag("polyline", points=drawn, class_="line"),
        tag(
            "text",
            f"{points[-1][1]:+.2f} after {points[-1][0]:g} games",
            x=f"{left:g}",
            y=f"{height - 4:g}",
        ),
        viewBox=f"0 0 {width:g} {height:g}",
        class_="graph",
        role="img",
    )
