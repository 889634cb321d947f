"""Going back under the tool, in real sandboxes."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from debugged_programs import LOOP, LOOP_TEST
from support import python_in, reason_not_to_use, terminals

from debug_gym_core import RepoEnv, Task, ToolCall
from debug_gym_tool_pdb import Pdb

MakeEnv = Callable[..., RepoEnv]


@pytest.fixture
def make_env(tmp_path: Path) -> Iterator[MakeEnv]:
    made = []
    (tmp_path / "app.py").write_text(LOOP)
    (tmp_path / "test_app.py").write_text(LOOP_TEST)
    (tmp_path / "endless.py").write_text("import time\nx = 1\nwhile x:\n    time.sleep(0.01)\n")
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "ctypes.py").write_text("raise ImportError('there is none')\n")

    def make(terminal: str = "local", **settings: object) -> RepoEnv:
        task = Task("repo", "app", tmp_path, "python -m pytest -q test_app.py")
        chosen = {"docker": {"image": os.environ["DEBUG_GYM_TEST_IMAGE"]}} if terminal == "docker" else terminal
        tool = Pdb(**{"rewind": True, **settings})
        env = RepoEnv(task, [tool], chosen, allow_unsandboxed=True, python=python_in(chosen))
        made.append(env)
        env.reset(seed=1)
        return env

    yield make
    for env in made:
        env.close()


def ask(env: RepoEnv, command: str, entrypoint: str = "python app.py") -> str:
    return str(env.step(ToolCall("pdb", {"command": command, "entrypoint": entrypoint}))[0]["text"])


@pytest.mark.parametrize("terminal", terminals())
def test_stops_are_numbered_and_gone_back_to(make_env: MakeEnv, terminal: str) -> None:
    reason = reason_not_to_use(terminal)
    if reason:
        pytest.skip(reason)
    env = make_env(terminal)
    text = ask(env, "b app.py:4\nc\nc\nc")
    assert "stop 2: breakpoint 1\n" in text and "stop 4: breakpoint 1 at app.py:4 in add (MainThread)\n" in text
    assert "\nlocals: total = 1, n = 2\n" in text
    text = ask(env, "back")
    assert text.startswith(
        "Back at stop 3, from stop 4; what was done to files since stays.\n> /testbed/app.py(4)add()\n"
    )
    assert "stop 3: breakpoint 1 at app.py:4 in add (MainThread)" in text and "locals: total = 0, n = 1" in text
    assert "total 10" in ask(env, "cl 1\nc")


@pytest.mark.debugger
def test_a_session_that_keeps_its_stops_says_the_same(make_env: MakeEnv) -> None:
    talks = {
        "python app.py": ["b app.py:4\nc", "w", "p total, n", "s", "n", "u", "cl 1\nc"],
        "python -m pytest -q test_app.py": ["b app.py:4, n > 2\nc", "w", "cl 2\nc", "up", "p found", "c"],
        "python -m unittest test_app": ["c"],
        "python -m nosuch": ["c"],
    }
    said = []
    for rewind in (False, True):
        env = make_env(rewind=rewind)
        said.append([ask(env, one, entrypoint) for entrypoint, commands in talks.items() for one in commands])
    assert said[1][0].splitlines()[1] == "Each stop has a number: `back` goes to the one before, `rewind N` to stop N."
    more = r"^Each stop has a number: .*\n|^stop \d+(?=: )"
    assert [re.sub(more, lambda match: "stopped" * (match[0][0] == "s"), text, flags=re.M) for text in said[1]] == said[
        0
    ]


@pytest.mark.debugger
def test_a_warm_session_goes_back(make_env: MakeEnv) -> None:
    env = make_env()
    end = time.monotonic() + 60
    while not env.session.warm_starts:
        assert time.monotonic() < end
        ask(env, "restart")
        time.sleep(0.05)
    ask(env, "b app.py:4\nc\nc")
    assert "locals: total = 0, n = 0" in ask(env, "back")


def test_a_command_that_takes_too_long_is_interrupted_after_going_back(make_env: MakeEnv) -> None:
    env = make_env(timeout=0.5)
    ask(env, "n\nn", "python endless.py")
    assert "Back at stop 2" in ask(env, "back", "python endless.py")
    text = ask(env, "c", "python endless.py")
    assert "was interrupted" in text and "stop 3: interrupt at endless.py:" in text
    assert "Back at stop 2, from stop 3" in ask(env, "back", "python endless.py")


def test_no_process_is_left_of_a_session_that_ended(make_env: MakeEnv) -> None:
    env = make_env()
    mark = f"MARK=of-{os.getpid()}"
    count = f"grep -lse {mark.replace('-', '[-]')} /proc/[0-9]*/environ | wc -l"
    ask(env, "b app.py:4\nc\nc\nc\nback", f"{mark} python app.py")
    assert int(env.session.run(count).output) >= 4
    ask(env, "q")
    assert int(env.session.run(count).output) == 0


def test_where_it_cannot_be_the_session_says_why(make_env: MakeEnv) -> None:
    text = ask(make_env(), "n", "PYTHONPATH=fake python app.py")
    assert "Stops cannot be gone back to: this Python has no ctypes (there is none)." in text
    assert "stopped: step at app.py:3" in text
