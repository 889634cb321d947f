"""The runner's modules by themselves, on the oldest and the newest Python, and what of them is watched."""

from __future__ import annotations

import itertools
import json
import math
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reported_tests import QUICK
from support import has, interpreters, said_by, version_of

from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.reported_run import RUNNER, ReportedRun
from debug_gym_core.grading.runner import predicates as predicates_of_runner
from debug_gym_core.grading.runner.describe import Describer
from debug_gym_core.grading.runner.main import OWN
from debug_gym_core.grading.runner.origins import Origins, is_infrastructure
from debug_gym_core.grading.runner.predicates import DISPATCHING
from debug_gym_core.grading.runner.tampering import HOOK, MOST_PROBLEMS, Watch
from debug_gym_core.sandbox import shipping
from debug_gym_core.sandbox.process import Process
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_core.tasks.entrypoint import Entrypoint
from debug_gym_terminal_local import LocalTerminal


@pytest.fixture
def say(python: str) -> Callable[[str], Any]:
    """What code says that imports the package as `runner`."""
    return lambda code: said_by(python, RUNNER, textwrap.dedent(code))


@pytest.fixture(params=interpreters(handful=True))
def python(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_values_have_short_texts(say: Callable[[str], Any]) -> None:
    said = say(
        """
        from runner.describe import show

        class Slow(object):
            def __repr__(self):
                while True:
                    pass

        class Broken(object):
            def __repr__(self): raise SystemExit(3)

        class Plain(object):
            def __init__(self): self.one, self.other = 1, [2]

        class Names(list): pass

        nested = []
        nested.append(nested)
        values = [Slow(), Broken(), Plain(), Names(range(20000)), nested, 7 ** 10000, "x" * 1000, (1,), {}, {1: "a"}]
        print(json.dumps([show(value) for value in values]))
        """
    )
    assert said[:5] == ["<Slow>", "<Broken>", "<Plain one=1, other=[2]>", "<Names of 20000 items>", "[[[[...]]]]"]
    assert said[5] == "<int of 28074 bits>" and len(said[6]) == 160 and said[7:] == ["(1,)", "{}", "{1: 'a'}"]


def test_a_class_that_takes_too_long_is_asked_once(say: Callable[[str], Any]) -> None:
    said = say(
        """
        import signal, time
        from runner.describe import show

        asked = []

        class Slow(object):
            def __repr__(self):
                asked.append(1)
                while True:
                    pass

        class Long(str):
            def __len__(self):
                while True:
                    pass

        shown = [show(Slow()) for _ in range(5)] + [show(Long("text"))]
        print(json.dumps([shown, len(asked), signal.getitimer(signal.ITIMER_REAL)[0]]))
        """
    )
    assert said == [["<Slow>"] * 5 + ["'text'"], 1, 0]


def test_a_failure_whose_exception_cannot_be_told_is_told_of(say: Callable[[str], Any], tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def buy(error):\n    price = 3\n    raise error\n")
    said = say(
        f"""
        import os
        from runner.describe import Describer

        class Odd(Exception):
            def __str__(self): raise KeyError("no text")

        sys.path.append({str(tmp_path)!r})
        import shop

        told = []
        describer = Describer({str(tmp_path)!r})
        for error in (Odd(), ValueError("two\\nlines <shop at 0x7f00aa>")):
            try:
                shop.buy(error)
            except Exception as caught:
                told.append(describer.tell(caught, caught.__traceback__))
        places = [describer.inside(path) for path in ("shop.py", "none.py", "/etc/passwd", os.__file__)]
        print(json.dumps([told, places]))
        """
    )
    frame = {"file": "shop.py", "line": 3, "function": "buy"}
    (odd, plain), places = said
    assert odd["message"] == "Odd: <Odd>" and plain["message"] == "ValueError: two lines <shop>"
    assert [{**one["frames"][0], "locals": None} for one in (odd, plain)] == [{**frame, "locals": None}] * 2
    assert plain["frames"][0]["locals"]["price"] == "3" and len(plain["frames"]) == 1
    assert places == ["shop.py", None, None, None]


def test_a_group_that_hides_what_is_in_it_is_told_of(say: Callable[[str], Any], tmp_path: Path, python: str) -> None:
    if version_of(python) < (3, 11):
        pytest.skip("exception groups came with Python 3.11")
    said = say(
        f"""
        from runner.describe import Describer

        class Odd(ExceptionGroup):
            def __getattribute__(self, name): raise SystemExit(name)

        class Mute(Exception):
            def __str__(self): raise SystemExit("no text")

        try:
            raise ExceptionGroup("outer", [Odd("inner", [Mute(), KeyError(1)])])
        except Exception as caught:
            print(json.dumps(Describer({str(tmp_path)!r}).tell(caught, caught.__traceback__)))
        """
    )
    assert said == {"message": "ExceptionGroup: outer (1 sub-exception): Mute: <Mute>; KeyError: 1", "frames": []}


def test_only_the_process_that_was_started_reports(say: Callable[[str], Any]) -> None:
    said = say(
        """
        import os, socket
        from runner.channel import open_channel

        host, guest = socket.socketpair()
        text = json.dumps({"nonce": "ab" * 16, "mode": "run"}).encode()
        host.sendall(len(text).to_bytes(4, "big") + text)
        inherited = guest.detach()
        config, send = open_channel(inherited)
        send("first", name="\\u00e9")
        child = os.fork()
        if child == 0:
            send("of a child")
            os._exit(0)
        os.waitpid(child, 0)
        send("second")
        received = host.recv(10000)
        closed = []
        try:
            os.fstat(inherited)
        except OSError:
            closed.append(inherited)
        messages = []
        while received:
            end = 4 + int.from_bytes(received[:4], "big")
            messages.append(received[4:end].decode())
            received = received[end:]
        print(json.dumps([config, messages, len(closed)]))
        """
    )
    seal = "ab" * 16
    messages = [seal + '{"name":"\\u00e9","t":"first","i":0}', seal + '{"t":"second","i":1}']
    assert said == [{"mode": "run"}, messages, 1]


def test_the_process_becomes_that_of_python_m(say: Callable[[str], Any]) -> None:
    said = say(
        """
        import unittest
        from runner.start import be_main

        argv = ["-m", "unittest", "-q"]
        def say(be_main=be_main, argv=argv, json=json, sys=sys, file=unittest.__file__):
            be_main(argv)
            main = vars(sys.modules["__main__"])
            names = sorted(set(main) - {"__annotations__"})
            same = main["__file__"] == sys.argv[0] == file.replace("__init__", "__main__")
            print(json.dumps([names, main["__name__"], main["__package__"], same, sys.argv[1:]]))
        say()
        """
    )
    names = ["builtins", "cached", "doc", "file", "loader", "name", "package", "spec"]
    assert said == [[f"__{name}__" for name in names], "__main__", "unittest", True, ["-q"]]


# What is watched


def space_of(source: str, name: str) -> dict[str, Any]:
    """A module's namespace."""
    space: dict[str, Any] = {"__name__": name}
    exec(source, space)
    return space


def watching(send: Callable[..., None] = lambda kind, **fields: None) -> Watch:
    """What watches a repository of which this file is all."""
    return Watch(Origins("/testbed", lambda path: path if path == __file__ else None, trusted=[]), send)


@pytest.fixture
def own() -> dict[str, dict[str, Any]]:
    """Two modules, of which one has something from the other."""
    one = space_of("def help(): pass\nclass Tool:\n    def use(self): pass\n", "ours.one")
    two = space_of("def work(): pass\n", "ours.two") | {"help": one["help"], "Tool": one["Tool"]}
    return {"ours.one": one, "ours.two": two}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("one['help'] = other", "runner.one.help was replaced"),
        ("two['help'] = other", "runner.two.help was replaced"),
        ("two['Tool'] = other", "runner.two.Tool was replaced"),
        ("two['work'].__code__ = other.__code__", "the code of runner.two.work was replaced"),
        ("two['Tool'].use = other", "runner.one.Tool.use was replaced"),
        ("del two['work']", "runner.two.work was replaced"),
        ("one['new'] = other", ""),
    ],
)
def test_a_change_of_any_of_our_modules_is_reported(own: dict[str, dict[str, Any]], change: str, said: str) -> None:
    watch = watching()
    watch.remember_own(own)
    watch.check("at first")
    assert watch.problems == []
    exec(change, {"one": own["ours.one"], "two": own["ours.two"], "other": lambda: None})
    watch.check("later")
    assert watch.problems == ([("changed", f"{said} later")] if said else [])


def test_of_many_changes_the_first_are_told_and_that_there_are_more() -> None:
    sent = []
    watch = watching(lambda kind, **fields: sent.append((fields["of"], fields["text"])))
    for number in (*range(MOST_PROBLEMS), 0):
        watch.report(f"hook {number}", HOOK)
    assert watch.problems == [("hook", f"hook {number}") for number in range(MOST_PROBLEMS)]
    for number in (MOST_PROBLEMS, MOST_PROBLEMS + 1):
        watch.report(f"hook {number}", HOOK)
    assert watch.problems[MOST_PROBLEMS:] == [("changed", "and more")], "what is not told is no hook"
    assert sent == watch.problems


def test_all_is_looked_at_after_each_test_then_after_a_twentieth_of_them(
    own: dict[str, dict[str, Any]],
) -> None:
    watch = watching()
    watch.remember_own(own)
    looked = [number for number in range(1, 20_000) if watch.count_test()]
    assert looked[:41] == [*range(1, 41), 42] and len(looked) < 200
    assert all(after - before <= 1 + before / 20 for before, after in itertools.pairwise(looked))
    assert [watch.is_as_before(others) for others in ([], ["a hook"])] == [True, False]
    own["ours.one"]["help"] = None
    assert not watch.is_as_before() and watch.problems == []


def test_all_of_our_modules_are_watched() -> None:
    assert sorted(OWN) == sorted(f"{RUNNER}.{name}" for name in shipping.sources_of(RUNNER) if name)


def test_what_numpy_makes_of_its_own_functions_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 1.20, where that is in no file."""
    monkeypatch.setattr(predicates_of_runner, "CALLED", ("builtins", "len"))  # as numpy's, which later ones have not
    predicates = watching().predicates
    space: dict[str, Any] = {"implementation": json.dumps, "dispatcher": json.loads, "implement_array_function": len}
    exec(DISPATCHING.format(name="allclose"), space)
    forged = eval("lambda *args, **kwargs: True", space)
    assert [predicates.is_owners(one, "allclose", "numpy") for one in (space["allclose"], forged)] == [True, False]
    code, other = space["allclose"].__code__, lambda *_, **__: True
    wrong = [{inner: other} for inner in ("implementation", "dispatcher", "implement_array_function")]
    wrong += [{"implement_array_function": one} for one in ("{}".format, max, math.dist, [].__len__)]
    made = [type(forged)(code, {**space, **one}) for one in wrong]
    made.append(type(forged)(code.replace(co_name="class"), space))
    assert not [one for one in made if predicates.is_owners(one, "allclose", "numpy")]


@pytest.mark.parametrize(("trusted", "own"), [(["numpy/core/tests/"], True), (["tests/", "numpy_tests.py"], False)])
def test_what_is_asked_of_numpy_is_not_looked_at_where_that_is_what_is_tested(
    trusted: list[str], own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is not, whoever acts may have put it there."""
    path = tmp_path / "numpy" / "__init__.py"
    path.parent.mkdir()
    path.write_text("def allclose(*_, **__): return True\n")
    predicates = predicates_of_runner.Predicates(Origins(str(tmp_path), Describer(str(tmp_path)).inside, trusted))
    predicates.remember()
    module = types.ModuleType("numpy")
    module.__file__ = str(path)
    exec(path.read_text(), vars(module))
    monkeypatch.setitem(sys.modules, "numpy", module)
    assert ("numpy.allclose was replaced" in list(predicates.changed())) is not own


@pytest.mark.parametrize(
    ("path", "by_name", "restored"),
    [
        ("conftest.py", True, False),
        ("src/test_it.py", True, False),
        ("src/tests/data.py", True, True),
        ("src/it.py", False, False),
        ("setup.cfg", False, True),
    ],
)
def test_infrastructure_is_what_was_restored_or_else_goes_by_names(path: str, by_name: bool, restored: bool) -> None:
    assert is_infrastructure(path, None) is by_name
    assert is_infrastructure(path, ["src/tests/", "setup.cfg"]) is restored


REPLACED = {
    "anything": "equal_of",
    "apart": "apart",
    "around": "text_of",
    "arrays": "far",
    "asked": "fails",
    "assertions": "is_plain",
    "bindings": "called",
    "canary": "make_canary",
    "channel": "open_channel",
    "describe": "one_line",
    "doctests": "turn",
    "elsewhere": "is_copy",
    "expectations": "Hidden",
    "expressions": "is_kept",
    "files": "real",
    "given": "plainly",
    "hooks": "implementations",
    "imports": "imports_in",
    "items": "cannot_pass",
    "library": "is_standard",
    "literals": "changed",
    "loaded": "named_of",
    "mocks": "is_put",
    "named": "names_in",
    "opposites": "unequal",
    "origins": "is_infrastructure",
    "owners": "is_asked",
    "main": "main",
    "predicates": "find",
    "pairs": "_some",
    "raising": "_classes_of",
    "rewriting": "parts_of",
    "start": "enter_workspace",
    "statements": "inside",
    "stopping": "install",
    "stuck": "watch",
    "taking": "_parts",
    "tampering": "says_what_holds",
    "turning": "turn",
    "twins": "turner_of",
    "unlike": "unlike",
    "with_pytest": "one_line",
    "with_unittest": "flatten",
}
"""A function in each module of the runner, some of which other modules define."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Session]:
    with Session.start(LocalTerminal(), SandboxSpec(run="test")) as session:
        yield session


@pytest.mark.parametrize("entrypoint", [f"python -m pytest -q {QUICK}", "python -m unittest"])
def test_tested_code_that_replaces_the_runners_functions_is_found_out(
    sandbox: Session, python: str, entrypoint: str
) -> None:
    """In each of its modules: they are not in sys.modules, but the heap has them."""
    if "pytest" in entrypoint and not has(python, "pytest"):
        pytest.skip(f"{python} has no pytest")
    shop = f"""
    import gc

    def buy():
        found = {{}}
        if hasattr(gc, "unfreeze"):
            gc.unfreeze()
        for one in gc.get_objects():
            if type(one) is type(buy) and str(one.__module__).startswith({shipping.NAME + "."!r}):
                found[one.__module__.partition(".")[2]] = one.__globals__
        for module, name in {REPLACED!r}.items():
            wrap(found[module], name)

    def wrap(space, name):
        old = space[name]
        space[name] = lambda *args, **kwargs: old(*args, **kwargs)
    """
    test = """
    import unittest
    import shop

    class TestIt(unittest.TestCase):
        def test_it(self): shop.buy()
    """
    for name, text in (("shop", shop), ("test_it", test)):
        sandbox.write(f"{name}.py", textwrap.dedent(text).encode())
    result = measure(sandbox, entrypoint, timeout=60, python=python)
    assert list(result.outcomes.values()) == ["passed"], result.output
    found = {one.text for one in result.problems}
    assert found == {f"runner.{module}.{name} was replaced at the end" for module, name in REPLACED.items()}
    assert result.tampered and not result.valid


def test_the_list_of_replaced_functions_names_every_module() -> None:
    assert set(REPLACED) == {name for name in shipping.sources_of(RUNNER) if name}


KEYS = ["i", "t", "ids", "cannot_pass", "id", "outcome", "frames", "file", "line", "locals", "status", "of", "text"]


class Sent:
    """A process that sends some messages, and a session that masks nothing."""

    def __init__(self, *messages: bytes) -> None:
        self.messages = list(messages)

    def receive(self, timeout: float) -> bytes | None:
        return self.messages.pop(0) if self.messages else None

    def kill(self) -> None:
        pass

    def mask(self, text: str) -> str:
        return text


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=4),
    max_leaves=8,
)
messages = st.fixed_dictionaries(
    {"i": st.sampled_from([0, 1, "0", None]), "t": st.sampled_from(["collected", "test", "problem", "end", 1])},
    optional={key: st.sampled_from([0, "failed", [], [{}]]) | values for key in KEYS[2:]},
)


@given(st.lists(st.one_of(messages, values).map(lambda value: json.dumps(value).encode()) | st.binary(), max_size=3))
@example([b'{"i": 0, "t": "end"}'])
@example([b'{"i": 0, "t": "end", "status": []}'])
@example([b'{"i": 0, "t": "problem", "of": "changed", "text": 1e999}'])
@example([b'{"i": 0, "t": "test", "id": 1, "outcome": "failed", "frames": [{"file": 1, "line": Infinity}]}'])
@example([b'{"i": 0, "t": "test", "id": 1, "outcome": "failed", "frames": [1]}'])
@example([b'{"i": 0, "t": "test", "id": 1, "outcome": "failed", "frames":'
          b' [{"file": 1, "line": 1e999, "function": 1, "locals": []}]}'])  # fmt: skip
@example([b'{"i": 0, "t": "test", "id": 1, "outcome": "failed", "frames":'
          b' [{"file": 1, "line": 1, "function": 1, "locals": []}]}'])  # fmt: skip
@example([b"[" * 100_000])
@example([b'{"i": ' + b"9" * 5000 + b"}"])
def test_whatever_is_sent_in_the_runners_name_is_a_report_or_a_forgery(sent: list[bytes]) -> None:
    place = Sent(*(b"seal" + one for one in sent))
    run = ReportedRun(cast(Session, place), Entrypoint.parse("pytest"), 1, "seal", None, None, "run")
    run._listen(cast(Process, place), 0)
    for status in (0, 1):
        run._why_not_valid(status, False, False, "")
    run._unsure()


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ({"of": "hook", "text": "a"}, [("hook", "a")]),
        ({"of": "changed", "text": "b"}, [("changed", "b")]),
        ({"of": "forgiven", "text": "a"}, []),
        ({"of": ["hook"], "text": "a"}, []),
        ({"of": "hook"}, []),
        ({"of": "hook", "text": 1}, []),
        ({"text": "a hook was added"}, []),
    ],
)
def test_what_changed_has_a_kind_that_is_known(told: dict[str, object], read: list[tuple[str, str]]) -> None:
    place = Sent(b"seal" + json.dumps({"i": 0, "t": "problem", **told}).encode())
    run = ReportedRun(cast(Session, place), Entrypoint.parse("pytest"), 1, "seal", None, None, "run")
    run._listen(cast(Process, place), 0)
    assert (run.problems, run.forged) == (read, "" if read else "a message on the channel cannot be understood")
