"""How a tool ends: when it is closed, when its sandbox is lost, when the environment is."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.testing.tool_calls import ToolTests
from debug_gym_core.tools.action import ToolCall


class EndTests(ToolTests):
    """Ends are survived, and nothing stays behind."""

    def test_close_may_be_called_at_any_time(self, env: RepoEnv) -> None:
        """Before the first use, twice, and in the middle: a reset calls it too."""
        fresh = self.tool(**self.settings)
        fresh.close()
        fresh.close()
        self.calls_work(env)
        made = env.tools[self.tool.name]
        made.close()
        made.close()
        env.reset(seed=0)
        self.calls_work(env)

    def test_a_restarted_sandbox_is_no_obstacle(self, env: RepoEnv) -> None:
        """When the processes in the sandbox were lost, the agent is told, and the next episode's calls work."""
        self.calls_work(env)
        env.reset(seed=0)
        self.calls_work(env)
        if not env.session.terminal.isolates:  # elsewhere the number means nothing here
            os.kill(env.session.guest()["pid"], signal.SIGKILL)
            observation, *_ = env.step(ToolCall(self.tool.name, self.good()))
            assert observation["text"].strip()
            env.reset(seed=0)
            self.calls_work(env)

    def test_a_lost_sandbox_ends_the_episode_not_the_program(self, env: RepoEnv) -> None:
        """A call after the sandbox is gone for good is answered, whether the tool needs the sandbox or not."""
        self.calls_work(env)
        env.session.terminal.stop()
        observation, *_ = env.step(ToolCall(self.tool.name, self.good()))
        assert observation["text"].strip()
        env.reset(seed=0)
        self.calls_work(env)

    def test_nothing_is_left_when_the_environment_is_closed(self, make: Callable[..., RepoEnv]) -> None:
        """No thread of the tool outlives the environment."""
        before = set(threading.enumerate())
        env = make()
        self.calls_work(env)
        env.close()
        deadline = time.monotonic() + 5
        while left := [one.name for one in set(threading.enumerate()) - before if one.is_alive()]:
            assert time.monotonic() < deadline, f"threads left: {left}"
            time.sleep(0.01)
