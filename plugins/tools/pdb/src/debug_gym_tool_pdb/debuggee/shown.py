"""Frames whose locals were shown: what they were then, for as long as the frame is there."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Dict, Iterable, Optional, Set

    from .values import Marked

    Tracer = Callable[[FrameType, str, Any], Any]


class Followed:
    """Stands where a frame has its trace function, and goes when the frame goes.

    Attributes:
        instead_of: what traced the frame before it was suspended
    """

    def __init__(self, left: "Callable[[int], None]", frame: int, instead_of: "Optional[Tracer]" = None) -> None:
        """Call `left` with the identity of the frame."""
        self._left = left
        self._frame = frame
        self.active = True
        self.instead_of = instead_of

    def __call__(self, frame: "FrameType", event: str, arg: "Any") -> None:
        """Trace nothing."""

    def __del__(self) -> None:
        if self.active:
            self._left(self._frame)


class Shown:
    """What was shown of the locals of frames, by the identity of each.

    An identity may be another frame's as soon as its frame is gone, so whoever traces tells of every end.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._seen: "Dict[int, Dict[str, Marked]]" = {}
        self._followed: "Set[int]" = set()

    def last(self, frame: "FrameType") -> "Optional[Dict[str, Marked]]":
        """What was shown of a frame; None: nothing yet."""
        return self._seen.get(id(frame))

    def keep(self, frame: "FrameType", values: "Dict[str, Marked]") -> None:
        """Remember what is shown of a frame."""
        self._seen[id(frame)] = values

    def left(self, frame: int) -> None:
        """Forget the locals of a frame that is gone: its identity may be another frame's soon."""
        self._seen.pop(frame, None)
        self._followed.discard(frame)

    def keep_only(self, tops: "Iterable[Optional[FrameType]]") -> None:
        """Forget the locals of all frames but those that are called now, by their innermost ones.

        A suspended generator may be gone before anything tells, unless it is followed.
        """
        alive = set(self._followed)
        for top in tops:
            frame = top
            while frame is not None:
                alive.add(id(frame))
                frame = frame.f_back
        for key in list(self._seen):
            if key not in alive:
                self._seen.pop(key, None)

    def follow(self, frame: "FrameType", instead_of: "Optional[Tracer]" = None) -> "Optional[Followed]":
        """What tells when a frame is gone that nothing traces, as its trace function; None: it was not shown.

        Before Python 3.10 a frame that has a trace function knows its line only while the thread is traced.
        """
        if sys.version_info >= (3, 10) and id(frame) in self._seen:
            self._followed.add(id(frame))
            return Followed(self.left, id(frame), instead_of)
        self.left(id(frame))
        return None

    def unfollow(self, frame: "FrameType") -> None:
        """A frame gets another trace function, so that its own goes before it does."""
        if type(frame.f_trace) is Followed:
            frame.f_trace.active = False
            self._followed.discard(id(frame))

    def suspended(self, frame: "FrameType", tracer: "Optional[Tracer]") -> "Optional[Tracer]":
        """A generator's frame returns: what traces it from now on, instead of `tracer`.

        It may come back, and it may be gone without having run again.
        """
        self.unfollow(frame)
        return self.follow(frame, tracer) or tracer

    def resumed(self, frame: "FrameType") -> None:
        """A frame is called, or a suspended one comes back: what traced it before traces it again."""
        tracer = frame.f_trace
        if type(tracer) is Followed and tracer.instead_of is not None:
            self.unfollow(frame)
            frame.f_trace = tracer.instead_of
