"""How fast debug-gym is, beside what a user would run instead, in one run.

    uv run python perf/run.py [--terminal bubblewrap] [--terminal docker] [--json FILE]

Prints a table: the measure, ours, the bare command's figure from the same run, the bar, and whether it holds; exits 1
when a bar is missed. Docker is measured when DEBUG_GYM_TEST_IMAGE names an image with pytest (`.ci/images` makes one).
Times are wall-clock medians unless a row says CPU; ratios carry from machine to machine, times do not.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pexpect

import debug_gym_core
from debug_gym_core import RepoEnv, ToolCall

TRIVIAL_TEST = "def test_nothing():\n    assert 1 + 1 == 2\n"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        measure: what was measured
        ours: our figure
        bare: the figure of what a user would run instead
        unit: of both
        bar: what ours, or the ratio, must not exceed
        kind: whether the bar is on `ours` (absolute) or on the `ratio`
    """

    measure: str
    ours: float
    bare: float
    unit: str
    bar: float
    kind: str = "absolute"

    @property
    def ratio(self) -> float:
        return self.ours / self.bare if self.bare else float("inf")

    @property
    def holds(self) -> bool:
        return (self.ours if self.kind == "absolute" else self.ratio) <= self.bar


def median_ms(action: Callable[[], object], count: int, warm: int = 3) -> float:
    """Median wall-clock time of an action in milliseconds."""
    for _ in range(warm):
        action()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        action()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


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


def check(env: RepoEnv, call: ToolCall) -> str:
    """Step, and make sure that it was not an error that was quick."""
    observation, *_ = env.step(call)
    if env.last_observations[0].error:
        raise SystemExit(f"{call}: {observation['text']}")
    return observation["text"]


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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--terminal", action="append", choices=["local", "bubblewrap", "docker"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    options = parser.parse_args()
    image = os.environ.get("DEBUG_GYM_TEST_IMAGE")
    names = options.terminal or ["local", "bubblewrap", *(["docker"] if image else [])]
    rows = list(help_rows())
    for name in names:
        terminal: object = {"docker": {"image": image}} if name == "docker" else name
        in_image = os.environ.get("DEBUG_GYM_TEST_PYTHON", "python3")
        python = in_image if name == "docker" and Path(in_image).exists() else sys.executable
        rows += terminal_rows(name, terminal, {"local": 5.0, "bubblewrap": 5.0, "docker": 8.0}[name], python)
    width = max(len(row.measure) for row in rows)
    print(f"{'measure':<{width}}  {'ours':>9}  {'bare':>9}  {'ratio':>6}  bar")
    for row in rows:
        bar = f"{row.bar:g} {row.unit}" if row.kind == "absolute" else f"{row.bar:g}x"
        verdict = "holds" if row.holds else "MISSED"
        figures = f"{row.ours:>7.2f} {row.unit:<2} {row.bare:>6.2f} {row.unit:<2}"
        print(f"{row.measure:<{width}}  {figures}  {row.ratio:>6.2f}  {bar} {verdict}")
    if "docker" not in names:
        print("docker was not measured: set DEBUG_GYM_TEST_IMAGE (`.ci/images` makes an image)")
    if options.json:
        options.json.write_text(
            json.dumps([{**asdict(row), "ratio": row.ratio, "holds": row.holds} for row in rows], indent=1)
        )
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
