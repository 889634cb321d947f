"""A small instance of each benchmark that we ship: where its task comes from, and what is to be repaired."""

from __future__ import annotations

import contextlib
import os
import py_compile
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import aider_instance
import bugsinpy_instance
import pytest
import quixbugs_instance
import r2egym_instance
import swebench_images
import swebench_instance
import swesmith_instance
from known_exploits import BROKEN, TEST, TEST_ID, Target
from published_rows import written
from support import reason_not_to_use

from debug_gym_benchmarks.aider import Aider
from debug_gym_benchmarks.mini_nightmare import MiniNightmare
from debug_gym_benchmarks.quixbugs import QuixBugs
from debug_gym_benchmarks.r2egym import R2EGym
from debug_gym_benchmarks.repo import Repo
from debug_gym_benchmarks.swebench import SWEBench, SWEBenchDebug
from debug_gym_benchmarks.swesmith import SWESmith
from debug_gym_core import Task

PYTHON = "DEBUG_GYM_TEST_PYTHON"
RIGHT = "def add(a, b):\n    the_right_sum = a + b\n    return the_right_sum\n"
LEAKS = (
    *swebench_images.CACHES,
    "/root/.cache/uv/archive-v0/fixed/module.py",
    "/opt/miniconda3/lib/python3.11/site-packages/{project}/module.py",
    "/opt/miniconda3/lib/python3.11/site-packages/pip/_vendor/{project}/module.py",
    "/opt/miniconda3/lib/python3.11/site-packages/setuptools/_vendor/{project}/module.py",
)
"""Where the right code may lie in an image outside of the repository."""


@dataclass(frozen=True)
class Instance:
    """An instance of a benchmark.

    Attributes:
        task: makes the task and, as long as the context lasts, its image; in an empty directory
        code: path of the file with the bug
        test: path of the file with the tests that count
        broken: text of the file with the bug
        tests: ids of the tests, as pytest names them; none: the task's
        terminal: where it runs
        fix: a line of the fix that is nowhere else
        hidden: what only tests have that the agent does not see
    """

    task: Callable[[Path], AbstractContextManager[Task]]
    code: str
    test: str
    broken: str
    fix: str
    tests: tuple[str, ...] = ()
    terminal: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"bubblewrap": {}})
    hidden: tuple[str, ...] = ()

    def target(self, task: Task) -> Target:
        """Where exploits are placed."""
        return Target(self.code, self.broken, self.test, self.tests or (*task.tests, *task.pass_to_pass))

    def require(self) -> None:
        """Skip the test if the instance cannot be had here."""
        (terminal,) = self.terminal
        if reason := reason_not_to_use(terminal):
            pytest.skip(reason)
        if terminal == "docker" and not os.environ.get(PYTHON):
            pytest.skip(f"set {PYTHON} to the Python of the image {swebench_images.BASE}; `.ci/images` makes both")


@contextlib.contextmanager
def of_mini_nightmare(directory: Path) -> Iterator[Task]:
    """One of the ten that we ship."""
    yield MiniNightmare().load("counter")


@contextlib.contextmanager
def of_repo(directory: Path) -> Iterator[Task]:
    """A repository with a history in which the bug is mended."""
    write_repository(directory, {"test_calc.py": TEST})
    yield Repo(path=directory).load(directory.name)


def write_repository(directory: Path, files: Mapping[str, str]) -> None:
    """A repository with a bug in calc.py, and the fix in its history and in what was compiled.

    Args:
        directory: an empty one
        files: what it has besides
    """
    for path, text in {**files, "calc.py": RIGHT}.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
        (directory / path).chmod(0o755 if text.startswith("#!") else 0o644)
    py_compile.compile(str(directory / "calc.py"))
    bugsinpy_instance.git(directory, "init", "-q")
    bugsinpy_instance.git(directory, "add", "-A")
    bugsinpy_instance.git(directory, "commit", "-qm", "right")
    (directory / "calc.py").write_text(BROKEN)
    (directory / "calc.pyc").write_bytes(Path(cache_from_source(directory / "calc.py")).read_bytes())
    bugsinpy_instance.git(directory, "commit", "-qam", "wrong")


@contextlib.contextmanager
def of_aider(directory: Path) -> Iterator[Task]:
    """An exercise of a checkout."""
    yield Aider(source=str(aider_instance.write_track(directory / "track"))).load("double_it")


@contextlib.contextmanager
def of_quixbugs(directory: Path) -> Iterator[Task]:
    """A program of a checkout."""
    yield QuixBugs(source=str(quixbugs_instance.write_programs(directory / "bugs"))).load("triple")


@contextlib.contextmanager
def of_bugsinpy(directory: Path) -> Iterator[Task]:
    """A bug of a checkout."""
    published = bugsinpy_instance.Published(directory)
    yield published.made(bugsinpy_instance.Runnable).load("till-1")


def of_swebench(kind: type[SWEBench]) -> Callable[[Path], AbstractContextManager[Task]]:
    """An instance in an image."""

    @contextlib.contextmanager
    def made(directory: Path) -> Iterator[Task]:
        name = swebench_instance.build(os.environ[swebench_images.BASE])
        try:
            rows = swebench_instance.write_rows(directory / "rows.jsonl")
            yield kind(source=str(rows), image=swebench_instance.IMAGE).load(swebench_instance.ROW["instance_id"])
        finally:
            swebench_instance.remove(name)

    return made


def in_image(
    name: str, build: Callable[..., None], load: Callable[[Path, str], Task], leaks: Sequence[str], right: str
) -> Callable[[Path], AbstractContextManager[Task]]:
    """A task of a row and an image of the test's own, in which the right code was left here and there."""

    @contextlib.contextmanager
    def made(directory: Path) -> Iterator[Task]:
        tag = f"debug-gym-{name}-small:{os.getpid()}"
        build(
            os.environ[swebench_images.BASE], os.environ[PYTHON], directory / "image", tag, dict.fromkeys(leaks, right)
        )
        try:
            yield load(directory, tag)
        finally:
            subprocess.run(["docker", "rmi", "-f", tag], check=True, capture_output=True)

    return made


def smith(directory: Path, tag: str) -> Task:
    """SWE-smith's."""
    row = swesmith_instance.row(image_name=tag)
    return SWESmith(source=written(directory / "rows.jsonl", row)).load(swesmith_instance.NAME)


def r2e(directory: Path, tag: str) -> Task:
    """R2E-Gym's."""
    made = R2EGym(source=written(directory / "rows.jsonl", r2egym_instance.row(docker_image=tag)))
    return made.load(made.names()[0])


COUNTER = MiniNightmare().load("counter")
assert COUNTER.repository is not None

INSTANCES: dict[str, Instance] = {
    "mini_nightmare": Instance(
        of_mini_nightmare,
        "counter_code.py",
        "test.py",
        (COUNTER.repository / "counter_code.py").read_text(),
        swebench_images.added_line((COUNTER.gold_patch or b"").decode()),
    ),
    "repo": Instance(of_repo, "calc.py", "test_calc.py", BROKEN, "the_right_sum", (TEST_ID,)),
    "aider": Instance(
        of_aider,
        "double_it.py",
        "double_it_test.py",
        aider_instance.EXERCISES["double-it"]["double_it.py"],
        aider_instance.MARK,
    ),
    "quixbugs": Instance(
        of_quixbugs,
        quixbugs_instance.PROGRAM,
        quixbugs_instance.TEST,
        quixbugs_instance.FILES[quixbugs_instance.PROGRAM],
        "marked_as_right",
    ),
    "bugsinpy": Instance(of_bugsinpy, "shop.py", "tests/test_shop.py", bugsinpy_instance.BUGGY, "return sum(prices)"),
    **{
        kind.name: Instance(
            of_swebench(kind),
            "till.py",
            "tests/test_till.py",
            swebench_instance.FILES["till.py"],
            "return sum(prices)",
            terminal={"docker": {}},
            hidden=("def test_total()",) if kind.mode == "hidden" else (),
        )
        for kind in (SWEBench, SWEBenchDebug)
    },
    "swesmith": Instance(
        in_image(
            "swesmith",
            swesmith_instance.build,
            smith,
            [path.format(project="shapes") for path in LEAKS],
            swesmith_instance.RIGHT,
        ),
        "shapes.py",
        "tests/test_area.py",
        swesmith_instance.BUGGY,
        "the_area = width * height",
        terminal={"docker": {}},
        hidden=("test_area.py", "def test_area(n)"),
    ),
    "r2egym": Instance(
        in_image(
            "r2egym", r2egym_instance.build, r2e, [path for path in LEAKS if "conda" not in path], r2egym_instance.FIXED
        ),
        "numbers_of.py",
        "r2e_tests/test_1.py",
        r2egym_instance.BUGGY,
        "return items[len(items) // 2]",
        tuple(
            f"r2e_tests/test_1.py::{test}"
            for test in ("TestMiddle::test_odd", "TestMiddle::test_range[1]", "TestMiddle::test_range[5]", "test_never")
        ),
        {"docker": {"user": "root"}},
        ("TestMiddle", "test_range[1]"),
    ),
}
