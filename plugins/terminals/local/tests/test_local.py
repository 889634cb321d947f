from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from support import repeated

from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost
from debug_gym_core.sandbox import ownership, virtual_environment
from debug_gym_core.sandbox.interpreter import Interpreter
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_core.testing import is_alive, wait_until
from debug_gym_terminal_local import LocalTerminal
from debug_gym_terminal_local.terminal import PREFIX, reap


@pytest.fixture
def session() -> Iterator[Session]:
    with Session.start(LocalTerminal(), SandboxSpec(run="test")) as session:
        yield session


@pytest.fixture
def own_place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory for temporary ones that nobody else looks through: whoever starts a sandbox removes leftovers."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("own")))


def test_commands_run_in_an_empty_directory(session: Session) -> None:
    assert session.run("ls -A; echo here > file; cat file").output == "here\n"
    assert session.read("file") == b"here\n"
    assert session.mask(session.run("pwd").output) == "/testbed\n"
    assert session.python == sys.executable


def test_nothing_of_the_hosts_environment_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    spec = SandboxSpec(run="test", environment={"OWN": "value", "PYTHONHASHSEED": "7"})
    with Session.start(LocalTerminal(), spec) as session:
        lines = session.run(["env"]).output.splitlines()
        variables = dict(line.split("=", 1) for line in lines)
        directory = str(Path(session.root).parent)
    assert variables.pop("PATH").split(":")[0] == str(Path(sys.executable).parent)
    assert variables == {
        "HOME": f"{directory}/home",
        "TMPDIR": f"{directory}/tmp",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "7",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "80",
        "OWN": "value",
    }


@pytest.mark.parametrize("name", ["with a blank", "with'quote", "with$dollar"])
def test_a_directory_that_a_shell_takes_apart_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
    with pytest.raises(RequirementError, match="cannot be named in a shell without quotes; set TMPDIR"):
        Session.start(LocalTerminal(), SandboxSpec(run="test"))
    assert not list((tmp_path / name).iterdir())


def test_a_directory_that_a_shell_takes_as_it_is_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "josé~1").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "josé~1"))
    with Session.start(LocalTerminal(), SandboxSpec(run="test")) as session:
        assert session.run(f"echo here > {session.root}/file; cat file").output == "here\n"


def test_stop_leaves_nothing(session: Session) -> None:
    directory = Path(session.root).parent
    guest = session.guest()["pid"]
    process = session.process(["sleep", "1000"], channel=False)
    session.run("mkdir -p locked/inner && touch locked/inner/file && chmod 500 locked/inner && chmod 0 locked")
    session.close()
    assert not directory.exists()
    assert not is_alive(guest)
    assert not is_alive(process.pid)
    session.terminal.stop()
    assert not session.terminal.alive()
    with pytest.raises(SandboxLost):
        session.run("true")


def test_stop_ends_what_a_killed_guest_left(session: Session) -> None:
    """Guest and keeper killed at once: what they kept has lost its parents."""
    guest = session.guest()["pid"]
    process = session.process("echo $PPID > keeper; exec sleep 1000", channel=False)
    wait_until(lambda: session.stat("keeper") is not None and session.read("keeper") != b"")
    keeper = int(session.read("keeper"))
    os.kill(keeper, signal.SIGSTOP)
    os.kill(guest, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)
    session.close()
    assert not is_alive(process.pid)


def test_guest_starts_again_over_the_same_files(session: Session) -> None:
    session.write("file", b"kept")
    os.kill(session.guest()["pid"], signal.SIGKILL)
    with pytest.raises(SandboxLost, match="local sandbox"):
        session.run("sleep 100")
    assert session.read("file") == b"kept"
    assert session.restarts == 1


def test_guests_that_died_leave_no_descriptor(session: Session) -> None:
    counts = []
    for _ in range(4):
        os.kill(session.guest()["pid"], signal.SIGKILL)
        with pytest.raises(SandboxLost, match="local sandbox"):
            session.run("sleep 100")
        assert session.run("echo there").output == "there\n"
        counts.append(len(list(Path("/proc/self/fd").iterdir())))
    assert counts[-1] <= counts[0], counts


def test_removed_directory_is_a_lost_sandbox(session: Session) -> None:
    os.kill(session.guest()["pid"], signal.SIGKILL)
    subprocess.run(["rm", "-rf", Path(session.root).parent], check=True)
    for _ in range(2):
        with pytest.raises(SandboxLost):
            session.run("true")


RUNNER = """
import sys
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_local import LocalTerminal
session = Session.start(LocalTerminal(), SandboxSpec(run="test"))
process = session.process(["sleep", "1000"], channel=False)
print(session.root, session.guest()["pid"], process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, *repeated("terminals", signal.SIGTERM, signal.SIGINT)])
def test_nothing_is_left_when_the_runner_is_killed(number: int) -> None:
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert runner.stdout is not None and runner.stdin is not None
    root, guest, command = runner.stdout.readline().split()
    assert is_alive(int(guest)) and is_alive(int(command)) and Path(root).exists()
    os.killpg(runner.pid, number)
    runner.wait(10)
    wait_until(lambda: not is_alive(int(guest)) and not is_alive(int(command)))
    wait_until(lambda: not Path(root).parent.exists())
    runner.stdin.close()
    runner.stdout.close()


def test_session_that_is_not_closed_ends_with_its_process() -> None:
    script = RUNNER.replace("sys.stdin.read()", "")
    result = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    root, guest, command = result.stdout.split()
    assert result.stderr == ""
    wait_until(lambda: not is_alive(int(guest)) and not is_alive(int(command)) and not Path(root).parent.exists())


def test_fork_of_the_runner_cannot_use_or_end_the_sandbox() -> None:
    script = RUNNER.replace(
        "sys.stdin.read()",
        """
import json
import os
if os.fork() == 0:
    try:
        session.run("true", timeout=1)
    except Exception as error:
        print(type(error).__name__, "forked" in str(error), flush=True)
    session.terminal.stop()
    sys.exit()
os.wait()
print(session.run("echo unharmed").output)
""",
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.split("\n", 1)[1].split() == ["SandboxLost", "True", "unharmed"]


def test_reap_removes_what_a_dead_runner_left(own_place: None, session: Session) -> None:
    directory = left_behind()
    (directory / "testbed").mkdir()
    left = subprocess.Popen(["sleep", "1000"], cwd=directory / "testbed")
    try:
        removed = reap()
        assert directory in removed
        assert not directory.exists()
        assert left.wait(10) == -signal.SIGKILL
        assert Path(session.root).parent not in removed
        assert session.run("echo fine").output == "fine\n"
    finally:
        left.kill()
        left.wait()


@pytest.mark.parametrize("setup", [True, False])
def test_a_start_that_fails_leaves_nothing_and_says_at_what(
    own_place: None, monkeypatch: pytest.MonkeyPatch, setup: bool
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((virtual_environment, "create") if setup else (ownership, "write_lease")), full)
    words = "no virtual environment for terminal.setup" if setup else "no temporary directory"
    with pytest.raises(SandboxError, match=f"{words}.*No space left"):
        LocalTerminal(setup=("true",)).start(SandboxSpec(run="test", interpreter=interpreter()))
    assert not list(Path(tempfile.gettempdir()).iterdir())


def left_behind() -> Path:
    """A directory of a runner that has ended."""
    code = "from debug_gym_core.sandbox import ownership; print(ownership.owner())"
    owner = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    (directory / "lease.json").write_text(json.dumps({"app": "debug-gym", "run": "x", "owner": owner}))
    return directory


def test_number_of_a_dead_runner_that_is_used_again(own_place: None, session: Session) -> None:
    """The lease names the process's start too: this very process is not the one that the lease means."""
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    owner = f"{ownership.owner().rpartition('/')[0]}/5"
    (directory / "lease.json").write_text(json.dumps({"app": "debug-gym", "run": "x", "owner": owner}))
    assert directory in reap()
    assert not directory.exists()
    assert session.run("true").exit_status == 0


def test_clean_says_what_it_removed_and_leaves_what_a_live_run_owns(own_place: None, session: Session) -> None:
    directory = left_behind()
    assert f"directory {directory}" in LocalTerminal.clean()
    assert not directory.exists()
    assert session.run("true").exit_status == 0
    assert directory not in reap()


def test_reap_follows_no_link(own_place: None, tmp_path: Path) -> None:
    """Somebody else may put links into a temporary directory that all share."""
    directory = left_behind()
    home = tmp_path / "home"
    directory.rename(home)
    (home / "mine").mkdir(mode=0o755)
    directory.symlink_to(home)
    try:
        assert directory not in reap()
        assert (home / "mine").stat().st_mode & 0o777 == 0o755
    finally:
        directory.unlink()


def interpreter(*editable: Path) -> Interpreter:
    return Interpreter(
        executable=Path(sys.executable),
        prefix=Path(sys.prefix),
        base_prefix=Path(sys.base_prefix),
        version=sys.version_info[:3],
        magic="",
        packages={},
        editable=editable,
    )


def test_the_copy_is_imported_not_the_editable_original(tmp_path: Path) -> None:
    source = tmp_path / "repository"
    (source / "src").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (source / "src" / "package.py").write_text("PLACE = 'original'")
    spec = SandboxSpec(run="test", source=source, interpreter=interpreter(source / "src", elsewhere))
    with Session.start(LocalTerminal(), spec) as session:
        session.write("src/package.py", b"PLACE = 'copy'")
        # What an editable install does: a path file adds the original's directory behind everything else.
        code = f"import sys; sys.path.append({str(source / 'src')!r}); import package; print(package.PLACE)"
        assert session.run([session.python, "-c", code]).output == "copy\n"
        paths = session.run([session.python, "-c", "import sys; print(sys.path)"]).output
    assert str(elsewhere) not in paths


def test_missing_interpreter_is_a_clear_error(tmp_path: Path) -> None:
    missing = tmp_path / "bin" / "python"
    spec = SandboxSpec(run="test", interpreter=interpreter())
    object.__setattr__(spec.interpreter, "executable", missing)
    terminal = LocalTerminal()
    with pytest.raises(SandboxError, match=str(missing)):
        Session.start(terminal, spec)
    assert not terminal.alive()


def test_registered_by_entry_point() -> None:
    (entry,) = [entry for entry in entry_points(group="debug_gym") if entry.name == "terminal-local"]
    assert entry.load().debug_gym_register_terminals() == [LocalTerminal]
    assert LocalTerminal.unavailable() is None
    assert not LocalTerminal.isolates


def test_package_loads_its_terminal_when_asked_only() -> None:
    code = """
    import sys
    import debug_gym_terminal_local
    assert "debug_gym_terminal_local.terminal" not in sys.modules
    debug_gym_terminal_local.LocalTerminal
    assert "debug_gym_terminal_local.terminal" in sys.modules
    try:
        debug_gym_terminal_local.Missing
    except AttributeError:
        pass
    else:
        sys.exit(1)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
