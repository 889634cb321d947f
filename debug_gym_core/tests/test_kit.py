"""The fixtures of the plugin author's kit."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core import LLM, Message, Observation, RepoEnv, Task, Tool
from debug_gym_core.testing import Environments, ScriptedLLM
from debug_gym_core.testing.waiting import wait_until

pytest_plugins = ["debug_gym_core.testing.fixtures", "pytester"]


class Count(Tool):
    """Count the letters of a file."""

    name = "count"

    def use(self, env: RepoEnv, path: str) -> str:
        """Count.

        Args:
            env: the environment
            path: the file
        """
        return str(len(env.workspace.read_text(path)))


@pytest.fixture
def tools() -> list[Tool]:
    return [Count()]


def test_a_tool_is_used_by_text_and_by_arguments(
    say: Callable[[Any], Observation], use: Callable[..., Observation]
) -> None:
    assert say("count hello.txt").text == use(path="hello.txt").text == "28"
    assert say({"name": "count", "arguments": {"path": "secret/plan.txt"}}).error


def test_the_samples_gold_patch_is_right(sample_task: Task, make_env: Callable[..., RepoEnv]) -> None:
    env = make_env(task=sample_task)
    before = env.grade()
    assert before.score == 1 and not before.resolved
    assert sample_task.gold_patch is not None
    env.workspace.apply(sample_task.gold_patch)
    assert env.grade().resolved


def test_files_of_ones_own_and_settings(make_env: Callable[..., RepoEnv]) -> None:
    env = make_env([Count()], files={"a b.txt": b"\xff"}, max_steps=1, seed=7)
    assert (env.seed, env.max_score, env.step("count 'a b.txt'")[3]) == (7, 1, True)
    assert [entry.path for entry in env.workspace.list()] == ["a b.txt"]
    more = make_env([Count()], more_files={"new.txt": "new"}, description="Find it.")
    assert more.workspace.read_text("new.txt") == "new" and "Find it." in more.instructions()


def test_a_model_with_given_answers(scripted_llm: Callable[..., ScriptedLLM]) -> None:
    llm = scripted_llm(["count a.py", {"name": "submit"}], last="Over.")
    said = [llm.complete([Message("user", "?")] * number, []) for number in (1, 2, 3)]
    assert [[call.name for call in one.message.calls] for one in said] == [["count a.py"], ["submit"], []]
    assert [one.usage.prompt for one in said] == [1, 2, 3] and said[2].message.content == "Over."
    assert len(llm.seen) == len(llm.offered) == 3
    assert isinstance(llm, LLM) and not llm.trusted


def test_everything_is_closed(tmp_path: Path) -> None:
    with Environments(tmp_path) as environments:
        envs = [environments.make([Count()]) for _ in range(2)]
        terminals = [env.session.terminal for env in envs]
        envs[0].close()
    assert not any(terminal.alive() for terminal in terminals)


def test_the_isolating_terminal_isolates(isolating_terminal: str, make_env: Callable[..., RepoEnv]) -> None:
    assert make_env([Count()], terminal=isolating_terminal).session.terminal.isolates


@pytest.mark.faults
def test_leaks_are_found(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os, subprocess, threading, pytest
        pytest_plugins = ["debug_gym_core.testing.fixtures"]
        kept = []

        def test_descriptor(no_leaks):
            kept.append(os.open("/dev/null", os.O_RDONLY))

        def test_thread(no_leaks):
            kept.append(threading.Event())
            threading.Thread(target=kept[-1].wait, name="forgotten", daemon=True).start()

        def test_process(no_leaks):
            kept.append(subprocess.Popen(["sleep", "60"]))

        def test_nothing(no_leaks):
            os.close(os.open("/dev/null", os.O_RDONLY))

        def test_end():
            os.close(kept[0]); kept[1].set(); kept[2].kill(); kept[2].wait()
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=120)
    result.assert_outcomes(passed=5, errors=3)
    result.stdout.fnmatch_lines(["*the test leaves descriptor *", "*the test leaves thread forgotten*", "*process*"])


def test_nothing_is_held_by_an_environment(no_leaks: None, make_env: Callable[..., RepoEnv]) -> None:
    before = held()  # threads of earlier tests may still be ending
    env = make_env([Count()])
    env.step("count hello.txt")
    assert held() - before
    env.close()
    # The supervisor's shell takes its time to end, and a thread waits for it.
    wait_until(lambda: not held() - before, seconds=30)


def held() -> set[object]:
    """The threads and the descriptors of this process, each with what it leads to."""
    found: set[object] = set(threading.enumerate())
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # of the one that they were listed by
            found.add((path.name, str(path.readlink())))
    return found
