"""Breakpoints on functions of installed modules, which are found without importing any."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from support import repeated, version_of

APP = """\
import json
import pathlib
import textwrap
from math import sqrt as square_root
from string import capwords
textwrap.dedent("x")
json.loads("1"), capwords("a")
json.JSONDecoder().decode("2")
pathlib.Path("/a").joinpath("b")
pathlib.os.path.join("a", "b")
"""


@pytest.mark.parametrize(
    ("typed", "file", "function"),
    [
        ("textwrap.dedent", "/textwrap.py", "dedent"),
        ("json.loads", "/json/__init__.py", "loads"),
        ("json:loads", "/json/__init__.py", "loads"),
        ("json.decoder:JSONDecoder.decode", "/json/decoder.py", "decode"),
        *repeated(
            "debugger",
            ("json.JSONDecoder.decode", "/json/decoder.py", "decode"),  # which it has from another module
            ("pathlib.Path.joinpath", "", "joinpath"),  # which it inherits
            ("pathlib:Path.joinpath", "", "joinpath"),
            ("capwords", "/string.py", "capwords"),  # which the program imports later on
        ),
    ],
)
def test_functions_of_modules_that_are_not_imported_yet(debug: Any, typed: str, file: str, function: str) -> None:
    program = debug("python app.py", {"app.py": APP})
    assert program.do(f"b {typed}")["out"].startswith("Breakpoint 1 at ")
    stop = program.do("c")["stop"]
    assert (stop["reason"], stop["function"]) == ("breakpoint", function)
    assert stop["file"].endswith(file) and stop["file"] != "app.py"


def test_functions_that_are_not_python_are_said_to_be(debug: Any, python: str) -> None:
    program = debug("python app.py", {"app.py": APP})
    for typed, why in {
        "math.sqrt": "math is written in C: no breakpoint stops in sqrt",
        "math:sqrt": "math is written in C: no breakpoint stops in sqrt",
        "time.sleep": "time is written in C: no breakpoint stops in sleep",
        "square_root": "math is written in C: no breakpoint stops in sqrt",
        "sorted": "sorted is written in C: no breakpoint stops in it",
        "str.join": "str.join is written in C: no breakpoint stops in it",
    }.items():
        answer = program.do(f"b {typed}")
        assert answer["failed"] and answer["out"] == f"*** {why}\n", typed


FROZEN = """\
import os, abc, codecs

class Kind(metaclass=abc.ABCMeta):
    pass

os.path.join("a", "b")
isinstance(1, Kind)
os.getenv("PATH")
codecs.getreader("utf-8")
"""


@pytest.mark.parametrize(
    ("typed", "file", "function", "source"),
    [
        ("os.path.join", "posixpath.py", "join", "a = os.fspath(a)"),
        ("posixpath.py:join, a == 'a'", "posixpath.py", "join", "a = os.fspath(a)"),
        *repeated(
            "debugger",
            ("os.py:getenv", "os.py", "getenv", "return environ.get(key, default)"),
            ("codecs:getreader", "codecs.py", "getreader", "return lookup(encoding).streamreader"),
            ("abc:ABCMeta.__instancecheck__", "abc.py", "__instancecheck__", ""),
        ),
    ],
)
def test_code_that_is_frozen_with_the_interpreter_has_a_file(
    debug: Any, python: str, backends: list[str], typed: str, file: str, function: str, source: str
) -> None:
    program = debug("python app.py", {"app.py": FROZEN}, backends=backends)
    assert program.do(f"b {typed}")["out"].startswith("Breakpoint 1 at ")
    stop = program.do("c")["stop"]
    assert (stop["reason"], stop["file"].rpartition("/")[2], stop["function"]) == ("breakpoint", file, function)
    assert source in dict(stop["source"])[stop["line"]]
    assert program.do("w")["out"].splitlines()[-1].startswith("-> " + source)
    assert program.do("cl 1")["failed"] is False
    assert program.do(f"b {stop['line']}")["out"].startswith(f"Breakpoint 2 at {stop['file']}:{stop['line']}\n")
    assert program.do("c")["status"] == 0


@pytest.mark.parametrize("condition", ["", *repeated("debugger", ", path == 'a'")])
@pytest.mark.parametrize("typed", ["ntpath.join", "zipimport:zipimporter.__init__"])
def test_frozen_code_that_is_not_loaded_yet_is_found(
    debug: Any, python: str, backends: list[str], typed: str, condition: str
) -> None:
    if "zipimport" in typed and version_of(python) < (3, 8):
        pytest.skip("it is written in C")
    source = "import ntpath, zipimport\nntpath.join('a', 'b')\nzipimport.zipimporter('a')\n"
    program = debug("python app.py", {"app.py": source}, backends=backends)
    assert program.do(f"b {typed}{condition}")["out"].startswith("Breakpoint 1 at ")
    stop = program.do("c")["stop"]
    assert (stop["reason"], stop["function"], "note" in stop) == ("breakpoint", typed.rpartition(".")[2], False)


def test_frozen_code_is_listed_as_other_code(debug: Any) -> None:
    program = debug("python app.py", {"app.py": FROZEN})
    program.do("b os.getenv")
    program.do("c")
    for typed in ("ll", "source getenv"):
        assert "def getenv(key, default=None):\n" in program.do(typed)["out"]
    assert program.do("p [name for name in sys.modules['linecache'].cache if name[:1] == '<']")["out"] == "[]\n"


@pytest.mark.parametrize("name", ["<frozen {}/app>", "<frozen os/>"])
def test_a_name_that_looks_frozen_leads_to_no_file(debug: Any, tmp_path: Path, name: str) -> None:
    name = name.format(tmp_path)
    program = debug("python app.py", {"app.py": f"exec(compile('breakpoint()\\n1', {name!r}, 'exec'))\n"})
    stop = program.do("c")["stop"]
    assert (stop["file"], stop["source"]) == (name, [])


def test_functions_in_scope_may_be_frozen(debug: Any) -> None:
    source = "import os\nfrom os.path import join, join as glue\nend = 1\n"
    program = debug("python app.py", {"app.py": source, "util.py": "def join(a):\n    return a\n"})
    program.do("n")
    program.do("n")
    for typed, file, note in (
        ("os.environ.get", "/_collections_abc.py:", ""),
        ("join", "/posixpath.py:", ""),
        ("glue", "/posixpath.py:", "note: glue is the function join here\n"),
    ):
        out = program.do(f"b {typed}")["out"]
        assert out.startswith(note + "Breakpoint ") and file in out, out


def test_what_is_called_to_compile_breakpoints_in_stops_nowhere(debug: Any, backends: list[str]) -> None:
    modules = {f"{name}.py": "def f(a):\n    return a\n" for name in ("foo", "bar", "baz")}
    source = "import foo, bar, baz\nfoo.f(1)\n"
    program = debug("python app.py", {"app.py": source, **modules}, backends=backends)
    for typed in ("foo.py:2, a == 2", "os.path.join", "os.path.realpath"):
        program.do(f"b {typed}")
    assert program.do("c")["status"] == 0


def test_a_name_that_a_module_has_not_is_looked_for_among_its_own(debug: Any) -> None:
    program = debug("python app.py", {"app.py": APP})
    answer = program.do("b json.lodas")
    assert answer["failed"]
    assert answer["out"].endswith("/json/__init__.py; did you mean loads or load?\n")
    assert program.do("b nosuch.loads")["out"] == "*** there is no function nosuch.loads; b FILE:LINE, as b app.py:12\n"


def test_modules_are_looked_into_without_running_them(debug: Any) -> None:
    """They may have names from each other, and a class may be above itself."""
    files = {
        "app.py": "import sys\nsys.argv.append('ran')\n",
        "lib/__init__.py": "from .one import *\nfrom .two import work as task, Job\nraise SystemExit('ran')\n",
        "lib/one.py": "from .two import *\nfrom lib import *\nraise SystemExit('ran')\n",
        "lib/two.py": "from .one import Top\n\ndef work():\n    return 1\n\nclass Base(Job):\n    def run(self):\n"
        "        return 2\n\nclass Job(Top, Base):\n    pass\n\nraise SystemExit('ran')\n",
    }
    program = debug("python app.py", files)
    assert program.do("b lib.task")["out"] == f"Breakpoint 1 at {program.root}/lib/two.py:4\n"
    assert program.do("b lib.Job.run")["out"] == f"Breakpoint 2 at {program.root}/lib/two.py:8\n"
    assert program.do("b lib.Job.stop")["failed"]
    assert program.do("b lib.nothing")["failed"]
    assert program.do("p 'lib' in __import__('sys').modules")["out"] == "False\n"


def test_an_ignored_file_has_no_functions_by_its_modules(debug: Any) -> None:
    files = {
        "app.py": "x = 1\n",
        "lib/__init__.py": "from .hidden import work as task\n",
        "lib/hidden.py": "def work():\n    return 1\n",
    }
    program = debug("python app.py", files, ignored=["lib/hidden.py"])
    assert program.do("b lib.task")["failed"]


def beside_zipped(debug: Any, root: Path, zipped: str, code: str) -> Any:
    """A program of which a module, `zipped`, is in an archive; its own code begins in line 3."""
    with zipfile.ZipFile(root / "lib.zip", "w") as archive:
        archive.writestr("zipped.py", zipped)
    return debug("python app.py", {"app.py": f"import sys\nsys.path.insert(0, 'lib.zip')\n{code}"})


def test_breakpoints_in_a_zipped_module_are_set_while_it_runs(debug: Any, tmp_path: Path) -> None:
    zipped = "def f(n):\n    v = n\n\n    return v\n"
    program = beside_zipped(debug, tmp_path, zipped, "from zipped import f\nf(1)\nf(2)\n")
    program.do("b 4")
    program.lines("c", "s", "s")
    assert program.do("b 2")["out"] == f"Breakpoint 2 at {tmp_path}/lib.zip/zipped.py:2\n"
    assert program.do("b 3")["failed"]
    assert not program.do("b 4")["failed"]
    assert program.lines("c", "c", "c", "c") == [4, 2, 4, 0]


def test_what_a_zipped_module_has_is_not_read_from_who_imports_it(debug: Any, tmp_path: Path) -> None:
    zipped = "# one\n# two\n\ndef f(n):\n    v = n\n\n    return v\n"
    code = "import zipped\n\n# text\n\n# more\nzipped.f(1)\nzipped.f(2)\n"
    program = beside_zipped(debug, tmp_path, zipped, code)
    program.do("b 8")
    program.do("c")
    assert not program.do("b zipped.f")["failed"]
    assert program.do("c")["stop"]["line"] == 5
    assert "v = n" in program.do("ll")["out"]
    assert program.do("b 6")["failed"]
    assert not program.do("b 7")["failed"]
    assert program.lines("c", "c") == [7, 5]
