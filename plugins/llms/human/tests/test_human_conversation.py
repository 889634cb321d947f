"""The talk with a person: real lines from a pipe, a real environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from support import repeated

from debug_gym_core import Message, Observation, ToolCall
from debug_gym_core.environment.env import RepoEnv
from debug_gym_llm_human import Human
from debug_gym_llm_human.history import LARGEST, KeptHistory
from debug_gym_llm_human.layout import as_text, observation, printable, prose, status, wrapped

Play = Callable[[str], list[ToolCall]]


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Standard input is a pipe; its other end."""
    read, write = os.pipe()
    with os.fdopen(read) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield write


@pytest.fixture
def play(env: RepoEnv, keyboard: int) -> Play:
    """Let a person type lines; what they asked the environment to do."""

    def play(lines: str) -> list[ToolCall]:
        os.write(keyboard, lines.encode("utf-8", "surrogateescape"))
        os.close(keyboard)
        human = Human()
        human.begin(env)
        calls: list[ToolCall] = []
        messages = [Message("system", "instructions for models"), Message("user", env.last_text)]
        while True:
            answer = human.complete(messages, []).message
            messages.append(answer)
            if not answer.calls:
                return calls
            calls += answer.calls
            observation, *_ = env.step(answer.calls[0])
            messages.append(Message("tool", observation["text"], call_id=answer.calls[0].id))

    return play


def test_a_line_that_is_a_command_is_that_command_as_it_was_typed(play: Play) -> None:
    """Quotes and names that the text form takes off a whole action are the debugger's there."""
    calls = play("pdb\n'abc'\nentrypoint=3\ncommand='x'\nq\n")
    assert [dict(call.arguments) for call in calls] == [
        {"command": line} for line in ("'abc'", "entrypoint=3", "command='x'", "q")
    ]


def test_lines_become_calls_and_their_answers_are_shown(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    calls = play("view src/app.py 1:2\nrewrite src/app.py 1 <<<\n  x = 'é'\n\n>>>\npaint 'dark green' src/app.py\n")
    assert [(call.name, dict(call.arguments)) for call in calls] == [
        ("view", {"path": "src/app.py", "start": 1, "end": 2}),
        ("rewrite", {"path": "src/app.py", "start": 1, "new_code": "  x = 'é'\n\n"}),
        ("paint", {"colour": "dark green", "path": "src/app.py"}),
    ]
    assert len({call.id for call in calls}) == 3
    shown = capsys.readouterr().out
    assert "instructions for models" not in shown
    assert shown.count("Task tests/human") == 1
    assert "[view]\nsrc/app.py, lines 1-2 of 30 (editable)\n   1  x = 1\n" in shown
    assert "+  x = 'é'\n" in shown
    assert "painted src/app.py dark green" in shown
    assert "step 3/50 | score ?/" in shown


def test_the_score_is_said_once_it_was_measured(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    play("eval\n")
    before, after = re.findall(r"^step .*$", capsys.readouterr().out, re.MULTILINE)
    assert before.startswith("step 0/50 | score ?/")
    assert after.startswith("step 1/50 | score ") and "?" not in after


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("vew src/app.py", "line 1: there is no tool 'vew'; did you mean 'view'?"),
        ("grep x", "grep is installed, but not one of this episode's tools; add it to `tools` in the config"),
        ("view", "line 1: view: missing argument 'path'"),
        ("paint blue src/app.py", "line 1: paint: argument 'colour'"),
        ("paint red", "example: paint red src/app.py"),
        ("view src/app.py 1 2 true 4", "too many words"),
        ("help", "Tools, each use is a step"),
        ("help rewrite", "rewrite path [start[:end]] <<< new_code >>>"),
        ("help help", "help: what can be typed"),
        ("help everything", "there is no help about 'everything'"),
        *repeated(
            "people",
            ("paint?", "paint colour path [twice] [note]"),
            ("patch", "Nothing is changed."),
            ("patch x", "patch stands alone"),
            ("", "step 0/50"),
            ("\0\x1b[31m", r"\x1b[31m"),
        ),
    ],
)
def test_what_costs_no_step(
    play: Play, env: RepoEnv, capsys: pytest.CaptureFixture[str], line: str, answer: str
) -> None:
    assert play(f"{line}\n") == []
    assert env.steps == 0
    shown = capsys.readouterr().out
    assert answer in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("word", ["quit", "exit", "  quit  "])
def test_leaving(play: Play, word: str) -> None:
    assert play(f"{word}\nview src/app.py\n") == []


def test_patch_shows_what_was_changed(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    play("rewrite src/app.py 1 <<<\nx = 7\n>>>\npatch\n")
    assert "diff --git a/src/app.py b/src/app.py" in capsys.readouterr().out


def test_a_command_tool_alone_takes_every_line(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    block = "rewrite src/app.py <<<\nx = 1\n>>>\n"
    below = "commands 1 <<<\np 2\nend\n>>>\n"
    outside = f"pdb interact\npdb {below}view src/app.py 1:1\n"
    calls = play(f"pdb\nb src/app.py:3\n{block}commands 1\n{below}p 1 + 1\n\nq\n{outside}")
    assert [str(call.arguments.get("command", call.name)) for call in calls] == [
        *("b src/app.py:3", "commands 1\np 2\nend\n", "p 1 + 1", "p 1 + 1", "q", "commands 1\np 2\nend\n"),
        "view",
    ]
    shown = capsys.readouterr().out
    assert "stopped at src/app.py:1" in shown
    assert "debug-gym pdb>" in shown
    assert shown.count("Each line is a pdb command; Ctrl-D comes back.") == 2 and "usage: rewrite" not in shown
    assert "interact takes lines: interact <<<, the lines, and >>> on a line of its own" in shown
    assert "commands takes lines: commands 1 <<<" in shown


def test_comments_in_a_file_are_left_out_and_those_of_a_text_are_not(
    play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = play("# first\nview src/app.py\n  # now change it\nrewrite src/app.py <<<\n# kept\n>>>\n")
    assert [call.name for call in calls] == ["view", "rewrite"] and "# kept" in str(calls[1].arguments)
    assert "there is no tool" not in capsys.readouterr().out


def test_a_block_without_its_end_is_not_sent(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    assert play("rewrite src/app.py <<<\nx = 1\n") == []
    assert "line 1: the text after <<< has no end" in capsys.readouterr().out


def test_the_lines_after_the_last_episode_are_left(env: RepoEnv, keyboard: int) -> None:
    os.write(keyboard, b"quit\nview src/app.py\n")
    for calls in (0, 1):
        human = Human()
        human.begin(env)
        assert len(human.complete([], []).message.calls) == calls
    os.close(keyboard)


def test_without_an_environment_the_text_is_the_action(keyboard: int, capsys: pytest.CaptureFixture[str]) -> None:
    os.write(keyboard, b"view a.py\n")
    os.close(keyboard)
    human = Human()
    (call,) = human.complete([Message("user", "look \x1b[31mhere")], []).message.calls
    assert call.name == "view a.py"
    assert "look \\x1b[31mhere" in capsys.readouterr().out
    assert not human.complete([], []).message.calls


def test_interrupt_ends_the_wait(env: RepoEnv, keyboard: int) -> None:
    human = Human()
    human.begin(env)
    raised = threading.Event()

    def ask() -> None:
        try:
            human.complete([], [])
        except KeyboardInterrupt:
            raised.set()

    thread = threading.Thread(target=ask)
    thread.start()
    human.interrupt()
    thread.join(20)
    os.close(keyboard)
    assert raised.is_set()


def test_interrupt_before_the_first_question(env: RepoEnv, keyboard: int) -> None:
    human = Human()
    human.interrupt()
    human.begin(env)
    with pytest.raises(KeyboardInterrupt):
        human.complete([], [])
    os.close(keyboard)


def test_a_tool_that_fails_is_shown_as_an_error(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    play("breaks\n")
    assert "breaks failed: RuntimeError: it is broken" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["a\x1b[2Jb", "\x9b31m", "\u202etxt", "\udce9", "a\rb", "\x07"])
def test_nothing_steers_the_terminal(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert "\\" in shown


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (60, "step 12/50 | score 519/519 | all tests pass, submit ends"),
        (50, "step 12/50 | score 519/519 | all tests pass"),
        (40, "step 12/50 | score 519/519"),
    ],
)
def test_the_line_before_the_prompt_is_no_torn_word(width: int, line: str) -> None:
    passed = {"steps": 12, "max_steps": 50, "score": 519, "max_score": 519, "measured": True, "resolved": True}
    env = SimpleNamespace(**passed, tools={"submit": None}, breakpoints=[])
    assert as_text(status(cast("RepoEnv", env), "", width)) == f"{line}\n"


def test_text_is_wrapped_at_words() -> None:
    line = "- view path: Show the lines of a file with their numbers; B marks lines with a breakpoint."
    lines = wrapped(line, 40)
    assert all(len(one) <= 40 for one in lines)
    assert all(one.startswith("  ") for one in lines[1:])
    assert " ".join(one.strip() for one in lines) == line


def test_examples_and_code_are_not_wrapped() -> None:
    example = "  pdb command=c entrypoint='python -m pytest -q'"
    text = f"The debugger runs the program, stops it and looks inside.\n\nExamples:\n{example}"
    wanted = ["The debugger runs the program, stops it", "and looks inside.", "", "Examples:", example]
    assert prose(text, 40) == wanted
    assert prose(f"example:{example}", 40) == [f"example:{example}"]
    error = Observation("view", f"view: there is no file nosuch.py; did you mean such.py?\n{example}", error=True)
    assert as_text(observation([error], 40)).splitlines() == [
        "[view]",
        "view: there is no file nosuch.py; did",
        "you mean such.py?",
        example,
    ]


def test_history_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "history"
    complaints: list[str] = []
    history = KeptHistory(path, complaints.append)
    for number in range(3):
        history.store_string(f"view {number}\nsecond line")
    assert history.load_history_strings() == [f"view {number}\nsecond line" for number in (2, 1, 0)]
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open("a") as file:
        file.writelines(f"\n# then\n+{'x' * 1000}\n" for _ in range(LARGEST // 1000))
    history = KeptHistory(path, complaints.append)
    assert path.stat().st_size <= LARGEST // 2
    assert path.stat().st_mode & 0o777 == 0o600
    assert set(history.load_history_strings()) == {"x" * 1000}
    assert not complaints


def test_history_that_cannot_be_kept_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    complaints: list[str] = []
    history = KeptHistory(tmp_path / "file" / "history", complaints.append)
    history.store_string("one")
    history.store_string("two")
    assert history.load_history_strings() == []
    (complaint,) = complaints
    assert "not kept" in complaint


def test_prompt_toolkit_is_not_loaded_for_a_pipe() -> None:
    code = (
        "import sys, debug_gym_llm_human\n"
        "assert not debug_gym_llm_human.Human().complete([], []).message.calls\n"
        "assert 'debug_gym_llm_human.plain_prompt' in sys.modules and 'prompt_toolkit' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, check=True, timeout=60)
