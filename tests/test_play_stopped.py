"""A person at a real terminal presses Ctrl-C, is stopped, and goes on: what ends, and what is kept."""

from __future__ import annotations

import shutil
import signal

import pexpect
import pytest
from person_at_terminal import CTRL_C, CTRL_D, CTRL_R, ENTER, TAB, TASK, Play, called
from support import COMMAND

pytestmark = pytest.mark.people

GOES_ON = r"""exec("while 1:\n try: import time; time.sleep(9)\n except: 0")"""
"""A command of pdb's that Ctrl-C does not stop."""


def test_ctrl_c_at_every_prompt(play: Play) -> None:
    player = play()
    player.prompt(0)
    player.child.send(f"frobnicate{CTRL_C}view test.py 1:2{ENTER}")  # clears the line
    player.prompt(1)
    player.child.send(f"rewrite x.py <<<{ENTER}a = 1{ENTER}{CTRL_C}eval{ENTER}")  # also one of several lines
    player.prompt(2)
    player.type(f"view {TAB}", "line_numbers=")  # also with the menu open
    player.child.send(f"{CTRL_C}view test.py 3:4{ENTER}")
    player.prompt(3)
    player.type(f"{CTRL_R}test", "I-search")  # in a search it ends that
    player.child.send(f"{CTRL_C}{CTRL_C}view test.py 5:6{ENTER}")
    player.prompt(4)
    player.type(f"pdb{ENTER}", "debug-gym pdb>")
    player.child.send(CTRL_C)
    player.prompt(4)
    player.type(CTRL_C, "Ctrl-C again stops the run")
    player.child.send(f"view test.py 7:8{ENTER}")  # a second thought
    player.prompt(5)
    player.type(CTRL_C, "Ctrl-C again stops the run")
    player.type(CTRL_C, f"debug-gym run --resume {player.run.name}")
    assert player.end() == 130
    assert [name for name, _ in map(called, player.actions())] == ["view", "eval", "view", "view", "view"]
    assert not (player.run / "results.jsonl").read_text()


@pytest.mark.parametrize("terminal", ["dumb", ""])
def test_ctrl_c_where_lines_are_all_that_there_is(play: Play, terminal: str) -> None:
    player = play(TERM=terminal)
    banner = player.prompt(0)
    assert "Tab" not in player.screen.getvalue() + banner
    player.type("frobnicate", "frobnicate")
    player.type(CTRL_C, "debug-gym>")  # drops the line
    player.child.send("view test.py 1:2\n")
    player.prompt(1)
    player.type("rewrite x.py <<<\n", r"\.\.\.")
    player.type("a = 1\n", r"\.\.\.")
    player.type(CTRL_C, "debug-gym>")  # and the text
    player.child.send("view test.py 3:4\n")
    player.prompt(2)
    player.type("pdb\n", "debug-gym pdb>")
    player.type(CTRL_C, "debug-gym>")  # and leaves the mode
    player.child.send("pdb import signal; signal.pause()\n")
    player.type("", "signal.pause")
    player.child.expect("\r\n")
    player.interrupt()  # a signal again while a tool runs
    player.prompt(3)
    player.child.send(f"pdb {GOES_ON}\n")
    player.type("", "except: 0")
    player.child.expect("\r\n")
    player.interrupt()
    player.type(CTRL_C, "debug-gym run --resume")
    assert player.end() == 130
    assert "interrupted" not in player.screen.getvalue().partition("signal.pause")[0]
    assert [name for name, _ in map(called, player.actions())] == ["view", "view", "pdb"]


def test_ctrl_c_at_an_empty_line_of_a_dumb_terminal(play: Play) -> None:
    player = play(TERM="dumb")
    player.prompt(0)
    player.type(CTRL_C, "quit .or Ctrl-D. ends the episode")
    player.child.send("view test.py 1:2\n")  # a second thought
    player.prompt(1)
    player.type(CTRL_C, "Ctrl-C again stops the run")
    player.type(CTRL_C, "debug-gym run --resume")
    assert player.end() == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_was_changed_outlives_a_stop(play: Play, number: signal.Signals) -> None:
    player = play()
    player.prompt(0)
    player.child.send(f"rewrite new.py <<<{ENTER}a = 1{ENTER}>>>{ENTER}")
    player.prompt(1)
    player.child.send(f"pdb {GOES_ON}{ENTER}")
    player.type("", "except: 0")
    if number is signal.SIGINT:
        player.interrupt()
    player.child.kill(number)
    player.child.expect("what you changed is kept:")
    player.child.expect("debug-gym run --resume")
    assert player.end() == (143 if number is signal.SIGTERM else 130)
    assert "+a = 1" in (player.run / TASK / "patch.diff").read_text()


def test_what_was_changed_outlives_a_stop_at_the_prompt_and_going_on(play: Play) -> None:
    player = play()
    player.prompt(0)
    player.child.send(f"rewrite new.py <<<{ENTER}a = 1{ENTER}>>>{ENTER}")
    player.prompt(1)
    player.type(CTRL_C, "Ctrl-C again")
    player.child.send(CTRL_C)
    assert player.end() == 130
    assert "+a = 1" in (player.run / TASK / "patch.diff").read_text()
    again = pexpect.spawn(str(COMMAND), ["run", "--resume", str(player.run)], encoding="utf-8", timeout=120)
    again.expect("step 0/")
    again.expect("debug-gym>")
    again.send(CTRL_D)
    again.expect(pexpect.EOF)
    again.close()
    assert "+a = 1" in (player.run / TASK / "abandoned-1.diff").read_text()
    assert not (player.run / TASK / "patch.diff").read_text()


def test_what_was_changed_in_a_directory_that_goes_is_said_to_be_lost(play: Play) -> None:
    player = play()
    player.prompt(0)
    player.child.send(f"bash 'echo hello > new.txt'{ENTER}")
    player.prompt(1)
    shutil.rmtree(player.run)
    player.child.send(f"bash 'cat new.txt'{ENTER}")
    player.child.expect("what you changed could not be kept")
    player.child.expect("removed or moved while the run was played")
    assert player.end() == 1


def test_what_was_changed_and_has_no_room_is_said_to_be_lost_by_the_name_of_its_file(
    play: Play,
) -> None:
    player = play()
    player.prompt(0)
    player.child.send(f"bash 'echo hello > new.txt'{ENTER}")
    player.prompt(1)
    (player.run / TASK / "patch.diff").symlink_to("/dev/full")
    player.type(CTRL_C, "Ctrl-C again")
    player.child.send(CTRL_C)
    player.child.expect(r"could not be kept:\s+/")
    assert player.end() == 130


def test_ctrl_c_while_a_tool_runs_asks_first(play: Play) -> None:
    player = play()
    player.prompt(0)
    player.child.send(f"pdb import signal; print('runs', flush=True); signal.pause(){ENTER}")
    player.type("", "signal.pause")
    player.interrupt()
    player.type(CTRL_C, "debug-gym run --resume")
    assert player.end() == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_takes_the_prompt_away(play: Play, number: signal.Signals) -> None:
    player = play()
    player.prompt(0)
    player.type("vie", "vie")
    player.child.kill(number)
    if number is signal.SIGINT:
        player.child.expect("Ctrl-C again")
        player.child.kill(number)
    player.child.expect("debug-gym run --resume")
    assert player.end() == (143 if number is signal.SIGTERM else 130)


def test_a_stopped_session_goes_on_with_resume(play: Play) -> None:
    player = play()
    player.prompt(0)
    player.type(CTRL_C, "Ctrl-C again")
    player.child.send(CTRL_C)
    assert player.end() == 130
    again = pexpect.spawn(str(COMMAND), ["run", "--resume", str(player.run)], encoding="utf-8", timeout=120)
    again.expect("step 0/")
    again.expect("debug-gym>")
    again.send(CTRL_D)
    again.expect("resolved 0 of 1")
    again.expect(pexpect.EOF)
    again.close()
    assert again.exitstatus == 0
