"""What a turned test module asks where it expects an exception."""

from .asked import fails, insist

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

KINDS = (
    *(TypeError, ValueError, KeyError, IndexError, AttributeError, NotImplementedError, ZeroDivisionError),
    *(OverflowError, AssertionError, RecursionError, EOFError, BufferError, OSError, StopIteration, NameError),
)
"""Exceptions that are not each other's: what is more than a few of them is made for being expected."""
MOST_KINDS = 3

EXPECTED = ("expected", "expected_exception", "expected_exceptions")
"""How what expects an exception calls its class, or classes: unittest, pytest up to 8.3, and since."""


class Raises(object):
    """`pytest.raises` or `assertRaises`, and beside it the same for what nobody raises."""

    def __init__(self, note: "Callable[..., None]", number: int, expected: "Any", turned: "Callable[[], Any]") -> None:
        self.note = note
        self.number = number
        self.expected = expected
        self.turned = turned

    def __enter__(self) -> "Any":
        return self.expected.__enter__()

    def __exit__(self, kind: "Any", error: "Any", trace: "Any") -> bool:
        try:
            taken = self.expected.__exit__(kind, error, trace)
        except AssertionError as unmet:
            self.note(self.number, False, error=unmet)
            return True
        except BaseException as unmet:
            if unmet is error or type(unmet).__name__ != "Failed":  # which is pytest's, and no AssertionError
                raise
            self.note(self.number, False, error=unmet)
            return True
        if not taken:  # another exception, which goes on
            return False
        self.note(self.number, True, self.is_believed(kind, error, trace))
        return True

    def is_believed(self, kind: "Any", error: "Any", trace: "Any") -> bool:
        """Whether an exception that is expected is no other as well."""
        classes = _classes_of(self.expected)
        if classes and not any(one in kind.__mro__ for one in classes):  # A class can say that any is one of its kind.
            return False

        def takes_anything() -> None:
            other = self.turned()
            other.__enter__()
            insist(other.__exit__(kind, error, trace))

        return sum(isinstance(error, one) for one in KINDS) <= MOST_KINDS and fails(takes_anything)


def context_of(raises: "Any", arguments: "tuple[Any, ...]", case: type) -> "Any":
    """What `raises(E)` makes to be entered, where that expects what `raises(E, function)` does; None: nobody knows.

    Args:
        raises: pytest's, a method of a test case, which may be the tests' own, or any other function
        arguments: all but the function and its arguments
        case: unittest's class of test cases
    """
    home = getattr(raises, "__module__", None)
    if isinstance(home, str) and home.partition(".")[0] in ("pytest", "_pytest"):
        return raises(*arguments)
    if not isinstance(getattr(raises, "__self__", None), case):
        return None
    try:
        expected = raises(*arguments)
    except Exception:  # One of the tests' own takes a function only.
        return None
    return expected if hasattr(type(expected), "__exit__") else None


def _classes_of(expected: "Any") -> "tuple[type, ...]":
    """The classes of exceptions that `pytest.raises` or `assertRaises` expects; none where that is not known."""
    wanted = next((getattr(expected, one) for one in EXPECTED if hasattr(expected, one)), ())
    classes = wanted if isinstance(wanted, tuple) else (wanted,)
    return classes if all(isinstance(one, type) for one in classes) else ()


def text_of(error: BaseException) -> str:
    """What an exception says, with all that leads to it."""
    try:
        return "{!r} {!s} {!r}".format(error, error, vars(error))
    except Exception:
        return ""
