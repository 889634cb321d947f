"""Runs a task's tests in the sandbox and reports each result over a channel of its own.

Started as `python -c BOOT {channel} {blob:code}`, so that no file of ours lies in the sandbox. The first message from
the host is the configuration; then the target runs as `python -m pytest ...` or `python -m unittest ...` would, its
output untouched. A message to the host is the nonce and a JSON object: `t` (what it is), `i` (its number), the rest.

The tested code runs in this very process and may try to make its tests pass by other means than passing them. What is
done against that, and what cannot be done, is a page of the docs ("What a score proves"). In short: results are taken
from pytest's own calls and not from its reports or output; a canary test that must fail runs before and after the
others; functions of pytest, pluggy, unittest and of the test modules must be those that were there before any tested
code ran; only the process that was started reports, and only with the nonce. That is not proof: code that walks the
stack or the heap to `send` can report what it likes. It stops children, writes to open descriptors and accidents.

Standard library only, Python 3.6 to 3.13. Everything that test code could replace is taken into local names first.
"""

import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from types import FrameType, ModuleType, TracebackType
    from typing import Any, Union

    Config = dict[str, Any]
    Details = dict[str, Any]
    Send = Callable[..., None]
    Space = Mapping[str, Any]

IMPLICIT = globals().get("IMPLICIT", True)  # type: bool
"""Whether the interpreter puts the current directory into `sys.path`; given by who starts this."""

TEXT = 500
VALUE = 160
LOCALS = 20
FRAMES = 12
DETAILS = 20000
"""Characters of locals in one failure."""
DETAILED = 200
"""Failures of one run whose frames are reported."""
SLOW = 0.2
"""Seconds after which the `repr` of a value is given up."""


def main(descriptor: int) -> None:
    """Run what the host asks for, then exit as it would have.

    Args:
        descriptor: number of the channel's descriptor
    """
    config, send = open_channel(descriptor)
    be_main(config["argv"])
    target = config["argv"][1]
    if target == "pytest":
        status = run_pytest(config, send)
    elif target == "unittest":
        status = run_unittest(config, send)
    else:
        raise SystemExit("debug-gym: only pytest and unittest report")
    sys.exit(status)


def open_channel(descriptor: int) -> "tuple[Config, Send]":
    """Take over the channel and read the configuration.

    The descriptor is moved to a high number that no child inherits. The nonce is kept in a closure only: out of plain
    sight, not out of reach.

    Args:
        descriptor: the inherited one

    Returns:
        the configuration without the nonce, and `send(kind, **fields)`
    """
    import fcntl
    import json
    from json import encoder

    read, write, getpid, from_json = os.read, os.write, os.getpid, json.loads

    def receive(size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = read(descriptor, size - len(parts))
            if not part:
                raise SystemExit("debug-gym: the channel ended")
            parts += part
        return parts

    config = from_json(receive(int.from_bytes(receive(4), "big")).decode())
    nonce = config.pop("nonce")
    for lowest in (700 + int(nonce[:2], 16), 100):
        try:
            channel = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
            break
        except (OSError, ValueError):
            continue
    else:
        raise SystemExit("debug-gym: no descriptor is free")
    os.close(descriptor)
    owner = getpid()
    seal = nonce.encode()
    count = [0]
    del nonce
    make_encoder = getattr(encoder, "c_make_encoder", None)
    if make_encoder:
        # An object without Python code in it: test code cannot change what it writes.
        text = encoder.encode_basestring_ascii
        encode = make_encoder(None, str, text, None, ":", ",", False, False, True)
        join = "".join  # type: Any
    else:
        encode, join = lambda value, level: json.dumps(value), str

    def send(kind: str, **fields: "Any") -> None:
        if getpid() != owner:
            return
        fields["t"] = kind
        fields["i"] = count[0]
        count[0] += 1
        message = seal + join(encode(fields, 0)).encode()
        data = len(message).to_bytes(4, "big") + message
        try:
            while data:
                data = data[write(channel, data) :]
        except OSError:
            pass  # The host is gone or the channel was closed: nothing is left to tell and nobody to tell it.

    return config, send


def be_main(argv: "list[str]") -> None:
    """Make `sys.argv`, `sys.path` and `__main__` what `python -m` makes them."""
    import importlib.util

    package = argv[1]
    spec = None
    for place in (None, os.getcwd()):
        if place is not None and IMPLICIT:
            sys.path.insert(0, place)  # Only the workspace has it.
        try:
            spec = importlib.util.find_spec(package + ".__main__")
            break
        except ImportError:
            continue
    if spec is None:
        raise SystemExit("{}: No module named {}".format(sys.executable, package))
    space = vars(sys.modules["__main__"])
    for name in [name for name in space if name not in ("__name__", "__builtins__")]:
        del space[name]
    space.update(
        __doc__=None,
        __file__=spec.origin,
        __cached__=spec.cached,
        __loader__=spec.loader,
        __package__=package,
        __spec__=spec,
    )
    sys.argv[:] = [spec.origin or "", *argv[2:]]


def enter_workspace() -> None:
    """Put the current directory first in `sys.path`, as `python -m` does; what we need is imported by now."""
    if IMPLICIT and os.getcwd() not in sys.path[:1]:
        sys.path.insert(0, os.getcwd())


# What an exception and the repository's frames look like


class Describer(object):
    """Tells of failures: the exception in a line, the repository's frames with bounded locals."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root) + os.sep
        self.paths = {}  # type: dict[str, Union[str, None]]
        self.left = DETAILED

    def inside(self, filename: str) -> "Union[str, None]":
        """The path of a repository's file relative to the root; None for any other."""
        if filename not in self.paths:
            path = os.path.realpath(os.path.join(self.root, filename))
            relative = path[len(self.root) :] if path.startswith(self.root) and os.path.exists(path) else None
            if relative and re.search(r"(^|/)(site-packages|dist-packages|lib/python[0-9.]+)/", relative):
                relative = None
            self.paths[filename] = relative
        return self.paths[filename]

    def tell(self, error: BaseException, trace: "Union[TracebackType, None]") -> "Details":
        """Describe a failure.

        Args:
            error: the exception
            trace: its traceback

        Returns:
            `message` and `frames` as a dict
        """
        try:
            frames = self.frames(trace) if self.left > 0 else []
            self.left -= 1
            return {"message": self.line(error), "frames": frames}
        except BaseException as problem:  # Whatever objects of the tested code do must not cost the result.
            return {"message": "{} ({})".format(type(error).__name__, type(problem).__name__), "frames": []}

    def line(self, error: BaseException) -> str:
        """The exception in a line, with the one that caused it."""
        text = one_line(error)
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "{} (from {})".format(text, one_line(cause)[:VALUE]) if cause is not None else text

    def frames(self, trace: "Union[TracebackType, None]") -> "list[dict[str, Any]]":
        """The repository's frames, innermost last; of many the first few and the last."""
        found = []
        while trace is not None:
            code = trace.tb_frame.f_code
            path = self.inside(code.co_filename)
            if path:
                found.append((path, trace.tb_lineno, code.co_name, trace.tb_frame))
            trace = trace.tb_next
        if len(found) > FRAMES:
            found = found[:4] + found[4 - FRAMES :]
        budget = [DETAILS]
        told = [
            {"file": path, "line": line, "function": name, "locals": self.locals(frame, budget)}
            for path, line, name, frame in reversed(found)
        ]
        return told[::-1]

    def locals(self, frame: "FrameType", budget: "list[int]") -> "dict[str, str]":
        """The variables of a frame, without what is only imported or defined there."""
        values = {}  # type: dict[str, str]
        hidden = (type(sys), type(len), type(self.locals), type(lambda: 0), type)
        code = frame.f_code
        order = {name: place for place, name in enumerate(code.co_varnames + code.co_cellvars + code.co_freevars)}
        for name, value in sorted(frame.f_locals.items(), key=lambda one: order.get(one[0], len(order))):
            if not name.isidentifier() or name.startswith("__") or isinstance(value, hidden):
                continue
            if len(values) == LOCALS or budget[0] <= 0:
                values["..."] = "more"
                break
            values[name] = show(value)
            budget[0] -= len(name) + len(values[name])
        return values


def one_line(error: BaseException) -> str:
    """An exception's class and text on one line."""
    text = guarded(str, error)
    if type(error).__name__ in ("CollectError", "ImportError") and "Traceback" in text:
        text = text.rstrip().rpartition("\n")[2].lstrip("E ")  # It quotes a whole traceback, which ends with the cause.
    text = " ".join(text[: 8 * TEXT].split())
    name = type(error).__name__
    return without_addresses("{}: {}".format(name, text) if text else name)[:TEXT]


def without_addresses(text: str) -> str:
    """A text without the addresses of objects, which differ from run to run."""
    return re.sub(r" at 0x[0-9A-Fa-f]{4,16}\b", "", text)


BRACKETS = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
}  # type: dict[type, tuple[str, str]]


def show(value: "Any", depth: int = 2) -> str:
    """A short text for a value, whatever its size and whatever its `repr` does."""
    text = _show(value, depth)
    return text if len(text) <= VALUE else text[: VALUE - 3] + "..."


def _show(value: "Any", depth: int) -> str:
    kind = type(value)  # type: Any
    if kind in (str, bytes):
        return str(repr(value[:VALUE]))
    if kind is int:
        return repr(value) if value.bit_length() < 2000 else "<int of {} bits>".format(value.bit_length())
    brackets = BRACKETS.get(kind)
    if brackets:
        if not value:
            return str(repr(value))
        if depth < 0:
            return brackets[0] + "..." + brackets[1]
        parts = []  # type: list[str]
        for part in value.items() if kind is dict else value:
            if len(parts) == 12:
                parts.append("... {} in all".format(len(value)))
                break
            if kind is dict:
                parts.append(_show(part[0], depth - 1) + ": " + _show(part[1], depth - 1))
            else:
                parts.append(_show(part, depth - 1))
        return brackets[0] + ", ".join(parts) + ("," if kind is tuple and len(value) == 1 else "") + brackets[1]
    if kind.__repr__ is object.__repr__ and depth >= 0 and getattr(value, "__dict__", None):
        fields = ["{}={}".format(name, _show(one, depth - 1)) for name, one in list(vars(value).items())[:8]]
        return "<{} {}>".format(kind.__name__, ", ".join(fields))
    try:
        size = len(value)
    except Exception:
        size = 0
    if size > 10000 and isinstance(value, (str, bytes, list, tuple, set, frozenset, dict)):
        return "<{} of {} items>".format(kind.__name__, size)
    text = guarded(repr, value)
    return without_addresses(" ".join(text[: 4 * VALUE].split()))


class TooSlow(BaseException):
    """Raised in code of the program that takes too long to describe a value."""


def guarded(function: "Callable[[Any], Any]", value: "Any") -> str:
    """`str` or `repr` of a value; its class's name when that raises or takes too long (in the main thread)."""
    import _signal as signal  # type: ignore[import-not-found] # The module without enums: quicker to import.

    def give_up(number: int, frame: "Union[FrameType, None]") -> None:
        raise TooSlow

    before = None  # type: Any
    armed = False
    try:
        if signal.getitimer(signal.ITIMER_REAL)[0] == 0:
            before = signal.signal(signal.SIGALRM, give_up)
            armed = True
            signal.setitimer(signal.ITIMER_REAL, SLOW, 0.01)
    except (ValueError, AttributeError):
        pass  # Not in the main thread: no limit can be had.
    try:
        text = function(value)
        return text if type(text) is str else "<{}>".format(type(value).__name__)
    except BaseException:  # The program's code may raise anything, and TooSlow comes from us.
        return "<{}>".format(type(value).__name__)
    finally:
        if armed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)


# What must not change while tests run


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

KEY_HOOKS = (
    "pytest_runtestloop",
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
    "pytest_runtest_makereport",
    "pytest_runtest_logreport",
    "pytest_pyfunc_call",
    "pytest_fixture_setup",
    "pytest_collection_modifyitems",
    "pytest_sessionfinish",
)

# fmt: off
CHANGEABLE_BUILTINS = frozenset((
    "print", "open", "input", "__import__", "breakpoint", "help", "exit", "quit", "copyright", "credits", "license",
    "compile", "exec", "eval", "id", "_",
))
# fmt: on
FAMILIES = ("_pytest", "pluggy", "unittest")


class Watch(object):
    """Remembers what functions and classes were before any tested code ran, and tells what became different.

    A change counts unless the new function comes from installed code or from test infrastructure: plugins patch pytest.
    """

    def __init__(self, describer: Describer, trusted: "Union[list[str], None]") -> None:
        import builtins

        self.inside = describer.inside
        self.trusted = trusted
        self.seen = set()  # type: set[Union[int, str]]
        self.names = []  # type: list[tuple[Space, str, Any, str]]
        self.codes = []  # type: list[tuple[Any, Any, Any, str]]
        self.classes = {}  # type: dict[type, tuple[Space, frozenset[str], tuple[type, ...], str]]
        self.modules = []  # type: list[tuple[str, ModuleType]]
        self.vital = []  # type: list[tuple[Space, str, Any, str]]
        self.problems = []  # type: list[str]
        self.function = type(lambda: 0)
        self.property = property
        self.plain = frozenset((str, int, bool, float, tuple, list, dict, set, frozenset, bytes, type(None), type(sys)))
        space = vars(builtins)
        self.names += [
            (space, name, value, "builtins") for name, value in space.items() if name not in CHANGEABLE_BUILTINS
        ]

    def remember(self) -> None:
        """Take in modules of pytest, pluggy and unittest that were imported since the last call."""
        for name, module in list(sys.modules.items()):
            if module is not None and name not in self.seen and (name == "pytest" or name.split(".")[0] in FAMILIES):
                self.seen.add(name)
                self.modules.append((name, module))
                self.remember_space(vars(module), name)
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

    def remember_tests(self, module: "Union[ModuleType, None]") -> None:
        """Take in the functions and classes that a test module defines itself."""
        if module is not None and id(module) not in self.seen:
            self.seen.add(id(module))
            self.remember_space(vars(module), module.__name__, module.__name__)

    def remember_space(self, space: "Space", where: str, only: "Union[str, None]" = None) -> None:
        """Take in a module's functions and classes, or a class's methods.

        Args:
            space: its namespace
            where: its name
            only: the module whose functions and classes count; None: all functions, and the classes of `FAMILIES`
        """
        names, seen, plain = self.names, self.seen, self.plain
        for name, value in list(space.items()):
            kind = type(value)
            if kind in plain:
                continue
            if isinstance(value, type):
                home = value.__module__
                if only is not None and home != only:
                    continue
                names.append((space, name, value, where))
                if value not in self.classes and (only or str(home).partition(".")[0] in FAMILIES):
                    inner = vars(value)
                    self.classes[value] = (inner, frozenset(inner), value.__mro__, where + "." + name)
                    self.remember_space(inner, where + "." + name, only)
                continue
            function = value if kind is self.function else self.function_of(value)
            if function is not None and (only is None or function.__module__ == only):
                names.append((space, name, value, where))
                if id(function) not in seen:
                    seen.add(id(function))
                    self.codes.append((function, function.__code__, function.__defaults__, where + "." + name))

    def function_of(self, value: "Any") -> "Any":
        """The Python function in a function, method, property or wrapper; None where there is none."""
        if isinstance(value, self.property):
            value = value.fget
        value = getattr(value, "__func__", value)
        if type(value) is not self.function:
            value = getattr(value, "__wrapped__", None)
        return value if type(value) is self.function else None

    def is_trusted(self, value: "Any") -> bool:
        """Whether a function comes from installed code or from test infrastructure."""
        function = self.function_of(value)
        if function is None:
            return False
        space = function.__globals__
        module = sys.modules.get(space.get("__name__"))
        path = space.get("__file__")
        if module is None or vars(module) is not space or not isinstance(path, str):
            return False
        inside = self.inside(path)
        return inside is None or is_infrastructure(inside, self.trusted)

    def check_vital(self, when: str) -> None:
        """Look at what decides on a test's outcome; quick."""
        for space, name, value, where in self.vital:
            if space.get(name) is not value:
                self.changed(space, name, where, when)

    def changed(self, space: "Space", name: str, where: str, when: str) -> None:
        """Note that a name is bound to something else, unless the one who did it is trusted."""
        if not (name in space and self.is_trusted(space[name])):
            self.report("{}.{} was replaced {}".format(where, name, when))

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
        for function, code, defaults, where in self.codes:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                self.report("the code of {} was replaced {}".format(where, when))
        for kind, (space, names, mro, where) in self.classes.items():
            if kind.__mro__ != mro:
                self.report("the bases of {} were changed {}".format(where, when))
            if len(space) == len(names):
                continue
            for name in set(space) - names:
                value = space[name]
                if name.startswith("__") and not name.startswith("__annot"):
                    matters = callable(value) or hasattr(type(value), "__get__")
                else:
                    matters = any(
                        name in self.classes[base][1] and self.function_of(vars(base).get(name)) is not None
                        for base in mro[1:]
                        if base in self.classes
                    )
                if matters and not self.is_trusted(value):
                    self.report("{}.{} was added {}".format(where, name, when))

    def report(self, text: str) -> None:
        """Note a change once."""
        if len(self.problems) < 20 and text not in self.problems:
            self.problems.append(text)


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


def code_of(function: "Any") -> "Any":
    """The code object of a function or method."""
    return getattr(getattr(function, "__func__", function), "__code__", None)


# pytest


def run_pytest(config: "Config", send: "Send") -> int:
    """Run `pytest.main` with a plugin of ours.

    Args:
        config: what the host asks for
        send: reports to the host

    Returns:
        pytest's exit status
    """
    import pytest

    describer = Describer(config["root"])
    watch = Watch(describer, config.get("trusted"))
    watch.remember_space(globals(), "runner", "debug_gym_runner")
    if config.get("ignored"):
        hide_source(describer, frozenset(config["ignored"]))
    plugin = make_plugin(pytest, config, send, describer, watch)
    pytest_main = pytest.main
    watch.remember()
    enter_workspace()
    try:
        status = int(pytest_main(config["argv"][2:], plugins=[plugin]) or 0)
    finally:
        watch.check("at the end")
    if config["mode"] == "run" and not plugin.canaries_are_fine():
        watch.report("the canary test did not fail as it must ({})".format(plugin.why or plugin.canaries))
    send("end", status=status, sent=plugin.sent, tampered=watch.problems, internal_error=plugin.internal_error)
    sys.stdout.flush()
    return status


def hide_source(describer: Describer, ignored: "frozenset[str]") -> None:
    """Have pytest's tracebacks show nothing of some files but what was raised there.

    Args:
        describer: knows the repository's files
        ignored: paths relative to the root
    """
    import copy

    from _pytest._code import code

    # pytest 9.2 renamed it.
    formatter = vars(code).get("ExceptionInfoFormatter") or vars(code)["FormattedExcinfo"]
    original = formatter.repr_traceback_entry

    def repr_traceback_entry(self: "Any", entry: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        if entry is not None and describer.inside(str(entry.path)) in ignored:
            self = copy.copy(self)
            self.showlocals = self.funcargs = False
            self._getentrysource = lambda entry: None
        return original(self, entry, *args, **kwargs)

    formatter.repr_traceback_entry = repr_traceback_entry


def make_plugin(pytest: "Any", config: "Config", send: "Send", describer: Describer, watch: Watch) -> "Any":
    """The pytest plugin that reports.

    Args:
        pytest: the module
        config: what the host asks for
        send: reports to the host
        describer: describes failures
        watch: knows what must not change
    """
    first = pytest.hookimpl(tryfirst=True)  # type: Callable[[Any], Any]
    last = pytest.hookimpl(trylast=True)  # type: Callable[[Any], Any]
    around = pytest.hookimpl(tryfirst=True, hookwrapper=True)  # type: Callable[[Any], Any]
    secret = config["canary"]

    class Results(object):
        def __init__(self) -> None:
            self.sent = 0
            self.ran = 0
            self.canaries = []  # type: list[bool]
            self.home = None  # type: Any
            self.why = ""
            self.internal_error = ""
            self.interrupted = False
            self.current = None  # type: Any
            self.codes = {}  # type: dict[Any, Any]
            self.hooks = {}  # type: dict[str, set[int]]

        # Before any code of the repository is imported

        @first
        def pytest_load_initial_conftests(self, early_config: "Any") -> None:
            watch.remember()
            for name in KEY_HOOKS:
                hook = getattr(early_config.hook, name)
                self.hooks[name] = set(id(one.function) for one in hook.get_hookimpls())

        @around
        def pytest_cmdline_main(self, config: "Any") -> "Iterator[None]":
            option = config.option
            if hasattr(option, "numprocesses"):  # pytest-xdist: everything in this process.
                option.numprocesses, option.dist, option.tx = 0, "no", []
                if hasattr(option, "distload"):
                    option.distload = False
            if hasattr(option, "forked"):  # pytest-forked: likewise.
                option.forked = False
            if mode == "collect":
                option.collectonly = True
            yield

        # Collection

        @around
        def pytest_make_collect_report(self, collector: "Any") -> "Generator[None, Any, None]":
            outcome = yield
            report = outcome.get_result() if outcome.excinfo is None else None
            if report is not None and report.outcome == "failed":
                call = report.__dict__.get("call")
                error = call.excinfo.value if call is not None and call.excinfo else None
                if error is not None and error.__cause__ is not None:
                    error = error.__cause__  # pytest's CollectError tells of the real one.
                details = describer.tell(error, error.__traceback__) if error is not None else {}
                self.tell_test(report.nodeid, "error", details)

        @last
        def pytest_collection_finish(self, session: "Any") -> None:
            watch.check("during collection")
            ids = [item.nodeid for item in session.items]
            expected = [item.nodeid for item in session.items if cannot_pass(item)] if mode == "collect" else []
            send("collected", ids=ids, cannot_pass=expected)
            if mode == "run":
                for item in session.items:
                    self.codes[item] = code_of(getattr(item, "_obj", None))
                    watch.remember_tests(getattr(item, "module", None))

        # The tests

        @around
        def pytest_runtestloop(self, session: "Any") -> "Generator[None, Any, None]":
            option = session.config.option
            runs = session.items and not option.collectonly
            if session.testsfailed and not getattr(option, "continue_on_collection_errors", False):
                runs = False
            if runs:
                self.run_canary(session, session.items[0])
            outcome = yield
            # A run that stopped early (`-x`) has yet to tear down what it set up: no other test may come between.
            self.interrupted = not runs or bool(outcome.excinfo or session.shouldstop or session.shouldfail)
            if runs:
                self.check_hooks(session.config)
            if not self.interrupted:
                self.run_canary(session, None)

        @around
        def pytest_runtest_protocol(self, item: "Any") -> "Iterator[None]":
            watch.check_vital("before " + item.nodeid)
            if item in self.codes and code_of(getattr(item, "_obj", None)) is not self.codes[item]:
                watch.report("the code of {} was replaced".format(item.nodeid))
            self.current = current = {"item": item, "phases": {}, "details": {}}
            yield
            self.current = None
            if "teardown" in current["phases"]:
                self.ran += 1
                self.tell_test(item.nodeid, verdict(current["phases"]), current["details"])

        @around
        def pytest_runtest_makereport(self, item: "Any", call: "Any") -> "Generator[None, Any, None]":
            outcome = yield
            report = outcome.get_result() if outcome.excinfo is None else None
            current = self.current
            if report is None or current is None or item is not current["item"]:
                return
            if call.when == "call":
                watch.check_vital("in " + item.nodeid)
            phases = current["phases"]
            if call.when == "setup":
                phases.clear()  # The first attempt, or a new one.
                current["details"] = {}
            result = report.outcome
            error = call.excinfo.value if call.excinfo is not None else None
            if result == "skipped" and hasattr(report, "wasxfail"):
                result = "xfailed"
            elif result == "passed" and error is not None:
                result = "failed"  # Whoever made the report says otherwise, but the test raised.
            elif result == "passed" and hasattr(report, "wasxfail"):
                result = "xpassed"
            if result == "failed" and not current["details"]:
                if error is not None:
                    current["details"] = describer.tell(error, call.excinfo.tb)
                else:
                    current["details"] = {"message": " ".join(str(report.longrepr).split())[:TEXT]}
            elif result == "skipped" and error is not None:
                current["details"] = {"message": one_line(error)}
            if phases.get(call.when) != "failed":  # Of several parts (subtests), the worst.
                phases[call.when] = result

        @first
        def pytest_internalerror(self, excrepr: "Any") -> None:
            self.internal_error = str(excrepr)[-TEXT:]

        def tell_test(self, nodeid: str, result: str, details: "Details") -> None:
            self.sent += 1
            send("test", id=nodeid, outcome=result, **details)

        # Whether the machinery is intact

        def canaries_are_fine(self) -> bool:
            """Whether each canary that could run failed as it must."""
            if not self.ran:
                return True
            return all(self.canaries) and len(self.canaries) >= (1 if self.interrupted or self.internal_error else 2)

        def run_canary(self, session: "Any", following: "Any") -> None:
            """Run a test that must fail through pytest's own protocol."""
            import _pytest.runner

            try:
                if self.home is None:
                    modules = (item.getparent(pytest.Module) for item in session.items)
                    self.home = next((module for module in modules if module is not None), session)
                item = make_canary(pytest, self.home, secret)
                option = session.config.option
                shown, option.setupshow = getattr(option, "setupshow", False), False  # It would print our test's name.
                try:
                    reports = _pytest.runner.runtestprotocol(item, log=False, nextitem=following)
                finally:
                    option.setupshow = shown
                calls = [one for one in reports if one.when == "call"]
                fails = len(calls) == 1 and calls[0].outcome == "failed" and secret in str(calls[0].longrepr)
                self.canaries.append(fails)
                if not fails:
                    self.why = ", ".join("{} {}".format(one.when, one.outcome) for one in reports)
            except Exception as error:
                self.why = one_line(error)
                self.canaries.append(False)

        def check_hooks(self, config: "Any") -> None:
            """Only pytest, installed plugins and the repository's test infrastructure may take part in running."""
            manager = config.pluginmanager
            named = named_plugins(manager, config)
            for name in KEY_HOOKS:
                for one in getattr(config.hook, name).get_hookimpls():
                    if id(one.function) in self.hooks.get(name, ()) or one.plugin is self:
                        continue
                    if watch.is_trusted(one.function) or one.function.__globals__.get("__name__") in named:
                        continue
                    watch.report("a hook {} was added by {}".format(name, one.plugin_name))

    mode = config["mode"]
    return Results()


def make_canary(pytest: "Any", parent: "Any", secret: str) -> "Any":
    """A test function that must fail, below a real module, without fixtures."""

    def check() -> None:
        raise AssertionError(secret)

    name = "test_" + secret[:8]
    make = getattr(pytest.Function, "from_parent", None)
    item = make(parent, name=name, callobj=check) if make else pytest.Function(name, parent, callobj=check)
    item.fixturenames[:] = []  # No automatic fixture of the module shall run more often than without us.
    # What pytest would show of the failure is not needed, and is slow to make.
    item.repr_failure = lambda excinfo, style=None: str(excinfo.value)
    return item


def named_plugins(manager: "Any", config: "Any") -> "set[str]":
    """Names of modules that command line, environment or test infrastructure name as plugins."""
    names = set(getattr(config.option, "plugins", None) or ())
    names.update(os.environ.get("PYTEST_PLUGINS", "").split(","))
    for plugin in manager.get_plugins():
        listed = getattr(plugin, "pytest_plugins", ()) if isinstance(plugin, type(sys)) else ()
        names.update([listed] if isinstance(listed, str) else listed)
    return names


def cannot_pass(item: "Any") -> bool:
    """Whether marks of the pristine repository say that a test is skipped or expected to fail."""
    import pytest

    try:
        from _pytest import skipping

        if hasattr(skipping, "evaluate_skip_marks"):
            if skipping.evaluate_skip_marks(item):
                return True
            return bool(skipping.evaluate_xfail_marks(item))
        return any(mark.name == "skip" or (mark.name == "xfail" and not mark.args) for mark in item.iter_markers())
    except (Exception, pytest.fail.Exception):  # A condition that cannot be evaluated: an error when the test runs.
        return False


def verdict(phases: "dict[str, str]") -> str:
    """The outcome of a test from those of its parts."""
    if phases.get("call") == "failed":
        return "failed"
    if "failed" in phases.values():
        return "error"
    for outcome in (phases.get("setup"), phases.get("call")):
        if outcome in ("skipped", "xfailed", "xpassed"):
            return outcome
    return "passed" if phases.get("call") == "passed" else "error"


# unittest


def run_unittest(config: "Config", send: "Send") -> int:
    """Run `unittest.main` with a runner of ours.

    Args:
        config: what the host asks for
        send: reports to the host

    Returns:
        the exit status
    """
    import unittest

    describer = Describer(config["root"])
    watch = Watch(describer, config.get("trusted"))
    watch.remember_space(globals(), "runner", "debug_gym_runner")
    result_class, runner_class = unittest.TextTestResult, unittest.TextTestRunner
    unittest_main = unittest.main
    sent = [0]
    canaries = []  # type: list[bool]

    def tell(test: "Any", outcome: str, error: "Union[BaseException, None]" = None) -> None:
        sent[0] += 1
        details = describer.tell(error, error.__traceback__) if error is not None else {}
        send("test", id=unittest_id(test, describer), outcome=outcome, **details)

    class Result(result_class):  # type: ignore[misc,valid-type]
        """What unittest prints, and a report besides."""

        _bad = None  # type: Any
        _good = None  # type: Any

        def startTest(self, test: "Any") -> None:
            self._bad = self._good = None
            watch.check_vital("before " + test.id())
            result_class.startTest(self, test)

        def stopTest(self, test: "Any") -> None:
            watch.check_vital("in " + test.id())
            if self._bad is not None:
                tell(test, *self._bad)
            elif self._good is not None:
                tell(test, self._good)
            result_class.stopTest(self, test)
            self._bad = self._good = None

        def _fails(self, test: "Any", outcome: str, error: "Any") -> None:
            if isinstance(test, unittest.TestCase):
                self._bad = self._bad or (outcome, error[1])
            else:  # setUpClass and the like are no tests.
                tell(test, "error", error[1])

        def addSuccess(self, test: "Any") -> None:
            self._good = "passed"
            result_class.addSuccess(self, test)

        def addFailure(self, test: "Any", err: "Any") -> None:
            self._fails(test, "failed", err)
            result_class.addFailure(self, test, err)

        def addError(self, test: "Any", err: "Any") -> None:
            self._fails(test, "error", err)
            result_class.addError(self, test, err)

        def addSubTest(self, test: "Any", subtest: "Any", err: "Any") -> None:
            if err is not None:
                self._fails(test, "failed", err)
            result_class.addSubTest(self, test, subtest, err)

        def addSkip(self, test: "Any", reason: str) -> None:
            if isinstance(test, unittest.TestCase):
                self._good = "skipped"
            result_class.addSkip(self, test, reason)

        def addExpectedFailure(self, test: "Any", err: "Any") -> None:
            self._good = "xfailed"
            result_class.addExpectedFailure(self, test, err)

        def addUnexpectedSuccess(self, test: "Any") -> None:
            self._bad = ("failed", AssertionError("unexpected success"))
            result_class.addUnexpectedSuccess(self, test)

    class Runner(runner_class):  # type: ignore[misc,valid-type]
        resultclass = Result

        def run(self, test: "Any") -> "Any":
            """Say what was found, then run it between two canaries."""
            tests = list(flatten(test))
            watch.check("during collection")
            ids = [unittest_id(one, describer) for one in tests]
            expected = [unittest_id(one, describer) for one in tests if is_declared(one)]
            send("collected", ids=ids, cannot_pass=expected)
            if config["mode"] == "collect":
                for one in tests:
                    if type(one).__name__ == "_FailedTest":
                        tell(one, "error", getattr(one, "_exception", None))
                raise SystemExit(0)
            for one in tests:
                watch.remember_tests(sys.modules.get(type(one).__module__))
            canaries.append(canary_fails(unittest, config["canary"]))
            outcome = runner_class.run(self, test)
            canaries.append(canary_fails(unittest, config["canary"]))
            return outcome

    watch.remember()
    enter_workspace()
    # unittest.__main__ shows itself thus in its usage.
    sys.argv[0] = "{} -m unittest".format(os.path.basename(sys.executable))
    status = 0
    try:
        unittest_main(module=None, argv=sys.argv, testRunner=Runner)
    except SystemExit as exit:
        status = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
        status = int(status)
    watch.check("at the end")
    if config["mode"] == "run" and canaries not in ([], [True, True]):
        watch.report("the canary test did not fail as it must ({})".format(canaries))
    send("end", status=status, sent=sent[0], tampered=watch.problems, internal_error="")
    return status


def flatten(suite: "Any") -> "Iterator[Any]":
    """The test cases of a suite."""
    try:
        parts = iter(suite)
    except TypeError:
        yield suite
        return
    for part in parts:
        for one in flatten(part):
            yield one


def unittest_id(test: "Any", describer: Describer) -> str:
    """A test's dotted name; the path of a module that could not be imported."""
    if type(test).__name__ == "_FailedTest":
        name = getattr(test, "_testMethodName", "")
        return describer.inside(name.replace(".", "/") + ".py") or name
    return str(test.id())


def is_declared(test: "Any") -> bool:
    """Whether decorators say that a test is skipped or expected to fail."""
    method = getattr(test, getattr(test, "_testMethodName", ""), None)
    marks = ("__unittest_skip__", "__unittest_expecting_failure__")
    return any(getattr(one, mark, False) for one in (test, method) for mark in marks)


def canary_fails(unittest: "Any", secret: str) -> bool:
    """Whether a test that must fail does, through unittest's own machinery."""

    def check(self: "Any") -> None:
        raise AssertionError(secret)

    name = "test_" + secret[:8]
    result = unittest.TestResult()
    type("Test", (unittest.TestCase,), {name: check})(name).run(result)
    return len(result.failures) == 1 and secret in result.failures[0][1] and not result.wasSuccessful()
