"""A Docker engine that hangs when it is told to: a socket before the real one."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from pathlib import Path
from types import TracebackType

ENGINE = "/var/run/docker.sock"


class EngineProxy:
    """Passes requests on to the real engine, each over a connection of its own, except where it hangs.

    Attributes:
        url: value of DOCKER_HOST
        hangs: what it never answers: a pattern of `METHOD /path`; None: it answers all
        swallows: what it passes on but whose answers it keeps
    """

    def __init__(self, path: Path, engine: str = ENGINE) -> None:
        self.url = f"unix://{path}"
        self.hangs: str | None = None
        self.swallows: str | None = None
        self._engine = engine
        self._frozen = threading.Event()
        self._open: list[socket.socket] = []
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(64)

    def freeze(self) -> None:
        """Pass on nothing any more, and answer nothing."""
        self.hangs = "."
        self._frozen.set()

    def __enter__(self) -> EngineProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        for connection in (self._server, *self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                client = self._server.accept()[0]
            except OSError:
                return
            self._open.append(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                data = client.recv(65536)
                if not data:
                    client.close()
                    return
                head += data
            request = " ".join(head.split(b"\r\n", 1)[0].decode().split()[:2])
            if self.hangs is not None and re.search(self.hangs, request):
                return
            if b"Upgrade: tcp" not in head:  # so that the next request is looked at too
                head = re.sub(rb"\r\nConnection: [^\r]*", b"\r\nConnection: close", head)
            engine = socket.socket(socket.AF_UNIX)
            self._open.append(engine)
            engine.connect(self._engine)
            engine.sendall(head)
            threading.Thread(target=self._copy, args=(client, engine), daemon=True).start()
            if self.swallows is not None and re.search(self.swallows, request):
                while engine.recv(65536):
                    pass
                return
            self._copy(engine, client)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self._frozen.is_set():
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
