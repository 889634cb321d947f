"""Probes of the kernel's interfaces: /proc and /sys, devices, terminals, odd calls, crashes."""

from __future__ import annotations

import platform

import pytest

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.inside import REFUSED, calls, python
from debug_gym_core.testing.sandboxes import SandboxTests

# Opens for writing what lies below `tops`, without writing; prints what could be opened.
_WRITABLE = """
    import json, os
    null = os.stat("/dev/null").st_rdev
    written = []
    for top in tops:
        for directory, inner, files in os.walk(top):
            inner[:] = [name for name in inner if not name.isdigit() and name not in ("self", "thread-self")]
            for name in files:
                path = os.path.join(directory, name)
                if os.path.islink(path) or path.startswith("/proc/pressure/"):
                    continue
                try:
                    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                    if os.fstat(descriptor).st_rdev != null:
                        written.append(path)
                    os.close(descriptor)
                except OSError:
                    pass
    print(json.dumps(written))
"""

_ATTEMPTS = {
    "keyrings": """
        call("add_key", b"user", b"x", b"y", 1, -3), call("keyctl", 0, -3, 1), call("request_key", b"user", b"x", 0, -3)
    """,
    "bpf": """
        call("bpf", 0, ctypes.create_string_buffer(120), 120), call("bpf", 5, ctypes.create_string_buffer(120), 120)
    """,
    "performance-events": """
        call("perf_event_open", ctypes.create_string_buffer(b"\\x01\\0\\0\\0\\x80", 128), 0, -1, -1, 0)
    """,
    "io_uring": 'call("io_uring_setup", 1, ctypes.create_string_buffer(120))',
    "userfaultfd": 'call("userfaultfd", 0), call("userfaultfd", 1)',
    "fanotify": 'call("fanotify_init", 0, 0), call("fanotify_init", 0x200, 0)',
    "kernel-modules": """
        call("init_module", b"", 0, b""), call("finit_module", 0, b"", 0), call("delete_module", b"x", 0)
    """,
    "another-kernel": 'call("kexec_load", 0, 0, 0, 0)',
    "restarting": 'call("reboot", 0xFEE1DEAD, 672274793, 0)',  # what Ctrl-Alt-Del does, is harmless
    "swap": 'call("swapon", b"file", 0)',
    "accounting-and-quotas": 'call("acct", b"file"), call("quotactl", 0x800002 << 8, 0, 0, 0)',
    "ports": 'call("iopl", 3), call("ioperm", 0x80, 1, 1)',
}


class KernelProbes(SandboxTests):
    """What code in the sandbox can ask of the kernel."""

    # /proc and /sys

    def test_proc_cannot_be_written(self, session: Session) -> None:
        """sysrq-trigger, sys/kernel/core_pattern, modprobe, sys/vm ...: no file that is not the process's own."""
        assert python(session, _WRITABLE, tops=["/proc"]) == []
        result = session.run(
            "echo h > /proc/sysrq-trigger; echo '|/bin/sh' > /proc/sys/kernel/core_pattern; "
            "echo x > /proc/sys/kernel/modprobe; echo x > /proc/sys/kernel/domainname; "
            "echo 1 > /proc/sys/vm/drop_caches",
            timeout=20,
        )
        assert result.output.count("\n") >= 5 and result.exit_status != 0

    def test_sys_cannot_be_written(self, session: Session) -> None:
        """uevent_helper, power, block devices, modules."""
        assert python(session, _WRITABLE, tops=["/sys"]) == []
        assert session.run("echo /tmp/x > /sys/kernel/uevent_helper", timeout=20).exit_status != 0
        assert session.run("echo mem > /sys/power/state", timeout=20).exit_status != 0

    def test_control_groups_cannot_be_changed(self, session: Session) -> None:
        """release_agent, notify_on_release, its own bounds, another group."""
        done = python(
            session,
            """
            import json, os
            done = []
            tops = [line.split()[4] for line in open("/proc/self/mountinfo") if " - cgroup" in line]
            tops.append("/sys/fs/cgroup")
            for top in set(tops):
                for directory, inner, files in os.walk(top):
                    try:
                        os.mkdir(os.path.join(directory, "escape"))
                        done.append(directory)
                    except OSError:
                        pass
                    for name in files:
                        try:
                            os.close(os.open(os.path.join(directory, name), os.O_WRONLY))
                            done.append(os.path.join(directory, name))
                        except OSError:
                            pass
            print(json.dumps(done))
            """,
        )
        assert done == []

    def test_binary_formats_cannot_be_registered(self, session: Session) -> None:
        """binfmt_misc would have the host run a program of ours."""
        result = session.run(
            "mkdir m; mount -t binfmt_misc none m; ls m/register; "
            "echo ':x:M::\\x7f::/tmp/x:' > /proc/sys/fs/binfmt_misc/register && echo registered",
            timeout=20,
        )
        assert "registered" not in result.output
        assert session.run("test -e m/register", timeout=20).exit_status != 0

    def test_the_kernels_log_and_addresses_are_not_shown(self, session: Session) -> None:
        """dmesg, kallsyms, kcore, iomem: what an exploit of the kernel needs."""
        opened, symbols, answer = calls(
            session,
            """
            opened = []
            for path in ("/dev/kmsg", "/proc/kmsg", "/proc/kcore", "/dev/mem", "/dev/kmem", "/proc/kpageflags",
                         "/proc/kpagecount", "/proc/keys", "/proc/timer_list", "/sys/kernel/debug/tracing/trace"):
                try:
                    with open(path, "rb") as file:
                        if file.read(16):
                            opened.append(path)
                except OSError:
                    pass
            symbols = []
            for path in ("/proc/kallsyms", "/proc/modules", "/proc/iomem", "/proc/ioports"):
                try:
                    symbols += [line.rstrip() for line in open(path)][:1000]
                except OSError:
                    pass
            text = ctypes.create_string_buffer(4096)
            print(json.dumps([opened, symbols, [call("syslog", 3, text, 4096), call("syslog", 10)]]))
            """,
        )
        assert opened == []
        numbers = [
            word for line in symbols for word in line.replace("-", " ").split() if word.startswith(("ffff", "0xffff"))
        ]
        assert numbers == []
        assert set(answer) <= REFUSED

    # Devices and terminals

    def test_devices_are_few_and_none_can_be_made(self, session: Session) -> None:
        """No memory, no disk, no hypervisor; mknod is refused wherever files can be made."""
        devices, made, opened = python(
            session,
            """
            import json, os, stat
            devices, opened = [], []
            for directory, _, names in os.walk("/dev"):
                for name in names:
                    path = os.path.join(directory, name)
                    mode = os.lstat(path).st_mode
                    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                        devices.append(path)
            for path in ("/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/vsock",
                         "/dev/net/tun", "/dev/loop-control", "/dev/loop0", "/dev/sda", "/dev/vda", "/dev/nvme0n1",
                         "/dev/vhost-net", "/dev/uinput", "/dev/input/event0", "/dev/dri/card0", "/dev/tty0",
                         "/dev/tty1", "/dev/ttyS0", "/dev/console"):
                try:
                    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
                    opened.append(path)
                except OSError:
                    pass
            made = []
            for directory in (".", "/tmp", "/dev/shm", "/dev"):
                for kind, number in ((stat.S_IFBLK, os.makedev(8, 0)), (stat.S_IFCHR, os.makedev(1, 1))):
                    try:
                        os.mknod(os.path.join(directory, "made"), 0o600 | kind, number)
                        made.append(directory)
                    except OSError:
                        pass
            try:
                os.chmod("/dev/null", os.stat("/dev/null").st_mode & 0o777)  # the mode that it has: owners may
                made.append("chmod")
            except OSError:
                pass
            print(json.dumps([devices, made, opened]))
            """,
        )
        usual = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}
        assert [path for path in devices if path.removeprefix("/dev/") not in usual and "/pts/" not in path] == []
        assert made == []
        assert opened == []

    @pytest.mark.parametrize(("name", "request_number"), [("TIOCSTI", 0x5412), ("TIOCLINUX", 0x541C)])
    def test_terminal_input_cannot_be_forged(self, session: Session, name: str, request_number: int) -> None:
        """Characters pushed into the terminal's input, also with bits above the 32 that the kernel looks at."""
        answers = calls(
            session,
            """
            import pty
            child, master = pty.fork()
            if child == 0:
                letter = ctypes.create_string_buffer(b"x")
                answers = [call("ioctl", 0, request | high, letter) for high in (0, 1 << 32, 1 << 63)]
                os.write(1, json.dumps(answers).encode() + b"\\n")
                os._exit(0)
            text = b""
            while b"\\n" not in text:
                text += os.read(master, 1000)
            os.waitpid(child, 0)
            print(text.decode().strip())
            """,
            request=request_number,
        )
        assert answers == ["EPERM"] * 3, name

    # System calls

    @pytest.mark.parametrize("what", _ATTEMPTS)
    def test_system_calls_are_refused(self, session: Session, what: str) -> None:
        """Whole parts of the kernel that no program here needs, and in which holes were found."""
        code = f"open('file', 'wb').write(bytes(8192))\nprint(json.dumps([{_ATTEMPTS[what]}]))"
        assert set(calls(session, code)) <= REFUSED

    def test_clock_and_host_name_cannot_be_changed(self, session: Session) -> None:
        """Nor the domain's name, nor the clock's speed."""
        name = session.run("hostname 2>/dev/null || cat /proc/sys/kernel/hostname", timeout=20).output
        answers = calls(
            session,
            """
            import time
            now = time.time()
            moment = (ctypes.c_long * 2)(int(now), 0)  # the time that it is, in case this works
            adjustment = ctypes.create_string_buffer(b"\\x02\\x40", 256)  # modes: ADJ_FREQUENCY | ADJ_TICK
            print(json.dumps([
                call("sethostname", b"escaped", 7), call("setdomainname", b"escaped", 7),
                call("settimeofday", moment, 0), call("clock_settime", 0, moment), call("adjtimex", adjustment),
            ]))
            """,
        )
        assert set(answers) <= REFUSED
        assert session.run("hostname 2>/dev/null || cat /proc/sys/kernel/hostname", timeout=20).output == name

    @pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86_64 has calls of other kinds of programs")
    def test_calls_of_other_architectures_do_not_pass_the_filter(self, session: Session) -> None:
        """32-bit calls (int 0x80) and x32 ones have other numbers, which a filter may have forgotten."""
        answers = calls(
            session,
            """
            import mmap, signal
            def machine_code(code):  # run in a child: its result, or the signal that ended it
                reader, writer = os.pipe()
                child = os.fork()
                if child == 0:
                    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
                    memory.write(code)
                    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
                    result = ctypes.CFUNCTYPE(ctypes.c_int)(place)()
                    os.write(writer, json.dumps(result).encode())
                    os._exit(0)
                os.close(writer)
                status = os.waitpid(child, 0)[1]
                text = os.read(reader, 100)
                os.close(reader)
                return json.loads(text.decode()) if text else -os.WTERMSIG(status) - 1000
            def old(number, argument):  # push rbx; mov eax, number; mov ebx, argument; int 0x80; pop rbx; ret
                return machine_code(b"\\x53\\xb8" + number.to_bytes(4, "little") + b"\\xbb"
                                    + argument.to_bytes(4, "little") + b"\\xcd\\x80\\x5b\\xc3")
            def x32(number, argument):  # mov eax, number; mov edi, argument; syscall; ret
                return machine_code(b"\\xb8" + (0x40000000 | number).to_bytes(4, "little") + b"\\xbf"
                                    + argument.to_bytes(4, "little") + b"\\x0f\\x05\\xc3")
            if platform.machine() == "x86_64":
                answers = {"unshare 32": old(310, 0x10000000), "ptrace 32": old(26, 0), "chroot 32": old(61, 0),
                           "unshare x32": x32(272, 0x10000000), "ptrace x32": x32(521, 0)}
            else:
                answers = {}
            print(json.dumps(answers))
            """,
        )
        passed = {what: answer for what, answer in answers.items() if answer not in (-1, -38, -1031, -1011)}
        assert passed == {}

    def test_a_crash_starts_nothing_on_the_host(self, session: Session) -> None:
        """Where the kernel pipes core dumps to a program of the host's, only a limit of one byte keeps it from it."""
        soft, hard, pattern, left = python(
            session,
            """
            import json, os, resource
            child = os.fork()
            if child == 0:
                os.abort()
            os.waitpid(child, 0)
            pattern = open("/proc/sys/kernel/core_pattern").read()
            print(json.dumps([*resource.getrlimit(resource.RLIMIT_CORE), pattern, os.listdir(".")]))
            """,
        )
        assert left == []
        assert soft == hard == 1 or (soft == hard == 0 and not pattern.startswith(("|", "@")))
