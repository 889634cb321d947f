"""Where benchmarks come from: local checkouts, and clones over real connections that break in every way."""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from debug_gym_benchmarks import cache, clones
from debug_gym_benchmarks.checkouts import GitFiles, Published, WorkTree, open_checkout
from debug_gym_core import DebugGymError, RequirementError, UsageError
from debug_gym_core.progress import listening
from debug_gym_core.workspace.snapshot import FileState

LONG = 60.0
"""Seconds after which what should have happened has not."""


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and a git that knows no configuration of ours."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return tmp_path / "cache" / "debug-gym" / "benchmarks"


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


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def daemon(history: History) -> Iterator[int]:
    """The port of a git server that has the history as `/history`."""
    program = Path(subprocess.check_output(["git", "--exec-path"], text=True).strip()) / "git-daemon"
    if not program.is_file():
        pytest.skip("needs git's own server: install the package that has git-daemon")
    port = free_port()
    base = history.directory.parent
    options = ["--reuseaddr", "--export-all", f"--base-path={base}", "--listen=127.0.0.1", f"--port={port}"]
    options += ["--max-connections=0"]  # any number, one after the other too
    process = subprocess.Popen([program, *options, str(base)], stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        until(functools.partial(reachable, port))
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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


@pytest.fixture
def line(daemon: int) -> Iterator[Line]:
    made = Line(daemon)
    yield made
    made.close()


def unfinished(kept: Path) -> list[str]:
    return [path.name for path in (kept / "clones").iterdir() if not path.name.endswith(".lock")]


# Local sources


def test_a_work_tree_is_taken_as_it_lies_there(history: History) -> None:
    (history.directory / "a.txt").write_text("changed\n")
    (history.directory / "untracked").write_text("new\n")
    checkout = open_checkout(history.published("file:///nowhere"), str(history.directory))
    assert isinstance(checkout, WorkTree)
    assert checkout.read("a.txt") == b"changed\n" and checkout.read("untracked") == b"new\n"
    assert checkout.paths() == sorted(
        [".gitattributes", "a.txt", "big", "dir/b b.bin", "dir/link", "dir/run.sh", "dir/sub/\xe4.txt", "untracked"]
    )


def test_a_directory_without_git_is_a_source_as_well(history: History, tmp_path: Path) -> None:
    shutil.rmtree(history.directory / ".git")
    assert open_checkout(history.published("file:///nowhere"), str(history.directory)).children("dir") == [
        "b b.bin", "link", "run.sh", "sub"
    ]  # fmt: skip
    with pytest.raises(UsageError, match=r"^benchmark\.revision: .* has no commit"):
        open_checkout(history.published("file:///nowhere"), str(history.directory), history.first)


def test_a_work_tree_at_another_commit_than_asked_for_is_refused(history: History) -> None:
    published = history.published("file:///nowhere")
    assert open_checkout(published, str(history.directory), history.third[:9]).read("a.txt") == b"newest\n"
    with pytest.raises(UsageError) as refused:
        open_checkout(published, str(history.directory), history.first)
    there, wanted = history.third[:12], history.first
    assert str(refused.value) == (
        f"benchmark.revision: {history.directory} is at {there}, not at {wanted}; check it out there"
        f" (git checkout {wanted}), or leave benchmark.revision out"
    )


def bare(history: History) -> Path:
    place = history.directory.with_name("bare")
    git(history.directory.parent, "clone", "--quiet", "--bare", str(history.directory), str(place))
    return place


def test_a_bare_repository_is_read_and_not_touched(history: History) -> None:
    place = bare(history)
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    checkout = open_checkout(history.published("file:///nowhere"), str(place))
    assert checkout.read("a.txt") == b"newest\n" and "gone.txt" not in checkout.paths()
    old = open_checkout(history.published("file:///nowhere"), str(place), history.first)
    assert old.read("a.txt") == b"old\n" and old.paths() == ["a.txt", "gone.txt"]
    with pytest.raises(UsageError, match=r"^benchmark\.revision: .*bare has no commit v9"):
        open_checkout(history.published("file:///nowhere"), str(place), "v9")
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before


@pytest.mark.parametrize("object_of", ["HEAD", "HEAD:a.txt"])
def test_what_a_repository_lacks_is_not_fetched_by_a_program_of_its(
    history: History, tmp_path: Path, object_of: str
) -> None:
    place = bare(history)
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": ".",
        "remote.origin.uploadpack": f"touch {tmp_path}/ran #",
        "core.fsmonitor": f"touch {tmp_path}/ran #",
    }
    name = git(place, "rev-parse", object_of).strip()
    for pack in list((place / "objects" / "pack").glob("*.pack")):  # single files of what is in it
        data = pack.read_bytes()
        for path in pack.parent.glob(f"{pack.stem}.*"):
            path.unlink()
        subprocess.run(["git", "unpack-objects", "-q"], cwd=place, input=data, check=True)
    (place / "objects" / name[:2] / name[2:]).unlink()
    for key, value in settings.items():
        git(place, "config", key, value)
    with pytest.raises(UsageError, match=r"has no commit HEAD|is damaged|cannot be read"):
        open_checkout(history.published("file:///nowhere"), str(place)).read("a.txt")
    assert not (tmp_path / "ran").exists()
    git_found = subprocess.run(["git", "cat-file", "-p", name], cwd=place, capture_output=True)
    assert git_found.returncode != 0 and (tmp_path / "ran").exists()  # had it been asked, this would have been there


@pytest.mark.parametrize("path", ["../out", "a/../../out", "/out", "a//b", ".", "link/out"])
def test_a_commit_whose_files_lead_out_is_refused(path: str, tmp_path: Path) -> None:
    place = tmp_path / "made.git"
    place.mkdir()
    git(place, "init", "--quiet", "--bare", ".")
    blob = git(place, "hash-object", "-w", "--stdin").strip()

    def tree(*entries: tuple[str, str, str]) -> str:
        data = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(of) for mode, name, of in entries)
        command = ["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
        return subprocess.run(command, cwd=place, input=data, capture_output=True, check=True).stdout.decode().strip()

    if path == "link/out":  # a link, and a directory of the same name
        made = tree(("120000", "link", blob), ("40000", "link", tree(("100644", "out", blob))))
    else:
        made = tree(("100644", path, blob))
    commit = f"tree {made}\nauthor a <> 0 +0000\ncommitter a <> 0 +0000\n\n\n".encode()
    done = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
        cwd=place,
        input=commit,
        capture_output=True,
        check=True,
    )
    (place / "refs" / "heads" / "main").write_bytes(done.stdout)
    (place / "HEAD").write_text("ref: refs/heads/main\n")
    published = Published("o/n", "file:///nowhere", "0" * 40)
    with pytest.raises(UsageError, match="would lead out of its directory"):
        open_checkout(published, str(place)).export(tmp_path / "into")
    assert not (tmp_path / "out").exists()


def test_links_of_a_work_tree_lead_to_nothing_outside(tmp_path: Path) -> None:
    (tmp_path / "person").mkdir()
    (tmp_path / "person" / "key").write_text("secret")
    source = tmp_path / "source"
    (source / "tasks").mkdir(parents=True)
    (source / "tasks" / "evil").symlink_to(tmp_path / "person")
    (source / "tasks" / "inside").mkdir()
    (source / "tasks" / "inside" / "key").write_text("mine")
    (source / "tasks" / "alias").symlink_to("inside")
    checkout = open_checkout(Published("o/n", "file:///nowhere", "0" * 40), str(source))
    for look in (checkout.children, checkout.paths):
        with pytest.raises(UsageError, match="there is no tasks/evil"):
            look("tasks/evil")
        assert look("tasks/alias")
    assert set(checkout.states(["tasks/evil/key", "tasks/alias/key", "../person/key"])) == {"tasks/alias/key"}


@pytest.mark.parametrize("kind", ["work tree", "bare"])
def test_an_export_is_what_was_committed(history: History, tmp_path: Path, kind: str) -> None:
    """Whatever .gitattributes say of line ends and exports."""
    git(history.directory, "-c", "core.quotePath=false", "checkout", "--quiet", history.second)
    (history.directory / "a.txt").write_bytes(b"new\n")  # which the checkout gave other line ends
    (history.directory / "dir/sub/\xe4.txt").write_bytes(b"umlaut\n")
    place = history.directory if kind == "work tree" else bare(history)
    checkout = open_checkout(history.published("file:///nowhere"), str(place), history.second)
    checkout.export(tmp_path / "all")
    assert (tmp_path / "all/a.txt").read_bytes() == b"new\n"
    assert (tmp_path / "all/dir/b b.bin").read_bytes() == bytes(range(256))
    assert (tmp_path / "all/dir/link").readlink() == Path("../a.txt")
    assert os.access(tmp_path / "all/dir/run.sh", os.X_OK) and not os.access(tmp_path / "all/a.txt", os.X_OK)
    checkout.export(tmp_path / "part", "dir")
    assert sorted(path.name for path in (tmp_path / "part").iterdir()) == ["b b.bin", "link", "run.sh", "sub"]
    assert (tmp_path / "part/sub/\xe4.txt").read_text() == "umlaut\n"


@pytest.mark.parametrize("kind", ["work tree", "bare"])
def test_what_is_missing_is_named(history: History, kind: str) -> None:
    place = history.directory if kind == "work tree" else bare(history)
    checkout = open_checkout(history.published("file:///nowhere"), str(place))
    for look in (checkout.read, checkout.children, checkout.paths):
        with pytest.raises(UsageError, match=r"^benchmark\.source: there is no no/such in .*; is that acme/bugs\?$"):
            look("no/such")


@pytest.mark.parametrize("source", ["no/such", "~/no-such-directory", "github.com/acme/bugs"])
def test_a_source_that_is_not_there_is_refused(history: History, source: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_checkout(history.published("file:///nowhere"), source)
    text = str(refused.value)
    assert text.startswith("benchmark.source: there is no directory /") and "\n" not in text
    assert "say a checkout of acme/bugs, a bare git directory or a git URL" in text


# Clones


def test_only_the_commit_is_fetched_and_only_once(history: History, line: Line, kept: Path) -> None:
    told: list[tuple[str, str | None]] = []
    with listening(lambda what, text: told.append((what, text))):
        checkout = open_checkout(history.published(line.url))
    assert isinstance(checkout, GitFiles)
    assert checkout.read("a.txt") == b"new\n" and checkout.read("dir/b b.bin") == bytes(range(256))
    [place] = (kept / "clones").glob("acme-bugs-*[0-9a-f]")
    assert git(place, "rev-parse", "fetched") == history.second
    assert git(place, "rev-list", "--all") == history.second
    assert line.connections == 1
    assert {what for what, _ in told} == {"fetch acme/bugs"} and told[-1][1] is None
    assert any(text and text.startswith("fetching acme/bugs: ") and "%" in text for _, text in told)
    line.close()
    assert open_checkout(history.published(line.url)).read("a.txt") == b"new\n"


def test_a_revision_is_fetched_instead(history: History, line: Line) -> None:
    assert open_checkout(history.published(line.url), revision=history.first).read("a.txt") == b"old\n"
    assert open_checkout(history.published("file:///nowhere"), line.url, history.third).read("a.txt") == b"newest\n"
    for wrong in ("main", history.first[:10], "--help"):
        with pytest.raises(UsageError, match=r"^benchmark\.revision: '.*' is not the full name of a commit"):
            open_checkout(history.published(line.url), revision=wrong)


def test_a_file_url_is_a_source(history: History) -> None:
    assert open_checkout(history.published("file:///nowhere"), f"file://{history.directory}").read("a.txt") == b"new\n"


def test_a_server_that_gives_no_single_commits_gives_all(
    history: History, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"COUNT": "1", "KEY_0": "protocol.version", "VALUE_0": "0"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    assert open_checkout(history.published(line.url)).read("a.txt") == b"new\n"
    assert line.connections == 2


@contextlib.contextmanager
def web_server(directory: Path, status: int | None = None) -> Iterator[str]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if status is None:
                super().do_GET()
                return
            self.send_response(status)
            self.send_header("WWW-Authenticate", 'Basic realm="acme"')
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with serving(functools.partial(Handler, directory=str(directory))) as address:
        yield address


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


def test_a_server_that_gives_files_gives_all(history: History) -> None:
    git(history.directory, "update-server-info")
    with web_server(history.directory) as address:
        assert open_checkout(history.published(f"http://{address}/.git")).read("a.txt") == b"new\n"


def refused(published: Published, source: str | None = None) -> str:
    with pytest.raises(RequirementError) as error:
        open_checkout(published, source)
    text = str(error.value)
    assert text.startswith("acme/bugs cannot be fetched from ") and "\n" not in text
    assert text.endswith("; say benchmark.source=DIRECTORY (or URL) of another clone of it")
    return text


def test_nobody_is_asked_for_a_password_and_none_is_shown(history: History, tmp_path: Path) -> None:
    with web_server(tmp_path, 401) as address:
        text = refused(history.published(f"http://me:open-sesame@{address}/x.git"))
        refused(history.published(f"http://{address}/x.git"))
    assert "open-sesame" not in text and "me:" not in text and address in text


def test_a_commit_that_is_not_there_is_an_error(history: History, line: Line, kept: Path) -> None:
    text = refused(history.published(line.url, "1" * 40))
    assert f"it has no commit {'1' * 40}" in text
    assert unfinished(kept) == []


@pytest.mark.parametrize("after", [0, 1, 100_000])
def test_a_server_that_closes_leaves_nothing(history: History, line: Line, kept: Path, after: int) -> None:
    line.cut_after = after
    text = refused(history.published(line.url))
    assert line.url in text
    assert unfinished(kept) == []
    line.cut_after = None
    assert open_checkout(history.published(line.url)).read("a.txt") == b"new\n"


def test_a_server_that_says_nothing_is_given_up(
    history: History, line: Line, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("debug_gym_benchmarks.git.QUIET", 0.3)
    line.let.clear()
    assert "nothing came for " in refused(history.published(line.url))
    assert unfinished(kept) == []


def test_without_a_network_the_error_says_what_to_do(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("debug_gym_benchmarks.git.QUIET", 1.0)
    refused(history.published("git://192.0.2.1/acme/bugs"))  # an address that is nobody's
    refused(history.published("https://no-such-host.invalid/acme/bugs"))


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


@pytest.fixture
def fetching() -> Iterator[Callable[..., Fetching]]:
    started: list[Fetching] = []

    def start(published: Published, most: str = "") -> Fetching:
        started.append(Fetching(published, most))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def test_of_two_at_once_one_fetches(history: History, line: Line, fetching: Callable[..., Fetching]) -> None:
    line.let.clear()
    first = fetching(history.published(line.url))
    until(lambda: line.connections == 1)
    second = fetching(history.published(line.url))
    assert json.loads(second.hear("another")) == "another process fetches acme/bugs"
    line.let.set()
    assert json.loads(first.hear("read")) == json.loads(second.hear("read")) == ["read", "new\n"]
    assert line.connections == 1


def test_a_killed_fetch_is_begun_anew(
    history: History, line: Line, kept: Path, fetching: Callable[..., Fetching]
) -> None:
    line.let.clear()
    first = fetching(history.published(line.url))
    until(lambda: line.connections == 1)
    first.kill()
    assert unfinished(kept)  # which is nobody's now
    line.let.set()
    assert open_checkout(history.published(line.url)).read("a.txt") == b"new\n"
    [name] = unfinished(kept)
    assert not name.endswith(cache.UNFINISHED)


def working_in(directory: Path) -> list[Path]:
    """The processes whose working directory is in a directory."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):  # it has ended
            if link.readlink().is_relative_to(directory):
                found.append(link)
    return found


def test_an_interrupted_fetch_leaves_no_process_and_no_files(
    history: History, line: Line, kept: Path, fetching: Callable[..., Fetching]
) -> None:
    line.let.clear()
    first = fetching(history.published(line.url))
    until(lambda: line.connections == 1)
    assert working_in(kept)
    first.interrupt()
    assert unfinished(kept) == []
    assert working_in(kept) == []


# Clones in parts


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


@pytest.mark.parametrize("after", [0, 50_000])
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


@pytest.mark.parametrize("way", ["kill", "interrupt"])
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


@pytest.mark.parametrize("harmed", ["files", "trees", "shallow"])
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


# Clones that something happened to


def test_a_damaged_clone_is_fetched_anew(history: History, line: Line, kept: Path) -> None:
    open_checkout(history.published(line.url))
    [place] = (kept / "clones").glob("acme-bugs-*[0-9a-f]")
    shutil.rmtree(place / "objects")
    assert open_checkout(history.published(line.url)).read("a.txt") == b"new\n"
    assert line.connections == 2


def test_a_lost_file_of_a_clone_is_said(history: History, line: Line, kept: Path) -> None:
    checkout = open_checkout(history.published(line.url))
    [place] = (kept / "clones").glob("acme-bugs-*[0-9a-f]")
    for pack in place.rglob("*.pack"):
        moved = pack.rename(pack.with_suffix(".moved"))
        pack.with_suffix(".idx").unlink()
        with moved.open("rb") as file:
            subprocess.run(["git", "unpack-objects", "-q"], cwd=place, stdin=file, check=True, timeout=LONG)
        moved.unlink()
    name = git(place, "rev-parse", f"{history.second}:a.txt")
    (place / "objects" / name[:2] / name[2:]).unlink()
    with pytest.raises(UsageError, match=rf"^{place} is damaged \({name} missing\); remove it$"):
        checkout.read("a.txt")


def test_without_git_the_error_says_what_to_install(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for source in (None, f"file://{history.directory}"):
        with pytest.raises(RequirementError, match=r"^git is not installed; .*apt install git"):
            open_checkout(history.published("file:///nowhere"), source)


def test_a_cache_that_cannot_be_written_is_said(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    with pytest.raises(RequirementError, match=r"set XDG_CACHE_HOME to another directory$"):
        open_checkout(history.published(f"file://{history.directory}"))


# What is kept for tasks


FILES = {
    "a.py": FileState(b"a = 1\n"),
    "dir/run": FileState(b"#!/bin/sh\n", 0o755),
    "l": FileState(b"a.py", kind="link"),
}


def test_what_is_kept_holds_just_its_files(kept: Path) -> None:
    place = cache.keep("acme/task", FILES)
    assert place.is_relative_to(kept)
    assert {str(path.relative_to(place)) for path in place.rglob("*")} == {"a.py", "dir", "dir/run", "l"}
    assert cache.read(place / "dir/run") == FILES["dir/run"] and cache.read(place / "l") == FILES["l"]
    assert cache.keep("acme/task", dict(reversed(FILES.items()))) == place
    others = [
        {**FILES, "a.py": FileState(b"a = 2\n")},
        {**FILES, "a.py": FileState(b"a = 1\n", 0o755)},
        {"a.py": FILES["a.py"]},
    ]
    assert len({cache.keep("acme/task", one) for one in others} | {place}) == 4


@pytest.mark.parametrize("harm", [
    lambda place: (place / "a.py").write_text("a = 0\n"),
    lambda place: (place / "more.py").write_text(""),
    lambda place: (place / "dir/run").chmod(0o644),
    lambda place: (place / "l").unlink(),
    lambda place: shutil.rmtree(place / "dir"),
])  # fmt: skip
def test_what_has_changed_is_made_anew(harm: Callable[[Path], object]) -> None:
    place = cache.keep("acme/task", FILES)
    harm(place)
    assert cache.keep("acme/task", FILES) == place
    assert {path: cache.read(place / path) for path in FILES} == FILES
    assert not (place / "more.py").exists()
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_what_could_not_be_made_is_not_there(kept: Path) -> None:
    """A file that lies in another cannot be written: what was made until then goes."""
    with pytest.raises(RequirementError, match="set XDG_CACHE_HOME"):
        cache.keep("acme/task", {"a": FileState(b""), "a/b": FileState(b"")})
    assert list((kept / "tasks" / "acme").iterdir()) == []


def test_many_may_keep_the_same_at_once(kept: Path) -> None:
    found: list[Path | DebugGymError] = []
    threads = [threading.Thread(target=lambda: found.append(cache.keep("acme/task", FILES))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1
    assert len(list((kept / "tasks" / "acme").iterdir())) == 1
