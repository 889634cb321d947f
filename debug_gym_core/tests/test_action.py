"""Actions: the JSON form and the text form's grammar."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core import ActionError, Tool, ToolCall
from debug_gym_core.action import parse


class View(Tool):
    """Show lines."""

    name = "view"

    def use(self, env, path: str, start: int | None = None, end: int | None = None, line_numbers: bool = True) -> str:
        """Show.

        Args:
            path: the file
            start: first line
            end: last line
            line_numbers: whether to
        """
        return path


class Rewrite(Tool):
    """Replace lines."""

    name = "rewrite"

    def use(self, env, path: str, start: int | None = None, end: int | None = None, *, new_code: str) -> str:
        """Replace."""
        return path


class Pdb(Tool):
    """Debug."""

    name = "pdb"

    def use(self, env, command: str, entrypoint: str | None = None) -> str:
        """Debug."""
        return command


class Eval(Tool):
    """Run the tests."""

    name = "eval"

    def use(self, env) -> str:
        """Run."""
        return ""


TOOLS: dict[str, type[Tool]] = {tool.name: tool for tool in (View, Rewrite, Pdb, Eval)}


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("view a.py", "view", {"path": "a.py"}),
        ("view a.py 1 20", "view", {"path": "a.py", "start": 1, "end": 20}),
        ("view a.py 1:20", "view", {"path": "a.py", "start": 1, "end": 20}),
        ("view 'a b.py' line_numbers=false", "view", {"path": "a b.py", "line_numbers": False}),
        ("view path=a.py end=3", "view", {"path": "a.py", "end": 3}),
        ("view a.py start=null", "view", {"path": "a.py", "start": None}),
        ("  eval  ", "eval", {}),
        ("pdb b counter_code.py:12, x == 'a b'", "pdb", {"command": "b counter_code.py:12, x == 'a b'"}),
        ("pdb p {'a': \"it's\"}", "pdb", {"command": "p {'a': \"it's\"}"}),
        ("pdb b a.py:1\nc", "pdb", {"command": "b a.py:1\nc"}),
        ("pdb <<<\nb a.py:1\nc\n>>>", "pdb", {"command": "b a.py:1\nc\n"}),
        ("rewrite a.py 4:6 <<<\n    x = '>>>'\n\ny\n>>>", "rewrite",
         {"path": "a.py", "start": 4, "end": 6, "new_code": "    x = '>>>'\n\ny\n"}),
        ("rewrite a.py <<<\n>>>\n", "rewrite", {"path": "a.py", "new_code": ""}),
        ('{"name": "view", "arguments": {"path": "a.py"}}', "view", {"path": "a.py"}),
        ('{"name": "view", "arguments": "{\\"path\\": \\"a.py\\"}"}', "view", {"path": "a.py"}),
    ],
)  # fmt: skip
def test_text_form(text: str, name: str, arguments: dict) -> None:
    call = parse(text, TOOLS)
    assert (call.name, dict(call.arguments)) == (name, arguments)


def test_long_actions_cost_little() -> None:
    started = time.process_time()
    for text in ("view x" + " " * 200_000 + "y", "view a.py " + "1" * 5000 + ":2", "pdb " + "<<<" * 50_000):
        with contextlib.suppress(ActionError):
            parse(text, TOOLS)
    assert time.process_time() - started < 5


def test_a_model_that_writes_its_call_as_text_is_understood() -> None:
    call = parse(ToolCall("view a.py 1 2", id="7"), TOOLS)
    assert call == ToolCall("view", {"path": "a.py", "start": 1, "end": 2}, "7")
    assert parse(ToolCall('{"name":"eval"}'), TOOLS) == ToolCall("eval")


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("", "empty"),
        ("veiw a.py", "did you mean 'view'"),
        ("view 'a.py", "cannot be told apart"),
        ("view a.py 1 2 true 9", "too many words"),
        ("eval <<<\nx\n>>>", "takes no text"),
        ({"arguments": {}}, 'no "name"'),
        ({"name": "view", "arguments": [1]}, "must be an object"),
        ({"name": "view", "arguments": "{"}, "no JSON object"),
        ({"name": ["view"]}, "there is no tool"),
        (7, "not int"),
        (None, "not NoneType"),
        (ToolCall("nosuch"), "there is no tool 'nosuch'"),
    ],
)
def test_what_is_wrong_is_said(action: object, said: str) -> None:
    with pytest.raises(ActionError, match="(?s)" + said.replace("(", r"\(")):
        parse(action, TOOLS)  # type: ignore[arg-type]


@given(st.text())
def test_any_text_is_a_call_or_an_error(text: str) -> None:
    with contextlib.suppress(ActionError):
        assert parse(text, TOOLS).name in TOOLS


@given(st.text(alphabet=st.characters(exclude_characters="\r"), max_size=200))
def test_a_block_is_taken_literally(code: str) -> None:
    body = code if code.endswith("\n") or not code else code + "\n"
    if any(line.strip(" \t") == ">>>" for line in body.split("\n")):
        return
    call = parse(f"rewrite a.py 1 <<<\n{body}>>>", TOOLS)
    assert call.arguments["new_code"] == body
