"""Runs tests with pytest, as `python -m pytest` does, and reports their results.

They are taken from the calls that pytest makes: what a report of its says counts less than what a test raised.
"""

import gc
import sys
from functools import partial

from . import doctests, files
from .canary import SURVIVED, Canaries, plain_repr
from .describe import TEXT, Describer, one_line
from .elsewhere import elsewhere
from .given import Finder, read
from .hooks import Hooks
from .items import Found, cannot_pass, code_of, found, instance_of, root_of
from .origins import DECIDING
from .rewriting import rewritten
from .start import enter_workspace
from .stopping import install
from .stuck import watch as watch_stuck
from .tampering import Watch
from .twins import origins_of, turner_of

WORST = ("xfailed", "skipped", "failed")
"""Outcomes that no better one of another part of the test takes the place of."""

GARBAGE = 200000
"""Objects that are made between two looks for garbage while tests are only found: of many tests hardly any is."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
    from typing import Any

    from .channel import Config, Send
    from .describe import Details
    from .given import Compile
    from .tampering import Space

    Decorator = Callable[[Any], Any]


class Loading(object):
    """What the test modules are loaded from: the files as they are before any tested code runs, or turned.

    Whose files those are is told by the ids of tests, which the host believes: a path of pytest's can say anything.

    Args:
        config: what the host asks for
        failure: makes the failure of a test whose expectations hold
    """

    def __init__(self, config: "Config", failure: "Callable[[str], BaseException]") -> None:
        self.texts = read(config["root"], config.get("given") or ())
        self.doctests = frozenset((config.get("turned") or {}).get("doctests", ()))
        self.turner = turner_of(config, failure, True) if config.get("turned") else None
        self.finder = self.turner or Finder()
        self.root = ""

    def begin(self, compiled: "Compile", root: str) -> None:
        """Compile them as pytest does, and find them before pytest's own finder, which is there by now.

        Args:
            compiled: makes code of a text and a path
            root: see `root_of`
        """
        self.root = root
        self.finder.compile(self.texts, compiled)
        if self.finder.codes:
            self.finder.install()

    def secure(self, node: "Any") -> None:
        """Let a file be loaded whatever was done to how modules are found.

        Args:
            node: of pytest's for it
        """
        if self.finder.codes:
            self.finder.install()
            self.finder.forget_others(self.place_of(node, node.nodeid))

    def place_of(self, node: "Any", name: str) -> str:
        """The path of a test's file."""
        if not self.root:
            return str(getattr(node, "path", None) or node.fspath)
        return files.plain(files.joined(self.root, name.partition("::")[0]))

    def turn_doctests(self, items: "Iterable[Any]", skipped: "Callable[[str], BaseException]") -> None:
        """Have doctests asked what the test modules ask, if these are turned."""
        if self.turner is not None:
            asked = self.turner.expectations
            doctests.turn(items, self.doctests, asked.failure, skipped, asked.secret)

    def replaced(self, tests: "Iterable[Found]") -> "list[str]":
        """Files from which there are tests that were loaded from something else."""
        pairs = ((self.place_of(one.item, one.name), getattr(one.item, "module", None)) for one in tests)
        return sorted({path for path, module in pairs if self.finder.is_other(path, module)})


def run_pytest(config: "Config", send: "Send", own: "Mapping[str, Space]") -> int:
    """Run `pytest.main` with a plugin of ours.

    Args:
        config: what the host asks for
        send: reports to the host
        own: the namespaces of our modules

    Returns:
        pytest's exit status
    """
    pytest = imported()
    if config["mode"] == "collect":
        gc.set_threshold(GARBAGE, 50, 50)
    describer = Describer(config["root"], bool(config["details"]))
    loading = Loading(config, partial(pytest.fail.Exception, pytrace=False))
    watch = Watch(origins_of(config, describer.inside, loading.finder), send)
    watch.remember_own(own)
    if config.get("ignored"):
        hide_source(describer, frozenset(config["ignored"]))
    canaries = Canaries(pytest, config["canary"])
    plugin = make_plugin(pytest, config["mode"], send, describer, watch, canaries, loading)
    pytest_main = pytest.main
    watch_stuck(send, plugin.captured)
    install()
    watch.remember()
    send("begun")  # from here on code of the repository runs, which must not run twice
    enter_workspace()
    try:
        status = int(pytest_main(config["argv"][2:], plugins=[plugin]) or 0)
    finally:
        watch.check("at the end")
    least = 1 if plugin.interrupted else 2
    if config["mode"] == "run" and plugin.ran and not canaries.are_fine(least):
        watch.report(SURVIVED.format(canaries.why or canaries.failed))
    send("end", status=status)
    sys.stdout.flush()
    return status


def imported() -> "Any":
    """Import pytest, without a look for garbage meanwhile nor ever after at what that made: it stays."""
    collects = gc.isenabled()
    gc.disable()
    try:
        import pytest
    finally:
        if collects:
            gc.enable()
    if hasattr(gc, "freeze"):
        gc.freeze()  # pytest looks ten times at all that there is before it ends, which took a third of a short run
    return pytest


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


def make_plugin(
    pytest: "Any",
    mode: str,
    send: "Send",
    describer: Describer,
    watch: Watch,
    canaries: Canaries,
    loading: Loading,
) -> "Any":
    """The pytest plugin that reports. Tests can reach it: what it works with is in a closure and no attribute.

    Args:
        pytest: the module
        mode: `run`, or `collect`
        send: reports to the host
        describer: describes failures
        watch: knows what must not change
        canaries: run before and after the tests
        loading: what the test modules are loaded from
    """
    hooks = Hooks(watch)
    first = pytest.hookimpl(tryfirst=True)  # type: Decorator
    last = pytest.hookimpl(trylast=True)  # type: Decorator
    around = pytest.hookimpl(tryfirst=True, hookwrapper=True)  # type: Decorator

    class Results(object):
        def __init__(self) -> None:
            self.ran = 0
            self.interrupted = False
            self.current = None  # type: Any
            self.tests = {}  # type: dict[int, Found]
            self.capture = None  # type: Any
            self.collects = None  # type: Any

        def captured(self) -> str:
            """What the test that runs has printed."""
            return "".join(self.capture.read_global_capture()) if self.capture is not None else ""

        # Before any code of the repository is imported

        @first
        def pytest_load_initial_conftests(self, early_config: "Any") -> None:
            watch.remember()
            compiled = rewritten(early_config, watch.origins.plain_function_of)
            watch.origins.compiled.append(compiled)
            hooks.remember(early_config)
            self.capture = early_config.pluginmanager.getplugin("capturemanager")
            loading.begin(compiled, root_of(early_config))

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
            if loading.turner is not None:  # No failure ends the run, is tried again or shown.
                option.maxfail, option.tbstyle = 0, "no"
                if hasattr(option, "reruns"):
                    option.reruns = 0
                if hasattr(option, "stepwise"):
                    option.stepwise = False
            yield

        def pytest_plugin_registered(self, plugin: "Any", manager: "Any") -> None:
            hooks.meet(manager.get_name(plugin), plugin)
            if self.collects is not None:  # At once: it may be gone when it has put others in the tests' places.
                hooks.check(self.collects.config, self, plugin)

        # Collection

        @first
        def pytest_collection(self, session: "Any") -> None:
            hooks.check(session.config, self)  # Where nothing can be collected, no test will run, either.
            self.collects = session

        @around
        def pytest_make_collect_report(self, collector: "Any") -> "Generator[None, Any, None]":
            loading.secure(collector)
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
            self.collects = None
            watch.check("during collection")
            hooks.check(session.config, self)
            tests = found(session.items)
            for path in loading.replaced(tests):
                watch.report("the tests of {} were not loaded from it".format(describer.inside(path)))
            ids = [one.name for one in tests]
            self.tests = {id(one.item): one for one in tests}
            expected = [one.name for one in tests if cannot_pass(one.item)] if mode == "collect" else []
            foreign = elsewhere(describer) if mode == "collect" else []
            send("collected", ids=ids, cannot_pass=expected, elsewhere=foreign)
            if mode == "run":
                for one in tests:
                    watch.remember_tests(getattr(one.item, "module", None))
            loading.turn_doctests(session.items, pytest.skip.Exception)

        # The tests

        @around
        def pytest_runtestloop(self, session: "Any") -> "Generator[None, Any, None]":
            option = session.config.option
            runs = session.items and not option.collectonly
            if session.testsfailed and not getattr(option, "continue_on_collection_errors", False):
                runs = False
            if runs:
                canaries.run(session, session.items[0])
            outcome = yield
            # A run that stopped early (`-x`) has yet to tear down what it set up: no other test may come between.
            self.interrupted = not runs or bool(outcome.excinfo or session.shouldstop or session.shouldfail)
            if runs:
                hooks.check(session.config, self)
            if not self.interrupted:
                canaries.run(session, None)

        @around
        def pytest_runtest_protocol(self, item: "Any") -> "Iterator[None]":
            watch.check_vital("before " + item.nodeid)
            known = self.tests.get(id(item))
            if known is not None and code_of(getattr(item, "_obj", None)) is not known.code:
                watch.report("the code of {} was replaced".format(known.name))
            own = vars(item).get("runtest") if loading.turner is None else None  # doctests are turned by one
            if own is not None and not watch.origins.may_replace(own, DECIDING):
                watch.report("the runtest of {} was replaced".format(item.nodeid))
            self.current = current = {"item": item, "phases": {}, "details": {}}
            if loading.turner is not None:  # What the test has replaced may be needed for more.
                item.repr_failure = item._repr_failure_py = plain_repr
            yield
            self.current = None
            # Of one that was not found nothing is told: it may say that it is any other one.
            if known is not None and "teardown" in current["phases"]:
                self.ran += 1
                sure = (
                    loading.turner is None
                    and watch.count_test()
                    and watch.is_as_before(hooks.others(item.config, self))
                )
                self.tell_test(known.name, verdict(current["phases"]), current["details"], sure)

        @first
        def pytest_fixture_setup(self, fixturedef: "Any") -> None:
            hooks.check_fixture(fixturedef)

        @around
        def pytest_runtest_makereport(self, item: "Any", call: "Any") -> "Generator[None, Any, None]":
            outcome = yield
            report = outcome.get_result() if outcome.excinfo is None else None
            current = self.current
            if report is None or current is None or item is not current["item"]:
                return
            if call.when == "call":
                watch.check_vital("in " + item.nodeid)
                watch.check_instance(instance_of(item), getattr(item, "cls", None), "in " + item.nodeid)
            phases = current["phases"]
            if call.when == "setup":
                phases.clear()  # The first attempt, or a new one.
                current["details"] = {}
            result = report.outcome
            error = call.excinfo.value if call.excinfo is not None else None
            trace = call.excinfo.tb if error is not None else None
            if loading.turner is not None and error is not None:
                error = loading.turner.expectations.told_in(error)
            if result == "skipped" and hasattr(report, "wasxfail"):
                result = "xfailed"
            elif result == "passed" and error is not None:
                result = "failed"  # Whoever made the report says otherwise, but the test raised.
            elif result == "passed" and hasattr(report, "wasxfail"):
                result = "xpassed"
            if result == "failed" and not current["details"]:
                if error is not None:
                    current["details"] = describer.tell(error, trace)
                else:
                    current["details"] = {"message": " ".join(str(report.longrepr).split())[:TEXT]}
            elif result in ("skipped", "xfailed") and error is not None:
                current["details"] = {"message": one_line(error)}
            # Of several parts (subtests), the worst: one that is skipped is not passed by what comes after it.
            before = phases.get(call.when)
            if before not in WORST or (result in WORST and WORST.index(result) > WORST.index(before)):
                phases[call.when] = result

        @first
        def pytest_internalerror(self) -> None:
            self.interrupted = True

        def tell_test(self, nodeid: str, result: str, details: "Details", sure: bool = False) -> None:
            send("test", id=nodeid, outcome=result, sure=sure, **details)

    return Results()


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
