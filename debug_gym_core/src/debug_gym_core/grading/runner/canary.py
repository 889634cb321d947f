"""Tests that must fail: where one does not, the machinery that runs the others says nothing about them either."""

from .describe import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

SURVIVED = "the canary, a test that must fail, did not: something changes how tests run ({})"


class Canaries(object):
    """Those that pytest's own protocol runs.

    Attributes:
        failed: of each, whether it failed as it must
        why: what the last of them did that did not
    """

    def __init__(self, pytest: "Any", secret: str) -> None:
        self.pytest = pytest
        self.secret = secret
        self.home = None  # type: Any
        self.failed = []  # type: list[bool]
        self.why = ""

    def are_fine(self, least: int) -> bool:
        """Whether each failed as it must, and there were as many as there have to be."""
        return all(self.failed) and len(self.failed) >= least

    def run(self, session: "Any", following: "Any") -> None:
        """Run one.

        Args:
            session: pytest's
            following: the test that comes next, None after the last
        """
        import _pytest.runner

        pytest, secret = self.pytest, self.secret
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
            self.failed.append(fails)
            if not fails:
                self.why = ", ".join("{} {}".format(one.when, one.outcome) for one in reports)
        except Exception as error:
            self.why = one_line(error)
            self.failed.append(False)


def make_canary(pytest: "Any", parent: "Any", secret: str) -> "Any":
    """A test function that must fail, below a real module, without fixtures."""

    def check() -> None:
        raise AssertionError(secret)

    name = "test_" + secret[:8]
    make = getattr(pytest.Function, "from_parent", None)
    item = make(parent, name=name, callobj=check) if make else pytest.Function(name, parent, callobj=check)
    item.fixturenames[:] = []  # No automatic fixture of the module shall run more often than without us.
    item.repr_failure = plain_repr
    # Ours is in no file: where it lies would be looked for from the working directory, which a test may have removed.
    item.reportinfo = lambda: (getattr(parent, "path", None) or parent.fspath, 0, name)
    return item


def plain_repr(error: "Any", style: "Union[str, None]" = None) -> "Any":
    """What pytest would show of a failure, quickly, and whatever the tests have done to what it is made with.

    Args:
        error: pytest's ExceptionInfo
        style: how it would be shown
    """
    try:
        return error.getrepr(style="native")  # Hooks of the repository may look at it.
    except Exception:
        return one_line(error.value)


def canary_fails(unittest: "Any", secret: str) -> bool:
    """Whether a test that must fail does, through unittest's own machinery."""

    def check(self: "Any") -> None:
        raise AssertionError(secret)

    name = "test_" + secret[:8]
    result = unittest.TestResult()
    type("Test", (unittest.TestCase,), {name: check})(name).run(result)
    return len(result.failures) == 1 and secret in result.failures[0][1] and not result.wasSuccessful()
