"""Runs pytest, and says which test a call was in, and how that test ended."""

from debug_gym_core.debugging.inside.pytests import Pytest
from debug_gym_core.debugging.inside.texts import without_addresses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List

    from .channel import Channel
    from .files import Files
    from .watching import Watch

MESSAGE_ROOM = 400


class TracedPytest(Pytest):
    """`python -m pytest arguments`, with a plugin.

    Attributes:
        counts: how many tests passed, failed and so on
    """

    def __init__(self, args: "List[str]", watch: "Watch", channel: "Channel", files: "Files") -> None:
        """See Program; `files`: the repository's, some of which may be hidden."""
        super().__init__("pytest", args)
        self._files = files
        self.counts: "Dict[str, int]" = {}
        self._failed_within: "Dict[str, Any]" = {}
        self._watch = watch
        self._channel = channel

    def run(self) -> int:
        """See Program."""
        return self.run_with(self._plugin, self._files.is_ignored if self._files.hides else None)

    def report(self, report: "Any") -> None:
        """A test's set-up, call or end was run, or a part of it that is reported by itself."""
        if type(report).__name__.lower() == "subtestreport":
            if report.outcome == "failed":
                self._failed_within.setdefault(report.nodeid, report)
            return
        if report.when == "call" or report.outcome != "passed":
            part = self._failed_within.pop(report.nodeid, None) if report.when == "call" else None
            report = part if part is not None and report.outcome != "skipped" else report
            outcome = "error" if report.when != "call" and report.outcome == "failed" else report.outcome
            if hasattr(report, "wasxfail") and outcome in ("skipped", "passed"):
                outcome = "xfailed" if outcome == "skipped" else "xpassed"
            self.counts[outcome] = self.counts.get(outcome, 0) + 1
            if self._watch.test_ended():
                crash = getattr(report.longrepr, "reprcrash", None) if report.outcome == "failed" else None
                message = without_addresses(str(getattr(crash, "message", "")).strip())
                said = message if len(message) <= MESSAGE_ROOM else message[:MESSAGE_ROOM] + "..."
                self._channel.send({"t": "test", "test": report.nodeid, "outcome": outcome, "message": said})

    def _plugin(self) -> object:
        """A plugin that says of each test when it begins and how it ended."""
        import pytest

        program, watch = self, self._watch

        class Plugin(object):
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
