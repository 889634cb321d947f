"""What a turned test module asks: whether each expectation holds, and whether its opposite fails.

A test whose expectations hold and whose opposites fail ends with a failure, all others pass: what can make a test pass
that should fail makes it pass here, too, and is seen by that. See `turning`.
"""

import copy
import operator
import os

from .opposites import PLAIN, SCALARS, Methods, Nobody, Unmet, fails, insist, other, turned_call, unordered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Union

ASKED = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
}  # type: dict[str, Callable[[Any, Any], Any]]

KINDS = (TypeError, KeyError, OverflowError, AssertionError, RecursionError, EOFError, BufferError, IndexError)
"""Exceptions that are not each other's: what is more than a few of them is made for being expected."""

AGAIN = 6
"""How often an expectation and its opposites are asked again, in an order that nobody can know."""


class Expectations(object):
    """Asked by the test modules of one run.

    Args:
        secret: what the failure says of a test whose expectations hold, and the reason to skip one that has none
        failure: makes that failure of the secret
        keeps: whether what an expectation calls lives as long as it is asked, as where pytest rewrites it
    """

    # No attribute of one can stand before a method; a class that is changed is seen.
    __slots__ = (
        "anything", "failure", "hidden", "keeps", "kept", "literals", "loading", "made", "methods", "own", "secret",
        "under_way", "urandom",
    )  # fmt: skip

    Nobody = Nobody

    def __init__(
        self, secret: str, failure: "Callable[[str], BaseException]" = AssertionError, keeps: bool = False
    ) -> None:
        self.secret = secret
        self.failure = failure
        self.under_way = []  # type: list[_Test]
        self.anything = _anything()
        self.methods = Methods()
        self.made = None  # type: Any
        self.kept = []  # type: list[object]
        self.keeps = keeps
        self.own = frozenset()  # type: frozenset[int]
        self.literals = []  # type: list[object]
        self.loading = 0  # modules that run just now; what they call at their end, as a script would, is no test
        self.hidden = {}  # type: dict[Hidden, Any]
        self.urandom = os.urandom

    def test(self, certain: int, yields: bool = False) -> "_Test":
        """Around a test's body.

        Args:
            certain: how many expectations it asks in every run that passes
            yields: whether it is a generator; who runs it may not expect what is no `Exception`
        """
        return _Test(self, certain, AssertionError if yields else self.failure)

    def keep(self, value: "Any") -> "Any":
        """What is called in an expectation, as it is."""
        if self.keeps:
            self.kept.append(value)
        return value

    def literal(self, number: int, instead: object) -> "Any":
        """What a test expects, which stands nowhere in its code but something else instead."""
        return copy.deepcopy(self.literals[number])

    def hide(self, value: "Any") -> "Hidden":
        """What stands for a parameter that a test only compares with."""
        hidden = Hidden()
        self.hidden[hidden] = value
        return hidden

    def shown(self, hidden: "Hidden") -> "Any":
        """The parameter."""
        return self.hidden[hidden]

    def compare(self, number: int, operator: str, left: "Any", right: "Any", free: str = "") -> None:
        """`assert left operator right`.

        Args:
            number: below zero: it may fail in a test that passes
            operator: as it is written
            left: what is compared
            right: with what
            free: which sides, `l` or `r`, the test itself may have made to equal anything, as `mock.ANY` does
        """
        value = ASKED[operator](left, right)
        held = bool(value)
        if not held or (type(left) in SCALARS and type(right) in SCALARS):
            self.note(number, held, [])
        elif operator == "==":
            self.note(number, held, self.unequal(left, right, free), again=lambda: insist(left == right))
        else:
            self.note(number, held, unordered(operator, left, right))

    def equal(self, left: "Any", right: "Any", free: str = "") -> "Any":
        """`left == right`, on which an expectation may rest."""
        value = left == right
        if type(value) not in PLAIN:
            self.made = value, left, right, free  # Only if it is what is expected it has to be true.
        elif value and not (type(left) in SCALARS and type(right) in SCALARS):
            self.doubt_equal(left, right, free)
        return value

    def doubt_equal(self, left: "Any", right: "Any", free: str) -> None:
        """Ask for an equality, and its opposites, that is part of what is expected."""
        if not self.is_believed(lambda: insist(left == right), self.unequal(left, right, free)):
            for test in self.under_way:
                test.survived += 1

    def holds(self, number: int, value: object, truth: bool) -> None:
        """`assert value`, or `assert not value` where `truth` is False."""
        held = bool(value) is truth
        made, self.made = self.made, None
        if made is not None and made[0] is value and held and truth:
            self.doubt_equal(*made[1:])
        self.note(number, held, [])

    def method(self, asked: "tuple[int, str]", owner: "Any", name: str, *arguments: "Any", **named: "Any") -> None:
        """`owner.name(...)`, which asserts something."""
        self._call(asked, name, getattr(owner, name), arguments, named)

    def call(self, asked: "tuple[int, str]", function: "Any", *arguments: "Any", **named: "Any") -> None:
        """`function(...)`, which asserts something: known are those of unittest, its mocks, numpy and pandas."""
        self._call(asked, "", function, arguments, named)

    def _call(
        self,
        asked: "tuple[int, str]",
        name: str,
        function: "Any",
        arguments: "tuple[Any, ...]",
        named: "dict[str, Any]",
    ) -> None:
        number, free = asked
        anything = [self.is_anything(one, side in free) for one, side in zip(arguments, "lr")]  # noqa: B905 - Python 3.6
        turned = turned_call(self.methods, name, function, arguments, named, any(anything))
        if turned is None:
            function(*arguments, **named)
            return
        again = None  # type: Union[Callable[[], object], None]
        if not any(hasattr(type(one), "__next__") for one in arguments):  # An iterator can be looked at once.
            again = lambda: function(*arguments, **named)  # noqa: E731
        try:
            function(*arguments, **named)
        except AssertionError as error:
            self.note(number, False, [], error)
            return
        self.note(number, True, turned, again=again)

    def raises(self, number: int, expected: "Any", turned: "Callable[[], Any]") -> "_Raises":
        """`with expected`, which expects an exception; `turned` makes one that expects `Nobody`."""
        return _Raises(self, number, expected, turned)

    def note(
        self,
        number: int,
        held: bool,
        turned: "list[Callable[[], object]]",
        error: "Union[BaseException, None]" = None,
        again: "Union[Callable[[], object], None]" = None,
    ) -> None:
        """Keep what an expectation came to.

        Args:
            number: see `compare`
            held: whether it holds
            turned: its opposites, each of which has to raise
            error: what it raised when it does not hold
            again: asks it once more; raises when it does not hold any more; None: it can be asked once

        Raises:
            Unmet: it does not hold, which the test may take
        """
        believed = held and self.is_believed(again, turned)
        del self.kept[:]
        for test in self.under_way:
            test.asked += 1
            test.survived += not believed and (held or number > 0)
        if not held and number < 0:
            raise error or Unmet("an expectation does not hold")

    def is_believed(self, again: "Union[Callable[[], object], None]", turned: "list[Callable[[], object]]") -> bool:
        """Whether an expectation holds as often as it is asked, and none of its opposites ever does.

        What answers by how often it was asked would have to guess the order.
        """
        if not turned or again is None:
            return all(fails(one) for one in turned)
        order = bytearray(self.urandom(AGAIN))
        if len({one & 1 for one in order}) == 1:
            order[-1] ^= 1
        for bits in order:
            if bits & 1:
                if fails(again):
                    return False
            elif not all(fails(one) for one in turned):
                return False
        return True

    def is_anything(self, value: object, free: bool) -> bool:
        """Whether the test itself has made a value that may equal any other."""
        kind = type(value)
        if kind in self.anything:
            return free
        return id(getattr(kind.__eq__, "__code__", None)) in self.own

    def unequal(self, left: "Any", right: "Any", free: str) -> "list[Callable[[], object]]":
        """The opposites of a comparison that holds."""
        if self.is_anything(left, "l" in free) or self.is_anything(right, "r" in free):
            return []
        if type(right) in PLAIN:
            return [lambda: insist(left == other(right))]
        if type(left) in PLAIN:
            return [lambda: insist(other(left) == right)]
        nobody = Nobody()
        return [lambda: insist(left == nobody), lambda: insist(nobody == right)]


class Hidden(object):
    """Stands for a value and says nothing of it."""

    __slots__ = ()


class _Test(object):
    """Around the body of one test, or of one run of it."""

    __slots__ = ("asked", "certain", "failure", "owner", "survived")

    def __init__(self, owner: Expectations, certain: int, failure: "Callable[[str], BaseException]") -> None:
        self.owner = owner
        self.certain = certain
        self.failure = failure
        self.asked = 0
        self.survived = 0

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
        if self.survived or isinstance(error, Unmet):
            return True
        if error is not None:  # One that knows the secret is none that a test raises.
            return self.owner.secret in _text(error)
        if self.asked < self.certain:  # What the test asks in every run that passes was not asked.
            return True
        if not self.asked:
            import unittest

            raise unittest.SkipTest(self.owner.secret)
        raise self.failure(self.owner.secret)


class _Raises(object):
    """`pytest.raises` or `assertRaises`, and beside it the same for what nobody raises."""

    def __init__(self, owner: Expectations, number: int, expected: "Any", turned: "Callable[[], Any]") -> None:
        self.owner = owner
        self.number = number
        self.expected = expected
        self.turned = turned

    def __enter__(self) -> "Any":
        return self.expected.__enter__()

    def __exit__(self, kind: "Any", error: "Any", trace: "Any") -> bool:
        try:
            taken = self.expected.__exit__(kind, error, trace)
        except AssertionError as unmet:
            self.owner.note(self.number, False, [], unmet)
            return True
        except BaseException as unmet:
            if unmet is error or type(unmet).__name__ != "Failed":  # which is pytest's, and no AssertionError
                raise
            self.owner.note(self.number, False, [], unmet)
            return True
        if not taken:  # another exception, which goes on
            return False

        if sum(isinstance(error, one) for one in KINDS) > len(KINDS) // 2:
            self.owner.note(self.number, True, [lambda: None])
            return True

        def takes_anything() -> None:
            other = self.turned()
            other.__enter__()
            insist(other.__exit__(kind, error, trace))

        self.owner.note(self.number, True, [takes_anything])
        return True


def _anything() -> "frozenset[type]":
    """Types that are made to equal any other, as `mock.ANY` is; those that are there before any tested code runs."""
    from unittest import mock

    return frozenset((type(mock.ANY), type(mock.call)))


def _text(error: BaseException) -> str:
    """What an exception says, with all that leads to it."""
    try:
        return "{!r} {!s} {!r}".format(error, error, vars(error))
    except Exception:
        return ""
