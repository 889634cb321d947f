"""The zygote's modules by themselves, on the oldest and the newest Python."""

from __future__ import annotations

import ast
import os
import subprocess
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import interpreters, said_by

from debug_gym_core.sandbox import shipping
from debug_gym_core.sandbox.warm import ZYGOTE
from debug_gym_core.sandbox.zygote.stamps import Stamped, stamps
from debug_gym_core.sandbox.zygote.wanted import imported_names, python_files


@pytest.fixture(params=interpreters(handful=True))
def python(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def say(python: str) -> Callable[[str], Any]:
    """What code says that imports the package as `zygote`."""
    return lambda code: said_by(python, ZYGOTE, textwrap.dedent(code))


IMPORTED = f"""\
{shipping.BOOT}
import os
first = set(sys.modules)
with open(sys.argv[1], "rb") as file:
    zygote = enter(unpack(file.read()))
# What has no such name itself was not imported, but made by the module above it.
later = [name for name in set(sys.modules) - first if hasattr(sys.modules[name], "__spec__")]
later = {{name for name in later if getattr(sys.modules[name].__spec__, "name", "") == name}}
zygote.imports.end()
print(repr([later, zygote.imports.edges]))
"""


def test_imports_are_noted_from_the_first(python: str) -> None:
    """Of each module that is loaded it is known which of our own imports it comes from."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(shipping.parcel(ZYGOTE).blob())
        file.flush()
        command = [python, "-I", "-S", "-c", IMPORTED, file.name]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    later, edges = ast.literal_eval(said)
    known = {name.rpartition(".")[0] for name in shipping.imports(ZYGOTE)} | set(shipping.imports(ZYGOTE))
    while fresh := {one for name in known for one in edges.get(name, ())} - known:
        known |= fresh
    assert later and later <= known


def test_what_is_loaded_is_handed_out_with_what_it_imported(say: Callable[[str], Any], tmp_path: Path) -> None:
    (tmp_path / "fancy").mkdir()
    for name in ("fancy/__init__.py", "fancy/part.py", "fancy/rest.py", "lone.py"):
        (tmp_path / name).write_text("")
    said = say(
        f"""
        sys.path.insert(0, {str(tmp_path)!r})
        from zygote.shelf import Shelf

        first = frozenset(sys.modules)
        import fancy.part, fancy.rest, lone

        part, other = fancy.part, lone
        shelf = Shelf(first, {{"fancy.part": {{"lone", "sys", "fancy.part"}}}})
        shelf.clear_the_table()
        hidden = sorted(set(sys.modules) - first), hasattr(fancy, "part")
        sys.meta_path.insert(0, shelf)

        import fancy.part
        seen = sorted(set(sys.modules) - first), fancy.part is part, hasattr(fancy, "rest"), sorted(shelf.waiting)

        import fancy.rest
        print(json.dumps([hidden, seen, shelf in sys.meta_path, sys.modules["lone"] is other]))
        """
    )
    assert said == [[[], False], [["fancy", "fancy.part", "lone"], True, False, ["fancy.rest"]], False, True]


def test_what_lies_first_on_the_path_is_not_handed_out(say: Callable[[str], Any], tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lone.py").write_text("")
    said = say(
        f"""
        sys.path.insert(0, {str(tmp_path / "one")!r})
        from zygote.shelf import Shelf

        first = frozenset(sys.modules)
        import lone

        shelf = Shelf(first, {{}})
        shelf.clear_the_table()
        sys.meta_path.insert(0, shelf)
        sys.path.insert(0, {str(tmp_path / "other")!r})
        import lone

        print(json.dumps([lone.__file__, sorted(shelf.waiting)]))
        """
    )
    assert said == [str(tmp_path / "other" / "lone.py"), ["lone"]]


def test_programs_code_is_compiled_once(say: Callable[[str], Any], tmp_path: Path) -> None:
    """What comes as source leaves a blob that this interpreter need not compile again."""
    (tmp_path / "blob").write_bytes(shipping.pack({"": b"", "main": b"import sys\nvalue = 4711\n"}).blob_for(""))
    said = say(
        f"""
        import os
        from zygote.serving import Prepared

        made = Prepared(os.open({str(tmp_path / "blob")!r}, os.O_RDONLY))
        again = Prepared(os.open("/proc/self/fd/%d" % made.blob, os.O_RDONLY))
        values = []
        for one in (made, again):
            space = {{}}
            exec(one.codes["main"], space)
            values.append([space["value"], one.codes["main"].co_filename])
        print(json.dumps([values, made.blob > 2, again.blob]))
        """
    )
    assert said == [[[4711, "<debug-gym>"]] * 2, True, -1]


def test_a_program_is_nobodys_child(say: Callable[[str], Any]) -> None:
    said = say(
        """
        import os
        from zygote.serving import fork_orphan

        me = os.getpid()
        read_end, write_end = os.pipe()
        process = fork_orphan()
        if process == 0:
            os.write(write_end, b"%d %d" % (os.getpid(), os.getppid()))
            os._exit(0)
        own, parent = map(int, os.read(read_end, 100).split())
        try:
            os.waitpid(process, 0)
            ours = True
        except ChildProcessError:
            ours = False
        print(json.dumps([own == process, parent == me, ours]))
        """
    )
    assert said == [True, False, False]


WORKSPACE = {
    "test_it.py": "import json, shop.till\nfrom os import path\nif 1:\n    import both\nelse:\n    import both.too\n",
    "shop/till.py": "import json\nfrom . import near\ndef f():\n    import never\ntry:\n    import tried\nfinally: 0\n",
    "types.py": "if typing.TYPE_CHECKING:\n    import never\nimport json\n",
    "broken.py": "import never\ndef (",
    ".hidden/it.py": "import never\n",
    "node_modules/it.py": "import never\n",
    "env/pyvenv.cfg": "",
    "env/it.py": "import never\n",
}


def test_what_the_workspaces_files_import_is_guessed(tmp_path: Path) -> None:
    for name, text in WORKSPACE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = [os.path.relpath(path, tmp_path) for path in python_files(str(tmp_path))]
    assert found == ["test_it.py", "broken.py", "types.py", "shop/till.py"]
    assert imported_names(str(tmp_path)) == ["json", "both", "os", "tried", "both.too", "os.path", "shop.till"]


@pytest.mark.parametrize("change", ["", "shorter", "gone", "new", "older"])
def test_changes_of_files_are_seen(tmp_path: Path, change: str) -> None:
    paths = [tmp_path / name for name in ("one", "other", "none")]
    for path in paths[:2]:
        path.write_text("text")
    stamped = Stamped(stamps([*map(str, paths), str(tmp_path)]))
    if change == "shorter":
        paths[0].write_text("")
    elif change == "gone":
        paths[1].unlink()
    elif change == "new":
        paths[2].write_text("")
    elif change == "older":
        os.utime(paths[0], (1, 1))
    assert stamped.has_changed() is bool(change)
