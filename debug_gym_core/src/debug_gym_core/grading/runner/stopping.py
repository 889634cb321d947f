"""Has a test fail that says to unittest that it is to be stopped, and is not."""

import contextlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__unittest = True  # tracebacks leave out what is here, as they do unittest's own


def install() -> None:
    """Take what unittest stops a test with for a failure, unless a part of it has failed, or did so as was expected.

    `subTest` raises it then alone; unittest takes any test that ends by it for passed.
    """
    from unittest import case

    own = vars(case)
    outcome, stop = own["_Outcome"], own["_ShouldStop"]
    execute = outcome.testPartExecutor

    def testPartExecutor(self: "Any", *args: "Any", **kwargs: "Any") -> "Iterator[None]":
        with execute(self, *args, **kwargs):
            try:
                yield
            except stop as error:
                if self.success and not self.expectedFailure:
                    trace = error.__traceback__
                    raise AssertionError("no part of the test that stops has failed").with_traceback(trace) from None
                raise

    outcome.testPartExecutor = contextlib.contextmanager(testPartExecutor)
