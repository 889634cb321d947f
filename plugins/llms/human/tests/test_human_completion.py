"""What Tab offers, on a live environment."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from debug_gym_core import SandboxLost, Tool
from debug_gym_core.environment.env import RepoEnv
from debug_gym_llm_human.completion import PATIENCE, Completion
from debug_gym_llm_human.cursor import split
from debug_gym_llm_human.hints import hint
from debug_gym_llm_human.terminal_prompt import WorkspaceCompleter
from debug_gym_tool_pdb import Pdb
from debug_gym_tool_view import View

Offer = Callable[[str], list[str]]


@pytest.fixture
def completion(env: RepoEnv) -> Completion:
    return Completion(env)


@pytest.fixture
def offer(completion: Completion) -> Offer:
    return offers(completion)


@pytest.fixture
def offer_quietly(quiet_env: RepoEnv) -> Offer:
    return offers(Completion(quiet_env))


def offers(completion: Completion) -> Offer:
    """What the line would be with each candidate taken."""
    completer = WorkspaceCompleter(completion)

    def lines(text: str) -> list[str]:
        found = completer.get_completions(Document(text), CompleteEvent(completion_requested=True))
        return [text[: len(text) + item.start_position] + item.text for item in found]

    return lines


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", ["view", "rewrite", "pdb", "paint", "help", "patch", "quit"]),
        ("vi", ["view"]),
        ("hel", ["help"]),
        ("help vi", ["help view"]),
        ("? pai", ["? paint"]),
        ("view s", ["view src/", "view start="]),
        ("view src/", ["view src/app.py", "view src/deep/", "view 'src/my file.py'"]),
        ("view src/my", ["view 'src/my file.py'"]),
        ("view 'src/my f", ["view 'src/my file.py'"]),
        ("view it", ["""view 'it'"'"'s.txt'"""]),
        ("view .hid", ["view .hidden"]),
        ("view path=src/a", ["view path=src/app.py"]),
        ("view src/app.py line_numbers=", ["view src/app.py line_numbers=true", "view src/app.py line_numbers=false"]),
        ("view src/app.py 1 2 t", ["view src/app.py 1 2 true"]),
        ("view src/app.py 1:2 f", ["view src/app.py 1:2 false"]),
        ("view src/app.py 1:2 l", ["view src/app.py 1:2 line_numbers="]),
        ("view fix", ["view fixed.py"]),
        ("listdir ", ["listdir src/"]),
        ("paint ", ["paint red", "paint 'dark green'", "paint colour="]),
        ("paint red te", ["paint red test_app.py"]),
        ("paint red test_app.py twice=t", ["paint red test_app.py twice=true"]),
        ("pdb ", ["pdb b", "pdb c", "pdb until"]),
        ("pdb unt", ["pdb until"]),
        ("pdb b src/a", ["pdb b src/app.py:"]),
        ("pdb b src/my", ["pdb b src/my file.py:"]),
        ("pdb b sr", ["pdb b src/"]),
        ("pdb h cond", ["pdb h condition"]),
        ("bash cat src/a", ["bash cat src/app.py"]),
        ("pdb <<<\nb src/a", ["pdb <<<\nb src/app.py:"]),
    ],
)
def test_offered(offer_quietly: Offer, typed: str, offered: list[str]) -> None:
    found = offer_quietly(typed)
    assert [line for line in found if line in offered] == offered, found


@pytest.mark.parametrize(
    ("typed", "never"),
    [
        ("view ", ["secret.py", ".hidden", "../"]),
        ("view sec", ["secret.py"]),
        ("bash cat s", ["secret.py"]),
        ("pdb b s", ["secret.py:"]),
        ("rewrite ", ["fixed.py"]),
        ("edit f", ["fixed.py"]),
        ("listdir s", ["app.py"]),
        ("pdb b ", ["it's.txt:"]),
        ("rewrite src/app.py 1:2 <<<", ["new_code="]),
        ("rewrite src/app.py 1:2 <<<\nvi", ["view"]),
        ("view src/app.py 1 ", ["start=", "path="]),
        ("nonsense ", ["view"]),
        ("eval ", ["view"]),
    ],
)
def test_never_offered(offer_quietly: Offer, typed: str, never: list[str]) -> None:
    assert not [line for line in offer_quietly(typed) if line.endswith(tuple(never))]


def test_breakpoints_are_offered_where_they_are_meant(env: RepoEnv, offer: Offer) -> None:
    env.breakpoints.add("src/app.py", 10, condition="x > 3")
    env.breakpoints.add("src/app.py", 25)
    env.breakpoints.add("test_app.py", 1)
    assert offer("pdb cl ") == [f"pdb cl {x}" for x in (1, 2, 3, "src/app.py:10", "src/app.py:25", "test_app.py:1")]
    assert offer("pdb disable ") == ["pdb disable 1", "pdb disable 2", "pdb disable 3"]
    assert offer("pdb b src/app.py:") == ["pdb b src/app.py:10", "pdb b src/app.py:25"]
    assert offer("pdb condition 1 ") == []


def test_a_new_file_is_offered(env: RepoEnv, offer: Offer) -> None:
    assert offer("view ne") == []
    env.workspace.write_bytes("new file.py", b"")
    assert offer("view ne") == ["view 'new file.py'"]


def test_what_is_offered_is_understood(env: RepoEnv, offer: Offer) -> None:
    for path in ("src/my", "it"):
        (line,) = offer(f"view {path}")
        env.step(line)
        assert not env.last_observations[0].error


def test_a_sandbox_that_is_gone_offers_no_paths(env: RepoEnv, offer: Offer) -> None:
    env.close()
    assert "view src/" not in offer("view ")
    assert "view" in offer("vi")
    env.failure = SandboxLost("gone")
    assert offer("view s") == ["view start="]


def test_a_busy_sandbox_costs_little_time_and_is_asked_again(
    env: RepoEnv, offer: Offer, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = threading.Event()
    listing = env.workspace.list

    def stuck(*arguments: Any) -> Any:
        busy.wait()
        return listing(*arguments)

    monkeypatch.setattr(env.workspace, "list", stuck)
    started = time.monotonic()
    assert offer("view sr") == []
    assert PATIENCE <= time.monotonic() - started < PATIENCE + 30
    assert offer("view sr") == []
    assert [one.name for one in threading.enumerate()].count("completion") == 1, "it is asked again before it answered"
    busy.set()
    for thread in [one for one in threading.enumerate() if one.name == "completion"]:
        thread.join()
    assert offer("view sr") == ["view src/"]


def test_lines_to_start_from(completion: Completion) -> None:
    assert completion.present_lines("rewrite src/app.py 4:6 <<<") == "x = 4\nx = 5\nx = 6\n"
    assert completion.present_lines("rewrite src/app.py 30 <<<") == "x = 30\n"
    for head in (
        "rewrite src/app.py <<<",
        "rewrite nowhere 1:2 <<<",
        "rewrite secret.py 1 <<<",
        "rewrite src/app.py 6:4",
    ):
        assert completion.present_lines(head) is None
    assert completion.present_lines("edit src/app.py old <<<") is None


def test_lines_to_start_from_are_those_of_the_file_in_its_encoding(env: RepoEnv, completion: Completion) -> None:
    env.workspace.write_bytes("src/new.py", b"# coding: cp1252\n# caf\xe9\n# \x81\n")
    assert completion.present_lines("rewrite src/new.py 2 <<<") == "# café\n"
    assert completion.present_lines("rewrite src/new.py 2:3 <<<") is None
    env.workspace.remove("src/new.py")


@given(st.text(alphabet="view rwtpdb src/.='\"\\<\n:1x\0é", max_size=40))
def test_no_line_breaks_it(text: str) -> None:
    tools: dict[str, type[Tool]] = {"view": View, "pdb": Pdb}
    found = split(text)
    if found is not None:
        assert 0 <= -found[2] <= len(text)
    assert isinstance(hint(text, tools), str)


@given(st.lists(st.text(min_size=1).filter(lambda word: "\0" not in word), min_size=1, max_size=4))
def test_quoted_words_are_told_apart(words: list[str]) -> None:
    line = " ".join(shlex.quote(word) for word in words)
    found = split(line)
    assert found is not None
    assert [*found[0], found[1]] == words
    assert line[len(line) + found[2] :] == shlex.quote(words[-1])


def test_hints(completion: Completion) -> None:
    tools = completion.tools
    assert "Tab" in hint("", tools)
    assert hint("vi", tools) == ""
    assert hint("view", tools).startswith("view path [start[:end]] [line_numbers]: Show the lines")
    assert hint("view ", tools).startswith("path: the file, relative to the repository's root")
    assert hint("view src/app.py ", tools).startswith("start: first line to show")
    assert hint("view src/app.py 1:2 ", tools).startswith("line_numbers: ")
    assert hint("view src/app.py end=", tools).startswith("end: last line")
    assert hint("pdb b x", tools).startswith("b: set a breakpoint")
    assert ">>>" in hint("rewrite a <<<\nx", tools)
    assert "as they are" in hint("rewrite a 1 <<<", tools)
    assert hint("quit", tools).startswith("quit: end the episode")


def test_tools_that_are_withheld_are_not_offered_until_they_are_given_back(env: RepoEnv) -> None:
    completion = Completion(env)
    assert "pdb" in completion.tools
    env.withhold("pdb")
    assert "pdb" not in completion.tools and "pdb" not in [one.text for one in completion.candidates("")]
    env.give_back("pdb")
    assert "pdb" in completion.tools
