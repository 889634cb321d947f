"""Probes of processes: those of the host, and the others in the sandbox, the guest among them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from debug_gym_core.errors import SandboxError
from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.inside import REFUSED, calls, python
from debug_gym_core.testing.sandboxes import SECRET, SandboxTests
from debug_gym_core.testing.waiting import FIND, processes_with


class ProcessProbes(SandboxTests):
    """What code in the sandbox can see of other processes, and do to them."""

    @pytest.fixture
    def stranger(self) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
        """A process of the host, and a text in its environment."""
        marker = f"marker-{time.monotonic_ns()}"
        child = subprocess.Popen(["sleep", "1000"], env={"MARK": marker, "PATH": os.defpath}, start_new_session=True)
        try:
            assert processes_with(marker) == [child.pid]
            yield child, marker
        finally:
            child.kill()
            child.wait()

    def test_processes_of_the_host_are_neither_seen_nor_signalled(
        self, session: Session, stranger: tuple[subprocess.Popen[bytes], str]
    ) -> None:
        """Not by their number on the host, and not all at once."""
        child, marker = stranger
        found = session.run([session.python, "-c", FIND, marker], timeout=30)
        assert (found.exit_status, found.output) == (0, "")
        python(
            session,
            """
            import json, os, signal
            for target in (lambda: os.kill(pid, 9), lambda: os.killpg(pid, 9), lambda: os.kill(-pid, 9)):
                try:
                    target()
                except OSError:
                    pass
            print(json.dumps(None))
            """,
            pid=child.pid,
        )
        time.sleep(0.05)
        assert child.poll() is None

    def test_shared_memory_of_the_host_is_not_there(self, session: Session) -> None:
        """Segments and message queues of System V and of POSIX."""
        name = f"debug-gym-escape-{os.getpid()}"
        path = Path("/dev/shm") / name
        path.write_text(SECRET)
        try:
            path.chmod(0o777)
            seen = session.run(f"cat /dev/shm/{name}; cat /proc/sysvipc/shm /proc/sysvipc/msg", timeout=20).output
        finally:
            path.unlink()
        assert SECRET not in seen
        lines = [line for line in seen.splitlines() if line[:1].isspace() and "key" not in line]
        assert lines == []

    def test_memory_and_files_of_other_processes_cannot_be_read(self, session: Session) -> None:
        """Those of the guest, which holds the channel to the host, and of whatever else runs there."""
        opened, others = python(
            session,
            """
            import json, os
            opened, others = [], [int(name) for name in os.listdir("/proc") if name.isdigit()]
            others.remove(os.getpid())
            for process in others:
                for name in ("mem", "environ", "maps", "syscall", "stack", "auxv"):
                    try:
                        with open("/proc/%d/%s" % (process, name), "rb") as file:
                            file.read(1)
                        opened.append([process, name])
                    except OSError:
                        pass
                for name in ("root", "cwd", "fd", "map_files", "task/%d/fd" % process):
                    try:
                        os.listdir("/proc/%d/%s" % (process, name))
                        opened.append([process, name])
                    except OSError:
                        pass
            print(json.dumps([opened, others]))
            """,
        )
        assert session.guest()["pid"] in others
        assert opened == []

    def test_other_processes_cannot_be_traced(self, session: Session) -> None:
        """ptrace, reading and writing their memory, taking their descriptors."""
        answers = calls(
            session,
            """
            ATTACH, SEIZE = 16, 0x4206
            space = ctypes.create_string_buffer(8)
            place = (ctypes.c_ulong * 2)(ctypes.addressof(space), 8)
            answers = {}
            for process in processes():
                answers["attach %d" % process] = call("ptrace", ATTACH, process)
                answers["seize %d" % process] = call("ptrace", SEIZE, process)
                answers["read %d" % process] = call("process_vm_readv", process, place, 1, place, 1, 0)
                answers["write %d" % process] = call("process_vm_writev", process, place, 1, place, 1, 0)
                descriptor = call("pidfd_open", process, 0)
                if isinstance(descriptor, int):
                    answers["take %d" % process] = call("pidfd_getfd", descriptor, 0, 0)
            print(json.dumps(answers))
            """,
        )
        assert len(answers) >= 5
        assert {what: answer for what, answer in answers.items() if answer not in REFUSED} == {}

    def test_other_processes_cannot_be_bounded(self, session: Session) -> None:
        """Resource limits that would end the guest, or cripple it; priorities that would starve it."""
        answers = calls(
            session,
            """
            zero = (ctypes.c_ulong * 2)(0, 0)
            answers = {}
            for process in processes():
                for limit, name in enumerate(("cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile")):
                    answers["%s of %d" % (name, process)] = call("prlimit64", process, limit, zero, 0)
                try:
                    with open("/proc/%d/oom_score_adj" % process, "w") as file:
                        file.write("1000")
                    answers["oom_score_adj of %d" % process] = "done"
                except OSError:
                    pass
            print(json.dumps(answers))
            """,
        )
        assert len(answers) >= 8
        assert {what: answer for what, answer in answers.items() if answer not in REFUSED} == {}
        assert session.run("echo alive", timeout=20).output == "alive\n"

    def test_a_guest_that_is_stopped_or_starved_is_no_end(self, available: None) -> None:
        """SIGSTOP to everything, lowest priority for everything: the command is back, and the sandbox answers."""
        with self.open_session() as fresh:
            fresh.write("kept.txt", b"kept")
            started = time.monotonic()
            with contextlib.suppress(OSError, SandboxError):
                fresh.run(
                    [
                        fresh.python,
                        "-c",
                        "import os, signal, sys\n"
                        "for name in os.listdir('/proc'):\n"
                        "    if name.isdigit() and int(name) != os.getpid():\n"
                        "        for attempt in (lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),\n"
                        "                lambda pid: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),\n"
                        "                lambda pid: os.sched_setaffinity(pid, [0])):\n"
                        "            try: attempt(int(name))\n"
                        "            except OSError: pass\n"
                        "for _ in range(4):\n"
                        "    if os.fork() == 0:\n"
                        "        while True: pass\n"
                        "os.kill(-1, signal.SIGSTOP)\n"
                        "while True: pass\n",
                    ],
                    timeout=1,
                )
            assert time.monotonic() - started < 30
            assert _answers(fresh)


def _answers(session: Session) -> bool:
    """Whether a sandbox gives a file and runs a command; one that was damaged may need another request."""
    done: list[bytes] = []

    def ask() -> None:
        for _ in range(3):
            with contextlib.suppress(OSError, SandboxError):
                if session.run("echo alive", timeout=20).output == "alive\n":
                    done.append(session.read("kept.txt"))
                    return

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(30)
    return done == [b"kept"]
