"""Tools: schemas from signatures, arguments checked against them."""

from __future__ import annotations

import datetime
import enum
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypedDict

from debug_gym_core import ActionError, Tool
from debug_gym_core.errors import PluginError
from debug_gym_core.models.text_actions import find
from debug_gym_core.tools.action import parse
from debug_gym_core.tools.observation import bound
from debug_gym_core.tools.tool import examples


class Example(Tool):
    """Do something.

    At length.
    """

    name = "example"
    examples = ({"path": "a.py", "depth": 2},)

    def use(self, env: Unknown, path: str, depth: int = 1, deep: bool | None = None) -> str | Unknown:  # noqa: F821
        """Do it.

        Args:
            path: the file, which
                may go on
            depth (int): how deep
            deep: whether
        """
        return path


class Short(Tool):
    """Count words."""

    name = "short"

    def use(self, env, path: str):
        """Args:
            path: the file
        """  # fmt: skip


class Color(enum.Enum):
    RED = "red"


class Node(pydantic.BaseModel):
    name: str
    above: Node | None
    below: list[Node]


class Demanding(Tool):
    """Ask for a lot, and give no example."""

    name = "demanding"

    def use(
        self,
        env: Any,
        path: str,
        count: Annotated[int, pydantic.Field(ge=3)],
        kind: Literal["slow", "fast"],
        color: Color,
        either: float | str,
        names: list[str],
        pair: tuple[int, bool],
        node: Node,
        more: dict[str, int],
        left_out: int = 1,
    ) -> str:
        """Take it all."""
        return path


def test_an_example_is_made_up_of_what_is_required() -> None:
    (made,) = examples(Demanding)
    assert made == {
        "path": "...", "count": 3, "kind": "slow", "color": "red", "either": 1.0, "names": ["..."], "pair": [1, True],
        "node": {"name": "...", "above": None, "below": []}, "more": {},
    }  # fmt: skip
    assert Demanding.check(made)["color"] is Color.RED
    with pytest.raises(ActionError) as refused:
        Demanding.check({})
    assert json.loads(str(refused.value).partition("example: ")[2]) == {"name": "demanding", "arguments": made}
    assert examples(Example) == Example.examples and examples(Short) == ({"path": "..."},)


class Choosy(Tool):
    """Take what nobody makes up, and give no example."""

    name = "choosy"

    def use(self, env: Any, day: datetime.date) -> str:
        """Take it."""
        return str(day)


def test_an_example_that_is_made_up_and_wrong_is_not_shown() -> None:
    with pytest.raises(ActionError, match=r"\nexpected: choosy day$"):
        Choosy.check({})
    with pytest.raises(ActionError, match=r"\nexpected: choosy day$"):
        parse('{"name": "choosy", "arguments": 1}', {"choosy": Choosy})
    with pytest.raises(ActionError, match=r"nothing is left to do.$"):
        find("I think.", {"choosy": Choosy})
    with pytest.raises(ActionError, match=r"Example:\n```\nexample a.py 2\n```"):
        find("I think.", {"choosy": Choosy, "example": Example})
    assert [set(one) for one in examples(Choosy)] == [{"day"}]


def test_schema() -> None:
    schema = Example.schema()
    assert schema["name"] == "example"
    assert schema["description"] == "Do something.\n\nAt length."
    parameters = schema["parameters"]
    assert parameters["required"] == ["path"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["path"] == {"description": "the file, which may go on", "type": "string"}
    assert parameters["properties"]["depth"] == {"default": 1, "description": "how deep", "type": "integer"}


def test_the_first_argument_is_the_environment() -> None:
    def use(self: Any, path: str) -> str:
        return path

    def untyped(self, path):  # type: ignore[no-untyped-def]
        """Look.

        Args:
            path: the file
        """

    with pytest.raises(TypeError, match=r"Odd.use: its first argument is the environment.*this one is path: str$"):
        type("Odd", (Tool,), {"name": "odd", "use": use})
    with pytest.raises(TypeError, match="this one has none"):
        type("Odd", (Tool,), {"name": "odd", "use": lambda self: ""})
    with pytest.raises(TypeError, match="'path', which its docstring explains as one of the agent's"):
        type("Odd", (Tool,), {"name": "odd", "use": untyped})
    for named in (lambda self, _: "", lambda self, ctx: "", lambda self, environment: "", lambda self, *given: ""):
        type("Even", (Tool,), {"name": "even", "use": named})


async def _late(self: Any, env: Any, path: str) -> str:
    return path


def _in_pieces(self: Any, env: Any, path: str) -> Iterator[str]:
    yield path


def _by_place(self: Any, env: Any, path: str, /) -> str:
    return path


def _unnamed(self: Any, env: Any, *paths: str) -> str:
    return ""


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (_late, r"must answer at once: def, not async def"),
        (_in_pieces, r"must return its answer, not yield it"),
        (_by_place, r"must take its arguments by name, not path before /"),
        (_unnamed, r"must name its arguments, not take \*paths"),
    ],
)
def test_a_tool_that_nobody_can_call_is_not_made(use: Any, said: str) -> None:
    """Not each of its calls fails, nor each episode that offers it: nothing begins."""
    odd = type("Odd", (Tool,), {"name": "odd", "__doc__": "Odd.", "use": use})
    for made in (odd, odd.schema):
        with pytest.raises(PluginError, match=rf"^tool odd: Odd.use {said}$"):
            made()


@pytest.mark.filterwarnings("error")
def test_an_argument_may_have_any_name() -> None:
    """Also one that the models of pydantic use, or refuse."""

    class Named(Tool):
        """Take them."""

        name = "named"

        def use(self, env: Any, json: str, copy: bool = False, schema: str = "s", _x: int = 1, model_x: int = 2) -> str:
            raise NotImplementedError

    parameters = Named.schema()["parameters"]
    assert list(parameters["properties"]) == ["json", "copy", "schema", "_x", "model_x"]
    assert parameters["required"] == ["json"]
    assert Named.check({"json": "{}", "_x": "3"}) == {"json": "{}", "_x": 3}
    for wrong, said in (({"json": 1}, "argument 'json'"), ({"json": "", "argument_json": ""}, "'argument_json'")):
        with pytest.raises(ActionError, match=said):
            Named.check(wrong)


def test_a_type_that_no_argument_can_have() -> None:
    class Odd(Tool):
        """Odd."""

        name = "odd"

        def use(self, env: Any, path: str, other: object, tool: Short) -> str:
            return ""

    said = r"^tool odd: Odd.use: no argument of a model's can be of the type of tool, .*; say str, int"
    with pytest.raises(PluginError, match=said):
        Odd.schema()


def test_docstring_that_begins_with_its_arguments() -> None:
    assert Short.schema()["parameters"]["properties"]["path"]["description"] == "the file"


def test_a_type_that_is_not_there_when_the_program_runs_is_refused() -> None:
    """It would be any: nothing would be checked."""

    class Typed(Tool):
        """Do it."""

        name = "typed"

        def use(self, env: absent.Environment, path: Absent) -> absent.Observation:  # noqa: F821
            raise NotImplementedError

    said = r"Typed\.use: the type of path, 'Absent', is not known .*import it outside of"
    with pytest.raises(PluginError, match=said):
        Typed.schema()


@pytest.mark.parametrize("value", ["inf", "nan", float("inf"), float("nan"), "1e999"])
def test_numbers_that_json_has_not_are_refused(value: object) -> None:
    class Waiting(Tool):
        """Wait."""

        name = "waiting"

        def use(self, env: RepoEnv, seconds: float, more: list[float] | None = None) -> str:  # noqa: F821
            raise NotImplementedError

    assert Waiting.check({"seconds": "2", "more": [1]}) == {"seconds": 2.0, "more": [1.0]}
    with pytest.raises(ActionError, match=r"argument 'seconds': the number is too large, or none"):
        Waiting.check({"seconds": value})
    with pytest.raises(ActionError, match=r"argument 'more': the number is too large, or none"):
        Waiting.check({"seconds": 1, "more": [value]})


def test_arguments_that_are_nested_too_deeply_are_refused() -> None:
    class Taking(Tool):
        """Take anything."""

        name = "taking"

        def use(self, env: Any, parts: list) -> str:  # type: ignore[type-arg]
            raise NotImplementedError

    outermost: list[Any] = []
    inner = outermost
    for depth in range(600):
        inner.append({"a": []})
        inner = inner[0]["a"]
        if depth % 10 == 0:
            try:
                assert Taking.check({"parts": outermost}) == {"parts": outermost}
            except ActionError as error:
                assert "the arguments are nested too deeply" in str(error)
                return
    raise AssertionError("nothing is nested too deeply")


class Size(enum.IntEnum):
    SMALL = 0
    LARGE = 1


class Pair(NamedTuple):
    word: str
    times: int


class Counted(TypedDict):
    count: float


@dataclass
class Kept:
    count: int


class Link(pydantic.BaseModel):
    count: int
    next: Link | None = None


class Lit(pydantic.BaseModel):
    lit: bool


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (list[int] | float, [1, True]),
        (list[int] | dict[str, list[float]] | float, {"a": [False]}),
        (set[int], [True]),
        (dict[int, float], {"1": True}),
        (tuple[str, int] | None, ["a", False]),
        (Annotated[int, pydantic.Field(ge=1)] | str, True),
        (Literal[1, 2], True),
        (Literal["all", 1], True),
        (Size, True),
        (enum.Enum("Share", {"HALF": 0.5, "ALL": 1.0}), True),
        (tuple[float, ...], [0.5, True]),
        (Mapping[str, int], {"a": True}),
        (Pair, ["a", True]),
        (Counted, {"count": True}),
        (list[Kept], [{"count": 1}, {"count": True}]),
        (Link | None, {"count": 1, "next": {"count": True}}),
        (dict[str, Annotated[int, pydantic.Field(examples=[{"type": "int"}])]], {"a": True}),
    ],
)
def test_flags_are_no_numbers_wherever_they_stand(kind: Any, value: Any) -> None:
    said = f"argument 'parts' (what to add): true and false are no numbers, got {json.dumps(value)}\n"
    with pytest.raises(ActionError, match=re.escape(said)):
        summing(kind).check({"parts": value})


@pytest.mark.parametrize(
    ("kind", "value", "made"),
    [
        (Annotated[int, pydantic.BeforeValidator(int)], True, 1),
        (list[Annotated[int, pydantic.WrapValidator(lambda given, take: take(int(given)))]], [True], [1]),
        (Annotated[bool, pydantic.AfterValidator(int)], True, 1),
        (list[int] | list[bool], [True], [True]),
        (Annotated[bool, pydantic.Field(json_schema_extra={"type": ["boolean", "null"]})], True, True),
        (dict[str, int] | Lit, {"lit": True}, Lit(lit=True)),
        (int | bool, True, True),
        (list[bool | int], [False, 1], [False, 1]),
        (bool, 1, True),
        (float | int, 1, 1),
        (list[Any], [True, 1.5], [True, 1.5]),
        (Literal[True, "auto"], True, True),
    ],
)
def test_flags_are_taken_where_the_type_says_so(kind: Any, value: Any, made: Any) -> None:
    checked = summing(kind).check({"parts": value})["parts"]
    assert repr(checked) == repr(made)


def summing(kind: Any) -> type[Tool]:
    """A tool whose argument is of a type."""

    class Summing(Tool):
        """Add up."""

        name = "summing"

        def use(self, env: Any, parts: Any) -> str:
            """Args:
            parts: what to add
            """
            raise NotImplementedError

    Summing.use.__annotations__["parts"] = kind
    return Summing


def test_null_counts_as_left_out() -> None:
    assert Example.check({"path": "x", "depth": None, "deep": None}) == {"path": "x"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "missing argument 'path': the file"),
        ({"path": None}, "missing argument 'path'"),
        ({"path": 3}, "argument 'path'.*say a text, got 3"),
        ({"path": "x", "depth": "many"}, r"argument 'depth' \(how deep\)"),
        ({"path": "x", "depth": 1.5}, "argument 'depth'"),
        ({"path": "x", "depth": True}, r"argument 'depth' \(how deep\): true and false are no numbers, got true"),
        (
            {"depth": "x = 1"},
            r"argument 'depth' \(how deep\): say a whole number, got \"x = 1\"; missing argument 'path': ",
        ),
        ({"path": "x", "pth": 1}, "unknown argument 'pth'; did you mean 'path'"),
        (["x"], "must be an object"),
    ],
)
def test_wrong_arguments_are_explained_with_an_example(arguments: Any, said: str) -> None:
    with pytest.raises(ActionError, match="(?s)" + said) as caught:
        Example.check(arguments)
    assert 'example: {"name": "example", "arguments": {"path": "a.py", "depth": 2}}' in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_missing_argument_that_nobody_explains_is_named() -> None:
    class Bare(Tool):
        """Says nothing of its argument."""

        name = "bare"

        def use(self, env: Any, path: str) -> str:
            raise NotImplementedError

    with pytest.raises(ActionError, match=r"^bare: missing argument 'path'\nexpected: "):
        Bare.check({})


def test_deep_nesting_is_an_error_of_the_agent() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ActionError):
        Example.check({"path": value})
    while value:  # freed step by step: the interpreter would recurse
        value = value[0]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["path", "depth", "deep", "other"]), json_values))
def test_any_arguments_are_checked_or_refused(arguments: dict[str, Any]) -> None:
    try:
        checked = Example.check(arguments)
    except ActionError:
        return
    assert isinstance(checked["path"], str)
    assert isinstance(checked.get("depth", 1), int)


def test_a_tool_without_use_is_refused() -> None:
    with pytest.raises(TypeError, match="must have a method use"):
        type("Broken", (Tool,), {"name": "broken", "__doc__": "Broken."})


@pytest.mark.parametrize("name", ["check", "parameters", "schema"])
def test_a_method_of_tool_cannot_be_replaced_by_accident(name: str) -> None:
    with pytest.raises(TypeError, match=f"Clash.{name} takes the place of Tool.{name}"):
        type("Clash", (Tool,), {"name": "clash", "use": lambda self, env: "", name: lambda self: None})


def test_a_number_without_end_is_refused() -> None:
    class Numbered(Tool):
        """Take a number."""

        name = "numbered"

        def use(self, env: Any, number: int) -> str:
            """Args:
            number: any
            """
            return str(number)

    assert Numbered.check({"number": 2**63 - 1}) == {"number": 2**63 - 1}
    with pytest.raises(ActionError, match="argument 'number': the number is too large"):
        Numbered.check({"number": -(10**5000)})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0123456789", "0123456789"),
        ("0123456789a", "01234\n[... 1 characters left out ...]\n6789a"),
        ("ab\nc0123456\n89", "ab\n[... 6 characters left out ...]\n56\n89"),
        ("abcd\n012345\n89za", "abcd\n[... 7 characters left out ...]\n89za"),
    ],
)
def test_a_long_text_is_cut_in_its_middle(text: str, shown: str) -> None:
    assert bound(text, 10) == shown


def test_what_is_left_out_is_counted_and_may_say_how_to_see_it() -> None:
    assert bound("a" * 20, 10, missing=7) == "aaaaa\n[... 17 characters left out ...]\naaaaa"
    assert bound("a" * 20, 10, more="ask") == "aaaaa\n[... 10 characters left out; ask ...]\naaaaa"
