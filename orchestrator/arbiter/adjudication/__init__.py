"""The rules that end a game early, as small objects fed ply by ply.

``judge.Judge`` is built from the order's ``contract.Adjudication`` and asks them in their
order on one ply: ``tablebase``, ``draws``, ``wins``, then the maximum of moves.
"""
