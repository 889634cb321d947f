"""The environment's step: what tools say, what their events cause, and what goes wrong in them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator
from small_episodes import TEST, Write, make_env, parts

from debug_gym_core import Observation, RepoEnv, Tool, ToolCall, UsageError, hookimpl, hookspec
from debug_gym_core.errors import PluginError
from debug_gym_core.runs.jobs import EpisodeStopped
from debug_gym_core.runs.ledger import OutOfBudget, RunIsSpent
from debug_gym_core.runs.replaying import Enough


class Watch(Tool):
    """Say what changed."""

    name = "watch"

    def use(self, env: Any) -> Observation:
        """Announce something."""
        env.emit("on_announced", what="tea")
        return Observation(self.name, "announced", {"cups": 2})

    @hookimpl
    def on_file_changed(self, path: str, edits: Any) -> str:
        return f"{path}: {[(one.start, one.old, one.new) for one in edits]}"

    @hookimpl
    def on_announced(self, what: str) -> str:
        return f"there is {what}"


ODD: dict[str, Any] = {"number": (5,), "list": ("x", [1]), "keys": ("x", {1: 0, "a": 0})}


class Panic(BaseException):
    """As extensions raise it."""


def odd_number(value: int) -> int:
    """A validator that raises what none should."""
    if value % 2:
        return value
    raise {2: KeyError, 4: Panic}[value]("even")


class Clumsy(Tool):
    """Fail."""

    name = "clumsy"

    def use(self, env: Any, how: str = "plainly", odd: Annotated[int, AfterValidator(odd_number)] = 1) -> str:
        """Fail."""
        if how == "loop":
            env.emit("on_step", call=None)
            return "looping"
        if how == "exit":
            raise SystemExit(2)
        if how == "cancelled":
            raise asyncio.CancelledError
        if how == "generator":
            raise GeneratorExit
        if how == "panic":
            raise Panic("in the extension")
        if how == "nothing":
            return None  # type: ignore[return-value]
        if how == "set":
            return Observation(self.name, "x", {"s": {1, 2}})  # type: ignore[return-value]
        if how in ODD:
            return Observation(self.name, *ODD[how])
        if how == "surrogate":
            return "x\ud800"
        if how == "nan":
            return Observation(self.name, "x", {"n": float("nan")})
        if how == "long":
            return "x" * 10_000_000
        raise RuntimeError("stumbled\nover two lines")

    @hookimpl
    def on_step(self, env: Any, call: Any) -> None:
        if call is None:
            env.emit("on_step", call=None)
        elif call.name == "watch":
            raise KeyError("of the event")
        elif call.arguments.get("how") == "late":
            raise asyncio.CancelledError("too late")


class Specs:
    """An event of a third party."""

    @staticmethod
    @hookspec
    def on_announced(env: Any, what: str) -> str | None:
        """Something was announced."""


@pytest.fixture
def env(tmp_path: Path) -> Iterator[RepoEnv]:
    (tmp_path / "test_it.py").write_text(TEST)
    made = make_env(tmp_path, [Write(), Watch(), Clumsy()])
    made.add_event_specs(Specs)
    made.reset(seed=0)
    yield made
    made.close()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RepoEnv]:
    """One for tests that take a step or two, after which it is as before."""
    directory = tmp_path_factory.mktemp("repository")
    (directory / "test_it.py").write_text(TEST)
    made = make_env(directory, [Watch(), Clumsy(), Host()])
    made.reset(seed=0)
    yield made
    made.close()


def test_what_an_event_causes_is_in_the_same_observation_in_order(env: RepoEnv) -> None:
    observation, *_ = env.step("write a.py 'x = 1\n'")
    assert parts(observation) == [("write", "written"), ("watch", "a.py: [(1, 0, 1)]")]
    assert observation["text"] == "written\n\n[watch]\na.py: [(1, 0, 1)]"


def test_a_change_before_an_error_is_told_at_once(env: RepoEnv) -> None:
    observation, *_ = env.step("write a.py y true")
    assert parts(observation) == [("write", "write: written, and yet wrong"), ("watch", "a.py: [(1, 0, 1)]")]
    assert env.rewrites == 1
    assert parts(env.step("write b.py y")[0])[0] == ("write", "written")


def test_a_tools_own_exception_is_an_observation_without_a_traceback(env: RepoEnv) -> None:
    observation, reward, terminated, truncated, _ = env.step("clumsy")
    said = "clumsy failed: RuntimeError: stumbled over two lines\nexpected: clumsy [how] [odd]\nexample: "
    assert parts(observation) == [("clumsy", said + '{"name": "clumsy", "arguments": {}}')]
    assert (reward, terminated, truncated) == (0, False, False)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("exit", "clumsy failed: SystemExit: 2"),
        ("cancelled", "clumsy failed: CancelledError"),
        ("generator", "clumsy failed: GeneratorExit"),
        ("panic", "clumsy failed: Panic: in the extension"),
        ("late", "clumsy's on_step failed: CancelledError: too late"),
        ("plainly 2", "clumsy failed: KeyError: 'even'"),
        ("plainly 4", "clumsy failed: Panic: even"),
        ("nothing", "it must answer with text or an Observation, not NoneType"),
        ("set", "the data of its Observation are no JSON: Object of type set is not JSON serializable"),
        ("number", "its Observation must have a text, not int"),
        ("list", "its Observation must have data by their names, not list"),
        ("keys", "the data of its Observation are no JSON: '<' not supported"),
        ("surrogate", "x\\ud800"),
        ("nan", "not JSON compliant"),
        ("long", "characters left out"),
    ],
)
def test_what_a_tool_should_not_do_is_an_observation(lasting: RepoEnv, how: str, said: str) -> None:
    observation, _, terminated, _, _ = lasting.step(f"clumsy {how}")
    assert said in observation["text"]
    assert observation["text"].encode() and not terminated
    assert len(observation["json"]) < 50_000 and "NaN" not in observation["json"]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, EpisodeStopped, OutOfBudget, RunIsSpent, Enough])
def test_what_ends_an_episode_on_purpose_comes_through_a_tool(
    env: RepoEnv, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException]
) -> None:
    def raising(*_: Any) -> str:
        raise raised

    monkeypatch.setattr(Clumsy, "use", raising)
    with pytest.raises(raised):
        env.step(ToolCall("clumsy"))


def test_third_parties_add_events_and_failing_ones_stop_nobody(env: RepoEnv) -> None:
    observation, *_ = env.step("watch")
    assert parts(observation) == [
        ("watch", "announced"),
        ("watch", "there is tea"),
        ("clumsy", "clumsy's on_step failed: KeyError: 'of the event'"),
    ]
    assert json.loads(observation["json"])[0]["data"] == {"cups": 2}


class Deaf(Tool):
    """Misunderstand an event of somebody else."""

    name = "deaf"

    def use(self, env: Any) -> str:
        """Do nothing."""
        return "nothing"

    @hookimpl
    def on_announced(self, env: Any, tea: str) -> str:
        return tea

    @hookimpl
    def on_step(self, env: Any, call: Any = "none", more: str = "more") -> str:
        return f"{call.name} {more}"


class Host(Tool):
    """Specify an event, and cause it with the arguments that it is given."""

    name = "host"

    def use(self, env: Any, arguments: dict[str, Any]) -> str:
        """Cause it."""
        env.emit("on_announced", **arguments)
        return "announced"

    @hookimpl
    def on_reset(self, env: Any) -> str:
        env.add_event_specs(Specs)
        return "welcome"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    made = []

    def make(*tools: Tool) -> RepoEnv:
        (tmp_path / "test_it.py").write_text(TEST)
        made.append(make_env(tmp_path, tools))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_method_that_does_not_fit_its_event_is_an_error_at_once(make: Any) -> None:
    class Wrong(Clumsy):
        """Name an argument wrongly."""

        name = "wrong"

        @hookimpl
        def on_file_changed(self, env: Any, file: str) -> None: ...

    words = (
        "tool 'wrong' cannot be told of on_file_changed: wrong.on_file_changed: "
        "there is no argument 'file'; it has env, path, edits"
    )
    with pytest.raises(PluginError) as caught:
        make(Wrong())
    assert str(caught.value) == words


SLIPS = [
    ("on_stepped", "on_step"),
    ("evaluated", "on_evaluated"),
    ("on_evaluate", "on_evaluated"),
    ("on_submit", "on_submitted"),
    ("on_file_change", "on_file_changed"),
    ("on_rest", "on_reset"),
]
NOT_SLIPS = "file_created file_renamed tests_evaluated step_back restart reset_done announced moonrise"


@pytest.mark.parametrize(("slip", "event"), SLIPS)
def test_a_method_that_is_named_nearly_as_an_event_is_an_error_at_once(make: Any, slip: str, event: str) -> None:
    def heard(self: Any) -> None: ...

    marked = {f"on_{name}": hookimpl(heard) for name in NOT_SLIPS.split()}
    marked["on_steps"] = hookimpl(optionalhook=True)(lambda self: None)
    make(type("Meant", (Clumsy,), {"name": "meant", "__doc__": "Named otherwise.", **marked})())
    marked[slip] = hookimpl(heard)
    kind = type("Slip", (Clumsy,), {"name": "slip", "__doc__": "Named wrongly.", **marked})
    with pytest.raises(PluginError, match=f"^slip.{slip}: there is no event '{slip}'; did you mean '{event}'[?]$"):
        make(kind(), Host())


def test_who_misunderstands_an_added_event_is_named_and_not_who_added_it(make: Any) -> None:
    env = make(Watch(), Host(), Deaf())
    for _ in range(2):
        observation, _ = env.reset(seed=0)
        assert parts(observation)[1:] == [("host", "welcome")]
        assert parts(env.step({"name": "host", "arguments": {"arguments": {"what": "tea"}}})[0]) == [
            ("host", "announced"),
            ("watch", "there is tea"),
            ("deaf", "deaf.on_announced: there is no argument 'tea'; it has env, what"),
            ("deaf", "host more"),
        ]
        failed = env.last_observations[2]
        assert failed.error and failed.data == {"failed_on": "on_announced"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "the argument 'what' is missing; it has what"),
        ({"what": "tea", "sort": "green"}, "there is no argument 'sort'; it has what"),
        ({"what": "tea", "env": None}, "the environment gives the argument 'env' itself; it has what"),
        ({"what": "tea", "event": "x", "self": 1}, "there is no argument 'event'; it has what"),
    ],
)
def test_who_causes_an_event_with_wrong_arguments_is_told(
    lasting: RepoEnv, arguments: dict[str, Any], reason: str
) -> None:
    call = {"name": "host", "arguments": {"arguments": arguments}}
    ((source, text),) = parts(lasting.step(call)[0])
    assert source == "host" and text.startswith(f"host failed: UsageError: event on_announced: {reason}\nexpected: ")


def test_what_an_event_need_not_be_given_has_its_default(make: Any) -> None:
    class Generous:
        """An event with a default."""

        @staticmethod
        @hookspec
        def on_announced(env: Any, what: str = "coffee") -> str | None:
            """Something was announced."""

    env = make(Watch())
    env.add_event_specs(Generous)
    env.reset(seed=0)
    env.emit("on_announced")
    assert ("watch", "there is coffee") in parts(env.step("nonsense")[0])
    with pytest.raises(UsageError, match="Specs specifies on_announced, which is specified already"):
        env.add_event_specs(Specs)
    with pytest.raises(UsageError, match="specifies no event"):
        env.add_event_specs(object())


def test_events_that_cause_themselves_come_to_an_end(env: RepoEnv) -> None:
    observation, *_ = env.step("clumsy loop")
    assert "more than 100 events" in observation["text"]
    assert parts(env.step("write c.py z")[0])[0] == ("write", "written")


def test_the_task_is_told_at_the_start(env: RepoEnv, tmp_path: Path) -> None:
    observation, info = env.reset(seed=1)
    assert "unittest -q" in observation["text"]
    assert "write path text [fail]: Write a file." in observation["text"]
    assert str(tmp_path) not in observation["text"]
    assert info.pop("tools") == ["write", "watch", "clumsy"]
    assert info == {"score": 0, "max_score": 1, "resolved": False, "breakpoints": [], "step": 0}


def test_what_looking_for_the_tests_leaves_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(f"open('left', 'w').close()\n{TEST}")
    with contextlib.closing(make_env(tmp_path, [Write()])) as env:
        for _ in range(2):
            env.reset(seed=0)
            assert env.patch == b""


def test_a_setting_without_effect_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    said = "env.auto_eval_on_rewrite has no effect: the tool eval"
    with caplog.at_level(logging.WARNING, "debug_gym"):
        made = make_env(tmp_path, [Write()], auto_eval_on_rewrite=True)
        assert any(note.startswith(said) for note in made.notes) and said in caplog.text
        caplog.clear()
        made = make_env(tmp_path, [Write(), "eval"], auto_eval_on_rewrite=True)
        assert not any(said in note for note in made.notes)
        assert said not in caplog.text


def test_tools_in_a_mapping_have_their_settings(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("x = 1\n")
    made: Any = make_env(tmp_path, {"pdb": {"timeout": 1.5}}).tools["pdb"]
    assert made.settings.timeout == 1.5
    with pytest.raises(UsageError, match="timeuot"):
        make_env(tmp_path, {"pdb": {"timeuot": 1.5}})
