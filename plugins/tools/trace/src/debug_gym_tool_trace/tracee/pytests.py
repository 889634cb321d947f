"""Runs pytest as `python -m pytest` would, and says which test a call was in, and how that test ended."""

import copy
import gc

from .programs import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List

    from .channel import Channel
    from .files import Files
    from .watching import Watch

MESSAGE_ROOM = 400


class Pytest(Module):
    """`python -m pytest arguments`, with a plugin.

    Attributes:
        counts: how many tests passed, failed and so on
    """

    def __init__(self, args: "List[str]", watch: "Watch", channel: "Channel", files: "Files") -> None:
        """See Program; `files`: the repository's, some of which may be hidden."""
        super().__init__("pytest", args)
        self._files = files
        self.counts: "Dict[str, int]" = {}
        self._watch = watch
        self._channel = channel

    def run(self) -> int:
        """See Program."""
        collects = gc.isenabled()
        gc.disable()  # what importing makes stays
        try:
            import pytest
        finally:
            if collects:
                gc.enable()
        if self._files.hides:
            hide_source(self._files)
        args = [arg for arg in self.args if arg not in ("--pdb", "--trace")]
        return int(pytest.main(args, plugins=[self._plugin()]))

    def report(self, report: "Any") -> None:
        """A test's set-up, call or end was run."""
        if report.when == "call" or report.outcome != "passed":
            outcome = "error" if report.when != "call" and report.outcome == "failed" else report.outcome
            self.counts[outcome] = self.counts.get(outcome, 0) + 1
            if self._watch.test_ended():
                crash = getattr(report.longrepr, "reprcrash", None) if report.outcome == "failed" else None
                message = str(getattr(crash, "message", "")).strip()
                said = message if len(message) <= MESSAGE_ROOM else message[:MESSAGE_ROOM] + "..."
                self._channel.send({"t": "test", "test": report.nodeid, "outcome": outcome, "message": said})

    def _plugin(self) -> object:
        """Our pytest plugin: besides, nothing that would run the tests elsewhere or trace them too."""
        import pytest

        program, watch = self, self._watch

        class Plugin(object):
            @pytest.hookimpl(hookwrapper=True)
            def pytest_load_initial_conftests(self, early_config: "Any") -> "Iterator[None]":
                if hasattr(early_config.known_args_namespace, "cov_source"):  # coverage has a trace function too
                    early_config.known_args_namespace.cov_source = []
                yield

            @pytest.hookimpl(tryfirst=True)
            def pytest_cmdline_main(self, config: "Any") -> None:
                if hasattr(config.option, "numprocesses"):  # what -n0 does, over any -n before it
                    config.option.numprocesses = 0
                    config.option.dist = "no"
                    config.option.tx = []

            @pytest.hookimpl(tryfirst=True)
            def pytest_runtest_logstart(self, nodeid: str) -> None:
                watch.test = nodeid

            @pytest.hookimpl(trylast=True)
            def pytest_runtest_logreport(self, report: "Any") -> None:
                program.report(report)

            @pytest.hookimpl(trylast=True)
            def pytest_runtest_logfinish(self, nodeid: str) -> None:
                watch.test = ""

        return Plugin()


def hide_source(files: "Files") -> None:
    """Have pytest show of its failures neither source nor variables of hidden files."""
    from _pytest._code import code

    formatter: "Any" = vars(code).get("ExceptionInfoFormatter") or vars(code)["FormattedExcinfo"]  # before pytest 9.2
    shown = formatter.repr_traceback_entry

    def repr_traceback_entry(self: "Any", entry: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        if entry is not None and files.is_ignored(str(entry.path)):
            self = copy.copy(self)
            self.showlocals = self.funcargs = False
            self._getentrysource = lambda entry: None
        return shown(self, entry, *args, **kwargs)

    formatter.repr_traceback_entry = repr_traceback_entry
