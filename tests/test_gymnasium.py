"""The environment is a real Gymnasium environment."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from support import reason_not_to_use, repeated

import debug_gym_core
import debug_gym_core.envs
from debug_gym_core import RepoEnv, Tool, ToolCall, UsageError
from debug_gym_core.testing.sample import ENTRYPOINT

PLAIN: dict[str, Any] = {"entrypoint": f"{ENTRYPOINT} test.py"}
ACTIONS = [
    ToolCall("eval"),
    ToolCall("view", {"path": "tomorrow_date_code.py"}),
    "pdb b tomorrow_date_code.py:1",
    {"name": "listdir", "arguments": {}},
    "nonsense",
    ToolCall("pdb", {"command": "c"}),
]


@pytest.fixture(scope="module")
def env() -> Iterator[RepoEnv]:
    """For tests that begin an episode of their own."""
    if reason := reason_not_to_use("bubblewrap"):
        pytest.skip(reason)
    made = debug_gym_core.make("mini_nightmare/tomorrow_date", terminal="bubblewrap", **PLAIN)
    yield made
    made.close()


@pytest.fixture
def fresh(sandbox: str) -> Iterator[RepoEnv]:
    """One of which nothing is run."""
    made = debug_gym_core.make("mini_nightmare/tomorrow_date", terminal=sandbox)
    yield made
    made.close()


def test_the_checker_is_content(env: RepoEnv) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env)
    assert [str(one.message) for one in caught] == []


@pytest.mark.people
def test_the_checker_is_content_with_what_is_rendered(sandbox: str) -> None:
    made = gymnasium.make(
        "debug_gym_core.envs:debug_gym/mini_nightmare-v0", task="tomorrow_date", terminal=sandbox, **PLAIN
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(made.unwrapped)
    assert [str(one.message) for one in caught] == []


def test_made_through_the_registry(sandbox: str) -> None:
    env = gymnasium.make(
        "debug_gym_core.envs:debug_gym/mini_nightmare-v0", task="tomorrow_date", terminal=sandbox, **PLAIN
    )
    observation, info = env.reset(seed=3)
    assert "tomorrow_date" in observation["text"]
    assert info["max_score"] > 0
    observation, reward, terminated, truncated, info = env.step(ToolCall("eval"))
    assert env.observation_space.contains(observation)
    assert reward == info["score"]
    assert not terminated and not truncated
    env.close()


def test_the_registry_takes_the_id_of_a_task() -> None:
    made = gymnasium.make("debug_gym_core.envs:debug_gym/mini_nightmare-v0", task="mini_nightmare/purr")
    assert made.unwrapped.task.id == "mini_nightmare/purr"  # type: ignore[attr-defined]
    made.close()


def test_every_tool_is_in_the_action_space(sandbox: str) -> None:
    class Count(Tool):
        """Count the letters of a file."""

        name = "count"

        def use(self, env: RepoEnv, path: str) -> str:
            """Count."""
            return str(len(env.workspace.read_text(path)))

    env = debug_gym_core.make("mini_nightmare/purr", [Count()], sandbox)
    assert repr(env.action_space) == 'ActionSpace(["count"])'
    assert env.action_space.sample() == ToolCall("count", {"path": "..."})
    env.close()


COUNT = """
from debug_gym_core import Tool, hookimpl

class Count(Tool):
    '''Count.'''

    name = "count"

    def use(self, env):
        '''Count.'''

@hookimpl
def debug_gym_register_tools():
    return [Count]
"""


def test_the_specification_makes_the_environment_again_with_its_plugins(tmp_path: Path, sandbox: str) -> None:
    file = tmp_path / "counting.py"
    file.write_text(COUNT)
    plugins = debug_gym_core.load_plugins(files=[file])
    env = debug_gym_core.make("mini_nightmare/purr", ["count"], sandbox, plugins=plugins)
    assert env.spec is not None
    assert copy.copy(plugins) is plugins
    again = gymnasium.make(env.spec)
    tools = again.unwrapped.tools  # type: ignore[attr-defined]
    assert [type(tool) for tool in tools.values()] == [plugins.get("tools", "count")]
    elsewhere = gymnasium.make(pickle.loads(pickle.dumps(env.spec)))
    assert elsewhere.unwrapped.plugins.files == (file,)  # type: ignore[attr-defined]
    assert list(elsewhere.unwrapped.tools) == ["count"]  # type: ignore[attr-defined]
    said = r"^plugins: .*; .* take `plugins` out of the specification's `kwargs` and give it to gymnasium.make anew"
    with pytest.raises(UsageError, match=said):
        env.spec.to_json()
    del env.spec.kwargs["plugins"]
    from_text = gymnasium.make(EnvSpec.from_json(env.spec.to_json()), plugins=plugins)
    for made in (env, again, elsewhere, from_text):
        made.close()


class Live(Tool):
    """Hold what cannot be copied."""

    name = "live"

    def __init__(self, word: str, **settings: object) -> None:
        super().__init__(**settings)
        self.word, self.held = word, None

    def use(self, env: RepoEnv) -> None:
        """Hold it."""


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda spec: pickle.loads(pickle.dumps(spec))])
def test_a_tool_that_was_used_is_made_anew_by_the_specification(
    sandbox: str, copied: Callable[[EnvSpec], EnvSpec]
) -> None:
    used: Any = Live(word="letter")
    env = debug_gym_core.make("mini_nightmare/purr", [used], sandbox)
    used.held = threading.Lock()
    assert env.spec is not None
    again: Any = gymnasium.make(copied(env.spec)).unwrapped
    made = again.tools["live"]
    assert (type(made), made.word, made.held, used.held is None) == (Live, "letter", None, False)
    env.close()
    again.close()


def test_a_reset_has_no_options(env: RepoEnv) -> None:
    with pytest.raises(UsageError, match=r"reset takes no options \('task'\): `make` takes the task"):
        env.reset(options={"task": "purr"})
    for nothing in (None, {}):
        assert env.reset(seed=0, options=nothing)[1]["step"] == 0


@pytest.mark.parametrize("kind", ["sync", *repeated("people", "async")])
def test_vector_environments_step(kind: str, sandbox: str) -> None:
    makers = [
        partial(debug_gym_core.make, f"mini_nightmare/{task}", terminal=sandbox, **settings)
        for task, settings in {"purr": PLAIN, "grader": {}}.items()
    ]
    if kind == "sync":
        vector: gymnasium.vector.VectorEnv = gymnasium.vector.SyncVectorEnv(makers)
    else:
        vector = gymnasium.vector.AsyncVectorEnv(makers, shared_memory=False, context="spawn")
    try:
        observations, infos = vector.reset(seed=5)
        assert ["purr" in observations["text"][0], "grader" in observations["text"][1]] == [True, True]
        actions = (ToolCall("eval"), ToolCall("listdir"))
        observations, rewards, terminated, truncated, infos = vector.step(actions)
        assert rewards[0] == infos["score"][0] and rewards[1] == 0
        assert "grader_code.py" in observations["text"][1]
        assert not terminated.any() and not truncated.any()
    finally:
        vector.close()


SCRIPT = """
import json, sys
import debug_gym_core
env = debug_gym_core.make("mini_nightmare/tomorrow_date", terminal=sys.argv[1], entrypoint=sys.argv[3])
seen = [env.reset(seed=11)]
for action in json.loads(sys.argv[2]):
    seen.append(env.step(action))
env.close()
print(json.dumps(seen, sort_keys=True))
"""


def test_the_same_seed_and_actions_give_equal_bytes_in_two_processes(
    sandbox: str, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    actions = json.dumps([one.as_json() if isinstance(one, ToolCall) else one for one in ACTIONS])
    words = [sandbox, actions, PLAIN["entrypoint"]]
    there = subprocess.run([sys.executable, "-c", SCRIPT, *words], capture_output=True, check=True).stdout
    monkeypatch.setattr(sys, "argv", ["-c", *words])
    exec(SCRIPT, {})
    assert capsysbinary.readouterr().out == there
    assert len(json.loads(there)) == len(ACTIONS) + 1


def test_stepping_before_reset_is_an_error(fresh: RepoEnv) -> None:
    with pytest.raises(gymnasium.error.ResetNeeded):
        fresh.step(ToolCall("eval"))


def test_closing_twice_is_allowed(fresh: RepoEnv) -> None:
    fresh.reset()
    fresh.close()
    fresh.close()


def test_a_wrong_action_never_ends_the_episode(env: RepoEnv) -> None:
    env.reset(seed=0)
    for action in ["", "nosuch", {"name": None}, 3, None, ToolCall("view"), ToolCall("view", {"path": "/etc/passwd"}),
                   ToolCall("view", {"path": "a" * 10_000_000}), ToolCall("pdb", {"command": "\0"})]:  # fmt: skip
        observation, reward, terminated, truncated, _ = env.step(action)
        assert (reward, terminated, truncated) == (0, False, False)
        assert "Traceback" not in observation["text"]
        assert len(observation["text"]) < 10_000


def test_steps_and_rewrites_are_limited(sandbox: str) -> None:
    env = debug_gym_core.make("mini_nightmare/purr", ["rewrite", "view"], sandbox, max_steps=4, max_rewrites=2)
    env.reset(seed=0)
    write = {"name": "rewrite", "arguments": {"path": "new.py", "new_code": "x = 1\n"}}
    again = {"name": "rewrite", "arguments": {"path": "new.py", "new_code": "x = 2\n"}}
    assert env.step(write)[3] is False
    assert env.step(again)[3] is True
    env.reset(seed=0)
    assert [env.step("view purr_code.py 1 2")[3] for _ in range(4)] == [False, False, False, True]
    env.close()


def test_a_rewrite_that_fixes_the_bug_is_rewarded_and_graded_clean(env: RepoEnv) -> None:
    env.reset(seed=0)
    _, before, *_ = env.step(ToolCall("eval"))
    env.workspace.apply(env.task.gold_patch)
    _, reward, terminated, _, info = env.step(ToolCall("eval"))
    assert before + reward == info["max_score"]
    assert terminated and info["resolved"]
    grade = env.grade()
    assert (grade.resolved, grade.score, grade.grading) == (True, info["max_score"], "clean")
    assert env.patch.startswith(b"diff --git a/tomorrow_date_code.py b/tomorrow_date_code.py")
