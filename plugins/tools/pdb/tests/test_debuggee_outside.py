"""What a program has outside of its memory: where no copy is kept for it, and what is put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from debugged_programs import dedent
from support import handful

from debug_gym_core.testing.waiting import wait_until

UNSUITED = {
    "pipe": ("import os\nends = os.pipe()", "the program has a pipe or a socket open"),
    "listening socket": (
        "import socket\nlistens = socket.socket()\nlistens.bind(('127.0.0.1', 0))",
        "the program has a pipe or a socket open",
    ),
    "lock": (
        "import fcntl\nfile = open('lock', 'w')\nfcntl.flock(file, fcntl.LOCK_EX)",
        "the program holds a lock on a file",
    ),
    "epoll": ("import select\nwaits = select.epoll()", "the program has anon_inode:[eventpoll] open"),
    "shared memory": ("import mmap\nshared = mmap.mmap(-1, 4096)", "the program has memory that processes share"),
    "semaphore": (
        "import multiprocessing\nlock = multiprocessing.Lock()",
        "the program has memory that processes share",
    ),
    "a native thread": (
        "import faulthandler\nfaulthandler.dump_traceback_later(1000)",
        "the program has a thread that is not Python's",
    ),
    "large temporary file": (
        "import tempfile\nfile = tempfile.TemporaryFile(buffering=0)\nn = file.write(bytes(5 << 20))",
        "its temporary files have more than 4 MB",
    ),
    "no descriptors": (
        "import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))\nheld = []\n"
        "try:\n    while True:\n        held.append(os.open('/dev/null', 0))\nexcept OSError:\n    pass",
        "it cannot be copied ([Errno 24] Too many open files: '/proc/self/task')",
    ),
}


@pytest.mark.parametrize("what", handful("debugger", list(UNSUITED), "pipe", "listening socket", "lock", "epoll"))
def test_a_stop_is_not_kept_where_a_copy_could_not_go_on(back: Any, what: str) -> None:
    code, why = UNSUITED[what]
    program = back("python app.py", dedent(f"{code}\nx = 1\nprint('end')\n"))
    program.do(f"b {code.count(chr(10)) + 2}")
    stop = program.do("c")["stop"]
    assert stop["unkept"] == why and stop["number"] == 2
    message = program.do("rewind 2")
    assert message["failed"] and message["out"] == f"*** this stop cannot be gone back to: {why}\n"
    assert program.do("cl 1")["t"] == "prompt"
    assert program.do("c")["status"] == 0
    assert b"end" in program.printed


def test_a_program_is_as_large_as_it_is_now(back: Any) -> None:
    program = back("python app.py", dedent("large = b'x' * (600 << 20)\nx = 1\ndel large\nx = 2\n"))
    stop = program.do("n")["stop"]
    assert stop["unkept"] == "the program uses more than 512 MB" and stop["locals"]["changed"]["large"][:4] == "b'xx"
    program.do("n")
    stop = program.do("n")["stop"]
    assert "unkept" not in stop and stop["line"] == 4
    program.do("large = 2")
    assert program.do("rewind 4")["stop"]["line"] == 4
    assert "NameError" in program.do("p large")["out"]


def test_the_other_end_of_a_pipe_hears_that_it_was_closed(back: Any) -> None:
    program = back(
        "python app.py",
        dedent(
            """\
            import os
            r, w = os.pipe()
            x = 1
            pid = os.fork()
            if pid == 0:
                os.close(r)
                os.write(w, b"hello")
                os._exit(0)
            os.close(w)
            data = b""
            while True:
                got = os.read(r, 100)
                if not got:
                    break
                data += got
            print("end", data)
            """
        ),
    )
    for _ in range(4):
        program.do("n")
    assert program.do("c")["status"] == 0
    assert b"end b'hello'" in program.printed


def test_files_without_a_name_are_what_they_were(back: Any) -> None:
    program = back(
        "python app.py",
        dedent(
            """\
            import tempfile
            file = tempfile.TemporaryFile(buffering=0)
            file.write(b"before")
            x = 1
            file.seek(0)
            file.write(b"over")
            file.truncate(2)
            x = 2
            """
        ),
    )
    program.do("b 4")
    program.do("c")
    program.do("tbreak 8")
    program.do("c")
    program.do("rewind 2")
    assert program.do("p file.tell(), file.seek(0), file.read()")["out"] == "(6, 0, b'before')\n"


def test_what_pytest_captures_is_captured_again(back: Any, debug_tests: Any) -> None:
    test = (
        "def test_it(capfd):\n    print('seen', flush=True)\n    x = 1\n    out = capfd.readouterr().out\n"
        "    assert out == 'seen\\n'\n"
    )
    files = {"test_app.py": test, "pytest.ini": "[pytest]\nfaulthandler_timeout = 1000\n"}
    program = back("python -m pytest -q test_app.py", files)
    program.do("b test_app.py:3")
    program.do("c")
    program.do("n")
    program.do("n")
    assert program.do("rewind 2")["stop"]["line"] == 3
    program.do("cl 1")
    assert program.do("c")["status"] == 0
    assert b"1 passed" in program.printed


def test_directories_are_read_on_from_where_they_were(back: Any, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(2000):
        (tmp_path / "many" / f"{number}").touch()
    program = back(
        "python app.py",
        dedent(
            """\
            import os
            entries = os.scandir("many")
            first = [next(entries).name for _ in range(10)]
            x = 1
            rest = len(list(entries))
            x = 2
            """
        ),
    )
    program.do("b 4")
    program.do("c")
    for _ in range(2):
        program.do("n")
    assert program.do("p rest")["out"] == "1990\n"
    program.do("rewind 2")
    for _ in range(2):
        program.do("n")
    assert program.do("p rest")["out"] == "1990\n"


def test_signals_that_wait_and_all_timers_are_what_they_were(back: Any) -> None:
    program = back(
        "python app.py",
        dedent(
            """\
            import os, signal
            signal.setitimer(signal.ITIMER_VIRTUAL, 1000)
            signal.setitimer(signal.ITIMER_PROF, 1000)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            os.kill(os.getpid(), signal.SIGUSR1)
            x = 1
            x = 2
            """
        ),
    )
    program.do("b 6")
    program.do("c")
    program.do("n")
    program.do("rewind 2")
    timers = "signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 900, signal.getitimer(signal.ITIMER_PROF)[0] > 900"
    assert program.do(f"p {timers}, signal.sigpending() == {{signal.SIGUSR1}}")["out"] == "(True, True, True)\n"
    program.do("cl 1")
    assert program.do("c")["status"] == 0


def test_orphans_that_were_started_since_are_ended_and_older_ones_are_not(back: Any) -> None:
    program = back(
        "python app.py",
        dedent(
            """\
            import subprocess
            def start(seconds):
                command = "sleep %d >/dev/null 2>&1 & echo $!" % seconds
                return int(subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE).stdout)
            older = start(6001)
            x = 1
            newer = start(6002)
            x = 2
            """
        ),
    )
    program.do("b 6")
    program.do("c")
    older = int(program.do("p older")["out"])
    program.do("tbreak 8")
    program.do("c")
    newer = int(program.do("p newer")["out"])
    assert Path(f"/proc/{newer}").exists()
    program.do("rewind 2")
    wait_until(lambda: not Path(f"/proc/{newer}").exists(), seconds=20)
    assert Path(f"/proc/{older}").exists()


def test_what_finalizers_of_multiprocessing_are_for_is_done_once(back: Any) -> None:
    program = back(
        "python app.py",
        dedent(
            """\
            from multiprocessing import util
            util.Finalize(None, print, ("finalized",), exitpriority=1)
            x = 1
            x = 2
            """
        ),
    )
    program.do("b 3")
    program.do("c")
    program.do("n")
    program.do("rewind 2")
    program.do("cl 1")
    assert program.do("c")["status"] == 0
    assert program.printed.count(b"finalized") == 1
