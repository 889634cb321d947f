"""The tool in an environment: what it says of calls, and of calls that there were not."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support import python_in, reason_not_to_use, repeated, terminals

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.testing.environments import Environments
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.observation import Observation
from debug_gym_tool_trace import TraceSettings

CALC = """\
LIMIT = 10


def total(items, start=0):
    result = start
    for item in items:
        result += item
    return result


class Cart:
    def __init__(self):
        self.items = []

    def add(self, price):
        self.items.append(price)
        return total(self.items)


def never():
    return 0
"""
TESTS = """\
from calc import Cart, total


def test_total():
    assert total([3, 4]) == 7


def test_cart():
    cart = Cart()
    cart.add(1)
    assert cart.add(2) == 4
"""
APP = """\
import os, signal, sys, time
from calc import total


def forever(n):
    while True:
        n += 1


def sleep(n):
    time.sleep(n)


def kill(n):
    x = n
    os.kill(os.getpid(), signal.SIGKILL)


def babble(n):
    for number in range(3, 4000):
        try:
            os.write(number, b"x" * 1000)
        except OSError:
            pass
    raise KeyError(n)


if len(sys.argv) > 1:
    globals()[sys.argv[1]](60)
print(total([1, 2]))
"""
FILES = {
    "calc.py": CALC,
    "test_calc.py": TESTS,
    "app.py": APP,
    "secret/plan.py": "def hidden():\n    return 'what nobody may see'\n",
    "broken.py": "def f(:\n",
    "Makefile": "test:\n\tpython -m pytest -q\n",
    ".debugignore": "secret/\n",
}
PYTEST = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q -p no:cacheprovider"


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RepoEnv]:
    with Environments(tmp_path_factory.mktemp("trace")) as environments:
        env = environments.make(["trace"], files=FILES, debug_entrypoint="python app.py")
        env.reset(seed=0)
        yield env


@pytest.fixture
def hasty(env: RepoEnv, monkeypatch: pytest.MonkeyPatch) -> RepoEnv:
    """An environment whose programs have a second."""
    monkeypatch.setattr(env.tools["trace"], "settings", TraceSettings(timeout=1.0))
    return env


def traced(env: RepoEnv, target: str, **arguments: Any) -> Observation:
    env.step(ToolCall("trace", {"target": target, **arguments}))
    return env.last_observations[0]


def data_of(seen: Observation) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(json.dumps(seen.data))
    return found


@pytest.mark.parametrize("terminal", terminals("bubblewrap", "docker"))
def test_a_call_is_followed_in_a_sandbox(tmp_path: Path, terminal: str) -> None:
    reason = reason_not_to_use(terminal)
    if reason:
        pytest.skip(reason)
    chosen = {"docker": {"image": os.environ["DEBUG_GYM_TEST_IMAGE"]}} if terminal == "docker" else terminal
    with Environments(tmp_path, chosen) as environments:
        env = environments.make(["trace"], files=FILES, debug_entrypoint=PYTEST, python=python_in(chosen))
        lines = traced(env, "calc.py:Cart.add", call=2).text.splitlines()
        said = "assert 3 == 4 + where 3 = add(2) + where add = <calc.Cart object>.add"
        assert lines[1] == f"in test_calc.py::test_cart, which failed: {said}"
        assert lines[-1] == "returned 3 (line 17)"


def test_a_call_is_told_as_text_and_as_json(env: RepoEnv) -> None:
    seen = traced(env, "calc.py:total")
    assert seen.text.splitlines() == [
        "trace of calc.py:total, call 1, from app.py:30 in <module>",
        "  items = [1, 2]",
        "  start = 0",
        "5  result = start      | result = 0",
        "6  for item in items:  | item = 1",
        "7      result += item  | result = 1",
        "6  for item in items:  | item = 2",
        "7      result += item  | result = 3",
        "8  return result",
        "returned 3 (line 8)",
    ]
    call = data_of(seen)["call"]
    assert call["arguments"] == [["items", "[1, 2]"], ["start", "0"]]
    assert call["end"] == {"how": "returned", "line": 8, "value": "3"}
    loop = call["items"][1]
    assert (loop["loop"], loop["passes"]) == (6, 2)
    assert loop["first"][0][0]["changed"] == [["item", "1"]]


def test_the_test_is_named_and_how_it_ended(env: RepoEnv) -> None:
    seen = traced(env, "calc.py:Cart.add", call=2, entrypoint=PYTEST, depth=1)
    lines = seen.text.splitlines()
    assert lines[0] == "trace of calc.py:Cart.add, call 2, from test_calc.py:11 in test_cart"
    assert lines[1].startswith("in test_calc.py::test_cart, which failed: assert 3 == 4")
    assert "16  self.items.append(price)  | self.items = [1, 2]" in lines
    assert "          7      result += item  | result = 3" in lines
    assert lines[-1] == "returned 3 (line 17)"
    seen = traced(env, "test_calc.py:test_total", entrypoint=PYTEST)
    assert seen.text.splitlines()[:2] == [
        "trace of test_calc.py:test_total, call 1, not from the repository's own code",
        "in test_calc.py::test_total, which passed",
    ]
    assert "> total(items=[3, 4], start=0) -> 7" in seen.text
    assert "that test passed" in seen.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"target": "calc.py"}, "'calc.py' names no function: a target is file:function"),
        ({"target": "calc.py:"}, "names no function"),
        (
            {"target": "calc"},
            "trace: no file defines a function calc, and there is no file calc; did you mean calc.py?; a target",
        ),
        ({"target": "hidden"}, "trace: no file defines a function hidden, and there is no file hidden; "),
        ({"target": "hidden"}, "; a target is file:function or file:Class.method, as in app.py:total"),
        ({"target": "no/file"}, "trace: there is no file no/file; "),
        ({"target": "nocalc.py:total"}, "trace: there is no file nocalc.py; did you mean calc.py"),
        ({"target": "secret/plan.py:hidden"}, "secret/plan.py is ignored in this task"),
        ({"target": "../x.py:f"}, "is outside the workspace"),
        ({"target": "calc.py:totl"}, "calc.py has no function totl; it has total, "),
        ({"target": "broken.py:f"}, "broken.py is not Python that this interpreter understands"),
        ({"target": "calc.py:total", "call": 0}, "call is 0, but calls are counted from 1"),
        ({"target": "calc.py:total", "depth": -1}, "depth is -1; it is 0 to 5"),
        ({"target": "calc.py:total", "depth": 6}, "depth is 6; it is 0 to 5"),
        (
            {"target": "calc.py:total", "entrypoint": "make test"},
            "'make test' cannot be traced: make starts other programs; give `entrypoint`, what it runs is 'python -m",
        ),
        ({"target": "calc.py:total", "entrypoint": "python no.py"}, "cannot be traced: there is no file no.py"),
        ({"target": "calc.py:total", "entrypoint": "python -m nope"}, "cannot be traced: there is no module nope"),
        ({"target": "calc.py:total", "entrypoint": "/no/python app.py"}, "cannot be started: /no/python"),
    ],
)
def test_what_cannot_be_traced_says_why(env: RepoEnv, arguments: dict[str, Any], said: str) -> None:
    seen = traced(env, **arguments)
    assert seen.error and said in seen.text, seen.text
    assert "Traceback" not in seen.text and "nobody may see" not in seen.text


@pytest.mark.parametrize(
    "target",
    [
        "calc.py::Cart::add",
        "calc:Cart.add",
        *repeated("debugger", "calc.py:add()", "calc.py:16", "/testbed/calc.py:add"),
    ],
)
def test_other_ways_to_write_a_target_are_understood(env: RepoEnv, target: str) -> None:
    seen = traced(env, target, entrypoint="python -c 'import calc; calc.Cart().add(3)'")
    assert seen.text.startswith("trace of calc.py:Cart.add, call 1, ")


@pytest.mark.parametrize("target", ["add", "Cart.add", " total "])
def test_a_name_alone_is_enough_where_one_file_defines_it(env: RepoEnv, target: str) -> None:
    heading = f"trace of calc.py:{'total' if 'total' in target else 'Cart.add'}, call 1, "
    entrypoint = "python -c 'import calc; calc.Cart().add(3)'"
    assert traced(env, target, entrypoint=entrypoint).text.startswith(heading)
    env.workspace.write_text(
        "other.py", f"class Cart:\n    def add(self): ...\nasync  def total(): ...\n# def {target}"
    )
    name = target.strip()
    said = f"trace: {name} is defined in 2 files; say which is meant: calc.py:{name}, other.py:{name}"
    seen = traced(env, target, entrypoint=entrypoint)
    env.workspace.remove("other.py")
    assert seen.error and seen.text == said


def test_a_name_that_is_too_long_for_a_search_is_not_looked_for(env: RepoEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env.workspace, "grep", lambda query: pytest.fail("to understand the pattern takes its time"))
    assert traced(env, "x" * 20_000).error


@pytest.mark.parametrize(
    "target", ["test_cases.py::test_v[3]", *repeated("debugger", " test_cases.py:test_v[3]\n", "test_v[3]")]
)
def test_the_case_of_a_test_that_is_named_is_followed(env: RepoEnv, target: str) -> None:
    code = "import pytest\n@pytest.mark.parametrize('v', [1, 3])\ndef test_v(v): assert v == 1\n"
    env.workspace.write_text("test_cases.py", code)
    seen = traced(env, target, entrypoint=PYTEST)
    other = traced(env, "calc.py:total[3]", entrypoint=PYTEST)
    elsewhere = traced(env, target, entrypoint="python -c 'import test_cases; test_cases.test_v(1)'")
    env.workspace.remove("test_cases.py")
    assert seen.text.splitlines()[1].startswith("in test_cases.py::test_v[3], which failed: ")
    assert "[[3] was not looked at: pytest has no cases of total]" in other.text
    said = "[[3] was not looked at, as the program is not pytest: give `entrypoint`, python -m pytest 'test_cases.py::"
    assert said in elsewhere.text and elsewhere.text.startswith("trace of test_cases.py:test_v, call 1")


def test_a_function_in_a_function_is_found_by_its_name(env: RepoEnv) -> None:
    env.workspace.write_text(
        "nested.py", "def outer():\n    def inner(n):\n        return n + 1\n    return inner(1)\n\n\nouter()\n"
    )
    seen = traced(env, "outer.inner", entrypoint="python nested.py")
    env.workspace.remove("nested.py")
    assert seen.text.startswith("trace of nested.py:outer.inner, call 1, "), seen.text


def test_what_a_target_also_means_is_said(env: RepoEnv) -> None:
    code = "class A:\n    @property\n    def p(self): return 1\n    @p.setter\n    def p(self, v): pass\n\n\nA().p\n"
    env.workspace.write_text("twice.py", code)
    seen = traced(env, "twice.py:A.p", entrypoint="python twice.py")
    assert "[A.p is defined 2 times; calls of all of them count]" in seen.text
    seen = traced(env, "twice.py:A", entrypoint="python twice.py")
    assert "[this is the class's body, run when it is defined; for a method: twice.py:A.METHOD]" in seen.text


def test_a_function_is_found_by_the_name_of_its_module(env: RepoEnv) -> None:
    module = "def run():\n    return 1\n\nclass Runner:\n    def run(self):\n        return 2\n"
    files = {
        "src/kit/__init__.py": "from kit.core import run\n\ndef here():\n    return run()\n",
        "src/kit/core.py": module,
        "src/other/core.py": module,
    }
    for name, text in files.items():
        env.workspace.write_text(name, text)
    entrypoint = "PYTHONPATH=src python -c 'import kit, kit.core; kit.here(); kit.core.Runner().run()'"
    for target, found in {
        "kit.core.run": "src/kit/core.py:run",
        "kit.core.Runner.run": "src/kit/core.py:Runner.run",
        "kit.here": "src/kit/__init__.py:here",
    }.items():
        seen = traced(env, target, entrypoint=entrypoint)
        assert seen.text.startswith(f"trace of {found}, call 1, "), seen.text
    known = "src/kit/core.py:run, src/other/core.py:run"
    assert f"core.run is defined in 2 files; say which is meant: {known}" in traced(env, "core.run").text
    for name in files:
        env.workspace.remove(name)


def test_a_function_that_is_not_called_is_said_so(env: RepoEnv) -> None:
    seen = traced(env, "calc.py:never", entrypoint=PYTEST)
    assert seen.text.splitlines()[:2] == [
        "never (calc.py:20) was not called.",
        f"`{PYTEST}`: the program ended with status 1; tests: 1 passed, 1 failed.",
    ]
    assert "assert 3 == 4" in seen.text and not seen.error
    seen = traced(env, "calc.py:total", call=5)
    assert seen.text.startswith("total (calc.py:4) was called once; there was no call 5.\n")
    assert "\nProcesses that the program starts are not followed." in seen.text
    assert data_of(seen)["calls"] == 1


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("forever", "[the program reached the time limit of 1 s and was ended; it was at app.py:"),
        *repeated("debugger", ("sleep", "the time limit of 1 s and was ended; it was at app.py:11 in sleep]")),
        ("kill", "[the program died by signal 9; what it did just before may be missing]"),
    ],
)
def test_a_call_that_is_not_over_is_told_as_far_as_it_was_seen(hasty: RepoEnv, function: str, said: str) -> None:
    seen = traced(hasty, f"app.py:{function}", entrypoint=f"python app.py {function}")
    assert "  n = 60" in seen.text.splitlines()
    assert "it was not over" in seen.text and said in seen.text, seen.text
    assert not data_of(seen)["over"]
    if function == "kill":
        assert "15  x = n  | x = 60" in seen.text


@pytest.mark.parametrize(
    ("endless", "where"),
    [
        ("time.sleep(os.mkdir('begun') or 1000)", "was at busy.py:4 in busy]"),
        (
            "deque(chain(map(os.mkdir, ['begun']), iter(int, 1)), 0)",
            "was in one long call of C code]\nIt was here:\n"
            'thread (most recent call first):\n  File "/testbed/busy.py", line 4 in busy\n',
        ),
    ],
)
def test_a_program_that_somebody_interrupts_is_told_of_as_far_as_it_was_seen(
    env: RepoEnv, endless: str, where: str
) -> None:
    assert not env.interrupt()
    modules = "import os, time; from collections import deque; from itertools import chain"
    env.workspace.write_text("busy.py", f"{modules}\n\ndef busy(n):\n    {endless}\n\nbusy(3)\n")
    with ThreadPoolExecutor(1) as threads:
        told = threads.submit(traced, env, "busy.py:busy", entrypoint="python busy.py")
        while env.session.stat("begun") is None:
            assert not told.done()
        assert env.interrupt()
        seen = told.result(60)
    env.session.remove("begun")
    env.workspace.remove("busy.py")
    assert "  n = 3" in seen.text.splitlines() and not seen.error
    assert f"[the program was interrupted and was ended; it {where}" in seen.text, seen.text
    assert data_of(seen)["interrupted"] and not data_of(seen)["timed_out"]
    assert traced(env, "calc.py:total").text.endswith("returned 3 (line 8)")


@pytest.mark.debugger
def test_a_program_that_does_not_come_to_the_call_in_time_is_ended(hasty: RepoEnv) -> None:
    seen = traced(hasty, "calc.py:never", entrypoint="python app.py sleep")
    assert "never (calc.py:20) was not called." in seen.text
    assert "the time limit of 1 s and was ended; it was at app.py:11 in sleep" in seen.text


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("os._exit(0)", "total (calc.py:4) was called 3 times; there was no call 900.\n"),
        *repeated(
            "debugger",
            (
                "[calc.total([]) for _ in range(200)]; os._exit(0)",
                "times; whether there was a call 900 is not known.\n",
            ),
            (
                "dis.get_instructions = None; [calc.total([]) for _ in range(897)]",
                "was called, but call 900 could not be followed: TypeError: 'NoneType' object is not callable.\n",
            ),
        ),
    ],
)
def test_a_call_is_not_said_to_be_missing_of_which_nothing_is_known(env: RepoEnv, program: str, said: str) -> None:
    code = f"import calc, dis, os; calc.total([]); calc.total([]); calc.total([]); {program}"
    seen = traced(env, "calc.py:total", call=900, entrypoint=f'python -c "{code}"')
    assert said in seen.text, seen.text


def test_a_call_is_not_said_to_be_missing_that_the_program_itself_traces(env: RepoEnv) -> None:
    code = "import calc, sys; sys.settrace(lambda *_: None); calc.total([]); sys.settrace(None); calc.total([])"
    seen = traced(env, "calc.py:total", call=3, entrypoint=f'python -c "{code}"')
    if sys.version_info >= (3, 12):
        assert seen.text.startswith("total (calc.py:4) was called 2 times; there was no call 3.\n")
    else:
        assert seen.text.startswith("total (calc.py:4) was called at least once: calls made while it traced itself")
        seen = traced(env, "calc.py:total", entrypoint=f'python -c "{code}"')
        assert "calls made before while the program traced itself (sys.settrace) are not counted" in seen.text


def test_a_program_that_writes_to_every_descriptor_is_no_obstacle(env: RepoEnv) -> None:
    seen = traced(env, "app.py:babble", entrypoint="python app.py babble")
    assert seen.text.startswith("trace of app.py:babble, call 1") and not seen.error


@pytest.mark.debugger
def test_a_program_that_closes_every_descriptor_is_ended(env: RepoEnv) -> None:
    seen = traced(
        env, "calc.py:total", entrypoint="python -c 'import os, calc; os.closerange(3, 70000); calc.total([])'"
    )
    assert "the program closed the channel over which the call is told, or wrote to it, and was ended" in seen.text


def test_a_long_call_fits_in_what_a_model_reads(env: RepoEnv) -> None:
    code = "\n".join(f"    v{n} = {n}, 'some words that make it long'" for n in range(400))
    env.workspace.write_text("long.py", f"def f():\n{code}\n    return 0\n\n\nf()\n")
    seen = traced(env, "long.py:f", entrypoint="python long.py")
    assert len(seen.text) < 10_000 and "more lines of this trace" in seen.text
    assert "what is left out" in seen.text
    assert seen.text.splitlines()[1].startswith("  2  v0 = ") and "returned 0" in seen.text
    assert len(json.dumps(seen.data)) < 70_000
