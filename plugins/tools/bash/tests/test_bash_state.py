"""What survives from call to call of the bash tool, and from shell to shell."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
from shells import ENDED, Say, bash_of
from support import repeated

from debug_gym_core.environment.env import RepoEnv
from debug_gym_tool_bash.shell import State

STATE = """
cd src
plain=5; export exported='a "b" $c'; declare -i number=7; readonly fixed=8
array=(1 'two words' $'line\\nbreak'); declare -A map=([key]='ä value')
function named { echo "function $plain $1"; }
export -f named
alias greet='echo aliased'
set -o pipefail; shopt -s nullglob extglob; umask 027; set -- first 'second one'
trap 'echo trapped' USR1
unset LANG
"""


# extglob patterns in a function are only read right when the option is on before
QUESTION = """
echo "${PWD##*/} $plain $exported $((number + 1)) $fixed ${array[1]} ${array[2]} ${map[key]} $2 ${LANG-no LANG}"
named x; bash -c 'named child; echo $exported'; greet; false | true; echo $?; echo nothing*; umask; kill -USR1 $$
"""


ANSWER = """\
src 5 a "b" $c 8 8 two words line
break ä value second one no LANG
function 5 x
function  child
a "b" $c
aliased
1

0027
trapped"""


def test_everything_survives_and_every_death_restores_it(anywhere: Say) -> None:
    assert anywhere(STATE).text == "[directory: /testbed/src]"
    assert anywhere(QUESTION).text == ANSWER
    for command, first in [
        ("exit 7", "[exit status 7]"),
        ("exec sh", ENDED),
        ("exec true", ENDED),
        ("kill -9 $$", "[ended by signal 9 (SIGKILL)]"),
        ("echo last words; exit", "last words"),
    ]:
        seen = anywhere(command)
        assert seen.text.startswith(first) and ENDED in seen.text, (command, seen.text)
        assert seen.data["restarted"] and seen.data["directory"] == "/testbed/src"
        assert anywhere(QUESTION).text == ANSWER, command
    seen = anywhere("exit 7")
    assert seen.data["exit_status"] == 7


@pytest.mark.faults
@pytest.mark.parametrize(
    "command", ["trap '' INT; while :; do :; done", *repeated("faults", "exec python3 -c 'while True: pass'")]
)
def test_a_shell_that_cannot_be_interrupted_is_replaced(say: Say, command: str) -> None:
    say("cd src; kept=yes")
    started = time.monotonic()
    seen = say(f"lost=1; {command}", 0.3)
    assert time.monotonic() - started < 30
    assert seen.data["timed_out"] and seen.data["restarted"]
    assert say("echo $kept $lost ${PWD##*/}").text == "yes src"


def test_set_e_ends_the_shell_and_is_off_afterwards(say: Say) -> None:
    say("cd src; set -euo pipefail")
    seen = say("kept=yes; echo before; false; echo never")
    assert seen.text.startswith("before\n[exit status 1]\n[the shell ended with this command; ")
    assert "options but `set -e`, which is off" in seen.text
    assert say("echo $kept $-; false; echo on").text == "yes hiuBs\non"


@pytest.mark.parametrize(
    "command",
    [
        "exit 3",
        *repeated(
            "faults", "(exit 3) || exit 3", "exit 3 >/dev/null", ". ./leave", "exec 9<>/dev/null; set -e; (exit 3)"
        ),
    ],
)
def test_a_function_that_ends_the_shell_costs_no_state(say: Say, command: str) -> None:
    say("echo 'exit 3' > leave; leave() { " + command + "; }")
    seen = say("kept=yes; new() { echo new; }; leave")
    assert seen.text.startswith("[exit status 3]\n[the shell ended with this command; a new one has its directory, ")
    assert "of before" not in seen.text and "descriptor" not in seen.text
    assert say("echo $kept; new").text == "yes\nnew"


@pytest.mark.parametrize("command", ["kill -9 $$", *repeated("faults", "exec true", "trap : EXIT; exit")])
def test_state_that_could_not_be_told_is_that_of_before(say: Say, command: str) -> None:
    say("kept=old")
    seen = say(f"kept=new; {command}")
    assert "a new one has its directory, variables, functions and options of before this command; " in seen.text
    assert say("echo $kept").text == "old"


@pytest.mark.parametrize("option", ["-t", "-r", *repeated("faults", "-k")])
def test_options_that_would_break_the_shell_do_not(say: Say, option: str) -> None:
    say(f"kept=yes; set {option}")
    assert say("echo $kept > file; cat file").text == "yes"
    assert "too large" not in say("exit").text
    assert say("echo $kept; cat file").text == "yes\nyes"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("(exit 7)", 7),
        ("true", 0),
        ("false; (exit 255)", 255),
        ("exit 9", 9),
        ("kill -9 $$", 0),
        ("set -E; trap 'echo failed' ERR; trap 'echo debug >/dev/null' DEBUG; false || (exit 3) && true", 3),
        ("set -a; function exec { echo mine; }; (exit 4)", 4),
    ],
)
def test_the_exit_status_is_known_to_the_next_command(say: Say, command: str, status: int) -> None:
    say(command)
    assert say("echo $?").text.split("\n")[-1] == str(status)
    assert say("echo $?; [[ $(env) != *__debug_gym* ]] && echo nothing of ours").text == "0\nnothing of ours"


def test_the_exit_status_of_the_command_before_is_no_failure_of_the_next(say: Say) -> None:
    say("trap 'echo failed' ERR; (exit 7)")
    assert say("echo $?").text == "7"
    say("trap 'echo debugged' DEBUG; true || true")
    before = say("echo $?").text
    say("false && true")
    assert say("echo $?").text == before.replace("0", "1")


def test_a_directory_that_is_gone(say: Say) -> None:
    assert say("mkdir gone; cd gone; rmdir ../gone").text == "[directory: /testbed/gone]"
    assert say("pwd").text == "/testbed/gone"
    seen = say("exit 3")
    assert "[/testbed/gone is gone]\n[directory: /testbed]" in seen.text
    assert say("pwd; ls").text.startswith("/testbed\n")


def test_a_shell_that_died_between_commands(env: RepoEnv, say: Say) -> None:
    say("kept=yes; cd src")
    say("(until test -e ../go; do sleep 0.01; done; kill -9 $$) &")
    env.session.write("go", b"")
    shell = bash_of(env)._shell
    assert shell is not None and shell._process.ended(10)
    seen = say("echo $kept ${PWD##*/}")
    assert seen.text == (
        "yes src\n[the shell had ended since the last command; this one has its directory, variables, functions]"
    )


def test_killed_guest_and_keeper_cost_no_state(env: RepoEnv, say: Say) -> None:
    say("kept=yes; cd src; f() { echo f; }")
    os.kill(env.session.guest()["pid"], signal.SIGKILL)
    assert "started again" in say("echo lost").text
    assert say("echo $kept; f; pwd").text == "yes\nf\n/testbed/src"
    seen = say("kill -9 $PPID; sleep 10")  # its parent, the guest's process for this shell
    assert ENDED in seen.text
    assert say("echo $kept; f; pwd").text == "yes\nf\n/testbed/src"


def test_state_that_cannot_be_restored_costs_the_state_only(
    env: RepoEnv, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    say("x=1")
    tool = bash_of(env)
    assert tool._state is not None
    tool.close()
    tool._state = State(tool._state.directory, b"while :; do :; done")
    monkeypatch.setattr("debug_gym_tool_bash.shell.START_TIMEOUT", 1.0)
    assert say("echo ${x-unset}").text == "unset\n[its state could not be restored: this is a new shell]"
    assert say("echo fine").text == "fine"


@pytest.mark.faults
def test_large_variables_cost_no_time_and_are_named_when_they_are_lost(say: Say) -> None:
    assert say("large=$(head -c 30000000 /dev/zero | tr '\\0' a); echo ok").text == "ok"
    say("many=({1..200000}); small=kept; i=(a [9]=b)")
    say("declare -A keys; keys[$(head -c 2000000 /dev/zero | tr '\\0' k)]=1")
    seen = say("echo hi", 1)
    assert seen.text == "hi"
    started = time.monotonic()
    seen = say("trap '' INT TERM; while :; do :; done", 0.3)
    assert time.monotonic() - started < 30, "what it takes without these variables is 1.6 s"
    assert seen.data["restarted"] and seen.text.endswith("[variables too large to be kept are lost: keys, large, many]")
    assert say("echo ${#large} ${#many[@]} ${#keys[@]} $small ${i[9]}").text == "0 0 0 kept b"
    assert "too large" not in say("exit 3").text


def test_state_of_many_variables_is_bounded(env: RepoEnv, say: Say) -> None:
    say("for i in {1..30}; do declare -g \"v$i=$(head -c 90000 /dev/zero | tr '\\0' a)\"; done")
    state = bash_of(env)._state
    assert state is not None and len(state.text) < 1_100_000
    assert 15 < len(state.large) < 25
    assert f" and {len(state.large) - 10} more]" in say("exit 3").text


def test_a_shell_that_does_not_tell_its_state_is_replaced(
    env: RepoEnv, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    say("kept=yes")
    shell = bash_of(env)._shell
    assert shell is not None
    take = shell._take_state

    def hasty(report: Any, deadline: float) -> None:
        take(report, 0.0)

    monkeypatch.setattr(shell, "_take_state", hasty)
    seen = say("cd src; lost=1; echo x; false")
    assert seen.text.startswith("x\n[exit status 1]\n[the shell did not come back; a new one has its directory")
    assert say("echo $kept ${lost-no} ${PWD##*/}").text == "yes no src"


def test_a_reset_forgets(env: RepoEnv, say: Say) -> None:
    say("cd src; x=5")
    env.reset(seed=0)
    assert say("pwd; echo ${x-unset}").text == "/testbed\nunset"
