"""Warm sessions through the tool: nobody can tell them from cold ones."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from asking import ask, heat
from debugged_programs import LOOP, LOOP_TEST

from debug_gym_core import RepoEnv
from debug_gym_core.sandbox.warm import BOOT
from debug_gym_core.testing.sample import ENTRYPOINT
from debug_gym_tool_pdb import Pdb

pytest_plugins = ["debug_gym_core.testing.fixtures"]

SLEEPER = "import time\nprint('going', flush=True)\nwhile True:\n    time.sleep(60)\n"


@pytest.fixture
def debugging(make_env: Callable[..., RepoEnv]) -> Callable[..., RepoEnv]:
    """Make environments to debug these programs, with these settings of the tool."""
    files = {"app.py": LOOP, "test_app.py": LOOP_TEST, "sleeper.py": SLEEPER}
    return lambda **settings: make_env([Pdb(**settings)], files=files)


TALKS = {
    "python app.py": ["b app.py:4\nc", "w", "p total, n", "s", "n", "u", "cl 1\nc"],
    f"{ENTRYPOINT} test_app.py": ["b app.py:4, n > 2\nc", "w", "cl 2\nc", "up", "p found", "c"],
    "python -m unittest test_app": ["c"],
    "python -m nosuch": ["c"],
}


@pytest.mark.debugger
def test_a_warm_session_says_what_a_cold_one_says(debugging: Callable[..., RepoEnv]) -> None:
    said = []
    for warm in (False, True):
        env = debugging(warm=warm)
        if warm:
            heat(env)
            heat(env, f"{ENTRYPOINT} test_app.py")  # it has an environment of its own
        before = env.session.warm_starts
        said.append([ask(env, one, entrypoint) for entrypoint, commands in TALKS.items() for one in commands])
        assert env.session.warm_starts - before == len(TALKS) * warm
    assert said[0] == said[1]


def test_without_warm_every_session_is_cold(debugging: Callable[..., RepoEnv]) -> None:
    env = debugging(warm=False)
    for _ in range(2):
        ask(env, "restart")
    mark = shlex.quote(BOOT.partition("\n")[0])
    listing = env.session.run(f"grep -lF {mark} /proc/[0-9]*/cmdline | xargs -r -n1 dirname")
    mine = []
    for line in listing.output.split():
        with contextlib.suppress(FileNotFoundError):  # another's, which has ended
            if Path(line, "cwd").resolve() == Path(env.session.root):
                mine.append(line)
    assert env.session.warm_starts == 0 and mine == []


@pytest.mark.debugger
def test_a_warm_session_is_interrupted(debugging: Callable[..., RepoEnv]) -> None:
    env = debugging(timeout=0.5)
    heat(env)
    before = env.session.warm_starts
    ask(env, "p 1", "python sleeper.py")
    assert env.session.warm_starts == before + 1
    text = ask(env, "c", "python sleeper.py")
    assert "was interrupted" in text and "sleeper.py:4" in text
    assert ask(env, "p 1 + 2", "python sleeper.py") == "3"
