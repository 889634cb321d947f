"""Commands that do their worst come back in time, leave nothing running, and cost the program that plays no memory.

Each terminal's attempts run in a process of their own, so that its memory can be measured: `python -c PROBE TERMINAL`
prints a line of JSON for each attempt.

DEBUG_GYM_TEST_IMAGE, DEBUG_GYM_TEST_PYTHON: the image for the tests in docker, and its Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support import reason_not_to_use, terminals

pytestmark = pytest.mark.faults

TIMEOUT = 1.2
"""Seconds that each command has."""
OVER = 30.0
"""Seconds over it after which it must be back, whatever it does."""
MEMORY = 50_000
"""Kilobytes by which the program's memory may grow."""

# What runs in the sandbox; the marker in its arguments finds its processes. A bomb is bounded where nothing else is.
HOSTILE = r"""
import os, signal, sys, time

def main(mode, bound=None):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT) if mode != "flood" else ():
        signal.signal(number, signal.SIG_IGN)
    if mode == "daemon":  # new session, two forks, deaf to everything that can be ignored
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            while True:
                time.sleep(1)
        print("left a daemon", flush=True)
    elif mode == "bomb":
        end = time.monotonic() + 60
        count = 0
        while time.monotonic() < end:
            try:
                if bound is None:
                    os.fork()
                elif count < int(bound):
                    count += 1
                    if os.fork() == 0:
                        break
                else:
                    time.sleep(0.1)
            except OSError:
                pass
    else:
        block = b"a line of nothing in particular\n" * 4096
        while True:
            os.write(1, block)
    while True:
        time.sleep(1)

if __name__ == "__main__":
    main(*sys.argv[2:])
"""

PROBE = r"""
import contextlib, json, os, pathlib, sys, time
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.tasks.task import Task
from debug_gym_tool_bash import Bash
from debug_gym_tool_eval import Eval
from debug_gym_tool_pdb import Pdb

name, hostile, timeout, directory = sys.argv[1], sys.argv[2], float(sys.argv[3]), pathlib.Path(sys.argv[4])
marker = f"hostile-{os.getpid()}"
bound = ["150"] if name == "local" else []
repository = directory / "repository"
repository.mkdir()
(repository / "hostile.py").write_text(hostile)
(repository / "fine.py").write_text("fine = 1\n")
(repository / "test_it.py").write_text(
    "import pathlib, hostile\n\ndef test_it():\n    hostile.main(*pathlib.Path('mode').read_text().split())\n"
)
task = Task(
    "tests", "hostile", repository, entrypoint="python -m pytest -q -s test_it.py -p no:" + marker,
    debug_entrypoint=f"python hostile.py {marker} wait", max_score=1, time_limit=2 * timeout,
)
settings = {"terminal": {name: {"pids": 200}} if name != "local" else name}
if name == "docker":
    settings["terminal"]["docker"]["image"] = os.environ["DEBUG_GYM_TEST_IMAGE"]
    settings["python"] = os.environ.get("DEBUG_GYM_TEST_PYTHON")
# Cold, for what stays behind is counted: what warm starts leave is tested with them.
tools = [Bash(timeout=timeout), Eval(warm=False), Pdb(timeout=timeout, warm=False)]
env = RepoEnv(task, tools, trusted=True, **settings)
env.reset(seed=0)

def memory(field):
    text = pathlib.Path("/proc/self/status").read_text()
    return int(text.split(field + ":")[1].split()[0])

def on_host():
    found = 0
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if marker.encode() in (entry / "cmdline").read_bytes():
                found += int(entry.name) != os.getpid()
    return found

def step(tool, **arguments):
    env.step(ToolCall(tool, arguments))
    return env.last_observations[0].text

def inside():
    return int(env.terminal.run("set -- /proc/[0-9]*; echo $#", timeout=30).output)

def more_inside(before):
    # What was killed, and what asked, may take a moment to be gone.
    end = time.monotonic() + 20
    while inside() > before and time.monotonic() < end:
        time.sleep(0.1)
    return inside() - before

def attempt(route, mode):
    command = " ".join(["exec", "'" + env.session.python + "'", "hostile.py", marker, mode, *bound])
    env.session.write("mode", " ".join([mode, *bound]).encode())
    before = inside()
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    base = memory("VmRSS")
    started = time.monotonic()
    if route == "run":
        seen = env.terminal.run(command.replace("exec ", "", 1), timeout=timeout).output
    elif route == "bash":
        seen = step("bash", command=command.replace("exec ", "", 1))
    elif route == "eval":
        seen = step("eval")
    else:
        seen = step("pdb", command="c", entrypoint=f"python hostile.py {marker} {mode} {' '.join(bound)}")
    seconds = time.monotonic() - started
    grown = memory("VmHWM") - base
    if route == "pdb":  # its program is stopped, not ended, at the timeout
        env.tools["pdb"].close()
    row = {"route": route, "mode": mode, "seconds": seconds, "grown": grown, "host": on_host()}
    row["inside"] = more_inside(before) if name != "local" else 0
    row["next"] = {
        "run": lambda: env.terminal.run("echo next", timeout=30).output,
        "bash": lambda: step("bash", command="echo next", timeout=30),
        "eval": lambda: "next" if "did" in step("bash", command="echo did", timeout=30) else "",
        "pdb": lambda: step("pdb", command="p 'next'", entrypoint="python fine.py"),
    }[route]()
    row["did"] = {"daemon": "left a daemon", "bomb": "", "flood": "nothing in particular"}[mode] in seen
    print(json.dumps(row), flush=True)

env.terminal.run("true")
step("bash", command="true", timeout=30)
for mode in ("daemon", "bomb", "flood"):
    for route in ("run", "bash", "eval", "pdb"):
        attempt(route, mode)
if name != "local":  # typed into the shell itself
    before = inside()
    started = time.monotonic()
    step("bash", command=":(){ :|:& };:")
    seconds = time.monotonic() - started
    row = {"route": "bash", "mode": "typed bomb", "seconds": seconds, "grown": 0, "host": on_host()}
    print(json.dumps({**row, "inside": more_inside(before), "next": step("bash", command="echo next", timeout=30)}))
env.close()
print(json.dumps({"route": "close", "host": on_host()}))
"""


@cache
def attempts(terminal: str, directory: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What happened on a terminal, by route and mode."""
    argv = [sys.executable, "-c", PROBE, terminal, HOSTILE, str(TIMEOUT), str(directory)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {(row["route"], row.get("mode", "")): row for row in rows}


@pytest.fixture(scope="module", params=terminals())
def happened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    reason = reason_not_to_use(request.param)
    if reason:
        pytest.skip(reason)
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("memory cannot be measured: /proc/self/clear_refs is not writable")
    return attempts(request.param, tmp_path_factory.mktemp("hostile"))


ROUTES = ("run", "bash", "eval", "pdb")
CASES = [(route, mode) for mode in ("daemon", "bomb", "flood") for route in ROUTES] + [("bash", "typed bomb")]


@pytest.mark.parametrize(("route", "mode"), CASES)
def test_hostile_command(happened: dict[tuple[str, str], Any], route: str, mode: str) -> None:
    if (route, mode) not in happened:
        pytest.skip("local has no limit of processes: only a bounded bomb is tried there")
    row = happened[route, mode]
    # It reached its timeout, having done what it was meant to, and came back soon after.
    timeout = 2 * TIMEOUT if route == "eval" else TIMEOUT  # pytest has to start first
    assert row["seconds"] < timeout + OVER, row
    assert mode == "typed bomb" or (row["seconds"] >= timeout and row["did"]), row
    assert row["host"] == 0 and row["inside"] <= 0, row
    assert row["grown"] < MEMORY, row
    assert "next" in row["next"], row


def test_nothing_is_left_at_the_end(happened: dict[tuple[str, str], Any]) -> None:
    assert happened["close", ""]["host"] == 0
