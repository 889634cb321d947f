"""Probes of what lies beside a sandbox, and around it: the host's files and variables, the system's files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.inside import calls, python
from debug_gym_core.testing.sandboxes import SECRET, SandboxTests


class FileProbes(SandboxTests):
    """What code in the sandbox can read of the host, and write of the system."""

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

    def test_nothing_of_the_system_can_be_written(self, session: Session) -> None:
        """Programs, libraries, ld.so.preload, the interpreter; files can be made in few places."""
        written = python(
            session,
            """
            import json, os, sys
            written = []
            for path in ("/x", "/usr/x", "/etc/x", "/etc/passwd", "/etc/ld.so.preload", "/etc/ld.so.cache", "/bin/sh",
                         "/usr/bin/env", "/bin/x", "/lib/x", "/usr/lib/x", "/dev/x", "/proc/x", "/home/x", "/root/x",
                         "/var/x", "/var/tmp/x", "/run/x", "/sys/x", "/boot/x", "/opt/x", "/etc/profile.d/x",
                         sys.prefix + "/x", sys.base_prefix + "/x", sys.executable, os.__file__,
                         os.path.dirname(os.__file__) + "/x.py"):
                try:
                    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
                    written.append(path)
                except OSError:
                    pass
            print(json.dumps(written))
            """,
        )
        assert written == []


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
