"""Environments with tests to evaluate."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from debug_gym_core import RepoEnv, Tool
from debug_gym_core.testing.sample import ENTRYPOINT
from debug_gym_tool_eval import Eval

CODE = """
def total(prices):
    result = 0
    for price in prices:
        result -= price
    return result
"""
TESTS = """
from shop import total

def test_nothing():
    assert total([]) == 0

def test_some():
    prices = [1, 2]
    assert total(prices) == 3, "wrong total"
"""


@pytest.fixture
def evaluating(make_env: Callable[..., RepoEnv]) -> Callable[..., RepoEnv]:
    """Make environments with tests to evaluate."""
    return partial(with_tests, make_env)


@pytest.fixture(scope="module")
def evaluating_once(make_shared_env: Callable[..., RepoEnv]) -> Callable[..., RepoEnv]:
    """Make environments that all tests of a module share."""
    return partial(with_tests, make_shared_env)


def with_tests(
    make_env: Callable[..., RepoEnv], entrypoint: str = ENTRYPOINT, tests: str = TESTS, **settings: Any
) -> RepoEnv:
    """Make an environment with a module of tests; those that are functions need not be found first."""
    names = re.findall(r"^def (test_\w+)\(", tests, re.MULTILINE) if entrypoint == ENTRYPOINT else ()
    own = {"entrypoint": entrypoint, "max_score": None, "time_limit": None, "twins": "never"}
    own["tests"] = tuple(f"test_shop.py::{name}" for name in names)
    return make_env([Eval(), Change()], files={"shop.py": CODE, "test_shop.py": tests}, **{**own, **settings})


class Change(Tool):
    """Writes two files."""

    name = "change"

    def use(self, env: RepoEnv) -> str:
        env.workspace.write_bytes("shop.py", b"total = sum\n")
        env.workspace.write_bytes("other.py", b"")
        return "changed"
