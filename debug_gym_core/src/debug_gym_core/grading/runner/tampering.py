"""What must not change while tests run: functions and classes of pytest, pluggy, unittest, the tests, and our own."""

import sys
from functools import partial

from .opposites import RENAMED
from .origins import (
    ASKED,
    DECIDING,
    MAY_REPLACE,
    NOBODY,
    OTHER,
    PLUGINS,
    TAKING_PART,
    TESTS,
    Origins,
    call_of,
    content_of,
    is_like,
)
from .owners import REPLACED
from .predicates import Predicates, find, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import ModuleType
    from typing import Any, Union

    from .channel import Send

    Space = Mapping[str, Any]

MOST_PROBLEMS = 400
"""Changes that are told of one run: as many hooks a repository may add itself, each of which has to be known."""

TWENTIETH = 20
"""All is looked at again when so much of the tests has ended since: it takes about a millisecond, and more where there
are many tests."""

CHANGED, HOOK, STAND_IN = KINDS = "changed", "hook", "stand-in"
"""What a change may be: of a function or class, a hook that came later, or what stands in a module's place. What is not
told may be of any kind."""

VITAL = table(
    "_pytest.runner runtestprotocol call_and_report call_runtest_hook pytest_runtest_protocol pytest_runtest_call",
    "_pytest.runner pytest_runtest_setup pytest_runtest_teardown pytest_runtest_makereport check_interactive_exception",
    "_pytest.runner.CallInfo from_call __init__",
    "_pytest.reports.TestReport from_item_and_call __init__",
    "_pytest.reports.BaseReport passed failed skipped",
    "_pytest.python pytest_pyfunc_call",
    "_pytest.python.Function runtest setup",
    "_pytest.unittest.TestCaseFunction runtest addError addFailure",
    "_pytest.main pytest_runtestloop",
    "_pytest.raises.RaisesExc __exit__",
    "_pytest.python_api.RaisesContext __exit__",
    "_pytest.python_api.ApproxScalar __eq__ DEFAULT_ABSOLUTE_TOLERANCE DEFAULT_RELATIVE_TOLERANCE",
    "_pytest.python_api.ApproxSequenceLike __eq__",
    "_pytest.python_api.ApproxMapping __eq__",
    "_pytest.python_api.ApproxNumpy __eq__",
    "_pytest.approx.ApproxScalar __eq__ DEFAULT_ABSOLUTE_TOLERANCE DEFAULT_RELATIVE_TOLERANCE",
    "_pytest.approx.ApproxSequenceLike __eq__",
    "_pytest.approx.ApproxMapping __eq__",
    "_pytest.approx.ApproxNumpy __eq__",
    "unittest.case.TestCase run __call__ fail assertEqual assertTrue assertFalse assertRaises assertIn",
    "unittest.case._Outcome testPartExecutor",
    "unittest.result.TestResult addError addFailure wasSuccessful",
    "pluggy._execution _multicall",
    "pluggy._callers _multicall",
    "pluggy.callers _multicall",
    "pluggy._hooks.HookCaller __call__",
    "pluggy._caller.HookCaller __call__",
    "pluggy.hooks._HookCaller __call__",
    "pluggy._manager.PluginManager _hookexec",
    "pluggy.manager.PluginManager _hookexec",
)
"""Looked at around each test: an owner and names in it; those that a version does not have are passed over."""

CHANGEABLE_BUILTINS = REPLACED["builtins"] | {"open", "__import__", "compile", "exec", "eval", "id"}
FAMILIES = ("_pytest", "pluggy", "unittest")
ASSERTIONS = ("assert", "fail")
"""How the names of unittest's methods begin that say whether an expectation holds."""


class Watch(object):
    """Remembers what functions and classes were before any tested code ran, and tells what became different.

    A change counts unless the new function is of somebody who `MAY_REPLACE` such a one: plugins patch pytest.

    Attributes:
        problems: what became different: of which of `KINDS`, and in words; each is told at once, as tested code may end
            the run at any moment
    """

    def __init__(self, origins: Origins, send: "Send") -> None:
        """See `Origins`.

        Args:
            origins: knows whose functions are
            send: reports to the host
        """
        import builtins
        from unittest import TestCase

        self.asserting = frozenset(dir(TestCase))
        self.origins = origins
        self.predicates = Predicates(origins)
        self.send = send
        self.seen = set()  # type: set[Union[int, str]]
        self.names = []  # type: list[tuple[Space, str, Any, str]]
        self.codes = []  # type: list[tuple[Any, Any, Any, Any, str]]
        self.cells = []  # type: list[tuple[Any, Any, str]]
        self.classes = {}  # type: dict[int, tuple[type, Space, frozenset[str], tuple[type, ...], str]]
        self.modules = []  # type: list[tuple[str, ModuleType]]
        self.vital = []  # type: list[tuple[Space, str, Any, str]]
        self.global_names = []  # type: list[tuple[Space, frozenset[str], str]]
        self.problems = []  # type: list[tuple[str, str]]
        self.ended = self.next = 0
        self.function = type(lambda: 0)
        self.getprofile = sys.getprofile
        self.module = type(sys)
        self.plain = frozenset(
            (str, int, bool, float, tuple, list, dict, set, frozenset, bytes, type(None), self.module)
        )
        space = vars(builtins)
        kept = [name for name in space if name not in CHANGEABLE_BUILTINS]
        self.names += [(space, name, space[name], "builtins") for name in kept]
        self.hideable = frozenset(name for name in kept if not name.startswith("__"))

    def remember(self) -> None:
        """Take in modules of pytest, pluggy and unittest that were imported since the last call."""
        for name, module in list(sys.modules.items()):
            if module is not None and name not in self.seen and (name == "pytest" or name.split(".")[0] in FAMILIES):
                self.seen.add(name)
                self.modules.append((name, module))
                self.remember_space(vars(module), name)
                self.remember_globals(module)
        self.origins.remember(one[0] for one in self.codes)
        self.predicates.remember()
        for owner, names in VITAL:
            space = find(owner)
            if space is not None:
                self.vital += [(space, name, space[name], owner) for name in names if name in space]

    def remember_own(self, own: "Mapping[str, Space]") -> None:
        """Take in our own modules: what each of them defines, and what it has from the others.

        Args:
            own: their namespaces by name
        """
        for name, space in own.items():
            self.remember_space(space, "runner." + name.rpartition(".")[2], tuple(own))

    def remember_tests(self, module: "Union[ModuleType, None]") -> None:
        """Take in the functions and classes that a test module defines itself."""
        if module is not None and id(module) not in self.seen:
            self.seen.add(id(module))
            self.remember_space(vars(module), module.__name__, (module.__name__,))
            self.remember_globals(module)

    def remember_globals(self, module: "ModuleType") -> None:
        """Take in which names of Python's own a module has itself."""
        self.global_names.append((vars(module), self.hideable.intersection(vars(module)), module.__name__))

    def remember_space(self, space: "Space", where: str, homes: "tuple[str, ...]" = ()) -> None:
        """Take in a module's functions and classes, or a class's methods.

        Args:
            space: its namespace
            where: its name
            homes: modules whose functions and classes count; none: all functions and modules, and the classes of
                `FAMILIES`
        """
        names, seen, plain = self.names, self.seen, self.plain
        for name, value in list(space.items()):
            kind = type(value)
            if kind in plain:
                # A package has its own modules by these names, until they are imported anew.
                is_used = kind is self.module and vars(value).get("__name__") != "{}.{}".format(where, name)
                if not homes and (is_used or name == "__builtins__"):
                    names.append((space, name, value, where))
                continue
            if issubclass(kind, type):
                home = vars(value).get("__module__")
                if homes and home not in homes:
                    continue
                names.append((space, name, value, where))
                if id(value) not in self.classes and (homes or str(home).partition(".")[0] in FAMILIES):
                    inner = vars(value)
                    self.classes[id(value)] = (value, inner, frozenset(inner), value.__mro__, where + "." + name)
                    self.remember_space(inner, where + "." + name, homes)
                continue
            function = value if kind is self.function else self.origins.function_of(value)
            if function is not None and (not homes or function.__module__ in homes):
                names.append((space, name, value, where))
                # What a decorator of the tested code made is that code, which may write it when it is first called.
                if id(function) not in seen and (not homes or function.__globals__.get("__name__") in homes):
                    seen.add(id(function))
                    own = function.__code__, function.__defaults__, function.__kwdefaults__
                    self.codes.append((function, *own, where + "." + name))
                    if not homes:  # a test's own may count in one
                        cells = function.__closure__ or ()
                        self.cells += [(one, content_of(one), where + "." + name) for one in cells]

    def check_vital(self, when: str) -> None:
        """Look at what decides on a test's outcome; quick."""
        for space, name, value, where in self.vital:
            if space.get(name) is not value and self.is_change(space, name, where):
                self.report("{}.{} was replaced {}".format(where, name, when))
        profile = self.getprofile()
        if profile is not None:
            while type(profile).__name__ == "partial" and hasattr(profile, "func"):
                profile = profile.func
            calls = (profile, call_of(profile))
            called = next((one for one in calls if self.origins.function_of(one) is not None), None)
            if called is not None and self.origins.origin_of(called) == NOBODY:
                self.report("a profile function of the tested code's was there {}".format(when))

    def is_change(self, space: "Space", name: str, where: str) -> bool:
        """Whether what a name is bound to, which is another thing than before, may not be there."""
        kind = self.kind_of(name, where)
        renamed = RENAMED.get(name, "")
        if renamed in space and name in space and space[name] is space[renamed] and where == "unittest.case.TestCase":
            return False  # as of old; whether that one is what it was is asked by its own name
        if self.is_pytest_mocks(space.get(name), name):
            return False
        if name not in space:
            return True
        origin = self.origins.origin_of(space[name], kind)
        function = self.origins.plain_function_of(space[name])
        if origin is TESTS and kind in (ASKED, DECIDING) and function is not None:
            # Tests replace by what is meant for it; any function of theirs may do nothing.
            return not is_like(name, function.__code__)
        return origin not in MAY_REPLACE[kind]

    def kind_of(self, name: str, where: str) -> str:
        """What for a name is asked whose function it may be; of pytest and unittest themselves, most strictly."""
        family = where.partition(".")[0]
        if says_what_holds(where, name):
            return ASKED
        if family == "unittest" or any(one[1] == name and one[3] == where for one in self.vital):
            return DECIDING
        return TAKING_PART if family in FAMILIES else OTHER

    def is_pytest_mocks(self, value: "Any", name: str) -> bool:
        """Whether an assertion of a mock is pytest-mock's, which calls the one of that name and tells more of it."""
        function = self.origins.function_of(value)
        if function is None or function.__name__ != "wrap_" + name or self.origins.origin_of(function) is not PLUGINS:
            return False
        return str(function.__globals__.get("__name__")).partition(".")[0] == "pytest_mock"

    def check_instance(self, test: "Any", kind: "Any", when: str) -> None:
        """Look at an instance of a test class: whether it is one still, and its assertions are unittest's.

        Args:
            test: it, or None
            kind: its class
            when: words for the report
        """
        own = getattr(test, "__dict__", None)
        if type(own) is not dict or not hasattr(kind, "failureException"):
            return
        if type(test) is not kind:
            self.report("the class of a test was changed {}".format(when))
        for name in [one for one in own if type(one) is str and one.startswith(ASSERTIONS) and hasattr(kind, one)]:
            now = self.origins.function_of(getattr(kind, RENAMED.get(name, name), None))
            value = own[name]
            if type(value) is partial and name not in self.asserting:  # of a method that the tests have themselves
                value = value.func
            if self.origins.function_of(value) is not now and not self.origins.may_replace(own[name], ASKED):
                self.report("{}.{} was replaced {}".format(kind.__name__, name, when))

    def check(self, when: str) -> None:
        """Look at everything.

        Args:
            when: words for the report
        """
        for text in self.predicates.stand_ins():
            self.report("{} {}".format(text, when), STAND_IN)
        for text in self.changes():
            self.report("{} {}".format(text, when))

    def count_test(self) -> bool:
        """Count a test that has ended, and tell whether all is to be looked at after it."""
        self.ended += 1
        if self.ended < self.next:
            return False
        self.next = self.ended + max(1, self.ended // TWENTIETH)
        return True

    def is_as_before(self, others: "Iterable[str]" = ()) -> bool:
        """Whether nothing is changed now; it may be for a while, as by a fixture.

        Args:
            others: what else is changed
        """
        for found in (self.predicates.stand_ins(), self.changes(), others):
            for _ in found:
                return False
        return True

    def changes(self) -> "Iterator[str]":
        """All that is changed now."""
        for name, module in self.modules:
            # Twins import this one where the run they are of may not have: tests put mocks of it there.
            if sys.modules.get(name, module) is not module and name != "unittest.mock":
                yield "sys.modules[{!r}] was replaced".format(name)
        for space, name, where in [one[:2] + one[3:] for one in self.names if one[0].get(one[1]) is not one[2]]:
            if self.is_change(space, name, where):
                yield "{}.{} was replaced".format(where, name)
        for space, own, where in self.global_names:
            for name in self.hideable.intersection(space) - own:
                yield "{}.{} was put before Python's own".format(where, name)
        for text in self.predicates.changed():
            yield text
        # In a list of its own: thousands are looked at.
        for where in [
            where
            for of, code, given, named, where in self.codes
            if of.__code__ is not code or of.__defaults__ is not given or of.__kwdefaults__ is not named
        ]:
            yield "the code of {} was replaced".format(where)
        for cell, held, where in self.cells:
            if content_of(cell) is not held:
                yield "the closure of {} was changed".format(where)
        for kind, space, names, mro, where in self.classes.values():
            if kind.__mro__ != mro:
                yield "the bases of {} were changed".format(where)
            if len(space) == len(names):
                continue
            for name in set(space) - names:
                value = space[name]
                if value is kind or any(vars(base).get(name) is value for base in mro[1:]):
                    continue  # As typing does with `__init__` of who implements a protocol, and attrs with itself.
                if name.startswith("__") and not name.startswith("__annot"):
                    matters = callable(value) or hasattr(type(value), "__get__")
                else:
                    matters = any(
                        name in self.classes[id(base)][2] and self.origins.function_of(vars(base).get(name)) is not None
                        for base in mro[1:]
                        if id(base) in self.classes
                    )
                kind_of_name = ASKED if name.startswith(ASSERTIONS) else self.kind_of(name, where)
                if (
                    matters
                    and not self.origins.may_replace(value, kind_of_name)
                    and not self.is_pytest_mocks(value, name)
                ):
                    yield "{}.{} was added".format(where, name)

    def report(self, text: str, kind: str = CHANGED) -> None:
        """Tell of a change once; of many the first, and that there are more."""
        if (kind, text) not in self.problems and len(self.problems) <= MOST_PROBLEMS:
            kind, text = problem = (kind, text) if len(self.problems) < MOST_PROBLEMS else (CHANGED, "and more")
            self.problems.append(problem)
            self.send("problem", of=kind, text=text)


def says_what_holds(where: str, name: str) -> bool:
    """Whether a test asks by a name whether an expectation holds.

    Args:
        where: what it is a name in
        name: it
    """
    return where == "pytest" or (where.partition(".")[0] == "unittest" and name.startswith(ASSERTIONS))
