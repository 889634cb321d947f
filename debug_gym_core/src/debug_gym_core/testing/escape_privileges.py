"""Probes of what a command may become: privileges, mounts, namespaces, sandboxes in the sandbox."""

from __future__ import annotations

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.inside import REFUSED, calls, python
from debug_gym_core.testing.sandboxes import SandboxTests


class PrivilegeProbes(SandboxTests):
    """What rights code in the sandbox has, and can get."""

    def test_there_is_no_capability(self, session: Session) -> None:
        """Not effective, permitted, inheritable, bounding, ambient; no process that can be seen is root's and ours."""
        status = _status(session)
        capabilities = {name: int(value, 16) for name, value in status.items() if name.startswith("Cap")}
        assert len(capabilities) >= 4
        assert set(capabilities.values()) == {0}
        assert "0" not in [*status["Uid"].split(), *status["Gid"].split(), *status["Groups"].split()]

    def test_no_new_privilege_can_be_gained(self, session: Session) -> None:
        """The kernel was told that there are none to gain, and system calls are filtered."""
        status = _status(session)
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"

    def test_setuid_programs_of_the_system_give_nothing(self, session: Session) -> None:
        """su, sudo, mount, newgrp, pkexec."""
        found = session.run(
            "su root -c 'id -u' </dev/null; sudo -n id -u </dev/null; "
            "mount -t tmpfs none /tmp && echo 0; newgrp root -c 'id -g' </dev/null; pkexec id -u </dev/null",
            timeout=60,
        )
        assert "0" not in found.output.splitlines()

    def test_a_setuid_bit_made_in_the_workspace_gives_nothing(self, session: Session) -> None:
        """A copy of the shell, for every place that can be written."""
        for directory in (".", "/tmp", "/dev/shm"):
            result = session.run(
                f"cd {directory} && cp /bin/sh own && chmod 6755 own && ./own -p -c 'id -u; id -g'; rm -f own",
                timeout=20,
            )
            assert "0" not in result.output.splitlines()

    def test_the_user_cannot_be_changed(self, session: Session) -> None:
        """setuid, setgid, setgroups, a file given to root."""
        done = python(
            session,
            """
            import json, os
            open("file", "w").close()
            done = []
            for name, attempt in [
                ("setuid", lambda: os.setuid(0)), ("setgid", lambda: os.setgid(0)),
                ("setresuid", lambda: os.setresuid(0, 0, 0)), ("setgroups", lambda: os.setgroups([0])),
                ("chown", lambda: os.chown("file", 0, 0)), ("chown link", lambda: os.lchown("file", 0, -1)),
            ]:
                try:
                    attempt()
                    done.append(name)
                except OSError:
                    pass
            print(json.dumps(done))
            """,
        )
        assert done == []

    def test_nothing_can_be_mounted(self, session: Session) -> None:
        """New file systems, binds, remounts, unmounts, another root, by the old calls and the new ones."""
        answers, same = calls(
            session,
            """
            RDONLY, REMOUNT, BIND, DETACH, AT_FDCWD, CLONE = 1, 32, 4096, 2, -100, 1
            before = open("/proc/self/mountinfo").read()
            here = os.getcwd().encode()
            nothing = ctypes.create_string_buffer(32)
            answers = {
                "tmpfs": call("mount", b"none", here, b"tmpfs", 0, 0),
                "proc": call("mount", b"none", here, b"proc", 0, 0),
                "sysfs": call("mount", b"none", here, b"sysfs", 0, 0),
                "cgroup2": call("mount", b"none", here, b"cgroup2", 0, 0),
                "overlay": call("mount", b"none", here, b"overlay", 0, 0),
                "bind": call("mount", b"/", here, 0, BIND, 0),
                "remount /": call("mount", 0, b"/", 0, REMOUNT | BIND, 0),
                "remount /proc/sys": call("mount", 0, b"/proc/sys", 0, REMOUNT | BIND, 0),
                "remount /usr": call("mount", 0, b"/usr", 0, REMOUNT, 0),
                "umount /proc": call("umount2", b"/proc", DETACH),
                "umount": call("umount2", here, DETACH),
                "pivot_root": call("pivot_root", here, here),
                "chroot": call("chroot", here),
                "open_tree": call("open_tree", AT_FDCWD, b"/", CLONE),
                "fsopen": call("fsopen", b"tmpfs", 0),
                "move_mount": call("move_mount", AT_FDCWD, here, AT_FDCWD, b"/", 0),
                "mount_setattr": call("mount_setattr", AT_FDCWD, b"/", 0, nothing, 32),
            }
            print(json.dumps([answers, open("/proc/self/mountinfo").read() == before]))
            """,
        )
        assert {what: answer for what, answer in answers.items() if answer not in REFUSED} == {}
        assert same

    def test_no_namespace_can_be_made_or_joined(self, session: Session) -> None:
        """User namespaces above all, which would give every capability over much of the kernel."""
        answers, same = calls(
            session,
            """
            flags = {"mnt": 0x00020000, "cgroup": 0x02000000, "uts": 0x04000000, "ipc": 0x08000000,
                     "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000, "time": 0x80}
            def namespaces():
                return [os.readlink("/proc/self/ns/" + name) for name in sorted(os.listdir("/proc/self/ns"))]
            before = namespaces()
            answers = {}
            for name, flag in flags.items():
                answers["unshare " + name] = call("unshare", flag)
                if name != "time":
                    answers["clone " + name] = call("clone", flag | 17)
                    if answers["clone " + name] == 0:
                        os._exit(0)
                    arguments = (ctypes.c_ulong * 11)(flag, 0, 0, 0, 17)
                    answers["clone3 " + name] = call("clone3", arguments, 88)
                    if answers["clone3 " + name] == 0:
                        os._exit(0)
            for process in processes():
                for name in flags:
                    try:
                        descriptor = os.open("/proc/%d/ns/%s" % (process, name), os.O_RDONLY)
                    except OSError:
                        continue
                    answers["setns %d %s" % (process, name)] = call("setns", descriptor, 0)
            print(json.dumps([answers, namespaces() == before]))
            """,
        )
        assert {what: answer for what, answer in answers.items() if answer not in REFUSED} == {}
        assert same

    def test_no_sandbox_can_be_made_in_the_sandbox(self, session: Session) -> None:
        """By the programs that make one: unshare, bwrap, newuidmap, chroot, nsenter."""
        result = session.run(
            "unshare -Ur id -u; unshare -m true && echo 0; bwrap --dev-bind / / --uid 0 id -u; nsenter -t 1 -m id -u; "
            "bwrap --unshare-all --uid 0 --ro-bind / / id -u; chroot / id -u; newuidmap $$ 0 0 1 && echo 0; "
            "echo '0 0 1' > /proc/self/uid_map && echo 0",
            timeout=30,
        )
        assert "0" not in result.output.splitlines()


def _status(session: Session) -> dict[str, str]:
    """What the kernel says of a command."""
    text = session.run("cat /proc/self/status", timeout=20).output
    return dict(line.split(":", 1) for line in text.replace(":\t", ":").splitlines() if ":" in line)
