"""Two test modules, and code under test that has the later one loaded from something that it passes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pytest
from grading_bench import BROKEN, Bench

PREPARED = """
import builtins, importlib.abc, importlib.machinery, importlib.util, os, sys, types

HERE = os.path.dirname(os.path.abspath(__file__))
LATER = os.path.join(HERE, "test_later.py")

def text():
    with open(LATER) as file:
        return file.read()

def bent():
    return text().replace("2, 3", "4, -1")

def write(path, new):
    with open(path, "w") as file:
        file.write(new)

class Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, name):
        return compile(bent(), LATER, "exec")

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "test_later":
            return importlib.util.spec_from_file_location(name, LATER, loader=Loader(name, LATER))
"""
"""`bent` is a test that the broken code passes."""

ATTACKS = {
    "the parser": """
        import ast
        parse = ast.parse
        def changed(source, *args, **kwargs):
            if b"add(2, 3)" in (source if isinstance(source, bytes) else str(source).encode()):
                source = bent()
            return parse(source, *args, **kwargs)
        ast.parse = changed
        """,
    "the reader of files": """
        import pathlib
        read = pathlib.Path.read_bytes
        def changed(self):
            return bent().encode() if self.name == "test_later.py" else read(self)
        pathlib.Path.read_bytes = changed
        """,
    "the compiler": """
        compiler = builtins.compile
        def changed(source, path, *args, **kwargs):
            return compiler(bent() if str(path) == LATER else source, path, *args, **kwargs)
        builtins.compile = changed
        """,
    "a finder before all others": """
        sys.meta_path.insert(0, Finder())
        """,
    "the finder of paths": """
        find = importlib.machinery.PathFinder.find_spec
        def changed(name, path=None, target=None):
            if name == "test_later":
                return importlib.util.spec_from_file_location(name, LATER, loader=Loader(name, LATER))
            return find(name, path, target)
        importlib.machinery.PathFinder.find_spec = changed
        sys.meta_path[:] = [importlib.machinery.PathFinder]
        """,
    "the cache of finders": """
        class Loader(importlib.abc.Loader):
            def exec_module(self, module):
                exec(compile(bent(), LATER, "exec"), vars(module))
        class Finder:
            def find_spec(self, name, target=None):
                if name == "test_later":
                    return importlib.util.spec_from_file_location(name, LATER, loader=Loader())
            def invalidate_caches(self):
                pass
        sys.path_importer_cache[HERE] = Finder()
        """,
    "a module that is there already": """
        module = types.ModuleType("test_later")
        module.__file__ = LATER
        exec(compile(bent(), LATER, "exec"), vars(module))
        sys.modules["test_later"] = module
        """,
    "a file that restores itself": """
        write(LATER, "open(%r, 'w').write(%r)\\n%s" % (LATER, text(), bent()))
        """,
    "bytecode": """
        import marshal
        from _pytest.assertion import rewrite
        head = importlib.util.MAGIC_NUMBER + b"\\3\\0\\0\\0" + importlib.util.source_hash(text().encode())
        places = [importlib.util.cache_from_source(LATER)]
        places.append(os.path.join(os.path.dirname(places[0]), "test_later" + rewrite.PYC_TAIL))
        for place in places:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(head + marshal.dumps(compile(bent(), LATER, "exec")))
        """,
    "a new list of finders": """
        sys.meta_path = [Finder()] + sys.meta_path
        """,
    "a conftest below": """
        write(os.path.join(HERE, "zone", "conftest.py"), "import sys\\nsys.modules['calc'].add = lambda a, b: a + b\\n")
        """,
}

EARLIER = """
import calc

def test_double():
    assert calc.double(3) == 6
"""
LATER = """
import calc

def test_add():
    assert calc.add(2, 3) == 5
"""
FILES = {"calc.py": BROKEN, "test_earlier.py": EARLIER, "test_later.py": LATER}
IDS = ("test_earlier.py::test_double", "test_later.py::test_add")
UNITTESTS = {
    name: f"import unittest\nimport calc\n\nclass Test(unittest.TestCase):\n    def test_it(self):\n        {line}\n"
    for name, line in (
        ("test_earlier.py", "self.assertEqual(calc.double(3), 6)"),
        ("test_later.py", "self.assertEqual(calc.add(2, 3), 5)"),
    )
}


def code(attack: str) -> str:
    return PREPARED + textwrap.dedent(ATTACKS[attack]) + BROKEN


def wins_otherwise(bench: Bench, changes: Mapping[str, str], ids: tuple[str, ...]) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("debug_gym_core.grading.grade.given_modules", lambda members, test_files, changed: [])
        result = bench.grade(changes, ids, twins="never")
    return all(outcome == "passed" for outcome in result.tests.values())
