"""How an episode and what goes on in it end: interrupts, lost sandboxes, submission, refused starts, `close`."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from small_episodes import TEST, Write, make_env, parts

from debug_gym_core import RepoEnv, SandboxLost, Tool, ToolCall
from debug_gym_core.errors import SandboxError, TaskError


class Idle(Tool):
    """Do nothing."""

    name = "idle"

    def use(self, env: Any) -> str:
        """Do nothing."""
        return "nothing"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:

        def make(*tools: Tool) -> RepoEnv:
            (tmp_path / "test_it.py").write_text(TEST)
            return stack.enter_context(contextlib.closing(make_env(tmp_path, tools)))

        yield make


@pytest.fixture
def env(make: Any) -> RepoEnv:
    made: RepoEnv = make(Write(), Idle())
    made.reset(seed=0)
    return made


def test_a_tool_that_cannot_be_closed_keeps_no_step_from_being_answered(
    env: RepoEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("stuck")

    def lose(**arguments: Any) -> str:
        raise SandboxLost("its guest was killed")

    monkeypatch.setattr(env.tools["write"], "close", fail)
    monkeypatch.setattr(env.tools["idle"], "use", lambda env: lose())
    monkeypatch.setattr(env._sandbox, "replace", lambda *_: False)
    observation, _, terminated, *_ = env.step("idle")
    assert "are started again" in observation["text"] and not terminated


def test_a_sandbox_that_loses_its_guest_now_and_then_is_replaced(env: RepoEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = iter([True, False, True, False])

    def use(env: RepoEnv) -> str:
        if next(losses):
            raise SandboxLost("its guest was killed")
        return "done"

    monkeypatch.setattr(env.tools["idle"], "use", use)
    session = env.session
    said = [env.step("idle")[0]["text"] for _ in range(3)]
    assert "are started again" in said[0] and "done" in said[1]
    assert said[2].startswith("done") and "done again in a new one" in said[2]
    assert env.session is not session and env._sandbox.distrusted == 0


@pytest.mark.parametrize(("steps", "replaced"), [(1, False), (4, True)])
def test_a_sandbox_that_was_replaced_long_ago_does_not_count(
    env: RepoEnv, monkeypatch: pytest.MonkeyPatch, steps: int, replaced: bool
) -> None:
    """Of an episode of hours, a few may be lost now and then."""
    monkeypatch.setattr("debug_gym_core.environment.live_sandbox.REPLACEMENTS", 1)
    monkeypatch.setattr("debug_gym_core.environment.live_sandbox.FORGIVEN_AFTER", 3)
    for _ in range(2):
        env.session.terminal.stop()
        said = env.step("write a.py x")[0]["text"]
        for _ in range(steps):
            env.step("write b.py y")
    assert ("done again in a new one" in said) is replaced and (env.failure is None) is replaced


def test_an_interrupt_ends_all_that_a_tool_begins_after_it_and_nothing_of_a_later_step(make: Any) -> None:
    class Run(Tool):
        """Run commands, after somebody interrupts."""

        name = "run"
        heard = True

        def use(self, env: Any, commands: list[str], interrupted: bool = True) -> str:
            if interrupted:
                assert env.interrupt() == self.heard
            return repr([env.terminal.run(one, interruption=env.interruption).exit_status for one in commands])

        def interrupt(self) -> bool:
            return self.heard

    env = make(tool := Run())
    env.reset(seed=0)
    kill, mark = -signal.SIGKILL, "touch begun; sleep 1000"
    for commands, statuses in ([], []), ([mark, mark], [kill, kill]):
        assert parts(env.step(ToolCall("run", {"commands": commands}))[0])[0] == ("run", repr(statuses))
        unharmed = env.step(ToolCall("run", {"commands": ["sleep 0.2"], "interrupted": False}))
        assert parts(unharmed[0])[0] == ("run", "[0]")
        assert not env.interrupt()
        tool.heard = False  # as tools that say nothing of it: the same is ended


def test_nothing_is_measured_before_the_tests_ran(env: RepoEnv) -> None:
    assert not env.measured
    env.measure()
    assert env.measured
    env.reset(seed=0)
    assert not env.measured
    env.submit()
    assert env.measured


def test_a_lost_grading_sandbox_is_no_wrong_answer(env: RepoEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    def grade(*_: Any) -> Any:
        raise SandboxLost("the grading's sandbox is gone")

    monkeypatch.setattr(env, "grade", grade)
    with pytest.raises(SandboxLost):
        env.submit()
    assert env.failure is not None and not env.submitted and env.final_grade is None


def test_what_submit_has_recorded_stays_whatever_is_done_after_the_end(make: Any, tmp_path: Path) -> None:
    class Judge(Tool):
        """Run the tests."""

        name = "judge"

        def use(self, env: Any, finally_: bool = False) -> str:
            """In place, or to end the episode."""
            (env.submit if finally_ else env.measure)()
            return str(env.score)

    env = make(Judge(), Write())
    (tmp_path / "app.py").write_text("x = 0\n")
    (tmp_path / "test_it.py").write_text(f"import app\n{TEST.replace('False', 'app.x')}")
    env.reset(seed=0)
    env.step("judge true")
    recorded = env.final_grade
    assert recorded is not None
    for action, said in ("write app.py 'x = 1'", "written"), ("judge", "1"), ("judge true", "0"):
        observation, reward, terminated, _, info = env.step(action)
        assert parts(observation)[0][1] == said
        assert (reward, terminated, info["score"], info["resolved"]) == (0.0, True, 0, False)
        assert env.final_grade is recorded


def test_a_refused_reset_leaves_nothing_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are no tests; then the person interrupts."""
    (tmp_path / "a.py").write_text("x = 1\n")
    made = make_env(tmp_path, [Write()])
    sandboxes: list[Any] = []
    monkeypatch.setattr(made._sandbox, "_opened", sandboxes.append)

    def interrupt(*arguments: Any) -> bool:
        raise KeyboardInterrupt

    with contextlib.closing(made) as env:
        with pytest.raises(TaskError):
            env.reset(seed=0)
        monkeypatch.setattr(env._tests, "find", interrupt)
        with pytest.raises(KeyboardInterrupt):
            env.reset(seed=0)
        assert [session.terminal.alive() for session in sandboxes] == [False, False]
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step("write a.py text")


@pytest.mark.parametrize("raised", [RuntimeError, asyncio.CancelledError])
def test_a_tool_that_fails_at_the_end_keeps_nothing_alive(
    env: RepoEnv, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException]
) -> None:
    def close() -> None:
        raise raised("at the end")

    monkeypatch.setattr(env.tools["idle"], "close", close)
    session = env.session
    env.close()
    assert not session.terminal.alive()


def test_what_cannot_be_closed_keeps_nothing_else_open(env: RepoEnv) -> None:
    class Stuck:
        def close(self) -> None:
            raise SandboxError("its engine hangs")

    factory, pristine, stuck = env._sandbox.factory, env._sandbox._pristine, [Stuck(), Stuck()]
    with factory.fresh() as other:
        factory._live = [stuck[0], other, stuck[1]]  # type: ignore[assignment]
        with pytest.raises(SandboxError, match="its engine hangs"):
            env.close()
        assert not other.terminal.alive()
    assert pristine is not None and pristine.agent._file.closed
    env.close()
