"""The terminal `prlimit`."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from debug_gym_core import RequirementError, SandboxError, SandboxLost, Terminal, TerminalSettings
from debug_gym_core.sandbox.terminal import parse_size

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class PrlimitSettings(TerminalSettings):
    """Settings of the terminal `prlimit`; `memory` bounds the address space of each process.

    Attributes:
        file_size: bound on the size of each file, as in `512m` or `4g`
        open_files: how many files a process may have open
    """

    file_size: str = "1g"
    open_files: int = 1024


class PrlimitTerminal(Terminal):
    """Runs commands in a directory of this machine, without isolation but with resource limits (prlimit)."""

    name = "prlimit"
    isolates = False
    Settings = PrlimitSettings

    def __init__(self, **settings):
        super().__init__(**settings)
        self.directory = None
        self.streams = []

    @classmethod
    def unavailable(cls):
        if sys.platform != "linux":
            return "it needs Linux"
        return None if shutil.which("prlimit") else "there is no prlimit: apt-get install util-linux"

    def start(self, spec):
        reason = self.unavailable()
        if reason:
            raise RequirementError(f"terminal prlimit: {reason}")
        self.directory = Path(tempfile.mkdtemp(prefix="acme-prlimit-")).resolve()
        for name in ("testbed", "home", "tmp"):
            (self.directory / name).mkdir()
        self.root = str(self.directory / "testbed")
        self.python = str(spec.interpreter.executable) if spec.interpreter else sys.executable
        self.environment = {
            "PATH": f"{Path(self.python).parent}:{PATH}",
            "HOME": str(self.directory / "home"),
            "TMPDIR": str(self.directory / "tmp"),
        }

    def open(self, argv):
        if not self.alive():
            raise SandboxLost("prlimit: the sandbox is gone")
        limits = [
            f"--as={parse_size(self.settings.memory)}",
            f"--fsize={parse_size(self.settings.file_size)}",
            f"--nofile={self.settings.open_files}",
            "--core=0",
        ]
        try:
            self.streams.append(Stream(["prlimit", *limits, "--", *argv], self.directory, self.environment))
        except OSError as error:
            raise SandboxError(f"prlimit: {argv[0]} cannot be started: {error}") from error
        return self.streams[-1]

    def alive(self):
        return self.directory is not None and self.directory.is_dir()

    def stop(self):
        streams, self.streams = self.streams, []
        for stream in streams:
            stream.close()
        directory, self.directory = self.directory, None
        if directory is not None:
            for path, names, _ in os.walk(directory):
                for name in names:
                    with contextlib.suppress(OSError):
                        Path(path, name).chmod(0o700, follow_symlinks=Path(path, name).is_symlink())
            shutil.rmtree(directory, ignore_errors=True)
        for stream in streams:
            stream.release()

    def log(self):
        with contextlib.suppress(OSError, TypeError):
            return (self.directory / "log").read_text(errors="replace")[-4000:]
        return ""

    def notes(self):
        return ["terminal prlimit: nothing protects this machine from what runs"]


class Stream:
    """The guest as a child process; its end of a socket pair is its standard input and output."""

    def __init__(self, argv, directory, environment):
        self.lock = threading.Lock()
        self.socket, theirs = socket.socketpair()
        try:
            with theirs, (directory / "log").open("ab") as log:
                self.process = subprocess.Popen(
                    argv,
                    stdin=theirs,
                    stdout=theirs,
                    stderr=log,
                    cwd=directory / "testbed",
                    env=environment,
                    start_new_session=True,
                )
        except BaseException:
            self.socket.close()
            raise

    def read(self, size):
        try:
            return self.socket.recv(size)
        except ConnectionResetError:
            return b""

    def write(self, data):
        self.socket.sendall(data)

    def close(self):
        with self.lock:
            if self.process.returncode is not None:
                return
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)  # the guest sees the end and ends what it started
            try:
                self.process.wait(4)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)

    def release(self):
        self.socket.close()
