"""What stands around the body of a turned test, and says at its end whether the test is believed."""

from .asked import Unmet
from .raising import text_of
from .statements import STRANGE, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Union


class Around(object):
    """Around the body of one test, or of one run of it.

    Args:
        owner: the `Expectations` that the test asks
        certain: how many expectations it asks in every run that passes
        failure: makes the failure of a test whose expectations hold
    """

    __slots__ = ("asked", "certain", "compared", "failure", "looks", "owner", "strange", "survived", "used")

    def __init__(self, owner: "Any", certain: int, failure: "Callable[[str], BaseException]") -> None:
        self.owner = owner
        self.certain = certain
        self.failure = failure
        self.asked = 0
        self.compared = 0
        self.survived = 0
        self.looks = 0
        self.used = set()  # type: set[int]
        self.strange = set()  # type: set[str]

    def __enter__(self) -> None:
        self.owner.under_way.append(self)

    def __exit__(self, kind: object, error: "Union[BaseException, None]", trace: "Union[TracebackType, None]") -> bool:
        self.owner.under_way.remove(self)
        if not self.owner.under_way:
            self.owner.hidden.clear()
        if self.owner.loading:
            return False
        if self.owner.under_way:  # Another test calls this one, and has been told what it asked.
            for test in self.owner.under_way:
                test.survived += error is None and self.asked < self.certain
            return False
        # What is asked in every run that passes has to be.
        holds = error is None and not self.survived and self.asked >= self.certain
        if self.strange:  # told whatever becomes of the test, which may fail in the unchanged repository
            told = (self.owner.secret + " " if holds else "") + STRANGE + listed(self.strange)
            raise self.failure(told) from None
        if not holds:
            passes = error is None or self.survived > 0 or isinstance(error, Unmet)
            return passes or (error is not None and self.owner.secret in text_of(error))  # which no test raises
        if not self.asked:
            import unittest

            raise unittest.SkipTest(self.owner.secret)
        raise self.failure(self.owner.secret)
