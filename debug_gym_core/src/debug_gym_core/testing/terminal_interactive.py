"""How a person's programs run on a terminal of a sandbox: shells, whatever asks and is answered."""

from __future__ import annotations

import os

import pexpect

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.sandboxes import SandboxTests
from debug_gym_core.testing.waiting import wait_until


class InteractiveTests(SandboxTests):
    """Interactive programs have a PTY with a size, an echo, and keys that interrupt and stop."""

    def test_terminals_for_interactive_programs(self, session: Session) -> None:
        """A PTY with a size, keys that interrupt, and an end."""
        child = session.spawn(["/bin/sh", "-c", "tty >/dev/null && stty size; trap 'echo INT' INT; cat; echo over"])
        try:
            child.expect(r"\d+ \d+\n", timeout=20)
            child.sendline("ümläut")
            child.expect_exact("ümläut\n", timeout=20)
            child.sendintr()
            child.expect_exact("INT", timeout=20)
            child.expect_exact("over", timeout=20)
            child.expect(pexpect.EOF, timeout=20)
            assert child.wait() == 0
        finally:
            child.close()

    def test_a_terminals_size_and_echo_can_be_changed(self, session: Session) -> None:
        """A program learns its size, and a new one; it echoes nothing unless told to."""
        child = session.spawn(["/bin/sh", "-c", 'stty size; while read line; do stty size; echo "<$line>"; done'])
        try:
            child.expect(r"\d+ \d+\n", timeout=20)
            child.setwinsize(33, 77)
            child.sendline("one")
            child.expect_exact("33 77\n<one>\n", timeout=20)
            assert child.before == "" and not child.getecho()
            child.setecho(True)
            child.sendline("two")
            child.expect_exact("two\n33 77\n<two>\n", timeout=20)
            child.sendeof()
            child.expect(pexpect.EOF, timeout=20)
            assert child.wait() == 0
        finally:
            child.close()

    def test_jobs_can_be_stopped_and_continued(self, session: Session) -> None:
        """Ctrl-Z and Ctrl-C reach the job in the foreground and not the shell."""
        child = session.spawn(["/bin/sh", "-i"], env={"PS1": "ready> ", "ENV": None})
        try:
            child.expect_exact("ready> ", timeout=20)
            # On `local` the processes of others are seen too.
            job = f"sleep {1000 + os.getpid()}"
            child.sendline(job)
            wait_until(lambda: job in _command_lines(session), "it did not start")
            child.sendcontrol("z")
            child.expect_exact("ready> ", timeout=20)
            child.sendline("jobs; fg >/dev/null")
            child.expect("(?i)stopped|suspended", timeout=20)
            wait_until(lambda: _state(session, job) in "SR", "it was not continued")
            child.sendintr()
            child.expect_exact("ready> ", timeout=20)
            assert job not in _command_lines(session)
            child.sendline("exit 3")
            child.expect(pexpect.EOF, timeout=20)
            assert child.wait() == 3
        finally:
            child.close()


def _command_lines(session: Session) -> str:
    return session.run("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '", timeout=20).output


def _state(session: Session, command: str) -> str:
    """The state of the process of a command, as /proc tells it."""
    look = 'for one in /proc/[0-9]*; do [ "$(tr "\\0" " " <$one/cmdline)" != "$1 " ] || cat $one/stat; done 2>/dev/null'
    found = session.run(["sh", "-c", look, "sh", command], timeout=20).output
    return found.rpartition(")")[2].split()[0] if found else "?"
