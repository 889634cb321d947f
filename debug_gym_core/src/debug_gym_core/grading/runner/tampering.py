"""What must not change while tests run: functions and classes of pytest, pluggy, unittest, the tests, and our own."""

import os
import sys
from functools import partial

from .opposites import RENAMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any, Union

    Space = Mapping[str, Any]

MOST_PROBLEMS = 30
"""Changes that are told of one run."""

CHANGED, HOOK = KINDS = "changed", "hook"
"""What a change may be: of a function or class, or a hook that came later. What is not told may be of any kind."""

VITAL = (
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
    "pluggy.hooks._HookCaller __call__",
    "pluggy._manager.PluginManager _hookexec",
    "pluggy.manager.PluginManager _hookexec",
)
"""Looked at around each test: an owner and names in it; those that a version does not have are passed over."""

# fmt: off
CHANGEABLE_BUILTINS = frozenset((
    "print", "open", "input", "__import__", "breakpoint", "help", "exit", "quit", "copyright", "credits", "license",
    "compile", "exec", "eval", "id", "_",
))
# fmt: on
PREDICATES = (
    "math isclose isnan isinf isfinite",
    "posixpath exists lexists isfile isdir islink samefile",
    "filecmp cmp",
    "subprocess run call check_call check_output",
    "numpy allclose array_equal array_equiv isclose",
    "numpy.testing._private.utils assert_equal assert_array_compare assert_almost_equal assert_approx_equal",
    "numpy.testing._private.utils assert_array_equal assert_allclose assert_array_almost_equal assert_array_less",
    "pandas._testing.asserters assert_frame_equal assert_series_equal assert_index_equal assert_almost_equal",
    "pandas._testing.asserters assert_extension_array_equal assert_numpy_array_equal assert_attr_equal",
    "pandas.core.generic.NDFrame equals",
)
"""What tests like to assert of others: an owner, which may be imported at any time, and its functions."""

FAMILIES = ("_pytest", "pluggy", "unittest")
STANDARD = os.path.dirname(os.__file__) + os.sep
ASSERTIONS = ("assert", "fail")
"""How the names of unittest's methods begin that say whether an expectation holds."""

TESTS, PLUGINS, LIBRARY, NOBODY = "test infrastructure", "other installed code", "Python or pytest", "the tested code"
"""Where a function or class comes from."""

ASKED, DECIDING, OTHER = "asked", "deciding", "other"
"""What a name is for: by it a test asks whether an expectation holds; it is in `VITAL`; any other."""

MAY_REPLACE = {
    ASKED: (TESTS,),  # what is installed is no better than any other that takes as much, and raises nothing
    DECIDING: (TESTS, PLUGINS),  # no plugin binds one of these to another function of pytest
    OTHER: (TESTS, PLUGINS, LIBRARY),
}
"""Whose functions and classes may be bound to a name meanwhile."""


class Watch(object):
    """Remembers what functions and classes were before any tested code ran, and tells what became different.

    A change counts unless the new function is of somebody who `MAY_REPLACE` such a one: plugins patch pytest.

    Attributes:
        problems: what became different: of which of `KINDS`, and in words
        is_loaded: whether a namespace is that of a module which the host has given, under whatever name: of several
            modules `conftest` the last has it
    """

    def __init__(self, inside: "Callable[[str], Union[str, None]]", trusted: "Union[list[str], None]") -> None:
        """See `is_infrastructure` for what is trusted.

        Args:
            inside: the path of a repository's file relative to the root; None for any other
            trusted: see `is_infrastructure`
        """
        import builtins
        from unittest import TestCase

        self.asserting = frozenset(dir(TestCase))
        self.inside = inside
        self.trusted = trusted
        self.seen = set()  # type: set[Union[int, str]]
        self.names = []  # type: list[tuple[Space, str, Any, str]]
        self.codes = []  # type: list[tuple[Any, Any, Any, str]]
        self.classes = {}  # type: dict[int, tuple[type, Space, frozenset[str], tuple[type, ...], str]]
        self.modules = []  # type: list[tuple[str, ModuleType]]
        self.vital = []  # type: list[tuple[Space, str, Any, str]]
        self.global_names = []  # type: list[tuple[Space, frozenset[str], str]]
        self.problems = []  # type: list[tuple[str, str]]
        self.early = frozenset()  # type: frozenset[int]
        self.function = type(lambda: 0)
        self.property = property
        self.methods = (staticmethod, classmethod, type(self.report))
        self.builtin = (type(len), type)
        self.getprofile = sys.getprofile
        self.is_loaded = lambda space: False  # type: Callable[[Space], bool]
        self.plain = frozenset((str, int, bool, float, tuple, list, dict, set, frozenset, bytes, type(None), type(sys)))
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
        self.early = frozenset(id(one[0]) for one in self.codes)
        for line in VITAL:
            owner, _, names = line.partition(" ")
            space = self.find(owner)
            for name in names.split():
                if space is not None and name in space:
                    self.vital.append((space, name, space[name], owner))

    def find(self, owner: str) -> "Union[Space, None]":
        """The namespace of a module or of a class in one."""
        module, _, name = owner.rpartition(".")
        if owner in sys.modules:
            return vars(sys.modules[owner])
        found = getattr(sys.modules.get(module), name, None)
        return vars(found) if isinstance(found, type) else None

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
            homes: modules whose functions and classes count; none: all functions, and the classes of `FAMILIES`
        """
        names, seen, plain = self.names, self.seen, self.plain
        for name, value in list(space.items()):
            kind = type(value)
            if kind in plain:
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
            function = value if kind is self.function else self.function_of(value)
            if function is not None and (not homes or function.__module__ in homes):
                names.append((space, name, value, where))
                # What a decorator of the tested code made is that code, which may write it when it is first called.
                if id(function) not in seen and (not homes or function.__globals__.get("__name__") in homes):
                    seen.add(id(function))
                    self.codes.append((function, function.__code__, function.__defaults__, where + "." + name))

    def function_of(self, value: "Any") -> "Any":
        """The Python function in a function, method, property or wrapper; None where there is none."""
        if issubclass(type(value), self.property):
            value = value.fget
        elif issubclass(type(value), self.methods):
            value = value.__func__
        if type(value) is not self.function:
            try:  # Of itself: a proxy asked for it would ask what it stands for, which may not be there.
                value = object.__getattribute__(value, "__wrapped__")
            except Exception:
                return None
        return value if type(value) is self.function else None

    def may_replace(self, value: "Any", kind: str) -> bool:
        """Whether a function, or a class, may stand where another one was, or none.

        Args:
            value: it
            kind: what the name is for
        """
        return self.origin_of(value) in MAY_REPLACE[kind]

    def origin_of(self, value: "Any") -> str:
        """Where a function, or a class, comes from."""
        function = self.function_of(value)
        if function is not None:
            space = function.__globals__
        elif issubclass(type(value), type):
            space = vars(sys.modules.get(value.__module__, sys))
            if space.get(value.__name__) is not value:
                return NOBODY
        else:
            return NOBODY
        module = sys.modules.get(space.get("__name__"))
        path = space.get("__file__")
        if not isinstance(path, str):
            return NOBODY
        if (module is None or vars(module) is not space) and not self.is_loaded(space):
            return NOBODY
        if id(function) in self.early:  # inside, too, where the repository is pytest's own
            return LIBRARY
        inside = self.inside(path)
        if inside is None:
            return LIBRARY if path.startswith(STANDARD) and "site-packages" not in path else PLUGINS
        return TESTS if is_infrastructure(inside, self.trusted) else NOBODY

    def check_vital(self, when: str) -> None:
        """Look at what decides on a test's outcome; quick."""
        for space, name, value, where in self.vital:
            if space.get(name) is not value:
                self.changed(space, name, where, when)
        profile = self.getprofile()
        if profile is not None:
            while type(profile).__name__ == "partial" and hasattr(profile, "func"):
                profile = profile.func
            calls = [vars(base)["__call__"] for base in type(profile).__mro__ if "__call__" in vars(base)]
            called = next((one for one in (profile, *calls) if self.function_of(one) is not None), None)
            if called is not None and self.origin_of(called) == NOBODY:
                self.report("a profile function of the tested code's was there {}".format(when))

    def changed(self, space: "Space", name: str, where: str, when: str) -> None:
        """Note that a name is bound to something else, unless to what may be there."""
        kind = ASKED if says_what_holds(where, name) else OTHER
        renamed = RENAMED.get(name, "")
        if renamed in space and name in space and space[name] is space[renamed] and where == "unittest.case.TestCase":
            return  # as of old; whether that one is what it was is asked by its own name
        if self.is_pytest_mocks(space.get(name), name):
            return
        if kind is OTHER and any(one[1] == name and one[3] == where for one in self.vital):
            kind = DECIDING
        if name not in space or not self.may_replace(space[name], kind):
            self.report("{}.{} was replaced {}".format(where, name, when))

    def is_pytest_mocks(self, value: "Any", name: str) -> bool:
        """Whether an assertion of a mock is pytest-mock's, which calls the one of that name and tells more of it."""
        function = self.function_of(value)
        if function is None or function.__name__ != "wrap_" + name or self.origin_of(function) is not PLUGINS:
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
            now = self.function_of(getattr(kind, RENAMED.get(name, name), None))
            value = own[name]
            if type(value) is partial and name not in self.asserting:  # of a method that the tests have themselves
                value = value.func
            if self.function_of(value) is not now and not self.may_replace(own[name], ASKED):
                self.report("{}.{} was replaced {}".format(kind.__name__, name, when))

    def check(self, when: str) -> None:
        """Look at everything.

        Args:
            when: words for the report
        """
        for name, module in self.modules:
            if sys.modules.get(name, module) is not module:
                self.report("sys.modules[{!r}] was replaced {}".format(name, when))
        for space, name, where in [one[:2] + one[3:] for one in self.names if one[0].get(one[1]) is not one[2]]:
            self.changed(space, name, where, when)
        for space, own, where in self.global_names:
            for name in self.hideable.intersection(space) - own:
                self.report("{}.{} was put before Python's own {}".format(where, name, when))
        self.check_predicates(when)
        for function, code, defaults, where in self.codes:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                self.report("the code of {} was replaced {}".format(where, when))
        for kind, space, names, mro, where in self.classes.values():
            if kind.__mro__ != mro:
                self.report("the bases of {} were changed {}".format(where, when))
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
                        name in self.classes[id(base)][2] and self.function_of(vars(base).get(name)) is not None
                        for base in mro[1:]
                        if id(base) in self.classes
                    )
                kind_of_name = ASKED if name.startswith(ASSERTIONS) else OTHER
                if matters and not self.may_replace(value, kind_of_name) and not self.is_pytest_mocks(value, name):
                    self.report("{}.{} was added {}".format(where, name, when))

    def check_predicates(self, when: str) -> None:
        """Look at what is not imported yet when all else is remembered: whether it is its owner's own still."""
        for line in PREDICATES:
            owner, _, names = line.partition(" ")
            space = self.find(owner) or {}
            for name in names.split():
                value = space.get(name)
                if self.function_of(value) is not None:
                    replaced = not self.may_replace(value, OTHER)
                else:
                    replaced = isinstance(value, self.builtin) and value.__name__ != name
                if replaced:
                    self.report("{}.{} was replaced {}".format(owner, name, when))

    def report(self, text: str, kind: str = CHANGED) -> None:
        """Note a change once; of many the first, and that there are more."""
        if (kind, text) not in self.problems and len(self.problems) <= MOST_PROBLEMS:
            self.problems.append((kind, text) if len(self.problems) < MOST_PROBLEMS else (CHANGED, "and more"))


def says_what_holds(where: str, name: str) -> bool:
    """Whether a test asks by a name whether an expectation holds.

    Args:
        where: what it is a name in
        name: it
    """
    return where == "pytest" or (where.partition(".")[0] == "unittest" and name.startswith(ASSERTIONS))


def is_infrastructure(path: str, trusted: "Union[list[str], None]") -> bool:
    """Whether a file of the repository belongs to its tests.

    Args:
        path: relative to the root
        trusted: the paths that the host restored, directories ending in `/`; None where nothing was: then by name
    """
    if trusted is not None:
        return any(path == one or (one.endswith("/") and path.startswith(one)) for one in trusted)
    parts = path.split("/")
    name = parts[-1]
    if name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py") or name == "test.py":
        return True
    return any(part in ("test", "tests", "testing") for part in parts[:-1])
