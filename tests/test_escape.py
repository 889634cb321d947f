"""What code in an isolating sandbox tries in order to get out, and must not achieve."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.errors import SandboxError
from debug_gym_core.interpreter import find
from debug_gym_core.session import Session
from debug_gym_core.terminal import SandboxSpec
from debug_gym_terminal_bubblewrap import BubblewrapTerminal
from debug_gym_terminal_docker import DockerTerminal

Start = Callable[..., Session]
SECRET = "debug-gym-secret-of-the-host"
ORDINARY_USER = 65534

SYSCALL = """
import ctypes, errno, platform
libc = ctypes.CDLL(None, use_errno=True)
def refused(name, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(NUMBERS[name]), *[ctypes.c_long(each) for each in arguments])
    return result == -1 and errno.errorcode[ctypes.get_errno()]
X86 = platform.machine() == "x86_64"
NUMBERS = {name: (x86 if X86 else arm) for name, x86, arm in [
    ("ptrace", 101, 117), ("process_vm_readv", 310, 270), ("mount", 165, 40), ("umount2", 166, 39),
    ("pivot_root", 155, 41), ("chroot", 161, 51), ("unshare", 272, 97), ("setns", 308, 268), ("clone", 56, 220),
    ("bpf", 321, 280), ("perf_event_open", 298, 241), ("keyctl", 250, 219), ("add_key", 248, 217),
    ("userfaultfd", 323, 282), ("init_module", 175, 105), ("kexec_load", 246, 104), ("swapon", 167, 224),
    ("io_uring_setup", 425, 425), ("open_by_handle_at", 304, 265), ("fsopen", 430, 430), ("clone3", 435, 435),
    ("sethostname", 170, 161), ("settimeofday", 164, 170), ("syslog", 103, 116),
]}
"""


def reason_not_to_use(terminal: str) -> str | None:
    """Why a terminal cannot be tested here and what to install, or None."""
    if terminal == "bubblewrap":
        return BubblewrapTerminal.unavailable()
    if not os.environ.get("DEBUG_GYM_TEST_IMAGE"):
        return "set DEBUG_GYM_TEST_IMAGE to an image with pytest and pandas; `.ci/images` makes one"
    return DockerTerminal.unavailable()


@pytest.fixture(scope="module", params=["bubblewrap", "docker"])
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    """Starts sandboxes of one kind; they end with the module's tests."""
    reason = reason_not_to_use(request.param)
    if reason:
        pytest.skip(reason)
    started: list[Session] = []
    os.environ["DEBUG_GYM_TEST_SECRET"] = SECRET

    def begin(**settings: Any) -> Session:
        if request.param == "docker":
            session = Session.start(
                DockerTerminal(image=os.environ["DEBUG_GYM_TEST_IMAGE"], **settings), SandboxSpec(run="test")
            )
        else:
            spec = SandboxSpec(run="test", interpreter=find(Path("/nonexistent"), sys.executable))
            session = Session.start(BubblewrapTerminal(**settings), spec)
        started.append(session)
        return session

    yield begin
    del os.environ["DEBUG_GYM_TEST_SECRET"]
    for session in started:
        session.close()


@pytest.fixture(scope="module")
def session(start: Start) -> Session:
    """A sandbox for probes that leave it as it was."""
    return start(memory="512m", pids=128)


def python(session: Session, code: str, timeout: float = 60) -> Any:
    """Run code in the sandbox; the last line that it prints is JSON."""
    result = session.run([session.python, "-c", textwrap.dedent(code)], timeout=timeout)
    assert result.exit_status == 0, result.output
    return json.loads(result.output.strip().splitlines()[-1])


def test_services_of_the_host_are_out_of_reach(session: Session) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        name = f"\0debug-gym-test-{os.getpid()}"
        abstract.bind(name)
        abstract.listen()
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass  # the service is there
        reached = python(
            session,
            f"""
            import json, socket
            reached = []
            for family, address in [
                (socket.AF_INET, ("127.0.0.1", {port})), (socket.AF_UNIX, {name!r}),
                (socket.AF_INET, ("169.254.169.254", 80)), (socket.AF_INET, ("192.0.2.1", 80)),
            ]:
                with socket.socket(family) as client:
                    client.settimeout(3)
                    try:
                        client.connect(address)
                        reached.append(str(address))
                    except OSError:
                        pass
            print(json.dumps([reached, [name for _, name in socket.if_nameindex() if name != "lo"]]))
            """,
        )
    others = [name for name in reached[1] if name not in ("tunl0", "sit0", "gre0", "ip6tnl0", "erspan0", "gretap0")]
    assert reached[0] == []
    assert others == []


def test_host_files_and_variables_are_not_there(session: Session, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    seen = session.run(
        f"cat {tmp_path}/secret.txt; ls -A /home /root /run /var /mnt /srv /opt/host {Path.home()}; "
        "cat /etc/shadow /proc/1/environ /proc/self/environ; env; ls /var/run/docker.sock /run/docker.sock"
    ).output
    assert SECRET not in seen
    assert "DEBUG_GYM_TEST_SECRET" not in seen
    assert "No such file or directory" in seen
    shadow = Path("/etc/shadow")
    if os.access(shadow, os.R_OK):
        hashes = [line.split(":")[1] for line in shadow.read_text().splitlines() if line.split(":")[1].startswith("$")]
        assert not [each for each in hashes if each in seen]


def test_no_capability_no_new_privilege_and_a_filter(session: Session) -> None:
    status = dict(
        line.split(":\t", 1) for line in session.run("cat /proc/self/status").output.splitlines() if ":\t" in line
    )
    capabilities = {name: int(value, 16) for name, value in status.items() if name.startswith("Cap")}
    assert len(capabilities) == 5
    assert set(capabilities.values()) == {0}
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert status["Uid"].split() == ["1000"] * 4
    assert status["Gid"].split() == ["1000"] * 4


def test_system_calls_that_reach_out_are_refused(session: Session) -> None:
    answers = python(
        session,
        SYSCALL
        + """
import json, os
CLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x00020000
answers = {name: refused(name, 0, 0, 0, 0, 0, 0) for name in NUMBERS if name not in ("clone", "clone3", "unshare")}
for flag in (CLONE_NEWUSER, CLONE_NEWNS):
    answers["unshare %x" % flag] = refused("unshare", flag)
    answers["clone %x" % flag] = refused("clone", flag | 17, 0, 0, 0, 0)
answers["clone3"] = refused("clone3", 0, 0)
print(json.dumps(answers))
""",
    )
    assert {name: answer for name, answer in answers.items() if answer not in ("EPERM", "ENOSYS")} == {}


def test_other_address_families_do_not_exist(session: Session) -> None:
    opened = python(
        session,
        """
        import json, socket
        opened = []
        for family in range(47):
            try:
                socket.socket(family, socket.SOCK_STREAM if family != 38 else socket.SOCK_SEQPACKET).close()
                opened.append(family)
            except OSError:
                pass
        print(json.dumps(opened))
        """,
    )
    assert opened == [socket.AF_UNIX, socket.AF_INET, socket.AF_INET6]


def test_guest_cannot_be_looked_into(session: Session) -> None:
    answers = python(
        session,
        """
        import json
        opened = []
        for name in ("mem", "maps", "environ", "fd/0"):
            try:
                open("/proc/%d/%s" % (PID, name), "rb").close()
                opened.append(name)
            except OSError:
                pass
        print(json.dumps(opened))
        """.replace("PID", str(session.guest()["pid"])),
    )
    assert answers == []


def test_user_cannot_be_changed(session: Session) -> None:
    result = session.run(
        "id -u; su root -c 'id -u' </dev/null; cp /bin/sh own && chmod 4755 own && ./own -p -c 'id -u';"
        f" {session.python} -c 'import os; os.setuid(0)'; {session.python} -c 'import os; os.setgroups([0])'"
    )
    assert "0" not in result.output.splitlines()
    assert result.output.count("Traceback") == 2


def test_nothing_outside_the_workspace_can_be_written(session: Session) -> None:
    written = python(
        session,
        """
        import json, os, sys
        written = []
        for path in ("/x", "/usr/x", "/etc/x", "/etc/passwd", "/usr/bin/env", "/bin/x", "/lib/x", "/dev/x", "/proc/x",
                     "/home/x", "/root/x", "/var/x", "/var/tmp/x", "/run/x", "/sys/x", sys.prefix + "/x",
                     sys.executable):
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
                written.append(path)
            except OSError:
                pass
        for top in ("/proc", "/sys"):
            for directory, inner, files in os.walk(top):
                inner[:] = [name for name in inner if not name.isdigit() and name not in ("self", "thread-self")]
                for name in files:
                    path = os.path.join(directory, name)
                    if os.path.islink(path) or path.startswith("/proc/pressure/"):
                        continue
                    try:
                        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                        if os.stat(path).st_rdev != os.stat("/dev/null").st_rdev:
                            written.append(path)
                    except OSError:
                        pass
        print(json.dumps(written))
        """,
    )
    assert written == []


def test_devices_are_few_and_cannot_be_changed_or_made(session: Session) -> None:
    refused = python(
        session,
        """
        import json, os
        refused = []
        for attempt in (
            lambda: os.chmod("/dev/null", os.stat("/dev/null").st_mode & 0o777),  # the mode that it has: owners may
            lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0)),
            lambda: os.mknod("/testbed/disk", 0o60600, os.makedev(8, 0)),
        ):
            try:
                attempt()
                refused.append(None)
            except OSError as error:
                refused.append(error.strerror)
        print(json.dumps(refused))
        """,
    )
    assert refused == ["Operation not permitted"] * 3
    devices = session.run("ls /dev").output.split()
    assert not {"sda", "vda", "mem", "kmsg", "kvm", "fuse", "vsock"} & set(devices)


def test_terminal_input_cannot_be_forged(session: Session) -> None:
    forged = python(
        session,
        """
        import fcntl, json, os, pty, termios
        child, master = pty.fork()
        if child == 0:
            answers = []
            for request in (termios.TIOCSTI, 0x541C):
                try:
                    fcntl.ioctl(0, request, b"x")
                    answers.append("done")
                except OSError as error:
                    answers.append(error.strerror)
            print(json.dumps(answers), flush=True)
            os._exit(0)
        text = b""
        while b"\\n" not in text:
            text += os.read(master, 1000)
        os.waitpid(child, 0)
        print(text.decode().strip())
        """,
    )
    assert forged == ["Operation not permitted"] * 2


@pytest.mark.parametrize("directory", [".", "/tmp", "/dev/shm"])
def test_files_are_bounded(start: Start, directory: str) -> None:
    session = start(workspace_size="16m", memory="512m")
    size = python(
        session,
        f"""
        import json, os
        size = 0
        try:
            for number in range(16):
                with open(os.path.join({directory!r}, str(number)), "wb", 0) as file:
                    for _ in range(8):
                        size += file.write(bytes(1 << 20))
        except OSError:
            pass
        print(json.dumps(size >> 20))
        """,
    )
    assert size <= (64 if directory == "/dev/shm" else 16)
    assert session.run("true").exit_status == 0


@pytest.mark.parametrize("processes", [1, 6])
def test_memory_of_all_processes_is_bounded(start: Start, processes: int) -> None:
    session = start(memory="256m")
    code = f"""
import mmap, os, sys, time
for _ in range({processes - 1}):
    if os.fork() == 0:
        break
memory = []
for _ in range({1024 // processes}):
    memory.append(bytearray(os.urandom(1024)) * 1024)
print("survived", flush=True)
time.sleep(30)
"""
    try:
        result = session.run([session.python, "-c", code], timeout=60)
        assert result.output.count("survived") < processes
        assert not result.timed_out or processes > 1
    except SandboxError:
        pass  # the command's keeper may be what the kernel chose
    assert session.run("echo alive").output == "alive\n"


def test_processes_are_bounded_and_end(start: Start) -> None:
    session = start(pids=64)
    count = python(
        session,
        """
        import json, subprocess
        started = []
        try:
            while len(started) < 500:
                started.append(subprocess.Popen(["sleep", "1000"]))
        except OSError:
            pass
        print(json.dumps(len(started)))
        """,
    )
    assert 0 < count < 64
    assert session.run("ps -e 2>/dev/null | grep -c sleep; true").output.strip() in ("0", "")
    assert session.run("sleep 0 & sleep 0 & wait; echo done").output.endswith("done\n")


def test_killing_everything_costs_at_most_the_command(start: Start) -> None:
    session = start()
    session.write("kept.txt", b"kept")
    try:
        session.run("kill -9 -1; kill -9 1; sleep 1", timeout=10)
    except SandboxError as error:
        assert str(error)
    deadline = time.monotonic() + 20
    while True:
        try:
            assert session.read("kept.txt") == b"kept"
            break
        except SandboxError:
            assert time.monotonic() < deadline
    assert session.run("echo alive").output == "alive\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests already run as an ordinary user")
def test_all_of_it_holds_for_an_ordinary_user() -> None:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is missing: apt-get install util-linux")
    user = [setpriv, "--reuid", str(ORDINARY_USER), "--regid", str(ORDINARY_USER), "--clear-groups"]
    tried = "import os, pytest, sys; os.stat(sys.executable)"
    if subprocess.run([*user, sys.executable, "-c", tried], capture_output=True, cwd="/").returncode != 0:
        pytest.skip("an ordinary user cannot run this Python; make the virtual environment outside of root's home")
    done = subprocess.run(
        [*user, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "bubblewrap", __file__],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
        env={"PATH": os.defpath, "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-5000:]
