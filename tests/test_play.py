"""A person at a real terminal finds and fixes a bug: keys go into a PTY, the trajectory shows what came of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pexpect
import pytest
from person_at_terminal import CTRL_C, CTRL_D, CTRL_R, ENTER, TAB, TASK, UP, Play, called
from support import COMMAND, run_debug_gym

pytestmark = pytest.mark.people

FIX = """\
        while True:
            with self._lock:
                current = self._storage.load(name)
            wanted = current + by
            self._approve(name, wanted)
            with self._lock:
                if self._storage.load(name) == current:
                    self._storage.save(name, wanted)
                    return
"""
COLOUR = r"\x1b\[(?:[0-9;]*;)?[39][0-7]m"


def test_a_person_finds_and_fixes_the_bug(play: Play) -> None:
    player = play()
    player.prompt(0)
    player.type(f"vi{TAB}", "view")
    player.type(TAB, "PATH")  # the form
    player.type(f"{TAB}co{TAB}", "counter_code.py")
    player.child.send(f" 63:80{ENTER}")
    player.prompt(1)
    player.type(f"help pdb{ENTER}", "pdb command")
    player.type(f"pdb{ENTER}", "Each line is a pdb command")
    player.child.send(f"b cou{TAB}74{ENTER}")
    assert "1 breakpoint | stopped before the first line" in player.prompt(2)
    player.child.send(f"c{ENTER}")
    assert "1 breakpoint | stopped at counter_code.py:74" in player.prompt(3)
    player.child.send(f"p wanted{ENTER}")
    player.prompt(4)
    player.child.send(f"n{ENTER}")
    player.prompt(5)
    player.child.send(ENTER)  # once more, as in pdb
    player.prompt(6)
    player.child.send(CTRL_D)  # back from pdb, not the end
    player.prompt(6)
    player.child.send(f"rewrite counter_code.py 72:79 <<<{ENTER}{FIX.replace(chr(10), ENTER)}>>>{ENTER}")
    player.prompt(7)
    player.child.send(f"eval{ENTER}")
    assert "score 2/2 | all tests pass" in player.prompt(8)
    player.type(f"patch{ENTER}", "while True")
    player.prompt(8)
    player.type(f"submit{ENTER}", "resolved.*score 2/2")
    assert player.end() == 0
    assert [called(action) for action in player.actions()] == [
        ("view", {"path": "counter_code.py", "start": 63, "end": 80}),
        ("pdb", {"command": "b counter_code.py:74"}),
        ("pdb", {"command": "c"}),
        ("pdb", {"command": "p wanted"}),
        ("pdb", {"command": "n"}),
        ("pdb", {"command": "n"}),
        ("rewrite", {"path": "counter_code.py", "start": 72, "end": 79, "new_code": FIX}),
        ("eval", {}),
        ("submit", {}),
    ]
    result = json.loads((player.run / "results.jsonl").read_text())
    assert (result["status"], result["score"], result["grading"], result["llm"]) == ("resolved", 2, "clean", "human")
    assert "while True" in (player.run / TASK / "patch.diff").read_text()


def test_lines_can_be_edited_in_place(play: Play) -> None:
    player = play()
    player.prompt(0)
    player.child.send(f"rewrite{TAB}cou{TAB}")  # typing replaces the first field, Tab goes to the next
    player.type(f"{TAB}12", "12")
    player.type(f"{TAB}{TAB}", "Approver = Callable")  # to the end of the line, then the lines as they are
    player.child.send(f"# x{ENTER}\x1b\r")  # Alt-Enter sends from inside
    player.prompt(1)
    player.child.send(f"quit{ENTER}")
    assert player.end() == 0
    (action,) = player.actions()
    assert called(action) == (
        "rewrite",
        {"path": "counter_code.py", "start": 12, "new_code": "# x\nApprover = Callable[[str, int], None]\n"},
    )


def test_forms_menus_and_pasted_text(play: Play) -> None:
    player = play()
    player.prompt(0)
    player.child.send(f"rewrite{TAB}{ENTER}")  # a field that is needed is not filled in: nothing is sent
    player.child.send(f"new.py{TAB}{ENTER}")  # one that is not needed is left out
    player.child.send(f"if x:{ENTER}{TAB}{TAB}\x1b[Zpass{ENTER}    >>>{ENTER}")  # indented, and back with Shift-Tab
    player.prompt(1)
    player.type(f"view test{TAB}{TAB}", "test")
    player.child.send(f"{CTRL_C}view {TAB}{TAB}{ENTER}{ENTER}")  # Enter in the menu takes the item, another one sends
    player.prompt(2)
    pasted = "rewrite new.py 1 <<<\nif y:\n\t# tab\n>>>\n"
    player.child.send(f"\x1b[200~{pasted}\x1b[201~{ENTER}")
    player.prompt(3)
    player.child.send(CTRL_D)
    assert player.end() == 0
    first, second, third = map(called, player.actions())
    assert first == ("rewrite", {"path": "new.py", "new_code": "if x:\n    pass\n"})
    assert second[0] == "view"
    assert second[1]["path"] in ("README.md", "counter_code.py", "new.py")
    assert third == ("rewrite", {"path": "new.py", "start": 1, "new_code": "if y:\n\t# tab\n"})


def test_mistakes_and_help_cost_no_step(play: Play) -> None:
    player = play()
    player.prompt(0)
    for keys, answer in {
        "vew test.py": "there is no tool 'vew'; did you mean 'view'",
        "view": "missing argument 'path'",
        "view test.py one": "argument 'start'",
        "view test.py 1 2 true 5": "too many words",
        "view 'test.py": "cannot be told apart",
        "help": "Tools, each use is a step",
        "?": "Tools, each use is a step",
        "rewrite?": "Replace lines of a file",
        "help nonsense": "there is no help",
        "patch": "Nothing is changed",
        "   ": "step 0/",
    }.items():
        player.type(f"{keys}{ENTER}", answer)
    player.prompt(0)
    player.child.send(CTRL_D)
    assert player.end() == 0
    assert player.actions() == []


def test_history_is_kept_and_private(play: Play, tmp_path: Path) -> None:
    player = play()
    player.prompt(0)
    player.child.send(f"view test.py 1:2{ENTER}")
    player.prompt(1)
    player.child.send(f"view test.py 3:4{ENTER}")
    player.prompt(2)
    player.child.send(CTRL_D)
    assert player.end() == 0
    history = tmp_path / "state" / "debug-gym" / "human_history"
    assert history.stat().st_mode & 0o777 == 0o600
    player.run.rename(tmp_path / "first")
    again = play()
    again.prompt(0)
    again.type(UP, "3:4")
    again.child.send(ENTER)
    again.prompt(1)
    again.type(f"{CTRL_R}1:2", "1:2")
    again.child.send(f"{ENTER}{ENTER}")
    again.prompt(2)
    again.child.send(CTRL_D)
    assert again.end() == 0
    assert [given["start"] for _, given in map(called, again.actions())] == [3, 1]


def test_without_a_place_for_history(play: Play, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in its place")
    player = play()
    status = player.prompt(0)
    assert "step 0" in status
    player.child.send(f"view test.py 1:2{ENTER}")
    player.prompt(1)
    player.child.send(CTRL_D)
    assert player.end() == 0
    assert player.screen.getvalue().count("what you type is not kept") == 1


def test_colour_and_its_absence(play: Play, tmp_path: Path) -> None:
    for number, environment in enumerate(({}, {"NO_COLOR": "1"}, {"TERM": "dumb"})):
        player = play(**environment)
        player.child.expect("step 0/")
        player.child.expect("debug-gym>")
        player.child.send("eval\n" if environment.get("TERM") else f"eval{ENTER}")
        player.child.expect("step 1/")
        player.child.expect("debug-gym>")
        player.child.send(CTRL_D)
        assert player.end() == 0
        player.run.rename(tmp_path / f"run {number}")
        seen = player.screen.getvalue()
        assert "FAILED" in seen
        assert bool(re.search(COLOUR, seen)) is (not environment)
        if environment.get("TERM"):
            assert "\x1b" not in seen


@pytest.mark.parametrize("columns", [40, 80])
def test_narrow_terminals(play: Play, columns: int) -> None:
    player = play(columns=columns)
    player.prompt(0)
    for line in player.screen.getvalue().split("\n"):
        assert len(line.rstrip("\r")) <= columns or "\x1b" in line
    player.child.send(f"b{ENTER}pdb b counter_code.py:74{ENTER}")
    assert len(player.prompt(1).partition("\x1b")[0]) <= columns
    player.child.send(f"view {TAB}")
    player.child.expect("counter_code")
    player.child.send(f"{CTRL_C}{CTRL_D}")
    assert player.end() == 0


def test_what_a_program_prints_cannot_steer_the_terminal(play: Play) -> None:
    player = play()
    player.prompt(0)
    player.child.send(f"rewrite test.py <<<{ENTER}")
    player.child.send(f">>>{ENTER}")  # read-only: an observation
    player.prompt(1)
    player.child.send(f"pdb !print(chr(27) + ']0;title' + chr(7)){ENTER}")
    player.prompt(2)
    player.child.send(CTRL_D)
    assert player.end() == 0
    assert "\x1b]" not in player.screen.getvalue()
    assert "\\x1b]0;" in player.screen.getvalue()


def test_run_with_a_person_plays_one_after_the_other(play: Play) -> None:
    names = ("--task", "counter", "--task", "grader")
    player = play("run", "mini_nightmare", *names, "-n", "4", "--agent", "tool_agent", "--llm", "human")
    for name in ("counter", "grader"):
        player.child.expect(f"Task mini_nightmare/{name}")
        player.prompt(0)
        player.child.send(CTRL_D)
        player.child.expect(f"mini_nightmare/{name}: unresolved")
    assert player.end() == 0


def test_lines_from_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "actions").write_text(f"vew\nrewrite counter_code.py 72:79 <<<\n{FIX}>>>\neval\nsubmit\nnot read\n")
    command = f"({COMMAND} play {TASK} -o run; cat > rest) < actions"
    done = pexpect.run(f"/bin/sh -c '{command}'", cwd=str(tmp_path), encoding="utf-8", timeout=120)
    assert "line 1: there is no tool" in done
    assert re.search("resolved.*: score 2/2", done)
    assert (tmp_path / "rest").read_text() == "not read\n"
    piped = run_debug_gym(["play", TASK, "-o", "other"], tmp_path)
    assert piped.returncode == 0
    assert "\x1b" not in piped.stdout
    assert "not resolved: score" in piped.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["mini_nightmare/countr"], 2, "did you mean 'counter'"),
        (["mini_nightmar/counter"], 2, "mini_nightmar"),
        (["mini_nightmare"], 2, "means 10 tasks"),
        ([TASK, "--terminal", "dokcer"], 2, "did you mean 'docker'"),
        ([TASK, "-p", "agent.max_stepz=3"], 2, "did you mean 'max_steps'"),
        ([], 2, "Missing argument"),
    ],
)
def test_what_cannot_be_played(tmp_path: Path, arguments: list[str], status: int, words: str) -> None:
    done = run_debug_gym(["play", *arguments], tmp_path)
    assert done.returncode == status
    assert words in done.stderr
    assert not list(tmp_path.iterdir())


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    for plugin, package in (("llm-human", "debug-gym-llm-human"), ("agents", "debug-gym-agents")):
        done = run_debug_gym(["play", TASK], tmp_path, {"DEBUG_GYM_DISABLE_PLUGINS": plugin})
        assert done.returncode == 2
        assert package in done.stderr
