"""Actions: the JSON form and the text form's grammar."""

from __future__ import annotations

import contextlib
import time
from typing import Annotated, Literal

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core import ActionError, Tool, ToolCall
from debug_gym_core.tools.action import as_text, parse


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


class Sh(Tool):
    """Run a command."""

    name = "sh"

    def use(self, env, command: str, times: int | None = None) -> str:
        """Run."""
        return command


class Eval(Tool):
    """Run the tests."""

    name = "eval"

    def use(self, env) -> str:
        """Run."""
        return ""


class Submit(Tool):
    """Say that it is done."""

    name = "submit"

    def use(self, env, message: str | None = None) -> str:
        """Submit."""
        return ""


class Note(Tool):
    """Note something."""

    name = "note"

    def use(self, env, text: str) -> str:
        """Note."""
        return text


TOOLS: dict[str, type[Tool]] = {tool.name: tool for tool in (View, Rewrite, Pdb, Sh, Eval, Submit, Note)}


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("view a.py", "view", {"path": "a.py"}),
        ("view a.py 1 20", "view", {"path": "a.py", "start": 1, "end": 20}),
        ("view a.py 1:20", "view", {"path": "a.py", "start": 1, "end": 20}),
        ("view 'a b.py' line_numbers=false", "view", {"path": "a b.py", "line_numbers": False}),
        ("view path=a.py end=3", "view", {"path": "a.py", "end": 3}),
        ("view a.py start=null", "view", {"path": "a.py", "start": None}),
        ("view a.py line_numbers=null", "view", {"path": "a.py", "line_numbers": None}),
        ("view path=null", "view", {"path": "null"}),
        ("  eval  ", "eval", {}),
        ("view\ta.py\t1", "view", {"path": "a.py", "start": 1}),
        ("note it's the third = sign", "note", {"text": "it's the third = sign"}),
        ("note 'in quotes'", "note", {"text": "in quotes"}),
        ("note text='in quotes'", "note", {"text": "in quotes"}),
        ("note <<<\nlong\n>>>", "note", {"text": "long\n"}),
        ("pdb b counter_code.py:12, x == 'a b'", "pdb", {"command": "b counter_code.py:12, x == 'a b'"}),
        ("pdb p {'a': \"it's\"}", "pdb", {"command": "p {'a': \"it's\"}"}),
        ("pdb b a.py:1\nc", "pdb", {"command": "b a.py:1\nc"}),
        ("pdb <<<\nb a.py:1\nc\n>>>", "pdb", {"command": "b a.py:1\nc\n"}),
        ('pdb "b a.py:4"', "pdb", {"command": "b a.py:4"}),
        ("pdb 'a' == \"b c\"", "pdb", {"command": "'a' == \"b c\""}),
        ("pdb ''", "pdb", {"command": "''"}),
        ('pdb command="b a.py:4"', "pdb", {"command": "b a.py:4"}),
        ("pdb command=b a.py:4", "pdb", {"command": "b a.py:4"}),
        ("pdb command=='x'", "pdb", {"command": "command=='x'"}),
        ("pdb entrypoint==3", "pdb", {"command": "entrypoint==3"}),
        ("pdb command = 4", "pdb", {"command": "command = 4"}),
        ("pdb entrypoint='python a.py' b a.py:4", "pdb", {"command": "b a.py:4", "entrypoint": "python a.py"}),
        ("pdb entrypoint='python a.py' \"p 'x'\"", "pdb", {"command": "p 'x'", "entrypoint": "python a.py"}),
        ("pdb 'b a.py:4' entrypoint='python a.py'", "pdb", {"command": "b a.py:4", "entrypoint": "python a.py"}),
        ("pdb 'b' entrypoint=x", "pdb", {"command": "'b' entrypoint=x"}),
        ("pdb 'a b' entrypoint=x y", "pdb", {"command": "'a b' entrypoint=x y"}),
        ("pdb command='b 4' entrypoint=pytest", "pdb", {"command": "b 4", "entrypoint": "pytest"}),
        ("pdb entrypoint=pytest command=b 4", "pdb", {"command": "b 4", "entrypoint": "pytest"}),
        ("pdb p f(entrypoint=1)", "pdb", {"command": "p f(entrypoint=1)"}),
        ("pdb entrypoint=pytest", "pdb", {"entrypoint": "pytest"}),
        ("sh times=3 make", "sh", {"command": "make", "times": 3}),
        ("sh times=$n make", "sh", {"command": "times=$n make"}),
        ("rewrite a.py 4:6 <<<\n    x = '>>>'\n\ny\n>>>", "rewrite",
         {"path": "a.py", "start": 4, "end": 6, "new_code": "    x = '>>>'\n\ny\n"}),
        ("rewrite a.py start=8 new_code=<<<\nx\n>>>", "rewrite", {"path": "a.py", "start": 8, "new_code": "x\n"}),
        ("rewrite new_code=y path=<<<\nx\n>>>", "rewrite", {"path": "x\n", "new_code": "y"}),
        ("rewrite a.py <<<\n>>>\n", "rewrite", {"path": "a.py", "new_code": ""}),
        ("rewrite a.py 4:6\n<<<\n    it's\n<<<\n>>>", "rewrite",
         {"path": "a.py", "start": 4, "end": 6, "new_code": "    it's\n<<<\n"}),
        ("rewrite a.py\r\n  <<< \r\nx\r\n>>>\r\n", "rewrite", {"path": "a.py", "new_code": "x\r\n"}),
        ("rewrite a.py\n<<<\n>>>", "rewrite", {"path": "a.py", "new_code": ""}),
        ("rewrite a.py 1 new_code=\n<<<\nx\n>>>", "rewrite", {"path": "a.py", "start": 1, "new_code": "x\n"}),
        ("rewrite 'a\nb.py' 1 <<<\nx\n>>>", "rewrite", {"path": "a\nb.py", "start": 1, "new_code": "x\n"}),
        ("note\n<<<\nlong\n>>>", "note", {"text": "long\n"}),
        ("note a\n<<<\nb\n>>>", "note", {"text": "a\n<<<\nb\n>>>"}),
        ("pdb\n<<<\nb 4\nc\n>>>", "pdb", {"command": "b 4\nc\n"}),
        ("pdb entrypoint=pytest\n<<<\nb 4\n>>>", "pdb", {"command": "b 4\n", "entrypoint": "pytest"}),
        ("rewrite a.py 4 <<<\r\nx\r\n>>>\r\n", "rewrite", {"path": "a.py", "start": 4, "new_code": "x\r\n"}),
        ("rewrite a.py 4:6 <<<    x = '>' << 1>>>", "rewrite",
         {"path": "a.py", "start": 4, "end": 6, "new_code": "    x = '>' << 1"}),
        ("rewrite a.py <<<x>>> \n", "rewrite", {"path": "a.py", "new_code": "x"}),
        ("rewrite a.py start=8 new_code=<<<it's>>>", "rewrite", {"path": "a.py", "start": 8, "new_code": "it's"}),
        ("rewrite '<<<x>>>' 4 \"y\"<<<>>>", "rewrite", {"path": "<<<x>>>", "start": 4, "end": "y", "new_code": ""}),
        ("rewrite a.py 4 new_code='<<<x>>>'", "rewrite", {"path": "a.py", "start": 4, "new_code": "<<<x>>>"}),
        ("note <<<it is>>>", "note", {"text": "it is"}),
        ("note <<<a>>> and <<<b>>>", "note", {"text": "<<<a>>> and <<<b>>>"}),
        ("sh <<<cat <<<x>>>", "sh", {"command": "cat <<<x"}),
        ("sh <<<a>>> and <<<b>>>", "sh", {"command": "<<<a>>> and <<<b>>>"}),
        ("note 1 <<< 2 >>> 3", "note", {"text": "1 <<< 2 >>> 3"}),
        ("pdb <<<p '>>>'>>>", "pdb", {"command": "p '>>>'"}),
        ("pdb entrypoint=pytest <<<b 4>>>", "pdb", {"command": "b 4", "entrypoint": "pytest"}),
        ("pdb command=<<<c>>>", "pdb", {"command": "c"}),
        ("pdb entrypoint=pytest command=<<<b 4>>>", "pdb", {"command": "b 4", "entrypoint": "pytest"}),
        ("sh cat <<<x", "sh", {"command": "cat <<<x"}),
        ("sh cat <<<x >>>y", "sh", {"command": "cat <<<x >>>y"}),
        ("submit The bug was 'here", "submit", {"message": "The bug was 'here"}),
        ("submit", "submit", {}),
        ('{"name": "view", "arguments": {"path": "a.py"}}', "view", {"path": "a.py"}),
        ('{"name": "view", "arguments": "{\\"path\\": \\"a.py\\"}"}', "view", {"path": "a.py"}),
    ],
)  # fmt: skip
def test_text_form(text: str, name: str, arguments: dict) -> None:
    call = parse(text, TOOLS)
    assert (call.name, dict(call.arguments)) == (name, arguments)


def test_a_word_that_an_argument_may_be_is_not_null() -> None:
    class Paint(Tool):
        """Paint it."""

        name = "paint"

        def use(self, env, colour: Literal["None", "red", 1] = "red") -> str:
            """Args:
            colour: which
            """
            return str(colour)

    assert dict(parse("paint None", {"paint": Paint}).arguments) == {"colour": "None"}


class Label(Tool):
    """Label it."""

    name = "label"

    def use(
        self,
        env,
        tags: list[str],
        sizes: dict[str, int] | list[int] | None = None,
        place: Place | None = None,
        note: str | list[str] = "",
        single: list[int] | int = 0,
    ) -> str:
        """Label."""
        return ""


class Place(pydantic.BaseModel):
    """Where."""

    x: int


class Line(pydantic.BaseModel):
    """A line, which may be given as file:line."""

    file: str
    line: int

    @pydantic.model_validator(mode="before")
    @classmethod
    def _read(cls, given: object) -> object:
        return dict(zip(("file", "line"), given.split(":"), strict=True)) if isinstance(given, str) else given


class Tour(Tool):
    """Go from file to file."""

    name = "tour"

    def use(
        self,
        env,
        paths: Annotated[
            list[str], pydantic.BeforeValidator(lambda given: given.split(",") if isinstance(given, str) else given)
        ],
        place: Line | None = None,
    ) -> str:
        """Go."""
        return ""


LABEL: dict[str, type[Tool]] = {"label": Label}


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("label []", {"tags": []}),
        ("""label '["a","b c"]'""", {"tags": ["a", "b c"]}),
        ("""label tags='["a","b c"]' sizes='{"a": 1}'""", {"tags": ["a", "b c"], "sizes": {"a": 1}}),
        ("label [] [1,2]", {"tags": [], "sizes": [1, 2]}),
        ("""label [] place='{"x": 1}'""", {"tags": [], "place": {"x": 1}}),
        ("label [] place=null note=[]", {"tags": [], "place": None, "note": "[]"}),
        ("label [] single=3", {"tags": [], "single": 3}),
        ("label [] single=[3]", {"tags": [], "single": [3]}),
    ],
)
def test_a_list_or_mapping_is_json_in_a_word(text: str, arguments: dict[str, object]) -> None:
    call = parse(text, LABEL)
    assert call.arguments == arguments
    Label.check(call.arguments)
    assert parse(as_text(call, LABEL), LABEL).arguments == {k: v for k, v in arguments.items() if v is not None}
    assert as_text(call, LABEL).startswith("label ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("label a", """say a list (in a line of text it is JSON in quotes, such as tags='["a", "b"]'), got "a\""""),
        ('label tags=["a"]', 'got "[a]"'),
        ("label '{\"a\": 1}'", "argument 'tags': say a list (in a line of text it is JSON"),
        ("label " + "[" * 90_000, "argument 'tags': say a list (in a line of text it is JSON"),
        ("label [] place=1", """such as place='{"a": 1}'), got "1\""""),
        (
            "label tags=[] tags=[]",
            """label: tags is given twice; say it as JSON in quotes, such as tags='["a", "b"]'""",
        ),
    ],
)
def test_what_is_no_list_is_answered_with_how_one_is_written(text: str, said: str) -> None:
    with pytest.raises(ActionError) as error:
        Label.check(parse(text, LABEL).arguments)
    assert said in str(error.value)


def test_a_word_is_what_the_type_of_an_argument_makes_of_it() -> None:
    made = {"tour": Tour}
    call = parse("tour a.py,b.py a.py:3", made)
    assert call.arguments == {"paths": "a.py,b.py", "place": "a.py:3"}
    assert Tour.check(call.arguments) == {"paths": ["a.py", "b.py"], "place": Line(file="a.py", line=3)}
    assert parse(as_text(call, made), made).arguments == call.arguments
    assert parse("""tour '["a.py"]' '{"file": "a.py", "line": 3}'""", made).arguments["paths"] == ["a.py"]


def test_long_actions_cost_little() -> None:
    started = time.process_time()
    for text in (
        "view x" + " " * 200_000 + "y",
        "view a.py " + "1" * 5000 + ":2",
        "pdb " + "<<<" * 50_000,
        "view " + "<<<" * 50_000,
        "view " + "'<<" * 50_000,
    ):
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
        ("view 'a.py", "cannot be told apart: a quote is opened and not closed"),
        ("view a.py \\", "cannot be told apart: it ends with a backslash"),
        ("rewrite a.py 1 <<<\nx = 1\n", "not closed; end it with >>> alone on a line\nexample:\nrewrite"),
        ("rewrite a.py 1 <<<", "not closed; end it with >>> alone on a line"),
        ("rewrite a.py 1\n<<<\nx = 1>>>", "not closed; end it with >>> alone on a line"),
        ("rewrite a.py 1 <<<\nx\n>>>\nview a.py\n", "'view a.py' stands behind its >>>; give one action at a time"),
        ("rewrite a.py 1\n<<<\nx\n>>>\n\nview a.py", "'view a.py' stands behind its >>>; give one action at a time"),
        (
            '{"name": "view", "arguments": {"path": "a.p',
            "begins as JSON and is none: it ends within a text, whose closing quote is missing, at line 1",
        ),
        ("view a.py 1 2 true 9", "too many words"),
        ("eval <<<\nx\n>>>", "takes no text"),
        ("eval <<<x>>>", "takes no text"),
        ("rewrite a.py 4 <<<x>>> end=5", "rewrite: nothing stands behind the >>> of a block on one line"),
        ("rewrite a.py 4 <<<x >>> 1>>>", "one that has >>> in it stands on lines of its own"),
        ("rewrite a.py <<<x>>> <<<\ny\n>>>", "nothing stands behind the >>>"),
        ("rewrite a.py 4 <<<x\ny\n>>>", "a block of several lines begins on the line below <<<"),
        ("rewrite a.py 4 <<<x", "is not closed; end it with >>> (a word that has <<< in it is put in quotes"),
        ("view path=a.py path=b.py", "path is given twice"),
        ("view a.py path=b.py", "path is given twice"),
        ("view stat=1 path=b.py", "unknown argument 'stat'; did you mean 'start'?"),
        ("rewrite a.py new_code=x <<<\ny\n>>>", "new_code is given twice (the block"),
        ({"arguments": {}}, 'no "name"'),
        ({"name": "view", "arguments": [1]}, "must be an object"),
        ({"name": "view", "arguments": "{"}, "no JSON object"),
        ({"name": ["view"]}, "name is text, not list"),
        (7, "not int"),
        (None, "not NoneType"),
        (ToolCall("nosuch"), "there is no tool 'nosuch'"),
        (ToolCall("evla"), "did you mean 'eval'.*\nexample: .*eval"),
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


@given(st.text(alphabet=st.sampled_from("<> ='\"\\a"), max_size=12) | st.text(max_size=40))
def test_a_block_on_one_line_is_taken_literally_or_refused(code: str) -> None:
    try:
        call = parse(f"rewrite a.py 1 <<<{code}>>>", TOOLS)
    except ActionError:
        assert ">>>" in code or "\n" in code or code.endswith(">")
    else:
        assert call.arguments == {"path": "a.py", "start": 1, "new_code": code}


# The other way round


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("eval", {}, "eval"),
        ("view", {"path": "a.py"}, "view a.py"),
        ("view", {"path": "a b.py", "start": 1, "end": 20}, "view 'a b.py' 1:20"),
        ("view", {"end": 3, "path": "a.py"}, "view a.py end=3"),
        ("view", {"path": "a.py", "line_numbers": False, "start": None}, "view a.py line_numbers=false"),
        ("pdb", {"command": "p {'a': \"it's\"}"}, "pdb p {'a': \"it's\"}"),
        ("pdb", {"command": "b a.py:1\nc"}, "pdb <<<\nb a.py:1\nc\n>>>"),
        (
            "rewrite",
            {"path": "a.py", "start": 4, "end": 6, "new_code": "  x\n  y\n"},
            "rewrite a.py 4:6 <<<\n  x\n  y\n>>>",
        ),
        ("rewrite", {"new_code": "x", "path": "a.py"}, "rewrite a.py new_code=x"),
        ("nosuch", {"x": 1}, '{"name": "nosuch", "arguments": {"x": 1}}'),
    ],
)
def test_text_of_a_call(name: str, arguments: dict[str, object], text: str) -> None:
    assert as_text(ToolCall(name, arguments), TOOLS) == text


words = st.text(alphabet=st.sampled_from("ab ='\"\\\n<>{}1:\t"), max_size=12) | st.text(max_size=12)
numbers = st.integers(-5, 10**6)
calls = st.one_of(
    st.builds(lambda path, **rest: ("view", {"path": path, **rest}), words),
    st.fixed_dictionaries(
        {"path": words}, optional={"start": numbers, "end": numbers, "line_numbers": st.booleans()}
    ).map(lambda arguments: ("view", arguments)),
    st.fixed_dictionaries({"path": words, "new_code": words}, optional={"start": numbers, "end": numbers}).map(
        lambda arguments: ("rewrite", arguments)
    ),
    st.fixed_dictionaries({"command": words}, optional={"entrypoint": words}).map(lambda arguments: ("pdb", arguments)),
)


@given(calls)
def test_text_of_a_call_means_the_same_call(call: tuple[str, dict[str, object]]) -> None:
    name, arguments = call
    read = parse(as_text(ToolCall(name, arguments), TOOLS), TOOLS)
    assert read.name == name and read.arguments.keys() == arguments.keys()
    for key, value in arguments.items():
        assert read.arguments[key] in (value, f"{value}\n" if isinstance(value, str) else value)


def test_a_long_text_belongs_into_a_block() -> None:
    with pytest.raises(ActionError, match="put a long text between <<< and >>>"):
        parse(f"rewrite a.py {'x' * 10_000_000}", TOOLS)
    assert parse(f"rewrite a.py <<<\n{'x' * 10_000_000}\n>>>", TOOLS).arguments["path"] == "a.py"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            '{"path": "a.py"',
            '"arguments" is no JSON object: it ends before its last bracket is closed, at line 1, column 16, near',
        ),
        ('{"path": a.py}', "Expecting value at line 1, column 10, near '{\"path\": a.py}'"),
        ("[1]", '"arguments" is no JSON object: it is a JSON list'),
        ('"a.py"', "it is a JSON string"),
        ("[" * 100_000, "is no JSON object: "),
        ('{"start": NaN}', "is no JSON object: NaN is no JSON"),
        ('{"start": 1e999}', "is no JSON object: the number 1e999 is too large"),
    ],
)
def test_arguments_that_are_no_json_object_are_answered_with_where_and_an_example(arguments: str, said: str) -> None:
    call = ToolCall("view", arguments, "1")
    with pytest.raises(ActionError) as error:
        parse(call, TOOLS)
    assert said in str(error.value)
    assert 'example: {"name": "view"' in str(error.value)
    assert call.as_json() == {"name": "view", "arguments": arguments}
    assert as_text(call, TOOLS)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_an_action_with_a_number_that_json_has_not_is_none(number: str) -> None:
    with pytest.raises(ActionError, match="begins as JSON and is none: "):
        parse(f'{{"name": "view", "arguments": {{"path": "a.py", "start": {number}}}}}', TOOLS)


@pytest.mark.parametrize(("arguments", "meant"), [('{"path": "a.py"}', {"path": "a.py"}), ("", {}), ("null", {})])
def test_arguments_that_came_as_json_text_are_taken(arguments: str, meant: dict[str, str]) -> None:
    assert parse(ToolCall("view", arguments, "1"), TOOLS) == ToolCall("view", meant, "1")
