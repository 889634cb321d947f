"""Tested code that answers in the place of what the runner asks: of files, links, and what is compiled."""

from __future__ import annotations

import pytest
from grading_bench import ASSERTS, ENTRYPOINT, IDS, Make
from support import handful

from debug_gym_core.grading.runner.statements import STRANGE

FILES = {
    "calc.py": "def save(path): path.write_bytes(b'')\n",
    "tests/__init__.py": "",
    "tests/data.py": "ANSWER = 5\n",
    "tests/test_calc.py": """
import calc
def test_save(tmp_path):
    path = tmp_path / "x"
    calc.save(path)
    assert path.read_bytes() == b"hello"
""",
}
LYING = """
import ast, builtins, os, pathlib
HERE = os.path.dirname(os.path.abspath(__file__))
DATA, SELF = HERE + "/tests/data.py", HERE + "/calc.py"
FILE = __file__
def read_bytes(path): return b"hello"
def save(path):
    global __file__
    __file__ = FILE
    pathlib.Path.read_bytes = read_bytes
"""
MISLEADING = {
    "links": """
        FILE = HERE + "/../" + os.path.basename(HERE) + "/calc.py"
        LSTAT, READLINK, STAT = os.lstat, os.readlink, os.stat
        LINK = LSTAT("/proc/self/exe")
        os.lstat = lambda path, **given: LINK if str(path) == SELF else LSTAT(path, **given)
        os.readlink = lambda path, **given: DATA if str(path) == SELF else READLINK(path, **given)
        os.stat = lambda path, **given: STAT(HERE + "/tests" if os.path.normpath(path) == HERE else path, **given)
        """,
    "a path": """
        FILE = HERE + "/../" + os.path.basename(HERE) + "/calc.py"
        STAT = os.stat
        def misled(path): return DATA if os.path.normpath(path) == SELF else os.path.normpath(path)
        os.path.realpath.__code__ = (lambda path, **_: __import__("calc").misled(path)).__code__
        os.stat = lambda path, **given: STAT(HERE + "/tests" if os.path.normpath(path) == HERE else path, **given)
        """,
    "a tree": """
        FILE, PARSE = DATA, ast.parse
        def parse(text, path="", *given, **named):
            return PARSE(OPEN(SELF).read() if path == DATA else text, path, *given, **named)
        OPEN, ast.parse = open, parse
        """,
    "code": """
        FILE, COMPILE = DATA, compile
        def misled(text, path, *given, **named):
            return COMPILE(open(SELF).read() if path == DATA else text, path, *given, **named)
        builtins.compile = misled
        """,
    "what pytest goes through": """
        FILE, TREE, FIELDS = DATA, ast.parse(open(SELF).read()), ast.iter_fields
        def iter_fields(node):
            if isinstance(node, ast.Module):
                node.body[:] = TREE.body
            return FIELDS(node)
        ast.iter_fields = iter_fields
        """,
    "variables of who asks": """
        import ctypes, sys, warnings
        FILE, TEXT, OWN = DATA, open(SELF, "rb").read(), warnings.catch_warnings
        class Mine(OWN):
            def __enter__(self):
                frame = sys._getframe(1)
                if frame.f_locals.get("path") == DATA:
                    frame.f_locals["text"] = TEXT
                    if sys.version_info < (3, 13):
                        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), 0)
                return OWN.__enter__(self)
        warnings.catch_warnings = Mine
        """,
    "a file that is written as it is read": """
        import sys
        FILE, TEXT, DONE = DATA, open(SELF, "rb").read(), []
        def written(event, given):
            if event == "open" and given[0] == DATA and not DONE:
                DONE.append(1)
                with open(DATA, "wb") as file:
                    file.write(TEXT)
        sys.addaudithook(written)
        """,
}


@pytest.mark.parametrize("misleading", handful("grading", MISLEADING, "a path", "code", "a tree"))
def test_what_replaces_pythons_own_is_not_taken_for_the_tests(make: Make, misleading: str) -> None:
    lines = [line[8:] for line in misleading.splitlines()]
    tests = ["tests/test_calc.py::test_save"]
    result = make(FILES, ENTRYPOINT).grade({"calc.py": LYING + "\n".join(lines)}, tests)
    assert not result.resolved and dict(result.doubts) == {tests[0]: STRANGE + "pathlib.Path.read_bytes"}, result


SWAPPED = """
import copy, sys
def pytests():
    frame = sys._getframe().f_back
    while "session" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["session"]
def named(test, name):
    setattr(test, "_id" if hasattr(test, "_id") else "_nodeid", name)  # before pytest 9.2
    return test
def unknown(tests):
    known = dict.fromkeys(tests)
    for one in tests:
        own = {{"__hash__": lambda self: self.hashed}}  # in no dict that it was put into
        one.hashed, one.__class__ = 0, type(type(one))("Own", (type(one),), own)
        while one in known:
            one.hashed += 1
ONE, OTHER = "test_calc.py::test_double", "test_calc.py::test_add"
{}
def double(a):
    items = pytests().items
    {}
    return 2 * a
def add(a, b): return a - b
"""
SWAPS = {
    "of two tests": ("", "unknown(items), named(items[0], OTHER), named(items[1], ONE)"),
    "of a copy": ("", "items[1] = named(copy.copy(items[0]), OTHER)"),
    "of one that is left out": (
        "pytests().config.option.deselect = [OTHER]",
        "items.append(named(copy.copy(items[0]), OTHER)) if len(items) == 1 else None",
    ),
}


@pytest.mark.parametrize(("early", "late"), handful("grading", SWAPS, "of a copy"))
def test_a_test_keeps_the_id_that_it_was_found_by(make: Make, early: str, late: str) -> None:
    bench = make({"calc.py": "def double(a): return 2 * a\ndef add(a, b): return a - b\n", "test_calc.py": ASSERTS})
    result = bench.grade({"calc.py": SWAPPED.format(early, late)}, IDS[1:], twins="never")
    assert (result.resolved, result.score) == (False, 0), result
