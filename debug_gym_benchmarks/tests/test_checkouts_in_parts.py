"""Clones that come in parts, over real connections that break in every way."""

from __future__ import annotations

import gzip
import http.server
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from served_history import LONG, Fetching, History, Line, git, refused, serving, unfinished, until, working_in
from support import repeated

from debug_gym_benchmarks import cache, clones
from debug_gym_benchmarks.checkouts import GitFiles, open_checkout
from debug_gym_core.progress import listening

pytestmark = pytest.mark.usefixtures("kept")

AT_A_TIME = 8
SIZE = 20_000


class Parts:
    """A history whose last commit is 38 files of random bytes and some small ones, on a server that filters."""

    def __init__(self, history: History, line: Line) -> None:
        git(history.directory, "config", "uploadpack.allowFilter", "true")
        names = [*(f"few/{n}" for n in range(5)), *(f"many/{n}" for n in range(20)), *(f"x/y/{n}" for n in range(10))]
        self.files = {name: os.urandom(SIZE) for name in (*names, "top", "x/own")}
        self.files["few/same"] = self.files["x/y/0"]
        for path, data in self.files.items():
            (history.directory / path).parent.mkdir(parents=True, exist_ok=True)
            (history.directory / path).write_bytes(data)
        git(history.directory, "rm", "-q", "big")
        git(history.directory, "add", "--all")
        git(history.directory, "commit", "-q", "-m", "many")
        self.published = history.published(line.url, git(history.directory, "rev-parse", "HEAD"))
        self.line = line

    @property
    def bytes(self) -> int:
        """Of all files, each once."""
        return SIZE * len(set(self.files.values()))

    def check(self) -> None:
        """The checkout has all files, without the server, and is a repository like any other."""
        self.line.close()
        checkout = open_checkout(self.published)
        assert isinstance(checkout, GitFiles)
        assert {path: checkout.read(path) for path in self.files} == self.files
        place = checkout._directory
        assert "missing" not in git(place, "fsck", "--full")
        git(place, "archive", "-o", os.devnull, self.published.commit)
        assert not git(place, "config", "--list", "--local", "--name-only").count("remote")
        assert git(place, "config", "core.repositoryFormatVersion") == "0"
        assert not list(place.rglob("*.promisor")) and not list(place.rglob("tmp_*"))
        assert [path.name for path in place.parent.iterdir() if path.name.endswith(cache.UNFINISHED)] == []


@pytest.fixture
def parts(history: History, line: Line, monkeypatch: pytest.MonkeyPatch) -> Parts:
    for name in ("FIRST", "RESUMED", "MOST"):
        monkeypatch.setattr(clones, name, AT_A_TIME)
    return Parts(history, line)


def packs(kept: Path) -> dict[str, int]:
    """Sizes of the packs of clones, and of what is to be one, by name."""
    return {path.name: path.stat().st_size for path in (kept / "clones").rglob("*.pack")}


def test_files_come_in_parts_and_make_a_plain_repository(parts: Parts) -> None:
    told: list[str | None] = []
    with listening(lambda _, text: told.append(text)):
        open_checkout(parts.published)
    assert parts.line.connections >= 1 + 43 / AT_A_TIME
    assert parts.bytes < parts.line.passed < parts.bytes + 2 * SIZE
    assert any(
        text and re.match(r"fetching acme/bugs: [1-9]\d* of 43 files, Receiving objects: .*%", text) for text in told
    )
    parts.check()


def test_batches_grow_as_long_as_they_are_fast(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clones, "MOST", 100)
    monkeypatch.setattr(clones, "BATCH", LONG)
    open_checkout(parts.published)
    assert parts.line.connections == 1 + 3  # of 8, 16 and 18 at most
    parts.check()


@pytest.mark.benchmarks
def test_batches_shrink_to_single_files(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clones, "BATCH", 0.0)
    open_checkout(parts.published)
    assert parts.line.connections > 20
    parts.check()


@pytest.mark.parametrize("after", [0, *repeated("benchmarks", 50_000)])
def test_a_fetch_that_breaks_goes_on_with_what_is_missing(parts: Parts, kept: Path, after: int) -> None:
    parts.line.whole, parts.line.cut_after = 3, after
    text = refused(parts.published)
    assert re.search(r"; 1\d of 43 files are kept, the next try goes on from there; say ", text)
    before, parts.line.passed = packs(kept), 0
    parts.line.cut_after = None
    open_checkout(parts.published)
    assert parts.line.passed < parts.bytes - sum(before.values()) + 2 * SIZE
    assert len(before) == 3 and before.items() < packs(kept).items()
    parts.check()


@pytest.mark.parametrize("way", ["kill", *repeated("benchmarks", "interrupt")])
def test_a_fetch_whose_process_ends_is_gone_on_with(
    parts: Parts, kept: Path, fetching: Callable[..., Fetching], way: str
) -> None:
    parts.line.whole = 3
    parts.line.let.clear()
    first = fetching(parts.published, str(AT_A_TIME))
    until(lambda: parts.line.connections == 4)
    getattr(first, way)()
    if way == "interrupt":
        assert working_in(kept) == []
    [name] = unfinished(kept)
    assert name.endswith(cache.UNFINISHED)
    before, parts.line.passed = packs(kept), 0
    parts.line.let.set()  # of who was killed, git may live and go on
    open_checkout(parts.published)
    assert len(before) == 3 and before.items() < packs(kept).items()
    parts.check()


class Smart(http.server.BaseHTTPRequestHandler):
    """Git's own program behind a web server; the fifth request that asks for objects, and each later one, finds none.

    Attributes:
        project: what is served
        asked: sizes of the answers, one for each such request
        broken: whether requests fail
    """

    project = Path()
    asked: ClassVar[list[int]] = []
    broken = True

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        fetches = b"command=fetch" in (gzip.decompress(body) if self.headers.get("Content-Encoding") else body)
        if fetches and self.broken and len(self.asked) == 4:
            self.send_error(503)
            return
        variables = {
            "GIT_PROJECT_ROOT": str(self.project),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, capture_output=True, env={**os.environ, **variables}, timeout=LONG
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        self.send_response(200)
        for line in head.decode().splitlines():
            self.send_header(*line.split(": ", 1))
        self.end_headers()
        self.wfile.write(content)
        if fetches:
            self.asked.append(len(content))

    def log_message(self, *_: object) -> None:
        pass


def test_a_web_server_gives_parts_and_what_is_missing(parts: Parts, history: History, kept: Path) -> None:
    class Handler(Smart):
        project = history.directory
        asked: ClassVar[list[int]] = []

    with serving(Handler) as address:
        published = history.published(f"http://{address}/.git", parts.published.commit)
        assert re.search(
            r" 503; [12]\d of 43 files are kept, the next try goes on from there; say ", refused(published)
        )
        before, Handler.broken = packs(kept), False
        open_checkout(published)
    assert len(before) == 4 and before.items() < packs(kept).items()
    assert sum(Handler.asked) < parts.bytes + 2 * SIZE
    parts.published = published
    parts.check()


def test_what_is_kept_suffices_when_all_has_come(parts: Parts, kept: Path) -> None:
    place = open_checkout(parts.published)._directory  # type: ignore[attr-defined]
    place.rename(place.with_name(f"{place.name}.abcdefgh{cache.UNFINISHED}"))
    parts.check()


@pytest.mark.parametrize("harmed", ["files", *repeated("benchmarks", "trees", "shallow")])
def test_a_damaged_part_is_fetched_again(parts: Parts, kept: Path, harmed: str) -> None:
    parts.line.whole, parts.line.cut_after = 3, 0
    refused(parts.published)
    first, *_, last = sorted((kept / "clones").rglob("*.pack"), key=lambda path: path.stat().st_mtime_ns)
    before = packs(kept)
    if harmed == "shallow":
        first.parents[2].joinpath("shallow").unlink()
    else:
        pack = last if harmed == "files" else first
        data = bytearray(pack.read_bytes())
        data[len(data) // 2] ^= 1
        pack.chmod(0o644)
        pack.write_bytes(data)
    parts.line.cut_after, parts.line.passed = None, 0
    open_checkout(parts.published)
    good = sum(before.values()) - before[last.name] if harmed == "files" else 0
    assert parts.bytes - good - 2 * SIZE < parts.line.passed < parts.bytes - good + 2 * SIZE
    parts.check()


@pytest.mark.benchmarks
def test_of_two_at_once_one_fetches_the_parts(parts: Parts, fetching: Callable[..., Fetching]) -> None:
    parts.line.whole = 3
    parts.line.let.clear()
    first = fetching(parts.published, str(AT_A_TIME))
    until(lambda: parts.line.connections == 4)
    second = fetching(parts.published, str(AT_A_TIME))
    second.hear("another")
    parts.line.let.set()
    assert first.hear("read") == second.hear("read")
    assert parts.line.passed < parts.bytes + 2 * SIZE
    parts.check()


def test_a_filtering_server_without_the_commit_is_an_error(parts: Parts, history: History, kept: Path) -> None:
    text = refused(history.published(parts.line.url, "1" * 40))
    assert f": it has no commit {'1' * 40}; say" in text
    assert unfinished(kept) == []


def test_a_server_that_filters_but_gives_no_single_objects_gives_all_at_once(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"COUNT": "1", "KEY_0": "protocol.version", "VALUE_0": "0"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    open_checkout(parts.published)  # a branch's newest, which it does give
    assert parts.line.connections == 3
    parts.check()


def test_without_parts_the_error_says_that_it_begins_anew(history: History, line: Line) -> None:
    line.cut_after = 500_000
    assert "; nothing of what came is kept, the next try begins anew; say " in refused(history.published(line.url))


def test_what_nobody_goes_on_with_is_removed_some_day(
    parts: Parts, history: History, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts.line.whole, parts.line.cut_after = 2, 0
    refused(parts.published)
    [left] = unfinished(kept)
    other = history.published(f"file://{history.directory}")
    open_checkout(other)
    assert left in unfinished(kept)
    monkeypatch.setattr(clones, "STALE", -1.0)
    with cache.locked(kept / "clones" / left.split(".")[0]):
        open_checkout(history.published(f"file://{history.directory}/.git"))
        assert left in unfinished(kept)
    open_checkout(history.published(f"file://{history.directory}/./.git"))
    assert left not in unfinished(kept) and len(unfinished(kept)) == 3
