"""The guest: commands, timeouts, programs with channels and PTYs, and what happens when parts of it die."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pexpect
import pytest
from support import interpreters, repeated

from debug_gym_core.errors import SandboxLost
from debug_gym_core.sandbox.connection import BOOT, CommandLost, guest_program
from debug_gym_core.sandbox.frames import FrameReader, pack
from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing import is_alive, wait_until

ECHO = """
import os, struct, sys
channel = int(sys.argv[1])

def read(size):
    data = b""
    while len(data) < size:
        piece = os.read(channel, size - len(data))
        if not piece:
            sys.exit()
        data += piece
    return data

def receive():
    return read(struct.unpack(">I", read(4))[0])

def send(message):
    data = struct.pack(">I", len(message)) + message
    while data:
        data = data[os.write(channel, data):]
"""


def program(code: str) -> list[str]:
    return ["python3", "-c", ECHO + textwrap.dedent(code), "{channel}"]


def pids(session: Session, *names: str) -> list[int]:
    """The process ids that commands wrote to files."""
    wait_until(lambda: all(session.stat(name) is not None and session.read(name).endswith(b"\n") for name in names))
    return [int(session.read(name)) for name in names]


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == pid and fields[0] != "Z":
                    found.append(int(entry.name))
    return found


# -- commands


@pytest.mark.parametrize(
    ("command", "status", "output"),
    [
        ("true", 0, ""),
        ("false", 1, ""),
        ("exit 7", 7, ""),
        ("echo hello", 0, "hello\n"),
        ("echo error >&2", 0, "error\n"),
        ("echo one; echo two >&2; echo three", 0, "one\ntwo\nthree\n"),
        ("printf 'no newline'", 0, "no newline"),
        ("printf 'a\\r\\nb'", 0, "a\r\nb"),
        ("cat <<END\none\n  two\nEND", 0, "one\n  two\n"),
        ("set -e; false; echo never", 1, ""),
        ("set -o pipefail; false | true", 1, ""),
        ("echo a | tr a b | cat", 0, "b\n"),
        ("f() { echo in $1; }; f here", 0, "in here\n"),
        ("x=1; (x=2); echo $x", 0, "1\n"),
        ("echo {1..3}", 0, "1 2 3\n"),
        ("echo $((2 ** 10))", 0, "1024\n"),
        ("kill -KILL $$", -signal.SIGKILL, ""),
        ("kill -SEGV $$", -signal.SIGSEGV, ""),
        ("sh -c 'kill -TERM $$'; echo $?", 0, "Terminated\n143\n"),
        ("no-such-command-here 2>/dev/null", 127, ""),
        ("cat", 0, ""),
        ("sleep 100 & echo started", 0, "started\n"),
        ("(sleep 100; echo never) & disown; echo gone", 0, "gone\n"),
        ("nohup sleep 100 >/dev/null 2>&1 & echo nohup", 0, "nohup\n"),
        ("setsid sleep 100 & sleep 0.01; echo setsid", 0, "setsid\n"),
        ("yes 2>/dev/null | head -n 2", 0, "y\ny\n"),
        ("echo 'ümläut 漢字 🎉'", 0, "ümläut 漢字 🎉\n"),
        ("printf 'bad \\377\\376 bytes'", 0, "bad \\xff\\xfe bytes"),
        ("printf 'nul \\0 byte'", 0, "nul \0 byte"),
        ("exec >&- 2>&-; exit 3", 3, ""),
        ("trap 'echo cleaned' EXIT; exit 4", 4, "cleaned\n"),
        ('basename "$PWD"', 0, "root\n"),
        ("umask", 0, "0022\n"),
        ("ulimit -c >/dev/null; trap", 0, ""),
    ],
)
def test_command(session: Session, command: str, status: int, output: str) -> None:
    result = session.run(command, timeout=20)
    assert (result.exit_status, result.output, result.output_cut, result.timed_out) == (status, output, 0, False)
    assert result.seconds < 30


def test_commands_find_default_signal_dispositions(session: Session) -> None:
    status = session.run(["cat", "/proc/self/status"]).output
    masks = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Sig"))
    assert int(masks["SigIgn"], 16) == int(masks["SigBlk"], 16) == int(masks["SigCgt"], 16) == 0


def test_commands_inherit_no_descriptors(session: Session) -> None:
    assert session.run(["ls", "/proc/self/fd"]).output.split() == ["0", "1", "2", "3"]  # 3: the directory being listed


def test_arguments_are_passed_as_they_are(session: Session) -> None:
    arguments = ["a b", "", "'\"$x`", "-n", "\n", "ümläut"]
    result = session.run(["python3", "-c", "import sys; print(sys.argv[1:])", *arguments])
    assert result.output == f"{arguments}\n"


def test_environment_is_the_sandboxs_own(open_session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "1")
    session = open_session({"HOME": "/nowhere", "GONE": "1"})
    result = session.run(["env"], env={"OWN": "x y", "GONE": None})
    variables = dict(line.split("=", 1) for line in result.output.splitlines())
    assert variables.pop("PATH").endswith(":/usr/bin:/bin")
    assert variables == {
        "HOME": "/nowhere",
        "OWN": "x y",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "80",
    }


def test_working_directory(session: Session) -> None:
    session.write("sub/file", b"")
    assert session.run("ls", cwd="sub").output == "file\n"
    assert session.run(["pwd"], cwd="/").output == "/\n"


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        ({"command": ["no-such-program"]}, FileNotFoundError, "no-such-program"),
        ({"command": ["./missing"]}, FileNotFoundError, "./missing"),
        ({"command": ["./data"]}, PermissionError, "./data"),
        ({"command": ["./text"]}, OSError, "./text"),
        ({"command": "true", "cwd": "missing"}, FileNotFoundError, "missing"),
        ({"command": "true", "cwd": "data"}, NotADirectoryError, "data"),
    ],
)
def test_what_cannot_start_is_an_error_at_once(
    session: Session, arguments: dict[str, str], error: type[OSError], named: str
) -> None:
    session.write("data", b"")
    session.write("text", b"echo hello", mode=0o755)
    with pytest.raises(error) as caught:
        session.run(**arguments)  # type: ignore[arg-type]
    assert caught.value.filename == named
    with pytest.raises(error):
        session.process(arguments["command"], cwd=arguments.get("cwd", "."))
    assert session.run("echo fine").output == "fine\n"


def test_nul_in_an_argument_is_an_error(session: Session) -> None:
    with pytest.raises(OSError, match="null byte"):
        session.run(["echo", "a\0b"])


def test_stdin(session: Session) -> None:
    data = os.urandom(3_000_000)
    assert session.run("cat | md5sum; cat", stdin=data).output == session.run(["md5sum"], stdin=data).output
    assert session.run("exec <&-; sleep 0.01; echo closed", stdin=data).output == "closed\n"


def test_long_output_keeps_head_and_tail(session: Session) -> None:
    result = session.run("seq 1 100000", output_limit=2000)
    everything = "".join(f"{number}\n" for number in range(1, 100001))
    assert result.output.startswith("1\n2\n3\n")
    assert result.output.endswith("99999\n100000\n")
    assert f"[... {result.output_cut} bytes left out ...]" in result.output
    head, _, tail = result.output.partition(f"[... {result.output_cut} bytes left out ...]\n")
    assert everything.startswith(head.rstrip("\n"))
    assert everything.endswith(tail)
    assert 1900 < len(head) + len(tail) < 2100


def test_cut_characters_are_not_shown_as_undecodable(session: Session) -> None:
    result = session.run(["python3", "-c", "print('漢' * 5000, end='')"], output_limit=1000, env={"PYTHONUTF8": "1"})
    head, _, tail = result.output.partition(f"\n[... {result.output_cut} bytes left out ...]\n")
    assert set(head) == set(tail) == {"漢"}
    assert len((head + tail).encode()) + result.output_cut == 15000


def test_output_of_half_a_gigabyte_costs_constant_memory(session: Session) -> None:
    result = session.run("head -c 500000000 /dev/zero; echo; cat /proc/$PPID/status", timeout=60)
    assert result.output_cut > 499_000_000
    peak = next(line for line in result.output.splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) < 60_000


def test_twenty_commands_at_once(session: Session) -> None:
    with ThreadPoolExecutor(20) as pool:
        started = time.monotonic()
        results = list(pool.map(lambda number: session.run(f"sleep 0.5; echo {number}"), range(20)))
        assert time.monotonic() - started < 30
    assert [result.output for result in results] == [f"{number}\n" for number in range(20)]


def test_files_and_commands_at_once(session: Session) -> None:
    def work(number: int) -> bool:
        data = b"%d" % number * 1000 * number
        session.write(f"file{number}", data)
        counted = session.run(f"wc -c < file{number}").output
        return session.read(f"file{number}") == data and int(counted) == len(data)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(60)))


# -- the end of commands

STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def note(name):
    with open(name + ".new", "w") as file:
        file.write("%d\\n" % os.getpid())
    os.rename(name + ".new", name)
note("first")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        note("second")
        print("grandchild", flush=True)
        while True:
            time.sleep(1)
    os._exit(0)
"""


@pytest.mark.parametrize(
    "ending",
    [
        "os.wait(); time.sleep(100)",
        "os.closerange(0, 3); time.sleep(100)",
        *repeated("faults", "time.sleep(100)", "while True: pass"),
    ],
)
def test_timeout_leaves_no_process(session: Session, ending: str) -> None:
    started = time.monotonic()
    result = session.run(["python3", "-c", STUBBORN + ending], timeout=1)
    assert 1 <= time.monotonic() - started < 30
    assert result.timed_out
    assert result.exit_status == -signal.SIGKILL
    assert result.output == "grandchild\n"
    assert not any(map(is_alive, pids(session, "first", "second")))


def test_timeout_lets_a_command_clean_up(session: Session) -> None:
    result = session.run("trap 'echo cleaning; exit 5' TERM; echo working; sleep 100 & wait", timeout=0.3)
    assert (result.exit_status, result.output, result.timed_out) == (5, "working\ncleaning\n", True)
    assert result.seconds < 30


def test_timeout_ends_a_stopped_command(session: Session) -> None:
    result = session.run("kill -STOP $$", timeout=0.3)
    assert result.timed_out
    assert result.seconds < 30


@pytest.mark.parametrize("timeout", [None, 1.0])
def test_orphan_that_holds_the_output_does_not_delay(session: Session, timeout: float | None) -> None:
    """The reply comes when the main process has ended, with what was printed, though the pipe is still open."""
    started = time.monotonic()
    result = session.run(["python3", "-c", STUBBORN + "time.sleep(0.2)\nprint('main')"], timeout=timeout)
    assert time.monotonic() - started < 30
    assert (result.exit_status, result.output, result.timed_out) == (0, "grandchild\nmain\n", False)
    assert not is_alive(pids(session, "second")[0])


@pytest.mark.faults
def test_fork_bomb_ends(session: Session) -> None:
    bomb = """
    import os, time
    end = time.time() + 20
    while time.time() < end:
        try:
            if len(os.listdir("/proc")) < 600:
                os.fork()
        except OSError:
            pass
    """
    marker = f"bomb-{time.monotonic_ns()}"
    result = session.run(["python3", "-c", textwrap.dedent(bomb), marker], timeout=0.7)
    assert result.timed_out
    assert result.seconds < 30
    assert not [entry for entry in Path("/proc").glob("[0-9]*") if marker in _command_line(entry)]


def _command_line(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_text(errors="replace")
    except OSError:
        return ""


def test_flood_until_the_timeout(session: Session) -> None:
    result = session.run("yes", timeout=0.5)
    assert result.timed_out
    assert result.seconds < 30
    assert result.output.startswith("y\ny\n")


def test_interrupted_host_ends_the_command(session: Session, python: str) -> None:
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        session.run("echo $$ > pid.new; mv pid.new pid; sleep 100")
    timer.join()
    wait_until(lambda: not is_alive(pids(session, "pid")[0]))


# -- programs


def test_channel_echoes(session: Session) -> None:
    with session.process(program("while True: send(receive())")) as process:
        for message in (b"", b"x", os.urandom(70_000), os.urandom(3_000_000), b"last"):
            process.send(message)
            assert process.receive(10) == message
    assert process.returncode == -signal.SIGKILL


def test_output_before_a_message_comes_with_it(session: Session) -> None:
    code = """
    for number in range(300):
        print("line", number, flush=True)
        send(b"%d" % number)
        receive()
    """
    for pty in (False, True):
        with session.process(program(code), pty=pty) as process:
            for number in range(300):
                assert process.receive(10) == b"%d" % number
                assert process.take_output() == (f"line {number}\n", 0)
                process.send(b"")
            assert process.receive(10) is None
            assert process.wait(10) == 0
            assert process.receive(10) is None


def test_output_between_messages_is_bounded(session: Session) -> None:
    code = """
    sys.stdout.write("first\\n" + "x" * 5000000 + "\\nlast\\n")
    sys.stdout.flush()
    send(b"done")
    """
    for pty in (False, True):
        with session.process(program(code), pty=pty, output_limit=1000) as process:
            assert process.receive(20) == b"done"
            text, cut = process.take_output()
            assert text.startswith("first\nxxx")
            assert text.endswith("xxx\nlast\n")
            assert len(text) < 1100
            assert cut == 5_000_012 - 1000


def test_output_without_messages_is_bounded_on_the_host(session: Session) -> None:
    code = """
    for number in range(100):
        print("%03d " % number + "x" * 996, flush=True)
        send(b"")
    """
    with session.process(program(code), output_limit=10_000) as process:
        while process.receive(10) is not None:
            pass
        text, cut = process.take_output()
    assert text.startswith("000 x")
    assert "099 x" in text
    assert len(text) < 10_200
    assert cut > 89_000


def test_take_output_asks_a_program_that_sends_nothing(session: Session) -> None:
    code = "print('working', flush=True); open('ready', 'w').write('1\\n'); receive()"
    with session.process(program(code)) as process:
        pids(session, "ready")
        assert process.take_output() == ("working\n", 0)
        assert process.take_output() == ("", 0)
        with pytest.raises(TimeoutError):
            process.receive(0.05)


def test_flooding_channel_is_held_back(session: Session) -> None:
    """A program that sends without end is stopped by the window; all that it sent arrives in order."""
    code = """
    for number in range(400):
        send(b"%06d" % number + b"x" * 100000)
        print(number, file=open("sent", "w"), flush=True)
    """
    with session.process(program(code)) as process:
        wait_until(lambda: session.stat("sent") is not None and session.read("sent") > b"3")
        with pytest.raises(TimeoutError):
            process.wait(0.3)
        assert int(session.read("sent")) < 300
        for number in range(400):
            message = process.receive(10)
            assert message is not None
            assert message[:6] == b"%06d" % number
        assert process.receive(10) is None


def test_messages_sent_before_the_end_arrive(session: Session) -> None:
    with session.process(program("for n in range(50): send(b'%d' % n)\nprint('end')\nos._exit(3)")) as process:
        received = [process.receive(10) for _ in range(51)]
        assert received == [*(b"%d" % number for number in range(50)), None]
        assert process.wait(10) == 3


def test_channel_survives_a_program_that_closes_everything_else(session: Session) -> None:
    with session.process(program("os.closerange(0, 3); send(receive())")) as process:
        process.send(b"still here")
        assert process.receive(10) == b"still here"


def test_garbage_on_the_channel_ends_the_channel_only(session: Session) -> None:
    with session.process(
        program("os.write(channel, b'\\xff' * 100)\nprint('alive', flush=True)\nsys.exit(2)")
    ) as process:
        assert process.receive(10) is None
        assert process.wait(10) == 2
    assert session.run("echo fine").output == "fine\n"


def test_blobs(session: Session) -> None:
    code = """
    import sys
    descriptor = int(sys.argv[1])
    data = os.read(descriptor, 100)
    os.lseek(descriptor, 0, 0)
    os.write(descriptor, b"tampered")
    send(data + b" " + os.read(int(sys.argv[3]), 100))
    """
    argv = [
        "python3",
        "-c",
        ECHO.replace("argv[1]", "argv[2]") + textwrap.dedent(code),
        "{blob:a}",
        "{channel}",
        "{blob:b}",
    ]
    for _ in range(3):  # each program has a copy of its own, at the beginning
        with session.process(argv, blobs={"a": b"first blob", "b": b"second"}) as process:
            assert process.receive(10) == b"first blob second"
    assert list(session.walk()) == []


def test_pty(session: Session) -> None:
    code = """
    import os, sys
    assert os.isatty(0) and os.isatty(1) and os.isatty(2)
    assert os.getsid(0) == os.getpid()
    assert os.ttyname(0) and open("/dev/tty")
    print(os.get_terminal_size())
    name = input("name? ")
    print("hello", name)
    print(sys.stdin.readline() == "")
    """
    with session.process(
        ["python3", "-c", textwrap.dedent(code)], pty=True, channel=False, env={"COLUMNS": None}
    ) as process:
        process.write_stdin("wörld\n".encode())
        process.write_stdin(b"\x04")
        assert process.wait(10) == 0
        text, cut = process.take_output()
    assert (text, cut) == ("os.terminal_size(columns=80, lines=24)\nname? hello wörld\nTrue\n", 0)


def test_pty_interrupt_key(session: Session) -> None:
    code = (
        "import time\ntry:\n print('up', flush=True); time.sleep(100)\nexcept KeyboardInterrupt: print('interrupted')"
    )
    with session.process(["python3", "-c", code], pty=True, channel=False, follow=True) as process:
        assert process.read_text(10) == b"up\n"
        process.write_stdin(b"\x03")
        assert process.read_text(10).endswith(b"interrupted\n")
        assert process.read_text(10) == b""
        assert process.wait(10) == 0


def test_followed_output_arrives_whole(session: Session) -> None:
    for pty in (False, True):
        with session.process(["seq", "1", "300000"], pty=pty, channel=False, follow=True) as process:
            data = b""
            while piece := process.read_text(10):
                data += piece
        assert data == b"".join(b"%d\n" % number for number in range(1, 300001))


def test_stdin_pipe(session: Session) -> None:
    with session.process(["cat"], stdin=True, channel=False, follow=True) as process:
        process.write_stdin(b"one\n")
        assert process.read_text(10) == b"one\n"
        process.write_stdin(b"two\n", close=True)
        assert process.read_text(10) == b"two\n"
        assert process.wait(10) == 0


@pytest.mark.parametrize("python", interpreters(handful=True))
def test_pexpect(session: Session) -> None:
    environment = {"PS1": "ready> ", "TERM": "dumb", "HISTFILE": "/dev/null"}
    shell = session.spawn(["bash", "--norc", "--noprofile"], env=environment, timeout=10)
    shell.expect_exact("ready> ")
    shell.sendline("x=ümläut; cd /; printf '%s\\n' $x $PWD")
    shell.expect("(.+)\n(.+)\n")
    assert (shell.match[1], shell.match[2]) == ("ümläut", "/")
    shell.expect_exact("ready> ")
    shell.sendline("sleep 100")
    with pytest.raises(pexpect.TIMEOUT):
        shell.expect_exact("ready> ", timeout=0.1)
    shell.sendintr()
    shell.expect_exact("ready> ")
    shell.sendline("yes | head -n 100000; exit 3")
    text = shell.read()
    assert text.count("y\n") == 100000
    assert shell.wait() == 3
    assert not shell.isalive()
    assert shell.exitstatus == 3
    with pytest.raises(pexpect.EOF):
        shell.expect("more")
    shell.close()


def test_signal_reaches_the_program_only(session: Session) -> None:
    code = """
    import signal, subprocess, time
    def handler(number, frame):
        send(b"signal %d" % number)
    signal.signal(signal.SIGRTMIN + 6, handler)
    child = subprocess.Popen(["sleep", "100"])
    send(b"ready")
    for _ in range(2):
        receive()
        send(str(child.poll()).encode())
    """
    with session.process(program(code)) as process:
        assert process.receive(10) == b"ready"
        process.signal(signal.SIGRTMIN + 6)
        assert process.receive(10) == b"signal %d" % (signal.SIGRTMIN + 6)
        process.send(b"")
        assert process.receive(10) == b"None"


@pytest.mark.parametrize("says", [True, False], ids=["said", "silent"])
def test_a_crowd_stands_still_until_the_signal_was_noticed(session: Session, says: bool) -> None:
    """As of a bomb: what it started would leave the program no time for it. Soon all go on."""
    code = """
    import os, signal, sys, time
    children = []
    def states():
        return "".join(open("/proc/%%d/stat" %% child).read().rpartition(")")[2].split()[0] for child in children)
    noticed = []
    signal.signal(signal.SIGRTMIN + 6, lambda number, frame: noticed.append(states()))
    for _ in range(60):
        child = os.fork()
        if not child:
            time.sleep(100)
        children.append(child)
    send(b"ready")
    while not noticed:
        time.sleep(0.01)
    if %r:
        send(noticed[0].encode())
    end = time.monotonic() + 10
    while states() != "S" * 60 and time.monotonic() < end:
        time.sleep(0.01)
    send((noticed[0] + " " + states()).encode())
    receive()
    """
    with session.process(program(code % says)) as process:
        assert process.receive(20) == b"ready"
        assert process.signal(signal.SIGRTMIN + 6)
        if says:
            assert (process.receive(20) or b"").count(b"T") > 30  # the others, on a busy machine, stop when they run
        before, after = (process.receive(20) or b"").split()
        assert before.count(b"T") > 30 and after == b"S" * 60


def test_signal_reaches_one_of_the_processes_that_it_started(session: Session) -> None:
    code = """
    import os, subprocess
    child = subprocess.Popen(["sleep", "100"])
    send(b"%d %d" % (child.pid, os.getppid()))
    send(b"%d" % child.wait())
    """
    with session.process(program(code)) as process:
        child, stranger = map(int, (process.receive(10) or b"").split())
        assert process.signal(0, child)
        assert not process.signal(signal.SIGTERM, stranger)
        assert process.signal(signal.SIGTERM, child)
        assert process.receive(10) == b"%d" % -signal.SIGTERM
        assert not process.signal(0, child)


def test_a_process_that_was_killed_is_there_no_more_though_its_end_takes_time(session: Session) -> None:
    code = """
    import os, time
    child = os.fork()
    if not child:
        much = b"x" * (300 << 20)  # which the kernel has to give back
        send(b"%d" % os.getpid())
        time.sleep(100)
    receive()
    """
    with session.process(program(code)) as process:
        child = int(process.receive(20) or b"")
        assert process.signal(0, child)
        assert process.signal(signal.SIGKILL, child)
        assert not process.signal(0, child)


def test_signal_and_kill_after_the_end_do_nothing(session: Session) -> None:
    process = session.process(["true"], channel=False)
    assert process.wait(10) == 0
    assert not process.signal(signal.SIGTERM)
    process.kill()
    process.send(b"nobody")
    process.write_stdin(b"nobody")
    assert process.take_output() == ("", 0)
    assert process.returncode == 0
    assert session.run("echo $PPID").exit_status == 0


def test_signals_that_come_with_the_end_hit_nobody_else(session: Session) -> None:
    for _ in range(150):
        process = session.process(["true"], channel=False)
        process.signal(signal.SIGKILL)
        assert process.wait(10) in (0, -signal.SIGKILL)
    assert session.restarts == 0


def test_kill_leaves_nothing(session: Session) -> None:
    process = session.process(["python3", "-c", STUBBORN + "time.sleep(100)"], pty=True, channel=False)
    both = pids(session, "first", "second")
    started = time.monotonic()
    process.kill()
    assert time.monotonic() - started < 30
    assert not any(map(is_alive, both))
    assert process.returncode == -signal.SIGKILL


def test_process_timeout(session: Session) -> None:
    with session.process(program("send(b'up'); time = __import__('time'); time.sleep(100)"), timeout=0.7) as process:
        assert process.receive(10) == b"up"
        assert process.receive(10) is None
        assert process.timed_out
        assert process.wait(10) == -signal.SIGTERM


def test_wait_has_a_timeout(session: Session) -> None:
    with session.process(["sleep", "100"], channel=False) as process, pytest.raises(TimeoutError):
        process.wait(0.05)


# -- when parts die


def test_killed_guest_is_a_typed_error_then_all_goes_on(session: Session) -> None:
    session.write("kept", b"content")
    pid = session.guest()["pid"]
    errors: list[BaseException] = []

    def wait_for_command() -> None:
        try:
            session.run("echo $$ > pid.new; mv pid.new pid; sleep 100")
        except BaseException as error:
            errors.append(error)

    process = session.process(program("while True: send(receive())"))
    thread = threading.Thread(target=wait_for_command)
    thread.start()
    (command,) = pids(session, "pid")
    os.kill(pid, signal.SIGKILL)
    thread.join(10)
    assert [type(error) for error in errors] == [SandboxLost]
    with pytest.raises(SandboxLost, match="child sandbox"):
        process.receive(10)
    with pytest.raises(SandboxLost):
        process.wait(10)
    process.kill()
    assert session.read("kept") == b"content"
    assert session.restarts == 1
    assert session.run("echo again").output == "again\n"
    assert session.guest()["pid"] != pid
    wait_until(lambda: not is_alive(command) and not is_alive(process.pid))


def test_lost_terminal_stays_lost(session: Session) -> None:
    os.kill(session.guest()["pid"], signal.SIGKILL)
    session.terminal.stands = False  # type: ignore[attr-defined]
    for _ in range(3):
        with pytest.raises(SandboxLost, match="gone"):
            session.run("true")
    assert session.restarts == 0


def test_killed_keeper_costs_one_command(session: Session) -> None:
    with session.process(program("while True: send(receive())")) as other:
        with pytest.raises(CommandLost, match="kill -KILL"):
            session.run("echo $$ > pid; sleep 100 & kill -KILL $PPID; sleep 100", timeout=20)
        assert not is_alive(pids(session, "pid")[0])
        other.send(b"unharmed")
        assert other.receive(10) == b"unharmed"
    assert session.run("echo fine").output == "fine\n"
    assert session.restarts == 0


def test_killed_keeper_of_a_process(session: Session) -> None:
    process = session.process(program("send(b'%d' % os.getppid()); receive()"))
    os.kill(int(process.receive(10) or b""), signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(CommandLost, match="the command killed it, or memory ran out"):
            process.receive(10)
    with pytest.raises(CommandLost):
        process.wait(10)
    assert not is_alive(process.pid)
    assert session.run("echo fine").output == "fine\n"


def test_stopped_keeper_goes_on(session: Session) -> None:
    started = time.monotonic()
    assert session.run("kill -STOP $PPID; echo on; sleep 100", timeout=0.5).output == "on\n"
    assert time.monotonic() - started < 30


@contextlib.contextmanager
def held_up(process: int) -> Iterator[None]:
    """Have a process get no time at all, whoever continues it; it can only be killed."""
    seize, interrupt = 0x4206, 0x4207  # linux/ptrace.h
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    if ptrace(seize, process, None, None) != 0:
        pytest.skip(f"ptrace is not allowed here: {os.strerror(ctypes.get_errno())}")
    ptrace(interrupt, process, None, None)
    try:
        yield
    finally:
        while not os.WIFSIGNALED(os.waitpid(process, 0x40000000)[1]):  # __WALL
            pass


@pytest.mark.faults
def test_a_keeper_that_gets_no_time_is_a_timeout(session: Session) -> None:
    """As of a command that takes all processors, a bomb: it has timed out, whoever ended it."""
    with ThreadPoolExecutor(1) as pool:
        command = "echo printed; echo $$ >command; echo $PPID >keeper; exec sleep 100"
        started = time.monotonic()
        waiting = pool.submit(session.run, command, timeout=1.0)
        process, keeper = pids(session, "command", "keeper")
        with held_up(keeper):
            result = waiting.result()
    assert result.timed_out and result.exit_status == -signal.SIGKILL
    assert result.output == "(What it printed is lost: it took all processor time.)\n"
    assert 1.0 <= result.seconds <= time.monotonic() - started < 30
    assert not is_alive(process)
    assert session.run("echo fine").output == "fine\n" and session.restarts == 0


def test_killed_worker_is_replaced(session: Session) -> None:
    session.write("file", b"content")
    session.run("true")
    for child in children(session.guest()["pid"]):
        os.kill(child, signal.SIGKILL)
    with contextlib.suppress(CommandLost):
        session.read("file")
    assert session.read("file") == b"content"
    assert session.run("echo fine").output == "fine\n"
    assert session.restarts == 0


def test_hung_guest_is_given_up(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("debug_gym_core.sandbox.session.GRACE", 0.3)
    pid = session.guest()["pid"]
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(session.terminal.streams[-1], "close", lambda: os.kill(pid, signal.SIGKILL))  # type: ignore[attr-defined]
    with pytest.raises(SandboxLost, match="did not answer"):
        session.run("true", timeout=0.2)


def test_nothing_is_left_when_the_host_goes(python: str, tmp_path: Path) -> None:
    """Not a session: a host that vanishes without a word."""
    guest = subprocess.Popen(
        [python, "-I", "-S", "-c", BOOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    )
    assert guest.stdin is not None and guest.stdout is not None
    guest.stdin.write(guest_program("none"))
    guest.stdin.write(pack({"id": 1, "op": "start", "root": str(tmp_path), "env": {}}))
    command = {"cwd": ".", "output_limit": 100, "timeout": None}
    code = STUBBORN + "time.sleep(100)"
    guest.stdin.write(pack({"id": 2, "op": "run", "argv": [sys.executable, "-c", code], **command}))
    guest.stdin.write(pack({"id": 3, "op": "process", "pty": True, "shell": "echo $$ > third; sleep 100", **command}))
    guest.stdin.flush()
    wait_until(lambda: all((tmp_path / name).exists() for name in ("first", "second", "third")))
    wait_until(lambda: all((tmp_path / name).read_text().endswith("\n") for name in ("first", "second", "third")))
    processes = [int((tmp_path / name).read_text()) for name in ("first", "second", "third")]
    helpers = children(guest.pid)
    assert all(map(is_alive, processes))
    assert helpers
    guest.stdin.close()
    assert guest.wait(5) == 0
    guest.stdout.close()
    assert not any(map(is_alive, processes + helpers))


def test_guest_waits_for_a_host_that_does_not_read(python: str, tmp_path: Path) -> None:
    size = 60_000_000
    with (tmp_path / "big").open("wb") as file:
        file.truncate(size)
    guest = subprocess.Popen(
        [python, "-I", "-S", "-c", BOOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    )
    assert guest.stdin is not None and guest.stdout is not None
    guest.stdin.write(guest_program("none"))
    guest.stdin.write(pack({"id": 1, "op": "start", "root": str(tmp_path), "env": {}}))
    guest.stdin.write(pack({"id": 2, "op": "read", "path": "big"}))
    guest.stdin.flush()

    def peaks() -> list[int]:
        processes = [guest.pid, *children(guest.pid)]
        return [int(_status(process).partition("VmHWM:")[2].split()[0]) for process in processes]

    used: list[str] = []

    def idle() -> bool:
        used.append(_cpu(guest.pid))
        return len(used) > 40 and len(set(used[-40:])) == 1

    seen = 0
    reader = FrameReader()
    done = False
    while not done:
        for header, body in reader.feed(os.read(guest.stdout.fileno(), 1 << 16)):
            seen += len(body)
            done = header["t"] == "done"
            if header["t"] == "hello":  # and now the host looks away until nothing moves any more
                wait_until(idle)
                assert max(peaks()) < 45_000
    assert seen == size
    guest.stdin.close()
    assert guest.wait(5) == 0
    guest.stdout.close()


def _status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def _cpu(pid: int) -> str:
    """The processor time used, as text."""
    return " ".join(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])


@pytest.mark.skipif(os.getuid() == 0, reason="root may trace everything")
def test_commands_cannot_trace_the_guest(session: Session) -> None:
    """Though they run as the same user: the guest is not dumpable, while the commands are."""
    pid = session.guest()["pid"]
    code = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    assert session.run(["python3", "-c", code]).output == "1\n"
    keepers = children(pid)
    assert keepers
    for process in (pid, *keepers):
        assert "denied" in session.run(f"cat /proc/{process}/mem").output
        assert "denied" in session.run(f"cat /proc/{process}/environ").output
        assert "denied" in session.run(f"echo x > /proc/{process}/fd/1").output


# -- as the first process of a pid namespace


@pytest.fixture
def first_process(python: str, tmp_path: Path) -> subprocess.Popen[bytes]:
    command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", python, "-I", "-S", "-c", BOOT]
    if os.getuid() != 0:
        command[1:1] = ["--user", "--map-root-user"]
    if subprocess.run([*command[: command.index(python)], "true"], capture_output=True).returncode != 0:
        pytest.skip("no pid namespaces here")
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path)


class _Pipes:
    def __init__(self, guest: subprocess.Popen[bytes]) -> None:
        assert guest.stdin is not None and guest.stdout is not None
        self.guest, self.stdin, self.stdout = guest, guest.stdin, guest.stdout

    def read(self, size: int) -> bytes:
        return os.read(self.stdout.fileno(), size)

    def write(self, data: bytes | memoryview) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def close(self) -> None:
        self.stdin.close()
        self.guest.wait(10)


def test_first_process_of_a_namespace(
    session: Session, first_process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipes = _Pipes(first_process)
    session.terminal.streams[-1].close()  # type: ignore[attr-defined]
    monkeypatch.setattr(session.terminal, "open", lambda argv: pipes)
    wait_until(lambda: not session._held.connection.alive)  # type: ignore[union-attr]
    assert session.guest()["pid"] == 1
    assert session.run("echo hello").output == "hello\n"
    # Nothing in the namespace can end it, and orphans are not left as zombies.
    assert session.run("kill -KILL 1; kill -TERM 1; kill -INT 1; echo survived").output == "survived\n"
    with pytest.raises(CommandLost):
        session.run("kill -KILL -1; echo not; kill -KILL $PPID; sleep 100", timeout=10)
    result = session.run(["python3", "-c", STUBBORN + "time.sleep(100)"], timeout=0.5)
    assert result.timed_out
    listing = session.run("ps -A -o stat= -o args=").output
    assert "Z" not in {line.split()[0][0] for line in listing.splitlines()}, listing
    assert "STUBBORN" not in listing and "setsid" not in listing
    session.close()
    assert first_process.returncode == 0
    pipes.stdout.close()


# -- without what the system usually offers


@pytest.mark.faults
def test_orphans_are_found_without_ctypes(
    open_session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a marker in their environment, since there is no prctl to become their parent."""
    hidden = BOOT.replace("import os, sys\n", "import os, sys\nsys.modules['ctypes'] = None\n")
    monkeypatch.setattr("debug_gym_core.sandbox.connection.BOOT", hidden)
    session = open_session()
    assert any("ctypes" in note for note in session.guest()["notes"])
    result = session.run(["python3", "-c", STUBBORN + "time.sleep(100)"], timeout=0.7)
    assert (result.timed_out, result.output) == (True, "grandchild\n")
    assert not any(map(is_alive, pids(session, "first", "second")))
    assert session.run(["python3", "-c", STUBBORN + "time.sleep(0.2)"]).exit_status == 0
    assert not any(map(is_alive, pids(session, "first", "second")))
    argv = ["python3", "-c", "import os, sys; print(os.read(int(sys.argv[1]), 9))", "{blob:x}"]
    with session.process(argv, channel=False, blobs={"x": b"blob"}) as process:
        assert process.wait(10) == 0
        assert process.take_output() == ("b'blob'\n", 0)


def test_channel_message_lengths_are_big_endian(session: Session) -> None:
    with session.process(program("send(read(4)); send(read(3))")) as process:
        process.send(b"abc")
        assert process.receive(10) == struct.pack(">I", 3)
        assert process.receive(10) == b"abc"
