"""One test match on the gateway's pages: its score, graphs, builds, workers, and what to ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import chess

from orchestrator.broadcast import test_matches
from orchestrator.contract import remote
from orchestrator.gateway import html
from orchestrator.ledger import live_games
from orchestrator.testmatch import sprt_match, worker_review

SHOWN_BUILDS: Final = 100  # builds on workers: the newest
SHOWN_LOGS: Final = 5  # logs of builds that failed: the newest
STOPPED: Final = "stopped"  # why a match is over that may go on
_GLYPHS: Final = dict(zip("KQRBNPkqrbnp", "♔♕♖♗♘♙♚♛♜♝♞♟", strict=True))
_SQUARE: Final = 45  # of a board's picture


def shown(match: test_matches.Match, secret: str, place: str, *, is_author: bool) -> html.Markup:
    """Return what is shown of a match."""
    with match.lock:
        line, test = dict(match.line), match.view.test()
        builds, reviews = list(match.builds.values()), match.reviews()
        faults = match.faults
    is_over = line["status"] == "finished"
    return html.join(
        part
        for part in (
            html.tag("p", _outline(line)),
            _standing(test),
            *_graphs(test),
            html.tag("p", html.tag("a", "Live games", href=f"{place}/live"))
            if not is_over
            else None,
            _tuning(test["tuning"]),
            _faults(faults) if is_author else None,
            _sources(match.sources) if is_author else None,
            _builds(builds) if is_author else None,
            _built_before(match.sources, reviews, builds) if is_author else None,
            _workers(reviews) if is_author else None,
            _steering(secret, place, line) if is_author else None,
        )
        if part is not None
    )


def elo(score: Mapping[str, Any]) -> str:
    """Return an Elo difference with its error, '' where there is none."""
    if not score or not score["games"]:
        return ""
    if score["elo"] is None:
        return "+inf" if score["score"] > 1 / 2 else "-inf"
    error = "" if score["elo_error"] is None else f" ± {score['elo_error']:.1f}"
    return f"{score['elo']:+.1f}{error}"


def boards(games: Sequence[live_games.LiveGame]) -> html.Markup:
    """Return the boards of games that are played."""
    if not games:
        said = "No worker shows a game at this moment. This page looks again by itself."
        return html.tag("p", said, class_="quiet")
    return html.tag("div", *map(_figure, games), class_="boards")


def _outline(line: Mapping[str, Any]) -> str:
    played = f"{line['games']['played']} of {line['games']['total']} games"
    ended = f"; {line['reason']}" if line["reason"] else ""
    return f"{' against '.join(line['engines'])}, {line['time_control']}: {played}{ended}"


def _standing(test: Mapping[str, Any]) -> html.Markup:
    score, sprt = test["score"], test["sprt"]
    rows: list[tuple[object, object]] = []
    if score is not None:
        rows.append(("Score", f"+{score['wins']} ={score['draws']} -{score['losses']}"))
        rows.append(("Elo", elo(score)))
        if score["nelo"] is not None:
            rows.append(("Normalized Elo", f"{score['nelo']:+.1f}"))
        rows.append(("Pairs by points (0 to 2)", " ".join(map(str, score["pentanomial"]))))
    if sprt is not None:
        bounds = f"[{sprt['elo0']:g}, {sprt['elo1']:g}] {sprt['model']}"
        rows.append(("Test", f"{bounds}, alpha {sprt['alpha']:g}, beta {sprt['beta']:g}"))
        rows.append(("LLR", f"{sprt['llr']:+.3f} of [{sprt['lower']:.2f}, {sprt['upper']:.2f}]"))
        if sprt["accepted"]:
            kind = "good" if sprt["accepted"] == "H1" else "bad"
            rows.append(("Decided", html.tag("b", f"{sprt['accepted']} accepted", class_=kind)))
    for engine in test["engines"] if len(test["engines"]) > 2 else ():
        points = f"{engine['points']:g} of {engine['games']}, Elo {elo(engine)}"
        rows.append((engine["name"], points))
    for engine in test["engines"]:
        faults = (f"{kind} {count}" for kind, count in engine["faults"].items())
        rows += [("Faults", f"{engine['name']}: {', '.join(faults)}")] if engine["faults"] else []
    return html.table(("", ""), rows)


def _graphs(test: Mapping[str, Any]) -> Iterator[html.Markup]:
    history, sprt = test["history"], test["sprt"]
    if history is None:
        return
    graphs = [
        ("Elo with its error", html.graph(history["games"], history["elo"], (), history["error"]))
    ]
    if sprt is not None:
        bounds = (sprt["lower"], sprt["upper"])
        graphs.insert(
            0, ("LLR between its bounds", html.graph(history["games"], history["llr"], bounds))
        )
    for title, drawn in graphs:
        if drawn is not None:
            yield html.tag("section", html.tag("b", title), drawn)


def _tuning(tuning: Mapping[str, Any] | None) -> html.Markup | None:
    if tuning is None:
        return None
    rows = [
        (
            row["name"],
            f"{row['start']:g}",
            f"{row['value']:.4g}",
            f"{row['least']:g}",
            f"{row['most']:g}",
        )
        for row in tuning["parameters"]
    ]
    heads = ("parameter", "start ", "value ", "min ", "max ")
    return html.join([html.tag("h2", "Tuned"), html.table(heads, rows)])


def _faults(faults: Sequence[sprt_match.Fault]) -> html.Markup | None:
    """Return what `farm match show` lists: the last faults, with what engines wrote to stderr."""
    if not faults:
        return None
    last, others = sprt_match.last_faults(faults)
    parts: list[object] = [html.tag("h2", "Faults")]
    if others:
        said = f"The last ones; the {others} others are in the match's journal."
        parts.append(html.tag("p", said, class_="quiet"))
    for repeated in last:
        parts.append(html.tag("p", str(repeated)))
        if repeated.fault.said:
            parts.append(html.tag("pre", "\n".join(repeated.fault.said)))
    return html.join(parts)


def _sources(sources: Sequence[remote.SourceBuild]) -> html.Markup | None:
    if not sources:
        return None
    rows = [(source.name, source.commit or "none (binaries)", source.bench) for source in sources]
    heads = ("engine", "commit", "bench ")
    return html.join([html.tag("h2", "Revisions"), html.table(heads, rows)])


def _builds(builds: Sequence[Mapping[str, Any]]) -> html.Markup | None:
    if not builds:
        return None
    rows = [
        (
            build["worker"],
            build["name"],
            build["compiler"],
            "" if build["bench"] is None else build["bench"],
            f"{build['seconds']:.0f}",
            html.tag("span", build["why"] or "built", class_="bad" if build["why"] else "good"),
        )
        for build in reversed(builds[-SHOWN_BUILDS:])
    ]
    heads = ("worker", "engine", "compiler", "bench ", "s ", "")
    parts = [html.tag("h2", "Builds"), html.table(heads, rows)]
    failed = [build for build in builds if build["why"] and build["log"]]
    for build in failed[-SHOWN_LOGS:]:
        title = html.tag("summary", f"Log of {build['name']} on {build['worker']}")
        parts.append(html.tag("details", title, html.tag("pre", build["log"])))
    return html.join(parts)


def _built_before(
    sources: Sequence[remote.SourceBuild],
    reviews: Sequence[worker_review.Review],
    builds: Sequence[Mapping[str, Any]],
) -> html.Markup | None:
    workers = [worker for review in reviews for worker in review.workers]
    lines = sprt_match.built_before(sources, workers, builds)
    return html.join(html.tag("p", line, class_="quiet") for line in lines) or None


def _workers(reviews: Sequence[worker_review.Review]) -> html.Markup | None:
    """Return who has played; what is found against whom, only when it has stopped him.

    Authors may be workers, too: who sees how near he is to being found plays accordingly.
    """
    if not reviews:
        return None
    rows = [
        (
            " ".join(review.workers),
            review.games,
            review.faults,
            review.reason,
        )
        for review in reviews
    ]
    heads = ("workers", "games ", "faults ", "")
    return html.join([html.tag("h2", "Played by"), html.table(heads, rows)])


def _steering(secret: str, place: str, line: Mapping[str, Any]) -> html.Markup:
    def row(*parts: object) -> html.Markup:
        return html.tag("div", *parts, class_="row")

    reason = html.field("Why", "reason", maxlength=300)
    copied = html.form(
        f"{place}/copy",
        secret,
        row(
            html.field("Name of the copy", "name", required=True),
            html.field("Seconds, if others", "time_control", placeholder="60+0.6"),
            html.field("Games, if others", "games", inputmode="numeric"),
            html.tag("button", "Play once more"),
        ),
        class_="card",
    )
    if line["status"] == "finished" and line["reason"] != STOPPED:
        return html.join([html.tag("h2", "Ask"), copied])
    if line["status"] == "finished":
        go_on = html.form(
            f"{place}/continue", secret, html.tag("button", "Continue"), class_="card"
        )
        return html.join([html.tag("h2", "Ask"), go_on, copied])
    stop = html.form(
        f"{place}/stop",
        secret,
        row(reason, html.tag("button", "Stop", class_="danger")),
        class_="card",
    )
    change = html.form(
        f"{place}/change",
        secret,
        row(
            html.field("Priority", "priority", inputmode="numeric"),
            html.field("Share", "share", inputmode="numeric"),
            reason,
            html.tag("button", "Change"),
        ),
        class_="card",
    )
    return html.join([html.tag("h2", "Ask"), change, stop, copied])


def _figure(game: live_games.LiveGame) -> html.Markup:
    white, black = _clock(game.white_clock_ns), _clock(game.black_clock_ns)
    head = f"Game {game.number}, {game.plies} plies, on {game.worker}"
    return html.tag(
        "figure",
        html.tag("p", f"{game.black}  {black}"),
        _board(game),
        html.tag("p", f"{game.white}  {white}"),
        html.tag("figcaption", head, class_="quiet"),
        class_="card",
    )


def _clock(left_ns: int) -> str:
    """Return a clock as minutes, seconds and tenths; a flag has fallen below 0."""
    tenths = max(0, left_ns) // 100_000_000
    return f"{tenths // 600}:{tenths // 10 % 60:02}.{tenths % 10}"


def _board(game: live_games.LiveGame) -> html.Markup:
    position = chess.Board(game.fen)
    moved = chess.SquareSet()
    if game.last:
        move = chess.Move.from_uci(game.last)
        moved = chess.SquareSet([move.from_square, move.to_square])
    parts = []
    for square in chess.SQUARES:
        x, y = chess.square_file(square) * _SQUARE, (7 - chess.square_rank(square)) * _SQUARE
        kind = "light" if (chess.square_file(square) + chess.square_rank(square)) % 2 else "dark"
        place = {"x": x, "y": y, "width": _SQUARE, "height": _SQUARE}
        parts.append(html.tag("rect", **place, class_=kind))
        if square in moved:
            parts.append(html.tag("rect", **place, class_="moved"))
        piece = position.piece_at(square)
        if piece is not None:
            glyph = _GLYPHS[piece.symbol()]
            parts.append(html.tag("text", glyph, x=x + _SQUARE / 2, y=y + 37, class_="piece"))
    whole = 8 * _SQUARE
    label = f"Position of game {game.number}: {game.fen}"
    return html.tag("svg", *parts, viewBox=f"0 0 {whole} {whole}", role="img", aria_label=label)
