"""The guest: commands and their timeouts."""

from __future__ import annotations

import os
import signal
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from guest_programs import STUBBORN, children, pids
from support import repeated

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing import is_alive, wait_until


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
    result = session.run(command, timeout=60)
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


@pytest.mark.parametrize(
    "ending",
    [
        "os.closerange(0, 3); time.sleep(100)",
        *repeated("faults", "os.wait(); time.sleep(100)", "time.sleep(100)", "while True: pass"),
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


@pytest.mark.parametrize("timeout", [1.0, *repeated("faults", None)])
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
