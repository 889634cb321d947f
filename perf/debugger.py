"""How fast the debugger is, beside bare Python, the standard library's pdb, and pdb driven by pexpect, in one run.

    uv run python perf/debugger.py [--full] [--repeat N] [--json FILE]

Prints a table: the measure, ours, the bare figure, their ratio, what stdlib pdb takes (of a program: as a ratio too; of
a command: driven by pexpect), the bar, and whether it holds; exits 1 when a bar is missed. Usually this interpreter and
the newest one of DEBUG_GYM_TEST_PYTHONS are measured; `--full` measures all of them. Docker is measured when
DEBUG_GYM_TEST_IMAGE names an image with pytest.

Programs time their own hot function, so that starts do not count, in ten equal parts; bare and debugged runs take
turns, so that what else the machine does meets both. The least time of a part, by ten, is shown of each, since all
that disturbs adds to it. The least time of the flood of output is shown, too; of all else, medians. Where a bar of a
program, the flood, a restart or a command is not held at first, there are three times as many turns more, and all
count. stdlib pdb gets a fraction of the work, in one part, and its time is scaled.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pexpect
from figures import NO_BAR, Compared, arguments, check, finish, image, median_ms

import debug_gym_core
from debug_gym_core import RepoEnv, ToolCall
from debug_gym_core.debugging.breakpoints import Breakpoints
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_terminal_bubblewrap import BubblewrapTerminal
from debug_gym_tool_pdb.session import DebugSession

OTHER = "def never():\n    x = 1\n    return x\n"

PROGRAM = """\
import sys, time
import other


def cold():
    x = 1
    return x


{hot}

def measured(repeats, parts):
    least = float("inf")
    for _ in range(parts):
        start = time.perf_counter()
        hot(repeats // parts)
        least = min(least, time.perf_counter() - start)
    return least * parts


{measured}
print("TOOK", took)
"""

MEASURED = "took = measured(int(sys.argv[1]), int(sys.argv[2]))"
PARTS = 10
"""How often a program does a part of its work; the least time of them counts, as that of turns does."""

WORKLOADS = {
    "fib": (
        """\
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def hot(repeats):
    for _ in range(repeats):
        fib(15)
""",
        "    if n < 2:",
        "n < 0",
        300,
    ),
    "loop": (
        """\
def hot(repeats):
    total = 0
    for n in range(repeats * 1000):
        total += n % 7
        total ^= n
    return total
""",
        "        total += n % 7",
        "n < 0",
        1500,
    ),
    "calls": (
        """\
def small(n):
    return n + 1


def middle(n):
    return small(n) + small(n + 1)


def hot(repeats):
    total = 0
    for n in range(repeats * 100):
        total += middle(n)
    return total
""",
        "    return n + 1",
        "n < 0",
        2500,
    ),
}
"""Programs: the hot code, a line in it, a condition that is false there, and how often it is repeated when bare."""

MORE_TURNS = 4
"""How many times as many turns there are where a bar seems missed."""
FLOODS = 5
FLOOD_BAR = 0.5
STEP_BAR = 1.0
ENV_BAR = 5.0
PAUSE = 5.0
"""Seconds before a command is measured again: the machine's other work may be over then."""
CLEARLY_MISSED = 5
"""Ratio to bare at which a measurement is not repeated."""

PDB_SHARE = 50
"""Part of the work that stdlib pdb gets."""

WORST_LOCALS = """\
class Node:
    def __init__(self, depth):
        self.children = [Node(depth - 1) for _ in range(3)] if depth else []

    def __repr__(self):
        return "Node(%r)" % self.children


def f():
    tree = Node(7)
    lists = [list(range(1000)) for _ in range(100)]
    texts = {n: "x" * 10**6 for n in range(5)}
    number = 10**5000
    x = 1
    x = 2
    x = 3


while True:
    f()
"""

PLAIN_LOCALS = """\
def f(a, b, c, d, e):
    x = 1
    x = 2
    x = 3


while True:
    f(1, "two", [3], {"four": 4}, 5.0)
"""


def version(python: str) -> tuple[int, ...]:
    """Major and minor version of an interpreter."""
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split()))


@contextlib.contextmanager
def session(terminal: object, directory: Path) -> Iterator[Session]:
    """A sandbox over the files of a directory."""
    with environment(terminal, directory, at_once(directory)) as env:
        yield env.session


def at_once(directory: Path) -> str:
    """An entrypoint that ends at once, for a sandbox in which others are debugged: a reset runs it."""
    (directory / "at_once.py").write_text("x = 1\n")
    return "python at_once.py"


@contextlib.contextmanager
def environment(terminal: object, directory: Path, entrypoint: str, **pdb: object) -> Iterator[RepoEnv]:
    """An environment of a directory."""
    python = os.environ.get("DEBUG_GYM_TEST_PYTHON", "python3") if isinstance(terminal, dict) else sys.executable
    with contextlib.closing(
        debug_gym_core.make(
            "repo", [{"pdb": pdb}], terminal, path=directory, allow_unsandboxed=True, entrypoint=entrypoint,
            debug_entrypoint=entrypoint, python=python,
        )
    ) as env:  # fmt: skip
        env.reset(seed=0)
        yield env


@contextlib.contextmanager
def debugging(sandbox: Session, entrypoint: str, *commands: str) -> Iterator[DebugSession]:
    """A program under the debugger, after some commands."""
    debugged = DebugSession(sandbox, Entrypoint.parse(entrypoint), Breakpoints())
    debugged.start()
    try:
        for command in commands:
            reply = debugged.execute(command, (), 60)
            if reply.failed or reply.end is not None:
                raise SystemExit(f"{entrypoint}: {command}: {reply}")
        yield debugged
    finally:
        debugged.close()


def took(text: str) -> float:
    """What a program says that its hot function took, in ms."""
    found = re.search(r"TOOK ([\d.e-]+)", text)
    if found is None:
        raise SystemExit(f"the program did not say how long it took: {text[-500:]}")
    return float(found[1]) * 1e3


def line_of(source: str, text: str) -> int:
    """Number of the first line with a text."""
    return source.split("\n").index(text) + 1


def run_bare(python: str, directory: Path, program: str, repeats: int) -> float:
    """The hot function's time without a debugger."""
    argv = [python, program, str(repeats), str(PARTS)]
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=True)
    return took(done.stdout)


def run_pdb(python: str, directory: Path, program: str, repeats: int, commands: Sequence[str]) -> float:
    """The hot function's time under stdlib pdb, scaled to the whole work."""
    part = max(1, repeats // PDB_SHARE)
    argv = [python, "-m", "pdb", *(word for command in commands for word in ("-c", command)), program, str(part), "1"]
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return took(done.stdout) * repeats / part


def run_ours(sandbox: Session, python: str, program: str, repeats: int, commands: Sequence[str]) -> float:
    """The hot function's time under our debugger."""
    debugged = DebugSession(sandbox, Entrypoint.parse(f"{python} {program} {repeats} {PARTS}"), Breakpoints())
    debugged.start()
    try:
        printed = ""
        for command in commands:
            printed += debugged.execute(command, (), 300).printed
            if not debugged.alive:
                break
        return took(printed)
    finally:
        debugged.close()


def program_rows(pythons: Sequence[str], repeat: int) -> Iterator[Compared]:
    """What breakpoints and `next` cost a running program."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        (directory / "other.py").write_text(OTHER)
        sources = {name: PROGRAM.format(hot=code[0], measured=MEASURED) for name, code in WORKLOADS.items()}
        for name, source in sources.items():
            (directory / f"{name}.py").write_text(source)
        with session("local", directory) as sandbox:
            for python in pythons:
                number = version(python)
                for name, (_, line, condition, repeats) in WORKLOADS.items():
                    source, program = sources[name], f"{name}.py"
                    cases = {
                        "cold breakpoint": ([f"b {program}:{line_of(source, '    x = 1')}", "c"], 1.15),
                        "breakpoint in another file": (["b other.py:2", "c"], 1.15),
                        "false condition": ([f"b {program}:{line_of(source, line)}, {condition}", "c"], 1.4),
                        "next": (
                            [f"tbreak {program}:{line_of(source, MEASURED)}", "c", "n", "c"],
                            1.5 if number >= (3, 12) else NO_BAR,
                        ),
                    }
                    for what, (commands, bar) in cases.items():
                        bare, ours, other = [], [], []
                        run_bare(python, directory, program, repeats)
                        for turn in range(MORE_TURNS * repeat):
                            bare.append(run_bare(python, directory, program, repeats))
                            ours.append(run_ours(sandbox, python, program, repeats, commands))
                            if turn < 2:
                                other.append(run_pdb(python, directory, program, repeats, commands))
                            if ours[-1] > CLEARLY_MISSED * bare[-1]:
                                break  # one run says enough
                            if turn + 1 == repeat and min(ours) <= bar * min(bare):
                                break
                        yield Compared(
                            f"{name}, {what}, {'.'.join(map(str, number))}",
                            min(ours), min(bare), "ms", bar, "ratio", min(other) / min(bare),
                        )  # fmt: skip


def pexpect_pdb(python: str, directory: Path, program: str, delay: float | None) -> pexpect.spawn[str]:
    """stdlib pdb on a PTY, at its first prompt."""
    child = pexpect.spawn(python, ["-m", "pdb", program], cwd=str(directory), encoding="utf-8", timeout=60)
    child.delaybeforesend = delay  # type: ignore[assignment]
    child.expect_exact("(Pdb) ")
    return child


def ask_pexpect(child: pexpect.spawn[str], command: str) -> None:
    child.sendline(command)
    child.expect_exact("(Pdb) ")


def median_under(bar: float, task: Callable[[], object], count: int) -> float:
    """The median time of a command in ms; of four times as many, after a pause, where it is over the bar at first."""
    times = [median_ms(task, 1, warm=0) for _ in range(count)]
    if statistics.median(times) > bar:
        time.sleep(PAUSE)
        times += [median_ms(task, 1, warm=0) for _ in range((MORE_TURNS - 1) * count)]
    return statistics.median(times)


def command_rows(name: str, terminal: object, python: str) -> Iterator[Compared]:
    """One `p 1`, the stop report, an interrupt and a flood, in one sandbox."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        (directory / "program.py").write_text(PLAIN_LOCALS)
        (directory / "worst.py").write_text(WORST_LOCALS)
        (directory / "endless.py").write_text("while True:\n    pass\n")
        (directory / "flood.py").write_text(
            "import sys\nfor _ in range(int(sys.argv[1])):\n    print('x' * 99)\ndone = 1\n"
        )
        child = pexpect_pdb(sys.executable, directory, "program.py", 0.05)
        default = median_ms(lambda: ask_pexpect(child, "p 1"), 20)
        child.delaybeforesend = None
        hurried = median_ms(lambda: ask_pexpect(child, "p 1"), 100)
        child.close(force=True)
        with environment(terminal, directory, at_once(directory)) as env:
            sandbox = env.session
            entry = f"{python} {{}}" if python else "python {}"
            ask = {"local": 1.0}.get(name, 3.0)
            with debugging(sandbox, entry.format("program.py"), "b program.py:2", "c", "cl 1") as debugged:
                one = median_under(ask, lambda: debugged.execute("p 1", (), 10), 300)
                yield Compared(f"{name}: p 1 (pexpect default)", one, default, "ms", ask, pdb=default)
                yield Compared(f"{name}: p 1 (pexpect, no delay)", one, hurried, "ms", ask, pdb=hurried)
                # The whole round trip bounds the report from above: a difference of medians may be negative.
                step = median_under(STEP_BAR, lambda: debugged.execute("n", (), 10), 100)
                yield Compared(f"{name}: n and its stop report, plain", step, one, "ms", STEP_BAR)
            with debugging(sandbox, entry.format("worst.py"), "b worst.py:14") as debugged:
                steps = []
                for _ in range(5):
                    debugged.execute("c", (), 60)
                    steps += [median_ms(lambda: debugged.execute("n", (), 10), 1, warm=0) for _ in range(2)]
                yield Compared(f"{name}: n and its stop report, worst", statistics.median(steps), one, "ms", 20.0)
            check(env, ToolCall("pdb", {"command": "b program.py:2\nc", "entrypoint": "python program.py"}))
            whole = median_under(ENV_BAR, lambda: check(env, ToolCall("pdb", {"command": "p 1"})), 100)
            yield Compared(f"{name}: p 1 through env.step", whole, default, "ms", ENV_BAR, pdb=hurried)
            with debugging(sandbox, entry.format("endless.py")) as debugged:
                times = []
                for _ in range(7):
                    start = time.perf_counter()
                    debugged.execute("c", (), 0.1)
                    times.append((time.perf_counter() - start - 0.1) * 1e3)
                yield Compared(f"{name}: interrupt to prompt", statistics.median(times), 0.0, "ms", 20.0)
            yield from flood_rows(name, sandbox, entry, directory)


def flood_rows(name: str, sandbox: Session, entry: str, directory: Path) -> Iterator[Compared]:
    """A program that prints 10 MB, and the memory that 50 MB cost the host."""

    def flood(lines: int) -> float:
        with debugging(sandbox, f"{entry.format('flood.py')} {lines}", "b flood.py:4") as debugged:
            start = time.perf_counter()
            reply = debugged.execute("c", (), 60)
            if reply.stop is None:
                raise SystemExit(f"the flood did not stop at its breakpoint: {reply.text[-500:]}")
            return time.perf_counter() - start

    def by_pexpect() -> float:
        child = pexpect.spawn(sys.executable, ["flood.py", "100000"], cwd=str(directory), timeout=60)
        start = time.perf_counter()
        child.expect(pexpect.EOF)
        seconds = time.perf_counter() - start
        child.close(force=True)
        return seconds

    times: list[float] = []
    for turns in (FLOODS, (MORE_TURNS - 1) * FLOODS):
        if not times or min(times) > FLOOD_BAR:
            times += [flood(100_000) for _ in range(turns)]
    yield Compared(f"{name}: 10 MB of output", min(times), by_pexpect(), "s", FLOOD_BAR)
    forget_most_memory()
    before = most_memory()
    flood(500_000)
    yield Compared(f"{name}: host memory for 50 MB", most_memory() - before, 50.0, "MB", 5.0)


def forget_most_memory() -> None:
    """Measure from here on: what pexpect took before would hide all that is less."""
    Path("/proc/self/clear_refs").write_text("5")


def most_memory() -> float:
    """The most memory that this process had since `forget_most_memory`, in MB."""
    text = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) / 1024 if found else 0.0


WARM_AFTER = 2.0
"""Seconds after the first start in which the interpreter that warm starts are forked from gets ready."""


def restart_rows(repeat: int) -> Iterator[Compared]:
    """Restarts of a pytest session through the tool, warm and cold."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        (directory / "test_it.py").write_text("def test_it():\n    x = 1\n    assert x == 1\n")
        entrypoint = "python -m pytest -q -p no:cacheprovider test_it.py"
        argv = [sys.executable, *entrypoint.split()[1:]]

        def bare(command: Sequence[str]) -> Callable[[], object]:
            return lambda: subprocess.run(command, cwd=directory, capture_output=True, check=True)

        def by_pexpect(*commands: str) -> Callable[[], object]:
            def run() -> None:
                child = pexpect.spawn(argv[0], ["-m", "pdb", *argv[1:]], cwd=str(directory), timeout=60)
                child.delaybeforesend = None
                child.expect_exact("(Pdb) ")
                for command in commands:
                    child.sendline(command)
                    child.expect_exact("(Pdb) ")
                child.close(force=True)

            return run

        whole = median_ms(bare(argv), repeat, warm=1)
        first = median_ms(by_pexpect(), repeat, warm=1)
        reached = median_ms(by_pexpect("b test_it.py:2", "c"), repeat, warm=1)
        # The sandbox that a user gets; `auto` takes it where it can be had.
        terminal = "local" if BubblewrapTerminal.unavailable() else "bubblewrap"
        for kind, warm in ((f"warm, {terminal}", True), (f"cold, {terminal}", False)):
            with environment(terminal, directory, entrypoint, warm=warm) as env:
                check(env, ToolCall("pdb", {"command": "b test_it.py:2"}))
                if warm:
                    time.sleep(WARM_AFTER)
                bar, how = (30.0, "absolute") if warm else (1.3, "ratio")
                ours: list[float] = []
                versions: list[float] = []
                for turn in range(MORE_TURNS * repeat):
                    ours.append(median_ms(lambda: check(env, ToolCall("pdb", {"command": "restart"})), 1, warm=0))
                    versions.append(median_ms(bare([sys.executable, "-m", "pytest", "--version"]), 1, warm=0))
                    prompt, plain = statistics.median(ours), statistics.median(versions)
                    if turn + 1 == repeat and prompt <= bar * (1.0 if warm else plain):
                        break
                pdb = first / plain if how == "ratio" else first
                yield Compared(f"restart to the first prompt, {kind}", prompt, plain, "ms", bar, how, pdb)
                stop = median_ms(lambda: check(env, ToolCall("pdb", {"command": "restart\nc"})), repeat, warm=1)
                yield Compared(f"restart to a breakpoint, {kind}", stop, whole, "ms", NO_BAR, pdb=reached)


def main() -> int:
    """Measure, print, and say by the exit status whether all bars hold."""
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="measure every interpreter of DEBUG_GYM_TEST_PYTHONS")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="turns")
    options = parser.parse_args()
    named = os.environ.get("DEBUG_GYM_TEST_PYTHONS", sys.executable).split(":")
    pythons = {version(python): python for python in [*named, sys.executable]}
    if not options.full:
        pythons = {number: pythons[number] for number in {version(sys.executable), max(pythons)}}
    measured = [python for number, python in sorted(pythons.items()) if number >= (3, 8)]
    rows = [*command_rows("local", "local", sys.executable)]
    if image():
        rows += command_rows("docker", {"docker": {"image": image()}}, "")
    rows += restart_rows(options.repeat)
    rows += program_rows(measured, options.repeat)
    return finish(rows, options)


if __name__ == "__main__":
    sys.exit(main())
