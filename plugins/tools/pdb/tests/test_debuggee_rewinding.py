"""Going back to stops: what the program is there, what it does from there on, and what it notices of it."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest
from debugged_programs import dedent
from support import repeated

LOOP = """\
    import random
    def f(n):
        found = []
        for i in range(n):
            found.append(random.random())
            last = found[-1]
        return found
    result = f(5)
    print("end", len(result))
"""

ALL_SORTS = """\
    import collections, itertools, random, sys
    class Node:
        def __init__(self, value):
            self.value = value
            self.next = None
    def numbers():
        total = 0
        while total < 1000:
            total += (yield total) or 1
    def work():
        seen = collections.OrderedDict()
        numbered = numbers()
        next(numbered)
        counter = itertools.count()
        text = open("data.txt")
        head = None
        for line in text:
            try:
                value = numbered.send(random.randrange(10))
                if value % 3 == 0:
                    raise ValueError(value)
                seen[line] = value
            except ValueError as error:
                seen[line] = str(error)
            node = Node(next(counter))
            node.next, head = head, node
            add = lambda one: one + node.value
            shown = add(len(seen))
        text.close()
        return seen
    result = work()
    print("end", list(result.values()), file=sys.stderr)
"""


def brief(message: dict[str, Any]) -> Any:
    """What a stop shows."""
    stop = message["stop"]
    return [stop.get(key) for key in ("number", "line", "reason", "locals", "source", "stack", "exceptions", "return")]


def test_a_program_is_again_what_it_was(back: Any) -> None:
    program = back("python app.py", dedent(LOOP))
    program.do("b 6")
    assert program.do("c")["stop"]["number"] == 2
    first = program.do("p found")["out"]
    program.do("c")
    assert program.do("c")["stop"]["number"] == 4
    third = program.do("p found")["out"]
    message = program.do("back 2")
    assert message["stop"]["number"] == 2 and "Back at stop 2, from stop 4" in message["out"]
    assert program.do("p found")["out"] == first
    program.do("c")
    program.do("c")
    assert program.do("p found")["out"] == third  # its random numbers are the same, too
    program.do("cl 1")
    assert program.do("c")["status"] == 0
    assert b"end 5" in program.printed


@pytest.mark.parametrize("command", ["s", *repeated("debugger", "n")])
def test_from_each_stop_on_it_does_the_same_again(back: Any, command: str) -> None:
    program = back("python app.py", {**dedent(ALL_SORTS), "data.txt": "one\ntwo\nthree\nfour\n"})
    program.do("b work")
    program.do("c")
    seen = {1: None, 2: None}
    for _ in range(10):
        message = program.do(command)
        seen[message["stop"]["number"]] = brief(message)
    for number in (11, 4, 7, 3):
        message = program.do(f"rewind {number}")
        assert brief(message) == seen[number]
        for after in range(number + 1, 13):
            assert brief(program.do(command)) == seen[after]


def test_what_was_done_at_a_stop_is_undone_there(back: Any) -> None:
    program = back("python app.py", dedent(LOOP))
    program.do("tbreak 6")
    program.do("c")
    program.do("found.append(4711)")
    program.do("n = 17")
    assert program.do("p found[1:], n")["out"] == "([4711], 17)\n"
    message = program.do("rewind 2")
    assert "Back at stop 2; " in message["out"]
    assert program.do("p found[1:], n")["out"] == "([], 5)\n"


def test_breakpoints_are_as_the_user_left_them(back: Any) -> None:
    program = back("python app.py", dedent(LOOP))
    program.do("b 5")
    program.do("tbreak 6")
    program.do("c")
    program.do("c")
    program.do("cl 1")
    program.do("b 7")
    program.do("condition 3 n == 5")
    program.do("b 6, i > 2")
    assert program.do("back")["stop"]["line"] == 5
    assert [(one["number"], one["line"], one["condition"]) for one in program.breakpoints["list"]] == [
        (3, 7, "n == 5"),
        (4, 6, "i > 2"),
    ]
    stop = program.do("c")["stop"]
    assert (stop["line"], stop["breakpoint"]) == (6, 4) and program.do("p i")["out"] == "3\n"
    program.do("b 2")
    assert program.breakpoints["list"][-1]["number"] == 5


def test_the_program_ends_as_it_would_have(back: Any) -> None:
    program = back("python app.py", dedent("import sys\nx = 1\nx = 2\nsys.exit(7)\n"))
    for _ in range(2):
        program.do("n")
    program.do("back")
    message = program.do("c")
    assert (message["t"], message["status"]) == ("exit", 7)
    assert program.process.wait(10) == 7


def test_a_signal_that_ends_it_is_told(back: Any) -> None:
    program = back("python app.py", dedent("import os, signal\nx = 1\nx = 2\nos.kill(os.getpid(), signal.SIGUSR1)\n"))
    for _ in range(2):
        program.do("n")
    program.do("back 2")
    assert program.do("c") == {"t": "dead", "status": -signal.SIGUSR1}


def test_an_uncaught_exception_can_be_gone_back_from(back: Any) -> None:
    program = back("python app.py", dedent("def f(x):\n    y = 0\n    return x / y\nf(3)\n"))
    program.do("b 2")
    program.do("c")
    assert program.do("c")["stop"]["reason"] == "exception"
    program.do("back")
    program.do("n")
    program.do("y = 2")
    assert program.do("c")["status"] == 0


def test_it_is_interrupted_wherever_it_goes_on(back: Any) -> None:
    program = back("python app.py", dedent("import time\nx = 1\nwhile x:\n    time.sleep(0.01)\nprint('end')\n"))
    program.do("n")
    program.do("n")
    program.do("back")
    program.send({"cmd": "c", "rest": [], "for": 0})
    time.sleep(0.1)
    assert program.interrupt()["stop"]["reason"] == "interrupt"
    program.do("x = 0")
    assert program.do("c")["status"] == 0


def test_stops_are_listed(back: Any) -> None:
    program = back("python app.py", dedent(LOOP))
    program.do("b 7")
    program.do("c")
    program.do("n")
    assert program.do("rewind")["out"].splitlines() == [
        "    1  before the program's first line",
        "    2  breakpoint 1 at app.py:7 in f",
        ">   3  return at app.py:7 in f",
    ]
    assert "back [COUNT]" in program.do("help")["out"]
    assert "Go back to the last stop before this one that was kept" in program.do("help back")["out"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("back 2", "*** only 1 can be gone back to before this stop; rewind lists them"),
        ("back x", "*** back takes how many stops to go back, as in back 2"),
        *repeated(
            "debugger",
            ("back 0", "*** back takes how many stops to go back, as in back 2"),
            ("back ²", "*** back takes how many stops to go back, as in back 2"),
            ("rewind 9", "*** there is no stop 9"),
            ("rewind x", "*** rewind takes the number of a stop, as in rewind 2; alone it lists them"),
        ),
    ],
)
def test_what_cannot_be_gone_back_to_is_said(back: Any, command: str, said: str) -> None:
    program = back("python app.py", dedent("x = 1\ny = 2\n"))
    program.do("n")
    message = program.do(command)
    assert message["failed"] and message["out"].splitlines()[0] == said
    assert program.do("p x")["out"] == "1\n"


def test_a_loop_of_events_goes_on(back: Any) -> None:
    program = back(
        "python app.py",
        dedent(
            """\
            import asyncio
            async def part(n):
                await asyncio.sleep(0.01)
                return n
            async def whole():
                total = 0
                for n in range(4):
                    total += await part(n)
                    seen = n
                loop = asyncio.get_event_loop()
                await asyncio.sleep(0.01)
                return total
            loop = asyncio.new_event_loop()
            print("total", loop.run_until_complete(whole()))
            """
        ),
    )
    program.do("b 9")
    for _ in range(3):
        program.do("c")
    program.do("back 2")
    assert program.do("p total, n")["out"] == "(0, 0)\n"
    program.do("cl 1")
    assert program.do("c")["status"] == 0
    assert b"total 6" in program.printed


def test_a_failing_test_is_gone_back_from(back: Any, debug_tests: Any) -> None:
    program = back(
        "python -m pytest -q test_app.py",
        {
            "test_app.py": "def double(x):\n    y = x + x + 1\n    return y\n\n"
            "def test_double(capsys):\n    print('seen')\n    assert double(2) == 4\n"
            "    assert capsys.readouterr().out == 'seen\\n'\n"
        },
    )
    program.do("b test_app.py:3")
    program.do("c")
    assert program.do("c")["stop"]["reason"] == "test failed"
    stop = program.do("back")["stop"]
    assert (stop["file"], stop["line"], stop["number"]) == ("test_app.py", 3, 2)
    program.do("y = 4")
    program.do("cl 1")
    message = program.do("c")
    assert (message["t"], message["status"]) == ("exit", 0)
    assert b"1 passed" in program.printed


def test_without_it_a_word_is_a_hint_as_before(debug: Any) -> None:
    program = debug("python app.py", dedent("x = 1\ny = 2\n"))
    message = program.do("n")
    assert "number" not in message["stop"]
    assert "a program does not run backwards: set a breakpoint" in program.do("back")["out"]


def test_only_stops_that_the_user_saw_are_kept(back: Any) -> None:
    program = back("python app.py", dedent("x = 1\nx = 2\nx = 3\nx = 4\nx = 5\n"))
    assert program.do("n;; n")["stop"]["line"] == 3
    program.do("n")
    assert [line.split()[-3:] for line in program.do("rewind")["out"].splitlines()[1:]] == [
        ["app.py:3", "in", "<module>"],
        ["app.py:4", "in", "<module>"],
    ]
    message = program.do("back")
    assert (message["stop"]["line"], message["stop"]["number"]) == (3, 2)
    assert program.do("p x")["out"] == "2\n"


def test_the_commands_of_a_breakpoint_are_not_done_again(back: Any) -> None:
    program = back("python app.py", dedent("for i in range(4):\n    x = i\ny = 1\ny = 2\n"))
    program.do("b 2")
    program.do("commands 1", "silent", "p i", "c", "end")
    program.do("b 3")
    assert program.do("c")["stop"]["line"] == 3
    program.do("n")
    message = program.do("back")
    assert message["stop"]["line"] == 3 and message["out"].startswith("Back at stop 2, from stop 3; ")
    assert "0" not in message["out"].splitlines()[1:]


def test_an_error_before_a_stop_is_not_said_again(back: Any) -> None:
    program = back("python app.py", dedent("x = 1\nx = 2\nx = 3\n"))
    assert program.do("nosuch;; n")["failed"]
    program.do("n")
    message = program.do("back")
    assert not message["failed"] and "NameError" not in message["out"]


def test_a_thread_goes_back_to_where_there_was_none(back: Any) -> None:
    program = back(
        "python app.py",
        dedent(
            """\
            import threading
            def f():
                y = 1
            thread = threading.Thread(target=f)
            thread.start()
            thread.join()
            print("end")
            """
        ),
    )
    program.do("b 4")
    program.do("c")
    program.do("b 3")
    assert program.do("c")["stop"]["unkept"] == "the program has 2 threads"
    assert program.do("back")["stop"]["number"] == 2
    program.do("cl")
    assert program.do("c")["status"] == 0
    assert b"end" in program.printed


@pytest.mark.parametrize("room", [18, *repeated("debugger", 20, 22, 24)])
def test_near_the_recursion_limit_it_stops_and_goes_back_as_well(back: Any, room: int) -> None:
    program = back(
        "python app.py",
        dedent(
            f"""\
            import sys
            def f(n):
                if n == 0:
                    got = 1
                    return got
                return f(n - 1)
            print("got", f(sys.getrecursionlimit() - {room}))
            """
        ),
    )
    program.do("tbreak 5")
    message = program.do("c")
    assert message["t"] == "prompt" and message["stop"]["line"] == 5
    program.do("got = 2")
    program.do("rewind 2")
    assert program.do("p got")["out"] == "1\n"
    assert program.do("c")["status"] == 0
    assert b"got 1" in program.printed


def test_ignore_counts_are_what_they_were_and_aliases_stay(back: Any) -> None:
    program = back("python app.py", dedent("for i in range(20):\n    x = i\n    y = i\n"))
    program.do("b 2")
    program.do("ignore 1 6")
    program.do("b 3, i == 2")
    program.do("c")
    assert "ignore next 3 hits" in program.do("b")["out"]
    program.do("condition 1 i >= 0")
    program.do("alias seen p i, x")
    program.do("n")
    program.do("rewind 2")
    assert "ignore next 3 hits" in program.do("b")["out"]
    assert program.do("seen")["out"] == "(2, 2)\n"
