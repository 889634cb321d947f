"""An engine that runs nothing: it answers as a real one does up to the start of a container."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


class PretendedEngine:
    """An engine without containers and, at first, without images; it can get any.

    Attributes:
        url: value of DOCKER_HOST
        has_init: whether it finds an init for containers
        images: names of images that are there
        created: what it was asked to create: the image, and whether with an init
    """

    def __init__(self, *, has_init: bool = True) -> None:
        self.has_init = has_init
        self.images: set[str] = set()
        self.created: list[tuple[str, bool]] = []
        engine = self

        class Answering(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = re.sub(r"^/v[0-9.]+", "", self.path)
                status, said = engine.answer(f"{self.command} {path}", json.loads(body) if body else {})
                data = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Api-Version", "1.43")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.url = f"tcp://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> PretendedEngine:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Status and content of an answer."""
        image = re.match(r"GET /images/(.+)/json$", request)
        pulled = re.match(r"POST /images/create\?fromImage=([^&]+)&tag=(.+)$", request)
        if request == "GET /_ping":
            return 200, "OK"
        if re.match(r"GET /(containers|images)/json\?", request):
            return 200, []
        if request.endswith("/top"):
            return 200, {"Titles": ["UID", "PID"], "Processes": [["65533", "1"]]}
        if image:
            return (200, {"Id": "sha256:0"}) if image[1] in self.images else (404, {"message": "no such image"})
        if pulled:
            self.images.add(f"{pulled[1]}:{pulled[2]}")
            return 200, {"status": "Pull complete", "id": "layer"}
        if request.startswith("POST /containers/create"):
            return self._create(body["Image"], bool(body["HostConfig"]["Init"]))
        return 500, {"message": f"{request.split('?')[0]}: this engine runs nothing"}

    def _create(self, image: str, init: bool) -> tuple[int, Any]:
        self.created.append((image, init))
        if image not in self.images:
            return 404, {"message": f"No such image: {image}"}
        if init and not self.has_init:
            return 500, {"message": "init binary not found on the host: docker-init"}
        return 201, {"Id": "0123456789abcdef", "Warnings": []}
