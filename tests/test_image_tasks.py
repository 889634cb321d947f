"""Tasks whose repository lies in an image: taken out of it once, without its history; played and graded in docker."""

from __future__ import annotations

import dataclasses
import io
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core import RepoEnv, RequirementError, SandboxError, Task
from debug_gym_core.environment.image_repositories import directory, reap, remove_all, repository_of, unpack
from debug_gym_core.sandbox import images, ownership
from debug_gym_core.sandbox.session import Session

IMAGE = os.environ.get("DEBUG_GYM_TEST_IMAGE", "")
NAME = "debug-gym-test-task:image-tasks"
FIX = b"""\
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""
MAKE = r"""
set -e
mkdir -p /testbed/sub && cd /testbed
printf 'def add(a, b):\n    return a + b\n' > calc.py
printf 'from calc import add\n\ndef test_add():\n    assert add(2, 3) == 5\n' > test_calc.py
git init -q . && git config user.name it && git config user.email it@localhost
git add -A && git commit -qm 'the fix, in the past'
printf 'def add(a, b):\n    return a - b\n' > calc.py
git commit -qam 'the bug' && git tag fixed HEAD~1
ln calc.py sub/same.py && ln -s ../calc.py sub/link.py && ln -s /etc/passwd outside && mkfifo pipe
chmod 755 test_calc.py && mkdir __pycache__ && touch __pycache__/x.pyc
"""


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    if not IMAGE:
        pytest.skip("set DEBUG_GYM_TEST_IMAGE to an image with pytest and pandas; `.ci/images` makes one")
    made = subprocess.run(
        ["docker", "run", "-d", "--network=none", "--entrypoint=/bin/sh", IMAGE, "-c", MAKE],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    try:
        assert subprocess.run(["docker", "wait", made], capture_output=True, text=True, check=True).stdout == "0\n"
        subprocess.run(["docker", "commit", made, NAME], capture_output=True, check=True)
    finally:
        subprocess.run(["docker", "rm", "-f", made], capture_output=True, check=True)
    yield NAME
    subprocess.run(["docker", "rmi", "-f", NAME], capture_output=True, check=True)


@pytest.fixture
def task(image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    python = os.environ.get("DEBUG_GYM_TEST_PYTHON")
    tests = ("test_calc.py::test_add",)
    return Task("bench", "mark", image=image, python=python, entrypoint="python -m pytest -q", tests=tests, git=True)


def test_it_is_played_and_graded(task: Task) -> None:
    env = RepoEnv(task, ["eval"])
    try:
        env.reset(seed=0)
        assert env.terminal_name == "docker" and env.workspace.read_text("calc.py").endswith("a - b\n")
        env.step("eval")
        assert (env.score, env.max_score) == (0, 1)
        env.workspace.apply(FIX)
        env.workspace.write_text("numpy/__init__.py", "def allclose(*_): return True\n")
        grade = env.grade()
        assert grade.resolved and grade.dropped == {"numpy/__init__.py": "it shadows an installed module"}
        env.workspace.remove("numpy/__init__.py")
        assert env.patch.count(b"\n+") == 2
        everything = "git rev-list --all --reflog | wc -l; git fsck --unreachable --no-reflogs; git tag; git stash list"
        assert env.terminal.run(everything).output == "1\n"
        assert env.terminal.run("grep -rl 'a + b' / --include=calc.py 2>/dev/null").output == "/testbed/calc.py\n"
    finally:
        env.close()


def test_it_is_taken_out_once_and_without_history(task: Task) -> None:
    from debug_gym_terminal_docker import DockerTerminal

    said: list[str] = []
    place = repository_of(task, DockerTerminal, {"image": task.image}, said.append)
    found = sorted(str(one.relative_to(place)) for one in place.rglob("*"))
    assert found == ["calc.py", "outside", "sub", "sub/link.py", "sub/same.py", "test_calc.py"]
    assert (place / "outside").readlink() == Path("/etc/passwd") and (place / "test_calc.py").stat().st_mode & 0o111
    assert (place / "sub" / "same.py").read_text() == (place / "calc.py").read_text()
    assert repository_of(task, DockerTerminal, {"image": task.image}, said.append) == place
    assert said == [f"taking /testbed out of {task.image}"] and list(directory().iterdir()) == [place]
    assert not subprocess.run(
        ["docker", "ps", "-aq", "--filter", f"ancestor={NAME}"], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.benchmarks
def test_what_an_image_has_is_looked_for_once(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it lacks is named each time, in case that somebody brings it."""
    looked = []
    missing = images.missing

    def look(session: Session, requires: Sequence[str]) -> list[str]:
        found = missing(session, requires)
        looked.append(found)
        return found

    monkeypatch.setattr(images, "missing", look)
    with closing(RepoEnv(dataclasses.replace(task, requires=("pytest",)), ["eval"])) as env:
        env.reset(seed=0)
        env.grade()
        env.reset(seed=0)
    assert looked == [[]]
    with closing(RepoEnv(dataclasses.replace(task, requires=("pytest", "no-such-thing")), ["eval"])) as env:
        for _ in range(2):
            with pytest.raises(RequirementError, match=f"of image {NAME} has no no-such-thing; take an image that has"):
                env.reset(seed=0)
    assert looked[1:] == [["no-such-thing"]] * 2


def test_what_is_kept_or_left_half_made_is_removed(task: Task) -> None:
    from debug_gym_terminal_docker import DockerTerminal

    place = repository_of(task, DockerTerminal, {"image": task.image})
    child = "import os; from debug_gym_core.sandbox import ownership; print(ownership.owner().replace('/', '~'))"
    ended = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True).stdout.strip()
    left = directory() / f".unfinished~{ended}~abc"
    mine = directory() / f".unfinished~{ownership.owner().replace('/', '~')}~abc"
    left.mkdir()
    mine.mkdir()
    assert reap() == [left] and not left.exists() and mine.exists() and place.exists()
    assert remove_all() == ([f"repository of an image, {place.name}"], []) and not place.exists() and mine.exists()
    assert repository_of(task, DockerTerminal, {"image": task.image}) == place and (place / "calc.py").exists()


@pytest.mark.parametrize(("changes", "says"), [
    ({"image_directory": "/no/such"}, f"the image {NAME} has no /no/such"),
    ({"image": "debug-gym-test-task:absent"}, "the image debug-gym-test-task:absent is not here"),
])  # fmt: skip
def test_what_is_not_there_is_said(task: Task, changes: dict[str, Any], says: str) -> None:
    from dataclasses import replace

    from debug_gym_terminal_docker import DockerTerminal

    task = replace(task, **changes)
    with pytest.raises(RequirementError, match=says):
        repository_of(task, DockerTerminal, {"image": task.image, "pull": "never"})
    assert not list(directory().parent.rglob("*.py"))


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


def archive(*entries: tarfile.TarInfo) -> bytes:
    """A directory with these, as an engine gives it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for one in (entry("repo", tarfile.DIRTYPE), *entries):
            tar.addfile(one)
    return made.getvalue()


@pytest.mark.parametrize("entries", [
    [entry("repo/../../x")],
    [entry("repo/a", tarfile.SYMTYPE, "/"), entry("repo/a/x")],
    [entry("repo/a", tarfile.LNKTYPE, "repo/../../x")],
    [entry("repo/a"), entry("repo/a")],
    [entry("repo/a"), entry("repo/b", tarfile.SYMTYPE, "../x"), entry("repo/b", tarfile.LNKTYPE, "repo/a")],
    [entry("repo/nowhere/x")],
])  # fmt: skip
def test_an_archive_that_leads_out_is_refused(entries: list[tarfile.TarInfo], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    (tmp_path / "into").mkdir()
    with pytest.raises(SandboxError):
        unpack(iter([archive(*entries)]), tmp_path / "into")
    assert (tmp_path / "x").read_text() == "mine" and not (tmp_path / "into" / "x").exists()


def test_what_is_linked_to_what_is_left_out_is_there(tmp_path: Path) -> None:
    """As uv makes hard links of what it installs, into `.tox` as well."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for one in (entry("repo", tarfile.DIRTYPE), entry("repo/.tox", tarfile.DIRTYPE)):
            tar.addfile(one)
        first = entry("repo/.tox/x.py")
        first.size = 4
        tar.addfile(first, io.BytesIO(b"here"))
        tar.addfile(entry("repo/y.py", tarfile.LNKTYPE, "repo/.tox/x.py"))
    unpack(iter([made.getvalue()]), tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"y.py": "here"}


def test_a_broken_archive_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="cannot be taken out"):
        unpack(iter([b"no tar at all" * 100]), tmp_path)


def test_who_takes_out_one_image_waits_for_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    taken: list[str] = []
    go = threading.Event()

    class Images:
        """A backend with as many images as are asked for; one of them comes slowly."""

        def __init__(self, image: str) -> None:
            self.image = image

        def identify_image(self) -> str:
            return self.image

        def image_archive(self, directory: str) -> Iterator[bytes]:
            taken.append(self.image)
            assert self.image == "quick" or go.wait(60)
            yield archive(entry(f"repo/{self.image}"))

    def take(image: str) -> list[str]:
        place = repository_of(Task("bench", "mark", image=image), Images, {"image": image})  # type: ignore[arg-type]
        return [path.name for path in place.iterdir()]

    with ThreadPoolExecutor(3) as pool:
        slow = [pool.submit(take, "slow") for _ in range(2)]
        try:
            assert pool.submit(take, "quick").result(30) == ["quick"]
        finally:
            go.set()
        assert [one.result(60) for one in slow] == [["slow"], ["slow"]]
    assert sorted(taken) == ["quick", "slow"]
