"""Where events come from."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .story import Call


class Backend:
    """Tells a `Watch` of calls.

    Attributes:
        lasts: whether events go on to come after an exception has left us
    """

    lasts = False

    def start(self) -> None:
        """Tell of calls of the function."""
        raise NotImplementedError

    def follow(self, call: "Call") -> None:
        """Tell of what a call does, and of the calls that it makes."""
        raise NotImplementedError

    def end_only(self, call: "Call") -> None:
        """Tell of a call how it ends, and no more of its lines."""
        raise NotImplementedError

    def no_more_calls(self) -> None:
        """Tell no more of calls that begin."""
        raise NotImplementedError

    def settle(self) -> None:
        """What is about to be told of the calling thread is told now."""
        raise NotImplementedError

    def hears(self) -> bool:
        """Whether calls in the calling thread are told of."""
        raise NotImplementedError

    def stop(self) -> None:
        """Tell nothing any more."""
        raise NotImplementedError
