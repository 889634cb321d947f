"""Parts of the debuggee, as plain modules on the host."""

from __future__ import annotations

import argparse
import ast
import fileinput
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from debug_gym_tool_pdb.debuggee import places as places_module
from debug_gym_tool_pdb.debuggee import signals as signals_module
from debug_gym_tool_pdb.debuggee import values as values_module
from debug_gym_tool_pdb.debuggee.conditions import Conditions
from debug_gym_tool_pdb.debuggee.family import merge
from debug_gym_tool_pdb.debuggee.files import Files
from debug_gym_tool_pdb.debuggee.hints import Hints
from debug_gym_tool_pdb.debuggee.insertion import insert, places_of, without
from debug_gym_tool_pdb.debuggee.locations import Locations, NotUnderstood
from debug_gym_tool_pdb.debuggee.meaning import Meaning
from debug_gym_tool_pdb.debuggee.places import Source
from debug_gym_tool_pdb.debuggee.shown import Followed, Shown
from debug_gym_tool_pdb.debuggee.signals import Signals
from debug_gym_tool_pdb.debuggee.statements import Statements
from debug_gym_tool_pdb.debuggee.unseen import HOOK, without_lines
from debug_gym_tool_pdb.debuggee.values import TimeLimit, Values
from debug_gym_tool_pdb.debuggee.vocabulary import Vocabulary


class Stopped:
    """What the parts ask of a debugger: commands, and the frame that it is stopped in."""

    before_runner = False

    def __init__(self, root: Path, frame: FrameType | None) -> None:
        self.curframe = frame
        self.curframe_locals = frame.f_locals if frame is not None else {}
        self.files = Files(str(root), self.canonic)

    def do_c(self) -> None: ...
    def do_n(self) -> None: ...
    def do_p(self) -> None: ...

    do_args = do_next = do_where = do_n

    def canonic(self, name: str) -> str:
        return name

    def lookupmodule(self, name: str) -> str | None:
        return self.files.find(name)


def stopped(root: Path) -> Any:
    """Stopped in a call in which there are `n` and `total`."""
    n, total = 1, 2
    assert n < total
    return Stopped(root, sys._getframe())


def locations(root: Path) -> Locations:
    debugger = stopped(root)
    return Locations(debugger, debugger.files, lambda: debugger.before_runner)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("n", "n"),
        ("n()", "n"),
        ("n = 3", "!n = 3"),
        ("n > 1", "!n > 1"),
        ("c > 1", "c > 1"),
        ("args.name", "!args.name"),
        ("p(total)", "p (total)"),
        ("p total  # why", "p total  # why"),
        ("where # am I", "where"),
        ("# nothing", ""),
        ("total", "total"),
        ("print total", "p total"),
        ("print(total)", "print(total)"),
        ("print, total", "print, total"),
        ("backtrace", "where"),
        ("info args", "args"),
        ("info locals", None),
        ("locals", None),
        ("set var n = 4", "!n = 4"),
        ("call f(1)", "!f(1)"),
    ],
)
def test_a_line_means_a_command_or_python(tmp_path: Path, typed: str, meant: str | None) -> None:
    assert Meaning(Vocabulary(stopped(tmp_path))).of(typed) == meant


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("totl", "did you mean total?"),
        ("1 + totl", "did you mean total?"),
        ("wher", "did you mean the command where (w)?"),
        ("xyzzyx", None),
    ],
)
def test_a_name_that_is_near(tmp_path: Path, typed: str, hint: str | None) -> None:
    hints = Hints(Vocabulary(stopped(tmp_path)), str)
    hints.typed = typed
    with pytest.raises(NameError):
        try:
            eval(typed)
        except NameError as error:
            assert hints.of(f"NameError: {error}", at_entry=False) == hint
            assert hints.of("NameError: another", at_entry=False) is None
            raise


def test_values_are_short_whatever_they_do() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise KeyError("no")

    values = Values()
    with TimeLimit(60) as limit:
        assert values.describe("x" * 999, limit) == "'" + "x" * 77 + "..." + "x" * 78 + "'"
        assert values.describe(object(), limit) == "<object object>"
        assert values.describe(Odd(), limit) == "<Odd, whose repr raised KeyError>"
        assert values.describe(list(range(99)), limit) == "[0, 1, 2, 3, 4, 5, 6, 7, ...]"
    limit.expired = True
    assert values.describe(Odd(), limit) == "<Odd>"


def test_dictionaries_keep_their_order_and_sets_are_in_order_where_that_asks_nobody() -> None:
    class Key:
        def __init__(self, number: int) -> None:
            self.number = number

        def __hash__(self) -> int:
            return self.number

        def __lt__(self, other: Key) -> bool:
            raise AssertionError("was asked")

        def __repr__(self) -> str:
            return f"K{self.number}"

    values = Values()
    with TimeLimit(60) as limit:
        assert (
            values.describe({"b": 0, "z": 1, "a": {"m": 3, "c": 4}}, limit) == "{'b': 0, 'z': 1, 'a': {'m': 3, 'c': 4}}"
        )
        assert values.describe(dict.fromkeys("zyxwvutsrq", 0), limit).startswith("{'z': 0, 'y': 0, 'x': 0, ")
        assert values.describe({Key(2): 0, Key(1): 0}, limit) == "{K2: 0, K1: 0}"
        assert values.describe({Key(2), Key(1)}, limit) == "{K1, K2}"
        assert values.describe(frozenset("cab"), limit) == "frozenset({'a', 'b', 'c'})"
        assert values.describe([set(), frozenset(), [[{1}, {2: 3}]]], limit) == "[set(), frozenset(), [[{...}, {...}]]]"


def test_without_a_time_limit_no_code_of_the_programs_describes_values() -> None:
    class Server:
        def __init__(self) -> None:
            self.queue = [1, object()]
            self.stop = False

    found: list[str] = []

    def describe() -> None:
        with TimeLimit(60) as limit:
            found.append(Values().describe([1, object(), Server()], limit))

    thread = threading.Thread(target=describe)
    thread.start()
    thread.join()
    assert found == ["[1, <object>, <Server queue=[1, <object>], stop=False>]"]


def test_a_mark_that_fails_for_another_cause_than_a_change_is_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(value: object) -> int:
        raise RuntimeError("dictionary changed size during iteration")

    def wrong(value: object) -> int:
        raise TypeError("a mistake of ours")

    with TimeLimit(60) as limit:
        monkeypatch.setattr(values_module, "mark", changed)
        assert Values().marked([1], limit) == ("[1]", 0, 0)
        monkeypatch.setattr(values_module, "mark", wrong)
        with pytest.raises(TypeError):
            Values().marked([1], limit)


def test_what_was_shown_goes_with_its_frame() -> None:
    shown = Shown()

    def pause() -> Iterator[None]:
        yield

    generator: Any = pause()
    frame = generator.gi_frame
    shown.keep(frame, {"a": "1"})
    assert shown.last(frame) == {"a": "1"}
    follower = shown.follow(frame)
    assert isinstance(follower, Followed)
    shown.keep_only([])
    assert shown.last(frame) == {"a": "1"}, "who follows it will tell"
    del follower
    assert shown.last(frame) is None


SOURCE = """\
def outer(limit, other):
    '''Not here.'''
    def inner(n):
        if n > limit:
            n += 1
        return n
    return inner
"""


@pytest.mark.parametrize(
    ("line", "condition", "placed"),
    [
        (2, None, {}),
        (4, None, {4: None}),
        (4, "n > 3", {4: "n > 3"}),
        (5, "limit", {5: "limit"}),  # which the function has from the one around it anyway
        (5, "other", {5: None}),  # the call would have to be given the variable of the function around it
        (5, "locals()", {5: None}),
        (5, "[n for n in ()]", {5: None}),
        (5, "n >", {5: None}),
    ],
)
def test_where_a_call_may_stand_with_its_condition(line: int, condition: str | None, placed: dict[int, Any]) -> None:
    statements = Statements.parse(SOURCE.encode(), "app.py")
    assert statements is not None
    assert places_of(statements, line, [condition], by_name=False) == placed


def test_what_is_put_into_a_tree_can_be_taken_out_again() -> None:
    tree = ast.parse(SOURCE)

    assert insert(tree, {4: "n > 3", 6: None, 99: None}) == {4: "n > 3", 6: None}
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Name) and one.id == HOOK]
    assert len(calls) == 3  # of a condition: where it holds, and where it raises
    assert ast.dump(without(tree)) == ast.dump(ast.parse(SOURCE))


@pytest.mark.parametrize("module", [ast, argparse, fileinput])
def test_what_is_put_into_code_adds_no_line_and_changes_none(module: Any) -> None:
    source = Path(module.__file__).read_text()
    statements = Statements.parse(source.encode(), module.__file__)
    assert statements is not None
    tree = ast.parse(source)
    wanted = {line: "not 0" if line % 2 else None for line, place in statements.places.items() if place.safe}
    assert len(insert(tree, wanted)) > 100
    code = compile(tree, module.__file__, "exec")
    found = list(zip(all_codes(without_lines(code)), all_codes(compile(source, module.__file__, "exec")), strict=True))
    for ours, plain in found:
        assert {line for _, _, line in ours.co_lines()} - {None} == {line for _, _, line in plain.co_lines()} - {None}
        assert set(plain.co_positions()) - {(None,) * 4} <= set(ours.co_positions()), ours.co_name
    for ours, before in zip(all_codes(without_lines(code)), all_codes(code), strict=True):
        pairs = zip(ours.co_positions(), before.co_positions(), strict=True)
        assert {pair for pair in pairs if pair[0] != pair[1]} <= {((None,) * 4, (0, 0, 0, 0))}


def all_codes(code: CodeType) -> Iterator[CodeType]:
    """A code object, and those in it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from all_codes(one)


def test_a_condition_sees_the_variables_of_the_function_in_its_own_functions_too() -> None:
    limit, frame = 3, sys._getframe()
    assert limit
    hold = Conditions().hold
    assert hold("limit == 3", frame) and not hold("limit == 4", frame)
    assert hold("any(one == limit for one in range(5))", frame)
    with pytest.raises(ZeroDivisionError):
        hold("1 / 0", frame)


BODIES = """\
if 1:
    def a(): pass
elif 2:
    def b(): pass
try:
    def c(): pass
except E:
    async def d(): pass
else:
    def e(): pass
finally:
    def f(): pass
while 1:
    with m:
        def g(): pass
match x:
    case 1:
        def h(): pass
class i:
    def j(self): pass
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    files = {
        "app.py": "class Account:\n    def deposit(self):\n        '''Doc.'''\n        return 1\n"
        "class Empty:\n    pass\n",
        "pkg/mod.py": "def twice():\n    return 2\n",
        "other/mod.py": "def twice():\n    return 3\n",
        "when.py": "def soon():\n    return 2\nclass If:\n    def when(self):\n        return 3\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("12", "12"),
        ("line 12", "12"),
        ("app.py:4", "{root}/app.py:4"),
        ("app.py 4 if x > 1", "{root}/app.py:4, x > 1"),
        ("app:4, x", "{root}/app.py:4, x"),
        ("/testbed/app.py:4", "{root}/app.py:4"),
        ('File "app.py", line 4, in deposit', "{root}/app.py:4"),
        ("app.py(4)deposit()", "{root}/app.py:4"),
        ("Account.deposit", "app.py:4"),
        ("app.py::Account::deposit", "app.py:4"),
        ("pkg.mod:twice", "pkg/mod.py:2"),
        ("app.py:4 if(x > 1)", "{root}/app.py:4, (x > 1)"),
        ("app.py:4, if x > 1", "{root}/app.py:4, x > 1"),
        ("when.py:2", "{root}/when.py:2"),
        ("when.py:2 when n", "{root}/when.py:2, n"),
        ("If.when", "when.py:5"),
        ("when.soon if n", "when.py:2, n"),
        ("when", "when.py:5"),
    ],
)
def test_places_as_people_write_them(repository: Path, written: str, read: str) -> None:
    assert [one for one, _ in locations(repository).read(written)] == [read.format(root=repository)]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("ap.py:4", "there is no file ap.py; did you mean app.py?"),
        ("app.py:4, x >", "The condition 'x >' is no Python expression: invalid syntax"),
        ("app.py:+", "Bad lineno: +; b FILE:LINE, as b app.py:12"),
        ("Empty", "Empty is a class without __init__: b Empty.METHOD"),
        ("twice", "several functions are called twice: other/mod.py:2 twice, pkg/mod.py:2 twice"),
        ("deposti", "there is no function deposti; did you mean deposit?"),
        ("?", "'?' is no place: b FILE:LINE, as b app.py:12, or b FUNCTION"),
    ],
)
def test_what_is_no_place_is_said_why(repository: Path, written: str, why: str) -> None:
    with pytest.raises(NotUnderstood) as error:
        locations(repository).read(written)
    assert str(error.value) == why


def test_a_class_and_its_method_are_looked_for_together(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "other.py").write_text("class Other:\n    def deposit(self):\n        return 2\n")
    taken_apart = []

    class Noted(Source):
        def __init__(self, path: str) -> None:
            taken_apart.append(Path(path).name)
            super().__init__(path)

    monkeypatch.setattr(places_module, "Source", Noted)
    assert locations(repository).read("Account.deposit") == [("app.py:4", None)]
    assert locations(repository).read("other.Other.deposit") == [("other.py:3", None)]
    assert taken_apart == ["app.py", "other.py"]


def test_a_search_that_has_no_time_left_denies_nothing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places_module, "SECONDS_OF_SEARCH", -1)
    with pytest.raises(NotUnderstood) as error:
        locations(repository).read("Account.deposit")
    assert str(error.value) == (
        "no function Account.deposit was found, but not all files of the repository were looked at: "
        "b FILE:Account.deposit"
    )


def test_functions_are_found_in_every_kind_of_body_without_compiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.py").write_text(BODIES)

    def compiles(*arguments: object, **options: object) -> None:
        raise AssertionError("was compiled")

    monkeypatch.setattr(places_module, "_compile", compiles)
    source = Source(str(tmp_path / "app.py"))
    assert sorted(name for name, _ in source.functions()) == [*"abcdefghi", "i.j"]
    at = {name: source.function_at(node.lineno) for name, node in source.functions()}  # type: ignore[attr-defined]
    assert at == dict(source.functions())


def test_breakpoints_that_changed_in_two_processes() -> None:
    def state(*numbers: int, **changes: Any) -> dict[str, Any]:
        return {"list": [{"number": one, "ignore": 5, **changes} for one in numbers], "next": 4}

    mine, gone = merge(state(1, 2), state(1, 2, ignore=3), state(2, 3))
    assert mine["list"] == [{"number": 2, "ignore": 3}, {"number": 3, "ignore": 5}]
    assert gone == {1}


# -- signals


@pytest.fixture
def late() -> Iterator[Any]:
    """The handler of two signals, which raises."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(number)

    before = {number: signal.signal(number, late) for number in (signal.SIGUSR1, signal.SIGUSR2)}
    yield late
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("change", ["hold", "release"])
def test_what_comes_while_handlers_are_put_in_place_waits(
    late: Any, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """They are all put there, and what is raised is for the program; what the host interrupts hears it thereafter."""
    signals = Signals()
    # Where the handler of the first is the program's own: not yet held back, or given back already.
    at = {"hold": signal.SIGHUP, "release": signal.SIGUSR2}[change]
    actions = [lambda: os.kill(os.getpid(), signal.SIGUSR1), signals.interrupt]

    def rings(number: int) -> Any:
        if number == at and actions:
            actions.pop(0)()
        return signal.getsignal(number)

    if change == "release":
        signals.hold()
    monkeypatch.setattr(signals_module, "_getsignal", rings)
    with pytest.raises(KeyboardInterrupt):
        getattr(signals, change)()
    monkeypatch.undo()
    assert not actions
    held = [signal.getsignal(number) is not late for number in (signal.SIGUSR1, signal.SIGUSR2)]
    assert held == [change == "hold"] * 2
    signals.release()
    with pytest.raises(TimeoutError, match=str(int(signal.SIGUSR1))):
        signals.deliver(None)
    assert [signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)] == [late, late]
    signals.deliver(None)
