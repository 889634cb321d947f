"""Runs pytest, and says which test a call was in, and how that test ended."""

from debug_gym_core.debugging.inside.pytests import Pytest
from debug_gym_core.debugging.inside.texts import without_addresses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    from .channel import Channel
    from .files import Files
    from .watching import Watch

MESSAGE_ROOM = 400
MOST_NAMED = 20


class TracedPytest(Pytest):
    """`python -m pytest arguments`, with a plugin.

    Attributes:
        counts: how many tests passed, failed and so on
    """

    def __init__(
        self, args: "List[str]", watch: "Watch", channel: "Channel", files: "Files", test: "Tuple[str, str, str]"
    ) -> None:
        """See Program.

        Args:
            args: pytest's
            watch: follows the call
            channel: where to tell of tests
            files: the repository's, some of which may be hidden
            test: the one that is followed, if it is one: its file, its name, and the case to run, as `[3]`; an empty
                case: all tests are run
        """
        super().__init__("pytest", args)
        self._files = files
        self.counts: "Dict[str, int]" = {}
        self._failed_within: "Dict[str, Any]" = {}
        self._watch = watch
        self._channel = channel
        self._test = test

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

    def selected(self, items: "List[Any]") -> "Optional[List[Any]]":
        """The tests to run, of those that were collected; None: all, as the function that is followed is no test.

        Raises:
            LookupError: the test has no such case; says which there are
        """
        file, name, case = self._test
        rest = [(item, item.nodeid.partition("::")[2]) for item in items if case and self._is_in(item, file)]
        known = [(item, test) for item, test in rest if test.startswith(name + "[")]
        if not known:
            return None
        # pytest writes what is not ASCII in an id by escapes.
        ids = [name + case, name + case.encode("unicode_escape").decode()]
        found = [item for item, test in known if test in ids]
        if not found:
            cases = ", ".join(test[len(name) :] for _, test in known[:MOST_NAMED])
            raise LookupError("{} has no case {}; it has {}".format(name, case, cases))
        return found

    def _is_in(self, item: "Any", file: str) -> bool:
        return self._files.real(str(getattr(item, "path", None) or item.fspath)) == file

    def _plugin(self) -> object:
        """A plugin that says of each test when it begins and how it ended."""
        import pytest

        program, watch = self, self._watch

        class Plugin(object):
            @pytest.hookimpl(trylast=True)
            def pytest_collection_modifyitems(self, config: "Any", items: "List[Any]") -> None:
                try:
                    found = program.selected(items)
                except LookupError as error:
                    raise pytest.UsageError(str(error)) from None
                if found is not None:
                    kept = {id(item) for item in found}
                    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
                    items[:] = found

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
