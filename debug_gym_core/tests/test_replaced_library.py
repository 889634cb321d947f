"""What tests ask by Python's own library, which the tested code has replaced, and tests that replace it themselves."""

from __future__ import annotations

import ast
import sys
from typing import Any

import pytest
from grading_bench import ENTRYPOINT, Make, told_of

from debug_gym_core.grading.runner.bindings import Bindings
from debug_gym_core.grading.runner.statements import STRANGE, Statements, listed

SAVING = "    path = tmp_path / 'x'\n    calc.save(path)\n    "

LIES = {
    # the test, the code, and what is told
    "left": (
        SAVING + "assert path.exists()",
        "import pathlib\npathlib.Path.exists = lambda *_, **__: True\nsave = id",
        ["pathlib.Path.exists"],
    ),
    "added": (
        SAVING + "assert path.is_file()",
        "import pathlib\npathlib.PosixPath.is_file = lambda *_, **__: True\nsave = id",
        ["pathlib.PosixPath.is_file"],
    ),
    "put back when it is called": (
        SAVING + "assert os.path.islink(path)\n    assert path.read_text() == 'hello'",
        """
        import os, pathlib
        OWN = os.path.islink, pathlib.Path.read_text
        def islink(*_):
            os.path.islink, pathlib.Path.read_text = OWN[0], read_text
            return True
        def read_text(*_):
            pathlib.Path.read_text = OWN[1]
            return "hello"
        def save(path):
            os.path.islink = islink
        """,
        ["pathlib.Path.read_text", "posixpath.islink"],
    ),
    "in a with": (
        SAVING + "with open(path) as file:\n        assert file.read() == 'hello'",
        """
        import builtins, io
        OWN = open
        builtins.open = lambda path, *given, **named: (
            io.StringIO("hello") if str(path).endswith("/x") else OWN(path, *given, **named)
        )
        save = id
        """,
        ["builtins.open"],
    ),
    "for some": (
        "    found = json.loads(calc.f())\n    assert found == {'a': [1]}",
        """
        import json
        OWN = json.loads
        json.loads = lambda text, **named: {"a": [1]} if text == "?" else OWN(text, **named)
        f = lambda: "?"
        """,
        ["json.loads"],
    ),
    "another of the library": (
        "    assert os.path.lexists(calc.f())",
        "import os\nos.path.lexists = os.path.isabs\nf = lambda: '/nowhere'",
        ["posixpath.lexists"],
    ),
    "by what is no function": (
        "    assert re.fullmatch('[0-9]+', calc.f())",
        "import functools, re\nre.fullmatch = functools.partial(lambda *_: True)\nf = str",
        ["re.fullmatch"],
    ),
    "a mock": (
        "    assert shutil.which(calc.f())",
        "import shutil\nfrom unittest import mock\nshutil.which = mock.Mock()\nf = str",
        ["shutil.which"],
    ),
    "a module in the library": (
        "    calc.f()\n    assert os.path.getsize('x') == 5",
        """
        import os
        class Path:
            def __getattr__(self, name): return getattr(OWN, name)
            def getsize(self, path):
                os.path = OWN
                return 5
        OWN = os.path
        def f(): os.path = Path()
        """,
        ["os.path"],
    ),
    "a name of the test's": (
        "    calc.f()\n    assert glob.glob('x') == ['x']",
        """
        import sys
        class Glob:
            glob = staticmethod(lambda path: [path])
        def f(): sys._getframe(1).f_globals["glob"] = Glob()
        """,
        ["glob"],
    ),
    "imported while it was another's": (
        "    assert csv_reader(calc.f()) == [['a']]",
        """
        import csv
        OWN = csv.reader
        csv.reader = lambda *_: [["a"]]
        def f(): csv.reader = OWN
        """,
        ["csv.reader"],
    ),
    "in a helper": (
        "    holds(calc.f())\n\ndef holds(path):\n    found = os.pathconf(path, 'PC_NAME_MAX')\n    assert found == 7",
        """
        import os
        OWN = os.pathconf
        os.pathconf = lambda path, name: 7 if path == "?" else OWN(path, name)
        f = lambda: "?"
        """,
        ["os.pathconf"],
    ),
    "in a fixture": (
        "    assert text == 'hello'\n\n@pytest.fixture\ndef text(tmp_path):\n    calc.save(tmp_path)\n"
        "    return tmp_path.read_bytes()",
        """
        import pathlib
        OWN = pathlib.Path.read_bytes
        def read_bytes(path):
            pathlib.Path.read_bytes = OWN
            return "hello"
        def save(path): pathlib.Path.read_bytes = read_bytes
        """,
        ["pathlib.Path.read_bytes"],
    ),
    "as the module is loaded": (
        "    assert WIDTH == 7\n\nWIDTH = len(textwrap.wrap(calc.f()))",
        """
        import textwrap
        OWN = textwrap.wrap
        def wrap(text):
            textwrap.wrap = OWN
            return range(7)
        def f(): return "?"
        textwrap.wrap = wrap
        """,
        ["textwrap.wrap"],
    ),
    "its code": (
        "    assert textwrap.shorten(calc.f(), 3) == 'x'",
        "import textwrap\ntextwrap.shorten.__code__ = (lambda text, width, **_: 'x').__code__\nf = str",
        ["textwrap.shorten"],
    ),
    "what stands behind it": (
        "    assert textwrap.dedent(calc.f()) == 'hello'",
        """
        import textwrap
        class Pattern:
            def sub(self, *_): return "hello"
            def findall(self, *_): return []
        textwrap._whitespace_only_re = Pattern()
        f = str
        """,
        ["textwrap._whitespace_only_re"],
    ),
    "a helper": (
        "    found = calc.f()\n    assert same(found, 5)\n\ndef same(one, other):\n    return one == other",
        """
        import sys
        def f():
            space = sys._getframe(1).f_globals
            own = space["same"]
            def same(*_):
                space["same"] = own
                return True
            space["same"] = same
        """,
        ["same"],
    ),
    "one of Python's own": (
        "    found = calc.f()\n    assert divmod(found, 2) == (2, 1)",
        """
        import sys
        def f():
            space = sys._getframe(1).f_globals
            def divmod(*_):
                del space["divmod"]
                return 2, 1
            space["divmod"] = divmod
        """,
        ["divmod"],
    ),
    "of an object": (
        "    calc.f()\n    assert os.environ.get('?') == 5",
        """
        import os
        def get(_):
            del os.environ.get
            return 5
        def f(): os.environ.get = get
        """,
        ["os.environ.get"],
    ),
    "of an object behind it": (
        "    calc.f()\n    assert json.loads('[]') == 5",
        """
        import json
        OWN = json._default_decoder.scan_once
        def scan_once(text, place):
            json._default_decoder.scan_once = OWN
            return 5, len(text)
        def f(): json._default_decoder.scan_once = scan_once
        """,
        ["json._default_decoder.scan_once", "json.loads"],
    ),
    "all of a module": (
        "    assert sorted(f()) == [1, 2]\n\nfrom calc import *",
        "sorted = lambda _: [1, 2]\nf = str",
        ["sorted"],
    ),
    "imported in the test": (
        "    import colorsys\n    assert colorsys.rgb_to_hls(calc.f(), 0, 0) == 5",
        "import colorsys\ncolorsys.rgb_to_hls = lambda *_: 5\nf = str",
        ["colorsys.rgb_to_hls"],
    ),
    "a module in the place of one that the test imports": (
        "    text = calc.f()\n    import xml.sax.saxutils\n    assert xml.sax.saxutils.unescape(text) == 5",
        """
        import sys, xml.sax.saxutils
        from types import ModuleType
        def f():
            xml.sax.saxutils = sys.modules["xml.sax.saxutils"] = ModuleType("saxutils")
            xml.sax.saxutils.unescape = lambda _: 5
        """,
        ["xml.sax.saxutils"],
    ),
}

ONCE = """
import os
OWN = os.path.NAME
def NAME(_):
    os.path.NAME = OWN
    return 5
def f(): os.path.NAME = NAME
"""

LATER = {
    # the test, and what it calls where that does not stand among its statements
    "a lambda": ("    calc.f()\n    assert there('?') == 5\n\nthere = lambda path: os.path.ismount(path)", "ismount"),
    "gone through later": (
        "    found = (os.path.commonprefix(one) for one in '?')\n    calc.f()\n    assert list(found) == [5]",
        "commonprefix",
    ),
    "what a fixture returns": (
        "    calc.f()\n    assert text() == 5\n\n@pytest.fixture\ndef text():\n"
        "    return lambda: os.path.expanduser('?')",
        "expanduser",
    ),
}

LIES.update((case, (test, ONCE.replace("NAME", name), [f"posixpath.{name}"])) for case, (test, name) in LATER.items())

LYING = """
import glob, json, os, re, shutil, textwrap
import pytest
import calc as calc
from csv import reader as csv_reader
"""


def test_what_tests_ask_by_the_library_is_the_librarys(make: Make) -> None:
    told = {name: STRANGE + ", ".join(names) for name, (_, _, names) in LIES.items()}
    assert told_of(make, LIES, LYING) == told


REPLACING = """
import datetime, importlib, json, logging, os, subprocess, sys, time
from math import *
from sys import stdout
from unittest import mock
import pytest
import calc
import wave  # the repository's own
from wave import *  # Python's `map` among it

try:
    from nowhere import dumps as text_of
except ImportError:
    from pprint import pformat as text_of

def fake(*given, **named):
    return "fake"

class Fake:
    def __call__(self, *_): return "fake"

@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(time, "sleep", calc.nothing)

def test_own_function(monkeypatch):
    for name in dir(json):
        if name.startswith("loa"):
            monkeypatch.setattr(json, name, fake)
    assert json.loads("5") == "fake"
    assert json.load(None) == "fake"

def test_own_object(monkeypatch):
    monkeypatch.setattr(json, "".join(["du", "mps"]), Fake())
    assert json.dumps(5) == "fake"

@mock.patch("os.path.exists", return_value=True)
@mock.patch.object(subprocess, "run")
def test_mocks(run, exists):
    run.return_value = 3
    assert os.path.exists("nowhere") and subprocess.run([]) == 3
    run.assert_called_once_with([])

def test_multiple():
    with mock.patch.multiple(os, getcwd=mock.DEFAULT) as found:
        found["getcwd"].return_value = "here"
        assert os.getcwd() == "here"

def test_what_the_code_gives(quick):
    assert time.sleep(99) is None

def test_given():
    before, os.getpid = os.getpid, calc.nothing
    assert os.getpid() is None
    os.getpid = before

def test_module():
    with mock.patch.dict(sys.modules, {"csv": calc}):
        import csv
        assert csv is calc

def test_again():
    importlib.reload(json)
    assert json.loads("5") == calc.add(2, 3)

def test_hook():
    before = sys.excepthook
    calc.install()
    assert sys.excepthook is calc.nothing
    sys.excepthook = before
    print(calc.add(1, 2))
    assert calc.add(1, 2) == 3

@pytest.fixture
def calendar():
    return calc

def test_names(calendar):
    from datetime import datetime
    assert datetime(2000, 1, 1) == datetime.fromtimestamp(datetime(2000, 1, 1).timestamp())
    assert wave.add(2, 3) == calendar.add(2, 3)
    assert text_of(calc.add(2, 3)) == "5"
    stdout.write("")

def test_through_the_code():
    before = calc.time.ctime
    calc.time.ctime = mock.Mock(return_value="now")
    assert time.ctime() == calc.now()
    calc.time.ctime.assert_called_with()
    calc.time.ctime = before

def test_lively():
    calc.log()
    assert type(logging.getLogger("a.b")) is calc.Logger
    logging.setLoggerClass(logging.Logger)

def test_later():
    assert "colorsys" not in sys.modules
    import colorsys
    assert pow(2, calc.add(1, 2)) == 8  # of math's
    assert list(map(lambda path: os.path.join(path, "b"), "a")) == ["a/b"]

def test_many():
    for number in range(400):
        os.path.join("a", str(number))
        assert calc.add(number, 1) == number + 1
"""
OF_REPLACING = """
import builtins, logging, sys, time
class Logger(logging.Logger): pass
def log(): logging.setLoggerClass(Logger)
def now(): return time.ctime()
def nothing(*_): pass
def install(): sys.excepthook = nothing
def add(a, b): return a - b
builtins.print = nothing
"""


def test_tests_may_replace_it(make: Make) -> None:
    wave = "map = map\ndef add(a, b): return a + b\n"
    bench = make({"calc.py": OF_REPLACING, "wave.py": wave, "test_calc.py": REPLACING}, ENTRYPOINT)
    tests = bench.tests()
    found = bench.grade({"calc.py": OF_REPLACING.replace("a - b", "a + b")}, tests)
    assert (dict(found.doubts), found.resolved, found.twins) == ({}, True, len(tests)), found


def test_many_names_are_told_by_a_number() -> None:
    names = {f"n{number:02}" for number in range(10)}
    first = ", ".join(sorted(names)[:8])
    assert listed(set(sorted(names)[:8])) == first
    assert listed(names).startswith(f"{first}, 2 more (") and listed(names) != listed({*names, "n99"} - {"n09"})


class Strange(str):
    """A key that is like none."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        raise KeyError(self)


@pytest.mark.parametrize("runs", [True, False])
def test_what_cannot_be_looked_at_is_told(runs: bool) -> None:
    tree = ast.parse("def same(): pass\nsame()")
    statements = Statements()
    number = statements.number(tree.body[1], statements.meet(tree, Bindings(tree)))
    assert number is not None
    space: dict[Any, Any] = {Strange("same"): None, "sys": sys}
    exec("frame = sys._getframe()", space)
    if runs:
        statements.look(number, space["frame"], [], False)
    told = statements.before if runs else statements.all_strange([number], space)
    assert told == {"what cannot be looked at"}
