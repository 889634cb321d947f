"""Why the program stops."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import bdb
    from typing import Any, Optional, Tuple


class Stop:
    """Why the program is stopped."""

    def __init__(
        self,
        reason: str,
        error: "Optional[BaseException]" = None,
        value: "Tuple[Any, ...]" = (),
        step: bool = False,
        **details: "Any",
    ) -> None:
        """Describe a stop.

        Args:
            reason: what the report calls it
            error: the exception that stopped the program
            value: the value that is being returned, in a tuple
            step: whether it stops only because the thread was stepping
            details: what else the report says
        """
        self.at: "Optional[bdb.Breakpoint]" = None  # the breakpoint that it is for
        self.reason = reason
        self.error = error
        self.value = value
        self.step = step
        self.details = details


class Hit:
    """A breakpoint that a thread is about to stop at.

    Attributes:
        breakpoint: which
        note: what is to be said of it, such as that its condition raised
        last: whether it is gone with this stop
    """

    def __init__(self, breakpoint: "bdb.Breakpoint", note: "Optional[str]", last: bool) -> None:
        """Describe a hit."""
        self.breakpoint = breakpoint
        self.note = note
        self.last = last
