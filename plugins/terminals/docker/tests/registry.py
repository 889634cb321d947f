"""A registry of container images on the loopback interface that serves one tiny image, well or badly."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

TYPE = "application/vnd.docker.distribution.manifest.v2+json"
NAME = "debug-gym-test/tiny"


class Registry:
    """Speaks the registry's HTTP API V2; https://distribution.github.io/distribution/spec/api/.

    Attributes:
        behaviour: `well`, `slowly`, `stalls` (in the middle of a layer), `refuses` (401), `lacks` (404), `closes` (the
            connection, in the middle of a layer), `silent` (no answer to anything)
        asked: how often each path was asked for
    """

    def __init__(self, behaviour: str = "well", layers: int = 3, size: int = 300_000) -> None:
        self.behaviour = behaviour
        self.asked: Counter[str] = Counter()
        self.released = threading.Event()
        self.blobs: dict[str, bytes] = {}
        digests, compressed = [], []
        for number in range(layers):
            tar = io.BytesIO()
            with tarfile.open(fileobj=tar, mode="w") as archive:
                info = tarfile.TarInfo(f"file{number}")
                info.size = size
                archive.addfile(info, io.BytesIO(os.urandom(size)))
            digests.append(f"sha256:{hashlib.sha256(tar.getvalue()).hexdigest()}")
            compressed.append(self._keep(gzip.compress(tar.getvalue(), 1)))
        config = self._keep(
            json.dumps(
                {
                    "architecture": "amd64",
                    "os": "linux",
                    "config": {},
                    "rootfs": {"type": "layers", "diff_ids": digests},
                    "history": [{"created_by": "test"}] * layers,
                }
            ).encode()
        )
        manifest = {"schemaVersion": 2, "mediaType": TYPE}
        manifest["config"] = self._described(config, "application/vnd.docker.container.image.v1+json")
        kind = "application/vnd.docker.image.rootfs.diff.tar.gzip"
        manifest["layers"] = [self._described(digest, kind) for digest in compressed]
        self.manifest = json.dumps(manifest).encode()
        self.last_layer = compressed[-1]
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                registry._answer(self)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """An engine asks in TLS first, and hangs up when it is told to stop."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.image = f"127.0.0.1:{self._server.server_address[1]}/{NAME}:latest"

    def __enter__(self) -> Registry:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def _keep(self, data: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.blobs[digest] = data
        return digest

    def _described(self, digest: str, kind: str) -> dict[str, object]:
        return {"mediaType": kind, "size": len(self.blobs[digest]), "digest": digest}

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path
        self.asked[path] += 1
        if self.behaviour == "silent":
            self.released.wait()
        elif self.behaviour == "refuses":
            body = json.dumps({"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}).encode()
            self._send(handler, 401, body, "application/json", {"Www-Authenticate": 'Basic realm="test"'})
        elif path == "/v2/":
            self._send(handler, 200, b"{}", "application/json", {})
        elif "/manifests/" in path and self.behaviour != "lacks":
            digest = f"sha256:{hashlib.sha256(self.manifest).hexdigest()}"
            self._send(handler, 200, self.manifest, TYPE, {"Docker-Content-Digest": digest})
        elif path.rpartition("/")[2] in self.blobs and self.behaviour != "lacks":
            self._send(handler, 200, self.blobs[path.rpartition("/")[2]], "application/octet-stream", {})
        else:
            body = json.dumps({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}).encode()
            self._send(handler, 404, body, "application/json", {})

    def _send(
        self, handler: BaseHTTPRequestHandler, status: int, body: bytes, kind: str, headers: dict[str, str]
    ) -> None:
        handler.send_response(status)
        headers = {"Docker-Distribution-Api-Version": "registry/2.0", "Content-Type": kind, **headers}
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command == "HEAD":
            return
        if handler.path.endswith(self.last_layer) and self.behaviour in ("stalls", "closes"):
            handler.wfile.write(body[: len(body) // 2])
            handler.wfile.flush()
            if self.behaviour == "stalls":
                self.released.wait()
            handler.close_connection = True
        elif handler.path.endswith(self.last_layer) and self.behaviour == "slowly":
            for start in range(0, len(body), len(body) // 20):
                handler.wfile.write(body[start : start + len(body) // 20])
                handler.wfile.flush()
                time.sleep(0.2)
        else:
            handler.wfile.write(body)
