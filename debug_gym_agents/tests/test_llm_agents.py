"""The agents that ask a model: what it is told, what it may do, when it ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from support import repeated

from debug_gym_agents.debug_agent import Debug5Agent, DebugAgent, RewriteAgent
from debug_gym_agents.tool_agent import ToolAgent
from debug_gym_core import LLM, Agent, Completion, Message, RepoEnv, Tool, ToolCall, UsageError, hookimpl
from debug_gym_core.errors import ContextOverflow
from debug_gym_core.models.service import ServiceSettings
from debug_gym_core.models.text_calls import with_text_calls
from debug_gym_core.testing.environments import Environments
from debug_gym_core.testing.sample import BY_UNITTEST
from debug_gym_core.testing.scripted import ScriptedLLM

ALL = ("pdb", "view", "rewrite", "eval", "listdir")
FIX = ToolCall("rewrite", {"path": "shop.py", "start": 6, "new_code": "    for price in prices:"}, "fix")
FAMILY = [DebugAgent, *repeated("people", RewriteAgent, Debug5Agent)]
EVERY = [*FAMILY, ToolAgent]

BREAK = ToolCall("rewrite", {"path": "shop.py", "start": 6, "new_code": "    for price in prices[1:]:"}, "break")
EVAL = ToolCall("eval", {}, "eval")


def touch(number: int) -> ToolCall:
    """A rewrite that helps nobody."""
    return ToolCall("rewrite", {"path": "shop.py", "start": 1, "new_code": f"# {number}"}, f"touch-{number}")


FINISH: dict[str, Literal["length", "refused", "over"]] = {"cut": "length", "I refuse.": "refused", "Over.": "over"}
"""How some answers end."""


class Talker(LLM):
    """Answers messages that are given; beyond some length of a prompt it refuses.

    Attributes:
        seen: the conversations that it took
        refused: how many it did not
    """

    name = "talker"
    Settings = ServiceSettings
    settings: ServiceSettings

    def __init__(
        self, answers: Sequence[Message], *, takes: int = 10**9, counts: bool = False, **settings: Any
    ) -> None:
        super().__init__(**{"model": "m", **settings})
        self._answers, self._takes = list(answers), takes
        self.seen: list[list[Message]] = []
        self.refused = 0
        if counts:
            self.count = lambda messages, tools: size(messages)

    def complete(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Completion:
        if size(messages) > self._takes:
            self.refused += 1
            raise ContextOverflow("too long")
        self.seen.append(list(messages))
        answer = self._answers.pop(0) if self._answers else Message("assistant", "I have no more to say.")
        return Completion(answer, finish=FINISH.get(answer.content, "stop"))


def size(messages: Sequence[Message]) -> int:
    return sum(len(message.content) for message in messages)


def calling(*calls: ToolCall) -> Message:
    return Message("assistant", "", calls)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., RepoEnv]]:
    with Environments(tmp_path) as environments:

        def make(tools: Sequence[Any] = ALL, **settings: Any) -> RepoEnv:
            return environments.make(tools, **{"max_steps": 50, "twins": "never", **BY_UNITTEST, **settings})

        yield make


def checked(messages: Sequence[Message]) -> None:
    """Every call is answered, every answer has its call, and the system speaks first and only then."""
    assert [message.role for message in messages].index("system") == 0
    assert sum(message.role == "system" for message in messages) == 1
    open_calls: list[str | None] = []
    for message in messages[1:]:
        if message.role == "tool":
            open_calls.remove(message.call_id)
        else:
            assert not open_calls
            open_calls = [call.id for call in message.calls]
    assert not open_calls


# What a model is told


@pytest.mark.parametrize("agent", [DebugAgent, RewriteAgent])
def test_the_first_prompt_holds_what_is_known_and_of_the_debugger_where_there_is_one(
    agent: type[Agent], make: Callable[..., RepoEnv]
) -> None:
    llm = ScriptedLLM([])
    agent().play(make(), llm)
    first = "\n".join(message.content for message in llm.seen[0])
    for part in ("The total of some prices is wrong.", "-m unittest -q", "2 of them", "shop.py", "test_shop.py (ro)"):
        assert part in first
    assert "# Last evaluation\nnone yet" in first and "secret" not in first
    there = agent is DebugAgent
    assert ("pdb" in first, "# Breakpoints\nnone" in first, "debugger" in first) == (there, there, there)
    assert ("pdb" in [tool["name"] for tool in llm.offered[0]]) is there


@pytest.mark.services
def test_the_prompt_holds_all_that_is_known(make: Callable[..., RepoEnv]) -> None:
    env = make()
    llm = ScriptedLLM(["eval", "pdb b shop.py:6", "view shop.py 4 6", FIX, "eval"])
    assert DebugAgent().play(env, llm) is None
    assert env.ended == "resolved"
    first, last = llm.seen[0][0].content, llm.seen[-1][0].content
    for part in ("The total of some prices is wrong.", "-m unittest -q", "2 of them", "shop.py", "test_shop.py (ro)"):
        assert part in first
    assert "# Breakpoints\nnone" in first and "# Last evaluation\nnone yet" in first and "secret" not in first
    assert "1 at shop.py:6" not in first and "so far 0 and 0" in first
    assert "    6      for price in prices:" in last, "the code in view is shown as it is now"
    assert "FAILED test_shop.py::test_some" in last and "so far 1 and 4" in last
    for messages in llm.seen:
        checked(messages)
        assert messages[-1].role == "user" and messages[-1].content.startswith("Call one tool")


@pytest.mark.services
def test_without_a_debugger_none_is_spoken_of(make: Callable[..., RepoEnv]) -> None:
    llm = ScriptedLLM(["eval", FIX, "eval"])
    RewriteAgent().play(make(), llm)
    said = "\n".join(message.content for messages in llm.seen for message in messages)
    assert "pdb" not in said and "# Breakpoints" not in said and "debugger" not in said
    assert all("pdb" not in [tool["name"] for tool in offered] for offered in llm.offered)


@pytest.mark.parametrize("agent", [DebugAgent, *repeated("people", RewriteAgent, Debug5Agent, ToolAgent)])
def test_a_system_prompt_of_ones_own(agent: type[Agent], make: Callable[..., RepoEnv], tmp_path: Path) -> None:
    path = tmp_path / "own.jinja"
    path.write_text("Mine: {{ agent.name }}, {{ task.id }}, {{ info.step }}, {{ tools | length }}\n")
    llm = ScriptedLLM(["eval"])
    env = make()
    agent(system_prompt=str(path)).play(env, llm)
    tools = 5 if agent in (DebugAgent, ToolAgent) else 4
    assert llm.seen[0][0].content == f"Mine: {agent.name}, sample/shop, 0, {tools}"
    with pytest.raises(
        UsageError, match=r"agent\.system_prompt: <template>:2: 'tak' is undefined; did you mean 'task'"
    ):
        agent(system_prompt="a\n{{ tak }}").play(env, ScriptedLLM())


# One call a step


def test_one_call_a_step_the_others_are_answered(make: Callable[..., RepoEnv]) -> None:
    env = make()
    llm = Talker([calling(ToolCall("view", {"path": "shop.py"}, "1"), ToolCall("eval", {}, "2")), calling(FIX)])
    DebugAgent().play(env, llm)
    assert env.rewrites == 1
    results = {message.call_id: message.content for message in llm.seen[1] if message.role == "tool"}
    assert "def total" in results["1"] and results["2"].startswith("Not carried out: one call a step.")
    checked(llm.seen[-1])


def test_the_memory_is_bounded_and_may_be_reset_by_rewrites(make: Callable[..., RepoEnv]) -> None:
    llm = ScriptedLLM(["listdir"] * 6)
    DebugAgent(memory_size=3, max_steps=6).play(make(max_steps=6), llm)
    assert [sum(message.role == "assistant" for message in seen) for seen in llm.seen] == [0, 1, 2, 3, 3, 3]
    assert llm.seen[-1][1].content.endswith("[The 2 oldest steps are left out.]")
    llm = ScriptedLLM(["listdir", "listdir", touch(1), "listdir"])
    DebugAgent(reset_prompt_history_after_rewrite=True).play(make(max_steps=5), llm)
    assert [sum(message.role == "assistant" for message in seen) for seen in llm.seen[:5]] == [0, 1, 2, 1, 2]
    assert llm.seen[3][2].calls == (touch(1),)


# The debugger after five rewrites


class Loud(Tool):
    """Speaks after each step, under the debugger's name."""

    name = "pdb"

    def use(self, env: RepoEnv) -> str:
        """Answer."""
        return "used"

    @hookimpl
    def on_step(self, env: RepoEnv, call: ToolCall) -> str:
        """Answer."""
        return "pdb is awake"


@pytest.mark.parametrize("before", [0, *repeated("people", 1, 5)])
def test_the_debugger_is_there_from_the_sixth_rewrite_on(before: int, make: Callable[..., RepoEnv]) -> None:
    env = make([Loud(), "rewrite", "eval"], max_rewrites=8)
    script = [step for number in range(8) for step in (ToolCall("pdb", {}, f"pdb-{number}"), touch(number))]
    llm = ScriptedLLM(script)
    agent = Debug5Agent(rewrites_before_pdb=before)
    assert agent.play(env, llm) is None
    rewrites = 0
    for turn, offered in enumerate(llm.offered):
        there = rewrites >= before
        assert ("pdb" in [tool["name"] for tool in offered]) is there
        assert ("- pdb" in llm.seen[turn][0].content) is there
        if turn + 1 < len(llm.seen):
            result = next(m.content for m in llm.seen[turn + 1] if m.role == "tool" and m.call_id == script[turn].id)
            if script[turn].name == "pdb":
                assert result.startswith("used" if there else "there is no tool 'pdb'")
            assert ("pdb is awake" in result) is there
        rewrites += script[turn].name == "rewrite"
    assert (env.ended, rewrites) == ("max_rewrites", 8)


def test_by_default_it_is_five(make: Callable[..., RepoEnv]) -> None:
    llm = ScriptedLLM([touch(number) for number in range(8)])
    Debug5Agent().play(make(), llm)
    assert ["pdb" in [tool["name"] for tool in offered] for offered in llm.offered[:8]] == [False] * 5 + [True] * 3


# The modern loop


def test_several_calls_a_turn(make: Callable[..., RepoEnv]) -> None:
    env = make()
    llm = Talker([calling(ToolCall("listdir", {}, "1"), ToolCall("nothing", {}, "2"), touch(3))])
    ToolAgent().play(env, llm)
    results = {message.call_id: message.content for message in llm.seen[1] if message.role == "tool"}
    assert list(results) == ["1", "2", "touch-3"] and (env.steps, env.rewrites) == (3, 1)
    assert "shop.py" in results["1"] and "there is no tool 'nothing'" in results["2"]


@pytest.mark.services
def test_several_calls_a_turn_with_all_that_was_said(make: Callable[..., RepoEnv]) -> None:
    env = make([*ALL, "submit"], auto_eval_on_rewrite=True, end_on_resolved=False)
    answers = [
        calling(ToolCall("pdb", {"command": "b shop.py:6"}, "1"), touch(2), ToolCall("nothing", {}, "3")),
        calling(FIX, ToolCall("submit", {}, "5"), ToolCall("eval", {}, "6")),
    ]
    llm = Talker(answers)
    assert ToolAgent().play(env, llm) is None
    assert (env.ended, env.steps, env.resolved) == ("submitted", 5, True), "what follows the end is not played"
    results = {message.call_id: message.content for message in llm.seen[1] if message.role == "tool"}
    assert "[eval]\n" in results["touch-2"] and "there is no tool 'nothing'" in results["3"]
    assert llm.seen[0] == llm.seen[1][: len(llm.seen[0])]
    checked(llm.seen[1])


def test_the_history_only_grows(make: Callable[..., RepoEnv]) -> None:
    llm = ScriptedLLM(["listdir", "eval", touch(1), "view shop.py", FIX, "eval"])
    assert ToolAgent(memory_size=2).play(make(end_on_resolved=False), llm) == "resolved"
    for before, after in itertools.pairwise(llm.seen):
        assert after[: len(before)] == before


def test_a_history_beyond_the_context_is_trimmed_in_large_pieces(make: Callable[..., RepoEnv]) -> None:
    views = [calling(ToolCall("view", {"path": "shop.py"}, f"{number}")) for number in range(40)]
    llm = Talker(views, counts=True, context_limit=8, max_tokens=1000)
    ToolAgent().play(make(), llm)
    kept = [len(messages) for messages in llm.seen]
    drops = [turn for turn in range(1, len(kept)) if kept[turn] < kept[turn - 1]]
    assert drops and all(size(messages) <= 7000 for messages in llm.seen)
    for after in (llm.seen[turn] for turn in drops):
        assert size(after) <= (7000 + size([*after[:2], *after[-2:]])) / 2, "older steps have half of their room"
    assert all(after - before > 3 for before, after in itertools.pairwise(drops))
    for messages in llm.seen:
        checked(messages)


@pytest.mark.parametrize("agent", EVERY)
def test_a_context_that_is_too_small_is_lived_with(agent: type[Agent], make: Callable[..., RepoEnv]) -> None:
    script = [calling(ToolCall("view", {"path": "shop.py"}, f"{number}")) for number in range(30)]
    llm = Talker(script, takes=6000)
    agent().play(make(max_steps=30), llm)
    assert llm.refused and len(llm.seen) == 30
    for messages in llm.seen:
        checked(messages)


@pytest.mark.parametrize("agent", EVERY)
@pytest.mark.parametrize("counts", [True, *repeated("people", False)])
def test_a_result_that_is_too_long_by_itself_is_shortened(
    agent: type[Agent], counts: bool, make: Callable[..., RepoEnv]
) -> None:
    env = make(max_steps=3)
    env.workspace.write_text("long.txt", "".join(f"line {n}\n" for n in range(2000)))
    script = [calling(ToolCall("view", {"path": "long.txt"}, f"{number}")) for number in range(3)]
    llm = Talker(script, takes=7000, counts=counts, context_limit=8, max_tokens=1000)
    agent().play(env, llm)
    assert env.ended == "max_steps" and len(llm.seen) == 3
    assert llm.refused or (counts and agent is ToolAgent), "it counts before it asks"
    for messages in llm.seen[1:]:
        checked(messages)
        assert [message for message in messages if message.role == "tool" and "line 0\n" in message.content]


@pytest.mark.services
@pytest.mark.parametrize("agent", [ToolAgent, *repeated("people", DebugAgent, RewriteAgent, Debug5Agent)])
@pytest.mark.parametrize("counts", [True, *repeated("people", False)])
def test_a_model_that_is_asked_in_text_may_count_its_tokens_and_need_not(
    agent: type[Agent], counts: bool, make: Callable[..., RepoEnv]
) -> None:
    env = make(max_steps=3)
    llm = Talker([Message("assistant", "eval")] * 3, counts=counts, context_limit=8, function_calling=False)
    agent().play(env, with_text_calls(llm, env))
    assert env.ended == "max_steps" and len(llm.seen) == 3


@pytest.mark.parametrize("agent", EVERY)
def test_what_is_too_long_in_its_shortest_form_is_an_error(agent: type[Agent], make: Callable[..., RepoEnv]) -> None:
    with pytest.raises(ContextOverflow):
        agent().play(make(), Talker([], takes=10))


# Models that make no sense


@pytest.mark.parametrize("agent", EVERY)
def test_calls_that_make_no_sense_are_steps_and_end_nothing(agent: type[Agent], make: Callable[..., RepoEnv]) -> None:
    wrong = [ToolCall("view", "{", "1"), ToolCall("vew", {}, "2"), ToolCall("view", {"x": 1}, "3")]
    env = make(max_steps=8)
    llm = Talker([calling(call) for call in (*wrong * 2, ToolCall("listdir", {}, "4"), *wrong)])
    assert agent().play(env, llm) is None
    assert (env.ended, env.steps, env.last_observations[0].error) == ("max_steps", 8, True)
    said = [message.content for messages in llm.seen for message in messages if message.role == "tool"]
    for words in ('"arguments" is no JSON object: ', "did you mean 'view'?", "example: "):
        assert any(words in text for text in said)


@pytest.mark.parametrize("agent", EVERY)
def test_answers_that_are_cut_off_end_the_episode_as_such(agent: type[Agent], make: Callable[..., RepoEnv]) -> None:
    assert agent().play(make(), Talker([Message("assistant", "cut")] * 3)) == "length"


@pytest.mark.parametrize("agent", EVERY)
def test_actions_that_fail_are_not_malformed(agent: type[Agent], make: Callable[..., RepoEnv]) -> None:
    env = make(max_steps=5)
    llm = Talker([calling(ToolCall("view", {"path": "absent.py"}, f"{number}")) for number in range(9)])
    assert agent().play(env, llm) is None
    assert env.ended == "max_steps"


@pytest.mark.parametrize("agent", FAMILY)
def test_an_answer_without_a_call_is_asked_again(agent: type[Agent], make: Callable[..., RepoEnv]) -> None:
    llm = Talker([Message("assistant", "Hm."), calling(ToolCall("eval", {}, "1")), *[Message("assistant", "Hm.")] * 9])
    env = make()
    assert agent().play(env, llm) == "malformed"
    assert (len(llm.seen), env.steps) == (5, 1)
    asked = llm.seen[1][-2].content
    assert asked.startswith("Your answer calls no tool") and asked.endswith(
        f"Call exactly one of: {', '.join(env.tools)}."
    )


def test_the_modern_loop_takes_silence_for_the_end_unless_it_was_cut_off(make: Callable[..., RepoEnv]) -> None:
    llm = Talker([Message("assistant", "cut"), Message("assistant", "I give up.")])
    assert ToolAgent().play(make(), llm) == "gave_up"
    assert len(llm.seen) == 2 and llm.seen[1][-1].content.startswith("Your answer was cut off")


@pytest.mark.parametrize("agent", [ToolAgent, *repeated("people", DebugAgent)])
def test_what_was_broken_again_after_it_was_resolved_does_not_end_as_resolved(
    agent: type[Agent], make: Callable[..., RepoEnv]
) -> None:
    env = make(end_on_resolved=False)
    said = [Message("assistant", "All tests pass.")] * 3
    ended = agent().play(env, Talker([calling(FIX), calling(EVAL), calling(BREAK), *said]))
    assert ended == ("gave_up" if agent is ToolAgent else "malformed")
    assert env.resolved and not env.grade().resolved, "nobody has measured it since"


def test_what_is_still_resolved_after_a_later_change_ends_as_resolved_and_is_graded_once(
    make: Callable[..., RepoEnv],
) -> None:
    env = make(end_on_resolved=False)
    assert ToolAgent().play(env, Talker([calling(FIX), calling(EVAL), calling(touch(1))])) == "resolved"
    grade = env.grade()
    assert grade.resolved and env.grade() is grade
    env.step(BREAK)
    assert not env.grade().resolved


def test_an_answer_that_is_cut_off_amid_further_work_is_corrected(make: Callable[..., RepoEnv]) -> None:
    env = make(end_on_resolved=False)
    llm = Talker([calling(FIX), calling(EVAL), calling(BREAK), Message("assistant", "cut"), calling(FIX)])
    assert ToolAgent().play(env, llm) == "resolved"
    assert len(llm.seen) == 6 and llm.seen[4][-1].content.startswith("Your answer was cut off")
    assert env.grade().resolved


def test_a_refusal_ends_the_modern_loop_and_is_told_from_silence(make: Callable[..., RepoEnv]) -> None:
    llm = Talker([Message("assistant", "I refuse.")])
    assert ToolAgent().play(make(), llm) == "refused"


@pytest.mark.parametrize("agent", FAMILY)
def test_refusals_are_told_from_calls_that_make_no_sense(agent: type[Agent], make: Callable[..., RepoEnv]) -> None:
    llm = Talker([Message("assistant", "I refuse.")] * 3)
    assert agent().play(make(), llm) == "refused"


@pytest.mark.parametrize("agent", EVERY)
def test_who_has_nothing_more_to_say_is_asked_once(agent: type[Agent], make: Callable[..., RepoEnv]) -> None:
    llm = Talker([Message("assistant", "Over.")])
    assert agent().play(make(), llm) == "over"
    assert len(llm.seen) == 1


@pytest.mark.parametrize("agent", EVERY)
def test_a_person_leaves_when_they_want(agent: type[Agent], make: Callable[..., RepoEnv]) -> None:
    llm = Talker([])
    llm.trusted = True  # type: ignore[misc]
    assert agent().play(make(), llm) == "over"
    assert len(llm.seen) == 1


# Models without function calling


def test_a_model_without_function_calling_writes_its_calls(make: Callable[..., RepoEnv]) -> None:
    said = ["Let me see.\n```\nview shop.py 4 5\n```", '{"name": "listdir", "arguments": {}}', "done"]
    env = make()
    inner = Talker([Message("assistant", text) for text in said], function_calling=False)
    DebugAgent().play(env, with_text_calls(inner, env))
    assert env.steps == 2 and "def total" in inner.seen[1][-1].content and "test_shop.py" in inner.seen[2][-1].content
    assert all(not message.calls and message.role != "tool" for messages in inner.seen for message in messages)


@pytest.mark.services
@pytest.mark.parametrize(
    ("agent", "last"),
    [(DebugAgent, "done"), *repeated("people", (ToolAgent, "done"), (ToolAgent, "All tests pass."))],
)
def test_a_model_without_function_calling_plays_in_text(
    agent: type[Agent], last: str, make: Callable[..., RepoEnv]
) -> None:
    said = [
        "<think>view?</think>Let me see.\n```\nview shop.py\n```",
        "The loop is wrong, I believe.",
        "Action:\n```\nrewrite shop.py 6 <<<\n    for price in prices:\n>>>\n```",
        '{"name": "eval", "arguments": {}}',
        last,
    ]
    env = make(end_on_resolved=False)
    inner = Talker([Message("assistant", text) for text in said], function_calling=False)
    assert agent().play(env, with_text_calls(inner, env)) == "resolved"
    assert (env.steps, env.resolved, len(inner.seen)) == (3, True, 5)
    assert "Your answer has no action." in inner.seen[2][-1].content
    assert all(not message.calls and message.role != "tool" for messages in inner.seen for message in messages)
    assert "pdb" not in inner.seen[0][0].content or agent in (DebugAgent, ToolAgent)


@pytest.mark.parametrize("agent", EVERY)
def test_three_answers_without_an_action_end_it(agent: type[Agent], make: Callable[..., RepoEnv]) -> None:
    env = make()
    inner = Talker([Message("assistant", "Hm.")] * 9, function_calling=False)
    assert agent().play(env, with_text_calls(inner, env)) == "malformed"
    assert (len(inner.seen), env.steps) == (3, 0)
