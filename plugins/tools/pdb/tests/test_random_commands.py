"""Thousands of random commands on hostile programs: always an answer, always the right one, breakpoints always kept.

The same commands each time: a seed gives them. DEBUG_GYM_TEST_EXAMPLES=n tries n seeds, DEBUG_GYM_TEST_SEED=s begins
at another one; a failure names the seed, the program and the calls before it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_processes import PROCESSES
from hostile_programs import PROGRAMS, Hostile
from random_commands import Model, Outcome, commands
from support import EXAMPLES

import debug_gym_core
from debug_gym_core import RepoEnv, ToolCall
from debug_gym_core.debugging.breakpoints import Breakpoint
from debug_gym_core.tools.observation import TEXT_LIMIT

pytestmark = pytest.mark.debugger

HOSTILE = {**PROCESSES, **PROGRAMS}

COMMANDS = 700
"""Commands on each program through the tool, and a tenth of it with each interpreter."""

FIRST_SEED = int(os.environ.get("DEBUG_GYM_TEST_SEED") or 0)
SEEDS = range(FIRST_SEED, FIRST_SEED + max(1, EXAMPLES))

HANGS_AFTER = 90
SLACK = 15.0
"""Seconds that a call may take over what its commands may: to start, and for a machine that does other things too."""

COMMAND_SLACK = 1.5
"""Seconds until a program that cannot be interrupted is ended."""


ENDS = ("exited", "quit", "died", "stuck", "lost", "replaced")

UNABLE = "*** the command failed: RuntimeError: replaced"
"""What pdb says where the program has replaced what it cannot do without."""


class Hangs(BaseException):
    """A call has not come back."""


@contextlib.contextmanager
def watchdog() -> Iterator[None]:
    """Raise Hangs in calls that do not come back."""

    def ring(number: int, frame: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Diary:
    """What was done, for the message of a failure."""

    def __init__(self, name: str, seed: int) -> None:
        self.title = f"program {name!r}, DEBUG_GYM_TEST_SEED={seed}"
        self.calls: list[str] = []

    def add(self, call: str, answer: object) -> None:
        self.calls.append(f">>> {call!r}\n{str(answer)[:1500]}")

    def check(self, condition: object, problem: str) -> None:
        if not condition:
            pytest.fail(f"{problem}\n{self.title}; the last calls:\n" + "\n".join(self.calls[-12:]), pytrace=False)


class Toolside:
    """The tool in an environment."""

    def __init__(self, env: RepoEnv, hostile: Hostile, diary: Diary) -> None:
        self.env, self.diary = env, diary
        self.timeout = hostile.timeout
        self.model = Model(hostile)
        self.alive = False
        self.carried_out = 0

    def call(self, text: str) -> dict[str, Any]:
        """One call, with everything checked that must be true of any."""
        signal.alarm(HANGS_AFTER)
        started = time.monotonic()
        try:
            observation, _, terminated, truncated, _ = self.env.step(ToolCall("pdb", {"command": text}))
        except BaseException as error:
            self.diary.add(text, repr(error))
            self.diary.check(False, f"{type(error).__name__} out of env.step: {error}")
        took = time.monotonic() - started
        signal.alarm(0)
        said = self.env.last_observations
        self.diary.add(text, observation["text"])
        self.diary.check(not terminated and not truncated, "the episode ended")
        allowed = (text.count("\n") + 1) * (self.timeout + COMMAND_SLACK) + SLACK
        self.diary.check(took < allowed, f"it took {took:.1f} s")
        self.diary.check(all(len(one.text) <= TEXT_LIMIT + 100 for one in said), "the observation is over its bound")
        json.dumps(said[0].data)
        if said[0].error or "commands" not in said[0].data:
            wanted = "There is no session to end" if not self.alive else None
            self.diary.check(wanted and observation["text"].startswith(wanted), "the call was not carried out")
            return {}
        data = dict(said[0].data)
        started_anew = said[0].text.startswith("Started")
        self.diary.check(self.alive or started_anew, "no new session was started")
        asked = text.startswith(("restart", "run "))
        self.diary.check(not (self.alive and started_anew) or asked, "the session before ended without a word")
        if "Started `" in said[0].text:
            self.model.following = True
        ended, stuck = data["ended"], data["timed_out"]
        outcomes = [
            Outcome(one["command"], one["output"], one["failed"], certain=UNABLE not in one["output"])
            for one in data["commands"]
        ]
        self.carried_out += len(outcomes)
        if outcomes and (ended or stuck):
            last = outcomes[-1]
            outcomes[-1] = Outcome(last.command, last.output, last.failed, certain=False)
        self.model.see(outcomes, data["stop"], list(self.env.breakpoints))
        self.diary.check(not self.model.problems, "; ".join(self.model.problems))
        if ended:
            told = ended["how"] in ENDS and "The next pdb command starts" in said[0].text
            self.diary.check(told, "the end was not told")
        self.alive = ended is None
        return data

    def list_breakpoints(self) -> None:
        """After an end: the next command starts again, with all breakpoints."""
        data = self.call("b")
        if data and data["ended"] is None and not data["timed_out"]:
            self.model.check_listing(data["commands"][0]["output"])
            self.diary.check(not self.model.problems, "; ".join(self.model.problems))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", HOSTILE)
def test_random_commands_in_an_environment(name: str, seed: int, tmp_path: Path) -> None:
    hostile = HOSTILE[name]
    (tmp_path / "app.py").write_text(hostile.source)
    source = random.Random(f"{name} {seed}")
    diary = Diary(name, seed)
    tools = [{"pdb": {"timeout": hostile.timeout}}]
    with (
        watchdog(),
        contextlib.closing(
            debug_gym_core.make(
                "repo", tools, "local", path=tmp_path, allow_unsandboxed=True, entrypoint="python app.py"
            )
        ) as env,
    ):
        env.reset(seed=0)
        side = Toolside(env, hostile, diary)
        left = int(COMMANDS * hostile.share)
        while side.carried_out < left:
            was_alive = side.alive
            side.call("\n".join(commands(source, hostile)))
            if was_alive and not side.alive:
                side.list_breakpoints()
        side.call("q")
        side.list_breakpoints()


def test_there_are_enough_of_them() -> None:
    assert sum(int(COMMANDS * hostile.share) for hostile in HOSTILE.values()) >= 10_000


class Bare:
    """The debuggee without tool and guest; what the host keeps of it, the test keeps."""

    def __init__(self, debug: Any, hostile: Hostile, diary: Diary) -> None:
        self.debug, self.hostile, self.diary = debug, hostile, diary
        self.model = Model(hostile)
        self.state: dict[str, Any] = {"list": [], "next": 1}
        self.program: Any = None
        self.carried_out = 0

    def call(self, lines: list[str]) -> None:
        """Carry out lines until one fails or the program ends."""
        if self.program is None:
            self.program = self.debug("python app.py", {"app.py": self.hostile.source}, breakpoints=self.state)
            self.diary.check(self.program.first["t"] == "prompt", f"it began with {self.program.first}")
            self.diary.check(not self.program.hello["lost"], f"breakpoints are lost: {self.program.hello}")
            self.model.following = True
        outcomes: list[Outcome] = []
        stop = None
        left = [line for line in lines if line.strip()]
        while left and self.program is not None:
            line = left.pop(0)
            answer, in_time = self.answer(line, left)
            self.diary.add(line, answer)
            taken, left = left[: answer.get("used", 0)], left[answer.get("used", 0) :]
            output = answer.get("out", "")
            certain = in_time and answer["t"] == "prompt" and UNABLE not in output
            outcomes.append(Outcome("\n".join([line, *taken]), output, answer.get("failed", False), certain))
            stop = answer.get("stop", stop)
            self.state = answer.get("breakpoints", self.state)
            self.diary.check(answer["t"] in ("prompt", "restart", "quit", "exit", "dead"), "an answer of no known type")
            if answer["t"] != "prompt":
                self.program.close()
                self.program = None
            elif answer["failed"] or not in_time:
                break
        self.carried_out += len(outcomes)
        self.model.see(outcomes, stop if self.program else None, [Breakpoint.from_json(o) for o in self.state["list"]])
        self.diary.check(not self.model.problems, "; ".join(self.model.problems))

    def answer(self, line: str, rest: list[str]) -> tuple[dict[str, Any], bool]:
        """The answer to a command, and whether it came without an interrupt; one that hangs is ended."""
        try:
            return self.program.do(line, *rest, timeout=self.hostile.timeout), True
        except TimeoutError:
            pass
        try:
            return self.program.interrupt(), False
        except TimeoutError as error:
            self.diary.check(False, f"{line!r} hangs: {error}")
            raise
        except ValueError:
            return {"t": "dead"}, False


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [name for name, hostile in HOSTILE.items() if hostile.share > 0.2])
def test_random_commands_with_each_interpreter(name: str, seed: int, debug: Any) -> None:
    hostile = HOSTILE[name]
    source = random.Random(f"{name} {seed} bare")
    side = Bare(debug, hostile, Diary(name, seed))
    while side.carried_out < COMMANDS * hostile.share / 10:
        before = side.program
        side.call("\n".join(commands(source, hostile)).split("\n"))
        if before is not None and side.program is None:
            side.call(["b"])
            if side.program is not None:
                side.call([f"p {source.randint(0, 9)} + 1"])
