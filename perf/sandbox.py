"""How fast sandboxes start, answer and end, beside the engine's own commands, in one run.

    uv run python perf/sandbox.py [--count N] [--json FILE]

Prints a table: the measure, ours, the bare command's figure, their ratio, the bar, and whether it holds; exits 1 when a
bar is missed. Ours and the bare command take turns, so that what else the machine does meets both; medians are shown.
Docker is measured when DEBUG_GYM_TEST_IMAGE names an image with pytest (`.ci/images` makes one).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from figures import Row, arguments, check, finish, image, milliseconds
from run import TRIVIAL_TEST

import debug_gym_core
from debug_gym_core import RepoEnv, ToolCall
from debug_gym_core.sandbox.interpreter import probe
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_bubblewrap import BubblewrapTerminal, isolation
from debug_gym_terminal_bubblewrap.mounts import Mounts, mounts

ENTRYPOINT = "python -m pytest -q test_trivial.py"


def said(*argv: str) -> str:
    """What a command prints; it must succeed."""
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Medians of ours and of the bare command's, without the first pair, which warms caches."""
    return statistics.median(ours for ours, _ in pairs[1:]), statistics.median(bare for _, bare in pairs[1:])


@dataclass
class Pairs:
    """Pairs of our figure and the bare command's."""

    starts: list[tuple[float, float]] = field(default_factory=list)
    commands: list[tuple[float, float]] = field(default_factory=list)
    runs: list[tuple[float, float]] = field(default_factory=list)
    ends: list[tuple[float, float]] = field(default_factory=list)


def docker_rows(image: str, count: int) -> Iterator[Row]:
    """A container's life, and what is done in it."""
    python = os.environ.get("DEBUG_GYM_TEST_PYTHON", "python3")
    pairs = Pairs()
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "test_trivial.py").write_text(TRIVIAL_TEST)
        for _ in range(count):
            with closing(
                debug_gym_core.make(
                    "repo",
                    ["view", "eval"],
                    {"docker": {"image": image}},
                    path=directory,
                    entrypoint=ENTRYPOINT,
                    python=python,
                )
            ) as env:
                live_and_compare(env, image, directory, python, pairs)
    yield Row("docker: reset to the first observation / docker run, cp", *medians(pairs.starts), "ms", 1.3, "ratio")
    yield Row("docker: a command, in a row / docker exec", *medians(pairs.commands), "ms", 3.0)
    yield Row("docker: eval of a trivial test / docker exec pytest", *medians(pairs.runs), "ms", 1.2, "ratio")
    yield Row("docker: close / docker rm -f", *medians(pairs.ends), "ms", 1.3, "ratio")


def live_and_compare(env: RepoEnv, image: str, directory: str, python: str, pairs: Pairs) -> None:
    """One container of ours and a bare one, from their start to their end."""
    env.reset(seed=0)  # counts the tests, once a task; what every episode pays is the next one
    env.session.close()
    ours = milliseconds(partial(env.reset, seed=0))
    started = time.perf_counter()
    container = said("docker", "run", "-d", "--network", "none", image, "sleep", "600")
    try:
        said("docker", "cp", directory, f"{container}:/testbed")
        pairs.starts.append((ours, (time.perf_counter() - started) * 1e3))
        pairs.commands += rows(partial(env.terminal.run, "true"), container, ["true"], 10)
        tests = [python, "-m", "pytest", "-q", "/testbed/test_trivial.py"]
        pairs.runs += turns(partial(check, env, ToolCall("eval")), container, tests, 3)
    finally:
        bare = milliseconds(partial(said, "docker", "rm", "-f", container))
    pairs.ends.append((milliseconds(env.close), bare))


def turns(ours: Callable[[], object], container: str, command: list[str], count: int) -> Iterator[tuple[float, float]]:
    """Ours and `docker exec` in turns, once unmeasured."""
    ours()
    for _ in range(count):
        yield milliseconds(ours), milliseconds(partial(said, "docker", "exec", container, *command))


def rows(ours: Callable[[], object], container: str, command: list[str], count: int) -> Iterator[tuple[float, float]]:
    """Ours in a row, as an agent's steps come, then `docker exec` in a row; once each unmeasured."""
    theirs = partial(said, "docker", "exec", container, *command)
    times = []
    for run in (ours, theirs):
        run()
        times.append([milliseconds(run) for _ in range(count)])
    yield from zip(*times, strict=True)


def bubblewrap_rows(count: int) -> Iterator[Row]:
    """A sandbox's start and end, beside bubblewrap with the same options."""
    interpreter = probe(getattr(sys, "_base_executable", sys.executable))
    spec = SandboxSpec(run="perf", interpreter=interpreter)
    made = mounts(spec, 1 << 30, network=False)
    python = [str(interpreter.executable), "-I", "-S", "-c", "pass"]
    opened, sessions = [], []
    for _ in range(count):
        opened.append((milliseconds(partial(open_and_end, spec)), milliseconds(partial(bare, made, ["true"]))))
        sessions.append((milliseconds(partial(started, spec)), milliseconds(partial(bare, made, python))))
    yield Row("bubblewrap: start, end / bwrap ... true", *medians(opened), "ms", 2.0, "ratio")
    yield Row("bubblewrap: start with guest, end / bwrap ... python", *medians(sessions), "ms", 2.0, "ratio")


def bare(made: Mounts, command: list[str]) -> None:
    """bubblewrap as somebody would call it who wants the same file system and namespaces."""
    mode = isolation.mode()
    assert mode is not None
    files = [os.memfd_create("file") for _ in made.contents]
    try:
        for file, content in zip(files, made.contents, strict=True):
            os.write(file, content)
            os.lseek(file, 0, os.SEEK_SET)
        names = {f"{{{number}}}": str(file) for number, file in enumerate(files)}
        arguments = [names.get(argument, argument) for argument in made.arguments]
        argv = ["bwrap", *isolation.options(mode, network=False), *arguments, "--", *command]
        subprocess.run(argv, pass_fds=files, check=True)
    finally:
        for file in files:
            os.close(file)


def open_and_end(spec: SandboxSpec) -> None:
    """A sandbox with nothing but `true` in it."""
    terminal = BubblewrapTerminal()
    terminal.start(spec)
    with closing(terminal.open(["true"])) as stream:
        if stream.read(1):
            raise SystemExit("true printed something")
    terminal.stop()


def started(spec: SandboxSpec) -> None:
    """A sandbox with the guest in it, which answered."""
    Session.start(BubblewrapTerminal(), spec).close()


def main() -> int:
    """Measure, print, and say by the exit status whether all bars hold."""
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, default=10, metavar="N", help="measurements of each")
    options = parser.parse_args()
    rows = list(bubblewrap_rows(options.count))
    if name := image():
        rows += docker_rows(name, options.count)
    return finish(rows, options)


if __name__ == "__main__":
    sys.exit(main())
