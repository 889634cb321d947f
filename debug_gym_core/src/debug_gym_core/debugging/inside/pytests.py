"""Runs pytest as `python -m pytest` would, in this process alone, with a plugin of the debugger's."""

import copy
import gc
import os

from debug_gym_core.debugging.inside.programs import BadTarget, Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, Optional

SWITCHES = frozenset(["-q", "-qq", "-v", "-vv", "-vvv", "-s", "-x", "-l", "-ra", "-rA", "--lf", "--ff", "--sw"])
"""Options after which the next word is an argument of its own."""


class Pytest(Module):
    """`python -m pytest arguments`."""

    steppable = False

    def find(self) -> str:
        """See Program."""
        filename = super().find()
        if "--pyargs" in self.args:  # then a test's file is named as a module
            return filename
        for before, arg in zip(["", *self.args], self.args):  # noqa: B905 (Python 3.6)
            path = arg.partition("::")[0]
            is_test = (path.endswith(".py") or "::" in arg) and arg[:1] != "-"
            if is_test and (before[:1] != "-" or before in SWITCHES) and not os.path.exists(path):
                raise BadTarget("there is no file {}".format(path))
        return filename

    def run_with(self, make_plugin: "Callable[[], object]", is_hidden: "Optional[Callable[[str], bool]]") -> int:
        """Run it to its end.

        Args:
            make_plugin: makes what pytest calls; pytest is imported then
            is_hidden: whether nothing of a file may be shown; None: all may

        Returns:
            its exit status
        """
        collects = gc.isenabled()
        gc.disable()  # what importing makes stays
        try:
            import pytest
        finally:
            if collects:
                gc.enable()
        if is_hidden is not None:
            hide_source(is_hidden)
        args = [arg for arg in self.args if arg not in ("--pdb", "--trace")]
        return int(pytest.main(args, plugins=[alone(), make_plugin()]))


def alone() -> object:
    """A plugin that keeps others from running the tests elsewhere, and from tracing them too."""
    import pytest

    class Alone:
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

        @pytest.hookimpl(optionalhook=True, tryfirst=True)
        def pytest_timeout_set_timer(self, item: "Any", settings: "Any") -> bool:
            return True  # whoever debugs must not run out of pytest-timeout's time

        @pytest.hookimpl(tryfirst=True)
        def pytest_configure(self, config: "Any") -> None:
            if hasattr(config, "_inicache"):  # nor of what a test may take until it is said where it is
                config._inicache["faulthandler_timeout"] = 0

    return Alone()


def hide_source(is_hidden: "Callable[[str], bool]") -> None:
    """Have pytest's tracebacks show nothing of hidden files but what was raised there."""
    from _pytest._code import code

    # pytest 9.2 renamed it.
    formatter: "Any" = vars(code).get("ExceptionInfoFormatter") or vars(code)["FormattedExcinfo"]
    original = formatter.repr_traceback_entry

    def repr_traceback_entry(self: "Any", entry: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        if entry is not None and is_hidden(str(entry.path)):
            self = copy.copy(self)
            self.showlocals = self.funcargs = False
            self._getentrysource = lambda entry: None
        return original(self, entry, *args, **kwargs)

    formatter.repr_traceback_entry = repr_traceback_entry
