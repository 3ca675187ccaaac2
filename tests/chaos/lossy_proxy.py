"""A proxy before Redis that can lose replies: the request has been carried out, nobody knows.

``python lossy_proxy.py SOCKET UPSTREAM``, UPSTREAM a ``host:port`` or a socket's path. While
the file ``SOCKET.lose`` exists, a reply is swallowed: with ``close`` in it both ends are
closed at once, with ``silence`` the client waits for its time-out. With a command's name in it
only the replies to that command are swallowed, in silence, and printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import sys

CHUNK_BYTES = 1 << 16


class Proxy:
    """One listening socket and the server behind it."""

    def __init__(self, listen: str, upstream: str) -> None:
        self._listen, self._upstream = listen, upstream
        self._lose = pathlib.Path(f"{listen}.lose")

    async def serve(self) -> None:
        """Serve until this process is killed."""
        pathlib.Path(self._listen).unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._client, self._listen)
        await server.serve_forever()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            behind, before = await self._connect()
        except OSError:
            writer.close()
            return
        asked = [b""]  # what this client has sent last
        ways = {
            asyncio.create_task(self._requests(reader, before, asked)),
            asyncio.create_task(self._replies(behind, writer, asked)),
        }
        _, left = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in left:
            way.cancel()
        writer.close()
        before.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, colon, port = self._upstream.rpartition(":")
        if colon:
            return await asyncio.open_connection(host, int(port))
        return await asyncio.open_unix_connection(self._upstream)

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: list[bytes]
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                asked[0] = chunk
                writer.write(chunk)
                await writer.drain()

    async def _replies(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: list[bytes]
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                way = self._way()
                if way == "close":
                    return
                if way.isupper() and way.encode() in asked[0]:
                    print(f"lost: {chunk!r}", flush=True)
                elif way != "silence":
                    writer.write(chunk)
                    await writer.drain()

    def _way(self) -> str:
        try:
            return self._lose.read_text()
        except FileNotFoundError:
            return ""


if __name__ == "__main__":
    asyncio.run(Proxy(*sys.argv[1:3]).serve())
