"""The bash tool in a live environment: what it shows, and what does not get it out of step."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import pytest
from shells import ENDED, Say, bash_of, make, running, speaker
from support import handful, repeated

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import UsageError
from debug_gym_core.tools.action import ToolCall
from debug_gym_core.tools.observation import TEXT_LIMIT, Observation
from debug_gym_core.tools.tool import Tool
from debug_gym_tool_bash import OUTPUT_LIMIT, Bash

HOSTILE = [
    "set -uo pipefail; echo $undefined",
    "echo 'unterminated",
    'echo "unterminated',
    "echo $(",
    "cat <<END\nwithout an end",
    "cat <<'END'\n$x ` \" ' \\ (\nEND",
    "if true; then",
    "f(",
    "} ; ) fi done esac",
    "echo \\",
    "for i in 1 2; do break 5; done; break; continue; return 9",
    "#",
    "",
    "\n\n",
    "__debug_gym_report 1 0; __debug_gym_send 2 0 /elsewhere ''",
    "stty raw -echo </dev/tty; printf '\\e[?1049h\\e[2J\\e(0'",
    "trap '' INT TERM HUP; trap 'echo on exit' EXIT; trap 'echo err' ERR; trap 'echo debug' DEBUG",
    "trap - INT TERM HUP ERR DEBUG",
    "PS1='prompt> '; PS2='more> '; PS0='before'; PS4='trace '; PROMPT_COMMAND='echo prompting; false'",
    "set -x; true; set +x",
    "set -v; true; set +v",
    "set -a; set -f; set -o posix; IFS=0123456789; LC_ALL=C",
    "set +a; set +f; set +o posix; unset IFS LC_ALL",
    "exec 5>five; exec >/dev/null 2>&1; exec </dev/zero",
    "exec no-such-program",
    "read line; cat; python3 -c 'input()'; python3; sh",
    "sleep 100 & (sleep 100 &) ; setsid sleep 100 & disown",
    "printf '\\0\\377\\376\\r\\b\\x1b]0;title'; head -c 100000 /dev/urandom",
    "echo 'caf\xe9 \udce9 \udcff \u2603 \x01\x7f\x1b'",
    "unset PWD OLDPWD PATH; PATH=/usr/bin:/bin",
    "ulimit -n 30",
    "shopt -s failglob nocasematch; echo no-such*; shopt -u failglob",
    "mkdir gone; cd gone; rmdir ../gone",
    "cd /testbed/src",
    "coproc cat; kill $COPROC_PID",
    "function printf { echo mine; }; alias true=false; printf; true; unset -f printf; unalias true",
]


@pytest.mark.faults
def test_nothing_gets_it_out_of_step(anywhere: Say) -> None:
    anywhere("kept=yes")
    for command in HOSTILE:
        seen = anywhere(command, 20)
        assert not seen.data.get("timed_out") and not seen.data.get("restarted"), (command, seen.text)
        seen = anywhere("printf '%s\\n' \"mark $kept\" | tail -n 1")
        assert seen.text.splitlines()[-1] == "mark yes", (command, seen.text)


def test_errors_read_as_in_a_terminal(say: Say) -> None:
    assert say("no-such-command").text == "bash: no-such-command: command not found\n[exit status 127]"
    assert say("echo a\nfoo(\n").text == (
        "a\nbash: line 2: syntax error near unexpected token `newline'\nbash: line 2: `foo('\n[exit status 2]"
    )
    assert say("python3 -c 'import os; os.abort()'").text == "[exit status 134, as after SIGABRT]"
    assert say("false; true").text == "(no output)"


def test_output_comes_in_order_as_it_looks_on_a_screen(say: Say) -> None:
    assert say("echo one; echo two >&2; printf three").text == "one\ntwo\nthree"
    seen = say("printf '\\e[1;31mred\\e[0m 10%%\\r100%%\\nabx\\bc\\e]8;;http://a\\e\\\\link\\e]8;;\\e\\\\\\a\\n'")
    assert seen.text == "100%10%\nabclink" or seen.text == "100% 10%\nabclink", seen.text
    assert say("printf 'half a character \\316'").text == "half a character \\xce"
    assert say("printf 'nul \\0 bad \\377 tab \\t'").text == "nul \\x00 bad \\xff tab \t"


def test_programs_have_no_colours_no_pager_no_input(say: Say) -> None:
    assert say("echo $TERM $PAGER $NO_COLOR; test -t 1 && echo tty; test -t 0 || echo none").text == (
        "dumb cat 1\ntty\nnone"
    )
    assert say("cat; read line; echo $?; seq 3 | { read one; echo $one; }; cat <<< here").text == "1\n1\nhere"


def test_programs_inherit_no_descriptors(say: Say) -> None:
    listing = "python3 -c \"import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))\""
    assert say(listing).text == "[0, 1, 2, 3]"  # 3: the listing itself
    assert say("exec 3</dev/null; ls -l /proc/self/fd | grep -c /dev/null").text == "2"


ENDLESS = {
    "one of each kind": (
        "sleep 1000; echo never",
        "while :; do :; done",
        "kill -STOP $$; echo never; sleep 1000",
        "read line </dev/tty",
        "trap '' TERM; setsid sh -c 'trap \"\" TERM HUP; sleep 1000' & sleep 1000",
    ),
    "others": (
        "while :; do sleep 0.01; done",
        "f() { while :; do f=1; done; }; f",
        "python3 -c 'import time; print(1, flush=True); time.sleep(1000)'; echo never",
        "sh -c 'kill -STOP $$'",
        "cat /dev/tty",
        "yes",
        "(sleep 1000 & sleep 1000); sleep 1000",
    ),
}


@pytest.mark.parametrize("kind", handful("faults", list(ENDLESS), "one of each kind"))
def test_a_timeout_ends_the_command_and_the_shell_lives_on(anywhere: Say, kind: str) -> None:
    anywhere("kept=yes; sleep 1000 & first=$!")
    for command in ENDLESS[kind]:
        started = time.monotonic()
        seen = anywhere(command, 0.3)
        assert time.monotonic() - started < 30, command
        assert seen.data["timed_out"] and not seen.data["restarted"], (command, seen.text)
        assert seen.data["exit_status"] is None
        assert seen.text.endswith("[reached its timeout of 0.3 s and was ended]") and "never" not in seen.text
    # what an earlier command left in the background is none of its business
    assert anywhere("echo $kept; kill -0 $first && kill $first; wait; jobs").text.startswith("yes")


ONCE = """\
import pathlib, signal, time
signal.signal(signal.SIGINT, lambda *_: signal.signal(signal.SIGINT, signal.SIG_DFL))
pathlib.Path("runs").touch()
time.sleep(1000)
"""
"""A program that does not heed the first SIGINT, as a shell's child that is about to be a program may not."""


@pytest.mark.parametrize(
    "command",
    [
        "touch runs; sleep 1000",
        f"python3 -c '{ONCE}'",
        *repeated("faults", "touch runs; while :; do :; done", "touch runs; (sleep 1000); sleep 1000"),
    ],
)
def test_another_thread_ends_a_command_and_the_shell_lives_on(env: RepoEnv, say: Say, command: str) -> None:
    say("kept=yes")
    assert not env.interrupt()
    with ThreadPoolExecutor(1) as threads:
        told = threads.submit(say, command)
        while env.session.stat("runs") is None:
            assert not told.done()
        while not told.done():  # it may be one that comes before the command does
            env.interrupt()
            wait([told], 1)
        seen = told.result(60)
    assert (seen.data["exit_status"], seen.data["timed_out"], seen.data["restarted"]) == (130, False, False), seen.text
    assert say("echo $kept").text == "yes" and not env.interrupt()


def test_a_command_that_is_interrupted_before_it_begins_does_not(tmp_path: Path) -> None:
    class Early(Tool):
        """Run a command after somebody interrupts."""

        name = "early"

        def use(self, env: RepoEnv, command: str) -> Observation:
            """Run it."""
            env.interrupt()
            return bash_of(env).use(env, command)

    with closing(make(tmp_path / "repo", "local", Early())) as env:
        env.reset(seed=0)
        say = speaker(env)
        say("cd src")
        for _ in range(5):  # one that is typed may be ended in time
            env.step(ToolCall("early", {"command": "echo >begun"}))
            seen = env.last_observations[0]
            assert (seen.text, seen.data["exit_status"]) == ("[exit status 130, as after SIGINT]", 130)
        assert say("pwd; ls -1 ..").text == "/testbed/src\napp.py\nsrc"


def test_printed_before_the_timeout_is_shown(say: Say) -> None:
    seen = say("echo working; python3 -c 'import time; time.sleep(1000)'", 0.5)
    assert seen.text.startswith("working\nTraceback (most recent call last):")
    assert "KeyboardInterrupt" in seen.text


@pytest.mark.parametrize(
    "program", ["vi app.py", *repeated("terminals", "python3 -i </dev/tty", "less -X app.py", "top")]
)
def test_full_screen_programs_come_back(say: Say, program: str) -> None:
    started = time.monotonic()
    seen = say(f"TERM=xterm {program} </dev/tty", 0.5)
    assert time.monotonic() - started < 30
    assert "\x1b" not in seen.text and "\\x1b" not in seen.text
    assert say("echo fine; stty -a </dev/tty | grep -o '^opost'").text == "fine\nopost"


def test_a_terminal_left_in_disorder_is_put_right(say: Say) -> None:
    before = say("stty -a </dev/tty").text
    assert say("stty raw opost olcuc onlcr echo </dev/tty; echo shouted").text == "SHOUTED"
    assert say("stty -a </dev/tty").text == before


def test_background_jobs_go_on_and_do_not_disturb(env: RepoEnv, say: Say) -> None:
    assert say("(until test -e go; do sleep 0.01; done; echo late; touch done) & echo started").text == "started"
    assert say("jobs | grep -c Running").text == "1"
    env.session.write("go", b"")
    env.session.run("until test -e done; do sleep 0.01; done", timeout=10)
    seen = say("echo now")
    assert seen.text == ("[printed in the background since the last command]\nlate\n[printed by this command]\nnow")
    assert say("echo now").text == "now"


def test_a_flood_in_the_background_does_not_hide_the_answer(say: Say) -> None:
    say("yes background & kept=$!")
    for status in range(3):
        assert say(f"(exit {status})").data["exit_status"] == status
    assert say("kill $kept; wait $kept; echo ended").text.endswith("ended")


def test_interrupted_from_the_keyboard_the_command_ends(
    env: RepoEnv, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    say("kept=yes; cd src")
    name = f"debug-gym-{time.monotonic_ns()}"
    shell = bash_of(env)._shell
    assert shell is not None
    wait = shell._process.wait_for_news

    def interrupted(timeout: float | None = None) -> bool:
        assert wait(10)  # until it prints that it runs
        raise KeyboardInterrupt

    monkeypatch.setattr(shell._process, "wait_for_news", interrupted)
    with pytest.raises(KeyboardInterrupt):
        say(f"echo runs; (exec -a {name} sleep 1000); echo never")
    assert not running(name)
    started = time.monotonic()
    assert say("echo $kept ${PWD##*/}", 5).text == (
        "yes src\n[the last command was interrupted and ended; this shell has the state of before it]"
    )
    assert time.monotonic() - started < 30
    assert say("echo again").text == "again"


USED = ["alias", "cd", "compgen", "declare", "enable", "eval", "export", "local", "printf", "read", "set", "shift"]
USED += ["shopt", "test", "trap", "umask", "unset"]


@pytest.mark.parametrize(
    "body", ["{ while :; do :; done; }", *repeated("faults", "{ :; }", "{ return 1; }", "{ builtin exit 4; }")]
)
def test_functions_with_the_names_of_builtins_break_nothing(say: Say, body: str) -> None:
    names = [*USED, "return", "command", "[", ":", "true", "exec", "source", "."]
    definitions = "; ".join(f"{name}() {body}" for name in names)
    assert say(f"kept=1; {definitions}; echo ok", 5).text == "ok"
    seen = say("echo $kept; kept=2; builtin exit 3", 5)
    assert seen.text.startswith("1\n[exit status 3]") and ENDED in seen.text
    assert "not be restored" not in seen.text
    for name in USED:
        assert say(f"echo $kept; builtin type -t {name}", 5).text == "2\nfunction", name


@pytest.mark.parametrize(
    "command",
    [
        "builtin() { :; }",
        *repeated(
            "faults",
            "builtin() { return 1; }",
            f"enable -n {' '.join(name for name in USED if name != 'enable')} .",
            "alias builtin=false eval=false printf=false exec=false declare=false __debug_gym_report=false",
        ),
    ],
)
def test_builtins_out_of_use_are_put_right(say: Say, command: str) -> None:
    assert say(f"kept=1; {command}; echo ok", 5).text == "ok"
    assert say("kept=2; echo ok", 5).text == "ok"
    say("kill -9 $$")
    assert say("echo $kept; [[ -o posix ]] || echo usual", 5).text == "2\nusual"


def test_an_exit_trap_prints_and_others_stay(say: Say) -> None:
    seen = say("trap 'echo bye; pwd' EXIT; cd src; exit 3")
    assert seen.text.startswith("bye\n/testbed/src\n[exit status 3]")
    say("trap 'echo $x bye' EXIT; x=good")
    assert say("exit").text.startswith("good bye\n")
    assert say("PS1='prompt '; set -x; : 1").text.lstrip("+") == " : 1"
    assert say("false").text.lstrip("+") == " false\n[exit status 1]"


def test_the_workspace_has_its_public_name(say: Say) -> None:
    assert say("cd /testbed/src; echo > /testbed/new; ls '/testbed'; echo /testbed/a:/testbed; pwd").text == (
        "app.py\tnew  src\n/testbed/a:/testbed\n/testbed/src\n[directory: /testbed/src]"
    )
    assert say("echo /srv/testbed /testbeds").text == "/srv/testbed /testbeds"


def test_long_output_is_bounded(say: Say) -> None:
    seen = say("seq 3000000; echo end")
    assert seen.text.startswith("1\n2\n") and seen.text.endswith("3000000\nend")
    assert len(seen.text) < OUTPUT_LIMIT + 100 < TEXT_LIMIT
    lines = seen.text.splitlines()
    (gap,) = [line for line in lines if "left out" in line]
    shown = sum(len(line) + 1 for line in lines if line != gap)
    more = "redirect it to a file to see them in parts"
    assert gap == f"[... {22888896 + 4 - shown} characters left out; {more} ...]"
    assert seen.data["output_cut"] == 22888896 + 4 - shown
    seen = say("head -c 5000000 /dev/zero | tr '\\0' a")
    assert len(seen.text) < OUTPUT_LIMIT + 100


@pytest.mark.faults
def test_long_commands(say: Say) -> None:
    assert say(f"echo '{'x' * 2_000_000}' | wc -c").text == "2000001"
    assert say("cat <<'END' | wc -l\n" + "it's a line\n" * 100_000 + "END").text == "100000"


def test_what_no_shell_takes_is_said(say: Say) -> None:
    for command, problem in [("a\0b", "NUL"), ("echo \ud800", "surrogate pair at character 6")]:
        seen = say(command)
        assert seen.error and problem in seen.text
    for timeout in (0, -1, 1e9):
        seen = say("true", timeout)
        assert seen.error and "at most 600 seconds" in seen.text
    for timeout in (float("nan"), float("inf")):
        seen = say("true", timeout)
        assert seen.error and "the number is too large, or none" in seen.text


def test_more_processes_than_a_job_needs_are_ended(say: Say) -> None:
    seen = say("for i in {1..120}; do sleep 1000 & done; echo started", 20)
    assert seen.text == "started\n[it left so many processes running that they were ended]"
    assert say("jobs | grep -c Running").text == "0\n[exit status 1]"


@pytest.mark.faults
def test_same_actions_read_the_same(tmp_path: Path) -> None:
    def episode(root: Path) -> list[str]:
        made = make(root)
        try:
            made.reset(seed=0)
            say = speaker(made)
            commands = [
                "pwd",
                "sleep 0.01 &",
                "wait",
                "bash -c 'kill -9 $$'",
                "exit 7",
                "cd src",
                "x() { y; }; x",
                "jobs",
            ]
            return [say(command).text for command in commands]
        finally:
            made.close()

    assert episode(tmp_path / "one") == episode(tmp_path / "two")


def test_a_sandbox_without_bash(env: RepoEnv, say: Say) -> None:
    bare = Path(env.session.root).parent / "bare"
    bare.mkdir()
    spawn = env.session.spawn
    env.session.spawn = lambda argv, **rest: spawn(argv, **{**rest, "env": {"PATH": str(bare)}})  # type: ignore[method-assign]
    seen = say("echo hi")
    assert seen.error and "there is no bash in this sandbox" in seen.text


def test_nothing_runs_when_the_environment_is_closed(tmp_path: Path) -> None:
    made = make(tmp_path / "repo")
    made.reset(seed=0)
    name = f"debug-gym-{time.monotonic_ns()}"
    speaker(made)(
        f"(exec -a {name} sleep 1000) & setsid bash -c 'trap \"\" TERM; exec -a {name} sleep 1000' & disown -a"
    )
    assert len(running(name)) >= 2
    made.close()
    assert not running(name)


def test_settings() -> None:
    assert Bash(timeout=5).settings.timeout == 5
    with pytest.raises(UsageError):
        Bash(timeout=0)
    assert Bash(timeout=700, max_timeout=700).settings.timeout == 700
    with pytest.raises(UsageError, match=r"bash: timeout \(700\) is more than max_timeout \(600\): lower one or raise"):
        Bash(timeout=700)
