"""Breakpoints on functions by their names, before they are loaded and after: both mean the same."""

from __future__ import annotations

from typing import Any

import pytest
from debugged_programs import dedent, place

FILES = dedent(
    """\
    from mod import far
    import mod
    def deco(function):
        def wrapper(*arguments):
            return function(*arguments)
        return wrapper
    @deco
    def one(n):
        '''It is documented.'''
        return n
    def helper(n):
        result = n
        return result
    class Base:
        @deco
        def low(self):
            return 1
    class Call(Base):
        @deco
        def method(self):
            return 2
        @property
        def width(self):
            return 3
        @classmethod
        def make(cls):
            return cls()
        def __call__(self): return 4
    other = helper
    call = Call()
    call.method()
    helper(helper(1))
    """
)
FILES["mod.py"] = "def deco(function):\n    return lambda n: function(n)\n@deco\ndef far(n):\n    return n\n"
PLACES = {
    "one": "app.py:10",
    "helper": "app.py:12",
    "Call.low": "app.py:17",
    "Call.method": "app.py:21",
    "Call.width": "app.py:24",
    "Call.make": "app.py:27",
    "Call.__call__": "app.py:28",
    "far": "mod.py:5",
    "mod.far": "mod.py:5",
    "app.py:deco": "app.py:4",
}


@pytest.mark.parametrize("loaded", [False, True], ids=["before", "after"])
def test_a_function_has_the_same_place_before_it_is_loaded_and_after(debug: Any, loaded: bool) -> None:
    program = debug("python app.py", FILES)
    if loaded:
        program.do("tbreak 31")
        program.do("c")
    for name, where in PLACES.items():
        answer = program.do(f"b {name}")
        found = program.breakpoints["list"][-1]
        assert (answer["failed"], f"{found['file']}:{found['line']}") == (False, where), (name, answer["out"])


def test_two_breakpoints_on_a_function_stop_once_in_a_call(debug: Any) -> None:
    program = debug("python app.py", FILES)
    program.do("tbreak 31")
    program.do("c")
    program.do("b helper")
    program.do("tbreak helper")
    assert [place(program.do("c")) for _ in range(2)] == ["app.py:12 helper"] * 2
    ended = program.do("c")
    assert [(one["number"], one["why"]) for one in ended["never"]] == [(3, "breakpoint 2 stopped there first")]


def test_two_breakpoints_on_what_has_no_name_of_its_own_stop_once_in_a_call(debug: Any) -> None:
    """pdb finds these by the first line that is executed."""
    app = "double = lambda n: (\n    n,\n    n)\nx = 1\ndouble(1)\n"
    program = debug("python app.py", {"app.py": app})
    program.do("tbreak 4")
    program.do("c")
    program.do("b double")
    program.do("tbreak double")
    assert place(program.do("c")).endswith(" <lambda>")
    assert program.do("c")["t"] == "exit"


def test_a_breakpoint_where_another_of_the_same_function_stopped_was_reached(debug: Any) -> None:
    app = "class Call:\n    def __call__(self):\n        n = 1\n        return n\ncall = Call()\nx = 1\ncall()\n"
    program = debug("python app.py", {"app.py": app})
    program.do("tbreak 6")
    program.do("c")
    program.do("b call.__call__")
    program.do("b Call.__call__")
    assert place(program.do("c")) == "app.py:3 __call__"
    ended = program.do("c")
    assert [(one["number"], one["why"]) for one in ended["never"]] == [(3, "breakpoint 2 stopped there first")]


def test_what_is_called_otherwise_than_the_function_is_said(debug: Any) -> None:
    program = debug("python app.py", FILES)
    program.do("tbreak 31")
    program.do("c")
    assert program.do("b other")["out"] == (
        f"note: other is the function helper here\nBreakpoint 2 at {program.root}/app.py:12\n"
    )
    assert program.do("b call.method")["out"] == (
        f"note: call.method is the function wrapper here\nBreakpoint 3 at {program.root}/app.py:5\n"
    )


def test_functions_whose_file_does_not_say_where_they_are(debug: Any) -> None:
    """Those that the program made, and those of a file that has changed since: pdb's own way is left."""
    program = debug(
        "python app.py",
        {"app.py": "text = 'x = 1\\ndef made(n):\\n    return n\\n'\nexec(compile(text, __file__, 'exec'))\nmade(1)\n"},
    )
    program.do("tbreak 3")
    program.do("c")
    assert not program.do("b made")["failed"]


def test_a_function_that_begins_with_declarations_begins_after_them(debug: Any, backends: list[str]) -> None:
    source = "x = 0\ndef f():\n    '''Do it.'''\n    global x\n    def g():\n        nonlocal y; global x\n"
    source += "        y = x = 1\n    y = 2\n    g()\n    return y\nf()\n"
    program = debug("python app.py", {"app.py": source}, backends=backends)
    assert program.do("b f")["out"] == f"Breakpoint 1 at {program.root}/app.py:5\n"
    assert program.do("b f.g")["out"] == f"Breakpoint 2 at {program.root}/app.py:7\n"
    assert program.lines("c", "c") == [5, 7]


@pytest.mark.parametrize("name", ["bom.py:f", "f", "bom.f"])
def test_a_function_is_found_behind_the_mark_at_the_beginning_of_its_file(debug: Any, name: str) -> None:
    program = debug("python app.py", {"app.py": "import bom\nbom.f(1)\n", "bom.py": "\ufeffdef f(a):\n    return a\n"})
    assert program.do(f"b {name}")["out"] == f"Breakpoint 1 at {program.root}/bom.py:2\n"
    assert place(program.do("c")) == "bom.py:2 f"


SEVERAL = dedent(
    """\
    import sys
    from typing import overload
    import used
    if sys.version_info >= (3,):
        def which(): return 1
    else:
        def which():
            return 2
    try:
        import none_of_this_name
    except ImportError:
        def late(n):
            return n
    else:
        def late(n):
            return -n
    class Box:
        @property
        def size(self):
            return self._size
        @size.setter
        def size(self, to):
            self._size = to
    class Other:
        def which(self):
            return 3
    @overload
    def text(n: int) -> str: ...
    @overload
    def text(n: str) -> str: ...
    def text(n):
        return str(n)
    box = Box()
    box.size = 1
    which(), late(1), box.size, Other().which(), text(1), used.late()
    """
)
SEVERAL["used.py"] = "if True:\n    def late():\n        return 1\nelse:\n    def late():\n        return 2\n"
NOTE = "note: {} is defined {} times, at lines {}; {}\n"
EACH = "each gets a breakpoint"


@pytest.mark.parametrize("file", ["", "app.py:"], ids=["alone", "in its file"])
def test_a_function_that_is_defined_more_than_once_has_a_breakpoint_at_each(debug: Any, file: str) -> None:
    program = debug("python app.py", SEVERAL)
    for name, lines in {"late": [13, 16], "Box.size": [20, 23], "text": [32]}.items():
        if name == "late" and not file:
            continue  # another file has one too
        before = len(program.breakpoints["list"])
        answer = program.do(f"b {file}{name}")
        made = program.breakpoints["list"][before:]
        assert [(one["file"], one["line"]) for one in made] == [("app.py", line) for line in lines], answer["out"]
        said = NOTE.format(name, len(lines), ", ".join(map(str, lines)), EACH)
        assert answer["out"].startswith(said) is (len(lines) > 1)
    assert place(program.do("c")) == "app.py:23 size"


def test_of_several_definitions_that_are_loaded_the_one_in_use_is_taken(debug: Any) -> None:
    program = debug("python app.py", SEVERAL)
    program.do("tbreak 33")
    program.do("c")
    for target, line in {"app.py:late": 13, "used.py:late": 3, "late": 13}.items():
        answer = program.do(f"b {target}, True")
        assert program.breakpoints["list"][-1]["line"] == line
        said = f"what is in use now gets a breakpoint, at {line}\n"
        assert (said in answer["out"]) is (":" in target), answer["out"]
    program.do("b Box.size")
    assert [one["line"] for one in program.breakpoints["list"][-2:]] == [20, 23]


def test_a_function_is_preferred_to_the_methods_of_its_name_in_its_file(debug: Any) -> None:
    program = debug("python app.py", SEVERAL)
    answer = program.do("b app.py:which")
    assert answer["out"].startswith(NOTE.format("which", 2, "5, 8", EACH)) and not answer["failed"]
    assert "several functions are called which" in program.do("b which")["out"]
    assert place(program.do("c")) == "app.py:5 which"
