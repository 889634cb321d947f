"""Interactive programs by pexpect, on every terminal: what a user of pexpect.spawn knows works here."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from support import reason_not_to_use, terminals

from debug_gym_core.errors import SandboxLost
from debug_gym_core.plugins import default_plugins
from debug_gym_core.sandbox.pythons import find
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.spawn import Spawn
from debug_gym_core.sandbox.terminal import SandboxSpec


@pytest.fixture(scope="module", params=terminals())
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    reason = reason_not_to_use(request.param)
    if reason:
        pytest.skip(reason)
    terminal = default_plugins().get("terminals", request.param)
    image = {"image": os.environ["DEBUG_GYM_TEST_IMAGE"]} if terminal.runs_images else {}
    interpreter = None if terminal.runs_images else find(Path("/nonexistent"), sys.executable)
    with Session.start(terminal(**image), SandboxSpec(run="test", interpreter=interpreter)) as started:
        yield started


def python(session: Session, code: str, **settings: float) -> Spawn:
    return session.spawn([session.python, "-u", "-c", code], **{"timeout": 60, **settings})  # type: ignore[arg-type]


# A program that reads commands, as gdb does: a prompt, an answer, Ctrl-C comes back to the prompt.
READER = """
import signal, sys, time
while True:
    try:
        line = input("(reader) ")
        if line == "wait": time.sleep(1000)
        if line == "quit": sys.exit(3)
        print("read", repr(line))
    except KeyboardInterrupt:
        print("Quit")
    except EOFError:
        print("end of input")
        break
"""


def test_a_program_with_a_prompt(session: Session) -> None:
    with python(session, READER) as reader:
        reader.expect_exact("(reader) ")
        reader.sendline("print ünïcode ☃")
        assert reader.expect([r"read '(.*)'\n", "never", pexpect.EOF]) == 0
        assert reader.match[1] == "print ünïcode ☃"
        reader.expect_exact("(reader) ")
        reader.sendline("wait")
        assert reader.expect_exact(["(reader) ", pexpect.TIMEOUT], timeout=0.1) == 1
        with pytest.raises(pexpect.TIMEOUT, match=r"buffer \(last 100 characters\)"):
            reader.expect("Quit", timeout=0.05)
        reader.sendintr()
        reader.expect_exact("Quit\n(reader) ")
        assert reader.isalive() and reader.exitstatus is None and not reader.eof()
        reader.sendline("quit")
        reader.expect(pexpect.EOF)
        assert reader.eof() and not reader.isalive()
        assert reader.wait() == reader.exitstatus == 3 and reader.signalstatus is None
        assert os.WEXITSTATUS(reader.status) == 3


def test_end_of_input(session: Session) -> None:
    reader = python(session, READER)
    reader.expect_exact("(reader) ")
    reader.sendeof()
    assert reader.read() == "end of input\n"
    assert reader.wait() == 0
    with pytest.raises(pexpect.EOF):
        reader.expect("more")
    reader.close()


def test_python_and_bash_as_on_ones_own_machine(session: Session) -> None:
    environment = {"PS1": "ready$ ", "PYTHON_BASIC_REPL": "1"}
    with session.spawn(["bash", "--norc", "--noprofile", "--noediting"], env=environment, timeout=60) as shell:
        shell.expect_exact("ready$ ")
        shell.sendline(f"{session.python} -q")
        shell.expect_exact(">>> ")
        shell.sendline("6 * 7")
        assert shell.readline() == "42\n"
        shell.expect_exact(">>> ")
        shell.sendeof()
        shell.expect_exact("ready$ ")
        shell.writelines(["echo on", "e\n", "exit 5\n"])
        shell.expect_exact("one\n")
        assert shell.wait() == 5


def test_signals_and_how_it_ended(session: Session) -> None:
    sleeper = python(session, "import time; print('up'); time.sleep(1000)")
    sleeper.expect_exact("up\n")
    sleeper.kill(signal.SIGKILL)
    assert sleeper.wait() is None
    assert (sleeper.exitstatus, sleeper.signalstatus, sleeper.terminated) == (None, signal.SIGKILL, True)
    sleeper.kill(signal.SIGTERM)  # nobody there
    sleeper.close()


@pytest.mark.parametrize("ending", ["close", "terminate", "force", "with"])
def test_ending_leaves_nothing(session: Session, ending: str) -> None:
    code = """
import os, signal, time
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    os.execvp("sleep", ["sleep-left", "1000"])
time.sleep(0.05); print("up"); time.sleep(1000)
"""
    with python(session, code) as stubborn:
        stubborn.expect_exact("up\n")
        started = time.monotonic()
        if ending == "with":
            stubborn.__exit__(None, None, None)
        elif ending == "close":
            stubborn.close()
        else:
            assert stubborn.terminate(force=ending == "force")
        assert time.monotonic() - started < 30
        assert not stubborn.isalive() and stubborn.signalstatus == signal.SIGKILL
    left = session.run("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; true").output
    assert "sleep-left" not in left.replace("cat", "")
    stubborn.close()
    assert stubborn.closed and not stubborn.isatty()
    with pytest.raises(ValueError, match="closed"):
        stubborn.sendline("anyone?")
    with pytest.raises(ValueError, match="closed"):
        stubborn.expect("anyone?")


def test_terminate_lets_a_program_clean_up(session: Session) -> None:
    code = "import signal, sys, time\nsignal.signal(1, lambda *_: sys.exit(4))\nprint('up'); time.sleep(1000)"
    polite = python(session, code)
    polite.expect_exact("up\n")
    assert polite.terminate()
    assert (polite.exitstatus, polite.signalstatus) == (4, None)
    polite.close()


def test_window_and_echo(session: Session) -> None:
    code = """
import os, select, signal
def changed(*_): size = os.get_terminal_size(0); print("window", size.lines, size.columns)
signal.signal(signal.SIGWINCH, changed)
changed()
while True:  # a signal just before Python waits for input is handled only after it
    if select.select([0], [], [], 0.1)[0]: print("got", input())
"""
    with session.spawn([session.python, "-u", "-c", code], timeout=60, env={"COLUMNS": None}) as program:
        assert program.isatty() and program.getwinsize() == (24, 80)
        program.expect_exact("window 24 80\n")
        program.setwinsize(50, 132)
        program.expect_exact("window 50 132\n")
        assert program.getwinsize() == (50, 132)
        assert not program.getecho() and program.waitnoecho(0)
        program.sendline("quiet")
        assert program.readline() == "got quiet\n"
        program.setecho(True)
        assert program.getecho() and not program.waitnoecho(0.1)
        program.sendline("loud")
        assert "loud" in program.readline()
        program.expect_exact("got loud\n")
        with pytest.raises(OSError, match="no file descriptor"):
            program.fileno()


def test_logs_and_odd_bytes(session: Session) -> None:
    code = r"""
import os, time
for piece in (b"caf\xc3", b"\xa9 ", b"\xff\xfe", b" \xe2\x98", b"\x83 end\xc3"):
    os.write(1, piece)
    time.sleep(0.01)
"""
    with python(session, code) as odd:
        odd.logfile_read, odd.logfile_send, odd.logfile = io.StringIO(), io.StringIO(), io.StringIO()
        odd.send("typed \udcff")
        assert odd.read() == "café \\xff\\xfe ☃ end\\xc3"
        assert odd.logfile_read.getvalue() == "café \\xff\\xfe ☃ end\\xc3"
        assert odd.logfile_send.getvalue() == "typed \udcff"
        assert odd.logfile.getvalue() == "typed \udcffcafé \\xff\\xfe ☃ end\\xc3"


def test_ten_megabytes_pass_through(session: Session) -> None:
    with session.spawn("yes 0123456789abcdef | head -c 10200000; echo; echo end", timeout=60) as flood:
        tracemalloc.start()
        size = 0
        with pytest.raises(pexpect.EOF):
            while True:
                size += len(flood.read_nonblocking(1 << 16))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert size == 10_200_005
    assert peak < 3_000_000


def test_output_that_nobody_reads_is_held_back(session: Session) -> None:
    tracemalloc.start()
    with session.spawn("yes", timeout=60) as flood:
        flood.expect("(y\n){1000}")
        session.run("sleep 0.3")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
        flood.sendintr()
        flood.expect(pexpect.EOF)
        assert flood.isalive() is False and flood.signalstatus == signal.SIGINT
    tracemalloc.stop()


def test_two_at_once(session: Session) -> None:
    with python(session, READER) as one, python(session, READER) as two:
        for reader, text in ((one, "first"), (two, "second"), (one, "third")):
            reader.expect_exact("(reader) ")
            reader.sendline(text)
            reader.expect_exact(f"read '{text}'\n")


def test_a_channel_and_a_pipe_beside_the_pty(session: Session) -> None:
    code = """
import os, sys
channel = int(sys.argv[1])
print(os.isatty(0), os.isatty(1), open("/dev/tty").isatty())
for line in sys.stdin:
    print("read", line.strip())
    os.write(channel, len(line).to_bytes(4, "big") + line.encode())
"""
    command = [session.python, "-u", "-c", code, "{channel}"]
    with session.spawn(command, timeout=60, channel=True, stdin=True) as program:
        program.expect_exact("False True True\n")
        for text in ("a line", "x" * 264_000):
            program.sendline(text)
            assert program.process.receive(60) == f"{text}\n".encode()
            printed = ""  # what was printed before the message is there when the message is
            with pytest.raises(pexpect.TIMEOUT):
                while True:
                    printed += program.read_nonblocking(1 << 20, 0)
            assert printed == f"read {text}\n"


def test_signals_for_what_was_started_since_a_checkpoint(session: Session) -> None:
    code = """
import signal, subprocess
signal.signal(signal.SIGINT, lambda *_: print("interrupted"))
children = []
while True:
    line = input()
    if line == "start":
        children.append(subprocess.Popen(["sleep", "1000"]))
        subprocess.Popen(["sh", "-c", "trap '' INT; setsid sleep 1000 & setsid sleep 1000 &"]).wait()
    print([child.poll() for child in children])
"""
    with python(session, code) as program:

        def say(line: str) -> str:
            program.sendline(line)
            return str(program.readline())

        say("start")
        program.process.checkpoint()
        assert program.process.signal_since(0) == 0
        assert say("start") == "[None, None]\n"
        assert program.process.signal_since(0) == 3
        program.process.signal_since(signal.SIGINT, itself=True)
        # One that comes just before the next line is waited for is noticed when there is a line.
        assert say("look") == "interrupted\n"
        program.readline()
        while program.process.signal_since(0) == 3:
            assert say("look")
        assert say("look") == f"[None, {-signal.SIGINT}]\n"
        assert program.process.signal_since(signal.SIGKILL) == 2
        assert program.process.signal_since(0) == 0
        assert say("start") == f"[None, {-signal.SIGINT}, None]\n"
        program.process.signal_since(signal.SIGKILL)
        assert say("look") == f"[None, {-signal.SIGINT}, {-signal.SIGKILL}]\n"


def test_what_cannot_start(session: Session) -> None:
    with pytest.raises(FileNotFoundError):
        session.spawn(["no-such-program"])
    with pytest.raises(FileNotFoundError):
        session.spawn(["true"], cwd="no/such/directory")


def test_a_lost_guest_is_an_error_not_an_end(session: Session) -> None:
    program = python(session, READER)
    program.expect_exact("(reader) ")
    if session.terminal.isolates:
        session._connect().close()
    else:
        os.kill(session.guest()["pid"], signal.SIGKILL)
    with pytest.raises(SandboxLost):
        program.expect_exact("more")
    assert not program.isalive()
    with pytest.raises(SandboxLost):
        program.sendline("anyone?")
    program.close()
    if session.terminal.alive():
        with python(session, READER) as again:
            again.expect_exact("(reader) ")
