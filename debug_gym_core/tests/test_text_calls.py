"""Models without function calling: tools in words, answers understood as people write them."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import ActionError, ToolsRefused
from debug_gym_core.models.llm import LLM, Completion, Message
from debug_gym_core.models.service import ServiceSettings
from debug_gym_core.models.text_actions import find, find_instead
from debug_gym_core.models.text_calls import KEY, correction_of, describe, with_text_calls
from debug_gym_core.plugins import default_plugins
from debug_gym_core.testing.environments import Environments
from debug_gym_core.testing.scripted import ScriptedLLM
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.flags import flag_for_number
from debug_gym_core.tools.references import as_json
from debug_gym_core.tools.samples import sample

TOOLS = {name: default_plugins().get("tools", name) for name in ("view", "rewrite", "eval", "pdb")}
VIEW = ToolCall("view", {"path": "a.py"})
MIXED = """\
view is what I would use first, then eval.

```python
eval = 3
```
```
rewrite a.py 4:5 <<<
view b.py
    done
>>>
```
That should do it."""


@pytest.mark.parametrize(
    ("answer", "call"),
    [
        ("view a.py", VIEW),
        ("I will look.\n\n```\nview a.py\n```\nThen I know.", VIEW),
        ("First `eval`, no:\n```bash\neval\n```\n```\nview a.py\n```", VIEW),
        ("Let me look at it.\nview a.py\n\nThis shows the code.", VIEW),
        ("**Action:** I look\nAction: view a.py", VIEW),
        ("> view a.py", VIEW),
        ("`view a.py`", VIEW),
        ('{"name": "view", "arguments": {"path": "a.py"}}', VIEW),
        ('Good.\n```json\n{\n  "name": "view",\n  "arguments": {"path": "a.py"}\n}\n```\n', VIEW),
        ('Good: \n{"name": "view", "arguments": {"path": "a.py"}} and so on', VIEW),
        ('<tool_call>{"name": "view", "arguments": {"path": "a.py"}}</tool_call>', VIEW),
        ('{"tool": "view", "parameters": {"path": "a.py"}}', VIEW),
        ('{"name": "view", "arguments": "{\\"path\\": \\"a.py\\"}"}', VIEW),
        ("pdb b a.py:3\nc\nlocals()", ToolCall("pdb", {"command": "b a.py:3\nc\nlocals()"})),
        ("pdb p {'a': 1}['a']", ToolCall("pdb", {"command": "p {'a': 1}['a']"})),
        (MIXED, ToolCall("rewrite", {"path": "a.py", "start": 4, "end": 5, "new_code": "view b.py\n    done\n"})),
        ("rewrite a.py <<<\nx\n\ny\n>>>", ToolCall("rewrite", {"path": "a.py", "new_code": "x\n\ny\n"})),
        (
            "I see it.\n\n> rewrite a.py 4:5 <<<\nview b.py\n>>>\n\nThat should do it.",
            ToolCall("rewrite", {"path": "a.py", "start": 4, "end": 5, "new_code": "view b.py\n"}),
        ),
        (
            "I see it.\n\n> rewrite a.py 4:5\n<<<\nview b.py\n>>>\n\nThat should do it.",
            ToolCall("rewrite", {"path": "a.py", "start": 4, "end": 5, "new_code": "view b.py\n"}),
        ),
        ("I empty it.\n\nrewrite a.py <<<\n>>>\n\nSo.", ToolCall("rewrite", {"path": "a.py", "new_code": ""})),
        (
            "rewrite a.md <<<\nHow to test:\n\n```\neval\n```\n>>>",
            ToolCall("rewrite", {"path": "a.md", "new_code": "How to test:\n\n```\neval\n```\n"}),
        ),
        ("A block that never ends:\n\neval <<<\nview a.py", VIEW),
        ("eval\n\nThis runs the tests.", ToolCall("eval")),
        ("All tests pass.\ndone", None),
        ("Done.", None),
        ("Look:\n\n````md\n```\neval\n```\n````\n\n~~~~\n```python\nview a.py\n```", VIEW),
        ("In turn:\n\n~~~\n```\neval\n```\nview a.py\n~~~", VIEW),
    ],
)  # fmt: skip
def test_an_action_is_found(answer: str, call: ToolCall | None) -> None:
    assert find(answer, TOOLS) == call


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("I think that the counter is wrong.", "Your answer has no action. End it with one in a block of its own: a"),
        (
            "",
            "or done when nothing is left to do. Example:\n```\nview src/app.py 1:40\n```",
        ),
        ('The value is:\n{"total": 3}', "Your answer has no action."),
        ('{"name": "view", "arguments": ' + "[" * 100_000, "the JSON of your action is nested too deeply"),
        ('There is no "name" in it.', "Your answer has no action."),
        ("```\nview\n```", "view: missing argument 'path'"),
        ("view a.py one", "argument 'start'"),
        ('{"name": "vew", "arguments": {}}', "there is no tool 'vew'; did you mean 'view'?"),
        ('{"name": "view", "arguments": {"path": "a.py"', "the JSON of your action is wrong: Expecting ',' delimiter"),
    ],
)
def test_what_is_no_action_is_corrected_precisely(answer: str, said: str) -> None:
    with pytest.raises(ActionError) as error:
        find(answer, TOOLS)
    assert said in str(error.value)


CALL = '{"name": "view", "arguments": {"path": "a.py"}}'


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        ("view a.py", [VIEW]),
        ("I will look.\n\n```\nview a.py\n```\nThen I know.", [VIEW]),
        (f"So:\n```json\n{CALL}\n```", [VIEW]),
        (CALL, [VIEW]),
        (f"I look.\n<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{CALL.replace('a.py', 'b.py')}", ["a.py", "b.py"]),
        (f"```\n{CALL}\n```\nor so:\n```\n{CALL}\n```", [VIEW]),
        # What an answer may say that just speaks of tools, or of code.
        ("view a.py\n\nThis shows the code.", []),
        ("I used:\n```\nview a.py\n```\nand then\n```\neval\n```", []),
        ("eval says that all tests pass.", []),
        ("```\nview the file first\n```", []),
        ('It prints:\n```\n{"name": "Ann", "arguments": {}}\n```', []),
        ('{"name": ["view"], "arguments": {}}', []),
        ("The fix is in a.py:\n```python\nview = a.py\n```", []),
        ("done", []),
        ("", []),
        ("{", []),
    ],
)
def test_what_stands_in_place_of_a_call_is_found(answer: str, calls: list[ToolCall | str]) -> None:
    paths = [ToolCall("view", {"path": call}) if isinstance(call, str) else call for call in calls]
    assert list(find_instead(answer, TOOLS)) == paths


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ('```json\n{"name": "view", "arguments": {"file": "a.py"}}\n```', "view: "),
        ('<tool_call>{"name": "vew", "arguments": {}}</tool_call>', "did you mean 'view'?"),
        (
            '<tool_call>\n{"name": "view", "arguments": {"path": "a.py"\n</tool_call>',
            "the JSON of your action is wrong",
        ),
    ],
)
def test_what_is_surely_meant_as_a_call_is_corrected(answer: str, said: str) -> None:
    with pytest.raises(ActionError) as error:
        find_instead(answer, TOOLS)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "answer",
    [
        "```python\n" * 25_000,
        "".join(f"{'`' * (3 + number % 40)}x\n" for number in range(6_000)),
        "I see:\n\n" + "x <<<\n" * 60_000,
        "I see:\n\n" + "{\n" * 40_000,
    ],
)
def test_an_answer_is_read_at_once_however_often_a_model_repeats_itself(answer: str) -> None:
    with pytest.raises(ActionError, match="has no action"):
        find(answer, TOOLS)
    assert find_instead(answer, TOOLS) == ()


@pytest.mark.parametrize("line", ["<tool_call>{", "```python\n", "~~~\n", "x <<<\n", "{\n", "view\n<<<\n"])
def test_what_an_answer_repeats_costs_a_call_for_each_time(line: str) -> None:
    def calls(times: int) -> int:
        counted = itertools.count()
        before, collects = sys.getprofile(), gc.isenabled()
        gc.disable()  # what other tests have left would be finalized, and counted
        sys.setprofile(lambda *_: next(counted) and None)
        try:
            with contextlib.suppress(ActionError):
                find("I see:\n\n" + line * times, TOOLS)
            with contextlib.suppress(ActionError):
                find_instead("I see:\n\n" + line * times, TOOLS)
        finally:
            sys.setprofile(before)
            if collects:
                gc.enable()
        return next(counted)

    assert calls(400) < 3 * calls(200)


@given(st.text() | st.text(alphabet='`view{}<>"\n pdbname:,', max_size=80))
def test_any_answer_is_an_action_or_an_error(answer: str) -> None:
    try:
        call = find(answer, TOOLS)
    except ActionError:
        return
    assert call is None or call.name in TOOLS


def test_the_description_names_each_tool_with_its_arguments() -> None:
    said = describe([tool.schema() for tool in TOOLS.values()])
    assert "\nview path [start] [end] [line_numbers]\n" in said
    assert "    start (integer): first line to show, from 1\n" in said
    assert "    line_numbers (boolean, default true): " in said
    tags = {"anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}]}
    label = {"name": "label", "description": "Label.", "parameters": {"properties": {"tags": tags}}}
    assert "\nlabel [tags]\n    Label.\n    tags (array as JSON in quotes)\n" in f"{describe([label])}\n"


@pytest.mark.parametrize("place", [{"$ref": "#/$defs/Place"}, {"allOf": [{"$ref": "#/$defs/Place"}]}])
def test_a_type_that_is_defined_elsewhere_is_followed(place: dict[str, Any]) -> None:
    """As versions of pydantic write it."""
    place["description"] = "where"
    definitions = {"Place": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}
    parameters = {"properties": {"place": place, "other": {"anyOf": [place, {"type": "null"}]}}, "$defs": definitions}
    said = describe([{"name": "go", "description": "Go.", "parameters": parameters}])
    assert "\n    place (object as JSON in quotes): where\n    other (object as JSON in quotes)" in said
    assert sample(place, definitions) == {"x": 1}
    assert as_json("place", place, definitions) == """JSON in quotes, such as place='{"a": 1}'"""
    assert flag_for_number({"x": True}, place, definitions) is True


class Talker(LLM):
    """Answers what it is told to."""

    name = "talker"
    Settings = ServiceSettings

    def __init__(self, *answers: Message, function_calling: bool = False) -> None:
        super().__init__(model="m", function_calling=function_calling)
        self.answers, self.seen = list(answers), []

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        assert not tools or self.settings.function_calling
        self.seen.append(list(messages))
        return Completion(self.answers.pop(0))

    def count(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int:
        assert not tools
        return len(messages)


class Refusing(Talker):
    """A model whose service takes no tools, which its entry does not say."""

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        if tools or not self.answers:
            raise ToolsRefused("m: m does not support tools (400)")
        return super().complete(messages, tools)


@pytest.fixture
def env(tmp_path: Path) -> Iterator[RepoEnv]:
    with Environments(tmp_path) as made:
        yield made.make(["view", "eval", "rewrite"])


def test_who_is_no_model_is_asked_as_it_is(env: RepoEnv) -> None:
    llm = ScriptedLLM()
    assert with_text_calls(llm, env) is llm


def test_a_model_that_writes_its_calls_is_understood(env: RepoEnv) -> None:
    written, spoken = '<tool_call>{"name": "view", "arguments": {"path": "shop.py"}}</tool_call>', "It is in `shop.py`."
    wrong = '<tool_call>{"name": "view"}</tool_call>'
    called = Message("assistant", "", (ToolCall("eval", {}, "theirs"),))
    answers = [Message("assistant", text, provider={"theirs": {"n": 1}}) for text in (written, wrong, spoken)]
    inner = Talker(answers[0], called, *answers[1:], function_calling=True)
    llm = with_text_calls(inner, env)
    tools = [type(tool).schema() for tool in env.tools.values()]
    messages = [Message("user", "Fix it.")]
    first = llm.complete(messages, tools).message
    assert first.calls == (ToolCall("view", {"path": "shop.py"}, "text-1"),) and first.content == written
    messages += [first, Message("tool", "the lines", call_id="text-1")]
    second = llm.complete(messages, tools).message
    assert second is called, "what it calls as it should stays as it is"
    messages += [second, Message("tool", "1 failed", call_id="theirs")]
    third = llm.complete(messages, tools).message
    assert not third.calls and "missing argument 'path'" in str(correction_of(third))
    fourth = llm.complete([*messages, third], tools).message
    assert fourth is answers[2] and correction_of(fourth) is None
    sent = inner.seen[-1]
    assert [message.role for message in sent] == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert sent[1].content == written and not sent[1].calls and sent[1].provider["theirs"] == {"n": 1}
    assert sent[2].content == "[view]\nthe lines" and sent[3] is called


def test_a_service_that_refuses_tools_is_asked_in_words_from_then_on(env: RepoEnv) -> None:
    inner = Refusing(Message("assistant", "view shop.py"), Message("assistant", "eval"), function_calling=True)
    notes: list[str] = []
    llm = with_text_calls(inner, env, notes.append)
    tools = [type(tool).schema() for tool in env.tools.values()]
    messages = [Message("user", "Fix it.")]
    for name in ("view", "eval"):
        answer = llm.complete(messages, tools).message
        assert [call.name for call in answer.calls] == [name]
        messages += [answer, Message("tool", "seen", call_id=answer.calls[0].id)]
    assert notes == ["m: m does not support tools (400)"]
    assert [message.role for message in inner.seen[-1]] == ["system", "user", "assistant", "user"]
    with pytest.raises(ToolsRefused):
        with_text_calls(Refusing(function_calling=True), env).complete(messages, [])


def test_a_conversation_in_words(env: RepoEnv) -> None:
    inner = Talker(
        Message("assistant", "<think>eval or\n```\nview x\n```</think>\nI look.\n```\nview shop.py 1 2\n```"),
        Message("assistant", "Hm. No."),
        Message("assistant", "thinking aloud</think>done"),
    )
    llm = with_text_calls(inner, env)
    tools = [type(tool).schema() for tool in env.tools.values()]
    messages = [Message("system", "Fix it."), Message("user", "The task.")]
    first = llm.complete(messages, tools).message
    assert first.calls == (ToolCall("view", {"path": "shop.py", "start": 1, "end": 2}, "text-1"),)
    assert "think" not in first.content and correction_of(first) is None
    assert not env.step(first.calls[0])[0]["text"].startswith("there is no")
    messages += [first, Message("tool", "the lines", call_id="text-1"), Message("user", "Now what?")]
    second = llm.complete(messages, tools).message
    assert not second.calls and str(correction_of(second)).startswith("Your answer has no action.")
    messages += [second, Message("user", str(correction_of(second)))]
    third = llm.complete(messages, tools).message
    assert (third.calls, correction_of(third), third.content) == ((), None, "done")
    sent = inner.seen[-1]
    assert [message.role for message in sent] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert sent[0].content.startswith("Fix it.\n\n# How to use the tools") and "rewrite path" in sent[0].content
    assert sent[2].content == "I look.\n```\nview shop.py 1 2\n```"
    assert sent[3].content == "[view]\nthe lines\n\nNow what?"
    assert not any(message.calls for message in sent)
    assert inner.seen[0] == [sent[0], messages[1]], "what was sent stays a prefix of what is sent"
    assert llm.count(messages, tools) == 6  # type: ignore[attr-defined]


def test_code_that_speaks_of_thinking_is_no_thinking(env: RepoEnv) -> None:
    action = "rewrite shop.py <<<\nEND = '</think>'\n>>>"
    inner = Talker(Message("assistant", action), Message("assistant", f"I think.</think>\n{action}"))
    llm = with_text_calls(inner, env)
    tools = [type(tool).schema() for tool in env.tools.values()]
    for _ in range(2):
        (call,) = llm.complete([Message("user", "Fix it.")], tools).message.calls
        assert call.arguments == {"path": "shop.py", "new_code": "END = '</think>'\n"}


def test_calls_that_were_made_otherwise_are_shown_as_json(env: RepoEnv) -> None:
    inner = Talker(Message("assistant", "eval"))
    made = Message("assistant", "So.", (ToolCall("view", {"path": "a.py"}, "1"), ToolCall("eval", "{", "2")))
    results = [Message("tool", "one", call_id="1"), Message("tool", "two", call_id="2")]
    with_text_calls(inner, env).complete([Message("user", "Go."), made, *results], [])
    assert [message.content for message in inner.seen[0]] == [
        "Go.",
        'So.\n\n```\n{"name": "view", "arguments": {"path": "a.py"}}\n```'
        '\n\n```\n{"name": "eval", "arguments": "{"}\n```',
        "[view]\none\n\n[eval]\ntwo",
    ]


def test_only_what_is_offered_may_be_called(env: RepoEnv) -> None:
    tools = [type(tool).schema() for name, tool in env.tools.items() if name != "view"]
    answer = with_text_calls(Talker(Message("assistant", "```\nview shop.py\n```")), env).complete([], tools).message
    assert not answer.calls and "has no action" in str(correction_of(answer))


def test_what_the_service_wants_back_is_kept(env: RepoEnv) -> None:
    inner = Talker(Message("assistant", "eval", provider={"theirs": {"signature": "s"}}))
    tools = [type(tool).schema() for tool in env.tools.values()]
    answer = with_text_calls(inner, env).complete([Message("user", "Go.")], tools).message
    assert answer.provider["theirs"] == {"signature": "s"} and KEY in answer.provider
    assert dataclasses.asdict(answer)["calls"][0]["name"] == "eval"
    assert [message.role for message in inner.seen[0]] == ["system", "user"], "the tools are described all the same"
    assert inner.seen[0][0].content.startswith("# How to use the tools")
    inner.answers.append(Message("assistant", "done"))
    spoilt = Message("user", "Go on.", provider={"theirs": {"signature": "none of theirs"}})
    with_text_calls(inner, env).complete([Message("user", "Go."), answer, spoilt], tools)
    back = inner.seen[1]
    assert back[2].provider["theirs"] == {"signature": "s"} and not back[3].provider
