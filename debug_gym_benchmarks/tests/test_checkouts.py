"""Where benchmarks come from: local checkouts, and clones over real connections that break in every way."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from served_history import LONG, Fetching, History, Line, git, refused, serving, unfinished, until, working_in
from support import repeated

from debug_gym_benchmarks import cache
from debug_gym_benchmarks.checkouts import GitFiles, Published, WorkTree, open_checkout
from debug_gym_core import RequirementError, UsageError
from debug_gym_core.progress import listening

pytestmark = pytest.mark.usefixtures("kept")


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


def test_a_server_that_gives_files_gives_all(history: History) -> None:
    git(history.directory, "update-server-info")
    with web_server(history.directory) as address:
        assert open_checkout(history.published(f"http://{address}/.git")).read("a.txt") == b"new\n"


def test_nobody_is_asked_for_a_password_and_none_is_shown(history: History, tmp_path: Path) -> None:
    with web_server(tmp_path, 401) as address:
        text = refused(history.published(f"http://me:open-sesame@{address}/x.git"))
        refused(history.published(f"http://{address}/x.git"))
    assert "open-sesame" not in text and "me:" not in text and address in text


def test_a_commit_that_is_not_there_is_an_error(history: History, line: Line, kept: Path) -> None:
    text = refused(history.published(line.url, "1" * 40))
    assert f"it has no commit {'1' * 40}" in text
    assert unfinished(kept) == []


@pytest.mark.parametrize("after", [0, *repeated("benchmarks", 1, 100_000)])
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
