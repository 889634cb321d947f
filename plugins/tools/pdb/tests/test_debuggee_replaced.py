"""Programs that replace what the debugger is built on, as tests do with mocks."""

from __future__ import annotations

import ast
import importlib
import textwrap
from pathlib import Path
from typing import Any

import pytest
from debugged_programs import dedent
from support import repeated

from debug_gym_core.debugging import inside
from debug_gym_tool_pdb.boot import DEBUGGEE


def test_a_mocked_print_is_not_pdb_s(debug: Any) -> None:
    code = """\
        from unittest import mock
        with mock.patch("builtins.print") as printed:
            x = 1
            y = 2
        z = 3
        """
    program = debug("python app.py", dedent(code))
    program.do("b 3")
    program.do("c")
    assert program.do("p 40 + 2")["out"] == "42\n"
    assert program.do("p print is printed")["out"] == "True\n"
    assert program.do("n")["stop"]["line"] == 4
    assert program.do("p printed.called")["out"] == "False\n"


@pytest.mark.parametrize(
    "name", ["len", "isinstance", "open", "repr", *repeated("debugger", "compile", "eval", "exec", "max", "dict")]
)
def test_replaced_builtins_are_the_program_s_alone(debug: Any, name: str) -> None:
    code = f"""\
        import builtins
        def replaced(*args, **kwargs):
            return 99
        kept = builtins.{name}
        builtins.{name} = replaced
        x = 1
        found = {name}('1')
        builtins.{name} = kept
        y = 2
        """
    program = debug("python app.py", dedent(code))
    program.do("b 6")
    stop = program.do("c")["stop"]
    assert stop["line"] == 6
    assert program.do("p 40 + 2")["out"] == "42\n"
    assert program.do("!40 + 2")["out"] == "42\n"
    assert program.do(f"p {name}('1')")["out"] == "99\n"
    assert not program.do("b 9")["failed"]
    assert "builtins" in program.do("ll")["out"]
    program.do("n")
    program.do("n")
    assert program.do("p found")["out"] == "99\n"
    assert program.do("c")["stop"]["line"] == 9
    program.do(f"!builtins.{name} = replaced")
    assert program.do(f"p {name}('1')")["out"] == "99\n"
    assert program.do("c")["status"] == 0


def test_a_builtin_that_is_gone_stays_gone(debug: Any) -> None:
    program = debug("python app.py", dedent("import builtins\ndel builtins.len\nx = 1\ny = hasattr(builtins, 'len')\n"))
    program.do("b 3")
    program.do("c")
    assert "NameError" in program.do("p len('x')")["out"]
    program.do("n")
    program.do("n")
    assert program.do("p y")["out"] == "False\n"
    assert program.do("c")["status"] == 0


def test_replaced_struct_and_what_pdb_cannot_do_without(debug: Any) -> None:
    code = """\
        import cmd, struct
        def fails(*args, **kwargs):
            raise RuntimeError("replaced")
        struct.pack = struct.unpack = fails
        x = 1
        cmd.Cmd.parseline = fails
        y = 2
        """
    program = debug("python app.py", dedent(code))
    program.do("b 5")
    program.do("b 7")
    program.do("c")
    assert program.do("p 40 + 2")["out"] == "42\n"
    program.send({"cmd": "c", "rest": []})
    assert program.receive()["stop"]["line"] == 7
    answer = program.do("p 40 + 2")
    assert answer["failed"] and answer["out"] == "*** the command failed: RuntimeError: replaced\n"


def test_what_other_threads_print_is_not_a_command_s_output(debug: Any) -> None:
    code = """\
        import threading
        go, printed = threading.Event(), threading.Event()
        def chatter():
            go.wait()
            print("from the thread")
            printed.set()
        threading.Thread(target=chatter).start()
        x = 1
        """
    program = debug("python app.py", dedent(code))
    program.do("b 8")
    program.do("c")
    assert program.do("p go.set() or printed.wait() and print('from the command')")["out"] == "from the command\nNone\n"
    assert program.do("c")["status"] == 0
    assert b"from the thread" in program.printed


def test_the_end_is_told_whatever_the_streams_raise(debug: Any) -> None:
    code = """\
        import sys
        class Stream:
            def write(self, text):
                raise OSError
            def flush(self):
                raise KeyboardInterrupt
        sys.stdout = Stream()
        """
    program = debug("python app.py", dedent(code))
    assert program.do("c")["t"] == "exit"


def test_a_stop_that_cannot_be_described_is_a_stop(debug: Any) -> None:
    code = """\
        import linecache
        def fails(*args):
            raise RuntimeError("replaced")
        kept = linecache.getlines
        linecache.getlines = fails
        x = 1
        linecache.getlines = kept
        y = 2
        """
    program = debug("python app.py", dedent(code))
    program.do("b 6")
    program.do("b 8")
    assert "cannot be described: RuntimeError: replaced" in program.do("c")["stop"]["note"]
    assert program.do("p 40 + 2")["out"] == "42\n"
    assert program.do("c")["stop"]["line"] == 8


MOCKING = """\
    import importlib, types
    from unittest import mock
    KINDS = types.FunctionType, types.BuiltinFunctionType
    def functions(module, named):
        found = [name for name, one in vars(module).items() if isinstance(one, KINDS)]
        return [module.__name__ + "." + name for name in found if name in named or EVERY and name[:1] != "_"]
    def after(n):
        v = n
        return v + 1
    for module, named in NAMED.items():
        for name in functions(importlib.import_module(module), named):
            with mock.patch(name, side_effect=ValueError("mocked")):
                after(1)
    with mock.patch("threading.Thread.name", b"mocked"):
        name = "Thread.name"
        after(1)
    """


def named_by_the_debuggee() -> dict[str, list[str]]:
    """The standard modules that the debuggee imports where it begins, and what its code names of each."""
    places = [Path(importlib.import_module(name).__path__[0]) for name in (DEBUGGEE, inside.__name__)]
    trees = [ast.parse(file.read_text()) for place in places for file in place.glob("*.py")]
    modules = {one.name for tree in trees for node in tree.body if isinstance(node, ast.Import) for one in node.names}
    named = {module: set[str]() for module in {*modules, "posixpath"}}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Attribute):
            named.get({"os.path": "posixpath"}.get(name := ast.unparse(node.value), name), set()).add(node.attr)
    # Debuggers are built on these, whoever replaces them; doctest has linecache show its examples.
    apart = {"_signal", "bdb", "builtins", "cmd", "linecache", "pdb"}
    return {module: sorted(names) for module, names in named.items() if module not in apart}


@pytest.mark.debugger
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.debugger)])
def test_what_a_program_mocks_is_not_what_the_debugger_calls(debug: Any, every: bool) -> None:
    settings = f"NAMED, EVERY = {named_by_the_debuggee()!r}, {every}\n"
    program = debug("python app.py", {"app.py": settings + textwrap.dedent(MOCKING)})
    program.do("b after")
    commands = ("p 40 + 2", "w", "n", "p v + 40", "up", "tb nowhere", "whatis v", "tb 14", "cl 2", "ll", "r")
    mocked: list[str] = []
    while True:
        stopped = program.do("c")
        if stopped["t"] == "exit":
            break
        assert stopped["stop"]["line"] == 9, (mocked[-1:], stopped)
        mocked.append(program.do("p name")["out"])
        answers = [stopped, *map(program.do, commands)]
        assert not [one for one in answers if "ValueError: mocked" in one["out"] + str(one.get("stop", ""))], mocked[-1]
        assert (answers[1]["out"], answers[4]["out"]) == ("42\n", "41\n"), mocked[-1]
    assert stopped["status"] == 0 and len(mocked) > (500 if every else 80)


def test_a_program_without_modules_is_debugged(debug: Any) -> None:
    code = """\
        import sys
        from unittest import mock
        def f(n):
            v = n
            return v + 1
        with mock.patch.dict(sys.modules, {"mine": sys}, clear=True):
            f(1)
        print("end")
        """
    program = debug("python app.py", dedent(code))
    program.do("b f")
    program.do("b 8")
    assert program.lines("c", "n") == [4, 5]
    assert program.do("p v")["out"] == "1\n"
    assert program.do("c")["stop"]["line"] == 8
    assert program.do("c")["status"] == 0


def test_what_another_thread_puts_in_place_at_a_stop_stays(debug: Any) -> None:
    code = """\
        import re, threading, time
        from unittest import mock
        go, left = threading.Event(), threading.Event()
        def work():
            go.wait()
            x = 1
            left.wait()
        worker = threading.Thread(target=work)
        worker.start()
        with mock.patch("re.sub", "mocked"):
            go.set()
            while re.sub == "mocked":
                time.sleep(0.01)
        left.set()
        worker.join()
        y = re.sub
        z = y
        """
    program = debug("python app.py", dedent(code))
    program.do("b 6")
    assert program.do("c")["stop"]["line"] == 6
    while program.do("p left.is_set()")["out"] != "True\n":
        pass
    program.do("b 17")
    assert program.do("c")["stop"]["line"] == 17
    assert program.do("p y.__module__, y.__name__")["out"] == "('re', 'sub')\n"
    assert program.do("c")["status"] == 0
