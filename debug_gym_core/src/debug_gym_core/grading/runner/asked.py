"""What is asked of an expectation besides, and what that raises."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Opposite = Callable[[], object]


class Unmet(AssertionError):
    """An expectation does not hold."""


class Opposites(object):
    """What has to raise where an expectation holds.

    Attributes:
        apart: asks for something else than what is expected
        against: asks for the opposite of what is expected, and so tells what that is
    """

    __slots__ = ("against", "apart")

    def __init__(self, apart: "Sequence[Opposite]" = (), against: "Sequence[Opposite]" = ()) -> None:
        self.apart = list(apart)
        self.against = list(against)


def insist(condition: object) -> None:
    """Raise unless a condition holds."""
    if not condition:
        raise Unmet("the opposite does not hold")


def fails(opposite: "Callable[[], object]") -> bool:
    """Whether it raises."""
    try:
        opposite()
    except Exception:
        return True
    except BaseException as error:  # pytest's own are none of these
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        return True
    return False
