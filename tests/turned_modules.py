"""Test modules that are run with what they expect turned, and what is in them: what the tests of turning share."""

from __future__ import annotations

import ast
from typing import Any

from debug_gym_core.grading.runner.expectations import Expectations
from debug_gym_core.grading.runner.turning import turn
from debug_gym_core.grading.runner.twins import within

SECRET = "0123456789abcdef"

HEAD = r"""
import contextlib, logging, pytest, unittest, warnings
from unittest import mock
import numpy as np, pandas as pd
import numpy.testing as npt
from numpy.testing import assert_array_equal

class Anything:
    def __eq__(self, other):
        return True
    __hash__ = None

exec("class Same:\n def __eq__(self, other):\n  return True")

exec('''
class Empty:
    def __eq__(self, other):
        return vars(self) == vars(other) or str(self) == str(other)
    def __str__(self):
        return ""

class Learner(int):
    def __eq__(self, other):
        return vars(self).setdefault("learnt", other) == other

class Less:
    __lt__ = __le__ = lambda self, other: True
    __gt__ = __ge__ = lambda self, other: False

class Beyond:
    __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: True

class Long(str):
    def __eq__(self, other):
        return len(self) == len(other)

class Near(float):
    def __eq__(self, other):
        return abs(self - other) < 100

class Kind(type):
    def __instancecheck__(self, one):
        return True
    __subclasscheck__ = __instancecheck__

class Any(Exception, metaclass=Kind):
    pass

class Many(ValueError, TypeError, KeyError, IndexError, NotImplementedError):
    pass

@contextlib.contextmanager
def taking():
    with contextlib.suppress(Exception):
        yield
''')

class Lenient:
    @staticmethod
    def raises(expected):
        return contextlib.suppress(BaseException)

class Taker:
    def raises(self, kind, function, *given):
        self.taken = kind, function

unknown = mock.MagicMock(unsafe=True)

def value(given=5):
    return given

def check(left, right):
    assert left == right

def same(left, right):
    return left == right

class Number(int):
    __hash__ = int.__hash__
    def __eq__(self, other):
        return type(other) is Number and int(self) == int(other)

def test_other():
    assert value() == 5

def test_it():
    '''What it is.'''
"""


def turned(text: str) -> dict[str, Any]:
    """The namespace of a module that is run turned."""
    tree = ast.parse(text)
    made = Expectations(SECRET, keeps=True)
    turn(tree, "_turned", ["test_it", "test_other"], made)
    code = compile(tree, "<test>", "exec")
    made.anything.own = made.statements.own = frozenset(map(id, within(code)))
    space: dict[str, Any] = {"_turned": made, "__name__": "turned", "_code": code}
    exec(code, space)
    return space
