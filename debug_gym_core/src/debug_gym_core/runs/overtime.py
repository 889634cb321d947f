"""Episodes that go on after their time: whatever waits in a sandbox comes back, and what else is waited for is said."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from debug_gym_core.runs.episode_env import EpisodeEnv

OVERTIME = 10.0
"""Seconds after an episode's time that the step under way has to come to its end, and what is interrupted after it."""


def waited_for(env: EpisodeEnv) -> str:
    """What an episode waits for, in words."""
    if env.at_work is not None:
        return f"tool {env.at_work}"
    run = env.episode.run
    return f"agent {run.config.agent.name}{'' if run.llm_name is None else f' or model {run.llm_name}'}"


@contextlib.contextmanager
def ended_in_time(env: EpisodeEnv) -> Iterator[None]:
    """Interrupt what a tool runs in this block when the episode's time is over, as the time is looked at after steps.

    What a tool does on the host, without the sandbox, cannot be ended from outside of it; a clean grade is not.

    Args:
        env: of the episode, which was reset; without `max_seconds` nothing happens
    """
    if env.max_seconds is None:
        yield
        return
    bound, over, told = env.max_seconds, threading.Event(), set()
    interrupting = threading.Lock()

    def watch() -> None:
        left = bound + OVERTIME
        while not over.wait(left):
            what = waited_for(env)
            if what not in told:
                told.add(what)
                env.episode.tell(f"has taken longer than run.task_timeout ({bound:g} s); waiting for {what}")
            with interrupting:
                if not (over.is_set() or env.grading):  # a grade that is cut short would be made anew at the end
                    env.interrupt()
            left = OVERTIME

    threading.Thread(target=watch, name="overtime", daemon=True).start()
    try:
        yield
    finally:
        with interrupting:
            over.set()
