"""Read-only files of another user, in real containers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from debug_gym_core.errors import SandboxError
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import Protected, SandboxSpec
from debug_gym_core.workspace.snapshot import FileState, archive_of
from debug_gym_terminal_docker import DockerTerminal, readonly_owner

IMAGE = os.environ.get("DEBUG_GYM_TEST_IMAGE", "")
Open = Callable[..., Session]


@pytest.fixture
def open_container() -> Iterator[Open]:
    """Starts containers with some files in the workspace; they end with the test."""
    if not IMAGE:
        pytest.skip("set DEBUG_GYM_TEST_IMAGE to an image with pytest and pandas; `.ci/images` makes one")
    reason = DockerTerminal.unavailable()
    if reason:
        pytest.skip(reason)
    with ExitStack() as stack:

        def begin(files: dict[str, FileState], **settings: Any) -> Session:
            terminal = DockerTerminal(image=IMAGE, **settings)
            session = stack.enter_context(Session.start(terminal, SandboxSpec(run="test", protects=True)))
            session.put(archive_of(files))
            return session

        yield begin


def test_files_that_only_their_owner_could_read_can_be_read(open_container: Open) -> None:
    private = {"a/b/c.txt": FileState(b"1\n", 0o600), "a/free.txt": FileState(b"2\n", 0o600)}
    session = open_container(
        {**private, "d/e/run.sh": FileState(b"echo 3\n", 0o700), "f": FileState(b"a/free.txt", kind="link")}
    )
    session.run("chmod 700 a a/b d d/e")
    session.terminal.protect(Protected(("d",), ("a/b/c.txt",), ("f",)))
    assert session.terminal.notes() == []
    assert session.run("cat a/b/c.txt a/free.txt; d/e/run.sh; cat f").output == "1\n2\n3\n2\n"
    for command in ("echo > a/b/c.txt", "mv a x", "chmod 777 a/b/c.txt", "ln -sfn x f", "mkdir d/x", "mv d x", "rm f"):
        assert session.run(command).exit_status != 0, command
    assert session.run("echo 4 > a/free.txt; mv a/free.txt a/b/; rm a/b/free.txt; ls -A . a").output == (
        ".:\na\nd\nf\n\na:\nb\n"
    )
    assert session.run("stat -c '%n %a %u' a a/b a/b/c.txt d d/e d/e/run.sh").output == (
        "a 1777 65533\na/b 1777 65533\na/b/c.txt 644 65533\nd 755 65533\nd/e 755 65533\nd/e/run.sh 755 65533\n"
    )


def test_what_setting_up_took_away_or_changed_is_passed_over(open_container: Open) -> None:
    files = {name: FileState(name.encode()) for name in ("a/one", "a/two", "b/three", "c/four", "d")}
    session = open_container(files)
    session.run("rm a/one; rm -r b; rm -r c; echo > c; rm d; mkdir d")
    session.terminal.protect(Protected(("c",), ("a/one", "a/two", "b/three", "d")))
    assert session.terminal.notes() == []
    assert session.run("echo > a/two").exit_status != 0
    assert session.run("rm c; rmdir d; echo > a/one; ls -A").output == "a\n"


def test_without_room_all_stays_as_it_was_and_that_is_said(open_container: Open) -> None:
    big = FileState(bytes(700_000))
    session = open_container({"a/big": big, "a/free": FileState(b"1\n"), "b": FileState(b"2\n")}, workspace_size="1m")
    session.terminal.protect(Protected(files=("a/big", "b")))
    notes = list(session.terminal.notes())
    assert len(notes) == 1 and notes[0].startswith("read-only: changes are undone after each step (")
    assert "No space left on device" in notes[0]
    assert session.read("a/big") == big.data and session.run("ls -A . a; rm -r a; echo > b").exit_status == 0
    assert session.run("ls -A").output == "b\n"


def test_a_program_that_hangs_is_given_up(open_container: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readonly_owner, "ANSWER_TIMEOUT", 0.5)
    session = open_container({"hangs": FileState(b"#!/bin/sh\nexec sleep 1000\n", 0o755)})
    session.terminal.python = "/testbed/hangs"
    with pytest.raises(SandboxError, match=r"could not be protected: no answer within 0\.5 s"):
        session.terminal.protect(Protected(files=("hangs",)))
