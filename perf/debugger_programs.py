"""What breakpoints and `next` cost a running program."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from debugger_sessions import MORE_TURNS, session, version
from figures import NO_BAR, Compared

from debug_gym_core.debugging.breakpoints import Breakpoints
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.entrypoint import Entrypoint
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

CLEARLY_MISSED = 5
"""Ratio to bare at which a measurement is not repeated."""

PDB_SHARE = 50
"""Part of the work that stdlib pdb gets."""


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
