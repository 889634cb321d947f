"""What following a call costs a running program: while it is awaited, and the whole of an answer."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from debugger_programs import MEASURED, PARTS, PROGRAM, WORKLOADS, run_bare, took
from debugger_sessions import MORE_TURNS, session, version
from figures import NO_BAR, Row, median_ms

from debug_gym_core.debugging.target import Target
from debug_gym_core.sandbox.session import Session
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_tool_trace.running import Outcome, Tracing, Wanted

FUNCTIONS = {"fib": "fib", "loop": "hot", "calls": "small"}
"""A function that each program calls, for the whole of an answer."""


def followed(sandbox: Session, python: str, name: str, repeats: int, function: str, call: int = 1) -> Outcome:
    """What is told of a call of a program's function."""
    target = Target(Entrypoint.parse(f"{python} {name}.py {repeats} {PARTS}"))
    return Tracing(sandbox, target, Wanted(f"{name}.py", function, call, 0), (), 300).run()


def tracing_rows(pythons: Sequence[str], repeat: int) -> Iterator[Row]:
    """What it costs to wait for a call that is never made; and a whole answer, beside the bare program to its end."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        (directory / "other.py").write_text("")
        for name, code in WORKLOADS.items():
            (directory / f"{name}.py").write_text(PROGRAM.format(hot=code[0], measured=MEASURED))
        with session("local", directory) as sandbox:
            for python in pythons:
                for name in WORKLOADS:
                    yield from _rows(sandbox, directory, python, name, repeat)


def _rows(sandbox: Session, directory: Path, python: str, name: str, repeat: int) -> Iterator[Row]:
    repeats = WORKLOADS[name][-1]
    number = version(python)
    shown = ".".join(map(str, number))
    bar = 1.15 if number >= (3, 12) else NO_BAR
    bare, ours = [], []
    for turn in range(MORE_TURNS * repeat):
        bare.append(run_bare(python, directory, f"{name}.py", repeats))
        ours.append(took(followed(sandbox, python, name, repeats, "cold").printed))
        if turn + 1 >= repeat and (bar == NO_BAR or min(ours) <= bar * min(bare)):
            break
    yield Row(f"trace, {name}, waits for a call, {shown}", min(ours), min(bare), "ms", bar, "ratio")
    answer = median_ms(lambda: followed(sandbox, python, name, repeats, FUNCTIONS[name]), repeat, warm=1)
    whole = median_ms(lambda: run_bare(python, directory, f"{name}.py", repeats), repeat, warm=0)
    yield Row(f"trace, {name}, a first call, {shown}", answer, whole, "ms", NO_BAR, "ratio")
