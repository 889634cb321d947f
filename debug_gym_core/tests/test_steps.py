"""The events of an episode as lines: what is shown of a prompt that an agent makes anew each time."""

from __future__ import annotations

from typing import Any

from debug_gym_core import Environment, Observation, Tool, ToolCall
from debug_gym_core.cli.steps import Steps, error_line, error_text
from debug_gym_core.runs.jobs import Job
from debug_gym_core.runs.trajectory import Event
from debug_gym_core.usage import Usage

JOB = Job("toy/a", "a", 0)


def message(role: str, content: str, *calls: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "calls": calls, "call_id": None}


class Replace(Tool):
    """A tool."""

    name = "replace"

    def use(self, env: Environment, path: str, code: str) -> Observation:
        """Replace a file."""
        raise NotImplementedError


def asked(*prompt: Any, answer: str = "hm") -> Event:
    usage = Usage(10, 2)
    return Event.llm_call(
        model="m", usage=usage, seconds=0.1, calls=[], prompt=list(prompt), answer=message("assistant", answer)
    )


def lines(steps: Steps, event: Event) -> list[str]:
    return [line.plain for line in steps.lines(JOB, event)]


def test_only_the_changed_lines_of_a_message_are_shown() -> None:
    steps = Steps(50, {}, whole=True)
    first = "\n".join(["you debug", *map(str, range(30)), "score 0", "go on"])
    shown = lines(steps, asked(message("system", "be good"), message("user", first)))
    assert "    you debug" in shown and "    29" in shown
    shown = lines(steps, asked(message("system", "be good"), message("user", first.replace("score 0", "score 1\n!"))))
    assert shown == [
        "toy/a model m: 10 + 2 tokens",
        "  (1 message as in the last prompt)",
        "  user:",
        "    (31 lines as in the last prompt)",
        "    score 1",
        "    !",
        "    (1 line as in the last prompt)",
        "  answer:",
        "    hm",
    ]


def test_a_prompt_that_is_quite_another_is_shown_whole() -> None:
    steps = Steps(50, {}, whole=True)
    lines(steps, asked(message("user", "one")))
    shown = lines(steps, asked(message("system", "two"), message("user", "three")))
    assert "    two" in shown and "    three" in shown and not any("as in the last" in line for line in shown)


def test_an_answer_without_a_call_is_a_step_to_whoever_looks_on() -> None:
    said = message("assistant", "\n".join(map(str, range(12))))
    about: Any = {"model": "m", "usage": Usage(10, 2), "seconds": 0.1, "answer": said}
    shown = lines(Steps(50, {}, whole=False), Event.llm_call(calls=[], **about))
    assert shown[:3] == ["toy/a model m called no tool", "    0", "    1"] and "5 more lines" in shown[-1]
    assert lines(Steps(50, {}, whole=False), Event.llm_call(calls=["eval"], **about)) == []


def test_a_call_of_several_lines_stands_below_its_tool_as_it_can_be_pasted() -> None:
    facts: Any = {"step": 3, "seconds": 0.1, "score": 0, "max_score": 2, "reward": 0.0}
    facts |= {"terminated": False, "truncated": False, "observation": {"text": "done", "json": "[]"}}
    call = ToolCall("replace", {"path": "a.py", "code": "x = 1\ny = 2\n"})
    shown = lines(Steps(50, {"replace": Replace}, whole=False), Event.step(action=call, **facts))
    assert shown[0] == "toy/a 3/50 replace  (score 0/2, 0.1 s)"
    assert shown[1:4] == ["replace a.py <<<", "x = 1", "y = 2"]


def test_each_attempt_begins_anew() -> None:
    steps = Steps(50, {}, whole=True)
    lines(steps, asked(message("user", "one")))
    about: Any = {"task": "toy/a", "agent": "x", "llm": "m", "terminal": "t", "tools": [], "seed": 0, "attempt": 2}
    lines(steps, Event.episode_started(**about))
    assert "    one" in lines(steps, asked(message("user", "one")))


def test_calls_without_prompts_are_not_shown() -> None:
    steps = Steps(50, {}, whole=True)
    assert lines(steps, Event.llm_call(model="m", usage=Usage(), seconds=0.1, calls=["x"])) == []
    assert lines(Steps(50, {}, whole=False), asked(message("user", "one"))) == [
        "toy/a model m called no tool",
        "    hm",
    ]


def test_what_would_steer_the_terminal_is_escaped() -> None:
    shown = lines(Steps(50, {}, whole=True), asked(message("user", "a\x1b[2Jb\x07")))
    assert "    a\\x1b[2Jb\\x07" in shown


def test_errors_name_their_class_unless_it_is_ours() -> None:
    assert error_text({"kind": "RequirementError", "message": "no sandbox"}) == "no sandbox"
    assert error_text({"kind": "KeyError", "message": "'x'"}) == "KeyError: 'x'"


def test_of_a_long_error_the_end_is_told_too() -> None:
    said = f"terminal.setup: 'pip install x' ended with status 1: {'fetching / ' * 90}No matching distribution"
    told = error_line({"kind": "RequirementError", "message": said})
    assert told.startswith("terminal.setup: 'pip install x' ended with status 1: fetching")
    assert told.endswith("fetching / No matching distribution") and len(told) == 300
    assert error_line({"kind": "RequirementError", "message": "no\nsandbox"}) == "no sandbox"


def test_a_long_line_is_cut_unless_all_is_asked_for() -> None:
    facts: Any = {"step": 3, "seconds": 0.1, "score": 0, "max_score": 2, "reward": 0.0}
    facts |= {"terminated": False, "truncated": False, "observation": {"text": "x" * 20_000, "json": "[]"}}
    event = Event.step(action=ToolCall("eval", {}), **facts)
    assert lines(Steps(50, {}, whole=False), event)[1:] == [
        f"    {'x' * 1000} (and 19000 more characters; -vv shows them)"
    ]
    assert lines(Steps(50, {}, whole=True), event)[1:] == [f"    {'x' * 20_000}"]
