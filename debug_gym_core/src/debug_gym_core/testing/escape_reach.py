"""Probes of what lies beside a sandbox: the host's network, sockets, files, variables, processes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.errors import SandboxError
from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.inside import calls, python
from debug_gym_core.testing.sandboxes import SandboxTests
from debug_gym_core.testing.waiting import FIND, processes_with

SECRET = "a-secret-of-the-host"

# Tries to connect and to send; prints where it could. Families and kinds are numbers.
_CONNECT = """
    import json, socket
    reached = []
    for family, kind, address in addresses:
        try:
            with socket.socket(family, kind) as client:
                client.settimeout(3)
                client.connect(tuple(address) if isinstance(address, list) else address)
                client.send(b"x")
                reached.append(address)
        except OSError:
            pass
    print(json.dumps(reached))
"""

_TUNNELS = frozenset(("tunl0", "sit0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6tnl0", "ip6gre0"))
"""Interfaces that some kernels make in every network of its own; they are down."""

_SOCKETS = (
    *("/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock"),
    *("/run/podman/podman.sock", "/run/user/0/podman/podman.sock", "/run/user/1000/podman/podman.sock"),
    *("/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket", "/run/user/1000/bus", "/run/user/0/bus"),
    *("/run/systemd/private", "/run/systemd/notify", "/run/systemd/journal/socket", "/run/systemd/journal/stdout"),
    *("/dev/log", "/run/snapd.socket", "/run/lvm/lvmpolld.socket", "/run/udev/control", "/tmp/.X11-unix/X0"),
    *("/run/libvirt/libvirt-sock", "/var/lib/lxd/unix.socket", "/run/nscd/socket", "/run/acpid.socket"),
)


class ReachProbes(SandboxTests):
    """What code in the sandbox can reach of the machine."""

    # Network

    def test_services_on_the_hosts_loopback_are_out_of_reach(self, session: Session) -> None:
        """TCP and UDP, IPv4 and IPv6: nothing arrives."""
        with contextlib.ExitStack() as stack:
            servers: list[tuple[socket.socket, list[Any]]] = []
            for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
                for kind in (int(socket.SOCK_STREAM), int(socket.SOCK_DGRAM)):
                    with contextlib.suppress(OSError):  # a machine without IPv6
                        server = stack.enter_context(socket.socket(family, kind))
                        server.bind((host, 0))
                        if kind == socket.SOCK_STREAM:
                            server.listen()
                        server.setblocking(False)
                        servers.append((server, [int(family), int(kind), list(server.getsockname())]))
            assert len(servers) >= 2
            with socket.create_connection(servers[0][0].getsockname(), timeout=5):
                servers[0][0].accept()[0].close()  # the service is there
            python(session, _CONNECT, addresses=[address for _, address in servers])
            for server, (_, kind, _) in servers:
                with pytest.raises(BlockingIOError):
                    server.accept() if kind == socket.SOCK_STREAM else server.recv(10)

    def test_there_is_no_way_into_a_network(self, session: Session) -> None:
        """No address of another machine, and none of this one, can be reached."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))  # sends nothing
            own = probe.getsockname()[0]
        hosts = ["192.0.2.1", "198.51.100.1", "10.0.0.1", "172.17.0.1", "192.168.0.1", "8.8.8.8", locals().get("own")]
        inet, stream, datagram = int(socket.AF_INET), int(socket.SOCK_STREAM), int(socket.SOCK_DGRAM)
        addresses = [[inet, kind, [host, 53]] for host in hosts if host for kind in (stream, datagram)]
        addresses.append([int(socket.AF_INET6), datagram, ["2001:db8::1", 53]])
        assert python(session, _CONNECT, addresses=addresses) == []

    def test_there_is_no_interface_but_loopback(self, session: Session) -> None:
        """And no route."""
        names, routes = python(
            session,
            """
            import json, socket
            try:
                routes = open("/proc/net/route").read().splitlines()[1:]
            except OSError:
                routes = []
            print(json.dumps([[name for _, name in socket.if_nameindex()], routes]))
            """,
        )
        assert set(names) - {"lo"} <= _TUNNELS
        assert routes == []

    def test_metadata_of_the_cloud_is_out_of_reach(self, session: Session) -> None:
        """The addresses that hand out a machine's credentials."""
        hosts = ("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192")
        addresses = [[int(socket.AF_INET), int(socket.SOCK_STREAM), [host, 80]] for host in hosts]
        addresses.append([int(socket.AF_INET6), int(socket.SOCK_STREAM), ["fd00:ec2::254", 80]])
        assert python(session, _CONNECT, addresses=addresses) == []

    def test_abstract_sockets_of_the_host_are_out_of_reach(self, session: Session) -> None:
        """They are in no file system, but in the network's namespace."""
        name = f"\0debug-gym-escape-{os.getpid()}"
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(name)
            server.listen()
            client.connect(name)  # the service is there
            unix = [int(socket.AF_UNIX), int(socket.SOCK_STREAM), name]
            assert python(session, _CONNECT, addresses=[unix]) == []

    def test_sockets_of_engines_and_buses_are_out_of_reach(self, session: Session, tmp_path: Path) -> None:
        """Docker's, containerd's, podman's, D-Bus's, the journal's; one that the test made; any that can be found."""
        own = str(tmp_path / "service")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(own)
            server.listen()
            Path(own).chmod(0o777)
            reached = python(
                session,
                """
                import json, os, socket, stat, sys
                for top in ("/run", "/var", "/tmp", "/home", "/root", "/srv", "/opt", "/mnt", "/dev", "/etc"):
                    for directory, _, names in os.walk(top):
                        for name in names:
                            path = os.path.join(directory, name)
                            try:
                                if stat.S_ISSOCK(os.lstat(path).st_mode):
                                    paths.append(path)
                            except OSError:
                                pass
                reached = []
                for path in paths:
                    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
                        with socket.socket(socket.AF_UNIX, kind) as client:
                            try:
                                client.connect(path)
                                reached.append(path)
                            except OSError:
                                pass
                print(json.dumps(reached))
                """,
                paths=[own, *_SOCKETS],
            )
        assert reached == []

    def test_raw_and_unusual_sockets_do_not_exist(self, session: Session) -> None:
        """Packet, raw, vsock and the many families of which the kernel has code; of netlink only routes."""
        opened = python(
            session,
            """
            import json, socket
            opened = []
            kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW)
            for family in range(64):
                for kind in kinds:
                    for protocol in range(24 if family == socket.AF_NETLINK else 1):
                        try:
                            socket.socket(family, kind, protocol).close()
                            opened.append([family, kind, protocol])
                        except OSError:
                            pass
            for protocol in (1, 6, 17, 58, 255):
                for family in (socket.AF_INET, socket.AF_INET6):
                    try:
                        socket.socket(family, socket.SOCK_RAW, protocol).close()
                        opened.append(["raw", family, protocol])
                    except OSError:
                        pass
            print(json.dumps(opened))
            """,
        )
        usual = {int(socket.AF_UNIX), int(socket.AF_INET), int(socket.AF_INET6)}
        raw, netlink = int(socket.SOCK_RAW), int(socket.AF_NETLINK)
        for family, kind, protocol in opened:
            if family == netlink:
                assert protocol == 0
            else:
                assert family in usual
                assert kind != raw or family == int(socket.AF_UNIX)

    # Files and variables

    def test_files_of_the_host_are_not_there(self, session: Session, tmp_path: Path) -> None:
        """Temporary ones, home directories, keys, passwords."""
        (tmp_path / "secret.txt").write_text(SECRET)
        places = [tmp_path / "secret.txt", Path.home(), Path("/root"), Path("/home"), Path("/etc/ssh"), Path("/boot")]
        names = {str(one) for place in places[1:] for one in _listed(place)}
        seen = python(
            session,
            """
            import json, os
            seen = [path for path in paths if os.path.lexists(path)]
            texts = []
            for path in (secret, "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id"):
                try:
                    texts.append(open(path, "rb").read().decode("latin-1"))
                except OSError:
                    pass
            print(json.dumps([seen, texts]))
            """,
            paths=sorted(names | {str(places[0])}),
            secret=str(places[0]),
        )
        exposed = {str(path) for path in _exposed(session)}
        shown = [path for path in seen[0] if path not in exposed]
        if not self.terminal.runs_images:  # an image has files of its own in places of the same name
            assert shown == []
        assert str(places[0]) not in shown
        assert not [text for text in seen[1] if SECRET in text]
        for hash_ in _password_hashes():
            assert not [text for text in seen[1] if hash_ in text]

    def test_variables_of_the_host_are_not_there(self, available: None, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not in the command's environment, nor in that of any process that can be seen."""
        monkeypatch.setenv("DEBUG_GYM_ESCAPE", SECRET)
        with self.open_session() as fresh:
            seen = fresh.run("env; cat /proc/*/environ /proc/*/cmdline /proc/cmdline 2>/dev/null", timeout=20).output
            home = fresh.run('echo "$HOME"', timeout=20).output.strip()
        assert SECRET not in seen
        assert "DEBUG_GYM_ESCAPE" not in seen
        assert home != str(Path.home()) or self.terminal.runs_images

    def test_open_files_of_the_host_are_not_passed_on(self, available: None, tmp_path: Path) -> None:
        """Descriptors that the process of debug-gym has open, even those that children inherit."""
        (tmp_path / "secret.txt").write_text(SECRET)
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                descriptor = os.open(tmp_path / "secret.txt", os.O_RDONLY)
                stack.callback(os.close, descriptor)
                os.set_inheritable(descriptor, True)
            with self.open_session() as fresh:
                own, texts = python(
                    fresh,
                    """
                    import json, os
                    own = sorted(map(int, os.listdir("/proc/self/fd")))[:-1]  # the last is that of the listing
                    texts = []
                    for process in os.listdir("/proc"):
                        try:
                            names = os.listdir("/proc/%s/fd" % process) if process.isdigit() else []
                        except OSError:
                            continue
                        for name in names:
                            path = "/proc/%s/fd/%s" % (process, name)
                            try:
                                if os.path.isfile(path):
                                    texts.append(open(path, errors="replace").read(1000))
                            except OSError:
                                pass
                    print(json.dumps([own, texts]))
                    """,
                )
        assert own == [0, 1, 2]
        assert not [text for text in texts if SECRET in text]

    def test_the_host_cannot_be_reached_by_file_handles(self, session: Session) -> None:
        """open_by_handle_at finds any file of a file system, whatever is mounted."""
        answers = calls(
            session,
            """
            handle = ctypes.create_string_buffer(b"\\x08\\0\\0\\0\\x01\\0\\0\\0\\x02\\0\\0\\0\\0\\0\\0\\0", 136)
            answers = []
            for path in ("/", "/usr", "/etc", "/proc", "/dev", os.getcwd()):
                try:
                    descriptor = os.open(path, os.O_RDONLY)
                except OSError:
                    continue
                answers.append(call("open_by_handle_at", descriptor, handle, 0))
            print(json.dumps(answers))
            """,
        )
        assert len(answers) >= 3
        assert set(answers) <= {"EPERM", "ENOSYS"}

    # Processes

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
        assert {what: answer for what, answer in answers.items() if answer not in ("EPERM", "EACCES", "ENOSYS")} == {}

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
        assert {what: answer for what, answer in answers.items() if answer not in ("EPERM", "EACCES", "ENOSYS")} == {}
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


def _listed(directory: Path) -> list[Path]:
    try:
        return [path for path in directory.iterdir() if not path.is_symlink()]
    except OSError:
        return []


def _exposed(session: Session) -> list[Path]:
    """What the sandbox shows for the interpreter's sake, and what leads there."""
    found = session.spec.interpreter
    shown = list(found.exposed) if found is not None else []
    return [place for path in shown for place in (path, *path.parents)]


def _password_hashes() -> list[str]:
    """Those that this process can read."""
    try:
        fields = [line.split(":") for line in Path("/etc/shadow").read_text().splitlines()]
    except OSError:
        return []
    return [field[1] for field in fields if len(field) > 1 and field[1].startswith("$")]
