"""Starts runs, kills each at a random moment, and says what is left of them: `killed_runs.py PLAN`, see `main`.

A program of its own, for it becomes the parent of every process whose parents end, so that none can be overlooked.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
RUNS_AT_ONCE = 5
LATEST = 5.0
"""Seconds at which a run is killed at the latest: after its first episode began, or after its start for a few."""

PATIENCE = 60.0
"""Seconds after the last kill until which everything must be gone."""


def facts(pid: int) -> list[str]:
    """What the kernel says of a process: state, parent, ..., start; empty when it is not there."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def command_of(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").split()
    except OSError:
        return ""
    return " ".join(words)[:150]


def descendants(pid: int) -> list[int]:
    """All processes below one that have not ended."""
    parents = {int(path.name): facts(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdigit()}
    found: list[int] = []
    ahead = [pid]
    while ahead:
        above = ahead.pop()
        below = [one for one, said in parents.items() if said and said[1] == str(above)]
        ahead += below
        found += [one for one in below if parents[one][0] not in "ZX"]
    return found


def reap() -> None:
    """Take note of the orphans that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


class Killed:
    """A run, from its start to its violent end."""

    def __init__(self, number: int, plan: dict[str, Any]) -> None:
        self.random = random.Random(f"{plan['seed']}-{number}")
        self.terminal = plan["terminals"][number % len(plan["terminals"])]
        self.early = self.random.random() < 0.15
        self.delay = self.random.uniform(0.0, LATEST)
        self.how = self.random.choice(["runner", "runner", "group", "helper"])
        self.helper = ""
        self.had_sandbox = False
        self.number = number
        arguments = ["run", "mini_nightmare", "--agent", "solution_agent", "-n", "2", "--terminal", self.terminal]
        arguments += ["-o", f"run-{number}"]
        if self.terminal == "docker":
            arguments += ["-p", f"terminal.image={plan['image']}", "-p", f"env.python={plan['python'] or 'null'}"]
        with Path(f"output-{number}").open("wb") as output:
            self.process = subprocess.Popen(
                [plan["command"], *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env={**os.environ, "TMPDIR": plan["tmp"]}, start_new_session=True,
            )  # fmt: skip
        self.owner = f"{self.process.pid}/{facts(self.process.pid)[19]}"

    def kill(self) -> None:
        """Wait for the moment, and kill: the runner, its process group, or first one of its helpers."""
        deadline = time.monotonic() + PATIENCE
        while not (self.early or Path(f"run-{self.number}/mini_nightmare").exists() or time.monotonic() > deadline):
            time.sleep(0.01)
        time.sleep(self.delay)
        self.had_sandbox = any("debug-gym-supervisor" in command_of(one) for one in descendants(self.process.pid))
        if self.how == "helper":
            helpers = [one for one in descendants(self.process.pid) if "debug-gym-supervisor" not in command_of(one)]
            if helpers:
                helper = self.random.choice(helpers)
                self.helper = command_of(helper)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(helper, signal.SIGKILL)
                time.sleep(self.random.uniform(0, 0.5))
        if self.how == "group":
            os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()
        self.process.wait()

    def __str__(self) -> str:
        since = "start" if self.early else "first episode"
        state = "with" if self.had_sandbox else "without"
        when = f"{self.delay:.2f} s after its {since}, {state} a sandbox"
        return f"{self.number}: {self.terminal} ({self.owner}), killed {when}: {self.how} {self.helper}"


def left_of(runs: list[Killed], tmp: Path) -> Iterator[str]:
    """Everything that is still there."""
    for pid in descendants(os.getpid()):
        yield f"process {pid}: {command_of(pid)}"
    for path in tmp.iterdir():
        yield f"file {path}"
    for line in Path("/proc/mounts").read_text().splitlines():
        if str(tmp) in line:
            yield f"mount {line}"
    owners = {run.owner.replace("/", "~"): run for run in runs}
    for directory, names, _ in os.walk("/sys/fs/cgroup"):  # others' come and go meanwhile
        for name in names:
            maker = "~".join(name.rpartition(".")[0].split("~")[-2:])
            if name.startswith("debug-gym.") and maker in owners:
                yield f"control group {directory}/{name} of {owners[maker]}"
    if any(run.terminal == "docker" for run in runs):
        import docker

        client = docker.from_env()
        for container in client.api.containers(all=True, filters={"label": "app=debug-gym"}):
            whose = [run for run in runs if container["Labels"].get("owner", "").endswith(f"/{run.owner}")]
            if whose:
                yield f"container {container['Id'][:12]} ({container['State']}) of {whose[0]}"
        client.close()


def main() -> None:
    """Read the plan (JSON): `runs`, `seed`, `terminals`, `command`, `tmp`, `image`, `python`; print what was found."""
    plan = json.loads(sys.argv[1])
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("this process cannot become the parent of orphans")
    runs: list[Killed] = []
    room = threading.Semaphore(RUNS_AT_ONCE)

    def play(number: int) -> None:
        with room:
            run = Killed(number, plan)
            runs.append(run)
            run.kill()

    players = [threading.Thread(target=play, args=(number,)) for number in range(plan["runs"])]
    for player in players:
        player.start()
    for player in players:
        player.join()
    started = time.monotonic()
    while True:
        reap()
        left = list(left_of(runs, Path(plan["tmp"])))
        seconds = time.monotonic() - started
        if not left or seconds > PATIENCE:
            break
        time.sleep(0.5)
    live = sum(run.had_sandbox for run in runs)
    print(json.dumps({"left": left, "seconds": seconds, "runs": [str(run) for run in runs], "live": live}))
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
