"""A repository on a server over real connections that break in every way, and who fetches it."""

from __future__ import annotations

import contextlib
import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from debug_gym_benchmarks.checkouts import Published, open_checkout
from debug_gym_core import RequirementError

LONG = 60.0
"""Seconds after which what should have happened has not."""


def git(directory: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=0"]
    done = subprocess.run(["git", *identity, *arguments], cwd=directory, capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class History:
    """A repository of three commits."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        git(directory, "init", "--quiet")
        self.first = self._commit({"a.txt": b"old\n", "gone.txt": b"gone\n"}, "first")
        (directory / "gone.txt").unlink()
        files = {
            "a.txt": b"new\n",
            "dir/b b.bin": bytes(range(256)),
            "dir/run.sh": b"#!/bin/sh\n",
            "big": os.urandom(1 << 20),
        }
        files |= {".gitattributes": b"a.txt export-ignore\n*.txt text eol=crlf\n", "dir/sub/\xe4.txt": b"umlaut\n"}
        (directory / "dir").mkdir()
        (directory / "dir" / "link").symlink_to("../a.txt")
        self.second = self._commit(files, "second")
        self.third = self._commit({"a.txt": b"newest\n"}, "third")

    def _commit(self, files: Mapping[str, bytes], message: str) -> str:
        for path, data in files.items():
            (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / path).write_bytes(data)
            (self.directory / path).chmod(0o755 if path.endswith(".sh") else 0o644)
        git(self.directory, "add", "--all")
        git(self.directory, "commit", "--quiet", "-m", message)
        return git(self.directory, "rev-parse", "HEAD")

    def published(self, url: str, commit: str | None = None) -> Published:
        return Published("acme/bugs", url, commit or self.second)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def reachable(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


class Line:
    """Connections to a server that can be held, cut and counted.

    Attributes:
        port: where it listens
        cut_after: bytes of the server after which a connection ends; None: it does not
        whole: how many connections, the first ones, are neither held nor cut
        connections: how many there were
        passed: bytes of the server, of all connections
        let: cleared, it holds connections
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self.cut_after: int | None = None
        self.whole = 0
        self.connections = 0
        self.passed = 0
        self.let = threading.Event()
        self.let.set()
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"git://127.0.0.1:{self.port}/history/.git"

    def close(self) -> None:
        self.let.set()
        with contextlib.suppress(OSError):  # it may be closed already
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self.connections += 1
                spared = self.connections <= self.whole
                threading.Thread(target=self._carry, args=(client, spared), daemon=True).start()

    def _carry(self, client: socket.socket, spared: bool) -> None:
        if not spared:
            self.let.wait(LONG)
        most = None if spared else self.cut_after
        if most == 0:
            client.close()
            return
        with contextlib.suppress(OSError), client, socket.create_connection(("127.0.0.1", self._target)) as server:
            asked = threading.Thread(target=self._pass_on, args=(client, server), daemon=True)
            asked.start()
            with contextlib.suppress(OSError):
                passed = 0
                while (data := server.recv(4096)) and (most is None or passed < most):
                    client.sendall(data)
                    passed += len(data)
                    self.passed += len(data)
            for one in (client, server):
                one.shutdown(socket.SHUT_RDWR)
            asked.join(LONG)

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                target.sendall(data)


def working_in(directory: Path) -> list[Path]:
    """The processes whose working directory is in a directory."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):  # it has ended
            if link.readlink().is_relative_to(directory):
                found.append(link)
    return found


def unfinished(kept: Path) -> list[str]:
    return [path.name for path in (kept / "clones").iterdir() if not path.name.endswith(".lock")]


@contextlib.contextmanager
def serving(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a web server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def refused(published: Published, source: str | None = None) -> str:
    with pytest.raises(RequirementError) as error:
        open_checkout(published, source)
    text = str(error.value)
    assert text.startswith("acme/bugs cannot be fetched from ") and "\n" not in text
    assert text.endswith("; say benchmark.source=DIRECTORY (or URL) of another clone of it")
    return text


FETCH = """
import json, sys
from debug_gym_benchmarks import clones
from debug_gym_benchmarks.checkouts import Published, open_checkout
from debug_gym_core.progress import listen

if most := sys.argv.pop():
    clones.FIRST = clones.RESUMED = clones.MOST = int(most)
listen(lambda what, line: print(json.dumps(line), flush=True))
print(json.dumps(["read", open_checkout(Published(*sys.argv[1:])).read("a.txt").decode()]), flush=True)
"""


class Fetching:
    """A process that opens a checkout."""

    def __init__(self, published: Published, most: str) -> None:
        arguments = [published.name, published.url, published.commit, most]
        self._process = subprocess.Popen(
            [sys.executable, "-c", FETCH, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self._said = self._process.stdout

    def hear(self, what: str) -> str:
        """The next line that has some words."""
        return next(line for line in self._said if what in line)

    def interrupt(self) -> None:
        """As Ctrl-C does, and wait for the end."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(LONG)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._said.close()
