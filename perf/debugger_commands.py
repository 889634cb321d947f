"""What a command, a stop, an interrupt and a flood of output take at the debugger's prompt."""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
from debugger_sessions import MORE_TURNS, at_once, debugging, environment
from figures import Compared, check, median_ms

from debug_gym_core import ToolCall
from debug_gym_core.sandbox.session import Session

FLOODS = 5
INTERRUPTS = 7
RUNNING = 0.1
"""Seconds that a program runs before it is interrupted."""
FLOOD_BAR = 0.5
STEP_BAR = 1.0
ENV_BAR = 5.0
PAUSE = 5.0
"""Seconds before a command is measured again: the machine's other work may be over then."""

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


def pexpect_pdb(python: str, directory: Path, program: str, delay: float | None) -> pexpect.spawn[str]:
    """stdlib pdb on a PTY, at its first prompt."""
    child = pexpect.spawn(python, ["-m", "pdb", program], cwd=str(directory), encoding="utf-8", timeout=60)
    child.delaybeforesend = delay  # type: ignore[assignment]
    child.expect_exact("(Pdb) ")
    return child


def ask_pexpect(child: pexpect.spawn[str], command: str) -> None:
    child.sendline(command)
    child.expect_exact("(Pdb) ")


def interrupt_pexpect(directory: Path) -> float:
    """The median time from Ctrl-C to stdlib pdb's prompt, in ms."""
    child = pexpect_pdb(sys.executable, directory, "endless.py", None)
    try:
        times = []
        for _ in range(INTERRUPTS):
            child.sendline("c")
            time.sleep(RUNNING)
            start = time.perf_counter()
            child.sendintr()
            child.expect_exact("(Pdb) ")
            times.append((time.perf_counter() - start) * 1e3)
        return statistics.median(times)
    finally:
        child.close(force=True)


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
                for _ in range(INTERRUPTS):
                    start = time.perf_counter()
                    debugged.execute("c", (), RUNNING)
                    times.append((time.perf_counter() - start - RUNNING) * 1e3)
                theirs = interrupt_pexpect(directory)
                yield Compared(f"{name}: interrupt to prompt", statistics.median(times), theirs, "ms", 20.0, pdb=theirs)
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
