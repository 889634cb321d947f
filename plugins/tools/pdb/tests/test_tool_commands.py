"""Commands of the tool, and breakpoints over restarts and edits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from debugged_programs import LOOP

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.testing.environments import Environments
from debug_gym_core.tools.observation import Observation


class Player:
    """Plays steps in an environment."""

    def __init__(self, env: RepoEnv) -> None:
        self.env = env

    def step(self, tool: str, **arguments: object) -> str:
        """Use a tool; returns all that is told."""
        return str(self.env.step({"name": tool, "arguments": arguments})[0]["text"])

    def pdb(self, command: str) -> Observation:
        """Use the debugger alone, without the rest of a step."""
        tool: Any = self.env.tools["pdb"]
        observation: Observation = tool.use(self.env, command)
        return observation

    def write(self, text: str) -> str:
        """Replace the whole file."""
        return self.step("rewrite", path="app.py", new_code=text)


@pytest.fixture
def player(tmp_path: Path) -> Iterator[Player]:
    with Environments(tmp_path) as environments:
        yield Player(
            environments.make(
                ["pdb", "view", "rewrite", "edit", "bash"],
                files={"app.py": LOOP, "notes.txt": "x\n"},
                debug_entrypoint="python app.py",
            )
        )


def test_help_needs_no_session(player: Player) -> None:
    player.env.task = dataclasses.replace(player.env.task, debug_entrypoint="python nosuch.py")
    assert player.pdb("help").text.startswith("Set\n")
    player.env.task = dataclasses.replace(player.env.task, debug_entrypoint="python app.py")
    assert "Started" in player.pdb("help b").text


def test_a_restart_that_is_the_start_happens_once(player: Player) -> None:
    assert player.pdb("run").text.count("Started") == 1
    assert player.pdb("restart").text.count("Started") == 1


def test_a_start_with_arguments_happens_once_and_keeps_them_over_the_end(player: Player) -> None:
    player.write("import sys\nprint(sys.argv[1:])\n")
    started = "Started `python app.py one 'two three'`, stopped before its first line."
    text = player.pdb("run one 'two three'\nc").text
    assert text.count("Started") == 1 and started in text and "['one', 'two three']" in text
    for command in ("b app.py:2", "c", "restart", "restart"):
        assert player.pdb(command).text.count("Started") == (command != "c")
    assert "['one', 'two three']" in player.pdb("cl 1\nc").text
    assert player.pdb("rerun four\nc\nc").text.count("Started `python app.py four`") == 1
    assert "Started `python app.py four`" in player.pdb("restart").text
    text = player.step("pdb", command="c", entrypoint="python app.py")
    assert "Started `python app.py`" in text
    player.pdb("c")
    assert "Started `python app.py`" in player.pdb("restart").text
    player.pdb("restart five")
    player.env.reset()
    player.write("import sys\n")
    assert "Started `python app.py`" in player.pdb("restart").text


def test_what_is_no_start_with_arguments_is_carried_out(player: Player) -> None:
    assert player.pdb("run = 3\np run").text.endswith("3")
    player.pdb("q")
    assert "*** Cannot run 'one: No closing quotation" in player.pdb("run 'one").text


def test_pasted_commands_are_carried_out(player: Player) -> None:
    observation = player.pdb("```\n(Pdb) b app.py:4\n(Pdb) c\n(Pdb) p n\n```")
    assert observation.data["stop"]["line"] == 4 and observation.text.endswith("(Pdb) p n\n0")


def test_steps_with_a_count_end_at_a_breakpoint(player: Player) -> None:
    player.pdb("b app.py:8\nc")
    observation = player.pdb("n 3")
    assert [one["command"] for one in observation.data["commands"]] == ["n"] * 3
    assert observation.data["stop"]["line"] == 9 and observation.text.count("stopped:") == 1
    player.pdb("b app.py:4")
    observation = player.pdb("n 4")
    assert observation.data["stop"]["breakpoint"] == 2 and "[2 of 4 steps taken]" in observation.text
    player.pdb("cl")
    observation = player.pdb("n 5000")
    assert observation.data["ended"]["how"] == "exited" or "[50 of 5000 steps taken]" in observation.text


def test_display_shows_changes_at_each_stop(player: Player) -> None:
    player.pdb("b app.py:10\nc\ndisplay total")
    assert "display total" not in player.pdb("c").text
    assert "display total: 1  [old: 0]" in player.pdb("c").text
    player.pdb("undisplay total")
    assert "display total" not in player.pdb("c").text


def test_breakpoints_live_through_ten_restarts_and_edits(player: Player) -> None:
    player.pdb("b app.py:4, n >= 1\nignore 1 2\nb app.py:5\ndisable 2\nb app.py:11\ncommands 3\np total\nend")
    player.pdb("tbreak app.py:8")
    text = LOOP
    for round_ in range(10):
        stop = player.pdb("c").data["stop"]
        if round_ == 0:
            assert stop["source"][4] == [8, "    total = 0"]
            stop = player.pdb("c").data["stop"]
        assert stop["breakpoint"] == 1 and stop["locals"]["changed"]["n"] == "3", round_
        assert player.pdb("b").text.count("breakpoint ") >= 3
        kept = {one.number: one for one in player.env.breakpoints}
        assert sorted(kept) == [1, 2, 3] and (kept[1].condition, kept[1].ignore) == ("n >= 1", 2)
        assert not kept[2].enabled and kept[3].commands == ("p total",)
        if round_ % 3 == 0:
            player.pdb("restart")
        elif round_ % 3 == 1:
            text = f"# {round_}\n" + text  # above
            assert "Breakpoint 1 moved" in player.write(text)
        else:
            text = text.replace("    return total\n", f"    n = {round_}\n    return total\n")  # below
            player.write(text)
    assert "not carried" not in player.pdb("cl 1\nc").text
    assert player.env.breakpoints[3].line == text.splitlines().index('    print("total", total)') + 1


def test_a_breakpoint_whose_line_is_rewritten_is_dropped_and_named(player: Player) -> None:
    player.pdb("b app.py:4, n > 1\nb app.py:11")
    said = player.write(LOOP.replace("result = total + n", "result = total - n"))
    assert "Breakpoint 1 at app.py:4, if n > 1 was dropped: its line was replaced." in said
    whole = "# all new\n" + LOOP.replace("result", "answer")
    assert "Breakpoint 2 moved from app.py:11 to app.py:12." in player.write(whole)


def test_a_deleted_file_and_its_return(player: Player) -> None:
    player.pdb("b app.py:11")
    assert "Breakpoint 1 at app.py:11 was dropped: its file is gone." in player.step("bash", command="mv app.py x.py")
    player.step("bash", command="mv x.py app.py")
    assert player.pdb("b app.py:11").text.endswith("Breakpoint 2 at /testbed/app.py:11")


def test_edits_by_every_tool_are_followed(player: Player) -> None:
    step = player.step
    step("pdb", command="b app.py:4, n == 2")
    new = "# a\ndef add(total, n):"
    assert "moved from app.py:4 to app.py:5" in step("rewrite", path="app.py", start=3, end=3, new_code=new)
    assert "moved from app.py:5 to app.py:6" in step("edit", path="app.py", old="import sys\n", new="import sys\n\n")
    assert "moved from app.py:6 to app.py:7" in step("bash", command="sed -i '1i # b' app.py")
    assert "moved from app.py:7 to app.py:6" in step("bash", command="sed 1d app.py > new && mv new app.py")
    assert player.env.breakpoints[1].condition == "n == 2"
    assert "at app.py:6 in add" in step("pdb", command="c\np n")


def test_where_the_program_stands_is_said_at_every_step(player: Player) -> None:
    step = player.step
    line = "The debugger is stopped at app.py:4 in add."
    assert "The debugger" not in step("view", path="app.py")
    assert "The debugger" not in step("pdb", command="b app.py:4")
    assert step("view", path="app.py").endswith("The debugger is stopped before the program's first line.")
    assert "The debugger" not in step("pdb", command="c")
    assert step("view", path="app.py").endswith(line)
    assert step("bash", command="true").endswith(line)
    assert step("rewrite", path="notes.txt", new_code="y\n").endswith(line)
    step("pdb", command="u")
    assert step("view", path="app.py").endswith(line)
    assert "The debugger is" not in step("rewrite", path="app.py", start=1, end=1, new_code="import os")
    step("pdb", command="c\nq")
    assert "The debugger" not in step("view", path="app.py")
