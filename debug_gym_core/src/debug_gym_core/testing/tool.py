"""What a tool promises."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import ActionError
from debug_gym_core.plugins import default_plugins
from debug_gym_core.testing.component import ComponentContract
from debug_gym_core.testing.environments import TERMINAL, Environments, unusable
from debug_gym_core.testing.hostile import Attempt, arguments, attempts
from debug_gym_core.testing.sample import SECRET
from debug_gym_core.tools import action as actions
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.event_checks import examine, methods
from debug_gym_core.tools.observation import TEXT_LIMIT, Observation
from debug_gym_core.tools.tool import Tool, example
from debug_gym_core.workspace.files import Workspace

JSON_LIMIT = 20 * TEXT_LIMIT
"""Characters that an observation may have as JSON, text and data together."""

OUTSIDE = "what lies outside of the workspace"
"""Content of a file that no tool may show."""

# Makes a directory beside the workspace and links that lead there; prints its path.
_LINKS = (
    'outside=$(mktemp -d); printf %s "$1" > "$outside/outside.txt"; ln -s "$outside/outside.txt" link.txt; '
    'ln -s "$outside" link; mkdir -p moved/inner; echo inner > moved/inner/outside.txt; rm -rf moved/inner; '
    'ln -s "$outside" moved/inner; printf %s "$outside"'
)


@dataclass(frozen=True)
class Change:
    """A change of a file of the sample, in two ways; `what` says which, after who did it."""

    what: str
    by_tool: Callable[[Workspace], object]
    by_command: str


CHANGES = (
    Change("changed a file", lambda files: files.write_text("hello.txt", "hello\n"), "printf 'again\\n' >> hello.txt"),
    Change(
        "made a file that is not UTF-8",
        lambda files: files.write_bytes("by a tool.txt", b"caf\xe9\n"),
        r"printf 'caf\351\n' > 'by a command.txt'",
    ),
    Change("deleted a file", lambda files: files.remove("hello.txt"), "rm docs/guide.md"),
)


class ToolContract(ComponentContract):
    """The tests that every tool must pass. They run in the sample repository (`debug_gym_core.testing.sample`).

    Attributes:
        tool: the tool's class
        calls: arguments of calls that must work, in this order, on the sample; at least one
        paths: names of arguments that are paths in the repository
        writes: whether the tool changes the file that a path names, so that read-only files must be refused
        companions: tools that must be there beside it
        more_files: files to add to the sample or to replace in it, content by path
        env_settings: further settings of the environment, fields of the task among them
        terminal: the terminal to try it in; one that isolates for a tool that runs what it is told
        tries: how many random argument sets hypothesis tries
    """

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

    @pytest.fixture(scope="class")
    @staticmethod
    def make(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
        """Make environments with the tool."""
        contract: type[ToolContract] = request.cls
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

    # What it says of itself

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
        shown = json.loads(example(self.tool))
        for one in [shown["arguments"], *self.tool.examples]:
            assert json.loads(json.dumps(dict(one))) == dict(one), f"example {one} is not JSON"
            assert self.tool.check(one) == dict(one)
        parsed = actions.parse(json.dumps(shown), {self.tool.name: self.tool})
        assert parsed == ToolCall(self.tool.name, shown["arguments"])

    def test_instructions_mention_it(self, env: RepoEnv) -> None:
        """Who reads the first observation knows that the tool is there."""
        assert f"- {self.tool.name}" in env.instructions()
        assert self.tool.name in env.tools

    # What it answers

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
        for attempt in attempts(self.tool.schema()["parameters"], good):
            seen = self.attempt(env, attempt)
            if attempt.wrong is not None:
                label = f"{self.tool.name} with {attempt.label}"
                assert seen.error, f"{label} is no error: {seen.text[:500]}"
                assert attempt.wrong in seen.text, f"{label}: the answer does not name it: {seen.text[:500]}"
                assert right in seen.text, f"{label}: the answer has no example: {seen.text[:500]}"
            elif not seen.error:
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
            max_examples=self.tries, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
        )
        settings(hypothesis.given(arguments(self.tool.schema()["parameters"], known))(check))()

    # What it answers to events

    def test_events_are_known_and_marked(self) -> None:
        """Its methods `on_*` are called: each is marked `@hookimpl`, of an event that exists, with its arguments."""
        found = examine(self.tool, [module.__name__ for module in default_plugins().manager.get_plugins()])
        assert not found.wrong, "; ".join(found.wrong)
        assert not found.doubtful, "; ".join(found.doubtful)

    def test_events_are_answered(self, env: RepoEnv) -> None:
        """It raises on no event that it answers: each is caused, and changes of files in every way."""
        answered = {one.event for one in methods(self.tool) if one.marked}
        if not answered:
            pytest.skip("answers no event")
        self.events_work(env, "the episode began")
        if answered & {"on_step", "on_file_changed"}:
            for number, change in enumerate(CHANGES):
                with contextlib.suppress(ActionError):  # a task may protect any file
                    change.by_tool(env.workspace)
                env.step("")
                self.events_work(env, f"a tool {change.what}")
                env.session.run(["sh", "-c", change.by_command], timeout=60)
                env.step(ToolCall(self.tool.name, self.good() if number else {"no_such_argument": 1}))
                self.events_work(env, f"a command {change.what}")
        if "on_evaluated" in answered:
            env.measure()
            env.step("")
            self.events_work(env, "the tests were run")
        if "on_submitted" in answered:
            for message in ("The first price was left out.", None):
                env.submit(message)
                env.step("")
                self.events_work(env, "the episode was submitted")
                env.reset(seed=0)

    # Where it may go

    def test_paths_out_of_the_workspace_are_refused(self, env: RepoEnv) -> None:
        """Through `..`, absolute paths and links, whenever they were made."""
        if not self.path_calls():
            pytest.skip("takes no path")
        outside = env.session.run(["sh", "-c", _LINKS, "sh", OUTSIDE], timeout=60).output
        doors = ["..", "../outside", "docs/../../x", "/", "/etc/passwd", "//etc/passwd", f"{outside}/outside.txt"]
        doors += ["link", "link.txt", "link/outside.txt", "moved/inner", "moved/inner/outside.txt", "link/new.txt"]
        for one, name in self.path_calls():
            for path in doors:
                seen = self.answer(env, {**one, name: path})
                assert seen.error, f"{self.tool.name} with {name}={path!r} is not refused: {seen.text[:500]}"
                assert OUTSIDE not in json.dumps(seen.as_json())
        files = env.session.run(["sh", "-c", 'cat "$1"/*; ls -A "$1"', "sh", outside], timeout=60).output
        assert files == f"{OUTSIDE}outside.txt\n", f"{self.tool.name} changed what lies outside"

    def test_ignored_files_are_refused(self, env: RepoEnv) -> None:
        """What the task hides is neither shown nor named by a tool that takes paths."""
        if not self.path_calls():
            pytest.skip("takes no path")
        env.session.run("ln -s secret/plan.txt friendly.txt; ln -s secret friendly", timeout=60)
        for one, name in self.path_calls():
            for path in ("secret", "secret/plan.txt", "./secret/../secret/plan.txt", "friendly.txt", "friendly"):
                seen = self.answer(env, {**one, name: path})
                assert seen.error, f"{self.tool.name} with {name}={path!r} is not refused: {seen.text[:500]}"
                assert SECRET not in json.dumps(seen.as_json())
        env.session.run("rm friendly.txt friendly", timeout=60)
        for one in self.calls:
            said = json.dumps(self.answer(env, one).as_json())
            assert SECRET not in said and "plan.txt" not in said, f"{self.tool.name} {dict(one)} shows what is ignored"
        assert env.session.read("secret/plan.txt") == f"{SECRET}\n".encode()

    def test_readonly_files_are_not_changed(self, env: RepoEnv) -> None:
        """A tool that writes refuses them; none changes them."""
        path = "test_shop.py"
        before = env.session.read(path)
        for one, name in self.path_calls():
            seen = self.answer(env, {**one, name: path})
            if self.writes:
                assert seen.error, f"{self.tool.name} with {name}={path!r} is not refused: {seen.text[:500]}"
        for one in self.calls:
            self.answer(env, one)
        assert env.session.read(path) == before, f"{self.tool.name} changed a read-only file"

    # How it ends

    def test_close_may_be_called_at_any_time(self, env: RepoEnv) -> None:
        """Before the first use, twice, and in the middle: a reset calls it too."""
        fresh = self.tool(**self.settings)
        fresh.close()
        fresh.close()
        self.calls_work(env)
        made = env.tools[self.tool.name]
        made.close()
        made.close()
        env.reset(seed=0)
        self.calls_work(env)

    def test_a_restarted_sandbox_is_no_obstacle(self, env: RepoEnv) -> None:
        """When the processes in the sandbox were lost, the agent is told, and the next episode's calls work."""
        self.calls_work(env)
        env.reset(seed=0)
        self.calls_work(env)
        if not env.session.terminal.isolates:  # elsewhere the number means nothing here
            os.kill(env.session.guest()["pid"], signal.SIGKILL)
            observation, *_ = env.step(ToolCall(self.tool.name, self.good()))
            assert observation["text"].strip()
            env.reset(seed=0)
            self.calls_work(env)

    def test_a_lost_sandbox_ends_the_episode_not_the_program(self, env: RepoEnv) -> None:
        """A call after the sandbox is gone for good is answered, whether the tool needs the sandbox or not."""
        self.calls_work(env)
        env.session.terminal.stop()
        observation, *_ = env.step(ToolCall(self.tool.name, self.good()))
        assert observation["text"].strip()
        env.reset(seed=0)
        self.calls_work(env)

    def test_nothing_is_left_when_the_environment_is_closed(self, make: Callable[..., RepoEnv]) -> None:
        """No thread of the tool outlives the environment."""
        before = set(threading.enumerate())
        env = make()
        self.calls_work(env)
        env.close()
        deadline = time.monotonic() + 5
        while left := [one.name for one in set(threading.enumerate()) - before if one.is_alive()]:
            assert time.monotonic() < deadline, f"threads left: {left}"
            time.sleep(0.01)

    # Parts of the tests

    def good(self) -> dict[str, Any]:
        """Arguments that are right."""
        assert self.calls, f"{type(self).__name__}.calls is empty: list arguments that must work on the sample"
        return dict(self.calls[0])

    def path_calls(self) -> list[tuple[Mapping[str, Any], str]]:
        """For each argument that is a path, a call that has it, and its name."""
        known = [name for name in self.paths if name in self.tool.parameters()]
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
