"""What a backend does, for whoever checks types."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from .story import Call

    class Backend(Protocol):
        """Where events come from.

        Attributes:
            lasts: whether events go on to come after an exception has left us
        """

        lasts: bool

        def start(self) -> None:
            """Tell of calls of the function."""

        def follow(self, call: Call) -> None:
            """Tell of what a call does, and of the calls that it makes."""

        def end_only(self, call: Call) -> None:
            """Tell of a call how it ends, and no more of its lines."""

        def no_more_calls(self) -> None:
            """Tell no more of calls that begin."""

        def settle(self) -> None:
            """What is about to be told of the calling thread is told now."""

        def hears(self) -> bool:
            """Whether calls in the calling thread are told of."""

        def stop(self) -> None:
            """Tell nothing any more."""
