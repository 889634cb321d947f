"""Breakpoints, steps and the stop report, on the debuggee itself."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from support import interpreters

LOOP = textwrap.dedent(
    """\
    import sys

    def add(total, n):
        result = total + n
        return result

    def main():
        total = 0
        for n in range(5):
            total = add(total, n)
        print("total", total)
        return total

    if __name__ == "__main__":
        main()
    """
)


def place(message: dict[str, Any]) -> str:
    stop = message["stop"]
    return f"{stop['file']}:{stop['line']} {stop['function']}"


def test_first_stop_is_before_the_first_line(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    assert program.first["stop"]["reason"] == "entry"
    assert place(program.first) == "app.py:1 <module>"
    assert "-> import sys" in program.first["out"]


@pytest.mark.parametrize(
    ("command", "stopped"),
    [("n", 2), ("s", 2), ("unt", 2), ("unt 3", 3), ("j 3", 3), ("j 1", 1), ("r", 3)],
)
def test_commands_before_the_first_line_are_given_at_it(debug: Any, command: str, stopped: int) -> None:
    program = debug("python app.py", {"app.py": '"""Doc."""\nx = 1\ny = 2\n'})
    message = program.do(command)
    assert place(message) == f"app.py:{stopped} <module>"
    assert message["out"].count("app.py(") == 1
    assert message["stop"]["reason"] == ("return" if command == "r" else "step")
    assert program.do("p 'x' in globals()")["out"] == f"{command in ('unt 3', 'r')}\n"


def test_commands_after_a_jump_before_the_first_line_come_after_it(debug: Any) -> None:
    program = debug("python app.py", {"app.py": "x = 1\ny = 2\nz = 3\n"})
    message = program.do("j 2 ;; n")
    assert place(message) == "app.py:3 <module>"
    assert program.do("p 'x' in globals(), y")["out"] == "(False, 2)\n"


def test_a_jump_before_the_first_line_is_refused_where_it_leads_nowhere(debug: Any) -> None:
    program = debug("python app.py", {"app.py": "x = 1\ny = 2\n"})
    assert program.do("j there")["failed"]
    refused = program.do("j -1")
    assert refused["failed"] and place(refused) == "app.py:1 <module>"
    assert refused["out"] == "*** Jump failed: line -1 comes before the current code block\n"
    assert place(program.do("n")) == "app.py:2 <module>"


def test_breakpoint_stops_with_report(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    assert program.do("b 4")["out"] == f"Breakpoint 1 at {program.root}/app.py:4\n"
    stop = program.do("c")["stop"]
    assert stop["reason"] == "breakpoint" and stop["breakpoint"] == 1
    assert (stop["file"], stop["line"], stop["function"], stop["thread"]) == ("app.py", 4, "add", "MainThread")
    assert stop["source"][3] == [4, "    result = total + n"]
    assert [number for number, _ in stop["source"]] == list(range(1, 9))
    assert stop["locals"] == {"first": True, "changed": {"total": "0", "n": "0"}, "unchanged": 0, "omitted": 0}
    assert [(one["function"], one["line"]) for one in stop["stack"]] == [("add", 4), ("main", 10), ("<module>", 15)]


def test_changed_locals_only(debug: Any) -> None:
    # Before Python 3.10 only a frame that is traced tells when it is gone.
    program = debug("python app.py", {"app.py": LOOP}, backends=["monitoring", "settrace"])
    program.do("b 10")
    program.do("c")
    for changed in ({"n": "1"}, {"total": "1", "n": "2"}, {"total": "3", "n": "3"}):
        found = program.do("c")["stop"]["locals"]
        assert not found["first"]
        assert found["changed"] == changed
    assert program.do("s")["stop"]["locals"]["first"]


def test_changes_to_what_is_not_shown_are_changes(debug: Any) -> None:
    source = textwrap.dedent(
        """\
        class Account:
            def __init__(self):
                self.total = 0
                self.log = []
        def f():
            account = Account()
            numbers = list(range(20))
            text = "x" * 2000
            table = {n: n for n in range(30)}
            few = [0] * 20 + [-1]
            same = [account.__class__, object()]
            account.total += 5
            account.log.append(2)
            numbers[15] = 99
            numbers.append(7)
            text = text[:1000] + "y" + text[1001:]
            table[25] = 0
            few[20] = -2
            few[20] = -2.0
            return account
        f()
        """
    )
    program = debug("python app.py", {"app.py": source})
    program.do("b 12")
    shown = program.do("c")["stop"]["locals"]["changed"]
    assert shown["account"] == "<Account total=0, log=[]>"
    changed = [list(program.do("n")["stop"]["locals"]["changed"]) for _ in range(9)]
    names = ["account", "account", "numbers", "numbers", "text", "table", "few", "few"]
    assert changed == [*([name] for name in names), []]


def test_one_slow_value_hides_no_other(debug: Any) -> None:
    source = textwrap.dedent(
        """\
        import time
        class Slow:
            def __repr__(self):
                while True:
                    time.sleep(60)
        class Quick:
            def __repr__(self):
                return "Quick()"
        def f():
            slow = [Slow()]
            number, numbers, quick = 1, [1, 2], Quick()
            another = Slow()
            return number
        f()
        """
    )
    program = debug("python app.py", {"app.py": source})
    program.do("b 13")
    shown = program.do("c")["stop"]["locals"]["changed"]
    assert (shown["number"], shown["numbers"], shown["quick"]) == ("1", "[1, 2]", "<Quick>")
    assert shown["another"] == "<Slow, whose repr took too long>"
    stop = program.do("n")["stop"]
    assert stop["return"] == "1"
    assert stop["locals"]["changed"]["quick"] == "Quick()"


def test_a_new_call_of_the_same_function_starts_afresh(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 5")
    for _ in range(5):
        assert program.do("c")["stop"]["locals"]["first"]


@pytest.mark.parametrize("python", interpreters(handful=True))
def test_steps(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 10")
    program.do("c")
    call = program.do("s")
    assert call["stop"]["reason"] == "call" and place(call) == "app.py:3 add"
    assert call["out"].startswith("--Call--\n")
    assert place(program.do("n")) == "app.py:4 add"
    returned = program.do("r")
    assert returned["stop"]["reason"] == "return" and returned["stop"]["return"] == "0"
    assert place(program.do("n")) in ("app.py:9 main", "app.py:10 main")
    assert program.do("cl 1")["failed"] is False
    assert place(program.do("until 11")) == "app.py:11 main"
    assert place(program.do("n")) == "app.py:12 main"
    assert b"total 10" in program.printed


def test_step_over_a_call_with_a_breakpoint_stops_there_and_out_of_it(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("tbreak 10")
    program.do("b add")
    program.do("c")
    assert program.do("n")["stop"]["reason"] == "breakpoint"
    assert program.do("r")["stop"]["reason"] == "return"
    assert place(program.do("n")) == "app.py:9 main"


def test_false_condition_never_stops(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4, n > 100")
    assert program.do("c")["t"] == "exit"


def test_condition_and_ignore_count(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4, n % 2 == 0")
    program.do("ignore 1 1")
    assert program.do("c")["stop"]["locals"]["changed"]["n"] == "2"
    assert program.breakpoints["list"][0]["ignore"] == 1  # as each run begins
    assert program.do("c")["stop"]["locals"]["changed"]["n"] == "4"


def test_condition_that_raises_stops_and_says_so(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("tbreak 4, unknown > 1")
    stop = program.do("c")["stop"]
    assert "NameError" in stop["note"]
    assert [one["number"] for one in program.breakpoints["list"]] == [1]


def test_temporary_breakpoint_is_gone_after_its_stop(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("tbreak 4")
    stopped = program.do("c")
    assert stopped["stop"]["breakpoint"] == 1
    assert "Deleted breakpoint 1" in stopped["out"]
    assert program.breakpoints["list"] == []
    assert program.do("c")["t"] == "exit"


def test_disabled_breakpoint_does_not_stop(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4")
    program.do("disable 1")
    program.do("b 11")
    assert place(program.do("c")) == "app.py:11 main"


def test_function_breakpoint_stops_at_its_first_line_only(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("tbreak 11")
    program.do("b add")
    for n in range(5):
        stopped = program.do("c")
        assert place(stopped) == "app.py:4 add", n
    assert place(program.do("c")) == "app.py:11 main"


def test_commands_of_a_breakpoint(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4")
    defined = program.do("commands 1", "silent", "p n * 100", "c", "end", "p 'next'")
    assert defined["used"] == 4 and defined["out"] == ""
    program.do("b 11")
    stopped = program.do("c")
    assert stopped["out"].startswith("0\n100\n200\n300\n400\n> ")
    assert place(stopped) == "app.py:11 main"
    assert program.breakpoints["list"][0]["commands"] == ["silent", "p n * 100", "c"]


def test_commands_without_end_take_all_lines(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4")
    assert program.do("commands", "p n", "p total")["used"] == 2
    stopped = program.do("c")
    assert stopped["out"].startswith("0\n0\n> ")
    assert stopped["stop"]["breakpoint"] == 1


def test_breakpoints_are_restored_as_they_were(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 11")
    program.do("b 4, n > 1")
    program.do("commands 2", "silent", "p n", "end")
    program.do("ignore 2 1")
    program.do("tbreak 12")
    program.do("b main")
    program.do("disable 4")
    program.do("cl 1")
    state = program.breakpoints
    again = debug("python app.py", breakpoints=state)
    assert again.hello["lost"] == []
    assert again.breakpoints == state
    stopped = again.do("c")
    assert stopped["out"] == "3\n" and stopped["stop"]["breakpoint"] == 2
    assert again.do("b 9")["out"].startswith("Breakpoint 5 at")


def test_breakpoint_on_a_line_that_is_gone_is_reported(debug: Any) -> None:
    state = {"list": [dict(BREAKPOINT, line=99)], "next": 2}
    program = debug("python app.py", {"app.py": LOOP}, breakpoints=state)
    assert [one["line"] for one in program.hello["lost"]] == [99]
    assert program.do("b 4")["out"].startswith("Breakpoint 2 at")


BREAKPOINT = {
    "number": 1,
    "file": "app.py",
    "line": 4,
    "condition": None,
    "temporary": False,
    "ignore": 0,
    "enabled": True,
    "commands": [],
    "function": None,
}


@pytest.mark.parametrize("name", ["pkg/mod.py", "/testbed/pkg/mod.py", "{root}/pkg/mod.py", "pkg.mod", "mod", "mod.py"])
def test_names_of_files(debug: Any, name: str) -> None:
    files = {
        "app.py": "from pkg import mod\nmod.f()\n",
        "pkg/__init__.py": "",
        "pkg/mod.py": "def f():\n    return 1\n",
    }
    program = debug("python app.py", files)
    set_ = program.do(f"b {name.format(root=program.root)}:2")
    assert set_["out"] == f"Breakpoint 1 at {program.root}/pkg/mod.py:2\n"
    assert place(program.do("c")) == "pkg/mod.py:2 f"
    assert not program.do(f"cl {name.format(root=program.root)}:2")["failed"]
    assert program.breakpoints["list"] == []


def test_errors_are_pdbs_own(debug: Any) -> None:
    app = "x = 1\n\n# no\n@staticmethod\n# between\ndef f():\n    # inside\n    return 1\n"
    program = debug("python app.py", {"app.py": app})
    for command, text in [
        ("b 2", "*** Blank or comment\n"),
        ("b 3", "*** Blank or comment\n"),
        ("b 5", "*** Blank or comment\n"),
        ("b 99", "*** End of file"),
        ("p nosuch", "*** NameError: name 'nosuch' is not defined\n"),
    ]:
        answer = program.do(command)
        assert answer["out"].startswith(text) and answer["failed"]
    assert "Breakpoint 1 at " in program.do("b 7")["out"]


def test_a_function_on_the_last_line_of_a_decorated_header(debug: Any) -> None:
    """Its line belongs to the definition and to the function; both are stopped at, as in pdb."""
    app = "def d(n):\n    return lambda f: f\n@d(\n    2,\n)\ndef f(a, b=2): return a + b\nf(1)\n"
    program = debug("python app.py", {"app.py": app})
    program.do("b 6")
    stops = [place(program.do("c"))]
    if place(answer := program.do("c")) == "app.py:6 <module>":  # newer versions come back from the decorator
        answer = program.do("c")
    assert [*stops, place(answer)] == ["app.py:6 <module>", "app.py:6 f"]


def test_options_of_the_program_are_its_own(debug: Any) -> None:
    """Python 3.13.0's pdb takes some of them for its own: `python -m pdb -m pytest --tb=no -s`."""
    program = debug("python -m tool --tb=no -s -c x", {"tool.py": "import sys\ngiven = sys.argv[1:]\nx = 1\n"})
    program.do("b tool.py:3")
    assert place(program.do("c")) == "tool.py:3 <module>"
    assert program.do("p given")["out"] == "['--tb=no', '-s', '-c', 'x']\n"


def test_breakpoint_added_to_a_live_frame(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4")
    program.do("c")
    program.do("cl 1")
    program.do("b 11")
    assert place(program.do("c")) == "app.py:11 main"


def test_clear_all_needs_no_confirmation(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 4")
    program.do("b 5")
    assert program.do("cl")["out"].count("Deleted breakpoint") == 2
    assert program.breakpoints["list"] == []


def test_statement_over_several_lines(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 12")
    program.do("c")
    answer = program.do(
        "!for i in range(2):", "    if i:", "        print(i)", "    else:", "        print('no')", "p total"
    )
    assert (answer["out"], answer["used"]) == ("no\n1\n", 4)
    answer = program.do("x = [", "1,", "2]", "p x")
    assert answer["used"] == 2
    assert program.do("p x")["out"] == "[1, 2]\n"


def test_interact_runs_the_lines_below(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 12")
    program.do("c")
    answer = program.do("interact", "y = total + 1", "y", "for i in range(2):", "    print(i)")
    assert answer["out"].split() == ["11", "0", "1"]
    assert program.do("interact")["failed"]


def test_recursive_debugger(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 12")
    program.do("c")
    entered = program.do("debug add(1, 2)")
    assert "ENTERING RECURSIVE DEBUGGER" in entered["out"]
    assert "add()" in program.do("s")["out"]
    left = program.do("c")
    assert "LEAVING RECURSIVE DEBUGGER" in left["out"]
    assert program.do("p total")["out"] == "10\n"
    assert place(program.do("n")) == "app.py:12 main"


def test_changed_local_is_kept(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 11")
    program.do("c")
    program.do("!total = 77")
    program.do("c")
    assert b"total 77" in program.printed


def test_changed_local_is_kept_at_a_stop_without_a_trace_event(debug: Any) -> None:
    source = "def f():\n    x = 1\n    breakpoint()\n    print('x is', x)\n\nf()\n"
    program = debug("python app.py", {"app.py": source.replace("breakpoint()", "import pdb; pdb.set_trace()")})
    stopped = program.do("c")
    assert stopped["stop"]["reason"] == "breakpoint" and place(stopped) == "app.py:3 f"
    program.do("!x = 5")
    program.do("u")
    program.do("c")
    assert b"x is 5" in program.printed


def test_each_of_several_changes_to_a_local_is_kept(debug: Any) -> None:
    source = "def f():\n    total = 6\n    other = total\n    return total\nprint('total is', f())\n"
    program = debug("python app.py", {"app.py": source})
    program.do("b 3")
    program.do("c")
    program.do("!total += 100")
    program.do("total = 7")
    assert program.do("p total")["out"] == "7\n"
    program.do("c")
    assert b"total is 7" in program.printed


def test_jump(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 11")
    program.do("c")
    program.do("j 12")
    program.do("c")
    assert b"total" not in program.printed


def test_output_of_a_command_is_pdbs(debug: Any) -> None:
    program = debug("python app.py", {"app.py": LOOP})
    program.do("b 11")
    program.do("c")
    assert program.do("p print('from p')")["out"] == "from p\nNone\n"
    assert b"from p" not in program.printed


def test_values_are_bounded_and_without_addresses(debug: Any) -> None:
    source = textwrap.dedent(
        """\
        import time

        class Slow:
            def __repr__(self):
                while True:
                    try:
                        time.sleep(60)
                    except Exception:
                        pass

        class Raising:
            def __repr__(self):
                raise ValueError("no")

        def f():
            plain = object()
            long = list(range(10 ** 6))
            text = "x" * 10 ** 6
            deep = [[[[[[1]]]]]]
            number = 10 ** 5000
            raising = Raising()
            slow = Slow()
            after = Raising()
            return None

        f()
        """
    )
    program = debug("python app.py", {"app.py": source})
    program.do("b 24")
    found = program.do("c", timeout=5)["stop"]["locals"]["changed"]
    assert found["plain"] == "<object object>"
    assert all(len(text) <= 200 for text in found.values())
    assert "Raising" in found["raising"] and "ValueError" in found["raising"]
    assert found["slow"] == "<Slow, whose repr took too long>"
    assert found["after"] == "<Raising>"


def test_timer_of_the_program_survives_the_report(debug: Any) -> None:
    source = textwrap.dedent(
        """\
        import signal
        rang = []
        signal.signal(signal.SIGALRM, lambda *a: rang.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        x = 1
        signal.pause()
        print("rang", rang)
        """
    )
    program = debug("python app.py", {"app.py": source})
    program.do("b 5")
    program.do("c")
    program.do("c")
    assert b"rang [1]" in program.printed


def test_stop_in_a_file_outside_of_the_repository(debug: Any) -> None:
    program = debug("python app.py", {"app.py": "import json\njson.loads('[1]')\n"})
    program.do("n")
    stop = program.do("s")["stop"]
    assert stop["file"].endswith("/json/__init__.py") and stop["file"].startswith("/")
    assert [one["file"] for one in stop["stack"]] == ["app.py"]


@pytest.mark.parametrize("command", ["c", "n", "s", "r"])
def test_a_stop_keeps_nothing_alive(debug: Any, command: str) -> None:
    source = """\
    import gc, weakref
    gc.disable()

    class X:
        pass

    def f():
        x = X()
        w = weakref.ref(x)
        return w

    w = f()
    print("gone", w() is None)
    """
    program = debug("python app.py", {"app.py": textwrap.dedent(source)})
    program.do("b 10")
    program.do("c")
    assert program.do("p x")["failed"] is False
    program.do("interact", "x")
    program.do(command)
    while program.do("c")["t"] == "prompt":
        pass
    assert b"gone True" in program.printed


@pytest.mark.parametrize("command", ["n", "s"])
def test_a_step_out_of_a_function_goes_to_its_caller(debug: Any, command: str) -> None:
    """Not into what is called because the function's variables are gone."""
    source = """\
    import weakref

    def log(name):
        print(name)

    class Thing:
        def __del__(self):
            log("del")

    def f(kept):
        a = Thing()
        kept.add(a)
        weakref.finalize(a, log, "finalize")
        return 1

    f(weakref.WeakSet())
    b = 2
    """
    files = {"app.py": textwrap.dedent(source)}
    program = debug("python app.py", files)
    program.do("b 14")
    program.do("c")
    assert "--Return--" in program.do("r")["out"]
    assert program.do(command)["stop"]["line"] == 17
    assert b"del" in program.printed and b"finalize" in program.printed
    program = debug("python app.py", files)  # a breakpoint there is one
    program.do("b 14")
    program.do("b 8")
    program.do("c")
    program.do("r")
    assert program.do(command)["stop"]["line"] == 8
    assert program.do("s")["stop"]["function"] == "log"


def test_a_step_goes_into_a_destructor(debug: Any) -> None:
    source = "class Thing:\n    def __del__(self):\n        x = 1\na = Thing()\ndel a\nb = 2\n"
    program = debug("python app.py", {"app.py": source})
    program.do("b 5")
    program.do("c")
    assert program.do("s")["stop"]["function"] == "__del__"
