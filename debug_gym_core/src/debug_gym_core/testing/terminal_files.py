"""What happens to files on their way into a sandbox and out of it."""

from __future__ import annotations

import io
import os
import resource
import tarfile
import time

import pytest

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.sandboxes import SandboxTests


class FileTests(SandboxTests):
    """Files keep their bytes, names and modes, and writing does not lead out of the workspace."""

    def test_large_files(self, session: Session) -> None:
        """64 MiB in and out, unchanged, in seconds, and in not much more memory than they have."""
        data = os.urandom(1 << 20) * 64
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.monotonic()
        session.write("large", data)
        assert session.run("cksum < large; cp large copy", timeout=60).exit_status == 0
        assert session.read("copy") == data
        assert session.read("copy", 63 << 20, 1 << 19) == data[63 << 20 : (63 << 20) + (1 << 19)]
        assert time.monotonic() - started < 60
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
        assert grown < 6 * 64, f"{grown} MiB more memory"

    @pytest.mark.parametrize(
        "data",
        [bytes(range(256)) * 3, b"", b"\n", b"a", b"\xff\xfe\0\r\n\x0c", "ümläut 漢字".encode(), bytes(3_000_000)],
    )
    def test_files_keep_every_byte(self, session: Session, data: bytes) -> None:
        """Written by us and read by a program, and the other way round."""
        session.write("file", data)
        assert session.read("file") == data
        assert int(session.run("wc -c < file", timeout=20).output) == len(data)
        session.run("cat file > copy", timeout=20)
        assert session.read("copy") == data

    @pytest.mark.parametrize(
        "name", ["a b", "-n", "ümläut", "new\nline", "quote'\"", "*", "n" * 200, "a/b/c/d", "$HOME"]
    )
    def test_files_of_any_name(self, session: Session, name: str) -> None:
        """No name meets a shell."""
        session.write(name, b"content")
        assert session.read(name) == b"content"
        assert session.run(["cat", "--", name], timeout=20).output == "content"
        session.remove(name)
        assert session.stat(name) is None

    def test_links_modes_and_directories(self, session: Session) -> None:
        """They are what they are, and writing does not lead out of the workspace."""
        session.run(
            "mkdir d; echo x > d/f; chmod 751 d/f; ln -s d/f link; ln -s /etc out; ln -s nowhere broken", timeout=20
        )
        kinds = {entry.path: entry.kind for entry in session.walk(".")}
        assert kinds == {"d": "directory", "d/f": "file", "link": "link", "out": "link", "broken": "link"}
        assert session.read("link") == b"x\n"
        found = session.stat("d/f")
        assert found is not None and found.mode == 0o751
        session.write("link", b"y\n")
        assert session.read("d/f") == b"y\n"
        with pytest.raises(OSError):
            session.write("out/debug-gym-contract", b"")
        with pytest.raises(IsADirectoryError):
            session.read("d")

    def test_archives_are_unpacked(self, session: Session) -> None:
        """How a repository comes in."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for name, mode, data in (
                ("run.sh", 0o755, b"#!/bin/sh\necho ran\n"),
                ("deep/er/data", 0o644, bytes(100_000)),
            ):
                member = tarfile.TarInfo(name)
                member.mode, member.size = mode, len(data)
                tar.addfile(member, io.BytesIO(data))
        session.put(archive.getvalue())
        assert session.run(["./run.sh"], timeout=20).output == "ran\n"
        assert len(session.read("deep/er/data")) == 100_000
