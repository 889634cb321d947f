"""Probes of the bounds: processes, memory, files, and what a command may do to the guest."""

from __future__ import annotations

import contextlib
import textwrap
import time
from collections.abc import Callable, Iterator

import pytest

from debug_gym_core.errors import SandboxError
from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.inside import prelude, python
from debug_gym_core.testing.sandboxes import SandboxTests
from debug_gym_core.testing.waiting import processes_with, wait_until

MIB = 1 << 20
PLACES = (".", "/tmp", "/dev/shm")
"""Where files can be made."""

FILES = 100_000
"""More files than a small workspace may have."""

Fresh = Callable[..., Session]


class BoundsProbes(SandboxTests):
    """What code in the sandbox can use up or end."""

    @pytest.fixture
    @staticmethod
    def fresh(request: pytest.FixtureRequest, available: None) -> Iterator[Fresh]:
        """Starts sandboxes with other settings; they end with the test."""
        with contextlib.ExitStack() as stack:
            yield lambda **settings: stack.enter_context(request.cls.bounded_session(**settings))

    # Processes

    def test_a_fork_bomb_is_bounded_and_ends(self, fresh: Fresh) -> None:
        """At its timeout, with all of it, and the sandbox works on."""
        session = fresh(pids=100)
        marker = f"marker-{time.monotonic_ns()}"
        started = time.monotonic()
        with contextlib.suppress(SandboxError):  # the command's keeper may be what is ended
            result = session.run(
                [session.python, "-c", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"],
                env={"MARK": marker},
                timeout=1.5,
            )
            assert result.exit_status != 0
        assert time.monotonic() - started < 30
        wait_until(lambda: not processes_with(marker), "the bomb goes on", 20)
        assert answers(session)

    @pytest.mark.parametrize("kind", ["processes", "threads"])
    def test_processes_and_threads_are_counted(self, fresh: Fresh, kind: str) -> None:
        """Together they are at most `pids`."""
        session = fresh(pids=100)
        with contextlib.suppress(SandboxError):
            count = python(
                session,
                """
                import json, subprocess, threading, time
                started = []
                try:
                    while len(started) < 500:
                        if kind == "processes":
                            started.append(subprocess.Popen(["sleep", "1000"]))
                        else:
                            started.append(threading.Thread(target=time.sleep, args=(1,), daemon=True))
                            started[-1].start()
                except (OSError, RuntimeError):
                    pass
                print(json.dumps(len(started)))
                """,
                kind=kind,
            )
            assert 0 < count < 100
        assert answers(session)

    # Memory

    @pytest.mark.parametrize("processes", [1, 6])
    def test_memory_of_processes_is_bounded(self, fresh: Fresh, processes: int) -> None:
        """Of one, and of several together."""
        session = fresh(memory="256m")
        filled = fill_memory(
            session,
            f"""
            for _ in range({processes - 1}):
                if os.fork() == 0:
                    break
            memory = []
            for _ in range({1024 // processes}):
                memory.append(bytearray(os.urandom(1024)) * 1024)
            """,
        )
        assert filled < processes

    @pytest.mark.parametrize("kind", ["memfd", "mmap", "sysv", "pipes"])
    def test_memory_that_is_no_processs_own_is_bounded(self, fresh: Fresh, kind: str) -> None:
        """Files without a name, shared mappings, System V segments that outlive their maker, buffers of pipes."""
        session = fresh(memory="256m")
        code = {
            "memfd": """
                for number in range(64):
                    file = call("memfd_create", b"x", 0)
                    assert isinstance(file, int), file
                    for _ in range(16):
                        os.write(file, block)
                """,
            "mmap": """
                import mmap
                kept = []
                for number in range(64):
                    kept.append(mmap.mmap(-1, 16 << 20))
                    for _ in range(16):
                        kept[-1].write(block)
                """,
            "sysv": """
                libc.shmat.restype = ctypes.c_void_p
                for number in range(64):
                    segment = call("shmget", 0, 16 << 20, 0o1600)
                    assert isinstance(segment, int), segment
                    place = libc.shmat(segment, None, 0)
                    for part in range(16):
                        ctypes.memmove(place + (part << 20), block, 1 << 20)
                """,
            "pipes": """
                import fcntl, resource
                for number in range(1000):
                    reader, writer = os.pipe()
                    fcntl.fcntl(writer, 1031, 1 << 20)  # F_SETPIPE_SZ
                    os.set_blocking(writer, False)
                    os.write(writer, block)
                """,
        }[kind]
        assert fill_memory(session, f"block = os.urandom(1024) * 1024\n{textwrap.dedent(code)}") == 0

    def test_memory_in_files_is_bounded(self, fresh: Fresh) -> None:
        """Files of the workspace, /tmp and /dev/shm are in memory: all together they are bounded too."""
        session = fresh(memory="1g", workspace_size="64m")
        sizes = [python(session, _FILL, place=place) for place in PLACES]
        assert sizes[0] <= 64 and sizes[1] <= 64 and sizes[2] <= 64
        assert answers(session)

    # Files

    @pytest.mark.parametrize("place", PLACES)
    def test_a_full_disk_is_the_sandboxs_own(self, fresh: Fresh, place: str) -> None:
        """Writing ends with ENOSPC, or at the size of one file; then files can be removed and written again."""
        session = fresh(workspace_size="16m", memory="512m")
        size = python(session, _FILL, place=place)
        assert size <= (64 if place == "/dev/shm" else 16)
        assert session.run(f"rm -rf {place}/fill-*; echo again > {place}/again; cat {place}/again").output == "again\n"

    @pytest.mark.parametrize("place", PLACES)
    def test_the_number_of_files_is_bounded(self, fresh: Fresh, place: str) -> None:
        """Empty files have no size, and each costs the kernel memory; then they can be removed."""
        session = fresh(workspace_size="16m", memory="1g")
        count = python(
            session,
            """
            import json, os
            count = 0
            os.mkdir(os.path.join(place, "many"))
            os.chdir(os.path.join(place, "many"))
            try:
                while count < enough:
                    os.mknod(str(count))
                    count += 1
            except OSError:
                pass
            print(json.dumps(count))
            """,
            place=place,
            enough=FILES,
        )
        assert count < FILES
        assert session.run(f"rm -rf {place}/many && touch {place}/again && echo done", timeout=60).output == "done\n"

    def test_a_file_of_a_terabyte_is_refused(self, fresh: Fresh) -> None:
        """Sparse ones by every call that makes them; a file is at most as large as the workspace."""
        session = fresh(workspace_size="16m")
        made = python(
            session,
            """
            import errno, json, os, signal
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            made = []
            def beyond(file):
                os.lseek(file, 1 << 40, os.SEEK_SET)
                os.write(file, b"x")
            for place in places:
                for attempt in (lambda file: os.ftruncate(file, 1 << 40), beyond,
                                lambda file: os.posix_fallocate(file, 0, 1 << 40),
                                lambda file: os.ftruncate(file, (16 << 20) + 1)):
                    path = os.path.join(place, "sparse")
                    file = os.open(path, os.O_RDWR | os.O_CREAT)
                    try:
                        attempt(file)
                    except OSError:
                        pass
                    if os.fstat(file).st_size > 16 << 20:
                        made.append([place, os.fstat(file).st_size])
                    os.close(file)
                    os.unlink(path)
            print(json.dumps(made))
            """,
            places=PLACES,
        )
        assert made == []

    def test_open_files_are_bounded(self, fresh: Fresh) -> None:
        """Of each process."""
        session = fresh()
        count = python(
            session,
            """
            import json, os, resource
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))
            except (OSError, ValueError):
                pass
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            count = 0
            try:
                while count < 100000:
                    os.dup(0)
                    count += 1
            except OSError:
                pass
            print(json.dumps(count))
            """,
        )
        assert count < 20000
        assert answers(session)

    # The guest

    @pytest.mark.parametrize(
        "command",
        [
            "kill -9 -1; kill -9 1; sleep 1",
            "for p in /proc/[0-9]*; do kill -9 ${p#/proc/}; done; sleep 1",
            "kill -SEGV -1; kill -SEGV 1; kill -STOP 1; sleep 1",
            "exec 0>&- 1>&- 2>&-; kill -9 $PPID",
        ],
    )
    def test_killing_everything_costs_at_most_the_command(self, fresh: Fresh, command: str) -> None:
        """A typed error at worst; then the sandbox works on, over the same files."""
        session = fresh()
        session.write("kept.txt", b"kept")
        with contextlib.suppress(SandboxError):
            session.run(command, timeout=10)
        assert answers(session)
        assert session.read("kept.txt") == b"kept"

    def test_all_ends_quickly_whatever_is_going_on(self, available: None) -> None:
        """Deaf programs, forks, thousands of files: `close` takes seconds, and no process is left."""
        marker = f"marker-{time.monotonic_ns()}"
        with self.open_session(MARK=marker) as session:
            session.run("mkdir deep && cd deep && seq 20000 | xargs touch", timeout=60)
            for _ in range(10):
                session.process(
                    "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; while :; do sleep 5; done' & "
                    "while :; do :; done",
                    channel=False,
                )
            started = time.monotonic()
        assert time.monotonic() - started < 30
        assert processes_with(marker) == []
        assert not session.terminal.alive()


_FILL = """
    import json, os, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    size = 0
    try:
        for number in range(64):
            with open(os.path.join(place, "fill-%d" % number), "wb", 0) as file:
                for _ in range(4):
                    size += file.write(bytes(1 << 20))
    except OSError:
        pass
    print(json.dumps(size >> 20))
"""
"""Writes 256 MiB if it can; prints how many it could."""


def fill_memory(session: Session, code: str) -> int:
    """Run code that takes more memory than there may be.

    Returns:
        how many processes came to its end
    """
    body = textwrap.dedent(code) + 'print("filled", flush=True)\nimport time\ntime.sleep(2)\nprint(json.dumps(None))\n'
    filled = 0
    with contextlib.suppress(SandboxError):  # the command's keeper may be what the kernel chose
        result = session.run([session.python, "-c", prelude() + body], timeout=60)
        filled = result.output.count("filled")
        assert not result.timed_out
        for line in result.output.splitlines():  # refusals are fine, mistakes of the attempt are not
            assert not line.startswith(("NameError", "TypeError", "SyntaxError", "AttributeError")), result.output
    assert answers(session)
    return filled


def answers(session: Session) -> bool:
    """Whether a sandbox answers, at the latest after some seconds in which what was ended is replaced."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return session.run("echo alive", timeout=20).output == "alive\n"
        except (SandboxError, OSError):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
