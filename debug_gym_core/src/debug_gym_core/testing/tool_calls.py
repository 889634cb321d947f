"""What the tests of tools share: an environment with the tool, calls of it, and what holds of every answer."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import ActionError
from debug_gym_core.testing.component import ComponentContract
from debug_gym_core.testing.environments import TERMINAL, Environments, unusable
from debug_gym_core.testing.hostile import Attempt
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.observation import TEXT_LIMIT, Observation
from debug_gym_core.tools.tool import Tool

_PATH = re.compile(r"(^|_)(path|file|filename|directory|folder)$")
"""Names of arguments that are paths."""

JSON_LIMIT = 20 * TEXT_LIMIT
"""Characters that an observation may have as JSON, text and data together."""


class ToolTests(ComponentContract):
    """Base of the classes that try a tool; `ToolContract` says what its attributes are for."""

    tool: ClassVar[type[Tool]]
    calls: ClassVar[Sequence[Mapping[str, Any]]] = ()
    paths: ClassVar[Sequence[str]] = ("path",)
    writes: ClassVar[bool] = False
    companions: ClassVar[Sequence[Any]] = ()
    more_files: ClassVar[Mapping[str, str | bytes]] = {}
    env_settings: ClassVar[Mapping[str, Any]] = {}
    terminal: ClassVar[str] = TERMINAL
    tries: ClassVar[int] = 50
    _kind: ClassVar[str] = "tools"

    @classmethod
    def check_attributes(cls) -> None:
        """Check also `calls`; see `ComponentContract.check_attributes`."""
        super().check_attributes()
        calls: Any = cls.calls
        if isinstance(calls, str | Mapping) or not all(isinstance(one, Mapping) for one in calls):
            raise TypeError(
                f"{cls.__name__}.calls must be a list of the arguments of each call, by name, as in "
                f'`calls = [{{"path": "hello.txt"}}]`, not {calls!r:.80}'
            )

    @pytest.fixture(scope="class")
    @staticmethod
    def make(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
        """Make environments with the tool."""
        contract: type[ToolTests] = request.cls
        reason = unusable(contract.terminal)
        if reason:
            pytest.skip(reason)
        with Environments(tmp_path_factory.mktemp("contract"), contract.terminal) as environments:

            def make(**settings: Any) -> RepoEnv:
                tools = [contract.tool(**contract.settings), *contract.companions]
                return environments.make(tools, more_files=contract.more_files, **{**contract.env_settings, **settings})

            yield make

    @pytest.fixture(scope="class")
    @staticmethod
    def live(make: Callable[..., RepoEnv]) -> RepoEnv:
        """An environment with the tool, for all tests of the class."""
        return make()

    @pytest.fixture
    def env(self, live: RepoEnv) -> RepoEnv:
        """The environment, at the start of an episode."""
        live.reset(seed=0)
        return live

    def good(self) -> dict[str, Any]:
        """Arguments that are right."""
        assert self.calls, f"{type(self).__name__}.calls is empty: list arguments that must work on the sample"
        return dict(self.calls[0])

    def path_calls(self) -> list[tuple[Mapping[str, Any], str]]:
        """For each argument that is a path, a call that has it, and its name."""
        known = [name for name in self.paths if name in self.tool.parameters()]
        others = [name for name in self.tool.parameters() if name not in known and _PATH.search(name)]
        assert not others, f"{type(self).__name__}.paths does not name {', '.join(others)}: is that no path?"
        found: list[tuple[Mapping[str, Any], str]] = []
        for name in known:
            fitting = [one for one in self.calls if name in one]
            found.append((fitting[0] if fitting else self.good(), name))
        return found

    def calls_work(self, env: RepoEnv) -> None:
        """Carry out `calls`."""
        for one in self.calls:
            seen = self.answer(env, one)
            assert not seen.error, f"{self.tool.name} {dict(one)}: {seen.text}"

    def events_work(self, env: RepoEnv, what: str = "") -> None:
        """Hold the last observation against what a tool may say on events: anything, but not that it raised.

        Args:
            env: the environment
            what: what was done
        """
        for one in env.last_observations:
            if one.source == self.tool.name and (event := one.data.get("failed_on")):
                raise AssertionError(f"{f'when {what}, ' if what else ''}{one.source}.{event} raised: {one.text[:500]}")

    def episode(self, env: RepoEnv) -> list[dict[str, str]]:
        """What an agent reads when it makes `calls` and a call that is wrong."""
        seen = []
        for one in [*self.calls, {"no_such_argument": 1}, *self.calls]:
            self.answer(env, one)
            seen.append(dict(env.step("no such tool")[0]) | {"said": json.dumps([o.as_json() for o in self.said])})
        return seen

    def put_back(self, env: RepoEnv, commands: int) -> None:
        """Have the repository as it was before a call: its files, or by a new episode, which costs more.

        Args:
            env: the environment
            commands: that had been started in the sandbox: what the call has started may go on
        """
        pristine = env.task.repository
        if pristine is not None and env.session.commands == commands:
            with contextlib.suppress(ActionError, OSError):
                for path in env.workspace.changes():
                    if (pristine / path).exists():
                        env.workspace.write_bytes(path, (pristine / path).read_bytes())
                    else:
                        env.workspace.remove(path)
            if not env.workspace.changes():
                return
        env.reset(seed=0)

    def attempt(self, env: RepoEnv, attempt: Attempt) -> Observation:
        """Try arguments, in a new episode when the last one is over."""
        if env.submitted or env.failure is not None:
            env.reset(seed=0)
        try:
            return self.answer(env, attempt.arguments)
        except AssertionError as error:
            raise AssertionError(f"{self.tool.name} with {attempt.label}: {str(error)[:2000]}") from None

    def answer(self, env: RepoEnv, arguments: Any) -> Observation:
        """Make a call and hold its answer against what every answer must be."""
        try:
            observation, reward, terminated, truncated, info = env.step(ToolCall(self.tool.name, arguments))
        except ActionError as error:
            raise AssertionError(f"env.step raised {error!r:.500}") from None
        self.said = env.last_observations
        seen = env.last_observations[0]
        self.events_work(env)
        name = self.tool.name
        assert seen.source == name, f"the first to speak is {seen.source}, not {name}: {seen.text[:500]}"
        assert not seen.text.startswith(f"{name} failed: "), f"it raised: {seen.text[:500]}"
        assert len(seen.text) <= TEXT_LIMIT, f"its text has {len(seen.text)} characters, over {TEXT_LIMIT}"
        assert len(observation["json"]) <= JSON_LIMIT, f"text and data have {len(observation['json'])} characters"
        json.dumps(seen.as_json(), allow_nan=False)
        observation["text"].encode()
        own = Path(inspect.getfile(self.tool)).parent
        assert str(own) not in observation["text"], f"a traceback of its own is in: {seen.text[:500]}"
        assert env.failure is None and not truncated
        assert not terminated or env.submitted or env.resolved
        assert isinstance(reward, float) and info["step"] == env.steps
        return seen
