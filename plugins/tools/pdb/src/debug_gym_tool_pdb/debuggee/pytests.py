"""Stops at each failing test of pytest."""

from debug_gym_core.debugging.inside.process import _getframe
from debug_gym_core.debugging.inside.pytests import Pytest

from .stop import Stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

    from .files import Files
    from .stop import Stops


LONGEST = 160
"""Characters that are told of an example of a doctest, of what it should print and has printed each."""
MOST_EXAMPLES = 3


class DebuggedPytest(Pytest):
    """`python -m pytest arguments`, with a plugin that stops at failing tests."""

    def __init__(self, args: "List[str]", debugger: "Stops") -> None:
        """See Program; `debugger`: what stops."""
        super().__init__("pytest", args)
        self._debugger = debugger

    def run(self) -> int:
        """See Program."""
        files = self._debugger.files
        return self.run_with(lambda: pytest_plugin(self._debugger), files.is_ignored if files.ignored else None)


def pytest_plugin(debugger: "Stops") -> object:
    """A plugin that stops at each failing test."""
    import pytest

    class Plugin(object):
        @pytest.hookimpl(trylast=True)
        def pytest_configure(self, config: "Any") -> None:
            debugger.take_hooks()  # pytest has put its own in place
            pytest.set_trace = debugger.hook

        @pytest.hookimpl(trylast=True)
        def pytest_exception_interact(self, node: "Any", call: "Any", report: "Any") -> None:
            stop = Stop("test failed", test=node.nodeid, when=getattr(call, "when", None))
            told = _of_examples(call.excinfo.value, debugger.files)
            if told:
                stop.details["note"] = told
            debugger.post_mortem(_underlying(call.excinfo.value), stop, _getframe(1))
            if debugger.quitting:
                pytest.exit("the debugger quit", returncode=0)

        @pytest.hookimpl(trylast=True)
        def pytest_runtest_logreport(self, report: "Any") -> None:
            if debugger.quitting:  # at a breakpoint: for pytest a test failed, after which come others
                pytest.exit("the debugger quit", returncode=0)

    return Plugin()


def _of_examples(error: BaseException, files: "Files") -> str:
    """What examples of a doctest print, and should; empty for a failure of another kind, and where it is hidden."""
    found = []
    failures: "Any" = getattr(error, "failures", None) if type(error).__module__ == "_pytest.doctest" else None
    for one in failures or [error]:
        if type(one).__module__ == "doctest" and hasattr(one, "got") and not files.is_ignored(str(one.test.filename)):
            line = (one.test.lineno or 0) + one.example.lineno + 1
            told = [one.example.source.partition("\n")[0], one.example.want, one.got]
            source, want, got = (text.strip() if len(text) <= LONGEST else text[:LONGEST] + "..." for text in told)
            found.append("line {}: {} should print {!r}, printed {!r}".format(line, source, want, got))
    return "; ".join(found[:MOST_EXAMPLES])


def _underlying(error: BaseException) -> BaseException:
    """The program's exception in one of pytest's own: of a test module, a conftest or a doctest."""
    inner = getattr(error, "cause", None) or (getattr(error, "exc_info", None) or (None, None))[1]
    if type(error).__name__ == "CollectError":
        inner = error.__cause__
    of_pytest = type(error).__module__.partition(".")[0] in ("_pytest", "doctest")
    return inner if of_pytest and isinstance(inner, BaseException) and inner.__traceback__ is not None else error
