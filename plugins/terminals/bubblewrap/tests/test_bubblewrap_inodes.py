"""The bound on the number of files: set by root and by ordinary users, noted where it cannot be, leaves nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from debug_gym_core.sandbox.interpreter import probe
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec, files_in
from debug_gym_terminal_bubblewrap import BubblewrapTerminal, inodes, isolation
from debug_gym_terminal_bubblewrap.isolation import Mode

pytestmark = pytest.mark.skipif(BubblewrapTerminal.unavailable() is not None, reason="bubblewrap does not work here")


@pytest.fixture(params=[Mode.USER_NAMESPACE, Mode.CHANGE_USER])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mode]:
    """Each way of making the sandbox's user that works here."""
    reason = isolation._try(request.param)
    if request.param not in isolation._candidates() or reason:
        pytest.skip(f"sandboxes cannot be made by {request.param.value} here")
    monkeypatch.setattr(isolation, "mode", lambda: request.param)
    yield request.param


def start(size: str = "512m") -> Session:
    spec = SandboxSpec(run="test", interpreter=probe(sys.executable))
    return Session.start(BubblewrapTerminal(workspace_size=size), spec)


def test_each_place_for_files_has_a_number_and_keeps_its_size(mode: Mode) -> None:
    with start() as session:
        counts = session.run("stat -f -c '%c' /testbed /tmp /dev/shm", timeout=20).output.split()
        sizes = session.run("stat -f -c '%b %S' /testbed /tmp", timeout=20).output.split()
        mounts = session.run("grep -E ' (/testbed|/tmp|/dev/shm) ' /proc/self/mounts", timeout=20).output.splitlines()
        assert not [note for note in session.terminal.notes() if "number of files" in note]
    assert [int(count) for count in counts] == [files_in(512 << 20), files_in(512 << 20), files_in(64 << 20)]
    assert [int(blocks) * int(size) for blocks, size in zip(sizes[::2], sizes[1::2], strict=True)] == [512 << 20] * 2
    assert len(mounts) == 3
    assert all("nosuid,nodev" in line for line in mounts)


def test_a_kernel_that_refuses_is_noted(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inodes, "_REMOUNT", 0)  # a new mount, of no type: the kernel refuses that
    monkeypatch.setattr(inodes, "_SETTER", "import sys; sys.exit('Invalid argument')")
    with start() as session:
        assert session.run("echo runs", timeout=20).output == "runs\n"
        said = "workspace_size: the number of files is not bounded"
        notes = [note for note in session.terminal.notes() if note.startswith(said)]
    assert len(notes) == 1


def test_a_sandbox_that_ends_before_it_is_complete_leaves_nothing(mode: Mode) -> None:
    before = children()
    terminal = BubblewrapTerminal()
    for _ in range(3):
        terminal.start(SandboxSpec(run="test", interpreter=probe(sys.executable)))
        terminal.open(["/bin/sleep", "1000"])
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        terminal.stop()
        assert len(list(Path("/proc/self/fd").iterdir())) < descriptors
    assert children() <= before


def children() -> set[str]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {pid for task in tasks for pid in task.read_text().split()}


def test_small_workspaces_have_files_too() -> None:
    assert files_in(1) == files_in(16 << 20) == 1 << 16
    assert files_in(2 << 30) == 1 << 19
