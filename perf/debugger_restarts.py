"""What a restart of a debugged pytest takes, warm and cold."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pexpect
from debugger_sessions import MORE_TURNS, environment
from figures import NO_BAR, Compared, check, median_ms

from debug_gym_core import ToolCall
from debug_gym_terminal_bubblewrap import BubblewrapTerminal

WARM_AFTER = 4.0
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
