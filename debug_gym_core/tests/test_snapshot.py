"""The pristine copy."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import tarfile
import tempfile
import threading
from pathlib import Path

import pytest

from debug_gym_core.errors import UsageError
from debug_gym_core.workspace.snapshot import MTIME, FileState, Snapshot, archive_of


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "pkg" / "empty").mkdir(parents=True)
    (root / "pkg" / "a.py").write_bytes(b"x = 1\r\n")
    (root / "pkg").chmod(0o750)
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("pkg/a.py")
    (root / "dangling").symlink_to("/nowhere/at/all")
    (Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9"))).write_bytes(b"\x00\xff")
    (root / ("long" * 40)).mkdir()
    (root / ("long" * 40) / ("name" * 30)).write_text("deep")
    return root


def test_archive_holds_contents_modes_links_and_any_names(repository: Path, tmp_path: Path) -> None:
    with Snapshot.take(repository) as snapshot:
        target = tmp_path / "out"
        target.mkdir()
        archive = b"".join(snapshot.archive())
        subprocess.run(["tar", "-xpf", "-"], input=archive, cwd=target, check=True)
        assert snapshot.members["caf\udce9"].size == 2
        assert snapshot.read("caf\udce9") == b"\x00\xff"
        assert snapshot.read("link") == b"pkg/a.py"
        assert snapshot.state("run.sh") == FileState(b"#!/bin/sh\n", 0o755)
        assert snapshot.state("pkg") is None and snapshot.state("nothing") is None
        for path in snapshot.members:
            found = target / path
            assert found.is_symlink() == (repository / path).is_symlink()
            if found.is_symlink():
                assert found.readlink() == (repository / path).readlink()
            elif found.is_file():
                assert found.read_bytes() == (repository / path).read_bytes()
                assert found.stat().st_mode == (repository / path).stat().st_mode
                assert found.stat().st_mtime == MTIME
        assert (target / "pkg" / "empty").is_dir()
        assert snapshot.members["pkg"].mode == 0o750


def test_equal_repositories_give_equal_archives(repository: Path) -> None:
    with Snapshot.take(repository) as first:
        os.utime(repository / "run.sh", (1, 1))
        (repository / "pkg" / "a.py").write_bytes(b"x = 1\r\n")
        with Snapshot.take(repository) as second:
            assert b"".join(first.archive()) == b"".join(second.archive())
            assert first.digest == second.digest
        (repository / "run.sh").chmod(0o644)
        with Snapshot.take(repository) as third:
            assert third.digest != first.digest


def test_what_is_left_out(repository: Path) -> None:
    for name in (".git", "pkg/__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", "my env"):
        (repository / name).mkdir()
        (repository / name / "x").touch()
    (repository / "my env" / "pyvenv.cfg").touch()
    (repository / "sub").mkdir()
    (repository / "sub" / ".git").write_text("gitdir: elsewhere\n")
    (repository / "data.csv").touch()
    os.mkfifo(repository / "pipe")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(repository / "s"))
        with Snapshot.take(repository, exclude=["*.csv"]) as snapshot:
            paths = set(snapshot.members)
    assert paths == {
        *("pkg", "pkg/empty", "pkg/a.py", "run.sh", "link", "dangling", "caf\udce9", "sub"),
        "long" * 40,
        "long" * 40 + "/" + "name" * 30,
    }
    assert snapshot.environments == ("my env",)


def test_the_copy_is_independent_of_the_original(repository: Path) -> None:
    with Snapshot.take(repository) as snapshot:
        (repository / "pkg" / "a.py").write_text("changed")
        assert snapshot.read("pkg/a.py") == b"x = 1\r\n"


def test_many_readers_at_once_do_not_disturb_each_other(repository: Path) -> None:
    (repository / "big").write_bytes(os.urandom(3 << 20))
    with Snapshot.take(repository) as snapshot:
        whole = b"".join(snapshot.archive())
        results: list[bytes] = []
        threads = [threading.Thread(target=lambda: results.append(b"".join(snapshot.archive()))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [whole] * 8


def test_nothing_of_it_is_left(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    snapshot = Snapshot.take(repository)
    assert list(place.iterdir()) == []  # without a name, so that even a killed process leaves none
    snapshot.close()
    snapshot.close()
    with pytest.raises(ValueError, match="closed"):
        snapshot.read("run.sh")


def test_a_directory_that_is_not_there_or_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no directory"):
        Snapshot.take(tmp_path / "nothing")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not a directory"):
        Snapshot.take(tmp_path / "file")


def test_missing_members(repository: Path) -> None:
    with Snapshot.take(repository) as snapshot:
        for path in ("nothing", "pkg"):
            with pytest.raises(KeyError):
                snapshot.read(path)


def test_archive_of_files() -> None:
    files = {
        "a/b.py": FileState(b"x" * 600, 0o755),
        "l": FileState(b"a/b.py", 0o777, "link"),
        "caf\udce9": FileState(b""),
    }
    with tarfile.open(fileobj=io.BytesIO(archive_of(files))) as archive:
        found = {member.name: member for member in archive.getmembers()}
        assert archive.extractfile("a/b.py").read() == b"x" * 600  # type: ignore[union-attr]
    assert set(found) == set(files)
    assert found["a/b.py"].mode == 0o755 and found["l"].linkname == "a/b.py"


def test_what_runs_left_in_the_repository_is_left_out(repository: Path) -> None:
    """It holds the patches of earlier episodes."""
    run = repository / "exps" / "run-1"
    (run / "repo" / "x").mkdir(parents=True)
    (run / "run.json").write_text('{"config": {}, "versions": {}, "seed": 0}')
    (run / "repo" / "x" / "patch.diff").write_text("the answer")
    (repository / "tool").mkdir()
    (repository / "tool" / "run.json").write_text('{"config": 1}')
    with Snapshot.take(repository) as snapshot:
        assert "tool/run.json" in snapshot.members
        assert not any(path.startswith("exps/run-1") for path in snapshot.members)


def test_a_file_that_cannot_be_read_is_named_as_a_person_knows_it() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        (directory / "secret.py").write_text("x = 1\n")
        (directory / "secret.py").chmod(0)
        user = os.geteuid()
        if user == 0:  # who may read everything
            os.seteuid(65534)
        try:
            with pytest.raises(UsageError) as refused:
                Snapshot.take(directory)
        finally:
            os.seteuid(user)
    assert str(refused.value) == f"{directory}/secret.py cannot be copied: Permission denied"


def test_what_never_ends_is_not_waited_for(repository: Path) -> None:
    for name, make in (("pipe", os.mkfifo), ("device", lambda path: path.symlink_to("/dev/zero"))):
        (repository / name).mkdir()
        make(repository / name / "run.json")
        make(repository / name / "x.py")
    (repository / "nested").mkdir()
    (repository / "nested" / "run.json").write_text("[" * 100_000)
    with Snapshot.take(repository) as snapshot:
        assert {"pipe", "device/run.json", "nested/run.json"} <= snapshot.members.keys()
        assert not {"pipe/run.json", "pipe/x.py"} & snapshot.members.keys()


def test_directories_may_be_deeper_than_the_stack(tmp_path: Path) -> None:
    here = Path.cwd()
    try:
        os.chdir(tmp_path)
        for _ in range(1100):
            Path("d").mkdir()
            os.chdir("d")
    finally:
        os.chdir(here)
    with Snapshot.take(tmp_path) as snapshot:
        assert len(snapshot.members) == 1100
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def test_a_file_that_is_nearly_all_hole_does_not_fill_the_disk(repository: Path) -> None:
    with (repository / "hole").open("wb") as file:
        file.truncate(1 << 43)
    with pytest.raises(UsageError, match=r"hole has 8,796,093,022,208 bytes, more than there is room for"):
        Snapshot.take(repository)
