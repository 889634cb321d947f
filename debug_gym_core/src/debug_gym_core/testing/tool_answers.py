"""What a tool says of itself, and how it answers calls: right ones, wrong ones, any."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.testing.hostile import Attempt, arguments, attempts
from debug_gym_core.testing.tool_calls import ToolTests
from debug_gym_core.tools import action as actions
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.tool import example


class AnswerTests(ToolTests):
    """Calls are explained and answered, never with an exception."""

    def test_schema_is_json_schema_and_every_argument_is_explained(self) -> None:
        """Models are shown what each argument means, not only its name."""
        schema = self.tool.schema()
        assert json.loads(json.dumps(schema)) == schema
        assert set(schema) == {"name", "description", "parameters"}
        assert schema["name"] == self.tool.name and schema["description"] == self.tool.help()
        parameters = schema["parameters"]
        assert parameters["type"] == "object"
        properties = parameters["properties"]
        assert list(properties) == self.tool.parameters()
        assert set(parameters.get("required", ())) <= set(properties)
        for name, one in properties.items():
            assert {"type", "anyOf", "oneOf", "enum", "const", "$ref"} & set(one), f"argument {name} has no type"
            assert one.get("description", "").strip(), (
                f"argument {name} is not explained: say what it is under `Args:` in the docstring of"
                f" {self.tool.__name__}.use"
            )

    def test_examples_are_right(self) -> None:
        """What an agent is shown when its call was wrong is a call that is right."""
        right = example(self.tool)
        assert right, f"no example can be made up that the types of {self.tool.name} take: give it `examples`"
        shown = json.loads(right)
        for one in [shown["arguments"], *self.tool.examples]:
            assert json.loads(json.dumps(dict(one))) == dict(one), f"example {one} is not JSON"
            assert self.tool.check(one) == dict(one)
        parsed = actions.parse(json.dumps(shown), {self.tool.name: self.tool})
        assert parsed == ToolCall(self.tool.name, shown["arguments"])

    def test_instructions_mention_it(self, env: RepoEnv) -> None:
        """Who reads the first observation knows that the tool is there."""
        assert f"- {self.tool.name}" in env.instructions()
        assert self.tool.name in env.tools

    def test_calls_work(self, env: RepoEnv) -> None:
        """Each of `calls` answers with a bounded observation that is JSON, and no error."""
        assert self.calls, f"{type(self).__name__}.calls is empty: list arguments that must work on the sample"
        for one in self.calls:
            seen = self.answer(env, one)
            assert not seen.error, f"{self.tool.name} {dict(one)}: {seen.text}"
            assert seen.text.strip(), f"{self.tool.name} {dict(one)} says nothing"

    def test_null_counts_as_left_out(self, env: RepoEnv) -> None:
        """Models fill in null for what they do not want to say."""
        parameters = self.tool.schema()["parameters"]
        optional = set(parameters["properties"]) - set(parameters.get("required", ()))
        for one in self.calls:
            seen = self.answer(env, {**dict.fromkeys(sorted(optional)), **one})
            assert not seen.error, f"{self.tool.name} {dict(one)} with null for what is left out: {seen.text}"

    def test_the_same_episode_twice_reads_the_same(self, make: Callable[..., RepoEnv], env: RepoEnv) -> None:
        """No temporary path, time, process id or address is in what it says, and reset() forgets everything."""
        first = self.episode(env)
        env.reset(seed=0)
        again = (
            "after reset() it reads otherwise: the tool keeps something, or a path, time or number of the sandbox shows"
        )
        assert self.episode(env) == first, again
        assert self.episode(make()) == first, "in another environment it reads otherwise"

    def test_wrong_arguments_are_answered_with_what_is_wrong_and_an_example(self, env: RepoEnv) -> None:
        """Whatever the arguments are: an observation, which names what is wrong and shows a right call."""
        good = self.good()
        right = example(self.tool)
        worked = False
        for attempt in attempts(self.tool.schema()["parameters"], good):
            commands = env.session.commands
            seen = self.attempt(env, attempt)
            if attempt.wrong is not None:
                label = f"{self.tool.name} with {attempt.label}"
                assert seen.error, f"{label} is no error: {seen.text[:500]}"
                assert attempt.wrong in seen.text, f"{label}: the answer does not name it: {seen.text[:500]}"
                assert right in seen.text, f"{label}: the answer has no example: {seen.text[:500]}"
            elif not seen.error:
                worked = True
                self.put_back(env, commands)
        if worked:
            env.reset(seed=0)
        for nonsense in (5, "text", ["a"], True):
            seen = self.attempt(env, Attempt(f"{nonsense!r} as arguments", nonsense))
            assert seen.error and right in seen.text
        assert not self.answer(env, good).error, f"after wrong arguments, {self.tool.name} {good} does not work"

    def test_any_arguments_are_answered(self, env: RepoEnv) -> None:
        """As above, with arguments that hypothesis invents."""
        hypothesis: Any = pytest.importorskip("hypothesis", reason="needs hypothesis: pip install hypothesis")
        known = {name: [one[name] for one in self.calls if name in one] for name in self.tool.parameters()}
        for name in self.paths:
            known.setdefault(name, []).extend([".", "shop.py", "docs", "secret/plan.txt", "../x", "/etc/passwd"])

        def check(tried: dict[str, Any]) -> None:
            self.attempt(env, Attempt(f"{tried!r:.500}", tried))

        settings = hypothesis.settings(
            max_examples=min(self.tries, hypothesis.settings().max_examples),  # a profile may want fewer
            deadline=None,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        settings(hypothesis.given(arguments(self.tool.schema()["parameters"], known))(check))()
