"""The season as a graph: games, pairings, rankings, decisions, gates and the season's end.

The games of an event are chained in their order of play; a ranking leads to the events
it promotes into, and to the end. What is not paired yet stands there as planned. The
graph tells no opening and no seed, so everybody may see it.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from orchestrator import contract
from orchestrator.season import published
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

    @functools.cached_property
    def data(self) -> Mapping[str, str]:
        """Return the node as plain data for JSON; made once, as nodes outlive many graphs."""
        return {
            "id": self.id,
            "kind": self.kind.value,
            "event": self.event,
            "label": self.label,
            "state": self.state.value,
        }


@functools.lru_cache(maxsize=4_096)  # a season of 2,000 games has 400, the same in each graph
def _edge(source: str, target: str) -> Mapping[str, str]:
    return {"from": source, "to": target}


@dataclasses.dataclass(frozen=True)
class Way:
    """The places of an event's final table from which engines go on to another event."""

    source: str
    target: str
    places: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Graph:
    """Nodes in the order of the file and of play; an edge leads from cause to effect."""

    season: str
    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]
    events: tuple[tuple[str, str], ...]  # id and name
    ways: tuple[Way, ...]

    def data(self) -> dict[str, Any]:
        """Return the graph as plain data for JSON."""
        return {
            "season": self.season,
            "events": [{"id": event, "name": name} for event, name in self.events],
            "nodes": [node.data for node in self.nodes],
            "edges": list(itertools.starmap(_edge, self.edges)),
            "ways": [
                {"from": way.source, "to": way.target, "places": list(way.places)}
                for way in self.ways
            ],
        }


class Rounds:
    """How far the paired games of each round of each event are, kept up to date game by game.

    ``see`` takes games whose state may have changed; the two that are running and ready are
    looked at by themselves. What cancels or pairs games, or changes their order, needs a new one.
    """

    def __init__(self, state: season_state.SeasonState) -> None:
        """Look at all paired games once."""
        self._states: dict[str, NodeState] = {}
        self._counts: dict[str, dict[int, Counter[NodeState]]] = {}
        self._nodes: dict[tuple[str, int, int], Node] = {}  # by event, round and games planned
        self._passing = _passing(state)
        for event in state.events.values():
            self._counts[event.id] = {}
            for name in event.order:
                game = state.games[name]
                self._states[name] = _node_state(state, game, self._passing)
                counts = self._counts[event.id].setdefault(game.round_number, Counter())
                counts[self._states[name]] += 1

    def see(self, state: season_state.SeasonState, games: Iterable[str]) -> None:
        """Look at games again."""
        before, self._passing = self._passing, _passing(state)
        for name in {*games, *before, *self._passing}:
            if name is None or name not in self._states:
                continue
            game = state.games[name]
            counts = self._counts[game.event][game.round_number]
            self._nodes.pop((game.event, game.round_number, 0), None)
            counts[self._states[name]] -= 1
            self._states[name] = _node_state(state, game, self._passing)
            counts[self._states[name]] += 1

    def nodes(self, event: events.EventState, planned: list[tuple[int, int]]) -> Iterator[Node]:
        """Yield the rounds of an event, then those that are still to be paired."""
        counts, expected = self._counts[event.id], dict(planned)
        for number in dict.fromkeys([*counts, *expected]):
            key = (event.id, number, expected.get(number, 0))
            if key not in self._nodes or (key[2] and number in counts):
                states = counts.get(number, Counter()) + Counter({NodeState.PLANNED: key[2]})
                self._nodes[key] = _round(event, number, states)
            yield self._nodes[key]


def build(
    state: season_state.SeasonState, *, by_round: bool = False, rounds: Rounds | None = None
) -> Graph:
    """Return the graph of a season; ``by_round`` folds the games of a round into one node."""
    launched = state.launched
    rounds = Rounds(state) if by_round and rounds is None else rounds
    nodes: list[Node] = []
    edges: list[tuple[str, str]] = []
    for event in state.events.values():
        chain = list(_chain(state, event, rounds))
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
    ways = tuple(
        Way(event.id, promotion.to, promotion.places)
        for event in state.events.values()
        for promotion in event.spec.promote
    )
    return Graph(launched.id, tuple(nodes), tuple(edges), names, ways)


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
    state: season_state.SeasonState, event: events.EventState, rounds: Rounds | None
) -> Iterator[Node]:
    if event.spec.gated or event.opens_at_ms is not None:
        yield _gate(event)
    planned = pairing.remaining(state, event)
    label = f"{event.spec.name}: pairings"
    paired = NodeState.RUNNING if planned and event.order else _done(not planned)
    yield Node(f"{event.id}:pairing", Kind.PAIRING, event.id, label, paired)
    if rounds is None:
        yield from _games(state, event, planned)
    else:
        yield from rounds.nodes(event, planned)
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
) -> Iterator[Node]:
    """Yield the node of every game, the paired ones first."""
    passing = _passing(state)
    for game_id in event.order:
        yield _game(state, state.games[game_id], passing)
    number = len(event.order)
    for _, games in planned:
        for _ in range(games):
            number += 1
            label = f"Game {number}"
            game_id = event.game_id(number)
            yield Node(game_id, Kind.GAME, event.id, label, NodeState.PLANNED)


_Passing = tuple[str | None, str | None]


def _passing(state: season_state.SeasonState) -> _Passing:
    """Return the game that runs, and the one that is ready."""
    return (state.running.game if state.running is not None else None, state.ready_game())


def _node_state(state: season_state.SeasonState, game: events.Game, passing: _Passing) -> NodeState:
    running, ready = passing
    if game.finished is not None or state.dropped(game):
        return NodeState.DONE
    if game.id == running:
        return NodeState.RUNNING
    return NodeState.READY if game.id == ready else NodeState.PAIRED


def _game(state: season_state.SeasonState, game: events.Game, passing: _Passing) -> Node:
    event = state.events[game.event]
    white, black = (orders.pinned(state, event, engine).name for engine in (game.white, game.black))
    label = f"{game.round} {white} - {black}"
    if published.annulled(state, game):
        label = f"{label} annulled"
    elif state.dropped(game):
        label = f"{label} cancelled"
    elif game.finished is not None:
        label = f"{label} {game.finished.result}"
    return Node(game.id, Kind.GAME, game.event, label, _node_state(state, game, passing))


def _round(event: events.EventState, number: int, states: Counter[NodeState]) -> Node:
    label = f"Round {number}: {states[NodeState.DONE]}/{states.total()} games"
    return Node(f"{event.id}:round-{number}", Kind.ROUND, event.id, label, _round_state(states))


def _round_state(states: Counter[NodeState]) -> NodeState:
    if states[NodeState.DONE] == states.total():
        return NodeState.DONE
    if states[NodeState.RUNNING] or states[NodeState.DONE]:
        return NodeState.RUNNING
    order = (NodeState.READY, NodeState.PAIRED, NodeState.PLANNED)
    return next(state for state in order if states[state])


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
