"""Tools that are taken away and given back, and how an episode says why it ended."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core import Observation, RepoEnv, Tool, ToolCall, hookimpl, hookspec
from debug_gym_core.testing.environments import Environments
from debug_gym_core.testing.sample import FIXED_SHOP, SHOP


class Listener(Tool):
    """Tells what it hears."""

    name = "listener"

    def __init__(self) -> None:
        """Nothing heard yet."""
        super().__init__()
        self.closed = 0

    def use(self, env: RepoEnv) -> str:
        """Answer."""
        return "used"

    @hookimpl
    def on_step(self, env: RepoEnv, call: ToolCall) -> str:
        """Answer."""
        return f"heard {call.name}"

    @hookimpl
    def on_noise(self, env: RepoEnv) -> str:
        """Answer."""
        return "heard a noise"

    def close(self) -> None:
        """Count."""
        self.closed += 1


class Specs:
    """An event of one's own."""

    @hookspec
    def on_noise(self, env: RepoEnv) -> None:
        """A noise was made."""


class Noise(Tool):
    """Makes a noise."""

    name = "noise"

    def use(self, env: RepoEnv) -> str:
        """Make it."""
        env.add_event_specs(Specs)
        env.emit("on_noise")
        return "a noise"


class Write(Tool):
    """Mend the bug."""

    name = "write"

    def use(self, env: RepoEnv, code: str) -> str:
        """Write the file."""
        env.workspace.write_text("shop.py", code)
        return "written"


@pytest.fixture
def environments(tmp_path: Path) -> Iterator[Environments]:
    with Environments(tmp_path) as made:
        yield made


def test_a_withheld_tool_is_unknown_and_deaf_until_it_is_given_back(environments: Environments) -> None:
    listener = Listener()
    env = environments.make([Noise(), listener, Write()])
    env.withhold("listener", "nothing")
    assert (list(env.tools), env.info["tools"], listener.closed > 0) == (["noise", "write"], ["noise", "write"], True)
    assert "listener" not in env.instructions()
    text = env.step(ToolCall("listener"))[0]["text"]
    assert text.startswith("there is no tool 'listener'") and "heard" not in text
    assert env.step(ToolCall("noise"))[0]["text"] == "a noise"
    env.reset(seed=0)
    assert list(env.tools) == ["noise", "write"]
    env.give_back("listener")
    env.give_back("listener", "nothing")
    assert list(env.tools) == ["noise", "listener", "write"]
    assert env.step(ToolCall("listener"))[0]["text"] == "used\n\n[listener]\nheard listener"
    assert env.step(ToolCall("noise"))[0]["text"].count("heard") == 2


def test_a_withheld_tool_that_cannot_be_closed_keeps_no_other_from_being_withheld(
    environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck() -> None:
        raise RuntimeError("stuck")

    listener = Listener()
    env = environments.make([Noise(), listener, Write()])
    monkeypatch.setattr(env.tools["write"], "close", stuck)
    env.withhold("write", "listener")
    assert list(env.tools) == ["noise"] and listener.closed > 0
    assert env.step(ToolCall("noise"))[0]["text"] == "a noise"


def test_an_episode_says_why_it_ended(environments: Environments) -> None:
    files = {"shop.py": SHOP, "check.py": "from shop import total\nassert total([1]) == 1\n"}
    checked = {"files": files, "entrypoint": "python check.py"}
    tools = ["submit", "eval", Write()]
    mend = ToolCall("write", {"code": FIXED_SHOP})
    for wanted, actions, settings in (
        ("submitted", ["eval", "submit"], {}),
        ("resolved", [mend, "eval"], {}),
        ("max_steps", ["eval", "eval"], {"max_steps": 2}),
        ("max_rewrites", [ToolCall("write", {"code": "1\n"}), ToolCall("write", {"code": "2\n"})], {"max_rewrites": 2}),
        ("time", ["eval"], {"max_seconds": 0.0}),
        (None, [mend, "eval"], {"end_on_resolved": False}),
    ):
        env = environments.make(tools, **checked, **settings)
        for number, action in enumerate(actions, 1):
            _, _, terminated, truncated, _ = env.step(action)
            over = number == len(actions) and wanted is not None
            assert (terminated or truncated, env.ended) == (over, wanted if over else None)
        env.reset()
        assert env.ended is None


class Debugger(Tool):
    """Sets a breakpoint."""

    name = "gdb"
    sets_breakpoints = True

    def use(self, env: RepoEnv, line: int, silent: bool = True) -> Observation:
        """Set one."""
        env.breakpoints.add("shop.py", line)
        return Observation(self.name, "set", {} if silent else {"breakpoints": env.breakpoints.as_json()})


def test_each_observation_has_the_breakpoints_for_programs(environments: Environments) -> None:
    env = environments.make([Debugger(), "view"])
    actions: list[Any] = ["gdb 1", "gdb 2 silent=false", "gdb x", "view shop.py", "nothing", {"arguments": {}}, ""]
    steps = []
    for take in [functools.partial(env.reset, seed=0), *(functools.partial(env.step, action) for action in actions)]:
        steps.append(take())
        assert all(one.text for one in env.last_observations)  # who said nothing is not among those who spoke
    for observation, *_, info in steps:
        said = [one["data"] for one in json.loads(observation["json"]) if one["source"] == "gdb"]
        (told,) = [data["breakpoints"] for data in said if "breakpoints" in data]
        assert [f"{one['number']} at {one['file']}:{one['line']}" for one in told] == info["breakpoints"]
    assert len(env.breakpoints) == 2 and not any("[gdb]" in observation["text"] for observation, *_ in steps)
    env.withhold("gdb")
    assert [one["source"] for one in json.loads(env.step("view shop.py")[0]["json"])] == ["view"]


class Other(Debugger):
    """Another debugger."""

    name = "lldb"


def test_of_two_debuggers_the_one_that_was_called_tells_the_breakpoints(environments: Environments) -> None:
    env = environments.make([Debugger(), Other(), "view"])
    for action, source in (("lldb 1", "lldb"), ("gdb 2", "gdb"), ("lldb x", "lldb"), ("view shop.py", "gdb")):
        told = json.loads(env.step(action)[0]["json"])
        debuggers = [one for one in told if one["source"] in ("gdb", "lldb") and "breakpoints" in one["data"]]
        assert [one["source"] for one in debuggers] == [source], action


def test_a_call_that_makes_no_sense_is_marked_one_that_fails_is_not(environments: Environments) -> None:
    env = environments.make(["view"])
    wrong = ["", "nothing", ToolCall("view", "{", "1"), ToolCall("view", {"x": 1}), {"arguments": {}}]
    for action in wrong:
        env.step(action)
        assert env.last_observations[0].data == {"malformed": True}, action
    env.step(ToolCall("view", {"path": "absent.py"}))
    assert env.last_observations[0].error and not env.last_observations[0].data
