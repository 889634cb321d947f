"""Models that act in words: those that take no tools are told them in text; those that do may write calls in theirs."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from debug_gym_core.errors import ActionError, ToolsRefused
from debug_gym_core.models.llm import LLM, Completion, Message, WrappedLLM
from debug_gym_core.models.text_actions import DONE, find, find_instead, without_thinking
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.references import choices, followed

if TYPE_CHECKING:
    from debug_gym_core.environment.env import RepoEnv
    from debug_gym_core.tools.tool import Tool

log = logging.getLogger("debug_gym")

KEY = "text_calls"
"""Under this key of `Message.provider` stands what this module knows of a message."""

FORM = """\
# How to use the tools

You act by writing one action at the end of each answer, and see what it showed in the next message. Think first if you
like; the last action in your answer is the one that is carried out. Write it in a block of its own:

```
{example}
```

The first word is the tool. Words follow the shell's quoting and fill the arguments in order; key=value names one;
START:END fills start and end. A text of several lines stands between <<< at the end of the first line and >>> alone on
the last, and is taken literally:

```
rewrite some_file.py 4:5 <<<
    total = 0
    count = 0
>>>
```

JSON is taken as well: {json}

When nothing is left to do, write {done} in place of an action.

# The tools, optional arguments in brackets
{tools}"""


def with_text_calls(llm: LLM, env: RepoEnv, note: Callable[[str], None] = log.warning) -> LLM:
    """The model as an agent asks it: offered tools when it takes them, else asked for text.

    Args:
        llm: its settings say `function_calling`, or nothing
        env: whose tools it is offered
        note: is told, in a line, that its service takes no tools
    """
    calls = getattr(llm.settings, "function_calling", None)
    if calls is None:
        return llm  # a person, a script
    return LenientCalls(llm, env, note) if calls else TextCalls(llm, env)


def correction_of(message: Message) -> str | None:
    """What to tell a model whose answer should hold an action and has none that is understood; None: all is well."""
    known = message.provider.get(KEY)
    said = known.get("correction") if isinstance(known, Mapping) else None
    return said if isinstance(said, str) else None


class LenientCalls(WrappedLLM):
    """A model that is offered tools, and whose calls are understood where it writes them in its text.

    A served model may not know what to do with tools, or its server not know how it calls them. A service that refuses
    tools is asked for actions in text from then on.
    """

    name = "lenient-calls"

    def __init__(self, inner: LLM, env: RepoEnv, note: Callable[[str], None]) -> None:
        """Wrap a model.

        Args:
            inner: the model
            env: knows the tools' text form
            note: see `with_text_calls`
        """
        super().__init__(inner)
        self._env, self._note = env, note
        self._in_text: TextCalls | None = None
        self._calls = 0

    def count(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int | None:
        """Tokens of a prompt as it would be sent; see `LLM`."""
        if self._in_text is not None:
            return self._in_text.count(messages, tools)
        return self._inner.count(list(_in_words(messages, every=False)), tools)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Ask the model and find what it wrote in place of a call; see `LLM`."""
        if self._in_text is None:
            try:
                words = list(_in_words(messages, every=False))
                return _ask(self._inner, words, tools, lambda completion: self._understood(completion, tools))
            except ToolsRefused as error:
                if not tools:
                    raise
                self._note(str(error))
                self._in_text = TextCalls(self._inner, self._env)
        return self._in_text.complete(messages, tools)

    def _understood(self, completion: Completion, tools: Sequence[dict[str, Any]]) -> Completion:
        """The answer with what it wrote as calls, or with what to tell the model."""
        message = completion.message
        if message.calls or completion.finish != "stop":
            return completion
        known: dict[str, Any] = {"in_text": True}
        calls: tuple[ToolCall, ...] = ()
        try:
            calls = find_instead(without_thinking(message.content), _offered(self._env, tools))
        except ActionError as error:
            known = {"correction": str(error)}
        else:
            if not calls:
                return completion
        named = []
        for call in calls:
            self._calls += 1
            named.append(dataclasses.replace(call, id=f"text-{self._calls}"))
        said = dataclasses.replace(message, calls=tuple(named), provider={**message.provider, KEY: known})
        return dataclasses.replace(completion, message=said)


class TextCalls(WrappedLLM):
    """A model that is asked for actions in text; agents see calls of tools as of any other."""

    name = "text-calls"

    def __init__(self, inner: LLM, env: RepoEnv) -> None:
        """Wrap a model.

        Args:
            inner: the model
            env: knows the tools' text form
        """
        super().__init__(inner)
        self._env = env
        self._calls = 0

    def count(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int | None:
        """Tokens of a prompt as it would be sent; see `LLM`."""
        return self._inner.count(self._plain(messages, tools), [])

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        """Ask the model in words and find the action in its answer; see `LLM`."""

        def read(completion: Completion) -> Completion:
            understood = self._understood(completion.message, _offered(self._env, tools))
            return dataclasses.replace(completion, message=understood)

        return _ask(self._inner, self._plain(messages, tools), [], read)

    def _plain(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> list[Message]:
        """The conversation without tools: they are described, calls and their results are text."""
        plain: list[Message] = []
        for message in _in_words(messages, every=True):
            role, text = message.role, message.content
            if plain and plain[-1].role == role:
                text = f"{plain.pop().content}\n\n{text}"
            plain.append(Message(role, text, provider=message.provider if role == "assistant" else {}))
        if tools:
            described = describe(tools)
            if plain and plain[0].role == "system":
                plain[0] = Message("system", f"{plain[0].content}\n\n{described}")
            else:
                plain.insert(0, Message("system", described))
        return plain

    def _understood(self, message: Message, tools: Mapping[str, type[Tool]]) -> Message:
        """The answer with its action as a call, or with what to tell the model."""
        content = without_thinking(message.content)
        known: dict[str, Any] = {}
        calls = message.calls[:1]
        if not calls and tools:
            try:
                call = find(content, tools)
            except ActionError as error:
                known["correction"] = str(error)
            else:
                self._calls += call is not None
                calls = (dataclasses.replace(call, id=f"text-{self._calls}"),) if call else ()
                known["in_text"] = True
        return dataclasses.replace(message, content=content, calls=calls, provider={**message.provider, KEY: known})


def _ask(
    llm: LLM, messages: Sequence[Message], tools: Sequence[dict[str, Any]], read: Callable[[Completion], Completion]
) -> Completion:
    """Ask a model, and let who keeps its answers know what is read in them."""
    if isinstance(llm, WrappedLLM):
        return llm.complete_as(messages, tools, read)
    return read(llm.complete(messages, tools))


def describe(tools: Sequence[Mapping[str, Any]]) -> str:
    """The tools and the form in which to use them, for a system message.

    Args:
        tools: as JSON Schema: `name`, `description`, `parameters`
    """
    lines = []
    for tool in tools:
        properties: Mapping[str, Any] = tool["parameters"].get("properties", {})
        required, definitions = tool["parameters"].get("required", []), tool["parameters"].get("$defs", {})
        words = [name if name in required else f"[{name}]" for name in properties]
        lines += ["", " ".join([tool["name"], *words]), f"    {tool['description']}".replace("\n", "\n    ")]
        for name, schema in properties.items():
            whole = followed(schema, definitions)
            types = [followed(one, definitions).get("type", "null") for one in (whole, *choices(whole))]
            kinds = [one for one in dict.fromkeys(types) if one != "null"]
            if "string" not in kinds:
                kinds = [f"{kind} as JSON in quotes" if kind in ("array", "object") else kind for kind in kinds]
            default = f", default {json.dumps(schema['default'])}" if schema.get("default") is not None else ""
            said = schema.get("description", "")
            lines.append(f"    {name} ({' or '.join(kinds) or 'any'}{default}){': ' if said else ''}{said}")
    names = [tool["name"] for tool in tools]
    example = next((text for name, text in _EXAMPLES.items() if name in names), names[0])
    sample = json.dumps({"name": names[0], "arguments": {}})
    return FORM.format(example=example, json=sample, done=DONE, tools="\n".join(lines))


_EXAMPLES = {"view": "view some_file.py 1 40", "eval": "eval", "bash": "bash ls -la"}


def _offered(env: RepoEnv, tools: Sequence[Mapping[str, Any]]) -> dict[str, type[Tool]]:
    """Those of the environment's tools that a request offers."""
    names = {tool["name"] for tool in tools}
    return {name: type(made) for name, made in env.tools.items() if name in names}


def _in_words(messages: Sequence[Message], *, every: bool) -> Iterator[Message]:
    """The conversation with calls and their results as text.

    Args:
        messages: the conversation
        every: whether calls that the model did not write in its text become text too
    """
    names: dict[str | None, str] = {}
    for message in messages:
        written = message.provider.get(KEY, {}).get("in_text")
        if message.calls and (written or every):
            names.update((call.id, call.name) for call in message.calls)
            text = message.content
            if not written:
                blocks = [f"```\n{json.dumps(call.as_json(), ensure_ascii=False)}\n```" for call in message.calls]
                text = "\n\n".join([*([text] if text else []), *blocks])
            yield dataclasses.replace(message, content=text, calls=())
        elif message.role == "tool" and (every or message.call_id in names):
            name = names.get(message.call_id, "tool")
            yield dataclasses.replace(message, role="user", content=f"[{name}]\n{message.content}", call_id=None)
        else:
            yield message
