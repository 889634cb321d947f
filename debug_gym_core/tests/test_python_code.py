"""Source that the host reads, from many threads at once."""

from __future__ import annotations

import ast
import contextlib
import gc
import inspect
import textwrap
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from debug_gym_core.sandbox.python_code import parse

SOURCE = inspect.getsource(textwrap)


@pytest.fixture
def interleaved() -> Iterator[None]:
    """Threads take turns in the middle of all that allocates, as they do by chance where a lot is collected."""

    def pause(phase: str, info: dict[str, int]) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(pause)
    gc.set_threshold(50, 1000, 1000)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(pause)


def test_threads_leave_warnings_as_they_were(interleaved: None) -> None:
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True) as told, ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("always")
        list(pool.map(lambda _: parse("x = '\\d'\nassert (1, 'always')\n"), range(40)))
    assert list(warnings.filters) == before and not told


def test_threads_parse_at_once(interleaved: None) -> None:
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(lambda _: parse(SOURCE), range(40)))
    assert {ast.dump(tree) for tree in trees} == {ast.dump(ast.parse(SOURCE))}


def test_others_parse_meanwhile(interleaved: None) -> None:
    ended = threading.Event()

    def other() -> None:
        while not ended.wait(0.02):
            with contextlib.suppress(SystemError):  # theirs to bear
                ast.parse("x = [1, (2, 3)]")

    with ThreadPoolExecutor(1) as pool:
        pool.submit(other)
        try:
            for _ in range(30):
                parse(SOURCE)
        finally:
            ended.set()


@pytest.mark.parametrize("source", ["def", "(" * 10_000, "-" * 99_999 + "1", b"x = '\0'"])
def test_what_is_no_python_is_told(source: str | bytes) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        parse(source)
