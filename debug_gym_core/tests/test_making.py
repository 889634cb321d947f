"""What `make` and a run's config take, and what they refuse before anything is started."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import handful, reason_not_to_use, repeated

from debug_gym_core import RepoEnv, Task, Tool, make
from debug_gym_core.config.loading import load
from debug_gym_core.config.model import Config
from debug_gym_core.environment import backend
from debug_gym_core.errors import RequirementError, UsageError
from debug_gym_core.testing.sample import ENTRYPOINT

DEFAULT = ["view", "listdir", "rewrite", "eval", "pdb"]


class Nothing(Tool):
    """Do nothing."""

    name = "nothing"

    def use(self, env: Any) -> str:
        """Do nothing."""
        return ""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "test_a.py").write_text("def test_a():\n    assert 0\n")
    return tmp_path


@pytest.fixture
def made(repository: Path) -> Iterator[Any]:
    environments: list[RepoEnv] = []

    def made(**settings: Any) -> RepoEnv:
        given = {"terminal": "local", "allow_unsandboxed": True, **settings}
        environments.append(make("repo", path=repository, entrypoint=ENTRYPOINT, **given))
        return environments[-1]

    yield made
    for env in environments:
        env.close()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"terminal": {"bubblewrap": {"memory": "lots"}}}, "bubblewrap: memory: 'lots' is no size"),
        ({"terminal": {"bubblewrap": {"pids": "many"}}}, "bubblewrap: pids: say a whole number (got 'many')"),
        ({"terminal": {"docker": {"imag": "x"}}}, "docker: unknown key 'imag'; did you mean 'image'?"),
        ({"terminal": {"bubblewrap": {"cpus": float("inf")}}}, "bubblewrap: cpus: say a finite number (got inf)"),
        ({"terminal": {"local": {"workspace_size": "lots"}}}, "local: workspace_size: 'lots' is no size"),
        ({"terminal": {"name": "bubblewrap", "memory": "lots"}}, "bubblewrap: memory: 'lots' is no size"),
        ({"terminal": {"local": 3}}, "local: say {'local': {setting: value}}, not 3"),
        ({"tools": "view"}, "tools: say a list"),
        ({"tools": 3}, "tools: say a list"),
        ({"tools": [3]}, "tools: say a name, {name: settings} or an instance of a Tool, not 3"),
        ({"tools": [Nothing]}, "or an instance of a Tool, not the class Nothing: Nothing() is an instance"),
        ({"tools": [{"pdb": 3}]}, "pdb: say {'pdb': {setting: value}}, not 3"),
        ({"tools": {"view": None, "pdb": {"timeot": 1}}}, "pdb: unknown key 'timeot'; did you mean 'timeout'?"),
        ({"tool": ["view"]}, "env: unknown key 'tool'; did you mean 'tools'?"),
        ({"steps": 3}, "env: unknown key 'steps'; did you mean 'max_steps'?"),
        ({"run_timeout": "x"}, "env: run_timeout: say a number (got 'x')"),
        ({"allowed": ["!"]}, "'!' is not a pattern as .gitignore has them"),
        ({"max_steps": "x"}, "max_steps: say a whole number (got 'x')"),
        ({"max_steps": 0}, "max_steps: say 1 or more (got 0)"),
        ({"max_rewrites": 0}, "max_rewrites: say 1 or more (got 0)"),
        ({"max_seconds": -1}, "max_seconds: say 0 or more (got -1)"),
        ({"trusted": "no"}, "trusted: say true or false (got 'no')"),
        ({"render_mode": "human"}, "render_mode: say ansi (got 'human')"),
    ],
)
def test_wrong_settings_are_refused_at_once(made: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(**settings)
    assert words in str(caught.value)


def test_a_setting_beside_the_name_of_a_terminal_holds_in_the_sandbox(made: Any) -> None:
    if reason := reason_not_to_use("bubblewrap"):
        pytest.skip(reason)
    env = made(terminal={"name": "bubblewrap", "workspace_size": "96m"})
    env.reset(seed=0)
    assert env.terminal_name == "bubblewrap"
    assert env.terminal.run("df -kP . | awk 'END {print $2}'").output.strip() == str(96 * 1024)


@pytest.mark.parametrize(
    ("own", "chosen", "limit"), [(None, {}, 300), (7, {}, 7), (7, {"run_timeout": 5}, 5), (7, {"run_timeout": 60}, 60)]
)
def test_the_limit_of_a_run_is_the_tasks_where_nobody_says_otherwise(
    repository: Path, own: float | None, chosen: dict[str, Any], limit: float
) -> None:
    task = Task("bench", "a", repository, ENTRYPOINT, time_limit=own)
    with closing(RepoEnv(task, terminal="local", allow_unsandboxed=True, **chosen)) as env:
        assert env.run_timeout == limit


def test_who_mistypes_is_told_what_a_caller_may_say(made: Any) -> None:
    with pytest.raises(UsageError) as refused:
        made(foo=3)
    start, _, known = str(refused.value).partition("; known: ")
    assert start == "env: unknown key 'foo'"
    assert {"path", "mode", "run_timeout", "max_steps", "terminal", "tools"} <= set(known.split(", "))
    assert not {"notify", "plugins", "run", "trusted", "source"} & set(known.split(", "))


def test_an_environment_is_of_a_task_not_of_its_id() -> None:
    with pytest.raises(UsageError, match=r"takes a Task, not 'repo/x'; debug_gym_core\.make takes the id of one"):
        RepoEnv("repo/x")  # type: ignore[arg-type]


def test_a_task_that_is_no_text_is_refused() -> None:
    for task in (None, 3):
        with pytest.raises(UsageError, match="say which task"):
            make(task)  # type: ignore[arg-type]


def test_several_tasks_and_none_named() -> None:
    with pytest.raises(UsageError, match=r"has 10 tasks; say mini_nightmare/NAME \(in gymnasium.make: .*\), as "):
        make("mini_nightmare")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_environment_cannot_be_copied(made: Any, copied: Callable[[RepoEnv], object]) -> None:
    with pytest.raises(TypeError, match="cannot be copied or pickled: make another one"):
        copied(made())


def test_tools_may_be_a_mapping(made: Any) -> None:
    env = made(tools={"view": None, "pdb": {"timeout": 1.5}})
    assert list(env.tools) == ["view", "pdb"] and env.tools["pdb"].settings.timeout == 1.5


def test_where_nothing_else_ends_the_episode_submit_is_among_the_default_tools(made: Any) -> None:
    assert list(made().tools) == list(made(end_on_resolved=True).tools) == list(Config().tool_settings()) == DEFAULT
    assert list(made(end_on_resolved=False).tools) == [*DEFAULT, "submit"]
    for overrides, wanted in (
        (["agent.name=debug_agent"], DEFAULT),
        (["agent.name=tool_agent"], [*DEFAULT, "submit"]),
        (["agent.name=tool_agent", "tools.pdb.timeout=9"], [*DEFAULT, "submit"]),
        (["agent.name=tool_agent", "env.end_on_resolved=true"], DEFAULT),
        (["agent.name=debug_agent", "env.end_on_resolved=false"], [*DEFAULT, "submit"]),
        (["agent.name=tool_agent", "tools=[view]"], ["view"]),
    ):
        assert list(load("repo", overrides).tool_settings()) == wanted, overrides


def test_what_every_terminal_refuses_is_refused_before_one_is_taken() -> None:
    with pytest.raises(UsageError, match=r"-p terminal\.workspace_size: 'lots' is no size"):
        load("repo", ["terminal.workspace_size=lots"])
    assert load("repo", ["terminal.workspace_size=3g"]).terminal.name == "auto"


def test_files_say_what_they_take(made: Any) -> None:
    env = made(tools=["view"])
    env.reset(seed=0)
    with pytest.raises(TypeError, match="write_bytes takes bytes, not str; write_text takes text"):
        env.workspace.write_bytes("a.py", "x")
    with pytest.raises(TypeError, match="write_text takes text, not bytes; write_bytes takes bytes"):
        env.workspace.write_text("a.py", b"x")


def test_a_terminal_that_works_by_now_is_taken(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from debug_gym_terminal_local import LocalTerminal

    reasons = ["no engine answers; start it", "no engine answers; start it", None]
    monkeypatch.setattr(backend, "_usable", set())
    monkeypatch.setattr(LocalTerminal, "unavailable", lambda: reasons.pop(0))
    for _ in range(2):
        with pytest.raises(RequirementError, match="no engine answers"):
            made()
    assert made().terminal_name == "local"
    made()  # what works is asked no more
    assert not reasons


def test_a_wrong_command_line_of_pytest_is_said(repository: Path) -> None:
    env = make("repo", path=repository, entrypoint="pytest -q no.py", terminal="local", allow_unsandboxed=True)
    with pytest.raises(Exception, match=r"\(env\.entrypoint\) finds no test .*file or directory not found: no\.py"):
        env.reset(seed=0)
    env.close()


@pytest.mark.parametrize("runner", ["unittest test_a", *repeated("people", "pytest -q")])
def test_tests_of_another_copy_are_said_to_be_that(repository: Path, runner: str) -> None:
    (repository / "src/click").mkdir(parents=True)
    (repository / "src/click/__init__.py").write_text("")
    (repository / "types.py").write_text("# no copy of the standard library's\n")
    test = "import unittest, click, types\nclass A(unittest.TestCase):\n    def test_a(self):\n        assert 0\n"
    test += "import os\nos.path.isfile = os.path.samefile = lambda *_: False\n"  # who is run has no say in it
    (repository / "test_a.py").write_text(test)
    told: list[str] = []
    given: dict[str, Any] = {"path": repository, "terminal": "local", "allow_unsandboxed": True, "notify": told.append}
    env = make("repo", entrypoint=f"python -m {runner}", **given)
    try:
        env.reset()
        (note,) = [text for text in env.notes if "the tests import" in text]
        assert "the tests import click from " in note and "site-packages/click/__init__.py, not from the rep" in note
        assert note in told
        env.close()
        env = make("repo", entrypoint=f"PYTHONPATH=src python -m {runner}", **given)
        env.reset()
        assert "click" not in "".join(env.notes)
    finally:
        env.close()


@pytest.mark.parametrize(
    "modules", handful("people", {"one": ["calc"], "many": [f"calc{number:02}" for number in range(30)]}, "many")
)
def test_modules_that_hold_their_own_tests_are_said_to_be_all_there_is(tmp_path: Path, modules: list[str]) -> None:
    test = "class A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(add(1, 2), 3)\n"
    text = "import unittest\ndef add(a, b): return a - b\n"
    for name in modules:
        (tmp_path / f"{name}.py").write_text(text + test)
    given: dict[str, Any] = {"path": tmp_path, "terminal": "local", "allow_unsandboxed": True, "notify": print}
    said = "all Python files of the repository hold tests that count, or belong to them (calc"
    for allowed, found in (([], 1), ([f"{modules[-1]}.py"], 0)):
        env = make("repo", entrypoint=f"python -m unittest {' '.join(modules)}", allowed=allowed, **given)
        try:
            env.reset()
            assert len([note for note in env.notes if said in note]) == found
        finally:
            env.close()


@pytest.mark.parametrize(
    ("files", "allowed", "found"),
    [
        ({"test_bad.py": "def test_it(:\n", "test_it.py": "def test_it(): assert 0\n"}, [], True),
        ({"test_bad.py": "def test_it(:\n", "test_it.py": "def test_it(): assert 0\n"}, ["test_bad.py"], False),
        ({"test_bad.py": "import bad\n", "bad.py": "x = (\n"}, [], False),
    ],
    ids=["a test", "one that may be mended", "the tested code"],
)
def test_a_test_that_is_no_python_and_stays_so_is_told(
    tmp_path: Path, files: dict[str, str], allowed: list[str], found: bool
) -> None:
    for name, text in {"calc.py": "", **files}.items():
        (tmp_path / name).write_text(text)
    given: dict[str, Any] = {"path": tmp_path, "terminal": "local", "allow_unsandboxed": True, "notify": print}
    with closing(make("repo", entrypoint=ENTRYPOINT, allowed=allowed, **given)) as env:
        env.reset()
        said = "nothing resolves the task as long as test_bad.py cannot be read as Python (SyntaxError: "
        assert [note.startswith(said) and "(test_bad.py, line 1)): " in note for note in env.notes] == [True] * found
