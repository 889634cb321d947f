"""What an agent promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from debug_gym_core.agents.agent import Agent, AgentSettings
from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import DebugGymError, LLMError
from debug_gym_core.models.llm import LLM, Completion, Message
from debug_gym_core.plugins import default_plugins
from debug_gym_core.testing.component import ComponentContract
from debug_gym_core.testing.environments import TERMINAL, Environments, unusable
from debug_gym_core.testing.sample import BY_UNITTEST, FIXED_SHOP
from debug_gym_core.testing.scripted import ScriptedLLM
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.tool import Tool

SEEN = "all as before"
"""What the tool `look` says."""

PATIENCE = 200
"""Calls of a model after which an agent should have understood that it fails."""


class Fix(Tool):
    """Mend the sample's bug and run the tests."""

    name = "fix"

    def use(self, env: RepoEnv) -> str:
        """Write the file without the bug."""
        env.workspace.write_text("shop.py", FIXED_SHOP)
        env.measure()
        return f"fixed; {env.score} of {env.max_score} tests pass"


class Look(Tool):
    """Look around."""

    name = "look"

    def use(self, env: RepoEnv) -> str:
        """Do nothing."""
        return SEEN


class AgentContract(ComponentContract):
    """The tests that every agent must pass. It plays the sample task (`debug_gym_core.testing.sample`).

    The agent has the tools that it names (`Agent.tools`), or two of the kit's: `look` does nothing, `fix` mends
    the bug.

    Attributes:
        agent: the agent's class
        actions: what the model answers, turn by turn, so that the task is solved
        resolves: whether the task is resolved then
    """

    agent: ClassVar[type[Agent]]
    actions: ClassVar[Sequence[ToolCall | Mapping[str, Any] | str]] = ("look", "fix")
    resolves: ClassVar[bool] = True
    _kind: ClassVar[str] = "agents"

    @pytest.fixture
    def make(self, tmp_path: Path) -> Iterator[Callable[..., RepoEnv]]:
        """Make environments of the sample task for the agent."""
        if reason := unusable(TERMINAL):
            pytest.skip(reason)
        with Environments(tmp_path) as environments:

            def make(**settings: Any) -> RepoEnv:
                tools = [Look(), Fix()] if self.agent.tools is None else list(self.agent.tools)
                # What it does is on trial, not the tests of the sample.
                settings = {"end_on_resolved": self.agent.end_on_resolved, "twins": "never", **BY_UNITTEST, **settings}
                return watched(environments.make(tools, **settings))

            yield make

    def test_its_settings_are_an_agents(self) -> None:
        """So that the environment and the run find their limits in them."""
        assert issubclass(self.agent.Settings, AgentSettings)

    def test_its_tools_are_installed(self) -> None:
        """It names tools that there are, or takes those of the config."""
        for name in self.agent.tools or ():
            default_plugins().get("tools", name)

    def test_it_plays_to_the_end(self, make: Callable[..., RepoEnv]) -> None:
        """With the right actions the task is resolved, and nothing is done after the end."""
        env = make(max_steps=50)
        llm = ScriptedLLM(self.actions) if self.agent.needs_llm else None
        self.agent(**self.settings).play(env, llm)
        grade = env.final_grade or env.grade()
        assert grade.resolved is self.resolves, (
            f"the task is {'' if grade.resolved else 'not '}resolved, though the contract class says "
            f"resolves = {self.resolves}; score {grade.score} of {grade.max_score}; patch:\n{env.patch.decode()}"
        )
        if llm is not None:
            assert llm.seen, "it never asked the model"
            assert any(env.task.description in message.content for message in llm.seen[0]), "it did not say the task"
            offered = {tool["name"] for tool in llm.offered[0]}
            assert offered <= set(env.tools)
            if self.agent.tools is None and self.actions[0] == "look" and len(llm.seen) > 1:
                told = "\n".join(message.content for message in llm.seen[1])
                assert SEEN in told, f"it did not tell the model what the tool said: {SEEN}"

    def test_it_ends_when_the_episode_is_truncated(self, make: Callable[..., RepoEnv]) -> None:
        """After the last step that it may take it takes no other."""
        for limit in (1, 3):
            env = make(max_steps=limit)
            name = next(iter(env.tools), "look")
            try:
                self.agent(**self.settings).play(
                    env, ScriptedLLM([ToolCall(name)] * PATIENCE) if self.agent.needs_llm else None
                )
            except DebugGymError:
                assert not self.agent.needs_llm  # a script that needs more steps may say so
            assert env.steps <= limit

    def test_it_lives_with_answers_that_make_no_sense(self, make: Callable[..., RepoEnv]) -> None:
        """Unknown tools, wrong arguments, text without a call."""
        if not self.agent.needs_llm:
            pytest.skip("no model drives it")
        env = make(max_steps=10)
        nonsense = [
            ToolCall("no_such_tool"),
            ToolCall("look", {"x": 1}, "1"),
            ToolCall("", {}, "2"),
            ToolCall("{", {}, "3"),
        ]
        llm = ScriptedLLM(nonsense * 5, last="I do not know what to do.")
        self.agent(**self.settings).play(env, llm)
        assert env.steps <= 10 and env.failure is None
        if len(llm.seen) > 1:
            told = "\n".join(message.content for message in llm.seen[1])
            assert "no_such_tool" in told, "it did not tell the model that there is no such tool"

    def test_a_model_that_fails_ends_the_episode(self, make: Callable[..., RepoEnv]) -> None:
        """Its error goes to who called; the backend has tried again already."""
        if not self.agent.needs_llm:
            pytest.skip("no model drives it")
        env = make(max_steps=10)
        with pytest.raises(LLMError, match="out of order"):
            self.agent(**self.settings).play(env, Broken())

    def test_a_model_that_is_missing_is_missed(self, make: Callable[..., RepoEnv]) -> None:
        """An agent that needs one says so, one that does not plays."""
        env = make(max_steps=50)
        agent = self.agent(**self.settings)
        if self.agent.needs_llm:
            with pytest.raises(DebugGymError):
                agent.play(env, None)
        else:
            agent.play(env, None)


class Broken(LLM):
    """A model that always fails."""

    name = "broken"

    def __init__(self) -> None:
        """Count."""
        super().__init__()
        self._asked = 0

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Fail."""
        self._asked += 1
        assert self._asked < PATIENCE, "the agent asks a model for ever that always fails"
        raise LLMError("the model is out of order")


def watched(env: RepoEnv) -> RepoEnv:
    """Let an environment refuse steps after its end."""
    step = env.step
    over: list[str] = []

    def watch(action: Any) -> Any:
        assert not over, f"it goes on after the episode was {over[0]}"
        result = step(action)
        over.extend(word for word, is_so in (("terminated", result[2]), ("truncated", result[3])) if is_so)
        return result

    env.step = watch  # type: ignore[method-assign]
    return env
