"""Asks of doctests that pass whether another output would pass as well, as `expectations` asks of other tests."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

FLAGS = (
    "ALLOW_BYTES",
    "ALLOW_UNICODE",
    "DONT_ACCEPT_BLANKLINE",
    "DONT_ACCEPT_TRUE_FOR_1",
    "ELLIPSIS",
    "FAIL_FAST",
    "IGNORE_EXCEPTION_DETAIL",
    "NORMALIZE_WHITESPACE",
    "NUMBER",
    "REPORT_CDIFF",
    "REPORT_NDIFF",
    "REPORT_ONLY_FIRST_FAILURE",
    "REPORT_UDIFF",
)
"""The options of `doctest` and pytest under which not every output is taken; of others nobody knows."""

AGAIN = 2
"""How often the expected output and its opposites are compared, in an order that nobody can know."""


class Asking(object):
    """Stands for what compares the outputs of a doctest, and has it compare others too.

    Args:
        checker: what compares them
        numbers: mask of the option under which numbers are compared as exactly as they are written

    Attributes:
        meant: what is expected, by what the examples say instead: who reads it there reads what is wrong
        held: how many outputs were as expected, and not as something else
        anything: whether one was taken for something else too
    """

    def __init__(self, checker: "Any", numbers: int) -> None:
        self.checker = checker
        self.numbers = numbers
        self.meant = {}  # type: dict[str, str]
        self.held = 0
        self.anything = False

    def __getattr__(self, name: str) -> "Any":
        return getattr(self.checker, name)

    def hide(self, text: str, short: "Callable[[str], str]") -> str:
        """What an example says instead of what it expects; `short` is what `doctest` may make of either."""
        other = letters(32) + "\n"
        self.meant[short(other)] = short(text)
        self.meant[other] = text
        return other

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether an output is as expected; see `doctest.OutputChecker`."""
        if want not in self.meant:
            return bool(self.checker.check_output(want, got, optionflags))
        meant = self.meant[want]
        others = [want, scrambled(meant)]
        if "..." not in meant and not optionflags & self.numbers:
            others.append(nearly(meant))
        asked = sorted(AGAIN * [meant] + AGAIN * others, key=lambda _: os.urandom(4))
        taken = [(one == meant, bool(self.checker.check_output(one, got, optionflags))) for one in asked]
        held = all(answer for right, answer in taken if right)
        if any(answer for right, answer in taken if not right):
            self.anything = True
        elif held:
            self.held += 1
        return held


def letters(count: int) -> str:
    """Letters that nobody can know, none of which is of a number or the prefix of a string."""
    return "".join("ghijklmnopqstwyz"[byte % 16] for byte in os.urandom(count))


def scrambled(text: str) -> str:
    """An output of the same shape of which nothing is the same."""
    return "".join(one if one.isspace() else another(one) for one in text)


def nearly(text: str) -> str:
    """An output with another character somewhere."""
    places = [place for place, one in enumerate(text) if not one.isspace()]
    place = places[int.from_bytes(os.urandom(4), "big") % len(places)]
    return text[:place] + another(text[place]) + text[place + 1 :]


def another(letter: str) -> str:
    """Another letter."""
    found = letters(1)
    return found if found != letter else "v"


def turn(
    items: "Iterable[Any]",
    names: "frozenset[str]",
    failure: "Callable[[str], BaseException]",
    skipped: "Callable[[str], BaseException]",
    secret: str,
) -> None:
    """Have doctests fail whose expectations hold, and whose opposites do not.

    Args:
        items: what pytest found, doctests among it
        names: ids of those that the host takes for doctests
        failure: makes the failure of one
        skipped: makes what skips one that expects nothing, or is none
        secret: what they say
    """
    for item in items:
        if hasattr(item, "dtest") and hasattr(getattr(item, "runner", None), "_checker"):
            item.runtest = asking(item, failure, skipped, secret)
        elif item.nodeid in names:
            item.runtest = raising(skipped(secret))


def asking(
    item: "Any",
    failure: "Callable[[str], BaseException]",
    skipped: "Callable[[str], BaseException]",
    secret: str,
) -> "Callable[[], None]":
    """What runs a doctest and asks; the arguments are those of `turn`."""
    import doctest

    flags = doctest.OPTIONFLAGS_BY_NAME
    known = sum(flags.get(name, 0) for name in FLAGS)
    runtest = item.runtest

    def expects(example: "Any") -> bool:
        """Whether an example expects an output, or an exception, and not every one."""
        options = item.runner.optionflags
        for flag, on in example.options.items():
            options = options | flag if on else options & ~flag
        return bool(example.want.strip()) and not options & ~known

    def run() -> None:
        runner = item.runner
        checker = runner._checker
        runner._checker = asked = Asking(checker, flags.get("NUMBER", 0))
        examples = [(one, one.want, one.exc_msg) for one in item.dtest.examples if expects(one)]
        try:
            for example, want, message in examples:
                if message is None:
                    example.want = asked.hide(want, str)
                else:
                    example.exc_msg = asked.hide(message, short_message)
            runtest()
        finally:
            runner._checker = checker
            for example, want, message in examples:
                example.want, example.exc_msg = want, message
        if not examples:
            raise skipped(secret)
        if asked.held >= len(examples) and not asked.anything:
            raise failure(secret)

    return run


def short_message(message: str) -> str:
    """What `doctest` compares of an exception of which only the class matters."""
    import doctest

    return str(vars(doctest)["_strip_exception_details"](message))


def raising(error: BaseException) -> "Callable[[], None]":
    """What runs a test that cannot be asked."""

    def run() -> None:
        raise error

    return run
