"""The season as a graph: games, pairings, rankings, decisions, gates and the season's end.

The games of an event are chained in their order of play; a ranking leads to the events
it promotes into, and to the end. What is not paired yet stands there as planned. The
graph tells no opening and no seed, so everybody may see it.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Iterator
from typing import Any, Final

from orchestrator import contract
from orchestrator.season.fold import events, orders, pairing, plan
from orchestrator.season.fold import state as season_state

END = "season:end"


class Kind(enum.StrEnum):
    """What a node is."""

    GATE = "gate"
    PAIRING = "pairing"
    GAME = "game"
    ROUND = "round"
    RANKING = "ranking"
    DECISION = "decision"
    END = "end"


class NodeState(enum.StrEnum):
    """How far a node is: planned → (paired →) waiting or ready → running → done."""

    PLANNED = "planned"
    PAIRED = "paired"
    WAITING = "waiting"
    READY = "ready"
    RUNNING = "running"
    DONE = "done"


@dataclasses.dataclass(frozen=True)
class Node:
    """One thing that happens in a season; ``event`` is '' for the season's end."""

    id: str
    kind: Kind
    event: str
    label: str
    state: NodeState


@dataclasses.dataclass(frozen=True)
class Graph:
    """Nodes in the order of the file and of play; an edge leads from cause to effect."""

    season: str
    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    events: tuple[tuple[str, str], ...]  # id and name

    def data(self) -> dict[str, Any]:
        """Return the graph as plain data for JSON."""
        return {
            "season": self.season,
            "events": [{"id": event, "name": name} for event, name in self.events],
            "nodes": [
                {
                    "id": node.id,
                    "kind": node.kind.value,
                    "event": node.event,
                    "label": node.label,
                    "state": node.state.value,
                }
                for node in self.nodes
            ],
            "edges": [{"from": source, "to": target} for source, target in self.edges],
        }


def build(state: season_state.SeasonState, *, by_round: bool = False) -> Graph:
    """Return the graph of a season; ``by_round`` folds the games of a round into one node."""
    launched = state.launched
    nodes: list[Node] = []
    edges: list[tuple[str, str]] = []
    for event in state.events.values():
        chain = list(_chain(state, event, by_round=by_round))
        nodes += chain
        edges += [(a.id, b.id) for a, b in itertools.pairwise(chain)]
        awaited = plan.awaited(launched.season, event.id)
        edges += [(_ranking_id(source), chain[0].id) for source in awaited]
        edges.append((_ranking_id(event.id), END))
        asked = list(_decisions(event))
        nodes += asked
        edges += [(_ranking_id(event.id), node.id) for node in asked]
        edges += [(node.id, END) for node in asked]
    nodes.append(_end(state))
    names = tuple((event.id, event.spec.name) for event in state.events.values())
    return Graph(launched.id, tuple(nodes), tuple(edges), names)


def _ranking_id(event_id: str) -> str:
    return f"{event_id}:ranking"


def _end(state: season_state.SeasonState) -> Node:
    label = "Season's end"
    if state.finished:
        label = f"Champion: {state.engines[state.champion].name}"
    elif state.abandoned:
        label = "Season abandoned"
    return Node(END, Kind.END, "", label, _done(state.over))


def _done(done: bool) -> NodeState:  # noqa: FBT001 - a condition, not a switch
    return NodeState.DONE if done else NodeState.PLANNED


def _chain(
    state: season_state.SeasonState, event: events.EventState, *, by_round: bool
) -> Iterator[Node]:
    if event.spec.gated or event.opens_at_ms is not None:
        yield _gate(event)
    planned = pairing.remaining(state, event)
    label = f"{event.spec.name}: pairings"
    paired = NodeState.RUNNING if planned and event.order else _done(not planned)
    yield Node(f"{event.id}:pairing", Kind.PAIRING, event.id, label, paired)
    games = _games(state, event, planned)
    yield from _rounds(event, games) if by_round else (node for _, node in games)
    label = f"{event.spec.name}: ranking"
    ranked = event.status is events.Status.RANKED
    yield Node(_ranking_id(event.id), Kind.RANKING, event.id, label, _done(ranked))


def _decisions(event: events.EventState) -> Iterator[Node]:
    for answer in event.answers.values():
        label = f"Decided: {', '.join(answer.choose)}"
        yield Node(answer.decision, Kind.DECISION, event.id, label, NodeState.DONE)
    for asked in event.asked.values():
        label = f"Organizers decide: {', '.join(asked.engines)}"
        yield Node(asked.decision, Kind.DECISION, event.id, label, NodeState.WAITING)


def _gate(event: events.EventState) -> Node:
    match event.status:
        case events.Status.WAITING:
            gate_state = NodeState.PLANNED
        case events.Status.GATE:
            gate_state = NodeState.WAITING
        case events.Status.ABANDONED:
            gate_state = _done(bool(event.entrants))
        case _:
            gate_state = NodeState.DONE
    label = f"Break of {event.spec.break_}" if event.spec.break_ else "Submission deadline"
    if event.spec.break_ == "operator":
        label = "Gate of the operator"
    return Node(f"{event.id}:gate", Kind.GATE, event.id, label, gate_state)


def _games(
    state: season_state.SeasonState, event: events.EventState, planned: list[tuple[int, int]]
) -> Iterator[tuple[int, Node]]:
    """Yield round number and node of every game, the paired ones first."""
    for game_id in event.order:
        game = state.games[game_id]
        yield game.round_number, _game(state, game)
    number = len(event.order)
    for round_number, games in planned:
        for _ in range(games):
            number += 1
            label = f"Game {number}"
            game_id = event.game_id(number)
            yield round_number, Node(game_id, Kind.GAME, event.id, label, NodeState.PLANNED)


def _game(state: season_state.SeasonState, game: events.Game) -> Node:
    event = state.events[game.event]
    white, black = (orders.pinned(state, event, one).name for one in (game.white, game.black))
    label = f"{game.round} {white} - {black}"
    node_state = NodeState.PAIRED
    if state.dropped(game):
        label, node_state = f"{label} cancelled", NodeState.DONE
    elif game.finished is not None:
        label, node_state = f"{label} {game.finished.result}", NodeState.DONE
    elif state.running is not None and state.running.game == game.id:
        node_state = NodeState.RUNNING
    elif state.ready_game() == game.id:
        node_state = NodeState.READY
    return Node(game.id, Kind.GAME, game.event, label, node_state)


def _rounds(event: events.EventState, games: Iterator[tuple[int, Node]]) -> Iterator[Node]:
    rounds: dict[int, list[NodeState]] = {}
    for number, node in games:
        rounds.setdefault(number, []).append(node.state)
    for number, states in rounds.items():
        done = states.count(NodeState.DONE)
        label = f"Round {number}: {done}/{len(states)} games"
        node_id = f"{event.id}:round-{number}"
        yield Node(node_id, Kind.ROUND, event.id, label, _round_state(states))


def _round_state(states: list[NodeState]) -> NodeState:
    if all(state is NodeState.DONE for state in states):
        return NodeState.DONE
    if NodeState.RUNNING in states or NodeState.DONE in states:
        return NodeState.RUNNING
    return NodeState.READY if NodeState.READY in states else states[0]


# -- renderers -----------------------------------------------------------------------

_COLOURS: Final = {
    NodeState.PLANNED: "#eeeeee",
    NodeState.PAIRED: "#ffffff",
    NodeState.WAITING: "#ffe9a8",
    NodeState.READY: "#cfe8ff",
    NodeState.RUNNING: "#7fc4ff",
    NodeState.DONE: "#c9efc9",
}
_SHAPES: Final = {
    Kind.GATE: ("{{", "}}", "hexagon"),
    Kind.PAIRING: ("[/", "/]", "parallelogram"),
    Kind.GAME: ("[", "]", "box"),
    Kind.ROUND: ("[[", "]]", "box3d"),
    Kind.DECISION: ("{", "}", "diamond"),
    Kind.RANKING: ("([", "])", "ellipse"),
    Kind.END: ("((", "))", "doublecircle"),
}


def mermaid(drawn: Graph) -> str:
    """Return the graph as a Mermaid flowchart."""
    short = {node.id: f"n{number}" for number, node in enumerate(drawn.nodes)}
    lines = ["flowchart LR"]
    for event, name in drawn.events:
        lines.append(f'  subgraph {event}["{_mermaid_text(name)}"]')
        lines += [f"    {_mermaid_node(n, short)}" for n in drawn.nodes if n.event == event]
        lines.append("  end")
    lines += [f"  {_mermaid_node(node, short)}" for node in drawn.nodes if not node.event]
    lines += [f"  {short[source]} --> {short[target]}" for source, target in drawn.edges]
    lines += [f"  classDef {state} fill:{fill}" for state, fill in _COLOURS.items()]
    return "\n".join(lines) + "\n"


def _mermaid_node(node: Node, short: dict[str, str]) -> str:
    left, right, _ = _SHAPES[node.kind]
    return f'{short[node.id]}{left}"{_mermaid_text(node.label)}"{right}:::{node.state}'


def _mermaid_text(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def dot(drawn: Graph) -> str:
    """Return the graph in Graphviz' language."""
    lines = [f"digraph {contract.dumps(drawn.season)} {{", "  rankdir=LR; node [style=filled];"]
    for event, name in drawn.events:
        lines.append(f"  subgraph {contract.dumps('cluster_' + event)} {{")
        lines.append(f"    label={contract.dumps(name)};")
        lines += [f"    {_dot_node(node)}" for node in drawn.nodes if node.event == event]
        lines.append("  }")
    lines += [f"  {_dot_node(node)}" for node in drawn.nodes if not node.event]
    for source, target in drawn.edges:
        lines.append(f"  {contract.dumps(source)} -> {contract.dumps(target)};")
    return "\n".join([*lines, "}"]) + "\n"


def _dot_node(node: Node) -> str:
    label, shape = contract.dumps(node.label), _SHAPES[node.kind][2]
    colour = _COLOURS[node.state]
    return f'{contract.dumps(node.id)} [label={label}, shape={shape}, fillcolor="{colour}"];'
