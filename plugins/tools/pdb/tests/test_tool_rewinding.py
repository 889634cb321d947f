"""Going back under the tool, in real sandboxes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import pytest
from asking import ask, heat
from debugged_programs import LOOP, LOOP_TEST
from support import python_in, reason_not_to_use, terminals

from debug_gym_core import RepoEnv
from debug_gym_core.testing.sample import ENTRYPOINT
from debug_gym_tool_pdb import Pdb

pytest_plugins = ["debug_gym_core.testing.fixtures"]

FILES = {
    "app.py": LOOP,
    "test_app.py": LOOP_TEST,
    "endless.py": "import time\nx = 1\nwhile x:\n    time.sleep(0.01)\n",
    "fake/ctypes.py": "raise ImportError('there is none')\n",
}

MakeEnv = Callable[..., RepoEnv]


@pytest.fixture
def rewinding(make_env: MakeEnv) -> MakeEnv:
    """Make environments that keep the stops of a program."""

    def make(terminal: str = "local", **settings: object) -> RepoEnv:
        chosen = {"docker": {"image": os.environ["DEBUG_GYM_TEST_IMAGE"]}} if terminal == "docker" else terminal
        tool = Pdb(**{"rewind": True, **settings})
        return make_env([tool], files=FILES, terminal=chosen, python=python_in(chosen))

    return make


@pytest.mark.parametrize("terminal", terminals())
def test_stops_are_numbered_and_gone_back_to(rewinding: MakeEnv, terminal: str) -> None:
    reason = reason_not_to_use(terminal)
    if reason:
        pytest.skip(reason)
    env = rewinding(terminal)
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
def test_a_session_that_keeps_its_stops_says_the_same(rewinding: MakeEnv) -> None:
    talks = {
        "python app.py": ["b app.py:4\nc", "w", "p total, n", "s", "n", "u", "cl 1\nc"],
        f"{ENTRYPOINT} test_app.py": ["b app.py:4, n > 2\nc", "w", "cl 2\nc", "up", "p found", "c"],
        "python -m unittest test_app": ["c"],
        "python -m nosuch": ["c"],
    }
    said = []
    for rewind in (False, True):
        env = rewinding(rewind=rewind)
        said.append([ask(env, one, entrypoint) for entrypoint, commands in talks.items() for one in commands])
    assert said[1][0].splitlines()[1] == "Each stop has a number: `back` goes to the one before, `rewind N` to stop N."
    more = r"^Each stop has a number: .*\n|^stop \d+(?=: )"
    assert [re.sub(more, lambda match: "stopped" * (match[0][0] == "s"), text, flags=re.M) for text in said[1]] == said[
        0
    ]


@pytest.mark.debugger
def test_a_warm_session_goes_back(rewinding: MakeEnv) -> None:
    env = rewinding()
    heat(env)
    ask(env, "b app.py:4\nc\nc")
    assert "locals: total = 0, n = 0" in ask(env, "back")


def test_there_is_nothing_to_go_back_to_after_the_end(rewinding: MakeEnv) -> None:
    env = rewinding()
    said = "There is no session, so no stop to go back to; the next pdb command starts one."
    assert ask(env, "back") == said
    assert "The program exited with status 0" in ask(env, "c")
    for command in ("back", "back 2", "rewind", "rewind(1)"):
        assert ask(env, command) == said
    assert ask(env, "back\np total\nc") == f"{said}\n[2 more commands not carried out]"
    assert "Started `" in ask(env, "back = 1")


def test_a_command_that_takes_too_long_is_interrupted_after_going_back(rewinding: MakeEnv) -> None:
    env = rewinding(timeout=0.5)
    ask(env, "n\nn", "python endless.py")
    assert "Back at stop 2" in ask(env, "back", "python endless.py")
    text = ask(env, "c", "python endless.py")
    assert "was interrupted" in text and "stop 3: interrupt at endless.py:" in text
    assert "Back at stop 2, from stop 3" in ask(env, "back", "python endless.py")


def test_no_process_is_left_of_a_session_that_ended(rewinding: MakeEnv) -> None:
    env = rewinding()
    mark = f"MARK=of-{os.getpid()}"
    count = f"grep -lse {mark.replace('-', '[-]')} /proc/[0-9]*/environ | wc -l"
    ask(env, "b app.py:4\nc\nc\nc\nback", f"{mark} python app.py")
    assert int(env.session.run(count).output) >= 4
    ask(env, "q")
    assert int(env.session.run(count).output) == 0


def test_where_it_cannot_be_the_session_says_why(rewinding: MakeEnv) -> None:
    text = ask(rewinding(), "n", "PYTHONPATH=fake python app.py")
    assert "Stops cannot be gone back to: this Python has no ctypes (there is none)." in text
    assert "stopped: step at app.py:3" in text
