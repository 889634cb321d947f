"""How fast debug-gym is, beside what a user would run instead, in one run.

    uv run python perf/run.py [--terminal bubblewrap] [--terminal docker] [--json FILE]

Prints a table: the measure, ours, the bare command's figure from the same run, the bar, and whether it holds; exits 1
when a bar is missed. Docker is measured when DEBUG_GYM_TEST_IMAGE names an image with pytest (`.ci/images` makes one).
Times are wall-clock medians unless a row says CPU; ratios carry from machine to machine, times do not.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pexpect
from figures import Row, arguments, check, finish, image, median_ms

import debug_gym_core
from debug_gym_core import RepoEnv, ToolCall

TRIVIAL_TEST = "def test_nothing():\n    assert 1 + 1 == 2\n"


def cpu_ms(argv: list[str], count: int = 15) -> float:
    """Median CPU time (user and system) of a command in milliseconds."""
    times = []
    for _ in range(count):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
    return statistics.median(times)


def help_rows() -> Iterator[Row]:
    """The command line's start, against an interpreter that imports click only."""
    command = str(Path(sys.executable).parent / "debug-gym")
    bare = cpu_ms([sys.executable, "-c", "import click"])
    yield Row("debug-gym --help (CPU)", cpu_ms([command, "--help"]), bare, "ms", 2.5, "ratio")
    yield Row("debug-gym --version (CPU)", cpu_ms([command, "--version"]), bare, "ms", 2.5, "ratio")


@contextmanager
def live(directory: Path, terminal: object, **settings: object) -> Iterator[RepoEnv]:
    """An environment of a repository, reset."""
    env = debug_gym_core.make(
        "repo", ["view", "eval", "pdb"], terminal, path=directory, allow_unsandboxed=True, **settings
    )
    with closing(env):
        env.reset(seed=0)
        yield env


def bare_pdb(directory: Path, python: str) -> float:
    """One `p 1` of the standard library's pdb over a PTY."""
    child = pexpect.spawn(python, ["-m", "pdb", "test_trivial.py"], cwd=str(directory), encoding="utf-8", timeout=30)
    child.delaybeforesend = None
    child.expect_exact("(Pdb) ")

    def ask() -> None:
        child.sendline("p 1")
        child.expect_exact("(Pdb) ")

    value = median_ms(ask, 100)
    child.close(force=True)
    return value


def terminal_rows(name: str, terminal: object, bar: float, python: str) -> Iterator[Row]:
    """Steps and runs in one sandbox."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        (directory / "test_trivial.py").write_text(TRIVIAL_TEST)
        file = directory / "test_trivial.py"
        with live(directory, terminal, entrypoint="python -m pytest -q test_trivial.py", python=python) as env:
            yield Row(
                f"{name}: step view",
                median_ms(lambda: check(env, ToolCall("view", {"path": "test_trivial.py"})), 100),
                median_ms(file.read_text, 100), "ms", bar,
            )  # fmt: skip
            yield Row(
                f'{name}: terminal.run("true")',
                median_ms(lambda: env.terminal.run("true"), 100),
                median_ms(lambda: subprocess.run(["bash", "-c", "true"], check=True), 100), "ms", bar,
            )  # fmt: skip
            check(env, ToolCall("pdb", {"command": "b test_trivial.py:2\nc"}))
            yield Row(
                f"{name}: step pdb p 1",
                median_ms(lambda: check(env, ToolCall("pdb", {"command": "p 1"})), 100),
                bare_pdb(directory, python), "ms", bar,
            )  # fmt: skip
            environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
            bare = [python, "-m", "pytest", "-q", "test_trivial.py"]
            pairs = []
            for _ in range(12):  # in turns, so that what else the machine does meets both
                ours = median_ms(lambda: check(env, ToolCall("eval")), 1, warm=0)
                theirs = median_ms(
                    lambda: subprocess.run(bare, cwd=directory, env=environment, capture_output=True, check=True),
                    1,
                    warm=0,
                )
                pairs.append((ours, theirs))
            yield Row(
                f"{name}: eval of a trivial test",
                statistics.median(ours for ours, _ in pairs[1:]),
                statistics.median(theirs for _, theirs in pairs[1:]), "ms", 1.2, "ratio",
            )  # fmt: skip
            start = time.perf_counter()
            env.step(ToolCall("pdb", {"command": "c", "entrypoint": "python -m nosuchmodule"}))
            took = time.perf_counter() - start
            bad = median_ms(lambda: subprocess.run([python, "-m", "nosuchmodule"], capture_output=True), 3, warm=0)
            yield Row(f"{name}: a bad entrypoint", took, bad / 1e3, "s", 2.0)


def main() -> int:
    """Measure, print, and say by the exit status whether all bars hold."""
    parser = arguments(__doc__)
    parser.add_argument("--terminal", action="append", choices=["local", "bubblewrap", "docker"])
    options = parser.parse_args()
    names = options.terminal or ["local", "bubblewrap", *(["docker"] if image() else [])]
    rows = list(help_rows())
    for name in names:
        terminal: object = {"docker": {"image": image()}} if name == "docker" else name
        in_image = os.environ.get("DEBUG_GYM_TEST_PYTHON", "python3")
        python = in_image if name == "docker" and Path(in_image).exists() else sys.executable
        rows += terminal_rows(name, terminal, {"local": 5.0, "bubblewrap": 5.0, "docker": 8.0}[name], python)
    return finish(rows, options)


if __name__ == "__main__":
    sys.exit(main())
