"""The guest's programs that stay: channels, PTYs, signals, and what they say."""

from __future__ import annotations

import os
import signal
import struct
import textwrap
import time

import pexpect
import pytest
from guest_programs import ECHO, STUBBORN, pids, program
from support import interpreters

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing import is_alive, wait_until


def test_channel_echoes(session: Session) -> None:
    with session.process(program("while True: send(receive())")) as process:
        for message in (b"", b"x", os.urandom(70_000), os.urandom(3_000_000), b"last"):
            process.send(message)
            assert process.receive(60) == message
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
                assert process.receive(60) == b"%d" % number
                assert process.take_output() == (f"line {number}\n", 0)
                process.send(b"")
            assert process.receive(60) is None
            assert process.wait(60) == 0
            assert process.receive(60) is None


def test_output_between_messages_is_bounded(session: Session) -> None:
    code = """
    sys.stdout.write("first\\n" + "x" * 5000000 + "\\nlast\\n")
    sys.stdout.flush()
    send(b"done")
    """
    for pty in (False, True):
        with session.process(program(code), pty=pty, output_limit=1000) as process:
            assert process.receive(60) == b"done"
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
        while process.receive(60) is not None:
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
            message = process.receive(60)
            assert message is not None
            assert message[:6] == b"%06d" % number
        assert process.receive(60) is None


def test_messages_sent_before_the_end_arrive(session: Session) -> None:
    with session.process(program("for n in range(50): send(b'%d' % n)\nprint('end')\nos._exit(3)")) as process:
        received = [process.receive(60) for _ in range(51)]
        assert received == [*(b"%d" % number for number in range(50)), None]
        assert process.wait(60) == 3


def test_channel_survives_a_program_that_closes_everything_else(session: Session) -> None:
    with session.process(program("os.closerange(0, 3); send(receive())")) as process:
        process.send(b"still here")
        assert process.receive(60) == b"still here"


def test_garbage_on_the_channel_ends_the_channel_only(session: Session) -> None:
    with session.process(
        program("os.write(channel, b'\\xff' * 100)\nprint('alive', flush=True)\nsys.exit(2)")
    ) as process:
        assert process.receive(60) is None
        assert process.wait(60) == 2
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
            assert process.receive(60) == b"first blob second"
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
        assert process.wait(60) == 0
        text, cut = process.take_output()
    assert (text, cut) == ("os.terminal_size(columns=80, lines=24)\nname? hello wörld\nTrue\n", 0)


def test_pty_interrupt_key(session: Session) -> None:
    code = (
        "import time\ntry:\n print('up', flush=True); time.sleep(100)\nexcept KeyboardInterrupt: print('interrupted')"
    )
    with session.process(["python3", "-c", code], pty=True, channel=False, follow=True) as process:
        assert process.read_text(60) == b"up\n"
        process.write_stdin(b"\x03")
        assert process.read_text(60).endswith(b"interrupted\n")
        assert process.read_text(60) == b""
        assert process.wait(60) == 0


def test_followed_output_arrives_whole(session: Session) -> None:
    for pty in (False, True):
        with session.process(["seq", "1", "300000"], pty=pty, channel=False, follow=True) as process:
            data = b""
            while piece := process.read_text(60):
                data += piece
        assert data == b"".join(b"%d\n" % number for number in range(1, 300001))


def test_stdin_pipe(session: Session) -> None:
    with session.process(["cat"], stdin=True, channel=False, follow=True) as process:
        process.write_stdin(b"one\n")
        assert process.read_text(60) == b"one\n"
        process.write_stdin(b"two\n", close=True)
        assert process.read_text(60) == b"two\n"
        assert process.wait(60) == 0


@pytest.mark.parametrize("python", interpreters(handful=True))
def test_pexpect(session: Session) -> None:
    environment = {"PS1": "ready> ", "TERM": "dumb", "HISTFILE": "/dev/null"}
    shell = session.spawn(["bash", "--norc", "--noprofile"], env=environment, timeout=60)
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
        assert process.receive(60) == b"ready"
        process.signal(signal.SIGRTMIN + 6)
        assert process.receive(60) == b"signal %d" % (signal.SIGRTMIN + 6)
        process.send(b"")
        assert process.receive(60) == b"None"


@pytest.mark.parametrize("says", [True, False], ids=["said", "silent"])
def test_a_crowd_stands_still_until_the_signal_was_noticed(session: Session, says: bool) -> None:
    """As of a bomb: what it started would leave the program no time for it. Soon all go on."""
    code = """
    import os, signal, sys, time
    children = []
    def states():
        return "".join(open("/proc/%%d/stat" %% child).read().rpartition(")")[2].split()[0] for child in children)
    noticed = []
    def look(number, frame):
        seen = states()
        while seen.count("T") <= 30 and seen != "S" * 60:  # on a busy machine, those that are stopped must run first
            seen = states()
        noticed.append(seen)
    signal.signal(signal.SIGRTMIN + 6, look)
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
        assert process.receive(60) == b"ready"
        assert process.signal(signal.SIGRTMIN + 6)
        if says:
            assert (process.receive(60) or b"").count(b"T") > 30
        before, after = (process.receive(60) or b"").split()
        assert before.count(b"T") > 30 and after == b"S" * 60


def test_signal_reaches_one_of_the_processes_that_it_started(session: Session) -> None:
    code = """
    import os, subprocess
    child = subprocess.Popen(["sleep", "100"])
    send(b"%d %d" % (child.pid, os.getppid()))
    send(b"%d" % child.wait())
    """
    with session.process(program(code)) as process:
        child, stranger = map(int, (process.receive(60) or b"").split())
        assert process.signal(0, child)
        assert not process.signal(signal.SIGTERM, stranger)
        assert process.signal(signal.SIGTERM, child)
        assert process.receive(60) == b"%d" % -signal.SIGTERM
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
        child = int(process.receive(60) or b"")
        assert process.signal(0, child)
        assert process.signal(signal.SIGKILL, child)
        assert not process.signal(0, child)


def test_signal_and_kill_after_the_end_do_nothing(session: Session) -> None:
    process = session.process(["true"], channel=False)
    assert process.wait(60) == 0
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
        assert process.wait(60) in (0, -signal.SIGKILL)
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
        assert process.receive(60) == b"up"
        assert process.receive(60) is None
        assert process.timed_out
        assert process.wait(60) == -signal.SIGTERM


def test_wait_has_a_timeout(session: Session) -> None:
    with session.process(["sleep", "100"], channel=False) as process, pytest.raises(TimeoutError):
        process.wait(0.05)


def test_channel_message_lengths_are_big_endian(session: Session) -> None:
    with session.process(program("send(read(4)); send(read(3))")) as process:
        process.send(b"abc")
        assert process.receive(60) == struct.pack(">I", 3)
        assert process.receive(60) == b"abc"
