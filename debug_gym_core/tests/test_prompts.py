"""Prompts: strict, in a sandbox, with errors that say where."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.agents.agent import Agent
from debug_gym_core.agents.history import History
from debug_gym_core.agents.prompts import Facts, Prompt, Sight, facts, trim_message
from debug_gym_core.config.text import attribute_help
from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import UsageError
from debug_gym_core.models.llm import LLM, Message
from debug_gym_core.testing.environments import Environments
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.observation import Observation


class Player(Agent):
    """Plays nothing."""

    name = "player"

    def play(self, env: RepoEnv, llm: LLM | None) -> None:
        """Play."""


@pytest.fixture
def environments(tmp_path: Path) -> Iterator[Environments]:
    with Environments(tmp_path) as made:
        yield made


def test_values_are_filled_in_and_filters_work() -> None:
    prompt = Prompt("{{ task.id }} {{ task | to_pretty_json }} {{ text | trim_message(max_length=3) }}")
    values = {"task": {"id": "x", "b": "ä"}, "text": "abcdefghijk"}
    assert prompt.render(values) == 'x {\n  "b": "ä",\n  "id": "x"\n} abc[...]jk'
    called = Prompt("{{ task.id }} {{ to_pretty_json(task) }} {{ trim_message(text, max_length=3) }}")
    assert called.render(values) == prompt.render(values)


def test_every_fact_is_documented() -> None:
    assert attribute_help(type("Odd", (), {"__doc__": "It.\n\nAttributes:\n\n    one: first\n"})) == {"one": "first"}
    assert list(attribute_help(Facts)) == [one.name for one in dataclasses.fields(Facts)]


def test_plain_text_stays_as_it_is() -> None:
    assert Prompt("You fix bugs; {'a': 1} & <b>.\nSecond line.").render({}) == (
        "You fix bugs; {'a': 1} & <b>.\nSecond line."
    )


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("start", "[...]lm"),
        ("middle", "a[...]m"),
        ("end", "ab[...]"),
    ],
)
def test_a_text_is_trimmed_where_it_is_asked_for(where: str, left: str) -> None:
    text = "{{ text | trim_message(max_length_percentage=0.1, where='" + where + "') }}"
    assert Prompt(text, limit=20).render({"text": "abcdefghijklm"}) == left


@given(st.text(), st.integers(0, 20), st.sampled_from(["start", "middle", "end"]))
def test_trimming_keeps_what_fits_and_bounds_the_rest(text: str, tokens: int, where: str) -> None:
    trimmed = trim_message(text, tokens, where)  # type: ignore[arg-type]
    assert trimmed == text if len(text) <= tokens * 3.5 else len(trimmed) <= max(tokens * 3.5, len("[...]"))


def test_a_trimmed_text_says_how_much_is_left_out() -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(400))
    trimmed = trim_message(text, 40)
    head, mark, tail = trimmed.splitlines()
    assert len(trimmed) <= 140 and text.startswith(head) and text.endswith(tail)
    assert mark == f"[... {400 - len(head) - len(tail)} characters left out ...]"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("one\n{{ tsk.id }}", "system_prompt: <template>:2: 'tsk' is undefined; did you mean 'task'?"),
        ("{{ task.nme }}", "<template>:1: 'dict object' has no attribute 'nme'"),
        ("one\ntwo\n{% if %}", "<template>:3: Expected an expression, got 'end of statement block'"),
        ("{{ task | shout }}", "<template>:1: No filter named 'shout'."),
        ("{{ task | trim_message }}", "<template>:1: trim_message takes max_length (tokens) or max_length_percentage"),
        ("{{ 'abcd' | trim_message(0, where='top') }}", "<template>:1: trim_message: where is start, middle or end"),
        ("{{ 1 / 0 }}", "<template>:1: division by zero"),
        ("{{ task.__class__.__mro__ }}", "<template>:1: access to attribute '__class__' of 'dict' object is unsafe."),
        ("{{ task.clear() }}", "<template>:1: "),
        ("{% include 'other.jinja' %}", "<template>:1: no loader for this environment specified"),
    ],
)
def test_what_is_wrong_in_a_template_is_said_with_its_line(template: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        Prompt(template).render({"task": {"id": "x"}})
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("one\n{{ tsk.id }}", "system_prompt: <template>:2: 'tsk' is undefined; did you mean 'task'?"),
        ("{% for tool in tools %}{{ tool.name }}{{ loop.index }}{% endfor %}{{ range(3) }}", ""),
        ("{% set mine = task.id %}{{ mine }}{{ history | to_pretty_json }}", ""),
        ("{% if mood is defined %}{{ mood }}{% endif %}{{ weather | default('fair') }}", ""),
        ("{{ info[1 or mood is defined] }}{{ mood }}", ""),
        ("one\n{{ task | shout }}", "system_prompt: <template>:2: No filter named 'shout'."),
        ("one\n{{ task", "system_prompt: <template>:2: unexpected end of template, expected 'end of print statement'."),
        (
            "one\n{% macro both(x, x) %}{% endmacro %}\n",
            "system_prompt: <template>:2: duplicate argument 'x' in function definition",
        ),
        ("{{ range(1) }}\n{{ range(a=1, a=2) }}", "system_prompt: <template>:2: keyword argument repeated: a"),
    ],
)
def test_what_can_be_told_of_a_template_before_there_are_facts_is_said(template: str, said: str) -> None:
    with pytest.raises(UsageError) if said else contextlib.nullcontext() as error:
        Prompt(template).check()
    assert error is None or str(error.value) == said


def test_a_template_that_is_too_deep_is_said_to_be_before_there_are_facts() -> None:
    said = "^system_prompt: <template>: maximum recursion depth exceeded"  # each version of Python goes on differently
    with pytest.raises(UsageError, match=said):
        Prompt("{{" + "-" * 9999 + "1 }}").check()


def test_a_file_is_read_and_may_include_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "prompt.jinja").write_text("{% include 'part.jinja' %}\n{{ a }}ß\n", encoding="utf-8")
    (tmp_path / "part.jinja").write_text("part {{ a }}\n")
    prompt = Prompt(str(tmp_path / "prompt.jinja"))
    assert prompt.render({"a": 1}) == "part 1\n1ß"


def test_errors_of_files_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "prompt.jinja"
    with pytest.raises(UsageError, match=r"agent\.system_prompt: .*prompt\.jinja: No such file or directory"):
        Prompt(str(path), "agent.system_prompt").render({})
    path.write_text("one\n{% include 'part.jinja' %}")
    with pytest.raises(UsageError, match=r"prompt\.jinja:2: there is no template 'part\.jinja'"):
        Prompt(str(path)).render({})
    (tmp_path / "part.jinja").write_text("\n\n{{ wrong }}")
    with pytest.raises(UsageError, match=r"part\.jinja:3: 'wrong' is undefined"):
        Prompt(str(path)).render({})
    (tmp_path / "part.jinja").write_text("\n\n{% macro both(x, x) %}{% endmacro %}")
    with pytest.raises(UsageError, match=r"part\.jinja:3: duplicate argument 'x' in function definition"):
        Prompt(str(path)).render({})
    path.write_text("{% include '../../etc/passwd' %}")
    with pytest.raises(UsageError, match=r"prompt\.jinja:1: there is no template '../../etc/passwd'"):
        Prompt(str(path)).render({})
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        Prompt(str(path)).render({})


def test_the_facts_of_an_episode(environments: Environments) -> None:
    env = environments.make(["view", "pdb", "eval", "rewrite"], max_steps=9)
    sight, history = Sight(), History()
    call = ToolCall("view", {"path": "shop.py", "start": 4, "end": 6}, "1")
    for one in (ToolCall("eval"), ToolCall("pdb", {"command": "b shop.py:6"}), call):
        env.step(one)
        sight.see(env.last_observations)
    history.append(Message("assistant", "I look.", (call,)))
    history.append(Message("tool", "seen", call_id="1"))
    env.step(ToolCall("rewrite", {"path": "shop.py", "start": 5, "new_code": "    result = 0.0"}))
    sight.see([*env.last_observations, Observation("eval", "no", error=True)])
    found = facts(env, Player(memory_size=3), sight, history)
    assert (found.agent["name"], found.agent["memory_size"]) == ("player", 3)
    assert found.info == env.info and found.info["step"] == 4
    assert found.task["description"] == "The total of some prices is wrong."
    assert [one["name"] for one in found.tools] == ["view", "pdb", "eval", "rewrite"]
    assert found.tools[0]["usage"] == "view path [start] [end] [line_numbers]"
    assert "test_shop.py (ro)" in found.tree and "docs/\n  guide.md" in found.tree and "secret" not in found.tree
    assert found.breakpoints == ["1 at shop.py:6"]
    assert "test_some" in found.last_evaluation
    assert found.code_in_view.splitlines() == [
        "shop.py",
        "    4  def total(prices):",
        "    5      result = 0.0",
        "    6      for price in prices[1:]:",
    ]
    assert found.history == [{"action": f"I look.\n{json.dumps(call.as_json())}", "observation": "seen"}]
    assert found.rewrites == 1 and found.last_observation == env.last_text
    assert Prompt("{{ agent.name }} {{ info.step }} {{ breakpoints[0] }}").render(found) == "player 4 1 at shop.py:6"
    env.workspace.write_bytes("shop.py", b"a\n\x0cb\nc = '\xe2\x80\xa8'\nd\n\xff\nf\n")  # as view shows it
    assert sight.code(env).splitlines()[1:] == ["    4  d", r"    5  \xff", "    6  f"]
    env.workspace.write_bytes("shop.py", b"# coding: latin-1\n\n\n\xe9\n")
    assert sight.code(env).splitlines()[1:] == ["    4  é"]
    env.workspace.remove("shop.py")
    assert sight.code(env) == ""
