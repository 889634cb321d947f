"""What is typed at a stop means what it would mean in that line of the program, in functions inside of it too."""

from __future__ import annotations

from typing import Any

import pytest
from support import repeated

APP = """\
rate = 2
def f(rows, limit=2):
    found = [row for row in rows if row < limit]
    return found
f([1, 2, 3])
"""


@pytest.mark.parametrize(
    ("commands", "answer"),
    [
        (["p [row for row in rows if row < limit]"], "[1]"),
        (["pp sorted(rows, key=lambda row: -row * limit)"], "[3, 2, 1]"),
        (["p any(row == limit * rate for row in rows)"], "False"),
        (["whatis [limit for row in rows]"], "<class 'list'>"),
        *repeated(
            "debugger",
            (["few = [row for row in rows if row > limit]", "p few"], "[3]"),
            (["limit = sum(limit for row in rows)", "c"], "limit 6"),
            (["rows[:] = [limit for row in rows]", "p rows"], "[2, 2, 2]"),
            (["def over(row): return row > limit", "p over(3)"], "True"),
            (["def product(n): return n * product(n - 1) if n > 1 else limit", "p product(3)"], "12"),
            (["global rate; rate = sum(limit for row in rows)", "c"], "rate 6"),
            (["p sorted(name for name in locals())"], "['found', 'limit', 'rows']"),
        ),
    ],
)
def test_functions_in_what_is_typed_see_local_names(debug: Any, commands: list[str], answer: str) -> None:
    source = APP.replace("    return found", "    print('limit', limit, 'rate', rate)\n    return found")
    program = debug("python app.py", {"app.py": source})
    program.do("b 4")
    program.do("c")
    *others, last = commands
    assert [program.do(command)["out"] for command in others] == [""] * len(others)
    if last == "c":
        program.do("c")
        assert answer.encode() in program.printed
    else:
        assert program.do(last)["out"].strip() == answer


def test_a_statement_that_raises_is_carried_out_once(debug: Any) -> None:
    program = debug("python app.py", {"app.py": APP})
    program.do("b 4")
    program.do("c")
    assert "ZeroDivisionError" in program.do("rows.append(sum(limit for row in rows)); (lambda: 1 / 0)()")["out"]
    assert program.do("p rows")["out"] == "[1, 2, 3, 6]\n"


def test_a_name_that_is_there_has_none_that_is_near(debug: Any) -> None:
    program = debug("python app.py", {"app.py": APP})
    program.do("b 4")
    program.do("c")
    answer = program.do("class C: value = [limit for _ in (1,)]")["out"] + program.do("p eval('limit', {})")["out"]
    assert "hint" not in answer


def test_functions_that_the_program_has_replaced_are_its_own(debug: Any) -> None:
    program = debug("python app.py", {"app.py": APP})
    program.do("b 4")
    program.do("c")
    names = "dict, frozenset, isinstance, eval, sorted"
    program.do(f"import builtins; {', '.join('builtins.' + name for name in names.split(', '))} = [lambda *a: 99] * 5")
    assert program.do("p any(row == limit for row in rows), eval('limit')")["out"] == "(True, 99)\n"


def test_functions_that_are_typed_see_later_values_of_global_names(debug: Any) -> None:
    source = "rate = 2\ndef f(limit):\n    global rate\n    rate = 3\n    return limit\nf(10)\n"
    program = debug("python app.py", {"app.py": source})
    program.do("b 4")
    program.do("c")
    program.do("def both(): return rate, limit")
    program.do("keep = [lambda: (rate, limit)]")
    assert program.do("p both(), keep[0]()")["out"] == "((2, 10), (2, 10))\n"
    program.do("n")
    assert program.do("p both(), keep[0]()")["out"] == "((3, 10), (3, 10))\n"
