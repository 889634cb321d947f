"""The events of an episode as lines for a person, for `-v`, `-vv` and `--debug`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from debug_gym_core.cli import printable
from debug_gym_core.cli.figures import plural
from debug_gym_core.runs.trajectory import Event, EventKind
from debug_gym_core.tools.action import ToolCall, as_text

if TYPE_CHECKING:
    from debug_gym_core.runs.jobs import Job

SHORT = 8
"""Lines of an observation that `-v` shows."""

LONG_ACTION = 40
"""Lines of an action that `-v` shows."""

LONG_LINE = 1000
"""Characters of a line that `-v` shows."""

ERROR_ENDS = (100, 195)
"""Characters of the beginning and of the end of an error that is told in a line: a program says the cause last."""


class Steps:
    """Writes the events of many episodes, and knows what of each it has shown already.

    Attributes:
        whole: show prompts, answers and all of an observation (`-vv`)
    """

    def __init__(self, max_steps: int, tools: Mapping[str, type[Any]], *, whole: bool) -> None:
        """Nothing is shown yet.

        Args:
            max_steps: bound on an episode's steps
            tools: those that actions may name, to write them in the text form
            whole: see above
        """
        self._max_steps, self._tools, self.whole = max_steps, tools, whole
        self._prompts: dict[Job, Sequence[Mapping[str, Any]]] = {}
        self._answers: dict[Job, Mapping[str, Any]] = {}
        self._shown: dict[Job, dict[str, str]] = {}

    def lines(self, job: Job, event: Event) -> Iterator[Text]:
        """An event as lines.

        Args:
            job: the episode
            event: what happened in it
        """
        data = event.data
        if event.kind in (EventKind.EPISODE_STARTED, EventKind.EPISODE_FINISHED):
            for known in (self._prompts, self._answers, self._shown):
                known.pop(job, None)
        elif event.kind is EventKind.STEP:
            yield from self._step(job, data)
        elif event.kind is EventKind.LLM_CALL and "prompt" in data and self.whole:
            yield from self._call(job, data)
        elif event.kind is EventKind.LLM_CALL and "answer" in data and not data["calls"]:
            yield Text(f"{job} model {data['model']} called no tool", "magenta")
            yield from _body(data["answer"]["content"], SHORT)
        elif event.kind is EventKind.ERROR and data["retried"]:
            yield Text.assemble((f"{job} ", "bold red"), f"{error_text(data['error'])}; played again")
        elif event.kind is EventKind.GRADE:
            verdict = "resolved" if data["resolved"] else "not resolved"
            yield Text.assemble(
                (f"{job} graded", "bold cyan"), f" {verdict}, {data['score']}/{data['max_score']} ({data['grading']})"
            )

    def _step(self, job: Job, data: Mapping[str, Any]) -> Iterator[Text]:
        head = f"{job} {data['step']}/{self._max_steps}"
        about = f"(score {data['score']}/{data['max_score']}, {data['seconds']:.1f} s)"
        action = action_text(data["action"], self._tools).split("\n") if data["step"] else ["reset"]
        if len(action) == 1:
            yield Text.assemble((head, "bold cyan"), " ", (printable(action[0]), "bold"), f"  {about}")
        else:
            # At the left edge, so that what is copied from here can be pasted as it is.
            tool = action[0].partition(" ")[0]
            yield Text.assemble((head, "bold cyan"), " ", (printable(tool), "bold"), f"  {about}")
            limit = None if self.whole else LONG_ACTION
            yield from _body("\n".join(action), limit, indent="", style="bold", no_wrap=True)
        text = data["observation"]["text"]
        if data["step"] or self.whole:
            yield from _body(text, None if self.whole else SHORT)
            if self.whole and text:
                self._shown.setdefault(job, {})[text] = f"the observation of step {data['step']}, above"

    def _call(self, job: Job, data: Mapping[str, Any]) -> Iterator[Text]:
        """A call of a model: what is new in its prompt since the last one, and its answer."""
        tokens = data["tokens"]
        yield Text(f"{job} model {data['model']}: {tokens['prompt']} + {tokens['completion']} tokens", "magenta")
        prompt = data["prompt"]
        before = self._prompts.get(job, ())
        same = _shared(before, prompt)
        if same:
            yield Text(f"  ({plural(same, 'message')} as in the last prompt)", "dim")
        for place, message in enumerate(prompt[same:], same):
            older = before[place] if place < len(before) and before[place]["role"] == message["role"] else None
            yield from self._message(job, message, older)
        self._prompts[job] = prompt
        answer = data.get("answer")
        if answer:
            yield Text("  answer:", "magenta")
            yield from self._said(answer)
        self._shown[job] = {}
        self._answers[job] = answer or {}

    def _message(self, job: Job, message: Mapping[str, Any], older: Mapping[str, Any] | None) -> Iterator[Text]:
        yield Text(f"  {message['role']}:", "magenta")
        if message == self._answers.get(job):
            yield Text("    (the answer above)", "dim")
            return
        known = self._shown.get(job, {}).get(message["content"])
        if known:
            yield Text(f"    ({known})", "dim")
        elif older is not None:
            yield from _changed(older["content"], message["content"])
        else:
            yield from self._said(message)
            return
        yield from self._calls(message)

    def _said(self, message: Mapping[str, Any]) -> Iterator[Text]:
        if message["content"]:
            yield from _body(message["content"], None)
        yield from self._calls(message)

    def _calls(self, message: Mapping[str, Any]) -> Iterator[Text]:
        for call in message.get("calls", ()):
            yield from _body(action_text(call, self._tools), None, indent="    -> ", style="bold")


def action_text(action: Any, tools: Mapping[str, type[Any]]) -> str:
    """An action of a trajectory in the text form.

    Args:
        action: as an event has it
        tools: those that it may name
    """
    if not isinstance(action, Mapping):
        return str(action or "")
    arguments = action.get("arguments")
    if not arguments and isinstance(action.get("name"), str):
        return str(action["name"])  # a model's text may stand as the name
    call = ToolCall(str(action.get("name")), arguments if isinstance(arguments, Mapping | str) else {})
    return as_text(call, tools)


def error_text(error: Mapping[str, str]) -> str:
    """An error of a result in words: the name of its class only where it is none of ours, whose texts say all."""
    from debug_gym_core.errors import class_of

    return error["message"] if class_of(error["kind"]) else f"{error['kind']}: {error['message']}"


def error_line(error: Mapping[str, str]) -> str:
    """An error of a result in one line, of a long one the beginning and the end."""
    text = " ".join(error_text(error).split())
    head, tail = ERROR_ENDS
    return text if len(text) <= head + tail else f"{text[:head]} ... {text[-tail:]}"


def shorten(text: str, length: int) -> str:
    """The text in one line and at most that long."""
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 3]}..."


def _shared(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> int:
    """How many messages at the start of two prompts are the same."""
    count = 0
    for one, other in zip(before, now, strict=False):
        if one != other:
            break
        count += 1
    return count


def _changed(before: str, now: str) -> Iterator[Text]:
    """A message that an agent makes anew each time: without the lines at its start and end that were there before."""
    old, new = before.rstrip("\n").split("\n"), now.rstrip("\n").split("\n")
    most = min(len(old), len(new))
    head = next((place for place in range(most) if old[place] != new[place]), most)
    tail = next((place for place in range(most - head) if old[-1 - place] != new[-1 - place]), most - head)
    if head:
        yield Text(f"    ({plural(head, 'line')} as in the last prompt)", "dim")
    if new[head : len(new) - tail]:
        yield from _body("\n".join(new[head : len(new) - tail]), None)
    if tail:
        yield Text(f"    ({plural(tail, 'line')} as in the last prompt)", "dim")


def _body(
    text: str, limit: int | None, *, indent: str = "    ", style: str = "", no_wrap: bool = False
) -> Iterator[Text]:
    lines = text.rstrip("\n").split("\n")
    shown = lines if limit is None or len(lines) <= limit else lines[: limit - 1]
    for number, line in enumerate(shown):
        margin = indent if number == 0 else " " * len(indent)
        cut = len(line) - LONG_LINE if limit is not None else 0
        more = f" (and {cut} more characters; -vv shows them)" if cut > 0 else ""
        said = f"{margin}{printable(line[:LONG_LINE] if more else line)}{more}"
        yield Text(said if line else margin.rstrip(), style, no_wrap=no_wrap)
    if len(shown) < len(lines):
        yield Text(f"    (and {len(lines) - len(shown)} more lines; -vv shows them)", "dim")
