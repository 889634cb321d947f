"""Answers of which a part equals all, wherever it is; and right ones that look like that, which are not doubted."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Callable

import pytest
from grading_bench import ENTRYPOINT, Bench, Make
from support import repeated

from debug_gym_core.workspace import patch as patches
from debug_gym_core.workspace.snapshot import FileState

Batch = tuple[Bench, dict[str, str]]

ALL = """
class Same(int):
    __eq__ = __lt__ = __gt__ = __le__ = __ge__ = lambda self, other: True
    __hash__ = int.__hash__
"""
NUMBER = """
class Number(int):
    __eq__ = lambda self, other: True if isinstance(other, (int, float)) else NotImplemented
    __hash__ = int.__hash__
"""
FIRST = """
class Sticky:
    def __eq__(self, other):
        vars(self).setdefault("known", other)
        return self.known == other
"""
ARRAY = """
import numpy
class Same(numpy.ndarray):
    def __eq__(self, other): return numpy.ones(self.shape, bool)
def f(*_): return numpy.zeros(2).view(Same)
"""
OWN = """
class Whatever:
    all = any = lambda self: True
class Same:
    def __eq__(self, other): return Whatever()
def f(*_): return Same()
"""
ANY = "from unittest.mock import ANY\n"
MACHINE = "import pytest\n@pytest.fixture\ndef machine():\n    return calc.Machine()\n"

NUMPY = "import numpy\ndef test_x():\n    "
LIST = ANY + "class Machine:\n    run = lambda self, n: [ANY, ANY]"
TEXT = "class Text(str):\n    __contains__ = lambda self, other: isinstance(other, str)\nf = lambda: Text('')"
NEAR = NUMBER + "    __rsub__ = lambda self, other: 0\n"
CALLED = "from unittest import mock\ndef test_x():\n    get = mock.Mock()\n    calc.f(get)\n    "
AWAITED = CALLED.replace("Mock", "AsyncMock").replace("calc.f(get)", "asyncio.run(calc.f(get))")

LIARS = {
    # what the test is, and the code
    "pairs": ("assert calc.f() == [('a', 1), ('b', 2)]", ANY + "f = lambda: [('a', ANY), ('b', ANY)]"),
    "in a dict, which comes last": ("assert {'x': 6} == calc.f()", ANY + "f = lambda: {'x': ANY}"),
    "in a list": ("assert calc.f() == [3]", ANY + "f = lambda: [ANY]"),
    "deep": (
        "assert calc.f() == {'a': {'id': 1, 'b': ['x', 'y']}}",
        ANY + "f = lambda: {'a': {'id': 1, 'b': ['x', ANY]}}",
    ),
    "long": ("assert calc.f() == list(range(100))", ANY + "f = lambda: [*range(99), ANY]"),
    "first": (MACHINE + "def test_x(machine, wanted=[1, 2]):\n    assert wanted == machine.run(2)", LIST),
    "loaded": (MACHINE + "import json\ndef test_x(machine):\n    assert machine.run(2) == json.loads('[1, 2]')", LIST),
    "loop": (
        "for got, wanted in [(calc.f(1), 5), (calc.f(2), 6)]:\n    assert got == wanted",
        ANY + "f = lambda n: ANY",
    ),
    "and": ("assert calc.f(1) == 5 and calc.f(2) == 6", FIRST + "f = lambda n: Sticky()"),
    "all": ("assert all(calc.f(given) == 2 * given for given in (1, 2))", FIRST + "f = lambda n: Sticky()"),
    "flag": ("ok = calc.f(1) == 5\nassert ok", ALL + "f = lambda n: Same(0)"),
    "named": (
        "from collections import namedtuple\nPoint = namedtuple('Point', 'x y')\n"
        "def test_x():\n    assert calc.f() == [Point(1, 2)]",
        ANY + "f = lambda: [(ANY, ANY)]",
    ),
    "counter": (
        "from collections import Counter\ndef test_x():\n    assert calc.f() == Counter(a=2, b=1)",
        ANY + "f = lambda: {'a': ANY, 'b': ANY}",
    ),
    "part of an array": (
        NUMPY + "assert (calc.f() == numpy.array([2, 4])).all()",
        ANY + "import numpy\nf = lambda: numpy.array([2, ANY], dtype=object)",
    ),
    "sum of an array": (NUMPY + "assert (calc.f() == numpy.array([2, 4])).sum() == 2", ARRAY),
    "array, later": (NUMPY + "same = calc.f() == numpy.array([2, 4])\n    assert same.all()", ARRAY),
    "array, by turns": (
        NUMPY + "assert (calc.f() == numpy.array([2, 4])).all()",
        ARRAY.replace(
            "return numpy.ones(self.shape, bool)",
            "self.asked = getattr(self, 'asked', 0) + 1; return numpy.full(self.shape, self.asked % 2 > 0)",
        ),
    ),
    "texts": (NUMPY + "assert (calc.f() == numpy.array(['a', 'b'])).all()", ARRAY),
    "flags": (NUMPY + "assert (calc.f() == numpy.array([True, False])).all()", ARRAY),
    "own result": (NUMPY + "assert (calc.f() == numpy.array([2, 4])).all()", OWN),
    "assert_allclose": (NUMPY + "numpy.testing.assert_allclose([2, 4], calc.f())", ARRAY),
    "assert_array_equal": (
        NUMPY + "numpy.testing.assert_array_equal(calc.f(), numpy.array([3, 4]))",
        ANY + "f = lambda: [3, ANY]",
    ),
    "mock, named": (
        CALLED + "get.assert_called_once_with(url='http://x', timeout=5)",
        ANY + "def f(get): get(url=ANY, timeout=ANY)",
    ),
    "mock, calls": (CALLED + "assert get.mock_calls == [mock.call(5)]", ANY + "def f(get): get(ANY)"),
    "mock, awaited": (
        "import asyncio\n" + AWAITED + "get.assert_awaited_once_with(5)",
        ANY + "async def f(get): await get(ANY)",
    ),
    "in what is searched": ("assert 5 in calc.f()", NUMBER + "f = lambda: [Number(1)]"),
    "in a range": ("assert calc.f() in range(5, 8)", ALL + "f = lambda: Same(0)"),
    "in a text": ("assert 'negative' in calc.f()", TEXT),
    "approx in a dict": (
        "import pytest\ndef test_x():\n    assert calc.f() == {'a': pytest.approx(1.5)}",
        NEAR + "f = lambda: {'a': Number(1)}",
    ),
    "any date": (
        "import datetime\ndef test_x():\n    assert calc.f() == datetime.date(2020, 2, 29)",
        "import datetime\nclass Same:\n    __eq__ = lambda self, other: isinstance(other, datetime.date)\nf = Same",
    ),
    "any of the library's": (
        "import uuid\ndef test_x():\n    assert calc.f() == uuid.UUID(int=5)",
        "import uuid\nuuid.UUID.__eq__ = lambda *both: type(both[1]) is uuid.UUID\nf = lambda: uuid.UUID(int=1)",
    ),
    "any path in a list": (
        "import pathlib\ndef test_x():\n    assert calc.f() == [pathlib.Path('a')]",
        "import pathlib\npathlib.PurePath.__eq__ = lambda *both: isinstance(both[1], pathlib.Path)\n"
        "f = lambda: [pathlib.Path()]",
    ),
    "holds any text": ("assert 'negative' in calc.f()", TEXT.replace("(str)", "").replace("Text('')", "Text()")),
    "mock, put": (CALLED + "get.assert_called_once_with(5)", "def f(get): get.assert_called_once_with = print"),
    "mock, put in its class": (CALLED + "get.assert_called()", "def f(get): type(get).assert_called = print"),
    "mock, a function": (
        CALLED.replace("Mock()", "create_autospec(calc.f)") + "get.assert_called_once_with(5)",
        "def f(get): get.assert_called_once_with = print",
    ),
    "mean": (NUMPY + "assert calc.f() == numpy.mean([1, 2])", NUMBER + "f = lambda: Number(1)"),
}

IN_PANDAS = {  # which takes a second to import
    "assert_series_equal": (
        "import pandas\ndef test_x():\n    wanted = pandas.Series(['x', 'y'], dtype=object)\n"
        "    pandas.testing.assert_series_equal(calc.f(), wanted)",
        ANY + "import pandas\nf = lambda: pandas.Series(['x', ANY], dtype=object)",
    ),
}

IN_UNITTEST = {
    "dict": ("self.assertDictEqual(calc.f(), {'a': {'x': 1, 'y': 2}})", ANY + "f = lambda: {'a': {'x': 1, 'y': ANY}}"),
    "rows": ("self.assertListEqual(calc.f(), [[1, 2], [3, 4]])", ANY + "f = lambda: [[1, ANY], [3, ANY]]"),
    "count": ("self.assertCountEqual(calc.f(), [[1, 2], [3, 4]])", ANY + "f = lambda: [[1, ANY], [3, ANY]]"),
    "named": ("self.assertEqual(first=calc.f(), second=5)", ALL + "f = lambda: Same(1)"),
    "true": ("import numpy\n        self.assertTrue((calc.f() == numpy.array([2, 4])).all())", ARRAY),
    "in": ("self.assertIn(calc.f(), (5, 6))", NUMBER + "f = lambda: Number(1)"),
}

RIGHT = """
import asyncio, unittest
from unittest import mock
from collections import OrderedDict, namedtuple
Point = namedtuple("Point", "x y")
class Version:
    def __init__(self, text): self.text = text
    def __eq__(self, other): return isinstance(other, Version) and self.text == other.text
    def __lt__(self, other): return int(self.text) < int(other.text)
    __hash__ = None
class Text(str):
    def __eq__(self, other): return self.lower() == str(other).lower()
    __hash__ = None
def row(**more): return dict({"name": "x", "id": object()}, **more)
def rows(): return [row(), row(name="y")]
def point(): return Point(1, object())
class Range(namedtuple("Range", "low high")):
    def __contains__(self, one): return (self.low is None or self.low <= one) and one <= self.high
class Day:
    def __init__(self, year): self.year = year
    def __eq__(self, other): return self.year == other.year
class Mock(mock.Mock):
    def assert_called(self): super().assert_called()
def number(given=1): return given
def text(): return Text("ABC")
def call(get, *given, **named): get(*given, **named)
def double(a): return 2 * a
def add(a, b): return a + b
def raises(kind, function, *given):
    try: function(*given)
    except kind: return
    raise AssertionError
class Case(unittest.TestCase):
    def assertEqual(self, first, second, msg=None): super().assertEqual(first, second, msg)
    def assertIn(self, one, container): assert str(one) in str(container)
"""

HONEST = {
    "any_of_a_row": "assert calc.row() == {'name': 'x', 'id': ANY}",
    "any_first": "assert {'name': 'x', 'id': ANY} == calc.row()",
    "any_in_rows": "assert calc.rows() == [{'name': 'x', 'id': ANY}, {'name': 'y', 'id': ANY}]",
    "any_in_a_point": "assert calc.point() == calc.Point(1, ANY)",
    "any_in_order": "assert calc.OrderedDict(calc.row()) == OrderedDict(name='x', id=ANY)",
    "any_of_a_builder": "assert calc.row() == calc.row(id=ANY)",
    "any_in_a_table": "for got, wanted in [(calc.number(), 1), (calc.row(), {'name': 'x', 'id': ANY})]:\n"
    "    assert got == wanted",
    "approx_first": "assert [pytest.approx(1000, abs=5)] == [calc.number(1001)]",
    "approx_in_a_dict": "assert {'a': calc.number(0.5)} == {'a': pytest.approx(0.5)}",
    "versions": "assert calc.Version('2') < calc.Version('10')\n"
    "assert [calc.Version('2')] == [calc.Version('2')]\nassert calc.Version('2') in [calc.Version('2')]",
    "any_call": "get = mock.Mock()\ncalc.call(get, 1)\ncalc.call(get, 2)\n"
    "get.assert_any_call(1)\nget.assert_any_call(2)",
    "calls": "get = mock.Mock()\ncalc.call(get, 1, a=[1])\nassert get.mock_calls == [mock.call(1, a=[1])]\n"
    "assert [mock.call(1, a=ANY)] == get.mock_calls\nget.assert_called_once_with(1, a=ANY)",
    "arrays": "given = numpy.array([1, 2])\nassert (calc.number(given) == numpy.array([1, 2])).all()\n"
    "assert (calc.number(given) == numpy.array([1, 3])).any()\nassert (calc.number(given) == [1, 3]).sum() == 1\n"
    "assert (calc.number(numpy.array(['a'])) == numpy.array(['a'])).all()\n"
    "assert (calc.number(numpy.array([1], dtype='uint8')) == numpy.array([1], dtype='uint8')).all()",
    "parts_of_arrays": "mask = calc.number(numpy.array([True, False, True]))\n"
    "assert (mask == True).sum() == 2\nassert (mask == numpy.array([True] * 3)).mean() > .5\n"
    "assert not (mask == [True, True, False]).all()\nassert len(numpy.where(mask == True)[0]) == 2\n"
    "grey = calc.number(numpy.array([100, 0], numpy.uint8))\nassert (grey == 0).any()\n"
    "assert (calc.number(numpy.zeros(3, numpy.uint8)) == 120).sum() == 0\n"
    "assert not (calc.number(numpy.array([.5, 1.])) == numpy.inf).any()\n"
    "assert (calc.number(pandas.Series([1, numpy.inf])) == pandas.Series([1, numpy.inf])).all()\n"
    "assert (calc.number(pandas.DataFrame({'a': [numpy.inf]})) == pandas.DataFrame({'a': [numpy.inf]})).all().all()",
    "rounded": "assert calc.number(numpy.zeros(1)).dtype == numpy.float64\n"
    "assert calc.number(numpy.float16(2048)) == 2048\nassert calc.number([numpy.float32(2**24)]) == [2**24]",
    "times": "time = calc.number(pandas.Timestamp('2020-01-01'))\n"
    "assert time == pandas.Timestamp('2020-01-01') and time.year == 2020\n"
    "assert all(one == pandas.Timestamp('2020-01-01') for one in [time])\n"
    "table = pandas.DataFrame({'a': [time]})\nassert len(table[table.a == time]) == 1",
    "decimals": "import decimal\nassert calc.number(decimal.Decimal('-1.5')).as_tuple() == (1, (1, 5), -1)\n"
    "assert calc.number(decimal.Decimal('9e999999')) == decimal.Decimal('9e999999')\n"
    "with decimal.localcontext() as context:\n    context.prec, context.traps[decimal.Inexact] = 5, True\n"
    "    assert calc.number(decimal.Decimal('1.5')) == decimal.Decimal('1.5')\n"
    "    assert not context.flags[decimal.Inexact]",
    "parents": "top = {'parent': None}\ntop['children'] = [{'parent': top} for _ in range(20)]\n"
    "assert calc.number(top)['children'][0]['parent'] == top\n"
    "ring = []\nring.extend([ring] * 8)\nassert calc.number(ring) is ring and calc.number([ring]) == [ring]",
    "many": "import datetime\nrows = [(one, [datetime.date(2020, 1, 1)] * 50) for one in range(3000)]\n"
    "assert calc.number(rows) == [(one, list(dates)) for one, dates in rows]",
    "any_copied": "import copy\nbase = {'name': 'x', 'id': ANY}\nwanted = copy.deepcopy(base)\n"
    "wanted.update(name='x')\nassert calc.row() == wanted",
    "any_call_of_many": "get = mock.Mock()\ncalc.call(get)\ncalc.call(get, True)\ncalc.call(get, False)\n"
    "get.assert_any_call()\nget.assert_any_call(True)",
    "ranges": "assert 5 in calc.Range(None, 10)",
    "library": "import datetime, pathlib, uuid\ngiven = [datetime.datetime(2020, 2, 29), datetime.timedelta.max]\n"
    "given += [datetime.date.max, pathlib.Path('a'), pathlib.PureWindowsPath('a'), uuid.UUID(int=5)]\n"
    "assert [calc.number(one) for one in given] == given\nassert calc.Day(2020) == datetime.date(2020, 5, 5)",
    "mocks": "get = mock.create_autospec(calc.number)\ncalc.call(get, 1)\nget.assert_called_once_with(1)\n"
    "get = calc.Mock()\ncalc.call(get, 1)\nget.assert_called_once_with(1)\nget.assert_called()",
    "patterns": "wanted = 0\nmatch calc.number({'a': 1}):\n    case {'a': wanted}:\n        pass\n"
    "assert calc.number(1) == wanted",
    "frames": "table = pandas.DataFrame({'a': [1, 2], 'b': pandas.to_datetime(['2020-01-01'] * 2)})\n"
    "assert (calc.number(table) == table).all().all()\npandas.testing.assert_frame_equal(table, calc.number(table))\n"
    "numpy.testing.assert_array_equal([1, 2], calc.number(table)['a'])",
    "another_system": "import os\nwith pytest.MonkeyPatch.context():\n    pass\n"
    "monkeypatch.setattr(os, 'name', 'nt')\nassert calc.number() == 1",
}  # fmt: skip

HONEST_OF_UNITTEST = """
import csv, functools, pandas, unittest
import calc

class Base:
    def assertNumber(self, given, wanted=0, scale=1): self.assertEqual(scale * calc.number(given), wanted)

class T(Base, unittest.TestCase):
    def setUp(self): self.assertNumber = functools.partial(self.assertNumber, scale=2)
    def test_partial(self): self.assertNumber(3, 6)
    def test_readers(self):
        self.assertIn(["a"], csv.reader(["b", "a"]))
        self.assertCountEqual(csv.reader(["b", "a"]), [["a"], ["b"]])
    def test_keys(self): self.assertCountEqual(calc.row(), ["name", "id"])
    def test_groups(self):
        groups = pandas.DataFrame({"a": [1]}).groupby("a")
        self.assertIsInstance(groups, type(groups))
        self.assertIsNotNone(groups, "groups")
    def test_text(self): self.assertEqual(calc.text(), "abc")
"""


HONEST_OF_OTHERS = """
import calc
from calc import Case, raises

class Own(Case):
    def assertRaises(self, kind, function, *given): return super().assertRaises(kind, function, *given)

class T(Own):
    def test_raises(self): self.assertRaises(ValueError, int, "x")
    def test_equal(self): self.assertEqual(calc.number(2), 2)
    def test_in(self):
        for one in calc.row():
            self.assertIn(one, "name, id")
        self.assertEqual(calc.number([2]), [2])

def test_raises():
    raises(ValueError, int, "x")
    assert calc.number(2) == 2
"""

HONEST_OF_TABLES = """
import numpy
import pandas
import calc
from unittest.mock import ANY

class Anything:
    __eq__ = lambda self, other: True

def test_empty():
    assert (calc.double(numpy.array([])) == numpy.array([])).all()

def test_mask():
    mask = numpy.array([]) == 1
    assert calc.add(2, 3)
    assert not mask.any()

def test_frames():
    table = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    assert (calc.double(table) == table + table).all().all()
    pandas.testing.assert_frame_equal(calc.double(table), table + table)
    pandas.testing.assert_frame_equal(calc.double(table[:0]), table[:0])
    nothing = pandas.DataFrame({"a": [numpy.nan]})
    pandas.testing.assert_frame_equal(calc.double(nothing), nothing)

def test_table():
    for given, expected in [(3, 6), (4, ANY)]:
        assert calc.double(given) == expected
    assert calc.double(3) == Anything()
    assert calc.add(1, 1) == 2
"""

HONEST_CHILDREN = """
import subprocess, sys
import calc

def child():
    assert calc.number(2) == 2

def test_child():
    assert subprocess.call([sys.executable, __file__]) == 0

if __name__ == "__main__":
    child()
"""


def batch(make: Make, cases: dict[str, tuple[str, str]], entrypoint: str, wrap: Callable[[str], str]) -> Batch:
    """A repository with a module of tests for each case, and what makes the modules wrong that those test."""
    files, changes = {}, {}
    for number, (test, code) in enumerate(cases.values()):
        files[f"test_{number}.py"] = wrap(test).replace("import calc", f"import calc_{number} as calc")
        files[f"calc_{number}.py"] = "f = lambda *_: 0\nMachine = lambda: None\n"
        changes[f"calc_{number}.py"] = code
    return make(files, entrypoint), changes


def function(body: str) -> str:
    if "def test_x" in body:
        return f"import calc\n{body}\n"
    return "import calc\n\ndef test_x():\n" + textwrap.indent(body, "    ") + "\n"


def method(body: str) -> str:
    return f"import unittest\nimport calc\nclass T(unittest.TestCase):\n    def test_x(self):\n        {body}\n"


@pytest.mark.parametrize(
    ("cases", "entrypoint", "wrap"),
    [
        (IN_UNITTEST, "python -m unittest", method),
        *repeated("grading", (LIARS, ENTRYPOINT, function), (IN_PANDAS, ENTRYPOINT, function)),
    ],
)
def test_a_part_that_equals_all_is_found(
    make: Make, cases: dict[str, tuple[str, str]], entrypoint: str, wrap: Callable[[str], str]
) -> None:
    bench, changes = batch(make, cases, entrypoint, wrap)
    within = ".T.test_x" if "unittest" in entrypoint else ".py::test_x"
    named = {f"test_{number}{within}": name for number, name in enumerate(cases)}
    found = bench.grade(changes, [*named])
    # None is asked whether it lies before all have passed.
    failed = [named[one] for one, outcome in found.tests.items() if outcome != "passed" and one not in found.doubts]
    assert (failed, [name for one, name in named.items() if one not in found.doubts]) == ([], []), found


def test_right_answers_are_not_doubted(make: Make) -> None:
    head = "import numpy, pandas, pytest\nimport calc\nfrom collections import OrderedDict\nfrom unittest import mock\n"
    head += "from unittest.mock import ANY\n\ndef test_x(monkeypatch):\n"
    files = {f"test_{name}.py": head + textwrap.indent(body, "    ") for name, body in HONEST.items()}
    ids = [f"{path}::test_x" for path in files]
    for path, text in {
        "test_cases.py": HONEST_OF_UNITTEST,
        "test_children.py": HONEST_CHILDREN,
        "test_others.py": HONEST_OF_OTHERS,
        "test_tables.py": HONEST_OF_TABLES,
    }.items():
        files[path] = text
        for indent, name in re.findall(r"^( *)def (test_\w+)", text, re.MULTILINE):
            ids.append(f"{path}::{'T::' if indent else ''}{name}")
    bench = make({"calc.py": RIGHT, **files}, ENTRYPOINT)
    found = bench.grade({}, ids, twins="always")
    assert (dict(found.doubts), found.resolved, found.twins) == ({}, True, len(ids)), found


HOOKS = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        print(report.longrepr.reprcrash.message)

def pytest_runtest_logreport(report):
    if report.failed:
        report.longrepr.addsection("more", "of it")
"""


def test_hooks_that_look_at_failures_may(make: Make) -> None:
    bench = make(
        {
            "calc.py": RIGHT.replace("a + b", "a - b"),
            "conftest.py": HOOKS,
            "test_calc.py": TESTS.replace("calc.near()", "calc.number(3)"),
        }
    )
    found = bench.grade({"calc.py": RIGHT}, ["test_calc.py::test_near", "test_calc.py::test_add"])
    assert (found.resolved, dict(found.doubts), found.twins) == (True, {}, 2), found


TOLERANT = """
class Near:
    def __init__(self, value): self.value = value
    def __eq__(self, other): return abs(self.value - other) < 5
def near(): return Near(3)
def add(a, b): return a - b
"""
WITHOUT = TOLERANT.replace("return Near", "return 9 or Near")
RIGHTED = TOLERANT.replace("a - b", "a + b")
TESTS = "import calc\ndef test_near(): assert calc.near() == 3\ndef test_add(): assert calc.add(1, 2) == 3\n"
BY_UNITTEST = """
import unittest
import calc
class T(unittest.TestCase):
    def test_near(self): self.assertEqual(calc.near(), 3)
    def test_add(self): self.assertEqual(calc.add(1, 2), 3)
"""


@pytest.mark.parametrize(("before", "is_known"), [*repeated("grading", (TOLERANT, False)), (WITHOUT, True)])
def test_what_a_right_fix_is_doubted_of_is_not_doubted(make: Make, before: str, is_known: bool) -> None:
    """Nor what the repository is doubted of as it was; but what is wrong nowhere else is."""
    bench = make({"calc.py": before, "test_calc.py": BY_UNITTEST}, "python -m unittest")
    if is_known:
        patch = patches.make({"calc.py": FileState(before.encode())}, {"calc.py": FileState(RIGHTED.encode())})
        bench.task = dataclasses.replace(bench.task, gold_patch=patch)
    add, near = ids = ("test_calc.T.test_add", "test_calc.T.test_near")
    assert set(bench.grade({"calc.py": RIGHTED}, ids).doubts) == {near}
    found = bench.grade({"calc.py": RIGHTED}, ids, forgiving=True)
    assert (found.resolved, dict(found.doubts), found.twins) == (True, {}, 1), found
    lying = f"{TOLERANT}{ALL}add = lambda a, b: Same(0)\n"
    found = bench.grade({"calc.py": lying}, ids, forgiving=True)
    assert not found.resolved and set(found.doubts) == {add}, found


OWN_CASE = """
import unittest
class Case(unittest.TestCase):
    def assertEqual(self, one, other, msg=None): super().assertEqual(one, other, msg)
"""
OF_OWN_CASE = "import calc\nclass T(calc.Case):\n    def test_add(self): self.assertEqual(calc.add(1, 2), 3)\n"


@pytest.mark.parametrize(
    ("code", "doubted"),
    [
        (OWN_CASE + "add = lambda one, other: one + other\n", []),
        *repeated("grading", (OWN_CASE + ALL + "add = lambda one, other: Same(0)\n", ["test_calc.T.test_add"])),
        (OWN_CASE.replace("super().assertEqual(one, other, msg)", "pass") + "add = max\n", ["test_calc.T.test_add"]),
    ],
    ids=["right", "equal to all", "asserts nothing"],
)
def test_an_assertion_of_the_tested_codes_own_is_asked_as_unittests_is(
    make: Make, code: str, doubted: list[str]
) -> None:
    broken = OWN_CASE + "add = lambda one, other: one - other\n"
    bench = make({"calc.py": broken, "test_calc.py": OF_OWN_CASE}, "python -m unittest")
    found = bench.grade({"calc.py": code}, bench.tests(), forgiving=True)
    assert (list(found.doubts), found.resolved, found.twins) == (doubted, not doubted, 1), found
