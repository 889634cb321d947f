"""A hostile repository is listed, played, graded and fixed, and nothing of it runs on the host or leads out of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hostile_repository
import pytest
from hostile_repository import GITS, SECRET, Hostile
from support import COMMAND, call_debug_gym, hold_for_an_ordinary_user, reason_not_to_use, repeated

from debug_gym_core.sandbox.pythons import find
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import Snapshot

RIGHT = {"path": "calc.py", "start": 2, "end": 2, "new_code": "    return a + b\n"}
ACTIONS: list[object] = [
    "listdir . 4",
    "view leads/secret.txt",
    "view leads/here",
    "view leads/variables",
    "view leads/endless",
    "view data/inner.txt",
    "view pipes/pipe.py",
    "view conftest.py",
    "grep nobody.gave",
    "rewrite leads/up/new.txt <<<\nwritten\n>>>",
    "eval",
    "pdb b calc.py:2",
    "pdb c",
    "rewrite lazy/new.txt <<<\nwritten\n>>>",
    "rewrite pipes/new.txt <<<\nwritten\n>>>",
    {"name": "rewrite", "arguments": RIGHT},
    "eval",
    {"name": "submit", "arguments": {}},
]
FEW = [ACTIONS[0], ACTIONS[1], *ACTIONS[8:10], *ACTIONS[13:16], ACTIONS[-1]]
"""Those of the gate."""
TOOLS = ["listdir", "view", "grep", "rewrite", "eval", "pdb", "submit"]


def told(*arguments: object, hostile: Hostile, status: Sequence[int] = (0,)) -> str:
    """What the command line says when it is called within the repository; it must not steer a terminal."""
    home = hostile.outside / "home"
    done = subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        cwd=hostile.directory,
        env={
            "PATH": f"{COMMAND.parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "KEY": SECRET,
            **{name: os.environ[name] for name in ("DOCKER_HOST",) if name in os.environ},
        },
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=100,
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode in status, said
    assert not set(said) & {"\x1b", "\x07", "\x9b", "\u202e"}, said
    assert "This is a bug in debug-gym" not in said
    return said


def playing(terminal: str, unittest: bool, actions: Sequence[object] = ACTIONS) -> list[str]:
    entrypoint = "python -m unittest -v test_calc" if unittest else "python -m pytest -q"
    settings: dict[str, Any] = {"env.entrypoint": entrypoint, "llm.actions": actions, "tools": TOOLS}
    if not unittest:
        settings["env.python"] = sys.executable
    if terminal == "docker":
        settings["terminal.image"] = os.environ["DEBUG_GYM_TEST_IMAGE"]
        settings["env.python"] = os.environ.get("DEBUG_GYM_TEST_PYTHON", "python3")
    chosen = [word for key, value in settings.items() for word in ("-p", f"{key}={json.dumps(value)}")]
    return ["--agent", "tool_agent", "--llm", "scripted", "--terminal", terminal, *chosen]


def written(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


def check_it_does_no_harm(hostile: Hostile, terminal: str, unittest: bool = False, run: bool = True) -> None:
    before = hostile.outside_of_it()
    here, home = ["-p", "benchmark.path=."], hostile.outside / "home"
    words = playing(terminal, unittest, ACTIONS if run else FEW)
    if run:
        assert "hostile" in told("tasks", "repo", *here, "--long", hostile=hostile)
        told("run", "repo", *here, *words, "-vv", "-o", home / "out", hostile=hostile)
        (result,) = map(json.loads, (home / "out" / "results.jsonl").read_text().splitlines())
        assert result["status"] == "resolved", result
    assert "applied to " in told("fix", ".", *words, "--apply", hostile=hostile)
    assert (hostile.directory / "calc.py").read_text() == hostile_repository.CALC.replace("a - b", "a + b")
    assert (hostile.directory / "lazy" / "new.txt").read_text() == "written\n"
    assert hostile.marks() == []
    kept = written(home)
    shutil.rmtree(home)
    assert hostile.outside_of_it() == before
    assert SECRET.encode() not in kept


def needed(terminal: str) -> None:
    if reason := reason_not_to_use(terminal):
        pytest.skip(reason)


def test_the_traps_are_there(tmp_path: Path) -> None:
    hostile = hostile_repository.make(tmp_path, environment="read")
    for path in [*hostile.directory.rglob("*"), *hostile.directory.rglob(".*")]:
        if path.is_fifo():  # git would wait there
            path.unlink(missing_ok=True)
    (hostile.directory / ".git" / "info" / "exclude").unlink(missing_ok=True)
    environment = {"PATH": os.defpath, "HOME": "/nonexistent"}
    for command in ("git status", "git check-ignore lazy/x", ".venv/bin/python -c 0", "python3 -m click"):
        subprocess.run(
            command.split(),
            cwd=hostile.directory,
            env=environment,
            capture_output=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
    assert {"git-clean", "git-included", "git-uploadpack", "module-click", "pth"} <= set(hostile.marks())


def test_nothing_of_it_runs_on_the_host(tmp_path: Path) -> None:
    needed("bubblewrap")
    check_it_does_no_harm(hostile_repository.make(tmp_path), "bubblewrap", unittest=True, run=False)


@pytest.mark.terminals
@pytest.mark.parametrize("terminal", ["bubblewrap", "docker"])
@pytest.mark.parametrize("git", GITS)
def test_whatever_its_git_directory_is(terminal: str, git: str, tmp_path: Path) -> None:
    needed(terminal)
    check_it_does_no_harm(hostile_repository.make(tmp_path, git=git), terminal)


@pytest.mark.terminals
@pytest.mark.parametrize("terminal", ["bubblewrap", "docker"])
def test_nor_does_its_virtual_environment(terminal: str, tmp_path: Path) -> None:
    needed(terminal)
    check_it_does_no_harm(hostile_repository.make(tmp_path, environment="read"), terminal, unittest=True)


@pytest.mark.terminals
@pytest.mark.parametrize("environment", ["script", *repeated("terminals", "beside", "pin")])
def test_a_python_that_came_with_it_is_not_asked(environment: str, tmp_path: Path) -> None:
    needed("bubblewrap")
    hostile = hostile_repository.make(tmp_path, environment=environment)
    words = ["-p", "benchmark.path=.", "--agent", "noop_agent", "--terminal", "bubblewrap"]
    words += ["-p", "env.entrypoint=python -m unittest -v test_calc"]
    status = (0, 1) if environment == "pin" else (4,)
    said = told("run", "repo", *words, "-o", hostile.outside / "out", hostile=hostile, status=status)
    assert hostile.marks() == []
    assert environment == "pin" or "env.python" in said


@pytest.mark.terminals
@pytest.mark.parametrize("git", [GITS[0], *(pytest.param(git, marks=pytest.mark.terminals) for git in GITS[1:])])
def test_before_anything_of_it_is_run_locally(git: str, tmp_path: Path) -> None:
    hostile = hostile_repository.make(tmp_path, git=git, environment="read")
    here = ["-p", "benchmark.path=."]
    before = hostile.outside_of_it()
    assert "hostile" in told("tasks", "repo", *here, hostile=hostile)
    told("config", "show", "repo", hostile=hostile)
    refused = told("run", "repo", *here, *playing("local", True), hostile=hostile, status=(2, 4))
    assert "allow_unsandboxed" in refused
    with Snapshot.take(hostile.directory) as snapshot:
        assert "calc.py" in snapshot.members and "pipes/pipe.py" not in snapshot.members
        rules = Rules.of(snapshot)
        assert not any(rules.ignored(path) for path in ("calc.py", hostile_repository.STARS))
    assert find(hostile.directory).prefix == hostile.directory / ".venv"
    assert hostile.marks() == []
    shutil.rmtree(hostile.outside / "home", ignore_errors=True)
    assert hostile.outside_of_it() == before


@pytest.mark.parametrize("name", ["repo", *repeated("terminals", "mini_nightmare")])
def test_a_file_named_as_a_benchmark_is_no_config(name: str, tmp_path: Path) -> None:
    hostile = hostile_repository.make(tmp_path)
    settings = {"terminal": {"name": "local", "allow_unsandboxed": True}, "benchmark": {"name": "repo", "path": "."}}
    (hostile.directory / name).write_text(json.dumps(settings))
    for spelt, read in (name, False), (f"./{name}", True):
        done = call_debug_gym(["config", "show", spelt], hostile.directory)
        assert (done.returncode, "allow_unsandboxed: true" in done.stdout) == (0, read), done.stderr


@pytest.mark.terminals
@pytest.mark.timeout(1500)
def test_all_of_it_holds_for_an_ordinary_user() -> None:
    hold_for_an_ordinary_user(__file__, "-m", "", "-k", "not docker")
