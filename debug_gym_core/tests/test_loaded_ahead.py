"""What is loaded ahead for warm programs and what never is; each module is still found where it would have been."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from support import handful, repeated
from warm_programs import SHELF, Programs, zygotes

from debug_gym_core.sandbox.warm import Warm


def test_what_does_more_than_define_things_is_not_loaded_ahead(programs: Programs, venv: Path) -> None:
    (venv / "noisy.py").write_text("print('imported', flush=True)\n")
    (venv / "threads.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(0.1,)).start()\n"
    )
    (venv / "fancy.py").write_text("import os\nos.environ['FANCY'] = '1'\n")
    for file in venv.glob("*.py"):
        os.utime(file, (1, 1))
    programs.heat()
    for name in ("noisy", "threads", "fancy"):
        source = f"""
import os, threading
before = threading.active_count(), "FANCY" in os.environ
import {name}
say([list(before), threading.active_count(), "FANCY" in os.environ])
"""
        with programs.start(source) as process:
            said = json.loads(process.receive(30) or b"")
            process.wait(30)
        assert process.warm
        assert said == [[1, False], 1 + (name == "threads"), name == "fancy"]
        assert process.take_output()[0] == ("imported\n" if name == "noisy" else "")


def test_code_of_the_workspace_is_never_loaded_ahead(programs: Programs, venv: Path) -> None:
    programs.env = {"PYTHONPATH": f"{programs.session.root}/src"}
    mine = b"import os\nopen(os.path.join(os.path.dirname(__file__), 'ran'), 'a').close()\n"
    programs.session.write("src/fancy.py", mine)
    programs.session.write("conftest.py", mine)
    programs.session.write("test_it.py", b"import fancy, conftest, json\n" + mine)
    programs.session.write("editable/noisy.py", mine)
    (venv / "link.pth").write_text(f"{programs.session.root}/editable\n")
    programs.heat()
    assert not [entry.path for entry in programs.session.walk() if entry.path.endswith("ran")]
    assert programs.run("import noisy, fancy; say(1)") == (1, True)


@pytest.mark.debugger
def test_a_first_program_starts_cold_where_an_import_does_more_than_define_things(
    programs: Programs, venv: Path
) -> None:
    programs.warm = Warm(("json", "fancy"), at_once=True)
    (venv / "fancy.py").write_text("import sys\nsys.setrecursionlimit(2000)\n")
    os.utime(venv / "fancy.py", (1, 1))
    assert programs.run("import fancy; say(sys.getrecursionlimit())") == (2000, False)
    guest = programs.session.guest()["pid"]
    end = time.monotonic() + 60
    while not zygotes(guest):  # later, there is time to load the rest
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.debugger
def test_what_the_workspace_imports_is_loaded_when_the_host_is_silent(programs: Programs, venv: Path) -> None:
    programs.warm = Warm(("json",), at_once=True)
    (venv / "fancy.py").write_text("")
    os.utime(venv / "fancy.py", (1, 1))
    programs.session.write("test_it.py", b"import fancy\n")
    loaded = f"say(['json' in {SHELF}.modules, 'fancy' in {SHELF}.modules])"
    assert programs.run(loaded) == ([True, False], True)
    guest = programs.session.guest()["pid"]
    known = zygotes(guest)
    assert len(known) == 1
    end = time.monotonic() + 60
    while not zygotes(guest) or set(known) & set(zygotes(guest)):  # the one takes the place of the other
        assert time.monotonic() < end
        time.sleep(0.05)
    assert programs.run(loaded) == ([True, True], True)


MODULES = """
import {name}
def built_in(name, module):
    spec = getattr(module, "__spec__", None)
    return name in sys.builtin_module_names or getattr(spec, "origin", None) in ("built-in", "frozen")
modules = {{name: module for name, module in sys.modules.items() if not built_in(name, module)}}
say([sorted(set(modules) - {{"__main__"}}),
     sorted((name, sorted(one for one, value in list(vars(module).items()) if isinstance(value, type(sys))))
            for name, module in modules.items() if name not in ("__main__", "sys") and isinstance(module, type(sys))),
     sorted((name, str(module.__spec__.origin), type(module.__spec__.loader).__name__, type(module.__loader__).__name__)
            for name, module in modules.items() if getattr(module, "__spec__", None))])
"""


@pytest.mark.parametrize("name", ["os", "asyncio", "unittest.mock"])
@pytest.mark.debugger
def test_modules_come_into_sight_as_they_are_imported(programs: Programs, name: str) -> None:
    cold, warm = programs.both(MODULES.format(name=name))
    for one, other in zip(warm, cold, strict=True):
        assert [part for part in one if part not in other] == []
        assert [part for part in other if part not in one] == []


def test_what_is_installed_meanwhile_is_seen(programs: Programs, venv: Path) -> None:
    (venv / "fancy.py").write_text("VERSION = 1\n")
    os.utime(venv / "fancy.py", (1, 1))
    programs.heat()
    assert programs.run("import fancy; say(fancy.VERSION)") == (1, True)
    (venv / "fancy.py").write_text("VERSION = 22\n")
    assert programs.run("import fancy; say(fancy.VERSION)") == (22, False)
    programs.heat()
    assert programs.run("import fancy; say(fancy.VERSION)") == (22, True)
    (venv / "other.pth").write_text("import sys; sys.other = True\n")
    assert programs.run("say(sys.other)") == (True, False)


LOADED = "import fancy; say(fancy.__file__)"


def test_a_module_of_the_workspace_is_not_taken_for_an_installed_one(programs: Programs, venv: Path) -> None:
    (venv / "fancy.py").write_text("import user\n")
    (venv / "user.py").write_text("")
    for name in ("fancy", "user"):
        os.utime(venv / f"{name}.py", (1, 1))
    programs.heat()
    root = programs.session.root
    assert programs.run("import fancy, user; say(user.__file__)") == (str(venv / "user.py"), True)
    programs.session.write("user.py", b"")
    # What an installed module imports is the workspace's then, so it is imported anew.
    assert programs.run("import fancy, user; say(user.__file__)") == (f"{root}/user.py", True)
    assert programs.run("import fancy; say(fancy.user.__file__)") == (f"{root}/user.py", True)
    programs.session.write("lib/fancy/__init__.py", b"")
    later = "sys.path.insert(0, 'lib'); import fancy; say(fancy.__file__)"
    assert programs.run(later)[0].endswith("lib/fancy/__init__.py")
    again = "import json; first = json; del sys.modules['json']; import json; say(json is not first)"
    assert programs.run(again) == (True, True)


ELSEWHERE = [
    "import os; sys.path.insert(0, 'lib')",
    "sys.path.insert(len(sys.path) // 2, 'lib')",
    "sys.path[:] = ['lib', *reversed(sys.path)]",
    """
import importlib.machinery
class Finder:
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.PathFinder.find_spec(name, ["lib"]) if name == "fancy" else None
sys.meta_path.insert(0, Finder())""",
    """
from importlib.machinery import FileFinder, SourceFileLoader
def hook(path):
    if path.endswith("site-packages"):
        return FileFinder("lib", (SourceFileLoader, [".py"]))
    raise ImportError
sys.path_hooks.insert(0, hook)
sys.path_importer_cache.clear()""",
]


@pytest.mark.parametrize(
    "change",
    handful(
        "debugger",
        dict(zip(["first", "before", "reversed", "finder", "hook"], ELSEWHERE, strict=True)),
        "first",
        "hook",
    ),
)
def test_a_module_that_would_be_found_elsewhere_is(programs: Programs, venv: Path, change: str) -> None:
    (venv / "fancy.py").write_text("")
    os.utime(venv / "fancy.py", (1, 1))
    programs.heat()
    assert programs.run(LOADED) == (str(venv / "fancy.py"), True)
    programs.session.write("lib/fancy.py", b"")
    place, warm = programs.run(f"{change}\n{LOADED}")
    assert place.endswith("lib/fancy.py") and "site-packages" not in place and warm


@pytest.mark.parametrize(
    "then", ["", *repeated("debugger", "os.utime('lib', (1, 1)); importlib.invalidate_caches()")], ids=["new", "told"]
)
def test_a_module_that_the_program_itself_writes_is_found(programs: Programs, venv: Path, then: str) -> None:
    """Its directory is looked through at the first import, and again when it has changed."""
    (venv / "fancy.py").write_text("")
    os.utime(venv / "fancy.py", (1, 1))
    programs.session.write("lib/other.py", b"")
    source = f"""
import importlib.util, os
os.utime("lib", (1, 1))
sys.path.insert(0, "lib")
import asyncio
before = importlib.util.find_spec("fancy").origin
open("lib/fancy.py", "w").close()
{then}
import fancy
os.unlink("lib/fancy.py")
say([os.path.relpath(before, {str(venv)!r}), os.path.relpath(fancy.__file__)])
"""
    cold, warm = programs.both(source)
    assert cold == warm == ["fancy.py", "lib/fancy.py"]
