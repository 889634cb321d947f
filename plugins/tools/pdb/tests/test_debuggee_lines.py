"""Breakpoints on lines that begin no statement, and on lines of the file in which the program is stopped."""

from __future__ import annotations

from typing import Any

import pytest
from support import repeated, version_of

APP = """\
def keep(name): return lambda function: function
text = '''
one
'''
pair = (
    # the first
    1,

    2,
)
def total(
    a,
    # a comment

    b,
):
    return {

        # keys
        a: b,

        'more': '''
        '''
    }
@keep(
    # its name
    "other"
)
def other(): return 1
'''
in between
'''.strip()
assert (

    total(1, 2)
)
"""


@pytest.mark.parametrize(
    ("line", "first"),
    [
        (3, 2),
        *repeated("debugger", (4, 2)),
        (6, 5),
        *repeated("debugger", *((one, 5) for one in (7, 8, 9, 10))),
        (18, 17),
        *repeated("debugger", *((one, 17) for one in (19, 20, 21, 22, 23, 24))),
        (30, 30),
        *repeated("debugger", (31, 30), (32, 30)),
        (34, 33),
        *repeated("debugger", (35, 33), (36, 33)),
    ],
)
def test_every_line_inside_a_statement_stands_for_its_first(debug: Any, python: str, line: int, first: int) -> None:
    if version_of(python) < (3, 8) and first == 30:
        pytest.skip("up to Python 3.7, a statement that starts with a string of several lines has the last of them")
    program = debug("python app.py", {"app.py": APP})
    assert program.do(f"b {line}")["out"] == f"Breakpoint 1 at {program.root}/app.py:{first}\n"
    stop = program.do("c")["stop"]
    assert (stop["reason"], stop["breakpoint"]) == ("breakpoint", 1)


def test_lines_of_a_decorator_stand_for_its_first(debug: Any) -> None:
    program = debug("python app.py", {"app.py": APP})
    for line in (25, 26, 27, 28):
        answer = program.do(f"tbreak {line}")
        assert answer["out"].splitlines()[0].endswith("/app.py:25"), (line, answer["out"])


IN_ONE_LINE = """\
def f(xs):
    r = 0
    for x in xs: r += sum((y for y in [x]), sum([y for y in (0, 0)]))
    while r > 3: r -= 1
    return r
f([1, 2, 3])
"""


@pytest.mark.parametrize(
    ("breakpoint", "values"),
    [
        ("b 4", ["6", "5", "4"]),
        *repeated("debugger", ("b 4, r < 6", ["5", "4"]), ("b 4, any(one < 5 for one in [r])", ["4"])),
    ],
)
def test_a_loop_in_one_line_stops_at_each_pass(
    debug: Any, backends: list[str], breakpoint: str, values: list[str]
) -> None:
    program = debug("python app.py", {"app.py": IN_ONE_LINE}, backends=backends)
    program.do(breakpoint)
    for value in values:
        program.do("c")
        assert program.do("p r")["out"].strip() == value


def test_a_step_comes_to_each_pass_of_a_loop_in_one_line_and_to_no_element(
    debug: Any, backends: list[str], python: str
) -> None:
    program = debug("python app.py", {"app.py": IN_ONE_LINE}, backends=backends)
    program.do("b 2")
    last = [] if version_of(python) >= (3, 10) else [4]  # the condition is asked at the same place each time
    assert program.lines("c", *"nnnnnnnn") == [2, 3, 3, 3, 3, 4, 4, 4, *last, 5][:9]


LIBRARY = """\
import threading
import time

class Worker(threading.Thread):
    def run(self):
        time.sleep(60)


def main():
    worker = Worker()
    worker.daemon = True
    worker.start()
    worker.join()
main()
"""


def test_lines_of_another_file_than_the_repositorys_are_said_to_be(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LIBRARY})
    program.do("b 13")
    program.do("c")
    stop = program.do("s")["stop"]
    while not stop["file"].endswith("/threading.py"):
        stop = program.do("s")["stop"]
    hint = (
        f"hint: this is line {{}} of {stop['file']}, where the program is stopped; b app.py:{{}} is of the repository\n"
    )
    refused = program.do("b 2")
    assert refused["failed"] and refused["out"].endswith(hint.format(2, 2))
    line = stop["line"]
    assert program.do(f"tbreak {line}, True")["out"] == (
        f"Breakpoint 2 at {stop['file']}:{line}\n" + hint.format(line, line)
    )
    assert "hint" not in program.do(f"b {stop['file']}:{line}")["out"]
    while "app.py(" not in program.do("u")["out"]:
        pass
    assert program.do("b 10")["out"] == f"Breakpoint 4 at {program.root}/app.py:10\n"
