"""What is asked of an expectation besides, and what that raises."""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Opposite = Callable[[], object]

AGAIN = 6
"""How often an expectation and its opposites are asked again, in an order that nobody can know."""

PATIENCE = 1.0
"""Seconds after which no more is asked than has to be, unless the expectation itself took longer."""

LEAST = 2
"""Opposites that have to be."""

now = time.monotonic


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


def is_believed(
    again: "Callable[[], object]", turned: "list[Opposite]", urandom: "Callable[[int], bytes]", took: float
) -> bool:
    """Whether an expectation holds as often as it is asked, and none of its opposites ever does.

    What answers by how often it was asked would have to guess the order.

    Args:
        again: asks it once more; raises when it does not hold any more
        turned: its opposites; each of them has to raise
        urandom: makes bytes that nobody can know
        took: seconds that it took itself
    """
    order = bytearray(urandom(AGAIN))
    if len({one & 1 for one in order}) == 1:
        order[-1] ^= 1
    end = now() + max(PATIENCE, took)
    asked = set()  # type: set[int]
    for bits in order:
        asked.add(bits & 1)
        if bits & 1:
            if fails(again):
                return False
        elif not _all_fail(turned, int.from_bytes(urandom(4), "big"), end):
            return False
        if len(asked) == 2 and now() > end:
            break
    return True


def _all_fail(turned: "list[Opposite]", start: int, end: float) -> bool:
    """Whether opposites fail; once there is no more time, some of them."""
    for place in range(len(turned)):
        if place >= LEAST and now() > end:
            break
        if not fails(turned[(start + place) % len(turned)]):
            return False
    return True
