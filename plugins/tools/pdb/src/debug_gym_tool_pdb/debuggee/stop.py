"""Why the program stops."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import bdb
    from types import FrameType
    from typing import Any, Optional, Protocol, Tuple

    from .files import Files

    class Stops(Protocol):
        """What stops a program that it did not start itself: the debugger, as those see it who run the program."""

        files: Files
        quitting: bool

        def hook(self, *args: Any, **kwargs: Any) -> None:
            """Stop for `breakpoint()`, or `pdb.set_trace()`."""

        def take_hooks(self) -> None:
            """Be what these call."""

        def post_mortem(self, error: BaseException, stop: "Stop", then: Optional[FrameType]) -> None:
            """Stop where an exception was raised."""


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
