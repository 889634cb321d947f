"""A server on loopback that answers as a test tells it to: what a model's SDK talks to instead of the real service."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    """What was asked.

    Attributes:
        path: of the address, without the query
        headers: by name in lower case
        body: the JSON that was sent; None when it was none
        query: of the address
    """

    path: str
    headers: Mapping[str, str]
    body: Any
    query: str = ""


@dataclass(frozen=True)
class Reply:
    """What is answered.

    Attributes:
        body: JSON types, sent as such; bytes are sent as they are
        status: of HTTP
        headers: further ones
        events: instead of a body: a stream of server-sent events, each as it is between two empty lines
        delay: seconds before it is sent, and between two events
        cut: close the connection after this many bytes of the body, or events of the stream, without an end
    """

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    events: Sequence[str] | None = None
    delay: float = 0.0
    cut: int | None = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # of those that connect at once; one too many is taken a second later


class ModelServer:
    """Serves on a free port of loopback until it is closed; a context manager.

    Attributes:
        url: its address, without a path
        requests: what was asked, in order
        active: requests that are being answered
        most_active: the most that there were at once
    """

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        """Start to serve.

        Args:
            answer: is asked for each request, in a thread of its own
        """
        self.requests: list[Request] = []
        self.active = self.most_active = 0
        self._answer = answer
        self._mutex = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True)
        self._thread.start()

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _handle(self, request: Request) -> Reply:
        with self._mutex:
            self.requests.append(request)
            self.active += 1
            self.most_active = max(self.active, self.most_active)
        try:
            return self._answer(request)
        finally:
            with self._mutex:
                self.active -= 1

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else the body of an answer waits 40 ms for its head to be acknowledged

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("content-length") or 0))
                self.reply(data)

            def do_GET(self) -> None:
                self.reply(b"")

            def reply(self, data: bytes) -> None:
                try:
                    body = json.loads(data)
                except ValueError:
                    body = None
                headers = {key.lower(): value for key, value in self.headers.items()}
                path, _, query = self.path.partition("?")
                reply = server._handle(Request(path, headers, body, query))
                time.sleep(reply.delay)
                try:
                    self.send(reply)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def send(self, reply: Reply) -> None:
                streamed = reply.events is not None
                raw = isinstance(reply.body, bytes)
                body = reply.body if raw else b"" if streamed else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                kind = "text/event-stream" if streamed else "application/json"
                for name, value in {"content-type": kind, **reply.headers}.items():
                    self.send_header(name, value)
                if streamed:
                    self.send_header("connection", "close")
                else:
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                if not streamed:
                    self.wfile.write(body if reply.cut is None else body[: reply.cut])
                for event in (reply.events or ())[: reply.cut]:
                    self.wfile.write(event.encode() + b"\n\n")
                    self.wfile.flush()
                    time.sleep(reply.delay)
                if streamed or reply.cut is not None:
                    self.wfile.flush()
                    self.close_connection = True
                    if reply.cut is not None:
                        self.connection.shutdown(socket.SHUT_RDWR)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
