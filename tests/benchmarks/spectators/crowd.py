"""A crowd of spectators in one process: ``python crowd.py PORT COUNT``.

As cheap as can be, since it shares its core with the server that it watches: raw sockets,
one epoll, and of every event only its id is read. Says ``ready`` when all of them have
their snapshot, leaves at a line ``GAME PLY`` on its input when all have seen that ply, and
prints then, as JSON, when each ply came to each spectator (CLOCK_MONOTONIC, ns) and how
many were sent away.
"""

from __future__ import annotations

import json
import re
import resource
import select
import socket
import sys
import time

REQUEST = b"GET /api/v1/live HTTP/1.1\r\nHost: farm\r\n\r\n"
SNAPSHOT = b"event: snapshot\n"
PLY = re.compile(rb"id: (\S+)\nevent: (?:ply|game)\n")
DATA = re.compile(rb"data: ([^\n]*)\n")
END = b"\n\n\r\n"  # of a whole chunk: events end by an empty line
COMING = 100  # connect at once
BYTES = 1 << 18  # read at once
Ply = tuple[str, int]  # game and number
DRAIN_SECONDS = 30.0  # s: the last ply of a game may be on its way so long
PATIENCE_SECONDS = 120.0  # s: all of them have their snapshot by then


class Spectator:
    """One of them: its socket, and what is not whole yet."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(REQUEST)
        self.socket.setblocking(False)
        self.rest = b""
        self.greeted = False


class Crowd:
    """All of them; ``seen`` holds when a ply came, by its event's id."""

    def __init__(self, port: int, count: int) -> None:
        self.poll = select.epoll()
        self.told: dict[int, Spectator] = {}
        self.seen: dict[bytes, list[int]] = {}
        self.plies: dict[bytes, list[Ply]] = {}
        self.greeted = self.ended = 0
        for first in range(0, count, COMING):
            for _ in range(first, min(first + COMING, count)):
                one = Spectator(port)
                self.told[one.socket.fileno()] = one
                self.poll.register(one.socket, select.EPOLLIN)
            self.look(0.0)
        limit = time.monotonic() + PATIENCE_SECONDS
        while self.greeted < count and time.monotonic() < limit and not self.ended:
            self.look(0.1)
        self.seen.clear()  # from here on all of them are there

    def look(self, seconds: float) -> None:
        """Read what has come."""
        for number, _ in self.poll.poll(seconds):
            if number in self.told:
                self.read(self.told[number])

    def read(self, one: Spectator) -> None:
        """Read what has come to one spectator, and note the plies in it."""
        try:
            data = one.socket.recv(BYTES)
        except ConnectionError:
            data = b""
        now_ns = time.monotonic_ns()
        if not data:
            self.ended += 1
            del self.told[one.socket.fileno()]
            one.socket.close()
            return
        data = one.rest + data
        one.rest = b"" if data.endswith(END) else data
        if one.rest:
            return
        if not one.greeted and SNAPSHOT in data:
            one.greeted = True
            self.greeted += 1
        for found in PLY.finditer(data):
            self.note(found.group(1), data, found.end(), now_ns)

    def note(self, event: bytes, data: bytes, at: int, now_ns: int) -> None:
        """Note that a ply, or a game with all its plies, has come; read which, the first time."""
        if event not in self.seen:
            found = DATA.match(data, at)
            assert found, data[at : at + 100]
            told = json.loads(found.group(1))
            plies = told["plies"] if "plies" in told else [told["ply"]]
            self.plies[event] = [(told["game"], ply["n"]) for ply in plies]
            self.seen[event] = []
        self.seen[event].append(now_ns)

    def all_saw(self, ply: Ply) -> bool:
        """Say whether a ply has come to everybody."""
        there = len(self.told)
        return any(
            ply in self.plies[event] and len(stamps) >= there for event, stamps in self.seen.items()
        )

    def report(self) -> str:
        """Return what was seen."""
        first: dict[Ply, list[int]] = {}
        for event, stamps in self.seen.items():
            for ply in self.plies[event]:
                first.setdefault(ply, stamps)
        plies = [[*ply, stamps] for ply, stamps in first.items()]
        return json.dumps({"ended": self.ended, "plies": plies})


def main(port: int, count: int) -> None:
    """Come, watch, leave."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    crowd = Crowd(port, count)
    print("ready", flush=True)
    crowd.poll.register(sys.stdin, select.EPOLLIN)
    while not select.select([sys.stdin], [], [], 0)[0]:
        crowd.look(1.0)
    game, number = sys.stdin.readline().split()
    limit = time.monotonic() + DRAIN_SECONDS
    while not crowd.all_saw((game, int(number))) and time.monotonic() < limit:
        crowd.look(0.2)
    print(crowd.report(), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
