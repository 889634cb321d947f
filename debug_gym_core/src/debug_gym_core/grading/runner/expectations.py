"""What a turned test module asks: whether each expectation holds, and whether its opposite fails.

A test whose expectations hold and whose opposites fail ends with a failure, all others pass: what can make a test pass
that should fail makes it pass here, too, and is seen by that. See `turning`.
"""

import operator
import os
import sys

from .anything import Anything
from .around import Around
from .arrays import array_opposites, insist_on, is_by_elements, is_scalar, listed
from .asked import Opposites, Unmet, fails, insist, is_believed, now
from .mocks import OF_MOCKS, is_put
from .opposites import Methods, in_order, quietly, turned_call, unequal, unordered
from .origins import LIBRARY, NOBODY, PLUGINS, TESTS
from .pairs import Pairs
from .raising import Raises, context_of, text_of
from .statements import Statements
from .unlike import PLAIN, Nobody, is_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Union

    Later = Callable[[], Any]

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

_getframe = sys._getframe

UNCOMPARING = frozenset((
    "assertIsInstance", "assertNotIsInstance", "assertTrue", "assertFalse", "assertIsNone", "assertIsNotNone",
    "assertIs", "assertIsNot",
))  # fmt: skip
"""Methods of unittest that compare nothing with their second argument."""

OFTEN = 300
"""Expectations of one test after which only one in sixteen has its opposites asked, as in a loop over millions."""


class Expectations(object):
    """Asked by the test modules of one run.

    Args:
        secret: what the failure says of a test whose expectations hold, and the reason to skip one that has none
        failure: makes that failure of the secret
        keeps: whether what an expectation calls lives as long as it is asked, as where pytest rewrites it

    Attributes:
        origin_of: where a function comes from, see `Origins`
    """

    # No attribute of one can stand before a method; a class that is changed is seen.
    __slots__ = (
        "anything", "begun", "failure", "hidden", "keeps", "kept", "literals", "loading",
        "made", "methods", "origin_of", "secret", "statements", "under_way", "urandom",
    )  # fmt: skip

    Nobody = Nobody

    def __init__(
        self, secret: str, failure: "Callable[[str], BaseException]" = AssertionError, keeps: bool = False
    ) -> None:
        self.secret = secret
        self.failure = failure
        self.under_way = []  # type: list[Around]
        self.anything = Anything()
        self.methods = Methods()
        self.made = None  # type: Any
        self.kept = []  # type: list[object]
        self.keeps = keeps
        self.literals = []  # type: list[Later]
        self.loading = 0  # modules that run just now; what they call at their end, as a script would, is no test
        self.hidden = {}  # type: dict[Hidden, Any]
        self.urandom = os.urandom
        self.begun = now()
        self.origin_of = lambda function: LIBRARY  # type: Callable[[Any], str]
        self.statements = Statements()

    def test(self, certain: int, yields: bool = False) -> Around:
        """Around a test's body.

        Args:
            certain: how many expectations it asks in every run that passes
            yields: whether it is a generator; who runs it may not expect what is no `Exception`
        """
        around = Around(self, certain, AssertionError if yields else self.failure)
        self.statements.begin(around, _getframe(1).f_globals)
        return around

    def keep(self, value: "Any") -> "Any":
        """What is called in an expectation, as it is."""
        if self.keeps:
            self.kept.append(value)
        return value

    def literal(self, number: int, instead: object) -> "Any":
        """What a test expects, which stands nowhere in its code but something else instead."""
        return self.literals[number]()

    def named(self, number: int) -> "Any":
        """What a test calls by a name that stands nowhere in its code."""
        frame = _getframe(1)
        first, *others = self.literals[number]()
        known = frame.f_globals if first in frame.f_globals else frame.f_builtins
        if first not in known:
            raise NameError("name {!r} is not defined".format(first))
        value = known[first]
        for one in others:
            value = getattr(value, one)
        return value

    def hide(self, value: "Any") -> "Hidden":
        """What stands for a parameter that a test only compares with."""
        hidden = Hidden()
        self.hidden[hidden] = value
        return hidden

    def shown(self, hidden: "Hidden") -> "Any":
        """The parameter."""
        return self.hidden[hidden]

    def uses(self, statement: int) -> None:
        """Look at what a statement of a turned module is about to use; see `statements`."""
        self.statements.look(statement, _getframe(1), self.under_way, self.loading > 0)

    def compare(
        self, number: int, operator: str, left: "Any", right: "Any", free: str = "", says: "Union[Later, None]" = None
    ) -> None:
        """`assert left operator right, says`.

        Args:
            number: below zero: it may fail in a test that passes
            operator: as it is written
            left: what is compared
            right: with what
            free: which sides the test itself may have made to equal anything, as `mock.ANY` does; see `Bindings.free`
            says: makes the message of the assertion
        """
        self.note(number, *self.link(operator, left, right, free), says=says)

    def chain(
        self,
        number: int,
        operators: "tuple[str, ...]",
        free: str,
        left: "Any",
        right: "Any",
        *later: "Later",
        says: "Union[Later, None]" = None,
    ) -> None:
        """`assert left operator right operator ..., says`, of which what comes later is made when it is needed."""
        held, believed = self.link(operators[0], left, right, free)
        for written, make in zip(operators[1:], later):  # noqa: B905 - Python 3.6
            if not held:
                break
            left, right = right, make()
            held, true = self.link(written, left, right, free)
            believed = believed and true
        self.note(number, held, believed, says=says)

    def link(self, operator: str, left: "Any", right: "Any", free: str) -> "tuple[bool, bool]":
        """Whether a comparison holds, and whether that is to be believed."""
        if (is_data(left) and is_data(right)) or self.is_often():
            return bool(ASKED[operator](left, right)), True
        again = None  # type: Union[Callable[[], object], None]
        if operator == "==":
            opposites = self.unequal(left, right, free)
            again = lambda: insist(left == right)  # noqa: E731
        else:
            opposites = unordered(operator, left, right, self.anything.is_made(left, "l" in free))
        early = self.is_believed_before(opposites)
        held = bool(ASKED[operator](left, right))
        return held, not held or (early and self.is_believed(again, opposites))

    def equal(self, left: "Any", right: "Any", free: str = "") -> "Any":
        """`left == right`, on which an expectation may rest."""
        if (is_data(left) and is_data(right)) or self.is_often(compared=True):
            return left == right
        by_elements = is_by_elements(left, right)
        opposites = array_opposites(left, right, free) if by_elements else self.unequal(left, right, free)
        early = self.is_believed_before(opposites)
        value = left == right
        if by_elements or is_by_elements(value):
            again = lambda: insist_on(value, left, right)  # noqa: E731
            if not (early and self.is_believed(again, opposites)):
                self.doubt()
        elif type(value) not in PLAIN and not is_scalar(value):
            self.made = value, left, right, free  # Only if it is what is expected it has to be true.
        elif value and not (early and self.is_believed(lambda: insist(left == right), opposites)):
            self.doubt()
        return value

    def doubt_equal(self, left: "Any", right: "Any", free: str) -> None:
        """Ask for an equality, and its opposites, that is part of what is expected."""
        if not self.is_believed(lambda: insist(left == right), self.unequal(left, right, free)):
            self.doubt()

    def doubt(self) -> None:
        """Do not believe the test at hand."""
        for test in self.under_way:
            test.survived += 1

    def holds(self, number: int, value: object, truth: bool, says: "Union[Later, None]" = None) -> None:
        """`assert value, says`, or `assert not value, says` where `truth` is False."""
        held = bool(value) is truth
        made, self.made = self.made, None
        if made is not None and held and truth:
            result, left, right, free = made
            if result is value:
                self.doubt_equal(left, right, free)
        self.note(number, held, says=says)

    # What is called may have arguments of any name, `self` too.

    def method(*given: "Any", **named: "Any") -> None:
        """`owner.name(...)`, which asserts something; given are self, what is asked, owner, name, and the rest."""
        self, asked, owner, name = given[:4]
        function = getattr(owner, name)
        if name in OF_MOCKS and self.origin_of(function) is NOBODY and is_put(owner, name):
            self.doubt()
        self._call(asked, name, function, given[4:], named)

    def call(*given: "Any", **named: "Any") -> None:
        """`function(...)`, which asserts something: known are those of unittest, its mocks, numpy and pandas."""
        self, asked, function = given[:3]
        self._call(asked, "", function, given[3:], named)

    def _call(
        self,
        place: "tuple[int, str]",
        name: str,
        function: "Any",
        arguments: "tuple[Any, ...]",
        named: "dict[str, Any]",
    ) -> None:
        number, free = place
        if self.is_often():
            function(*arguments, **named)
            self.note(number, True)
            return
        if getattr(function, "__name__", "") == "assertCountEqual":  # which makes lists of them first
            arguments = tuple(list(one) if hasattr(one, "__next__") or type(one) is dict else one for one in arguments)
        anything = [self.anything.is_made(one, side in free) for one, side in zip(arguments, "lr")]  # noqa: B905 - Python 3.6
        given, options = in_order(arguments, named)
        options = quietly(function, given, options)
        changing, inside = "", []  # type: str, list[tuple[Any, Any]]
        if len(given) > 1 and name not in UNCOMPARING:
            changing = self.anything.changing(given[0], given[1], free)
            inside = Pairs(self.anything, free).of(*listed(given[0], given[1]))
        asked = function
        opposites = turned_call(self.methods, name, function, given, options, anything, changing, inside)
        if opposites is None and name in self.methods.methods and self.origin_of(function) in (TESTS, PLUGINS):
            function(*arguments, **named)
            self.note(number, True)  # what its opposite is only its author knows
            return
        if opposites is None:  # The tested code's own is unittest's as a rule, with something besides.
            asked = self.methods.own(function, name)
            opposites = turned_call(self.methods, name, asked, given, options, anything, changing, inside)
        once = any(hasattr(type(one), "__next__") for one in arguments)  # An iterator can be looked at once.
        early = self.is_believed_before(opposites or Opposites())
        if opposites is None or (asked is not function and (once or fails(lambda: asked(*arguments, **named)))):
            function(*arguments, **named)
            return
        again = None if once else lambda: asked(*given, **options)
        try:
            function(*arguments, **named)
        except AssertionError as error:
            self.note(number, False, error=error)
            return
        self.note(number, True, early and self.is_believed(again, opposites))

    def raises(self, number: int, expected: "Any", turned: "Callable[[], Any]") -> Raises:
        """`with expected`, which expects an exception; `turned` makes one that expects `Nobody`."""
        return Raises(self.note, number, expected, turned)

    def raising(*given: "Any", **named: "Any") -> None:
        """`raises(E, function, ...)`; given are self, a number, how many arguments are not the function's, and all."""
        self, number, own, raises = given[:4]
        arguments = given[4:]
        expected = context_of(raises, arguments[:own], self.methods.case)
        if expected is None:
            raises(*arguments, **named)
            if self.origin_of(raises) in (TESTS, PLUGINS):
                self.note(number, True)
            return
        with self.raises(number, expected, lambda: raises(Nobody, *arguments[1:own])):
            arguments[own](*arguments[own + 1 :], **named)

    def note(
        self,
        number: int,
        held: bool,
        believed: bool = True,
        error: "Union[BaseException, None]" = None,
        says: "Union[Later, None]" = None,
    ) -> None:
        """Keep what an expectation came to.

        Args:
            number: see `compare`
            held: whether it holds
            believed: whether none of its opposites does
            error: what it raised when it does not hold
            says: see `compare`

        Raises:
            Unmet: it does not hold, which the test may take
        """
        del self.kept[:]
        for test in self.under_way:
            test.asked += 1
            test.survived += not (held and believed) and (held or number > 0)
        if not held and number < 0:
            raise error or Unmet("an expectation does not hold" if says is None else says())

    def told_in(self, error: BaseException) -> BaseException:
        """The failure of a test whose expectations hold, where a group of exceptions is raised that it is in."""
        left = [error]
        while left:
            one = left.pop()
            inner = getattr(one, "exceptions", None)
            if isinstance(inner, tuple):
                left += inner
            elif self.secret in text_of(one):
                return one
        return error

    def is_often(self, compared: bool = False) -> bool:
        """Whether the test at hand has asked so much that its next expectation is only counted.

        Args:
            compared: it is a comparison that may be part of one
        """
        if not self.under_way:
            return False
        test = self.under_way[-1]
        test.compared += compared
        asked = test.compared if compared else test.asked
        return asked > OFTEN and self.urandom(1)[0] >= 16

    def is_believed_before(self, opposites: Opposites) -> bool:
        """Whether none of some opposites holds that are asked before what is expected is known.

        What is equal to whatever it is compared with first is found out; and how many come first nobody can know.
        """
        self.begun = now()
        apart = opposites.apart
        if not apart:
            return True
        count, start = self.urandom(2)
        return all(fails(apart[(start + one) % len(apart)]) for one in range(1 + count % 3))

    def is_believed(self, again: "Union[Callable[[], object], None]", opposites: Opposites) -> bool:
        """Whether an expectation holds as often as it is asked, and none of its opposites ever does.

        Args:
            again: asks it once more; raises when it does not hold any more; None: it can be asked once
            opposites: each of them has to raise
        """
        turned = opposites.apart + opposites.against
        if not turned or again is None:
            return all(fails(one) for one in turned)
        return is_believed(again, turned, self.urandom, now() - self.begun)

    def unequal(self, left: "Any", right: "Any", free: str) -> Opposites:
        """The opposites of a comparison that holds."""
        if self.anything.is_made(left, "l" in free) or self.anything.is_made(right, "r" in free):
            return Opposites()
        opposites = unequal(left, right, self.anything.changing(left, right, free))
        for pair in Pairs(self.anything, free).of(left, right):
            opposites.apart += unequal(pair[0], pair[1], "lr").apart
        return opposites


class Hidden(object):
    """Stands for a value and says nothing of it."""

    __slots__ = ()
