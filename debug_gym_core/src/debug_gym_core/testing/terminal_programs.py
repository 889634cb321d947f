"""How commands and programs in a sandbox run beside one another, and how they end."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.sandboxes import SandboxTests
from debug_gym_core.testing.waiting import wait_until

GRACE = 30.0
"""Seconds over its timeout within which a command is back."""

# How a command stays alive when it should not; the number marks its processes.
SURVIVORS = {
    "sleeps": "sleep 1000",
    "ignores SIGTERM": "trap '' TERM INT HUP; while :; do sleep 1000; done",
    "has children": "sleep 1000 & sleep 1000 & wait",
    "starts a new session": "setsid sleep 1000 & sleep 1000",
    "forks twice": "(setsid sh -c 'sleep 1000 & sleep 1000' &) ; sleep 1000",
    "holds the output": "setsid sh -c 'exec sleep 1000' & exec sleep 1000",
    "is stopped": "kill -STOP $$  # 1000",
    "prints for ever": "yes 1000",
    "closes its streams": "exec <&- >&- 2>&-; sleep 1000",
}


def mark() -> str:
    """A number of seconds that no other program sleeps for, by which processes are found in their command lines."""
    return f"1000.{time.monotonic_ns()}"


class ProgramTests(SandboxTests):
    """Programs end with all that they started, and many of them do not disturb each other."""

    @pytest.mark.parametrize("survivor", SURVIVORS)
    def test_a_timeout_ends_the_command_and_all_that_it_started(self, session: Session, survivor: str) -> None:
        """Back within two seconds of it, with what was printed, and no process is left."""
        marker, started = mark(), time.monotonic()
        result = session.run(f"echo begun; {SURVIVORS[survivor]}".replace("1000", marker), timeout=0.7)
        seconds = time.monotonic() - started
        assert result.timed_out and result.output.startswith("begun\n")
        assert 0.7 <= seconds < 0.7 + GRACE
        assert self.processes(session, marker) == []

    def test_background_processes_end_with_their_command(self, session: Session) -> None:
        """Nothing goes on running after a command is back."""
        marker = mark()
        command = "sleep 1000 & setsid sleep 1000 & (setsid sh -c 'trap \"\" TERM; sleep 1000 & wait' &); echo done"
        assert session.run(command.replace("1000", marker), timeout=20).output == "done\n"
        assert self.processes(session, marker) == []

    def test_programs_are_started_signalled_and_ended(self, session: Session) -> None:
        """A program that goes on beside others."""
        handler = "trap 'echo caught; exit 9' USR1; echo ready; while :; do sleep 0.05; done"
        with session.process(handler, channel=False, follow=True) as process:
            assert process.read_text(20) == b"ready\n"
            assert session.run("echo beside", timeout=20).output == "beside\n"
            process.signal(signal.SIGUSR1)
            assert process.wait(20) == 9
        marker = mark()
        with session.process(f"trap '' TERM; setsid sleep {marker} & sleep {marker}", channel=False):
            wait_until(lambda: len(self.processes(session, marker)) >= 2, "the program did not start")
        assert self.processes(session, marker) == []

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGUSR1])
    def test_a_programs_end_by_a_signal_is_told(self, session: Session, number: signal.Signals) -> None:
        """As minus its number."""
        with session.process("echo ready; exec sleep 1000", channel=False, follow=True) as process:
            assert process.read_text(20) == b"ready\n"
            process.signal(number)
            assert process.wait(20) == -number

    def test_many_commands_at_once(self, session: Session) -> None:
        """Each gets its own output; slow ones hold nobody up."""
        with session.process(["sleep", "1000"], channel=False), ThreadPoolExecutor(12) as pool:
            commands = [f"echo {number}; sleep 0.5; echo {number}" for number in range(24)]
            started = time.monotonic()
            results = list(pool.map(lambda command: session.run(command, timeout=30).output, commands))
        assert results == [f"{number}\n{number}\n" for number in range(24)]
        assert time.monotonic() - started < 24 * 0.5

    def test_many_files_and_programs_at_once(self, session: Session) -> None:
        """From threads, on one sandbox: nobody gets another's answer."""

        def work(number: int) -> None:
            data = bytes([number]) * (1000 + 10_000 * number)
            session.write(f"file-{number}", data)
            with session.process(f"cat file-{number} | wc -c", channel=False, follow=True) as process:
                assert session.read(f"file-{number}") == data
                assert session.run(f"wc -c < file-{number}; exit {number}", timeout=60).exit_status == number
                assert int(process.read_text(60)) == len(data)
                assert process.wait(60) == 0
            session.remove(f"file-{number}")

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, range(48)))
        assert list(session.walk(".")) == []
