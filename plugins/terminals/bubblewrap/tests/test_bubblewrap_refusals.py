"""Why bubblewrap cannot make a sandbox here, told with what to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from debug_gym_core.errors import RequirementError, SandboxLost
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_bubblewrap import BubblewrapTerminal, isolation


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """What was found out about the machine is found out anew."""
    caches = [one for one in vars(isolation).values() if hasattr(one, "cache_clear")]
    for one in caches:
        one.cache_clear()
    yield
    for one in caches:
        one.cache_clear()


Bwrap = Callable[[str], None]


@pytest.fixture
def bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bwrap:
    """Put a bwrap of one's own first on the path: a shell script."""

    def write(script: str) -> None:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return write


@pytest.mark.parametrize(
    ("values", "user", "said"),
    [
        ({"/proc/sys/user/max_user_namespaces": "0"}, 0, "sysctl -w user.max_user_namespaces=10000"),
        ({"/proc/sys/kernel/unprivileged_userns_clone": "0"}, 1000, "kernel.unprivileged_userns_clone=1"),
        ({"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, 1000, "AppArmor"),
        ({"/proc/sys/kernel/unprivileged_userns_clone": "0"}, 0, "the kernel refuses"),
    ],
)
def test_the_cause_is_named(
    bwrap: Bwrap, monkeypatch: pytest.MonkeyPatch, values: dict[str, str], user: int, said: str
) -> None:
    bwrap("echo first >&2; echo bwrap: No permissions >&2; exit 1")
    monkeypatch.setattr(isolation, "_value", lambda path: values.get(str(path), ""))
    monkeypatch.setattr(isolation, "_in_chroot", lambda: False)
    monkeypatch.setattr("pathlib.Path.exists", lambda path: False)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    reason = isolation.unavailable()
    assert reason is not None and reason.startswith("bubblewrap cannot make a sandbox here: ")
    assert said in reason and reason.endswith("(bwrap: No permissions)")


def test_a_silent_failure_is_told_by_its_status(bwrap: Bwrap) -> None:
    bwrap("exit 7")
    assert "(exit status 7)" in str(isolation.unavailable())
    with pytest.raises(RequirementError, match="exit status 7"):
        BubblewrapTerminal().start(SandboxSpec(run="test"))


def test_a_bwrap_that_is_no_program(bwrap: Bwrap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bwrap("")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "bwrap").write_text("#!/nonexistent/interpreter\n")
    assert "No such file" in str(isolation.unavailable())
    assert isolation.version() == ""


def test_what_was_mended_meanwhile_is_found(bwrap: Bwrap, monkeypatch: pytest.MonkeyPatch) -> None:
    bwrap("exit 7")
    monkeypatch.setattr(isolation, "_TIMEOUT", 0.0)
    assert isolation.version() == "" and isolation.unavailable() and isolation.mode() is None
    monkeypatch.undo()
    bwrap("echo bubblewrap 0.8.0")
    assert isolation.unavailable() is None and isolation.mode() is isolation._candidates()[0]
    assert isolation.version() == "bubblewrap 0.8.0" and isolation._nested()


def test_other_systems_are_sent_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert isolation.unavailable() == "bubblewrap needs Linux; use the docker terminal"


def test_what_is_not_started_has_no_files_to_protect() -> None:
    terminal = BubblewrapTerminal()
    assert not terminal.alive() and terminal.log() == ""
    with pytest.raises(SandboxLost, match="gone"):
        terminal.protect({})  # type: ignore[arg-type]
    with pytest.raises(SandboxLost, match="gone"):
        terminal.open(["true"])
    terminal.stop()
