"""What is compiled into a program for its breakpoints stays with it: on disk, in other processes, in tracebacks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from debugged_programs import dedent
from support import repeated, version_of

RULES = "def f(n=1):\n    n += 1\n    return n\n"


@pytest.mark.parametrize("breakpoint", ["b rules.py:2", "b rules.py:2, n == 1"])
def test_what_a_program_compiles_to_disk_is_plain(debug: Any, python: str, tmp_path: Path, breakpoint: str) -> None:
    """Later runs take it from there."""
    app = "import py_compile\npy_compile.compile('rules.py', cfile='kept.pyc', doraise=True)\nimport rules\nrules.f()\n"
    program = debug("python app.py", {"app.py": app, "rules.py": RULES})
    program.do(breakpoint)
    assert program.do("c")["stop"]["line"] == 2, "it stops in what is imported"
    assert program.do("c")["status"] == 0, program.printed
    assert b"__debug_gym" not in (tmp_path / "kept.pyc").read_bytes()
    ran = subprocess.run([python, "kept.pyc"], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("breakpoint", ["b app.py:6", *repeated("debugger", "b app.py:6, n > 5", "b app.py:6, n == 1")])
def test_a_function_runs_in_a_process_that_it_is_sent_to(debug: Any, breakpoint: str) -> None:
    app = dedent(
        """\
        import marshal
        import subprocess
        import sys

        def f(n):
            n += 1
            return n

        worker = "import marshal, sys, types; code = marshal.load(sys.stdin.buffer);" \\
            "print(types.FunctionType(code, globals())(1))"
        print(subprocess.check_output([sys.executable, "-c", worker], input=marshal.dumps(f.__code__)))
        """
    )["app.py"]
    program = debug("python app.py", {"app.py": app})
    program.do(breakpoint)
    assert program.do("c")["status"] == 0, program.printed
    assert b"b'2\\n'" in program.printed


def test_an_import_that_fails_has_the_traceback_of_python_s_own(debug: Any, python: str, tmp_path: Path) -> None:
    app = dedent(
        """\
        import traceback
        try:
            import bad
        except SyntaxError:
            traceback.print_exc()
        try:
            import worse
        except ZeroDivisionError:
            traceback.print_exc()
        import bad
        """
    )["app.py"]
    program = debug("python app.py", {"app.py": app, "bad.py": "x = 1\n1 +\n", "worse.py": "x = 1\ny = x / 0\n"})
    program.do("b worse.py:1")
    assert program.do("c")["stop"]["file"] == "worse.py"
    stop = program.do("c")["stop"]
    assert (stop["reason"], stop["file"], stop["line"]) == ("exception", "app.py", 10)
    program.do("c")
    bare = subprocess.run([python, "app.py"], cwd=tmp_path, capture_output=True)
    printed = program.printed.replace(b"\r\n", b"\n")
    assert b"importlib" not in bare.stderr and printed.startswith(bare.stderr[: bare.stderr.rindex(b"Traceback")])


def test_what_loads_a_module_is_called_by_python_s_own_code_only(debug: Any) -> None:
    app = dedent(
        """\
        import importlib.machinery, importlib.util
        class Loader(importlib.machinery.SourceFileLoader):
            def source_to_code(self, data, path):
                return super().source_to_code(data, path)
        spec = importlib.util.spec_from_loader("other", Loader("other", "other.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        """
    )["app.py"]
    program = debug("python app.py", {"app.py": app, "other.py": "x = 1\n"}, backends=["instrument", "settrace"])
    program.do("b 4")
    stop = program.do("c")["stop"]
    assert (stop["function"], stop["line"]) == ("source_to_code", 4)
    said = [program.do("w 50")["out"], program.do("u")["out"]]
    program.do("d")
    said += [program.do(one)["out"] for one in ("r", *["s"] * 8)]
    lines = [line for one in said for line in one.splitlines() if "_bootstrap.py(" in line]
    assert not [line for line in lines if int(line.partition("_bootstrap.py(")[2].partition(")")[0]) < 10], said
    assert "get_code" in said[1] and "exec_module" in said[-1]
    program.do("cl all")
    assert program.do("c")["status"] == 0


@pytest.mark.parametrize(("source", "fails"), [("x = (\n", "source_to_code"), ("raised\n", "get_data")])
def test_a_traceback_of_an_import_has_the_frames_of_the_loader_and_none_of_ours(
    debug: Any, source: str, fails: str
) -> None:
    app = """\
        import importlib.machinery, importlib.util, sys, traceback
        class Loader(importlib.machinery.SourceFileLoader):
            def get_data(self, path):
                if open(path).read() == "raised\\n":
                    raise ValueError
                return super().get_data(path)
            def source_to_code(self, data, path):
                return super().source_to_code(data, path)
            def get_code(self, fullname):
                return super().get_code(fullname)
        spec = importlib.util.spec_from_loader("other", Loader("other", "other.py"))
        try:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        except Exception:
            traceback.print_exc()
        """
    program = debug("python app.py", {**dedent(app), "other.py": source}, backends=["instrument", "settrace"])
    program.do("b other.py:1")
    program.do("b 8, False")
    assert program.do("c")["status"] == 0
    printed = program.printed.decode()
    own = re.findall(r"app.py\", line \d+, in (\S+)", printed)
    if fails == "source_to_code" and version_of(program.python) < (3, 7):
        fails = "get_code"  # the inner end of a traceback cannot be taken away
    assert own == list(dict.fromkeys(["<module>", "get_code", fails])), printed
    assert "debug-gym" not in printed


def test_chains_of_elif_are_as_long_as_they_like(debug: Any) -> None:
    branches = "".join(f"    elif n == {number}:\n        found = {number}\n" for number in range(1, 900))
    head = "def f(n):\n    if n == 0:\n        found = 0\n"
    app = f"{head}{branches}    else:\n        found = -1\n    return found\nf(2)\n"
    program = debug("python app.py", {"app.py": app})
    program.do("b app.py:5")
    program.do("b app.py:7")
    assert program.do("c")["stop"]["line"] == 7
    assert program.do("c")["status"] == 0


@pytest.mark.parametrize("end", ["sys.exit(3)", "os._exit(3)"])
def test_an_excepthook_that_ends_the_program_leaves_the_stop(debug: Any, end: str) -> None:
    app = f"import os, sys\ndef own(*error):\n    {end}\nsys.excepthook = own\n1 / 0\n"
    program = debug("python app.py", {"app.py": app})
    stop = program.do("c")["stop"]
    assert (stop["reason"], stop["line"]) == ("exception", 5)
    if end.startswith("sys"):
        assert program.do("c")["status"] == 3


def test_source_that_only_the_compiler_refuses_says_so_without_us(debug: Any) -> None:
    nested = "".join("    " * depth + f"for n{depth} in range(1):\n" for depth in range(22))
    files = {"app.py": "import deep\n", "deep.py": "y = 0\n" + nested + "    " * 22 + "x = 1\n"}
    program = debug("python app.py", files, backends=["instrument", "settrace"])
    program.do("b deep.py:1")
    assert [one["type"] for one in program.do("c")["stop"]["exceptions"]] == ["SyntaxError"]
    assert program.do("c")["exception"]["type"] == "SyntaxError"
    program._drain()
    assert b"too many statically nested blocks" in program.printed
    assert b"debug-gym" not in program.printed and b"During handling" not in program.printed
