"""Words for people: time controls, formats, openings, durations, what ends a game early.

What a season file says is written in the file's own words, so that it can be found there
again: a time control can be read back, bounds are in centipawns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrator import contract
from orchestrator.arbiter.adjudication import presets
from orchestrator.season.spec import model

_MINUTE_MS: Final = 60_000
_DAYS_FROM_HOURS: Final = 48  # below two days hours say more than days
_SECONDS_TO_MINUTES: Final = 10  # from then on nobody reads the seconds
_ZEROING: Final = {
    "reset": "captures and pawn moves end a row",
    "restart": "captures and pawn moves restart the count",
    "ignore": "captures and pawn moves count like others",
}


def duration(seconds: float) -> str:
    """Write a duration as people say it: 45s, 12m, 31h 20m, from two days on 5d 4h."""
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if not hours and minutes < _SECONDS_TO_MINUTES:
        return _two(minutes, "m", left, "s")
    if hours < _DAYS_FROM_HOURS:
        return _two(hours, "h", minutes, "m")
    return _two(hours // 24, "d", hours % 24, "h")


def _two(great: int, unit: str, small: int, part: str) -> str:
    """Write a number with its part; leave out what is zero, unless all is."""
    if not great:
        return f"{small}{part}"
    return f"{great}{unit} {small:02}{part}" if small else f"{great}{unit}"


def control(clock: contract.TimeControl) -> str:
    """Write a time control as a season file does: ``30+5`` is minutes plus seconds.

    Less than a minute, or no number of half minutes, is written with units, as ``10s+200ms``.
    """
    limits = {"nodes": clock.nodes, "depth": clock.depth}
    limit_texts = [f"{name}={limit}" for name, limit in limits.items() if limit is not None]
    return " ".join([*_clock(clock), *limit_texts])


def _clock(control: contract.TimeControl) -> Iterator[str]:
    if control.move_ms is not None:
        yield f"{_span(control.move_ms)}/move"
    elif control.base_ms:
        yield (f"{control.moves}/" if control.moves else "") + _base_and_increment(control)


def _base_and_increment(control: contract.TimeControl) -> str:
    if control.base_ms < _MINUTE_MS or control.base_ms % (_MINUTE_MS // 2):
        return f"{_span(control.base_ms)}+{_span(control.increment_ms)}"
    return f"{control.base_ms / 60_000:.12g}+{control.increment_ms / 1000:.12g}"


def _span(ms: int) -> str:
    return f"{ms}ms" if 0 < ms < 1000 else f"{ms / 1000:.12g}s"


def game_format(spec: model.Format) -> str:
    """Say a format in words."""
    match spec:
        case model.RoundRobin(double_rounds=rounds):
            return f"{rounds}x double round robin"
        case model.Swiss(rounds=rounds, games=games):
            return f"Swiss, {rounds} rounds" + (" of game pairs" if games == 2 else "")
        case model.Gauntlet(hubs=hubs, double_rounds=rounds):
            hub = "the first seed" if hubs == 1 else f"the first {hubs} seeds"
            return f"gauntlet, {hub} against all others, {rounds}x with both colours"
        case model.Encounters(meetings=meetings, games=games):
            each = "1 game" if games == 1 else f"{games} games"
            return f"{len(meetings)} listed meetings of {each}"
        case model.Knockout(pairs=pairs):
            return f"knockout, matches of {pairs} {'pair' if pairs == 1 else 'pairs'}"
        case model.Match(games=games):
            return f"match of {games} games"


def going_on(spec: model.Format) -> list[str]:
    """Say how an event that is level goes on, and when it ends early."""
    match spec:
        case model.Knockout():
            return ["a match ends when it is decided, a level one by the next pair that is won"]
        case model.Match(extensions=extensions):
            return [_extension(extension) for extension in extensions]
    return []


def _extension(extension: model.Extension) -> str:
    at = "" if extension.time_control is None else f" at {extension.time_control.spoken}"
    again = ", again and again until one side is ahead" if extension.repeat else ""
    return f"if drawn, {extension.games} more{at}{again}"


def openings(event: model.Event, book: model.Book | None) -> str:
    """Say what an event's games begin with, and in which order: its exits, or start positions."""
    book_text = f"book {event.book}, {_order(book)}" if book is not None else ""
    if event.variant == "fischerandom":
        kind = "double Chess960" if event.double_random else "Chess960"
        return f"{kind}, {book_text or 'start positions by lot'}"
    if not book_text:
        return "none, all games begin at the start position"
    return f"{book_text}, the start position once" if event.start_position else book_text


def _order(book: model.Book) -> str:
    if book.order == "random":
        return "by lot"
    return "in its order" + (f" from exit {book.start}" if book.start > 1 else "")


# -- what ends a game early ------------------------------------------------------------


def early_ends(rules: contract.Adjudication, limits: contract.Limits) -> list[str]:
    """Say each rule that ends a game early, with its numbers; a rule not played is not there.

    ``limits`` name the tables where the rule names none.
    """
    return [*_tables(rules, limits), *_draws(rules), *_wins(rules), *_length(rules)]


def preset(rules: contract.Adjudication) -> str:
    """Name the rule text that the rules are from, and say whether the file changes them."""
    if not rules.rules:
        return ""
    same = rules == presets.PRESETS.get(rules.rules)
    return rules.rules if same else f"{rules.rules}, changed"


def _tables(rules: contract.Adjudication, limits: contract.Limits) -> Iterator[str]:
    if rules.syzygy is not None:
        path = rules.syzygy.path or limits.syzygy_path or "no directory"
        ends = "won or drawn by tables"
        if rules.syzygy.draw_only or rules.syzygy.decided_only:
            ends = f"{'drawn' if rules.syzygy.draw_only else 'won'} by tables"
        fifty = " without the fifty-move rule" if rules.syzygy.ignore_fifty else ""
        yield f"{ends}{fifty} at {rules.syzygy.men} men or fewer ({path})"


def _draws(rules: contract.Adjudication) -> Iterator[str]:
    if (few := rules.few_pieces_draw) is not None:
        pawns = "any pawns" if few.pawns is None else f"{few.pawns} pawns or fewer"
        yield (
            f"drawn after {few.plies} plies in a row with {few.pieces} pieces or fewer, kings"
            f" included, {pawns}, and evals within {few.bound_cp} centipawns"
        )
    if (draw := rules.eval_draw) is not None:
        yield (
            f"drawn after {draw.plies} plies in a row with evals within {draw.bound_cp}"
            f" centipawns{_from(draw.min_ply)}; {_ZEROING[draw.zeroing]}"
        )
    if (moves := rules.draw) is not None:
        yield (
            f"drawn after {moves.move_count} moves by each side in a row with evals within"
            f" {moves.score_cp} centipawns, from move {moves.move_number} on; {_ZEROING['restart']}"
        )


def _wins(rules: contract.Adjudication) -> Iterator[str]:
    if (win := rules.eval_win) is not None:
        yield (
            f"won after {win.plies} plies in a row with both evals {win.bound_cp}"
            f" centipawns or more for one side{_from(win.min_ply)}; {_ZEROING[win.zeroing]}"
        )
    if (resign := rules.resign) is not None:
        agreed = ", as the other side's say" if resign.twosided else ""
        yield (
            f"lost after {resign.move_count} moves in a row with own evals"
            f" {resign.score_cp} centipawns down or worse{agreed}"
        )


def _length(rules: contract.Adjudication) -> Iterator[str]:
    if rules.max_moves is not None:
        yield f"drawn after move {rules.max_moves}"


def _from(ply: int) -> str:
    return f", from ply {ply} on (move {(ply + 1) // 2})" if ply > 1 else ""
