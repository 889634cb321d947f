"""Runs tests with unittest, as `python -m unittest` does, and reports their results."""

import os
import sys

from .canary import SURVIVED, canary_fails
from .describe import TEXT, VALUE, Describer, guarded
from .elsewhere import elsewhere
from .given import Finder, plainly, read
from .start import enter_workspace
from .stopping import install
from .stuck import watch as watch_stuck
from .tampering import Watch
from .twins import origins_of, turner_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Union

    from .channel import Config, Send
    from .tampering import Space


def run_unittest(config: "Config", send: "Send", own: "Mapping[str, Space]") -> int:
    """Run `unittest.main` with a runner of ours.

    Args:
        config: what the host asks for
        send: reports to the host
        own: the namespaces of our modules

    Returns:
        the exit status
    """
    import unittest

    describer = Describer(config["root"], bool(config["details"]))
    turner = turner_of(config) if config.get("turned") else None
    finder = turner or Finder()
    watch = Watch(origins_of(config, describer.inside, finder), send)
    watch.remember_own(own)
    result_class, runner_class = unittest.TextTestResult, unittest.TextTestRunner
    unittest_main = unittest.main
    canaries = []  # type: list[bool]

    def described(error: "Union[BaseException, None]") -> "Any":
        return describer.tell(error, error.__traceback__) if error is not None else {}

    def tell(test: "Any", outcome: str, details: "Any" = None, why: str = "", sure: bool = False) -> None:
        details = dict(details or {})
        if why:
            details["message"] = str(why)[:TEXT]
        send("test", id=unittest_id(test, describer), outcome=outcome, sure=sure, **details)

    class Result(result_class):  # type: ignore[misc,valid-type]
        """What unittest prints, and a report besides."""

        _bad = None  # type: Any
        _good = None  # type: Any
        _why = ""
        _kind = None  # type: Any

        def startTest(self, test: "Any") -> None:
            self._bad, self._good, self._why = None, None, ""
            self._kind = type(test)
            watch.check_vital("before " + test.id())
            result_class.startTest(self, test)

        def stopTest(self, test: "Any") -> None:
            watch.check_vital("in " + test.id())
            watch.check_instance(test, self._kind, "in " + test.id())
            sure = turner is None and watch.count_test() and watch.is_as_before()
            if self._bad is not None:
                tell(test, self._bad[0], self._bad[1], sure=sure)
            elif self._good is not None:
                tell(test, self._good, why=self._why, sure=sure)
            result_class.stopTest(self, test)
            self._bad = self._good = None

        def _fails(self, test: "Any", outcome: str, error: "Any", part: str = "") -> None:
            if isinstance(test, unittest.TestCase):
                # At once: the variables of a failed part of a test change while the others run.
                details = {} if self._bad else described(error[1])
                if part and details:
                    details["message"] = "{} {}".format(part[:VALUE], details["message"])[:TEXT]
                self._bad = self._bad or (outcome, details)
            else:  # setUpClass and the like are no tests.
                tell(test, "error", described(error[1]))

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
                self._fails(test, "failed", err, guarded(_parameters, subtest))
            result_class.addSubTest(self, test, subtest, err)

        def addSkip(self, test: "Any", reason: str) -> None:
            if isinstance(test, unittest.TestCase):
                self._good, self._why = "skipped", reason
            result_class.addSkip(self, test, reason)

        def addExpectedFailure(self, test: "Any", err: "Any") -> None:
            self._good = "xfailed"
            result_class.addExpectedFailure(self, test, err)

        def addUnexpectedSuccess(self, test: "Any") -> None:
            self._bad = ("failed", described(AssertionError("unexpected success")))
            result_class.addUnexpectedSuccess(self, test)

    class Runner(runner_class):  # type: ignore[misc,valid-type]
        resultclass = Result

        def run(self, test: "Any") -> "Any":
            """Say what was found, then run it between two canaries."""
            tests = list(flatten(test))
            watch.check("during collection")
            ids = [unittest_id(one, describer) for one in tests]
            expected = [unittest_id(one, describer) for one in tests if is_declared(one, _method(one))]
            foreign = elsewhere(describer) if config["mode"] == "collect" else []
            send("collected", ids=ids, cannot_pass=expected, elsewhere=foreign)
            if config["mode"] == "collect":
                for one in tests:
                    if type(one).__name__ == "_FailedTest":
                        tell(one, "error", described(getattr(one, "_exception", None)))
                raise SystemExit(0)
            for name in sorted({type(one).__module__ for one in tests}):
                if finder.stands_for_other(config["root"], name, sys.modules.get(name)):
                    watch.report("the tests of {} were not loaded from its file".format(name))
                watch.remember_tests(sys.modules.get(name))
            if turner is not None:
                self.failfast = False
            canaries.append(canary_fails(unittest, config["canary"]))
            outcome = runner_class.run(self, test)
            canaries.append(canary_fails(unittest, config["canary"]))
            return outcome

    finder.compile(read(config["root"], config.get("given") or ()), plainly)
    if finder.codes:
        finder.install()
    watch_stuck(send, buffered)
    install()
    watch.remember()
    send("begun")  # from here on code of the repository runs, which must not run twice
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
        watch.report(SURVIVED.format(canaries))
    send("end", status=status)
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


def _parameters(subtest: "Any") -> str:
    """Which part of a test it is, as unittest writes it: `(i=1)`."""
    return str(subtest._subDescription())


def unittest_id(test: "Any", describer: Describer) -> str:
    """A test's dotted name; the path of a module that could not be imported."""
    if type(test).__name__ == "_FailedTest":
        name = getattr(test, "_testMethodName", "")
        return describer.inside(name.replace(".", "/") + ".py") or name
    return str(test.id())


def buffered() -> str:
    """What the test that runs has printed, with `--buffer`."""
    return "".join(one.getvalue() for one in (sys.stdout, sys.stderr) if hasattr(one, "getvalue"))


def _method(test: "Any") -> "Any":
    return getattr(test, getattr(test, "_testMethodName", ""), None)


def is_declared(*where: "Any") -> bool:
    """Whether decorators say of a test (it or its class, and its method) that it is skipped or expected to fail."""
    marks = ("__unittest_skip__", "__unittest_expecting_failure__")
    return any(getattr(one, mark, False) is True for one in where for mark in marks)
