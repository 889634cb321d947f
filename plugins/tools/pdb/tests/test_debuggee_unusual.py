"""What is rare under the debugger: odd values and exceptions, commands gone wrong, a host that goes away."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from debugged_programs import LOOP, dedent
from support import repeated

# -- exceptions


def test_step_into_an_exception_that_is_caught_later(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            def fails():
                raise ValueError("bad")
            def main():
                try:
                    fails()
                except ValueError:
                    print("caught")
            main()
            """
        ),
    )
    program.do("b 5")
    program.do("c")
    stop = program.do("n")["stop"]
    assert (stop["reason"], stop["file"], stop["line"]) == ("exception", "app.py", 5)
    assert [(one["type"], one["message"]) for one in stop["exceptions"]] == [("ValueError", "bad")]
    assert program.do("n")["stop"]["line"] == 6
    assert program.do("c")["status"] == 0
    assert b"caught" in program.printed


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("raise Mute()", [("Mute", "", 10)]),
        *repeated(
            "debugger",
            ("raise Slow()", [("Slow", "", 10)]),
            (
                "raise KeyError(1) from ValueError('never raised')",
                [("KeyError", "1", 10), ("ValueError", "never raised", 0)],
            ),
            ("error = KeyError(1); error.__context__ = OSError(); raise error from None", [("KeyError", "1", 10)]),
            ("error = KeyError(1); error.__cause__ = error; raise error", [("KeyError", "1", 10)]),
            ("raise ValueError('x' * 10000)", [("ValueError", "x" * 400 + "...", 10)]),
        ),
    ],
)
def test_exceptions_that_cannot_be_told_of_whole(debug: Any, statement: str, expected: list[Any]) -> None:
    program = debug(
        "python app.py",
        dedent(
            f"""\
            import sys, time
            class Mute(Exception):
                def __str__(self):
                    raise TypeError("no")
            class Slow(Exception):
                def __str__(self):
                    while True:
                        time.sleep(60)
            sys.excepthook = lambda *error: None
            {statement}
            """
        ),
    )
    stop = program.do("c")["stop"]
    assert [(one["type"], one["message"], one.get("line", 0)) for one in stop["exceptions"]] == expected
    ended = program.do("c")
    assert (ended["t"], ended["status"], ended["exception"]["type"]) == ("exit", 1, expected[0][0])


def test_an_excepthook_that_fails_hides_nothing(debug: Any) -> None:
    program = debug(
        "python app.py", dedent("import sys\nsys.excepthook = lambda *error: 1 / 0\nraise KeyError('lost')\n")
    )
    stop = program.do("c")["stop"]
    assert (stop["reason"], stop["line"]) == ("exception", 3)
    assert program.do("c")["status"] == 1
    assert b"KeyError: 'lost'" in program.printed


@pytest.mark.parametrize("flag", ["-b", "-bb"])
def test_bytes_are_compared_with_no_number(debug: Any, flag: str) -> None:
    app = "def f(data):\n    many = [b'x'] * 3 + [-2]\n    data += b'y'\n    return many\nf(b'x')\n"
    program = debug(f"python {flag} app.py", {"app.py": app})
    program.do("b 4")
    stop = program.do("c")["stop"]
    assert stop["line"] == 4 and "note" not in stop and "data" in stop["locals"]["changed"], stop
    assert program.do("c")["status"] == 0
    assert b"BytesWarning" not in program.printed


def test_a_class_whose_name_is_the_programs_own_is_shown(debug: Any) -> None:
    app = dedent(
        """\
        class Meta(type):
            @property
            def __name__(cls):
                raise OSError("nobody may know")
        class Odd(metaclass=Meta):
            def __repr__(self):
                raise OSError("nor see it")
        x = Odd()
        y = 1
        """
    )
    program = debug("python app.py", app)
    program.do("b 9")
    stop = program.do("c")["stop"]
    assert (stop["file"], stop["line"], "note" in stop) == ("app.py", 9, False)
    assert "<Odd, whose repr raised OSError>" in str(stop)


def test_a_stop_that_cannot_be_described_says_where_it_is(debug: Any) -> None:
    app = dedent(
        """\
        import linecache
        def fails(*_):
            raise OSError("no lines")
        linecache.getlines = fails
        y = 1
        """
    )
    program = debug("python app.py", app)
    program.do("b 5")
    stop = program.do("c")["stop"]
    assert (stop["reason"], stop["file"], stop["line"], stop["breakpoint"]) == ("breakpoint", "app.py", 5, 1)


def test_values_are_shown_by_kind(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import sys
            def f():
                held = [10 ** 5000, sys, f, b"b" * 10 ** 6, bytearray(b"c" * 10 ** 6)]
                return held
            f()
            """
        ),
    )
    program.do("b 4")
    told = program.do("c")["stop"]["locals"]["changed"]["held"]
    assert "<int of 16610 bits>" in told and "<module 'sys'>" in told and "<function f>" in told
    assert "b'b" in told and len(told) < 1000


# -- commands


def test_values_that_end_the_program_when_they_are_shown_do_not(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            class Ending:
                def __repr__(self):
                    raise SystemExit(3)
            class Closed:
                def __getattribute__(self, name):
                    raise SystemExit(4)
            closed = Closed()
            def f(ending):
                return ending
            f(Ending())
            raise type("Mute", (Exception,), {"__str__": Ending.__repr__})
            """
        ),
    )
    program.do("b 9")
    stop = program.do("c")["stop"]
    assert stop["locals"]["changed"]["ending"] == "<Ending, whose repr raised SystemExit>"
    for command in ("p ending", "a", "pp ending", "locals()", "ending", "display ending"):
        assert program.do(command)["t"] == "prompt", command
    stop = program.do("r")["stop"]
    assert (stop["line"], stop["return"]) == (9, "<Ending, whose repr raised SystemExit>")
    program.do("undisplay")
    assert program.do("n")["stop"]["line"] == 11
    stop = program.do("c")["stop"]
    assert stop["exceptions"][0]["type"] == "Mute"
    assert program.do("c")["status"] == 1


def test_ignored_files_are_not_listed(debug: Any) -> None:
    files = {
        "app.py": "import secret\nsecret.f()\nx = 1\n",
        "secret.py": "def f():\n    hidden = 1\n    return hidden\n",
    }
    program = debug("python app.py", files, ignored=["secret.py"])
    shown = program.do("source print")
    assert shown["failed"] and "secret" not in shown["out"]
    program.do("b 2")
    program.do("c")
    assert program.do("source secret.f")["failed"]
    assert "x = 1" in program.do("l")["out"]
    program.do("s")
    assert program.do("p hidden")["failed"]
    for command in ("l", "ll", "source f", "list 1,3"):
        answer = program.do(command)
        assert answer["failed"] and "hidden" not in answer["out"]


def test_no_breakpoint_is_set_in_an_ignored_file(debug: Any) -> None:
    files = {
        "app.py": "from secret import f\nf()\nx = 1\n",
        "secret.py": "def f():\n    hidden = 1\n    return hidden\n",
        "empty.py": "",
    }
    program = debug("python app.py", files, ignored=["secret.py", "empty.py"])
    said = "*** {} is ignored in this task: no breakpoint is set in it\n"
    for place in ("secret.py:2", "secret.py:99", "secret.py:f", "secret.py:g", "secret:2", "empty.py:1", "empty.py:f"):
        answer = program.do(f"b {place}")
        assert answer["failed"] and answer["out"] == said.format(f"{place.partition(':')[0].partition('.')[0]}.py")
    program.do("n")
    assert program.do("b f")["out"] == said.format("secret.py")
    program.do("s")
    for command in ("b 3", "tbreak 3"):
        assert program.do(command)["out"] == said.format("secret.py")
    assert program.do("b app.py:3")["out"].startswith("Breakpoint 1 at ")


def test_several_files_of_a_name_are_told(debug: Any) -> None:
    files = {"app.py": "x = 1\n", "a/part.py": "y = 1\n", "b/part.py": "y = 1\n"}
    program = debug("python app.py", files)
    answer = program.do("b part.py:1")
    assert answer["failed"]
    assert "Several files are called part.py: a/part.py, b/part.py" in answer["out"]
    assert not program.do("b a/part.py:1")["failed"]


@pytest.mark.parametrize(
    ("command", "rest", "said"),
    [
        ("run 'open", [], "*** Cannot run 'open: No closing quotation"),
        ("commands 7", ["p 1", "end"], "*** cannot set commands: Breakpoint number 7 out of range"),
        *repeated(
            "debugger",
            ("p sys.stdout.write(b'x')", [], "TypeError: write() argument must be str, not bytes"),
            ("!for x in ):", ["    pass"], "SyntaxError"),
        ),
    ],
)
def test_commands_that_fail_leave_the_prompt(debug: Any, command: str, rest: list[str], said: str) -> None:
    program = debug("python app.py", dedent("import sys\nx = 1\n"))
    program.do("n")
    program.do("n")
    answer = program.do(command, *rest)
    assert answer["failed"] and said in answer["out"]
    assert program.do("p sys.stdout.writable()")["out"] == "True\n"


def test_leaving_interact_is_not_leaving_the_program(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 5")
    program.do("c")
    assert program.do("interact", "raise SystemExit", "print('never')")["out"].count("never") == 0
    assert program.do("p result")["out"] == "0\n"


def test_debugger_calls_of_the_program_do_not_stop_within_a_command(debug: Any) -> None:
    program = debug("python app.py", dedent("import pdb\ndef f():\n    pdb.set_trace()\n    return 5\nf()\nx = 1\n"))
    program.do("b 5")
    program.do("c")
    assert program.do("p f()")["out"] == "5\n"


def test_a_header_is_shown_at_the_stop(debug: Any, python: str) -> None:
    program = debug("python app.py", dedent("import pdb\npdb.set_trace(header='look here')\nx = 1\n"))
    answer = program.do("c")
    assert answer["stop"]["reason"] == "breakpoint"
    assert "look here\n" in answer["out"]


@pytest.mark.parametrize("command", ["q", *repeated("debugger", "exit", "EOF")])
def test_quit_where_the_program_called_the_debugger(debug: Any, command: str) -> None:
    program = debug("python app.py", dedent("import pdb\npdb.set_trace()\nprint('went on')\n"))
    program.do("c")
    assert program.do(command)["t"] == "quit"
    assert program.receive()["t"] == "exit"
    assert program.receive()["t"] == "dead"
    assert b"went on" not in program.printed


def test_interrupt_ends_a_stack_whose_entry_cannot_be_described(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import threading, time
            endless = []
            class Value:
                def __repr__(self):
                    while endless:
                        pass
                    return "value"
            def returns():
                return Value()
            thread = threading.Thread(target=returns)  # where no alarm ends a repr
            thread.start()
            thread.join()
            """
        ),
    )
    program.do("b 9")
    program.do("c")
    assert program.do("r")["out"].endswith("returns()->value\n-> return Value()\n")
    program.do("!endless.append(1)")
    with pytest.raises(TimeoutError):
        program.do("w", timeout=0.5)
    answer = program.interrupt()
    assert answer["interrupted"] and answer["failed"]
    assert "whose repr" not in answer["out"]
    program.do("!endless.clear()")
    assert program.do("c")["t"] == "exit"


def test_a_value_whose_repr_does_not_end_does_not_hide_that_it_is_returned(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            class Value:
                def __repr__(self):
                    while True:
                        pass
            def returns():
                return Value()
            returns()
            """
        ),
    )
    program.do("b 6")
    program.do("c")
    stopped = program.do("r")
    assert stopped["stop"]["reason"] == "return"
    assert "returns()-><a value whose repr took too long>" in stopped["out"]


def test_interrupt_ends_the_commands_of_a_breakpoint(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 5")
    program.do("commands 1", "p [None for _ in iter(int, 1)]", "end")
    program.send({"cmd": "c"})
    with pytest.raises(TimeoutError):
        program.receive(0.3)
    assert program.interrupt()["stop"]["line"] == 5
    assert program.do("p result")["out"] == "0\n"


# -- starts and ends


@pytest.mark.parametrize(
    ("target", "files", "why"),
    [
        ("sys", {}, "sys is not a module in Python source"),
        ("nosuch.part.main", {}, "there is no module nosuch.part.main"),
        *repeated(
            "debugger",
            ("single.part.main", {"single.py": "1/0\n"}, "there is no module single.part.main"),
            (".part", {}, "there is no module .part"),
        ),
    ],
)
def test_modules_that_cannot_be_run(debug: Any, target: str, files: dict[str, str], why: str) -> None:
    first = debug(f"python -m {target}", files).first
    assert (first["t"], first["message"]) == ("error", why)


def test_isolated_interpreters_stay_isolated(debug: Any) -> None:
    program = debug("python -I app.py", dedent("import sys\nroot = __file__.rpartition('/')[0]\nx = 1\n"))
    program.do("b 3")
    program.do("c")
    assert program.do("p root in sys.path or '' in sys.path")["out"] == "False\n"


def test_subtests_stop_where_they_fail_and_quit_ends_the_run(debug: Any) -> None:
    program = debug(
        "python -m unittest -q test_it",
        {
            "test_it.py": textwrap.dedent(
                """\
                import unittest

                class TestIt(unittest.TestCase):
                    def test_parts(self):
                        for part in range(4):
                            with self.subTest(part=part):
                                self.assertNotIn(part, (1, 2))
                """
            )
        },
    )
    for part in (1, 2):
        stop = program.do("c")["stop"]
        assert stop["reason"] == "test failed" and f"part={part}" in stop["test"]
        if program.hello["python"] >= [3, 11]:  # earlier ones tell of subtests when the test is over
            assert program.do("p part")["out"] == f"{part}\n"
    assert program.do("q")["t"] == "quit"
    assert program.receive()["t"] == "exit"


@pytest.mark.parametrize("command", ["", "c"])
def test_a_host_that_goes_away_ends_the_program(debug: Any, command: str) -> None:
    program = debug(
        "python app.py",
        dedent("import pdb\ntry:\n    while True:\n        pdb.set_trace()\nfinally:\n    print('never')\n"),
    )
    if command:
        program.send({"cmd": command})
    program.channel.close()
    assert program.process.wait(20) == 98
