"""Engine scores as viewers read them: White's view, pawns, mates in plies.

Engines report from the mover's side (``contract.Score``); a mate and a centipawn score
stay two kinds of number, so that no large evaluation is ever printed as a mate.
"""

from __future__ import annotations

from orchestrator import contract


def white_view(score: contract.Score, mover: contract.Side) -> contract.Score:
    """Turn a mover's score into White's.

    A mate score of 0 (the mover is mated) cannot be turned, as 0 has no sign; ``text``
    and ``favours`` know the mover and treat it rightly.
    """
    if mover == "white":
        return score
    cp = None if score.cp is None else -score.cp
    mate = None if score.mate is None else -score.mate
    return contract.Score(cp=cp, mate=mate)


def white_wdl(wdl: contract.Wdl, mover: contract.Side) -> contract.Wdl:
    """Turn a mover's wins, draws and losses (per mille) into White's."""
    wins, draws, losses = wdl
    return wdl if mover == "white" else (losses, draws, wins)


def favours(score: contract.Score, mover: contract.Side) -> contract.Side | None:
    """Return the side a score prefers, ``None`` for an even or empty score."""
    if score.mate is not None:
        ahead = score.mate > 0
    elif score.cp:
        ahead = score.cp > 0
    else:
        return None
    return "white" if ahead == (mover == "white") else "black"


def text(score: contract.Score, mover: contract.Side) -> str:
    """Write a score as the PGN field ``wv``; '' when it holds neither kind.

    Pawns with two decimals without a plus sign (never ``-0.00``); mates as ``M`` or
    ``-M`` and plies: 2N - 1 when the mover mates in N moves, 2N when he is mated.
    """
    if score.mate is not None:
        plies = 2 * score.mate - 1 if score.mate > 0 else -2 * score.mate
        return f"{'-' if favours(score, mover) == 'black' else ''}M{plies}"
    if score.cp is None:
        return ""
    centipawns = score.cp if mover == "white" else -score.cp
    return f"{'-' if centipawns < 0 else ''}{abs(centipawns) // 100}.{abs(centipawns) % 100:02}"
