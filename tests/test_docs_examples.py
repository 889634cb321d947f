"""The files that the documentation shows do what it says of them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest
from support import run_debug_gym

import debug_gym_core
from debug_gym_core import RepoEnv

pytestmark = pytest.mark.documents

EXAMPLES = Path(__file__).parents[1] / "docs/examples"

FIX = "rewrite basket.py 8 <<<\n        result += price * (1 - discount)\n>>>"


def module(name: str) -> ModuleType:
    """A file of the examples, imported."""
    spec = importlib.util.spec_from_file_location(f"docs_example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def make(sandbox: str) -> Iterator[Callable[..., RepoEnv]]:
    """Makes environments of the small repository."""
    made: list[RepoEnv] = []

    def begin(*tools: object) -> RepoEnv:
        path, command = EXAMPLES / "basket", "python -m pytest -q"
        made.append(debug_gym_core.make("repo", tools, sandbox, path=path, entrypoint=command))
        made[-1].reset(seed=0)
        return made[-1]

    yield begin
    for env in made:
        env.close()


def install(distribution: Path, modules: Path, entry_points: str, name: str) -> None:
    """Make modules an installed distribution, as pip would: metadata beside them."""
    information = distribution / f"{name.replace('-', '_')}-0.1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (information / "entry_points.txt").write_text(entry_points)
    for file in modules.parent.glob(modules.name):
        shutil.copy(file, distribution)


def test_the_tutorials_tool_passes_its_tests_when_it_is_installed(tmp_path: Path) -> None:
    project = tomllib.loads((EXAMPLES / "word_count/pyproject.toml").read_text())["project"]
    points = "".join(f"{key} = {value}\n" for key, value in project["entry-points"]["debug_gym"].items())
    site = tmp_path / "site"
    install(site, EXAMPLES / "word_count/my_word_count.py", f"[debug_gym]\n{points}", project["name"])
    for file in (EXAMPLES / "word_count").glob("test_*.py"):
        shutil.copy(file, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    listed = run_debug_gym(["plugins"], tmp_path, environment)
    assert "my-word-count" in listed.stdout and "failed" not in listed.stdout
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout and "failed" not in done.stdout


def test_the_tutorials_tool_is_short() -> None:
    lines = (EXAMPLES / "word_count/my_word_count.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) < 30


def test_every_component_of_the_hooks_page_can_be_used(tmp_path: Path, sandbox: str) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "here")
    arguments = ["run", "one_bug", "--plugin-file", "hooks.py", "--agent", "tool_agent", "--llm", "always_eval"]
    arguments += ["--terminal", "roomy", "-p", "run.executor=pool", "-p", "tools=[eval, word_count]", "-o", "out"]
    done = run_debug_gym(arguments, tmp_path / "here")
    assert done.returncode == 0, done.stderr
    assert "started one_bug/basket in roomy" in done.stdout and "1 results" in done.stdout
    module("hooks").Scores().export(tmp_path / "here/out", tmp_path / "scores.txt")
    assert (tmp_path / "scores.txt").read_text() == "one_bug/basket 1\n"


def test_the_components_of_the_hooks_page_keep_their_contracts(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "here")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_hooks.py"]
    done = subprocess.run(command, cwd=tmp_path / "here", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tool_of_the_events_page_hears_all_of_them(make: Callable[..., RepoEnv]) -> None:
    env = make(module("on_events").Notice(), "eval", "rewrite", "submit")
    assert "first failure: test_basket.py::test_several_prices" in env.step("eval")[0]["text"]
    assert "[notice]\nbasket.py changed in 1 place(s)" in env.step(FIX)[0]["text"]
    assert env.step("notice")[0]["text"] == "basket.py"
    texts = [env.step("notice")[0]["text"] for _ in range(7)]
    assert texts[-1] == "basket.py\n\n[notice]\n10 steps used"
    env.step("submit 'only the last price counted'")
    assert b"+only the last price counted" in env.patch
    env.reset()
    assert env.step("notice")[0]["text"] == "nothing changed"


def test_a_file_that_is_removed_is_told_and_a_failing_answer_is_an_observation(make: Callable[..., RepoEnv]) -> None:
    """As the events page says it: how a tool sees it, what its own exceptions become, and what nobody hears."""

    class Careless(debug_gym_core.Tool):
        """Read what changed."""

        name = "careless"
        seen: ClassVar[list[bool]] = []

        def use(self, env: RepoEnv) -> str:
            return "used"

        @debug_gym_core.hookimpl
        def on_file_changed(self, env: RepoEnv, path: str) -> str:
            self.seen.append(env.terminal.stat(path) is None)
            return env.workspace.read_text(path)

        @debug_gym_core.hookimpl
        def on_step(self) -> None:
            raise ValueError("a mistake")

        @debug_gym_core.hookimpl
        def on_setp(self) -> str:
            return "never"

    env = make("bash", Careless(), module("on_events").Notice())
    text = env.step("bash rm basket.py")[0]["text"]
    assert Careless.seen == [True]
    assert "there is no file basket.py" in text and "careless's on_step failed: ValueError: a mistake" in text
    assert "[notice]\nbasket.py changed in 1 place(s)" in text and "never" not in text


def test_an_event_of_a_third_party_is_told_and_survives_a_reset(make: Callable[..., RepoEnv]) -> None:
    example = module("own_event")
    for tools in ([example.Suspect(), example.Board()], [example.Suspect()]):
        env = make(*tools)
        for _ in range(2):
            first, _ = env.reset()
            assert "failed" not in first["text"]
            said = env.step("suspect basket.py 8")[0]["text"]
            assert said.startswith("noted basket.py:8") and ("on the board" in said) == (len(tools) == 2)


def test_an_event_that_nobody_specified_is_the_tools_mistake(make: Callable[..., RepoEnv]) -> None:
    class Shout(debug_gym_core.Tool):
        """Emit an event without a specification."""

        name = "shout"

        def use(self, env: RepoEnv) -> str:
            env.emit("on_nothing")
            return "done"

    env = make(Shout())
    assert "there is no event 'on_nothing'" in env.step("shout")[0]["text"]
    assert env.step("shout")[4]["step"] == 2


def test_the_tool_with_settings_and_data(make: Callable[..., RepoEnv]) -> None:
    env = make(module("column").Column(limit=1), "rewrite")
    env.step('rewrite rows.jsonl <<<\n{"a": 1}\n{"a": 2}\n>>>')
    env.step("column rows.jsonl a")
    assert env.last_observations[0].data["values"] == [1]
    assert "no row of rows.jsonl has the key 'b'" in env.step("column rows.jsonl b")[0]["text"]
    assert "is not JSON lines" in env.step("column basket.py b")[0]["text"]


def test_the_tool_with_an_interactive_program(make: Callable[..., RepoEnv]) -> None:
    env = make(module("python_prompt").Prompt())
    env.step("python import basket; x = basket.total([1, 2])")
    assert env.step("python x")[0]["text"] == "2.0"
    assert "ZeroDivisionError" in env.step("python 1/0")[0]["text"]
    assert "starts it anew" in env.step("python exit()")[0]["text"]
    assert "NameError" in env.step("python x")[0]["text"]


def test_the_configs_actions_fix_the_bug(tmp_path: Path, sandbox: str) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "here")
    done = run_debug_gym(["run", "fix_basket.yaml", "-o", "out"], tmp_path / "here")
    assert "resolved, score 2/2, 7 steps" in done.stdout, done.stderr
    patch = tmp_path / "here/out/repo/basket/patch.diff"
    subprocess.run(["git", "apply", "--directory", "basket", patch], cwd=tmp_path / "here", check=True)
    assert "result += price" in (tmp_path / "here/basket/basket.py").read_text()
