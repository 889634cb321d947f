"""What a terminal that isolates keeps from the code in it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.sandboxes import SandboxTests
from debug_gym_core.testing.waiting import processes_with


class IsolationTests(SandboxTests):
    """Files, network, privileges and processes of the host are out of reach; skipped where nothing isolates."""

    @pytest.fixture
    def isolated(self, session: Session) -> Session:
        """The sandbox, of a backend that isolates."""
        if not self.terminal.isolates:
            pytest.skip(f"{self.terminal.name} says that it does not isolate")
        return session

    def test_files_of_the_host_are_not_there(self, isolated: Session, tmp_path: Path) -> None:
        """Neither the home directory nor what lies in temporary directories; the system cannot be written."""
        (tmp_path / "secret").write_text("of the host")
        for file in (tmp_path / "secret", Path.home() / ".ssh", Path.home() / ".bash_history"):
            assert isolated.run(["cat", str(file)], timeout=20).exit_status != 0
        for path in ("/usr/contract", "/etc/contract", "/contract", "/bin/sh"):
            assert isolated.run(f"echo x >> {path}", timeout=20).exit_status != 0

    def test_network_of_the_host_is_not_there(self, isolated: Session) -> None:
        """Not even its loopback."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 3)"
            result = isolated.run([isolated.python, "-c", code], timeout=20)
            assert result.exit_status == 1 and "Error" in result.output
            assert isolated.run("ls /sys/class/net 2>/dev/null | grep -v '^lo$'", timeout=20).output in (
                "",
                "bonding_masters\n",
            )

    def test_commands_have_no_privileges(self, isolated: Session) -> None:
        """No root, no capability, no way to gain one, and system calls are filtered."""
        status = dict(
            line.split(":\t", 1)
            for line in isolated.run("cat /proc/self/status", timeout=20).output.splitlines()
            if ":\t" in line
        )
        assert set(status["Uid"].split()) != {"0"}
        assert {status[name].strip("0") for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {""}
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"

    def test_processes_of_the_host_are_not_seen(self, isolated: Session) -> None:
        """Nor can they be signalled."""
        assert isolated.run(f"grep -l {os.getpid()} /proc/*/environ", timeout=20).exit_status != 0
        marker = f"marker-{time.monotonic_ns()}"
        child = subprocess.Popen(["sleep", "1000"], env={"MARK": marker, "PATH": os.defpath})
        try:
            assert processes_with(marker) == [child.pid]
            assert self.processes(isolated, marker) == []
        finally:
            child.kill()
            child.wait()
