"""Actions of every form, however wrong: the answer says what was wrong and how it is right, and the episode goes on.

What each tool answers to arguments of every kind is part of its contract (`debug_gym_core.testing.ToolContract`); here
all that are installed are in one environment, and actions come as models and their SDKs send them: as calls, as JSON,
as text.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from debug_gym_core import RepoEnv, Task, ToolCall
from debug_gym_core.plugins import default_plugins
from debug_gym_core.testing.hostile import DEPTH, LARGE, LINES, Attempt, arguments, attempts, nested
from debug_gym_core.tools.observation import TEXT_LIMIT

pytestmark = pytest.mark.faults

SECONDS = 30.0
"""What the answer to any of these actions may take; most take milliseconds."""

TOOLS = [name for name in default_plugins().tools if ":" not in name]
TRACEBACK = "Traceback (most recent call last)"
KNOWN = {
    "path": ["app.py", "deep/er.txt", ".", "../x", "/etc/passwd", "no such file"],
    "pattern": ["x", "(", "[a", ".*"],
    "old": ["x = 1\n", "x"],
    "command": ["n", "b app.py:1", "echo x", "p x", "exit 3", "'", "<<E"],
    "target": ["app.py:main", "app.py", ":"],
    "entrypoint": ["python app.py", "no such program", "'"],
    "timeout": [1, 2],
}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory, sandbox: str) -> Iterator[RepoEnv]:
    """An environment with every tool, in a sandbox: some of what is tried is run."""
    root = tmp_path_factory.mktemp("hostile") / "repo"
    (root / "deep").mkdir(parents=True)
    (root / "app.py").write_text("x = 1\n\n\ndef main():\n    return x\n\n\nraise SystemExit(main())\n")
    (root / "deep" / "er.txt").write_bytes(b"caf\xe9\r\n\x00\n")
    task = Task("tests", "hostile", root, "python app.py", max_score=2)
    made = RepoEnv(task, TOOLS, sandbox, trusted=True)
    made.reset(seed=0)
    yield made
    made.close()


def no_constant(text: str) -> NoReturn:
    raise AssertionError(f"{text} is not JSON")


def act(env: RepoEnv, action: Any) -> dict[str, Any]:
    """Carry out an action and hold the answer against what every answer must be; the first that spoke."""
    if env.submitted:
        env.reset()
    steps, started = env.steps, time.monotonic()
    observation, reward, terminated, truncated, info = env.step(action)
    assert time.monotonic() - started < SECONDS
    text, spoken = observation["text"], json.loads(observation["json"], parse_constant=no_constant)
    assert (text + observation["json"]).encode()
    assert observation in env.observation_space
    assert text.strip() and len(text) <= len(spoken) * (TEXT_LIMIT + 200)
    assert len(observation["json"]) <= len(spoken) * 20 * TEXT_LIMIT
    assert TRACEBACK not in text and "site-packages/debug_gym" not in text
    assert env.failure is None and not truncated
    assert not terminated or env.submitted
    assert isinstance(reward, float)
    json.dumps(info, allow_nan=False).encode()
    assert set(info) == {"score", "max_score", "resolved", "breakpoints", "step", "tools"}
    assert info["step"] == steps + 1 and info["tools"] == list(env.tools)
    assert 0 <= info["score"] <= info["max_score"] == 2
    first: dict[str, Any] = spoken[0]
    return first


def right(env: RepoEnv, name: str) -> dict[str, Any]:
    """Arguments of a tool that are right; what runs something does so for a short time only."""
    tool = type(env.tools[name])
    return {**dict.fromkeys({"timeout"} & set(tool.parameters()), 2), **next(iter(tool.examples), {})}


def as_json_text(name: str, given: Mapping[str, Any]) -> str:
    return json.dumps({"name": name, "arguments": given})


FORMS: dict[str, Callable[[str, Any], Any]] = {
    "call": ToolCall,
    "mapping": lambda name, given: {"name": name, "arguments": given, "id": 7},
    "mapping with text": lambda name, given: {"name": name, "arguments": json.dumps(given)},
    "text": as_json_text,
    "text in place of a name": lambda name, given: ToolCall(as_json_text(name, given)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TOOLS)
def test_wrong_arguments_are_answered_in_every_form(env: RepoEnv, name: str, form: str) -> None:
    schema = type(env.tools[name]).schema()["parameters"]
    good = right(env, name)
    for attempt in attempts(schema, good):
        if form != "call" and not is_json(attempt, nan=form == "mapping"):
            continue
        first = act(env, FORMS[form](name, attempt.arguments))
        case = f"{name}, {attempt.label}: {first['text'][:1000]}"
        assert first["source"] == name, case
        assert not first["text"].startswith(f"{name} failed: "), case
        if attempt.wrong is not None:
            assert first["error"] and attempt.wrong[:40] in first["text"] and "expected: " in first["text"], case
            shown = json.loads(first["text"].partition("\nexample: ")[2])
            assert shown["name"] == name
            type(env.tools[name]).check(shown["arguments"])


def is_json(attempt: Attempt, *, nan: bool) -> bool:
    """Whether JSON text can be made of arguments; twice 5 MB, or 200 KB of lines, of each form would only take time.

    Args:
        attempt: the arguments
        nan: whether there may be numbers that JSON has not; text that has them is refused as such (see test_action)
    """
    try:
        return len(json.dumps(attempt.arguments, allow_nan=nan)) < LINES
    except (ValueError, RecursionError):
        return False


DEEP = nested()
HUGE = 10**5000
UNKNOWN: dict[str, Any] = {
    "nothing": None,
    "a number": 7,
    "a huge number": HUGE,
    "not a number": float("nan"),
    "bytes": b"view app.py",
    "a list": ["view"],
    "a deep list": DEEP,
    "an object": object(),
    "an exception": ValueError("\ud800"),
    "a mapping without a name": {"arguments": {}},
    "an empty mapping": {},
    "a name that is null": {"name": None},
    "a name that is a huge number": {"name": HUGE},
    "a name that is a deep list": {"name": DEEP, "arguments": {}},
    "a name that is a surrogate": {"name": "\ud800"},
    "a name of 5 MB": {"name": "x" * LARGE},
    "a call of a number": ToolCall(7),  # type: ignore[arg-type]
    "a call of a huge number": ToolCall(HUGE),  # type: ignore[arg-type]
    "a call of a deep list": ToolCall(DEEP, {}),  # type: ignore[arg-type]
    "a call without a name": ToolCall(""),
    "a call of 5 MB": ToolCall("x " * (LARGE // 2)),
    "arguments that are a list": {"name": "view", "arguments": ["app.py"]},
    "arguments that are a number": {"name": "view", "arguments": HUGE},
    "arguments that are text": {"name": "view", "arguments": "app.py"},
    "arguments that are a list in text": {"name": "view", "arguments": '["app.py"]'},
    "arguments that are deep text": {"name": "view", "arguments": "[" * DEPTH},
    "arguments that are a huge number in text": {"name": "view", "arguments": '{"path": 1' + "0" * 5000 + "}"},
    "a call with a list": ToolCall("view", ["app.py"]),  # type: ignore[arg-type]
    "a call with a huge number": ToolCall("view", HUGE),  # type: ignore[arg-type]
    "a call with a key that is no text": ToolCall("view", {1: 2, None: 3}),  # type: ignore[dict-item]
    "a call with a huge key": ToolCall("view", {HUGE: 1}),  # type: ignore[dict-item]
    "a call with a deep key": ToolCall("view", {(((),),): DEEP}),  # type: ignore[dict-item]
    "no text": "",
    "blanks": " \t\r\n ",
    "a NUL": "\0",
    "a surrogate": "\ud800\udfff",
    "a BOM": "\ufeffview app.py",
    "5 MB of text": "x" * LARGE,
    "5 MB of words": "view " + "a " * (LARGE // 2),
    "5 MB of one word": "view " + "'" + "a" * LARGE,
    "5 MB of quotes": "view " + "'" * LARGE,
    "5 MB of blocks": "rewrite app.py <<<\n" * (LARGE // 20),
    "5 MB of line ends": "\n" * LARGE + "x",
    "an open block": "rewrite app.py <<<\nx = 1\n",
    "an open quote": "view 'app.py",
    "an open brace": '{"name": "view"',
    "many braces": "{" * DEPTH,
    "many objects": '{"name":' * 10_000,
    "JSON that is no object": '["view"]',
    "a huge number in JSON": '{"name": "view", "arguments": {"path": "app.py", "start": 1' + "0" * 5000 + "}}",
    "a huge number in text": "view app.py 1" + "0" * 5000,
    "a huge range in text": "view app.py 1" + "0" * 5000 + ":2",
    "a near miss": "veiw app.py",
    "a misspelt argument": ToolCall("view", {"pth": "app.py"}),
}


@pytest.mark.parametrize("action", UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_no_right_action_is_answered_with_what_is(env: RepoEnv, action: Any) -> None:
    first = act(env, action)
    assert first["error"], first["text"]
    assert len(first["text"]) < 2000
    assert "example:" in first["text"], first["text"]
    first = act(env, ToolCall("view", {"path": "app.py"}))
    assert "x = 1" in first["text"] or "lines" in first["text"]


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one(env: RepoEnv) -> None:
    assert "'view'" in act(env, "veiw app.py")["text"]
    assert "'path'" in act(env, ToolCall("view", {"pth": "app.py"}))["text"]


def test_any_arguments_are_answered(env: RepoEnv) -> None:
    calls = st.one_of(
        [
            st.tuples(st.just(name), arguments(type(tool).schema()["parameters"], {**KNOWN}))
            for name, tool in env.tools.items()
        ]
    )

    @examples(200)
    @given(calls, st.sampled_from([FORMS["call"], FORMS["mapping"]]))
    def check(call: tuple[str, dict[str, Any]], form: Callable[[str, Any], Any]) -> None:
        assert act(env, form(*call))["source"] == call[0]

    check()


words = st.sampled_from(
    [
        *(*TOOLS, *KNOWN["path"], "app.py", "1:2", "1", "-1", "path=", "start=1", "true", "null", "None", "1" * 30),
        *("<<<", "\n<<<\n", "\n>>>", "\n>>>\n", "'", '"', "\\", "=", "\n", "\r\n", "\t", "\0", "\u2028", "\ud800"),
        *('{"name": "view", "arguments": {"path": "app.py"}}', "{", "}", "[" * 50, "#", "$(x)", "`x`"),
    ]
)
texts = st.lists(words | st.text(max_size=5), max_size=8).map(" ".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
mappings = st.fixed_dictionaries({}, optional={"name": words | values, "arguments": values, "id": values, "x": values})


def test_any_action_is_answered(env: RepoEnv) -> None:
    usable = {name for name in TOOLS if name not in ("bash", "pdb", "eval", "submit")}  # those would run random text

    def is_quick(action: Any) -> bool:
        text = action if isinstance(action, str) else json.dumps(action, default=str)
        return not any(name in text for name in set(TOOLS) - usable)

    actions = st.one_of(texts, mappings, values, mappings.map(lambda one: json.dumps(one, default=str)))

    @examples(300)
    @given(actions.filter(is_quick))
    def check(action: Any) -> None:
        first = act(env, action)
        assert first["source"] in (*env.tools, "env")

    check()


def test_the_workspace_is_as_it_was_after_calls_that_were_refused(tmp_path: Path, sandbox: str) -> None:
    (tmp_path / "app.py").write_text("x = 1\n")
    env = RepoEnv(Task("tests", "refused", tmp_path, "python app.py", max_score=2), TOOLS, sandbox, trusted=True)
    env.reset(seed=0)
    try:
        for name, tool in env.tools.items():
            for attempt in attempts(type(tool).schema()["parameters"], right(env, name)):
                if attempt.wrong is not None:
                    act(env, ToolCall(name, attempt.arguments))
        for action in UNKNOWN.values():
            act(env, action)
        assert (env.patch, env.rewrites, env.score, list(env.breakpoints)) == (b"", 0, 0, [])
    finally:
        env.close()
