"""`debug-gym doctor`: what it finds, that it does not hang, and what it removes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core import doctor
from debug_gym_core.doctor import Finding, State, healthy
from debug_gym_core.plugins import load_plugins

THIRD = '''
import threading
from debug_gym_core import Benchmark, Terminal, hookimpl

class Base(Terminal):
    isolates = True
    def start(self, spec): raise AssertionError
    def open(self, argv): raise AssertionError
    def alive(self): return False
    def stop(self): pass
    @classmethod
    def unavailable(cls): return None

class Good(Base):
    """A third party's."""
    name = "good"
    @classmethod
    def about(cls): return ["engine 9", "two rooms"]
    @classmethod
    def clean(cls): return ["room 1"]

class Weak(Base):
    """Cannot do all."""
    name = "weak"
    @classmethod
    def limits(cls): return ["no lock on the door"]

class Hanging(Base):
    """Never answers."""
    name = "hanging"
    @classmethod
    def unavailable(cls): threading.Event().wait()
    @classmethod
    def clean(cls): raise AssertionError("must not be asked")

class Raising(Base):
    """Has a fault."""
    name = "raising"
    @classmethod
    def unavailable(cls): raise OSError("no bus")

class Absent(Base):
    """Is not there."""
    name = "absent"
    @classmethod
    def unavailable(cls): return "rooms are not\\ninstalled: apt-get install rooms"
    @classmethod
    def clean(cls): raise AssertionError("must not be asked")

class Needy(Benchmark):
    """Needs what nobody has."""
    name = "needy"
    def names(self): return []
    def load(self, name): raise AssertionError
    def requires(self): return ["pytest", "no-such-distribution>=3"]

class Remote(Needy):
    """Cannot fetch its tasks."""
    name = "remote"
    def unavailable(self): return "its tasks come from afar:\\npip install afar"

@hookimpl
def debug_gym_register_terminals(): return [KINDS]
@hookimpl
def debug_gym_register_benchmarks(): return [Needy, Remote]
'''


@pytest.fixture
def third(tmp_path: Path) -> Any:
    """A plugin file with some of the terminals above; its path."""

    def write(*kinds: str) -> str:
        path = tmp_path / "third.py"
        path.write_text(THIRD.replace("[KINDS]", f"[{', '.join(kinds)}]"))
        return str(path)

    return write


def rows(done: Any) -> dict[str, tuple[str, str]]:
    lines = (line.split("  ") for line in done.out.splitlines()[1:])
    cells = ([cell.strip() for cell in line if cell.strip()] for line in lines)
    return {name: (state, " ".join(rest)) for name, state, *rest in cells}


def test_without_isolation_it_says_how_to_get_some(inside: Any) -> None:
    done = inside("doctor")
    assert done.status == 4 and done.err == ""
    found = rows(done)
    assert found["python"][0] == "ok" and sys.executable in found["python"][1]
    assert found["git"][0] == found["temporary files"][0] == "ok"
    assert found["terminal local"] == ("ok", "isolates nothing")
    state, words = found["terminal isolation"]
    assert state == "missing" and words.endswith(
        "pip install debug-gym-terminal-bubblewrap, and apt-get install bubblewrap"
    )
    assert not any(line.endswith(" ") for line in done.out.splitlines())


def test_terminals_of_others_take_part(inside: Any, third: Any) -> None:
    done = inside("doctor", "--plugin-file", third("Good", "Weak", "Raising", "Absent"))
    assert done.status == 0
    found = rows(done)
    assert found["terminal good"] == ("ok", "engine 9; two rooms")
    assert found["terminal weak"] == ("limited", "no lock on the door")
    assert found["terminal raising"] == ("failed", "OSError: no bus")
    assert found["terminal absent"] == ("missing", "rooms are not installed: apt-get install rooms")
    assert "terminal isolation" not in found


def test_what_benchmarks_need_is_named(inside: Any, third: Any) -> None:
    found = rows(inside("doctor", "--plugin-file", third("Good")))
    assert found["benchmark remote"] == ("missing", "its tasks come from afar: pip install afar")
    state, words = found["benchmark needy"]
    assert state == "missing" and "has no no-such-distribution>=3; get it with:" in words and "pip install" in words


def test_a_terminal_that_hangs_holds_nothing_up(third: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not those that are installed: given up, they would go on importing their SDK while other tests run.
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "core")
    plugins = load_plugins(files=[Path(third("Hanging", "Good"))])
    began = time.monotonic()
    found = {item.name: item for item in doctor.examine(plugins, patience=0.2)}
    assert time.monotonic() - began < 30  # waits for ever otherwise
    assert found["hanging"].state is State.FAILED and "no answer within 0.2 s" in found["hanging"].detail
    assert found["good"].state is State.OK
    removed, failed = doctor.clean(plugins, patience=0.2)
    assert "good: room 1" in removed
    assert any(line.startswith("hanging: no answer") for line in failed)


def test_a_plugin_that_failed_is_shown(inside: Any, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    done = inside("doctor", "--plugin-file", "broken.py")
    assert rows(done)["plugin broken.py"][0] == "failed" and "no_such_module" in done.out and done.err == ""


def test_json(inside: Any, third: Any) -> None:
    done = inside("doctor", "--json", "--plugin-file", third("Good"))
    found = {item["name"]: item for item in json.loads(done.out)}
    assert found["good"] == {
        "kind": "terminal", "name": "good", "state": "ok", "detail": "engine 9; two rooms", "needed": False,
    }  # fmt: skip


def test_missing_git_is_needed(inside: Any, third: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = third("Good")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = inside("doctor", "--plugin-file", path)
    assert done.status == 4 and rows(done)["git"] == ("missing", "patches need it; get it with: apt-get install git")


def test_healthy() -> None:
    assert healthy([Finding("system", "a", State.OK, "", needed=True), Finding("system", "b", State.MISSING, "")])
    assert not healthy([Finding("system", "a", State.FAILED, "", needed=True)])


# --clean


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory of our own, so that nobody else's is cleaned."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory


def test_clean_removes_what_a_killed_run_left_and_nothing_else(
    inside: Any, temporary: Path, third: Any, tmp_path: Path
) -> None:
    assert inside("doctor", "--clean").out == "nothing to remove\n"
    code = (
        "from debug_gym_core.sandbox.ownership import owner; import json, pathlib, sys\n"
        "pathlib.Path(sys.argv[1]).mkdir()\n"
        "pathlib.Path(sys.argv[1], 'lease.json').write_text(json.dumps({'owner': owner()}))\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    left, live = temporary / "debug-gym-local-1-left", temporary / "debug-gym-local-2-live"
    subprocess.run(
        [sys.executable, "-c", code, str(left)], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code, str(live)], stdin=pipe, stdout=pipe) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == b"ready\n"
        done = inside("doctor", "--clean", "--plugin-file", third("Good", "Absent"))
        assert done.status == 0 and done.err == ""
        assert done.out == f"removed good: room 1\nremoved local: directory {left}\n"
        assert live.is_dir() and not left.exists()
    done = inside("doctor", "--clean", "--json")
    assert json.loads(done.out) == {"removed": [f"local: directory {live}"], "failed": []}


def test_clean_goes_on_after_one_that_fails(inside: Any, temporary: Path, third: Any) -> None:
    done = inside("doctor", "--clean", "--plugin-file", third("Raising", "Good"))
    assert done.status == 1
    assert done.out == "removed good: room 1\n" and done.err == "error: raising: OSError: no bus\n"
