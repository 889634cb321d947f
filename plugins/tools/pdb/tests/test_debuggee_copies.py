"""Copies that wait at stops: when there is one, what the program notices of it, what becomes of it."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from pathlib import Path
from typing import Any

from debugged_programs import dedent

from debug_gym_core.debugging.inside.process import LOST_STATUS
from debug_gym_core.testing.waiting import wait_until


def children(process: int) -> list[int]:
    """The processes whose parent is one."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


def test_a_stop_with_threads_or_children_is_not_kept(back: Any) -> None:
    program = back(
        "python app.py",
        dedent(
            """\
            import subprocess, sys, threading
            event = threading.Event()
            thread = threading.Thread(target=event.wait)
            thread.start()
            x = 1
            event.set()
            thread.join()
            x = 2
            child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            x = 3
            child.communicate(b"")
            x = 4
            """
        ),
    )
    said = {}
    for line in (5, 6, 8, 10, 12):
        program.do(f"tbreak {line}")
        stop = program.do("c")["stop"]
        said[stop["line"]] = stop.get("unkept")
    assert said == {5: "the program has 2 threads", 6: None, 8: None, 10: "the program has child processes", 12: None}
    numbers = [line.split()[-1] for line in program.do("rewind")["out"].splitlines()]
    assert len(numbers) == 3  # before its first line, line 8, line 12
    assert program.do("back")["stop"]["line"] == 8
    assert program.do("p x")["out"] == "1\n"


def test_a_program_notices_nothing(back: Any) -> None:
    program = back(
        "python app.py",
        dedent(
            """\
            import os, random, signal, sys
            heard = []
            signal.signal(signal.SIGCHLD, lambda *arguments: heard.append("child"))
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(before=lambda: heard.append("fork"), after_in_child=lambda: heard.append("copy"))
            lowest = os.open("/dev/null", os.O_RDONLY)
            os.close(lowest)
            x = 1
            x = 2
            again = os.open("/dev/null", os.O_RDONLY)
            try:
                os.wait()
            except ChildProcessError:
                alone = True
            x = 3
            """
        ),
    )
    program.do("b 8")
    program.do("c")
    for _ in range(3):
        program.do("n")
    program.do("rewind 2")
    program.do("b 15")
    program.do("c")
    assert program.do("p heard, again == lowest, alone")["out"] == "([], True, True)\n"


def test_a_timer_and_blocked_signals_are_what_they_were(back: Any) -> None:
    program = back(
        "python app.py",
        dedent(
            """\
            import signal
            signal.signal(signal.SIGALRM, lambda *arguments: None)
            signal.setitimer(signal.ITIMER_REAL, 1000)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            x = 1
            x = 2
            left = signal.getitimer(signal.ITIMER_REAL)[0]
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
            x = 3
            """
        ),
    )
    program.do("b 5")
    program.do("c")
    program.do("n")
    program.do("back")
    program.do("b 9")
    program.do("c")
    assert program.do("p 900 < left <= 1000, blocked == {signal.SIGUSR1}")["out"] == "(True, True)\n"


def test_files_are_read_on_from_where_they_were(back: Any, tmp_path: Path) -> None:
    program = back(
        "python app.py",
        {
            **dedent(
                """\
                import os, tempfile
                file = os.open("data.txt", os.O_RDONLY)
                own = tempfile.TemporaryFile(buffering=0)
                own.write(b"before")
                first = os.read(file, 4)
                own.write(b" and after")
                second = os.read(file, 4)
                own.seek(0)
                x = own.read()
                """
            ),
            "data.txt": "one\ntwo\nsix\n",
        },
    )
    program.do("b 6")
    program.do("c")
    program.do("n")
    program.do("n")
    program.do("rewind 2")
    assert program.do("p os.fstat(own.fileno()).st_size, own.tell()")["out"] == "(6, 6)\n"
    program.do("n")
    program.do("n")
    assert program.do("p first, second")["out"] == "(b'one\\n', b'two\\n')\n"


def test_what_was_not_printed_yet_is_not_printed_twice(back: Any) -> None:
    program = back("python app.py", dedent("import sys\nsys.stdout.write('once')\nx = 1\nx = 2\nprint()\n"))
    program.do("b 3")
    program.do("c")
    program.do("n")
    program.do("back")
    program.do("cl 1")
    assert program.do("c")["status"] == 0
    assert program.printed.count(b"once") == 1


def test_of_many_stops_some_are_kept(back: Any) -> None:
    program = back("python app.py", dedent("for i in range(100):\n    x = i\n"))
    program.do("b 2")
    for _ in range(60):
        program.do("c")
    kept = [int(line.strip("> ").split()[0]) for line in program.do("rewind")["out"].splitlines()]
    assert kept[:1] == [1] and kept[-8:] == list(range(54, 62)) and len(kept) <= 16
    wait_until(lambda: len(children(program.process.pid)) <= 17, seconds=20)  # the first process waits for the others
    assert program.do(f"rewind {kept[1]}")["stop"]["number"] == kept[1]
    assert program.do("p i")["out"] == f"{kept[1] - 2}\n"
    program.do("cl 1")
    first = program.process.pid
    assert program.do("c")["status"] == 0
    program.process.wait(10)
    group = [path for path in Path("/proc").glob("[0-9]*/stat") if _group(path) == first]
    wait_until(lambda: not [path for path in group if path.exists()], seconds=20)


def _group(path: Path) -> int:
    with contextlib.suppress(OSError):
        return int(path.read_text().rpartition(")")[2].split()[2])
    return 0


def test_children_that_were_started_since_are_ended(back: Any) -> None:
    program = back(
        "python app.py",
        dedent(
            """\
            import subprocess
            x = 1
            child = subprocess.Popen(["sleep", "600"])
            x = child.pid
            """
        ),
    )
    program.do("b 2")
    program.do("c")
    program.do("n")
    program.do("n")
    pid = int(program.do("p child.pid")["out"])
    assert Path(f"/proc/{pid}").exists()
    program.do("back 2")
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), seconds=20)
    assert program.do("p x")["failed"]


def test_a_copy_that_has_ended_is_said_to_have(back: Any) -> None:
    program = back("python app.py", dedent("import os\nx = 1\nx = 2\nx = 3\n"))
    for _ in range(3):
        program.do("n")
    live = int(program.do("p os.getpid()")["out"])
    copies = [one for one in children(program.process.pid) if one != live]
    for one in copies:
        os.kill(one, signal.SIGKILL)
    wait_until(lambda: children(program.process.pid) == [live], seconds=20)
    assert program.do("back")["failed"]
    assert program.do("p x")["out"] == "2\n"
    program.do("n")
    assert program.do("rewind 4")["failed"] and not program.do("rewind 5")["failed"]


def test_a_child_process_cannot_go_back(back: Any) -> None:
    program = back(
        "python app.py",
        dedent(
            """\
            import os
            x = 1
            pid = os.fork()
            if pid == 0:
                x = 2
                os._exit(0)
            os.waitpid(pid, 0)
            """
        ),
    )
    program.do("b 5")
    stop = program.do("c")["stop"]
    assert stop["process"] == "child 1" and "number" not in stop
    message = program.do("back")
    assert message["failed"] and "this is a child process" in message["out"]
    assert program.do("c")["status"] == 0


def test_a_program_in_its_place_ends_the_session_as_before(back: Any) -> None:
    program = back("python app.py", dedent("import os\nx = 1\nos.execv('/bin/sh', ['sh', '-c', 'exit 5'])\n"))
    program.do("n")
    assert program.do("c")["t"] == "replaced"
    assert program.receive() == {"t": "dead", "status": 5}


def the_copies(program: Any) -> list[int]:
    """What waits, the oldest first."""
    live = int(program.do("p __import__('os').getpid()")["out"])
    return sorted(set(children(program.process.pid)) - {live})


def test_a_copy_that_can_be_kept_only_once_says_so(back: Any) -> None:
    program = back("python app.py", dedent("x = 1\nx = 2\n"))
    resource.prlimit(the_copies(program)[0], resource.RLIMIT_NOFILE, (100, 4096))
    program.do("n")
    stop = program.do("rewind 1")["stop"]
    why = "the program may not open 128 files"
    assert stop["number"] == 1 and stop["unkept"] == why
    assert program.do("rewind 1")["out"] == f"*** this stop cannot be gone back to: {why}\n"


def test_a_stop_that_is_lost_on_the_way_back_is_told(back: Any) -> None:
    code = "import tempfile\nfile = tempfile.TemporaryFile(buffering=0)\nn = file.write(bytes(3 << 20))\nx = 1\n"
    program = back("python app.py", dedent(code))
    program.do("b 4")
    program.do("c")
    resource.prlimit(the_copies(program)[1], resource.RLIMIT_AS, (1 << 20, 1 << 20))
    assert program.do("rewind 2") == {"t": "stranded", "out": "*** stop 2 could not be gone back to: MemoryError\n"}
    assert program.process.wait(20) == LOST_STATUS
