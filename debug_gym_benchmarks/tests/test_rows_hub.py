"""Rows from the hub: the real `datasets` library against a server on this machine that answers as the hub does."""

from __future__ import annotations

import hashlib
import http.server
import importlib.util
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

# Looked for only: to import it takes seconds, and the tests do so in processes of their own.
pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("datasets", "pyarrow"))), reason="install debug-gym-benchmarks[hub]"
)

COMMIT = "c0ffee" + "0" * 34
DATA = "/datasets/acme/bugs/resolve/"
ABOUT = "/api/datasets/acme/bugs"


def parquet(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    target = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), target)
    return target.getvalue()


class Hub(http.server.ThreadingHTTPServer):
    """A hub with one data set, `acme/bugs`, of two splits; the first download of a file breaks off in its middle."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.files = {
            "data/test-00000-of-00001.parquet": parquet(
                [{"id": f"bug-{n}", "tests": [f"t.py::test_{n}"], "noise": os.urandom(4000).hex()} for n in range(300)]
            ),
            "data/dev-00000-of-00001.parquet": parquet([{"id": "dev-1", "tests": [], "noise": ""}]),
        }
        self.asked: list[str] = []
        self.cut: set[str] = set()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = urlparse(self.path).path
        self.server.asked.append(f"{self.command} {path}")
        files = self.server.files
        if path.startswith(DATA):
            revision, _, name = path.removeprefix(DATA).partition("/")
            if revision not in ("main", COMMIT):
                self.refuse("RevisionNotFound", "Revision not found")
            elif name not in files:
                self.refuse("EntryNotFound", "Entry not found")
            else:
                self.give(name, files[name])
        elif path in (ABOUT, f"{ABOUT}/revision/main", f"{ABOUT}/revision/{COMMIT}"):
            siblings = [{"rfilename": name} for name in files]
            facts = {"private": False, "gated": False, "disabled": False, "downloads": 0, "likes": 0, "tags": []}
            self.answer(200, json.dumps({"id": "acme/bugs", "sha": COMMIT, **facts, "siblings": siblings}).encode())
        elif path == f"{ABOUT}/tree/{COMMIT}":
            self.answer(200, json.dumps([{"type": "directory", "path": "data", "oid": "0" * 40, "size": 0}]).encode())
        elif path == f"{ABOUT}/tree/{COMMIT}/data":
            entries = [{"type": "file", "path": name, "oid": "1" * 40, "size": len(b)} for name, b in files.items()]
            self.answer(200, json.dumps(entries).encode())
        else:
            self.refuse("RepoNotFound", "Repository not found")

    def give(self, name: str, content: bytes) -> None:
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": COMMIT}
        asked = self.headers.get("Range")
        if asked and self.command == "GET":
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, stop = int(first), int(last) + 1 if last else len(content)
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
            self.answer(206, content[start:stop], headers)
        elif self.command == "GET" and name not in self.server.cut:
            self.server.cut.add(name)
            self.answer(200, content, headers, whole=False)
        else:
            self.answer(200, content, headers)

    def refuse(self, code: str, text: str) -> None:
        self.answer(404, json.dumps({"error": text}).encode(), {"X-Error-Code": code, "X-Error-Message": text})

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None, *, whole: bool = True) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body if whole else body[: len(body) // 2])
            self.close_connection = self.close_connection or not whole

    def log_message(self, *args: Any) -> None:
        """Silent."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


ASK = """
import json, sys
from debug_gym_benchmarks import hub
from debug_gym_benchmarks.row_fields import Field
from debug_gym_benchmarks.rows import Rows
from debug_gym_core import progress
from debug_gym_core.errors import DebugGymError

told = []
hub.LOOK = 0.001
progress.listen(lambda what, line: told.append([what, line]))
for wish in json.load(sys.stdin):
    wanted = wish.pop("row", None)
    fields = {"tests": Field(list)}
    made = Rows(None, **{"hub": "acme/bugs", "split": "test", "fields": fields, "key": "id", **wish})
    answer = {}
    try:
        answer["ids"] = made.ids()
        answer["row"] = wanted and made.row(wanted)["tests"]
    except DebugGymError as error:
        answer["error"] = [type(error).__name__, str(error)]
    print(json.dumps({**answer, "told": told, "datasets": "datasets" in sys.modules}))
    told.clear()
"""


def ask(where: str, home: Path, *wishes: dict[str, Any], **environment: str) -> list[dict[str, Any]]:
    """What a process of its own (the library reads its environment once) makes of some wishes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    places = {"HF_ENDPOINT": where, "HF_HOME": str(home / "hf"), "XDG_CACHE_HOME": str(home / "cache")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ASK],
        input=json.dumps(wishes),
        capture_output=True,
        text=True,
        timeout=300,
        env={**kept, **places, "HF_HUB_DISABLE_TELEMETRY": "1", **environment},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.benchmarks
def test_a_split_is_fetched_once_over_a_connection_that_breaks(hub: Hub, tmp_path: Path) -> None:
    where = f"http://127.0.0.1:{hub.server_port}"
    fetched, again, unknown, versioned, absent = ask(
        where,
        tmp_path,
        {"row": "bug-299"},
        {"row": "bug-7", "revision": COMMIT},
        {"split": "tests"},
        {"revision": "v9"},
        {"hub": "acme/bugz"},
    )
    assert fetched["ids"] == [f"bug-{n}" for n in range(300)] and fetched["row"] == ["t.py::test_299"]
    assert hub.cut == set(hub.files), "no download broke off"
    whats, lines = zip(*fetched["told"], strict=True)
    assert set(whats) == {"acme/bugs"} and lines[-1] is None
    assert lines[0] == "fetching the data set acme/bugs, split test, from the hub (once, it is kept for later runs)"
    assert any(line and line.endswith(" MB") for line in lines[1:])
    assert again["row"] == ["t.py::test_7"]
    assert unknown["error"] == [
        "UsageError",
        "benchmark.split: acme/bugs has no split 'tests'; did you mean 'test'?",
    ]
    kind, text = versioned["error"]
    assert kind == "UsageError" and text.startswith("benchmark.revision: ") and "v9" in text and "\n" not in text
    kind, text = absent["error"]
    assert kind == "UsageError" and text.startswith("benchmark.source: ") and "acme/bugz" in text and "\n" not in text

    hub.asked.clear()
    (kept,) = ask(where, tmp_path, {"row": "bug-1"})
    assert kept["row"] == ["t.py::test_1"] and not kept["datasets"] and not kept["told"] and not hub.asked
    assert not list((tmp_path / "cache").rglob(".*")), "something unfinished was left"


@pytest.mark.parametrize(
    "environment",
    [
        {"HF_HUB_OFFLINE": "1"},
        pytest.param({}, marks=pytest.mark.benchmarks),  # the library tries for half a minute
    ],
)
def test_without_a_hub_a_line_says_what_to_do(tmp_path: Path, environment: dict[str, str]) -> None:
    (answer,) = ask("http://127.0.0.1:9", tmp_path, {}, **environment)
    kind, text = answer["error"]
    assert kind == "RequirementError" and "\n" not in text
    assert text.startswith("the data set acme/bugs cannot be fetched: ")
    assert text.endswith("; connect to the hub, or say benchmark.source: a local .json, .jsonl or .parquet file")
    assert not list((tmp_path / "cache").rglob("*.parquet"))
