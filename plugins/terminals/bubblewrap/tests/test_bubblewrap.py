"""The bubblewrap terminal, in real sandboxes."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.errors import SandboxError, SandboxLost
from debug_gym_core.sandbox.interpreter import Interpreter, probe
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_core.testing import is_alive, wait_until
from debug_gym_terminal_bubblewrap import BubblewrapTerminal, cgroup, isolation

Run = Callable[..., str]


@pytest.fixture(autouse=True)
def needed() -> None:
    reason = BubblewrapTerminal.unavailable()
    if reason:
        pytest.skip(reason)


@pytest.fixture
def start() -> Iterator[Callable[..., BubblewrapTerminal]]:
    terminals: list[BubblewrapTerminal] = []

    def begin(spec: SandboxSpec | None = None, **settings: Any) -> BubblewrapTerminal:
        terminal = BubblewrapTerminal(**settings)
        terminals.append(terminal)
        terminal.start(spec or SandboxSpec(run="test", interpreter=probe(sys.executable)))
        return terminal

    yield begin
    for terminal in terminals:
        terminal.stop()


@pytest.fixture
def run(start: Callable[..., BubblewrapTerminal]) -> Run:
    """Runs a shell command in a fresh sandbox to its end; returns what it printed."""

    def begin(command: str, spec: SandboxSpec | None = None, **settings: Any) -> str:
        terminal = start(spec, **settings)
        stream = terminal.open(["/bin/sh", "-c", f"exec 2>&1; {command}"])
        output = b""
        while data := stream.read(65536):
            output += data
        return output.decode()

    return begin


def environment(place: Path, **options: Any) -> Interpreter:
    """A virtual environment made at a place."""
    venv.create(place, symlinks=True, **options)
    return probe(place / "bin" / "python")


def is_gone(marker: str) -> bool:
    """Whether no process has a text in its arguments."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (process / "cmdline").read_bytes() and int(process.name) != os.getpid():
                return False
        except OSError:
            continue
    return True


def test_interpreter_runs_with_its_own_packages_only(run: Run) -> None:
    said = run(f"{sys.executable} -c 'import pytest, sys; print(sys.prefix, sys.executable)'; ls -A /testbed")
    assert said == f"{sys.prefix} {sys.executable}\n"


def test_environment_of_the_repository_lies_in_the_workspace(run: Run, tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    (repository / "secret").mkdir(parents=True)
    interpreter = environment(repository / ".venv")
    spec = SandboxSpec(run="test", interpreter=interpreter, source=repository)
    said = run(
        f"{interpreter.executable} -c 'import sys; print(sys.prefix)'; cd {repository} && pwd -P; ls -A {repository};"
        " echo x > .venv/x; mv .venv other; rm -rf .venv/bin",
        spec,
    )
    assert said.splitlines()[:3] == [str(interpreter.prefix), "/testbed", ".venv"]
    assert "Read-only file system" in said
    assert "Device or resource busy" in said


def test_repository_that_is_an_environment_itself(run: Run, tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    (repository / "secret").mkdir(parents=True)
    interpreter = environment(repository)
    spec = SandboxSpec(run="test", interpreter=interpreter, source=repository)
    said = run(f"{interpreter.executable} -c 'import sys; print(sys.prefix)'; cd {repository} && pwd -P; ls", spec)
    lines = said.splitlines()
    assert lines[:2] == [str(repository), "/testbed"]
    assert "bin" in lines and "secret" not in lines


def test_repository_in_what_the_interpreter_needs(run: Run, tmp_path: Path) -> None:
    interpreter = environment(tmp_path / "env")
    repository = tmp_path / "env" / "src" / "repo"
    repository.mkdir(parents=True)
    (repository / "pristine").write_text("")
    (tmp_path / "env" / "src" / "other").mkdir()
    spec = SandboxSpec(run="test", interpreter=interpreter, source=repository)
    said = run(f"{interpreter.executable} -c 'print(1)'; cd {repository} && pwd -P; ls . ..", spec)
    assert said == "1\n/testbed\n.:\n\n..:\nother\nrepo\n" or said.startswith("1\n/testbed\n.:\n\n..:\n")
    assert "pristine" not in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_interpreter_that_only_root_may_run(run: Run, start: Callable[..., BubblewrapTerminal], tmp_path: Path) -> None:
    interpreter = environment(tmp_path / "env")
    (tmp_path / "env").chmod(0o700)
    spec = SandboxSpec(run="test", interpreter=interpreter)
    assert run(f"{interpreter.executable} -c 'import os; print(os.getuid())'", spec) == "1000\n"
    assert any(note.startswith("user:") for note in start(spec).notes())


def test_links_to_the_interpreter_are_links_there(run: Run, tmp_path: Path) -> None:
    real = environment(tmp_path / "real-1.2.3")
    (tmp_path / "real").symlink_to("real-1.2.3")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(tmp_path / "real" / "bin" / "python")
    interpreter = probe(tmp_path / "real" / "bin" / "python")
    command = f"{tmp_path}/real/bin/python -c 'import sys; print(sys.prefix)'; readlink {tmp_path}/real"
    said = run(command, SandboxSpec(run="test", interpreter=interpreter))
    assert said.splitlines() == [str(tmp_path / "real"), "real-1.2.3"]
    assert real.version == interpreter.version


def test_hidden_directories_are_empty_and_the_rest_is_there(run: Run, tmp_path: Path) -> None:
    interpreter = environment(tmp_path / "env")
    packages = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    (packages / "gold").mkdir()
    (packages / "gold" / "fix.patch").write_text("the solution")
    (packages / "other.py").write_text("print('other')")
    command = f"ls -A {packages}/gold; touch {packages}/gold/x; {interpreter.executable} -c 'import other'"
    (tmp_path / "ours").symlink_to(packages / "gold")
    spec = SandboxSpec(run="test", interpreter=interpreter, hidden=(tmp_path / "ours",))
    said = run(command, spec)
    assert "fix.patch" not in said
    assert "Read-only file system" in said
    assert said.endswith("other\n")
    (packages / "gold").rename(packages / "gold2")  # between two sandboxes
    (packages / "gold").mkdir()
    (tmp_path / "ours").unlink()
    (tmp_path / "ours").symlink_to(packages / "gold2")
    assert run(f"ls -A {packages}/gold2", spec) == ""


@pytest.mark.parametrize("hidden", [False, True])
def test_editable_install_shows_its_packages_only(run: Run, tmp_path: Path, hidden: bool) -> None:
    project = tmp_path / "project"
    (project / "package").mkdir(parents=True)
    (project / "package" / "__init__.py").write_text("print('package')")
    (project / ".env").write_text("PASSWORD=secret")
    (project / "data").mkdir()
    environment(tmp_path / "env")
    packages = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    (packages / "__editable__.project.pth").write_text(f"{project}\n")
    interpreter = probe(tmp_path / "env" / "bin" / "python")
    spec = SandboxSpec(run="test", interpreter=interpreter, hidden=(project,) if hidden else ())
    said = run(f"{interpreter.executable} -c 'import package'; ls -A {project}; true", spec)
    assert interpreter.editable == (project,)
    if hidden:
        assert "ModuleNotFoundError" in said
    else:
        assert said == "package\npackage\n"


def test_variables_are_those_asked_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTS_SECRET", "secret")
    spec = SandboxSpec(run="test", interpreter=probe(sys.executable), environment={"ANSWER": "4 2\n3"})
    said = run("env; printf '%s' \"$ANSWER\" | wc -l", spec)
    names = {line.partition("=")[0] for line in said.splitlines()[:-1]} - {"3"}
    assert names <= {"PATH", "HOME", "USER", "LOGNAME", "ANSWER", "PWD", "OLDPWD", "_", "SHLVL"}
    assert said.endswith("\n1\n")
    assert "secret" not in said


def test_network_of_the_host_is_there_when_granted(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]})); print('reached')"
        command = f'{sys.executable} -c "{code}"; cat /etc/resolv.conf | wc -c'
        assert run(command, network="host").startswith("reached\n")
        assert "refused" in run(command, network="none")


def test_stop_leaves_no_process_and_no_group(start: Callable[..., BubblewrapTerminal]) -> None:
    marker = f"{os.getpid()}{time.monotonic_ns()}"
    terminal = start()
    groups = {place.directory for place in cgroup.places(("memory", "pids")).values()}
    mine = f"debug-gym.*~{os.getpid()}~*"  # others may run sandboxes meanwhile
    before = {path for group in groups for path in group.glob(mine)}
    stream = terminal.open(["/bin/sh", "-c", f"setsid -f sleep 1{marker}; trap '' TERM; echo up; sleep 2{marker}"])
    assert stream.read(3) == b"up\n"
    assert not is_gone(marker)
    terminal.stop()
    assert is_gone(marker)
    assert {path for group in groups for path in group.glob(mine)} == before
    assert not terminal.alive()
    terminal.stop()


def test_killed_runner_leaves_nothing(tmp_path: Path) -> None:
    marker = f"1{os.getpid()}{time.monotonic_ns()}"
    script = f"""
import os, sys
from debug_gym_core.sandbox.interpreter import probe
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_bubblewrap import BubblewrapTerminal
terminal = BubblewrapTerminal()
terminal.start(SandboxSpec(run="test", interpreter=probe(sys.executable)))
stream = terminal.open(["/bin/sh", "-c", "trap '' TERM; setsid -f sleep {marker}; echo up; exec cat"])
print(stream.read(3), flush=True)
if os.fork() == 0:
    print("child", flush=True)
sys.stdin.read()
"""
    runner = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"b'up\\n'\n"
        assert runner.stdout.readline() == b"child\n"
        assert not is_gone(f"sleep\0{marker}")
        places = cgroup.places(("memory", "pids")).values()
        groups = [one for place in places for one in place.directory.glob(f"debug-gym.*~{runner.pid}~*")]
        assert len(groups) == len(places)
        runner.kill()
        runner.wait()
        wait_until(lambda: is_gone(f"sleep\0{marker}"))
    BubblewrapTerminal.clean()
    assert not any(group.exists() for group in groups)


def test_sandbox_outlives_the_thread_that_started_it(start: Callable[..., BubblewrapTerminal]) -> None:
    streams = []
    terminal = start()
    thread = threading.Thread(target=lambda: streams.append(terminal.open(["/bin/cat"])))
    thread.start()
    thread.join()
    for _ in range(50):
        streams[0].write(b"ping")
        assert streams[0].read(4) == b"ping"
    assert terminal.alive()


def test_command_that_does_not_exist_ends_the_stream_and_is_in_the_log(
    start: Callable[..., BubblewrapTerminal],
) -> None:
    terminal = start()
    stream = terminal.open(["/no/such/command"])
    assert stream.read(1) == b""
    wait_until(lambda: "No such file" in terminal.log())
    wait_until(lambda: not terminal.alive())
    with pytest.raises(OSError):
        while True:
            stream.write(bytes(65536))


def test_a_sandbox_is_opened_once(start: Callable[..., BubblewrapTerminal]) -> None:
    terminal = start()
    terminal.open(["/bin/cat"]).close()
    with pytest.raises(SandboxLost):
        terminal.open(["/bin/cat"])


@pytest.mark.faults
def test_a_start_for_which_descriptors_run_out_leaves_nothing(start: Callable[..., BubblewrapTerminal]) -> None:
    start().open(["true"]).close()  # what is started once a process is there
    groups, soft = left_of_mine(), resource.getrlimit(resource.RLIMIT_NOFILE)
    before = descriptors()
    failures = 0
    for more in range(60):
        terminal = start()
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(before) + more, soft[1]))
        try:
            terminal.open(["true"]).close()
            break
        except SandboxError:
            failures += 1
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, soft)
            terminal.stop()
        wait_until(lambda: descriptors() == before)
        wait_until(lambda: left_of_mine() == groups)
    assert failures > 5 and terminal._sandbox is not None


def descriptors() -> list[Path]:
    """Those of this process, without the one that the list is read by."""
    return [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]


def left_of_mine() -> list[Path]:
    """Control groups of sandboxes of this process."""
    places = cgroup.places(("memory", "pids")).values()
    return [group for place in places for group in place.directory.glob(f"debug-gym.*~{os.getpid()}~*")]


def test_interpreter_that_vanished_is_a_sandbox_error(start: Callable[..., BubblewrapTerminal], tmp_path: Path) -> None:
    interpreter = environment(tmp_path / "env")
    terminal = start(SandboxSpec(run="test", interpreter=interpreter))
    (tmp_path / "env").rename(tmp_path / "elsewhere")
    try:
        assert terminal.open(["/bin/cat"]).read(1) == b""
    except SandboxError as error:
        assert "bubblewrap" in str(error)
    wait_until(lambda: str(tmp_path / "env") in terminal.log())


def test_bounds_are_in_the_control_groups(start: Callable[..., BubblewrapTerminal]) -> None:
    places = cgroup.places(("memory", "pids", "cpu"))
    if set(places) != {"memory", "pids", "cpu"}:
        pytest.skip("no control group can be made here: run as root")
    terminal = start(memory="256m", pids=77, cpus=0.5)
    terminal.open(["/bin/cat"])
    assert terminal.notes() == []
    files = {1: ("memory.limit_in_bytes", "pids.max", "cpu.cfs_quota_us"), 2: ("memory.max", "pids.max", "cpu.max")}
    for place, names in ((place, files[place.version]) for place in places.values()):
        group = max(place.directory.glob(f"debug-gym.*~{os.getpid()}~*"), key=lambda path: path.stat().st_ctime_ns)
        found = [(group / name).read_text().split()[0] for name in names if (group / name).exists()]
        processes = 77 + (place.version == 1)  # there bwrap itself is born in it
        assert set(found) & {"268435456", str(processes), "50000"}
        assert (group / "cgroup.procs").read_text().strip()


def test_missing_program_is_named_with_the_package() -> None:
    code = "from debug_gym_terminal_bubblewrap import BubblewrapTerminal as B; print(B.unavailable())"
    said = subprocess.run([sys.executable, "-c", code], env={"PATH": "/nonexistent"}, capture_output=True, text=True)
    assert "apt-get install bubblewrap" in said.stdout


GROUP = """
import os, signal, sys
from pathlib import Path
from debug_gym_core.sandbox.pythons import find
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_bubblewrap import BubblewrapTerminal

signal.signal(signal.SIGINT, lambda *_: None)
terminal = BubblewrapTerminal()
terminal.start(SandboxSpec(run="test", interpreter=find(Path("/nonexistent"), sys.executable)))
stream = terminal.open(["/bin/cat"])
os.killpg(os.getpgrp(), signal.SIGINT)
stream.write(b"ping")
print(stream.read(4))
terminal.stop()
"""


def test_signal_to_the_runner_group_is_not_felt(start: Callable[..., BubblewrapTerminal]) -> None:
    said = subprocess.run([sys.executable, "-c", GROUP], start_new_session=True, capture_output=True, text=True)
    assert said.stdout == "b'ping'\n", said.stderr


def test_doctor_is_told_the_version_and_what_cannot_be_bounded() -> None:
    said = BubblewrapTerminal.about()
    assert said[0].startswith("bubblewrap 0.")
    assert said[1] in ("isolates by change of user", "isolates by user namespace")
    lacking = {"memory", "pids", "cpu"} - set(cgroup.places(("memory", "pids", "cpu")))
    assert bool(lacking) == any("control group" in line for line in BubblewrapTerminal.limits())


@pytest.mark.parametrize("quick", [True, False])
def test_the_user_is_changed_with_and_without_setpriv(run: Run, monkeypatch: pytest.MonkeyPatch, quick: bool) -> None:
    if isolation.mode() is not isolation.Mode.CHANGE_USER:
        pytest.skip("needs root, who has no user namespace made")
    if quick and not isolation._has_setpriv():
        pytest.skip("needs util-linux: apt-get install util-linux")
    monkeypatch.setattr(isolation, "_has_setpriv", lambda: quick)
    said = run("grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs)' /proc/self/status; stat -c %u:%g:%a /testbed")
    facts = dict(line.split(":", 1) for line in said.splitlines()[:-1])
    assert {facts[name].split()[0] for name in ("Uid", "Gid")} == {"1000"}
    assert facts["Groups"].split() == []
    assert all(int(value, 16) == 0 for name, value in facts.items() if name.startswith("Cap"))
    assert facts["NoNewPrivs"].strip() == "1"
    assert said.splitlines()[-1] == "1000:1000:755"


def test_a_killed_bubblewrap_ends_its_sandbox(start: Callable[..., BubblewrapTerminal]) -> None:
    """Of root's, whose first process does not end with it."""
    terminal = start()
    stream = terminal.open(["/bin/sh", "-c", "echo up; exec sleep 600"])
    assert stream.read(3) == b"up\n"
    assert terminal._sandbox is not None and terminal._sandbox._child is not None
    os.kill(terminal._sandbox._process.pid, signal.SIGKILL)
    assert stream.read(1) == b""
    stream.close()
    assert not terminal.alive()
    first = terminal._sandbox._child
    wait_until(lambda: not is_alive(first), "its first process is still there")
