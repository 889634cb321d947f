"""What is installed for the Python of an image, which is asked."""

from __future__ import annotations

import dataclasses
import logging
import sys
from pathlib import Path

import pytest

from debug_gym_core.grading.installed import installed_modules
from debug_gym_core.sandbox.interpreter import probe
from debug_gym_core.sandbox.session import Session


@pytest.fixture
def talkative(session: Session) -> str:
    """A Python of what stands for an image, that prints more than it is asked for."""
    started = f'PYTHONPATH="{session.root}" {sys.executable} "$@"'
    text = f"#!/bin/sh\necho 'Error processing line 1 of x.pth' >&2\n{started}\necho and more\n"
    session.write("python", text.encode(), mode=0o755)
    session.spec = dataclasses.replace(session.spec, interpreter=None)
    return f"{session.root}/python"


def test_it_is_told_whatever_else_is_printed(session: Session, talkative: str) -> None:
    session.write("of_the_workspace.py", b"")
    found = installed_modules(session, talkative)
    assert {"pytest", "pluggy"} <= found and not {"os", "of_the_workspace", "test"} & found


def test_on_the_host_modules_and_distributions_count(session: Session) -> None:
    """Of an editable install, as this one mostly is, nothing else is there."""
    session.spec = dataclasses.replace(session.spec, interpreter=probe(sys.executable))
    assert {"yaml", "pyyaml", "debug_gym_core"} <= installed_modules(session)


URL = '{{"url": "file://{}", "dir_info": {{"editable": {}}}}}'


@pytest.mark.parametrize(
    ("described", "text", "counts"),
    [
        ("My_Lib-1.0.dist-info/direct_url.json", URL.format("/home/me/my%20repo/sub", "true"), False),
        ("My_Lib-1.0.dist-info/direct_url.json", URL.format("/testbed", "true"), False),
        ("My_Lib-1.0.dist-info/direct_url.json", URL.format("/home/me/my%20repo", "false"), True),
        ("My_Lib-1.0.dist-info/direct_url.json", URL.format("/home/me", "true"), True),
        ("My_Lib-1.0.dist-info/direct_url.json", URL.format("/home/me/my%20repo/../other", "true"), True),
        ("My_Lib-1.0.dist-info/direct_url.json", URL.format("/home/me/my%20repo/env/src/lib", "true"), True),
        ("My_Lib-1.0.dist-info/direct_url.json", '{"url": 7}', True),
        ("My_Lib-1.0.dist-info/direct_url.json", "[" * 100_000, True),
        ("my-lib.egg-link", "/home/me/my repo/src\n../", False),
        ("my-lib.egg-link", "/home/me/other\n.", True),
        ("my-lib.egg-link", "", True),
    ],
)
def test_a_repository_that_is_installed_editable_cannot_shadow_itself(
    session: Session, tmp_path: Path, described: str, text: str, counts: bool
) -> None:
    (tmp_path / described).parent.mkdir(exist_ok=True)
    (tmp_path / described).write_text(text)
    (tmp_path / described).with_name("top_level.txt").write_text("tests\nutils\n")
    repository = Path("/home/me/my repo")
    there = dataclasses.replace(probe(sys.executable), site=(tmp_path,), prefix=repository / "env")
    there = dataclasses.replace(there, packages={"my-lib": "1.0", "other": "1.0"})
    session.spec = dataclasses.replace(session.spec, interpreter=there, source=repository)
    assert installed_modules(session) == {"other", *(["my_lib"] if counts else [])}


@pytest.mark.parametrize("text", ["exit 1", "echo 'debug-gym-installed:7'", ""])
def test_where_it_is_not_told_nothing_is(
    session: Session, talkative: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    session.write("python", f"#!/bin/sh\n{text}\n".encode() if text else b"no program", mode=0o755)
    with caplog.at_level(logging.WARNING, "debug_gym"):
        assert installed_modules(session, talkative) == frozenset()
    assert "of the image does not say what is installed" in caplog.text
