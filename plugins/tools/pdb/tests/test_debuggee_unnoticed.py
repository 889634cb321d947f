"""What the debugger does on its own account is nothing that the program notices, or that ends it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from debugged_programs import dedent
from support import repeated


def plain(python: str, root: Path, *arguments: str) -> bytes:
    """What a program prints without a debugger."""
    done = subprocess.run([python, *arguments], cwd=root, capture_output=True, timeout=60)
    return done.stdout + done.stderr


FINALIZERS = dedent(
    """\
    class A:
        def __del__(self):
            print("del global", flush=True)
    a = A()
    def gen():
        try:
            yield 1
        finally:
            print("generator closed", flush=True)
    g = gen()
    next(g)
    """
)


@pytest.mark.parametrize("entrypoint", ["app.py", "-m app"])
def test_the_globals_of_a_program_are_finalized(debug: Any, python: str, entrypoint: str) -> None:
    program = debug(f"python {entrypoint}", FINALIZERS)
    assert program.do("c")["t"] == "exit"
    assert program.process.wait(20) == 0
    program._drain()
    said = plain(python, program.root, *entrypoint.split())
    assert b"del global" in said and b"generator closed" in said
    assert program.printed.replace(b"\r\n", b"\n") == said


WITH_GLOBALS = {
    "other.py": """\
def say(*args):
    print(*args, flush=True)
class Told:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        say("deleted", self.name)
theirs = Told("of a module")
""",
    "app.py": """\
import other, sys
def say(*args):
    other.say(*args)
class Told(other.Told):
    def __del__(self):
        say("deleted", self.name)
def generate():
    local = Told("of a generator")
    try:
        yield local
    finally:
        say("closed")
mine = Told("of the program")
generator = generate()
next(generator)
def make(name):
    made = Told(name)
    return [made]
kept = make("of a function")
if sys.argv[1:]:
    raise KeyError(mine)
""",
}

STOPS = ["b make", "b 17, name == 'of none'", "c", "display made", "p name", "n", "up", "display kept", "p mine", "s"]


@pytest.mark.parametrize("entrypoint", ["app.py", "app.py raise", *repeated("debugger", "-m app")])
@pytest.mark.parametrize("commands", [["c"], STOPS, *repeated("debugger", ["n"] * 20, ["b 8", "b 17", "c", "c", "s"])])
def test_what_a_program_has_at_its_end_is_finalized_while_its_globals_are_there(
    debug: Any, python: str, entrypoint: str, commands: list[str]
) -> None:
    program = debug(f"python {entrypoint}", WITH_GLOBALS)
    answer = program.first
    for command in [*commands, "c", "c", "c"]:
        answer = program.do(command) if answer["t"] == "prompt" else answer
    assert answer["t"] == "exit"
    program.process.wait(20)
    program._drain()
    said = plain(python, program.root, *entrypoint.split())
    ends = sorted(line for line in said.splitlines() if line.startswith((b"deleted", b"closed", b"Exception ignored")))
    assert len(ends) == 5 and not [line for line in ends if b"ignored" in line]
    found = program.printed.splitlines()
    assert sorted(line for line in found if line.startswith((b"deleted", b"closed", b"Exception ignored"))) == ends


def test_nothing_of_ours_is_called_when_the_interpreter_ends(debug: Any) -> None:
    files = {
        "other.py": (
            "class A:\n    def __del__(self):\n        print('del')\n    def use(self):\n        return 1\na = A()\n"
        ),
        "app.py": "import other\nother.a.use()\n",
    }
    program = debug("python app.py", files)
    program.do("b other.py:5")
    program.do("b other.py:3")
    assert program.do("c")["stop"]["line"] == 5
    program.do("cl 1")
    program.do("c")
    assert program.process.wait(20) == 0
    program._drain()
    expected = (
        [b"del", b""] if program.hello["python"] < [3, 8] else [b"del"]
    )  # it may be printed too late for a terminal
    assert program.printed.strip() in expected


def test_the_last_exception_is_known_to_what_runs_at_the_exit(debug: Any) -> None:
    code = "import atexit, sys\natexit.register(lambda: print(repr(sys.last_value)))\nraise KeyError('k')\n"
    program = debug("python app.py", dedent(code))
    program.do("c")
    program.do("c")
    assert b"KeyError('k'" in program.printed.rpartition(b"\n")[0].rpartition(b"\n")[2]


def test_an_expression_whose_values_cannot_be_compared_is_displayed(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            class Array:
                def __init__(self, value):
                    self.value = value
                def __ne__(self, other):
                    return self
                __eq__ = __ne__
                def __bool__(self):
                    raise ValueError("the truth of an array")
                def __repr__(self):
                    if self.value > 2:
                        raise SystemExit(3)
                    return "Array(%d)" % self.value
            for n in range(5):
                x = Array(n)
                y = n
            """
        ),
    )
    program.do("b 15")
    program.do("c")
    assert program.do("display x")["out"].endswith("display x: Array(0)\n")
    assert "display x: Array(1)  [old: Array(0)]\n" in program.do("c")["out"]
    assert "display x: Array(2)  [old: Array(1)]\n" in program.do("c")["out"]
    assert "display x: <Array, whose repr raised SystemExit>  [old: Array(2)]\n" in program.do("c")["out"]
    assert program.do("p n")["out"] == "3\n"


def test_an_expression_that_takes_for_ever_is_displayed_no_more(debug: Any) -> None:
    code = "import time\nwait = False\ndef f():\n    while wait:\n        time.sleep(0.01)\n"
    program = debug("python app.py", dedent(f"{code}x = 1\nwait = True\nx = 2\nx = 3\n"))
    program.do("b 6")
    program.do("c")
    program.do("display f()")
    program.do("n")
    with pytest.raises(TimeoutError):
        program.do("n", timeout=0.5)
    answer = program.interrupt()
    assert "display f(): it takes too long, and is displayed no more\n" in answer["out"]
    assert program.do("n")["stop"]["line"] == 9


def test_anything_may_be_a_key_among_globals(debug: Any) -> None:
    program = debug("python app.py", dedent("globals()[3] = 'x'\nnumber = 1\nx = 2\n"))
    program.do("b 3")
    stop = program.do("c")["stop"]
    assert stop["line"] == 3 and stop["locals"]["changed"] == {"number": "1"}
    assert program.do("info locals")["out"] == "number = 1\n"
    assert "did you mean number" in program.do("p numbr")["out"] and program.do("p")["failed"]
    assert program.do("c")["t"] == "exit"


SLOW_TEXT = """\
import threading, time
class Slow(Exception):
    def __str__(self):
        while True:
            pass
def g():
    try:
        raise Slow
    except Slow:
        pass
    return 1
"""


def test_an_exception_whose_text_takes_for_ever_is_stepped_over(debug: Any) -> None:
    program = debug("python app.py", {"app.py": f"{SLOW_TEXT}g()\n"})
    program.do("b g")
    program.do("c")
    program.do("n")
    assert program.do("n")["out"].startswith("Slow: <")
    assert program.do("n")["stop"]["line"] == 9


def test_where_nothing_limits_it_the_host_ends_it(debug: Any) -> None:
    program = debug("python app.py", {"app.py": f"{SLOW_TEXT}t = threading.Thread(target=g)\nt.start()\nt.join()\n"})
    program.do("b g")
    program.do("c")
    program.do("n")
    with pytest.raises(TimeoutError):
        program.do("n", timeout=0.5)
    assert program.interrupt()["out"].startswith("Slow: <")
    assert program.do("p 1 + 1")["out"] == "2\n"


def test_mocks_of_what_finds_files_count_the_calls_of_the_program_only(debug: Any) -> None:
    files = {
        "third.py": "import os\ndef path(a, b):\n    return os.path.join(a, b), os.path.realpath(a), os.stat(a)\n",
        "test_app.py": (
            "import third, unittest\nfrom unittest import mock\n\nclass Test(unittest.TestCase):\n"
            "    def test_it(self):\n"
            "        with mock.patch('os.path.join') as join, mock.patch('os.path.realpath') as real,"
            " mock.patch('os.stat') as stat:\n"
            "            third.path('a', 'b')\n"
            "            third.path('a', 'b')\n"
            "        calls = join.call_count, real.call_count, stat.call_count\n"
            "        self.assertEqual(calls, (2, 2, 2))\n"
        ),
    }
    program = debug("python -m unittest test_app", files)
    program.do("b third.py:3")
    program.do("b test_app.py:8, third is None")
    stop = program.do("c")["stop"]
    assert stop["file"] == "third.py"
    assert "Mock" in program.do("p os.path.join")["out"], "what is evaluated sees the program's"
    program.do("n")
    program.do("cl 1")
    assert program.do("c")["status"] == 0, program.printed


def test_stepping_leaves_no_names_of_the_debugger_s(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            class Strict(dict):
                def __setitem__(self, name, value):
                    if name in ("__return__", "__exception__"):
                        raise KeyError(name)
                    super().__setitem__(name, value)
            class Meta(type):
                @classmethod
                def __prepare__(cls, name, bases):
                    return Strict()
            class D(metaclass=Meta):
                x = 1
            def f():
                try:
                    int("x")
                except ValueError:
                    pass
                return locals()
            found = f()
            print(sorted(found), [name for name in globals() if "pdb" in name], "__return__" in vars(D))
            """
        ),
    )
    program.do("b 11")
    program.do("c")
    assert program.do("r")["stop"]["reason"] == "return"
    program.do("b f")
    program.do("c")
    program.do("n")
    assert program.do("n")["out"].startswith("ValueError: invalid literal")
    assert "ValueError(" in program.do("p __exception__")["out"]
    program.do("n")
    program.do("n")
    assert program.do("n")["stop"]["line"] == 17
    assert "->{" in program.do("n")["out"]
    assert program.do("retval")["out"].startswith("{") and program.do("p __return__")["out"].startswith("{")
    assert program.do("up") and program.do("retval")["out"] == "*** Not yet returned!\n"
    assert program.do("c")["status"] == 0
    assert program.printed.strip() == b"[] [] False"


def test_the_variables_of_pdb_itself_are_kept(debug: Any) -> None:
    program = debug("python app.py", dedent("def f():\n    return 5\nf()\n"))
    if program.hello["python"] < [3, 12]:
        pytest.skip("convenience variables came with Python 3.12")
    program.do("b 2")
    program.do("c")
    program.do("$mine = 40")
    assert program.do("p $mine + 2")["out"] == "42\n"
    assert program.do("p '__pdb_convenience_variables' + str(len(globals()))")["failed"] is False
    assert "__pdb_convenience_variables" not in program.do("pp list(globals())")["out"]


def test_a_program_s_warnings_are_its_own(debug: Any, python: str) -> None:
    files = {
        "app.py": 'import other, warnings\nx = "\\d"\nfor n in range(3):\n    warnings.warn("again")\n    other.f()\n',
        "other.py": "def f():\n    return 1\n",
        "odd.py": 'def never():\n    return "\\d" is 5\n',
    }
    program = debug("python -W always::DeprecationWarning app.py", files)
    program.do("b 5")
    program.do("c")
    program.do("b never")
    program.do("b other.py:2")
    for _ in range(3):
        program.do("c")
    program.do("cl all")
    assert program.do("c")["status"] == 0
    program._drain()
    said = plain(python, program.root, "-W", "always::DeprecationWarning", "app.py")
    count = [(said.count(word), program.printed.count(word)) for word in (b"again", b"invalid escape", b"odd.py")]
    assert [one for one, _ in count] == [other for _, other in count] and count[0][0] >= 1 and count[2] == (0, 0)


@pytest.mark.parametrize("flags", ["-W error", "-X warn_default_encoding -W error"])
def test_warnings_that_are_errors_do_not_come_of_the_debugger(back: Any, flags: str) -> None:
    code = """\
        '''Doc.'''
        def f(x):
            '''Doc f.'''
            y = x
            return y
        class C:
            '''Doc C.'''
            kept = [f(n) for n in range(2)]
        f(1)
        assert not C.kept, "at the end"
        """
    program = back(f"python {flags} app.py", dedent(code))
    commands = ("b f", "b missing", "b app.py:9, f(0) == 0", "tb 6", "s", "s", "c", "n", "until", "r", "p x = 2", "w")
    answers = [program.do(one) for one in (*commands, "ll", "whatis f", "display f", "back", "cl all", "c", "up", "c")]
    assert not [one for one in answers if "Warning" in one.get("out", "") + str(one.get("stop", {}))]
    assert answers[-1]["t"] == "exit" and answers[-1]["exception"]["type"] == "AssertionError"
    program._drain()
    assert b"Warning" not in program.printed


def test_a_jump_past_variables_gives_them_values_where_warnings_are_errors(debug: Any) -> None:
    program = debug("python -W error app.py", dedent("def f():\n    x = 1\n    y = 2\n    return y\nf()\n"))
    if program.hello["python"] < [3, 12]:
        pytest.skip("Python jumps past variables without a warning")
    program.do("b 2")
    program.do("c")
    said, where = program.do("j 4")["out"].split("\n", 1)
    assert said == "RuntimeWarning: assigning None to 2 unbound locals"
    assert "(4)f()\n-> return y" in where
    assert program.do("p x, y")["out"] == "(None, None)\n"


ALARM = """\
import signal, sys, time
class Timeout(Exception):
    pass
def handler(number, frame):
    raise Timeout
signal.signal(signal.SIGALRM, handler)
def work():
    n = 0
    while True:
        n += 1
def slow(n):
    time.sleep(0.01)
    return False
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    work()
except Timeout:
    print("timed out")
"""


@pytest.mark.parametrize("condition", ["n < 0", *repeated("debugger", "slow(n)")])
def test_a_time_limit_of_the_program_s_reaches_it_from_a_condition(debug: Any, condition: str) -> None:
    program = debug("python app.py", {"app.py": ALARM})
    program.do(f"b 10, {condition}")
    assert program.do("c")["status"] == 0
    assert b"timed out" in program.printed


def test_a_condition_whose_code_raises_stops(debug: Any) -> None:
    program = debug("python app.py", {"app.py": ALARM})
    program.do("b 10, {}[n]")
    assert program.do("c")["stop"]["note"] == "its condition raised KeyError: 0"


def test_an_alias_may_begin_with_its_own_name(debug: Any) -> None:
    program = debug("python app.py", dedent("x = 1\nx = 2\nx = 3\n"))
    program.do("n")
    program.do("alias n n ;; p x")
    answer = program.do("n")
    assert "2\n" in answer["out"] and answer["stop"]["line"] == 3
    program.do("alias c d")
    program.do("alias d c")
    program.do("unalias n")
    program.do("alias nothing %*")
    assert program.do("nothing")["t"] == "prompt"
    assert program.do("c")["t"] == "exit"


def test_a_type_with_the_name_of_another_is_shown_as_it_is(debug: Any) -> None:
    code = "class array:\n    def __repr__(self):\n        return 'mine'\nclass module(array):\n    pass\n"
    code += "a, m = array(), module()\nimport array as other\nb = other.array('i', [1])\nx = 1\n"
    program = debug("python app.py", dedent(code))
    program.do("b 9")
    shown = program.do("c")["stop"]["locals"]["changed"]
    assert shown == {"a": "mine", "m": "mine", "b": "array('i', [1])"}


def test_large_sets_and_dictionaries_are_not_put_in_order(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            class Key:
                compared = 0
                def __init__(self, n):
                    self.n = n
                def __hash__(self):
                    return self.n
                def __lt__(self, other):
                    Key.compared += 1
                    return self.n < other.n
                def __repr__(self):
                    return "K%d" % self.n
            keys = [Key(n) for n in range(1500)]
            d, s = dict.fromkeys(keys, 0), set(keys)
            del keys
            few = {Key(2), Key(1)}
            print(Key.compared)
            """
        ),
    )
    program.do("b 15")
    shown = program.do("c")["stop"]["locals"]["changed"]
    assert shown["d"] == "{K0: 0, K1: 0, K2: 0, K3: 0, K4: 0, K5: 0, K6: 0, K7: 0, ...}"
    assert shown["s"] == "{K0, K1, K2, K3, K4, K5, K6, K7, ...}"
    compared = int(program.do("p Key.compared")["out"])
    assert compared == 0
    assert program.do("n")["stop"]["locals"]["changed"]["few"] == "{K1, K2}"


def test_of_a_long_line_some_is_shown(debug: Any) -> None:
    program = debug("python app.py", {"app.py": f"x = '{'a' * 100000}'\ny = 1\n"})
    for command in ("l", "w", "ll"):
        assert 1000 < len(program.do(command)["out"]) < 3000, command
    assert len(program.do("n")["out"]) < 3000


NO_CODE = """\
def f(a):
    global g
    y: int
    try:
        if a:
            x = 1
        else:
            x = 2
    finally:
        z = 3
    return x
f(0)
if f:
    x = 1
else:
    x = 2
"""


@pytest.mark.parametrize(("line", "taken"), [(2, None), (3, None), *repeated("debugger", (7, 8), (9, 10))])
def test_a_line_without_code_of_its_own_stands_for_the_next(debug: Any, line: int, taken: int | None) -> None:
    program = debug("python app.py", {"app.py": NO_CODE})
    said = program.do(f"b {line}")["out"]
    assert f"Line {line} has no code of its own: the next line with code is taken.\n" in said
    assert taken is None or program.do("c")["stop"]["line"] == taken


def test_where_there_is_no_next_it_is_refused(debug: Any) -> None:
    program = debug("python app.py", {"app.py": NO_CODE})
    answer = program.do("b 15")
    assert answer["failed"] and answer["out"].startswith(
        "*** There is no code at this line\nhint: near it there is code"
    )


def test_code_from_strings_has_no_source_of_ours(debug: Any) -> None:
    program = debug("python app.py", {"app.py": "exec('a = 1\\nb = a\\nraise KeyError(b)')\n"})
    assert program.do("c")["out"].splitlines()[-1] == "> <string>(3)<module>()"
    program.do("c")
    assert b"debug_gym" not in program.printed


@pytest.mark.parametrize("number", [0, 3, 4])
def test_tools_that_the_program_monitors_itself_with_have_the_numbers_they_take(debug: Any, number: int) -> None:
    code = f"""\
        import sys
        seen, tools = [], sys.monitoring
        for number in range(6):
            tools.free_tool_id(number)
        tools.use_tool_id({number}, "mine")
        tools.register_callback({number}, tools.events.LINE, lambda code, line: seen.append(line))
        def f():
            x = 1
            return x
        tools.set_local_events({number}, f.__code__, tools.events.LINE)
        f()
        tools.free_tool_id({number})
        print("seen", seen)
        """
    program = debug("python app.py", dedent(code))
    if program.hello["python"] < [3, 12]:
        pytest.skip("sys.monitoring came with Python 3.12")
    program.do("b 8")
    program.do("b 13")
    assert program.lines("c", "n", "c", "c") == [8, 9, 13, 0]
    program._drain()
    assert b"seen [8, 9]" in program.printed
