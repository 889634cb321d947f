"""Steps, the stop report and commands at a stop, on the debuggee itself."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from debugged_programs import LOOP, place
from support import interpreters, repeated


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
            plain = Plain()
            return number
        class Plain:
            def __init__(self):
                self.value = 1
        f()
        """
    )
    program = debug("python app.py", {"app.py": source})
    program.do("b 14")
    shown = program.do("c")["stop"]["locals"]["changed"]
    assert (shown["number"], shown["numbers"], shown["quick"]) == ("1", "[1, 2]", "<Quick>")
    assert shown["another"] == "<Slow, whose repr took too long>"
    assert shown["plain"] == "<Plain value=1>"
    stop = program.do("n")["stop"]
    assert stop["return"] == "1"
    assert "quick" not in stop["locals"]["changed"] and stop["locals"]["late"] == {"quick": "Quick()"}


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


@pytest.mark.parametrize("command", ["c", "n", *repeated("debugger", "s", "r")])
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


def test_a_value_that_cannot_be_described_hides_no_other_in_what_it_is_in(debug: Any) -> None:
    source = textwrap.dedent(
        """\
        import collections
        class Bad:
            def __repr__(self):
                raise ValueError("detached")
        class Data:
            def __init__(self, one, two):
                self.one, self.two = one, two
            def __repr__(self):
                return "Data({!r}, {!r})".format(self.one, self.two)
        Pair = collections.namedtuple("Pair", "x y")
        class Words(dict):
            pass
        def f():
            numbers = [1, Bad(), 3]
            words = {"ok": 1, "bad": Bad()}
            some = (Bad(), 2)
            data = Data(Bad(), 5)
            pair = Pair(1, Bad())
            own = Words(a=Bad())
            ordered = collections.OrderedDict(b=Bad())
            return 1
        f()
        """
    )
    bad = "<Bad, whose repr raised ValueError>"
    program = debug("python app.py", {"app.py": source})
    program.do("b 21")
    assert program.do("c")["stop"]["locals"]["changed"] == {
        "numbers": f"[1, {bad}, 3]",
        "words": f"{{'ok': 1, 'bad': {bad}}}",
        "some": f"({bad}, 2)",
        "data": f"<Data, whose repr raised ValueError: one={bad}, two=5>",
        "pair": f"<Pair, whose repr raised ValueError: x=1, y={bad}>",
        "own": f"<Words, whose repr raised ValueError: {{'a': {bad}}}>",
        "ordered": f"<OrderedDict, whose repr raised ValueError: {{'b': {bad}}}>",
    }


def test_what_there_was_no_time_to_describe_has_not_changed(debug: Any) -> None:
    source = textwrap.dedent(
        """\
        import collections, time
        class Slow:
            def __repr__(self):
                time.sleep(60)
        class Box:
            def __init__(self, n):
                self.n = n
            def __repr__(self):
                return "Box({})".format(self.n)
        def f():
            slow = [1, Slow(), 3]
            ordered = collections.OrderedDict(x=1)
            counts = collections.Counter("a")
            box, other = Box(1), Box(2)
            done = 1
            other.n = 3
            counts["b"] += 1
            return done
        f()
        """
    )
    program = debug("python app.py", {"app.py": source})
    program.do("b 15")
    shown = program.do("c")["stop"]["locals"]["changed"]
    assert shown == {
        "slow": "[1, <Slow, whose repr took too long>, 3]",
        "ordered": "OrderedDict({'x': 1})",
        "counts": "Counter({'a': 1})",
        "box": "<Box>",
        "other": "<Box>",
    }
    found = program.do("n")["stop"]["locals"]
    assert found["changed"] == {"done": "1"} and found["late"]["box"] == "Box(1)"
    assert program.do("n")["stop"]["locals"]["changed"] == {"other": "Box(3)"}
    assert set(program.do("n")["stop"]["locals"]["changed"]) == {"counts"}
    assert "late" not in program.do("n")["stop"]["locals"]
