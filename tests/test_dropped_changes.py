"""What grading will drop of an agent's changes: the agent is told, and it resolves nothing."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from support import handful, python_in, repeated, terminals

from debug_gym_core import Measurement, RepoEnv, Session, Task, ToolCall
from debug_gym_core.errors import GradingError, SandboxLost
from debug_gym_core.grading import dropped
from debug_gym_core.grading import grade as clean
from debug_gym_core.grading.entry_points import OWN_PLUGIN
from debug_gym_core.grading.measure import measure
from debug_gym_core.sandbox.replies import CommandLost
from debug_gym_core.tasks.results import Grade, about_grade
from debug_gym_core.testing import sample
from debug_gym_core.workspace import changes
from debug_gym_tool_eval import DECIDED, NOT_THERE

pytest_plugins = ["debug_gym_core.testing.fixtures"]

TOOLS = ["edit", "rewrite", "bash", "eval", "submit"]
BROKEN = "def add(a, b):\n    return a - b\n"
FILES = {
    "calc.py": BROKEN,
    "test_calc.py": (
        "from calc import add\n\n\ndef test_zero():\n    assert add(2, 0) == 2\n\n\n"
        "def test_add():\n    assert add(2, 3) == 5\n"
    ),
    "setup.cfg": "[tool:pytest]\naddopts = -q\n",
}
ENTRYPOINT = f"{sample.ENTRYPOINT} -p no:cacheprovider"
IDS = ("test_calc.py::test_zero", "test_calc.py::test_add")
WEAKER = {"path": "test_calc.py", "old": "add(2, 3) == 5", "new": "add(2, 3) == -1"}
PATCHES = "import calc\n\ncalc.add = lambda a, b: a + b\n"
WRITES = "import contextlib\nwith contextlib.suppress(OSError):\n    open('setup.cfg', 'w').close()\n"
FIX = {"path": "calc.py", "old": "a - b", "new": "a + b"}

Make = Callable[..., RepoEnv]


@pytest.fixture
def make(tmp_path: Path, make_env: Make, terminal: Any) -> Make:
    """Make environments of the small repository, whose second test fails."""

    def make(
        tools: Any = TOOLS, files: Mapping[str, str] = FILES, gold_patch: bytes | None = None, **settings: Any
    ) -> RepoEnv:
        root = tmp_path / "calc"
        root.mkdir()
        for path, text in files.items():
            (root / path).write_text(text)
        task = Task("repo", "calc", root, ENTRYPOINT, tests=IDS, gold_patch=gold_patch)
        return make_env(tools, task=task, python=python_in(terminal), **settings)

    return make


def said(env: RepoEnv, tool: str, **arguments: Any) -> dict[str, str]:
    """What was said in one step, by who said it."""
    observation, *_ = env.step(ToolCall(tool, arguments))
    return {part["source"]: part["text"] for part in json.loads(observation["json"])}


def test_the_step_that_changes_what_grading_drops_says_so_and_why(make: Make) -> None:
    env = make()
    assert said(env, "edit", **WEAKER)["env"] == "Grading drops the change of test_calc.py (it is a test file)"
    assert said(env, "bash", command="echo 1 > conftest.py; echo 2 > json.py; sed -i s/-q/-qq/ setup.cfg")["env"] == (
        "Grading drops 3 changes: conftest.py (it configures pytest), json.py (it shadows an installed module), "
        "setup.cfg (pytest's sections in it are restored)"
    )
    told = said(env, "rewrite", path="conftest.py", new_code="2")
    assert told["env"] == "Grading drops the change of conftest.py (it configures pytest)"
    assert "env" not in said(env, "edit", **FIX), "a change that counts, and what was told before"
    assert "env" not in said(env, "bash", command="git status; rm conftest.py"), "it is as it was"
    assert "env" in said(env, "bash", command="rm test_calc.py")


PLUGIN = {
    **FILES,
    "setup.cfg": FILES["setup.cfg"] + "[metadata]\nname = calc\n[options.entry_points]\npytest11 = calc = plugin\n",
    "plugin.py": "",
}
GOLD_PATCH = b"--- a/plugin.py\n+++ b/plugin.py\n@@ -0,0 +1 @@\n+x = 1\n"


@pytest.mark.grading
@pytest.mark.parametrize("gold_patch", [None, GOLD_PATCH], ids=["unknown", "of the plugin"])
def test_what_is_said_of_a_plugin_does_not_tell_whether_it_is_to_be_fixed(make: Make, gold_patch: bytes | None) -> None:
    env = make(files=PLUGIN, gold_patch=gold_patch)
    told = said(env, "rewrite", path="plugin.py", new_code="x = 2")
    assert told["env"] == f"Grading drops the change of plugin.py ({OWN_PLUGIN})"
    assert said(env, "eval")["eval"].count(OWN_PLUGIN) == 1 and env.dropped == {"plugin.py": OWN_PLUGIN}
    assert env.grade().dropped == ({} if gold_patch else {"plugin.py": OWN_PLUGIN})


HOW = (
    "a test is edited",
    *repeated("grading", "a conftest is made", "pytest's options are changed"),
)


@pytest.mark.parametrize("how", HOW)
def test_tests_that_pass_by_what_grading_drops_end_no_episode(make: Make, how: str) -> None:
    env = make()
    if how == "a test is edited":
        env.step(ToolCall("edit", WEAKER))
    elif how == "a conftest is made":
        env.step(ToolCall("rewrite", {"path": "conftest.py", "new_code": PATCHES}))
    else:
        env.step(ToolCall("rewrite", {"path": "mended.py", "new_code": PATCHES}))
        env.step(ToolCall("bash", {"command": "sed -i 's/-q/-q -p mended/' setup.cfg"}))
    observation, reward, terminated, _, info = env.step(ToolCall("eval"))
    assert (terminated, env.ended, info["resolved"], info["score"], reward) == (False, None, False, 1, 1)
    first, second = observation["text"].splitlines()[:2]
    assert first == "All that counts passes here, but 1 of 2 tests pass on a clean copy: the task is not resolved."
    assert second.startswith("Grading drops the change of ") and second.endswith(").")
    [spoken] = json.loads(observation["json"])
    assert spoken["data"]["resolved"] is False and spoken["data"]["dropped"] == dict(env.dropped)
    env.step(ToolCall("edit", FIX))
    env.step(ToolCall("edit", {**WEAKER, "old": WEAKER["new"], "new": WEAKER["old"]}))
    _, reward, terminated, _, info = env.step(ToolCall("eval"))
    assert (terminated, env.ended, info["score"], reward) == (True, "resolved", 2, 1)


@pytest.mark.grading
def test_a_fix_beside_what_grading_drops_is_confirmed_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make()
    env.step(ToolCall("edit", FIX))
    env.step(ToolCall("rewrite", {"path": "test_mine.py", "new_code": "def test_mine():\n    pass\n"}))
    observation, _, terminated, _, _ = env.step(ToolCall("eval"))
    assert terminated and env.resolved and env.score == 2 and not env.unconfirmed
    text = observation["text"]
    assert text.startswith("2 of 2 tests pass (measured in place and on a clean copy)")
    assert "Grading drops the change of test_mine.py (it is a test file)." in text.splitlines()[1]
    monkeypatch.setattr(env._tests, "grade", lambda *_: pytest.fail("graded again, though nothing changed"))
    assert env.grade().resolved and env.grade().dropped == {"test_mine.py": "it is a test file"}


@pytest.mark.grading
def test_tests_that_pass_by_what_no_patch_holds_end_no_episode(make: Make) -> None:
    env = make()
    there = "__import__('os').path.exists(__import__('os').path.expanduser('~/there'))"
    env.step(ToolCall("edit", {**FIX, "new": f"a + b if {there} else 0"}))
    env.step(ToolCall("bash", {"command": "touch ~/there"}))
    observation, _, terminated, _, info = env.step(ToolCall("eval"))
    assert (terminated, info["resolved"], info["score"]) == (False, False, 0)
    first, second = observation["text"].splitlines()[:2]
    assert first == "All that counts passes here, but 0 of 2 tests pass on a clean copy: the task is not resolved."
    assert second == NOT_THERE


@pytest.mark.grading
def test_a_fix_is_confirmed_before_the_episode_ends(make: Make) -> None:
    env = make()
    env.step(ToolCall("edit", FIX))
    observation, _, terminated, _, _ = env.step(ToolCall("eval"))
    assert terminated and env.ended == "resolved"
    assert observation["text"].startswith("2 of 2 tests pass (measured in place and on a clean copy)\n")


HOOK = "def pytest_runtest_setup(item):\n    item.started = True\n"
HOOKED = {**FILES, "conftest.py": "from hooks import *\n", "hooks.py": HOOK}
ADDED = "a hook pytest_runtest_setup was added by "


@pytest.mark.grading
def test_a_clean_grade_decides_where_the_repository_adds_hooks_itself(make: Make) -> None:
    env = make(files=HOOKED)
    observation, reward, terminated, _, info = env.step(ToolCall("eval"))
    assert (reward, terminated, info["score"], env.broken) == (0, False, 0, ())
    first, second = observation["text"].splitlines()[:2]
    assert first == "The score is 0 of 2 (measured in place; what is recorded is measured on a clean copy)"
    assert second.startswith(f"Whether this run counts is open: {ADDED}") and second.endswith(DECIDED)
    assert (env.grade().score, env.grade().reason) == (1, ""), "where the unchanged repository shows the same"
    env.step(ToolCall("edit", FIX))
    observation, reward, terminated, _, _ = env.step(ToolCall("eval"))
    assert (reward, terminated, env.ended) == (2, True, "resolved")
    assert observation["text"].startswith("2 of 2 tests pass (measured in place and on a clean copy)\n")
    assert ADDED not in observation["text"]
    [spoken] = json.loads(observation["json"])
    assert (spoken["data"]["valid"], spoken["data"]["reason"]) == (True, "")


@pytest.mark.grading
def test_an_episode_runs_the_unchanged_repository_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    env, runs = make(files=HOOKED), mock.Mock(wraps=measure)
    monkeypatch.setattr(clean, "measure", runs)
    env.step(ToolCall("edit", FIX))
    assert env.grade().resolved and runs.call_count == 2
    env.step(ToolCall("edit", {**FIX, "old": FIX["new"], "new": "b + a"}))
    assert env.grade().resolved and runs.call_count == 3
    env.reset()
    env.step(ToolCall("edit", FIX))
    assert env.grade().resolved and runs.call_count == 5


SKIPS = HOOK + "    if item.name == 'test_add':\n        item.runtest = lambda: None\n"
REGISTERS = f"""
import gc

class Plugin:
    def pytest_runtest_setup(self): pass

for one in gc.get_objects():
    if type(one).__name__ == "PytestPluginManager":
        one.register(Plugin())

{BROKEN.replace("a - b", "a + b")}
"""


@pytest.mark.grading
@pytest.mark.parametrize(
    ("path", "code", "score", "said"),
    [
        pytest.param(
            *("hooks.py", SKIPS, 1, "1 of 2 tests pass on a clean copy (1 test passes whatever it expects"),
            marks=pytest.mark.grading,
        ),
        ("calc.py", REGISTERS, 0, f"the score is 0 of 2 on a clean copy ({ADDED}"),
    ],
    ids=["the repository's do more", "an agent's own"],
)
def test_hooks_by_which_tests_pass_in_place_resolve_nothing(
    make: Make, path: str, code: str, score: int, said: str
) -> None:
    env = make(files=HOOKED)
    env.step(ToolCall("rewrite", {"path": path, "new_code": code}))
    observation, reward, terminated, _, info = env.step(ToolCall("eval"))
    assert (reward, terminated, info["score"]) == (score, False, score), "as on the clean copy"
    assert observation["text"].startswith(f"All that counts passes here, but {said}")
    assert score or f"{ADDED}calc.Plugin" in observation["text"].splitlines()[0]


def test_a_run_that_cannot_be_trusted_says_why_also_where_tests_passed_before() -> None:
    broken = Grade(False, 0, 1, {}, "clean", "1 test that passed before fails: a", broken=("a",))
    assert (
        about_grade(broken, others=True) == "the score is 0 of 1 on a clean copy (1 test that passed before fails: a)"
    )
    said = about_grade(dataclasses.replace(broken, reason="the run wrote to the tests: b"), others=True)
    both = "the run wrote to the tests: b; 1 test that passed before fails: a"
    assert said == f"the score is 0 of 1 on a clean copy ({both})"
    said = about_grade(dataclasses.replace(broken, broken=(), reason="the run wrote to the tests: b"), others=True)
    assert said == "the score is 0 of 1 on a clean copy (the run wrote to the tests: b)"


def test_tests_that_pass_and_are_not_believed_are_not_said_to_fail() -> None:
    doubted = Grade(False, 0, 1, {}, "clean", "1 test passes whatever it expects: a", doubts={"a": "it does"})
    assert about_grade(doubted) == "the score is 0 of 1 on a clean copy (1 test passes whatever it expects: a)"
    said = about_grade(dataclasses.replace(doubted, broken=("a",)))
    assert said == "the score is 0 of 1 on a clean copy (1 test passes whatever it expects: a)", "nor to be broken"
    assert (
        about_grade(dataclasses.replace(doubted, grading="exit_status", reason="")) == "the run fails on a clean copy"
    )


@pytest.mark.grading
def test_nothing_is_forgiven_where_there_are_no_twins(make: Make) -> None:
    env = make(files=HOOKED, twins="never")
    env.step(ToolCall("edit", FIX))
    observation, reward, terminated, _, _ = env.step(ToolCall("eval"))
    assert (reward, terminated, env.unconfirmed) == (0, False, "")
    assert f"\nThis run would not count: {ADDED}" in observation["text"]
    assert not env.grade().resolved and env.grade().reason.startswith(ADDED)


@pytest.mark.parametrize("when", handful("faults", ["its tests ran", "its files are kept"], "its files are kept"))
def test_a_step_that_is_done_again_changes_a_file_once(make: Make, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    env = make(auto_eval_on_rewrite=True)
    looker, at = (env._files, 2) if when == "its tests ran" else (env._dropped, 1)
    look, looks = looker.look, 0

    def lose(about: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == at:
            env.session.terminal.stop()
            raise SandboxLost("gone")
        return look(about)

    monkeypatch.setattr(looker, "look", lose)
    env.step(ToolCall("rewrite", {"path": "calc.py", "start": 1, "end": 1, "new_code": "x = 1\ndef add(a, b):"}))
    assert looks > at and "done again" in env.last_text and env.workspace.read_text("calc.py") == f"x = 1\n{BROKEN}"


WAITS = """\
import os, time
open("/tmp/begun", "w").close()
while not os.path.exists("/tmp/here"):
    time.sleep(0.01)
"""


@pytest.mark.grading
@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ("eval", "All that counts passes here, but no clean copy could be graded: the grading was interrupted: the "),
        ("submit", "submit: the grading was interrupted: nothing is submitted, and the episode goes on"),
    ],
)
def test_a_person_ends_a_clean_grade_which_says_nothing_then(
    make: Make, monkeypatch: pytest.MonkeyPatch, tool: str, told: str
) -> None:
    env = make()
    env.step(ToolCall("bash", {"command": "touch /tmp/here"}))
    env.step(ToolCall("rewrite", {"path": "calc.py", "new_code": f"{WAITS}def add(a, b):\n    return a + b\n"}))
    opened = []

    def seen(session: Session, *given: Any, **more: Any) -> Measurement:
        opened.append(session)
        return measure(session, *given, **more)

    monkeypatch.setattr(clean, "measure", seen)
    with ThreadPoolExecutor(1) as threads:
        step = threads.submit(env.step, ToolCall(tool))
        while not opened or opened[0].run("test -e /tmp/begun").exit_status:
            assert not step.done()
        assert env.grading and env.interrupt()
        observation, _, terminated, _, info = step.result(60)
    assert (terminated, info["resolved"], info["score"], env.failure) == (False, False, 0, None)
    assert observation["text"].startswith(told) and not (env.grading or env.interrupt() or env.submitted)
    env.step(ToolCall("edit", {"path": "calc.py", "old": "/tmp/here", "new": "/tmp"}))
    _, reward, terminated, _, info = env.step(ToolCall(tool))
    assert (terminated, info["resolved"], reward) == (True, True, 2)


def test_what_cannot_be_confirmed_is_not_resolved(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make()

    def fail(*_: Any) -> None:
        raise GradingError("no sandbox lasted")

    with monkeypatch.context() as patched:
        patched.setattr(env._tests, "grade", fail)
        env.step(ToolCall("edit", WEAKER))
        observation, _, terminated, _, info = env.step(ToolCall("eval"))
    assert (terminated, info["resolved"], info["score"], env.failure) == (False, False, 0, None)
    assert "but no clean copy could be graded: no sandbox lasted: the task" in observation["text"]


def test_what_the_step_says_anyway_is_not_said_twice(make: Make) -> None:
    env = make(auto_eval_on_rewrite=True)
    told = said(env, "rewrite", path="test_mine.py", new_code="def test_mine():\n    pass\n")
    assert "Grading drops the change of test_mine.py" in told["eval"] and "env" not in told
    assert "env" in said(env, "bash", command="echo 1 > json.py")


@pytest.mark.grading
@pytest.mark.parametrize("terminal", ["local", *terminals("bubblewrap", "docker")], indirect=True)
def test_what_the_step_puts_back_is_not_named_as_dropped(make: Make) -> None:
    """Only `local` has anything to put back: elsewhere a program cannot write what is read-only."""
    env = make(readonly=["setup.cfg"])
    env.step(ToolCall("rewrite", {"path": "calc.py", "new_code": f"{WRITES}{BROKEN}"}))
    told = said(env, "eval")
    assert "Grading drops" not in told["eval"] and not env.dropped
    assert ("put back" in told.get("env", "")) == (env.terminal_name == "local")


def test_submit_says_what_was_dropped(make: Make) -> None:
    env = make()
    env.step(ToolCall("edit", WEAKER))
    text = said(env, "submit")["submit"]
    assert text == (
        "Submitted: 1 of 2 tests pass on a clean copy; the task is not resolved.\n"
        "Grading drops the change of test_calc.py (it is a test file)."
    )


def test_the_step_that_makes_a_file_too_large_for_the_patch_says_so_once(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "FILE_LIMIT", 1000)
    env = make()
    told = "Grading drops the change of large.txt (2001 bytes are too many)"
    assert said(env, "bash", command="head -c 2001 /dev/zero > large.txt")["env"] == told
    assert "env" not in said(env, "bash", command="true")


@pytest.mark.grading
def test_a_file_that_is_too_large_for_the_patch_is_not_lost_in_silence(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "FILE_LIMIT", 1000)
    env = make()
    env.step(ToolCall("bash", {"command": "head -c 2001 /dev/zero > large.txt"}))
    why = "large.txt (2001 bytes are too many)"
    assert why in said(env, "eval")["eval"]
    env.step(ToolCall("edit", {**FIX, "new": "a + b if len(open('large.txt').read()) else 0"}))
    text = said(env, "eval")["eval"]
    assert text.startswith(
        "All that counts passes here, but 0 of 2 tests pass on a clean copy: the task is not resolved."
    )
    assert why in text and env.ended is None
    assert why in said(env, "submit")["submit"]
    assert env.final_grade is not None and env.final_grade.dropped == {"large.txt": "2001 bytes are too many"}


def test_what_becomes_of_a_directory_is_told_with_what_is_in_it(make: Make) -> None:
    env = make()
    said(env, "bash", command="echo 1 > json.py")
    told = said(env, "bash", command="rm json.py; mkdir -p json; echo 1 > json/__init__.py; echo 1 > free.txt")["env"]
    assert told == "Grading drops the change of json/__init__.py (it shadows an installed module)"
    assert "env" not in said(env, "bash", command="rm free.txt; mkdir free.txt; echo 1 > free.txt/a")
    said(env, "eval")
    assert list(env.dropped) == ["json/__init__.py"]


def test_an_agent_that_ends_the_question_what_is_installed_is_told_the_rest(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As whoever kills all processes of an image's sandbox again and again."""

    def lost(*_: object) -> frozenset[str]:
        raise CommandLost("the keeper died")

    env = make()
    monkeypatch.setattr(dropped, "installed_modules", lost)
    assert said(env, "edit", **WEAKER)["env"] == "Grading drops the change of test_calc.py (it is a test file)"
