"""Runs pytest as `python -m pytest` would, and stops at each failing test."""

import copy
import gc
import os
import sys

from .programs import BadTarget, Module
from .stop import Stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    from .stop import Stops

SWITCHES = frozenset(["-q", "-qq", "-v", "-vv", "-vvv", "-s", "-x", "-l", "-ra", "-rA", "--lf", "--ff", "--sw"])
"""Options after which the next word is an argument of its own."""


class Pytest(Module):
    """`python -m pytest arguments`, with a plugin that stops at failing tests."""

    steppable = False

    def find(self) -> str:
        """See Program."""
        filename = super().find()
        for before, arg in zip(["", *self.args], self.args):  # noqa: B905 (Python 3.6)
            path = arg.partition("::")[0]
            is_test = (path.endswith(".py") or "::" in arg) and arg[:1] != "-"
            if is_test and (before[:1] != "-" or before in SWITCHES) and not os.path.exists(path):
                raise BadTarget("there is no file {}".format(path))
        return filename

    def run(self, debugger: "Stops") -> int:
        """See Program."""
        collects = gc.isenabled()
        gc.disable()  # what importing makes stays
        try:
            import pytest
        finally:
            if collects:
                gc.enable()
        if debugger.files.ignored:
            hide_source(debugger)
        args = [arg for arg in self.args if arg not in ("--pdb", "--trace")]
        return int(pytest.main(args, plugins=[pytest_plugin(debugger)]))


def pytest_plugin(debugger: "Stops") -> object:
    """Our pytest plugin: a stop at each failing test, nothing that would run the tests elsewhere or trace them."""
    import pytest

    class Plugin(object):
        @pytest.hookimpl(hookwrapper=True)
        def pytest_load_initial_conftests(self, early_config: "Any") -> "Iterator[None]":
            if hasattr(early_config.known_args_namespace, "cov_source"):  # coverage needs the trace function too
                early_config.known_args_namespace.cov_source = []
            yield

        @pytest.hookimpl(tryfirst=True)
        def pytest_cmdline_main(self, config: "Any") -> None:
            if hasattr(config.option, "numprocesses"):  # what -n0 does, over any -n before it
                config.option.numprocesses = 0
                config.option.dist = "no"
                config.option.tx = []

        @pytest.hookimpl(trylast=True)
        def pytest_configure(self, config: "Any") -> None:
            debugger.take_hooks()  # pytest has put its own in place
            pytest.set_trace = debugger.hook

        @pytest.hookimpl(optionalhook=True, tryfirst=True)
        def pytest_timeout_set_timer(self, item: "Any", settings: "Any") -> bool:
            return True  # whoever thinks at a prompt must not run out of pytest-timeout's time

        @pytest.hookimpl(trylast=True)
        def pytest_exception_interact(self, node: "Any", call: "Any", report: "Any") -> None:
            stop = Stop("test failed", test=node.nodeid, when=getattr(call, "when", None))
            debugger.post_mortem(_underlying(call.excinfo.value), stop, sys._getframe(1))
            if debugger.quitting:
                pytest.exit("the debugger quit", returncode=0)

        @pytest.hookimpl(trylast=True)
        def pytest_runtest_logreport(self, report: "Any") -> None:
            if debugger.quitting:  # at a breakpoint: for pytest a test failed, after which come others
                pytest.exit("the debugger quit", returncode=0)

    return Plugin()


def hide_source(debugger: "Stops") -> None:
    """Have pytest's tracebacks show nothing of files that are ignored in the task but what was raised there."""
    from _pytest._code import code

    # pytest 9.2 renamed it.
    formatter = vars(code).get("ExceptionInfoFormatter") or vars(code)["FormattedExcinfo"]
    original = formatter.repr_traceback_entry

    def repr_traceback_entry(self: "Any", entry: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        if entry is not None and debugger.files.path(str(entry.path)) in debugger.files.ignored:
            self = copy.copy(self)
            self.showlocals = self.funcargs = False
            self._getentrysource = lambda entry: None
        return original(self, entry, *args, **kwargs)

    formatter.repr_traceback_entry = repr_traceback_entry


def _underlying(error: BaseException) -> BaseException:
    """The program's exception in one of pytest's own: of a test module, a conftest or a doctest."""
    inner = getattr(error, "cause", None) or (getattr(error, "exc_info", None) or (None, None))[1]
    if type(error).__name__ == "CollectError":
        inner = error.__cause__
    of_pytest = type(error).__module__.partition(".")[0] in ("_pytest", "doctest")
    return inner if of_pytest and isinstance(inner, BaseException) and inner.__traceback__ is not None else error
