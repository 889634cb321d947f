"""The errors of debug-gym, one hierarchy: who has to act decides the class."""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path

from debug_gym_core.usage import NOTHING, Usage

FULL = (errno.ENOSPC, errno.EDQUOT)
"""What the system says where there is no room on the disk."""


class DebugGymError(Exception):
    """Base of every error that debug-gym raises on purpose; its text is one or two lines for a person.

    Attributes:
        exit_status: what the command line exits with when the error ends it
    """

    exit_status = 1


class EpisodeEnds(BaseException):
    """Ends an episode on purpose, from wherever it is raised; not an Exception, so that no agent goes on after it."""


NO_FAULT = (KeyboardInterrupt, EpisodeEnds)
"""What comes through a component's code and is no error of it; all else that leaves it is one, whatever its class."""


def place_of(error: BaseException) -> str:
    """Where an error that nobody expected was raised: file, line and function, of a plugin's rather than of a library.

    Args:
        error: that was raised, not just made
    """
    frames = traceback.extract_tb(error.__traceback__)
    ours, library = (f"{Path(one).parent}{os.sep}" for one in (__file__, os.__file__))
    theirs = [
        one
        for one in frames
        if not one.filename.startswith((ours, "<frozen "))
        and (not one.filename.startswith(library) or "-packages" in one.filename)
    ]
    found = (theirs or frames)[-1:]
    return "".join(f"{Path(one.filename).name}:{one.lineno} in {one.name}" for one in found)


def said_by(error: BaseException) -> str:
    """What an error says, in one line; empty: nothing. One whose own words fail, as a plugin's may, says that."""
    try:
        return " ".join(str(error).split())
    except Exception as broken:
        return f"(its text cannot be made: {type(broken).__name__})"


def cause_of(error: BaseException) -> str:
    """Which error it is and what it says, in one line; of a `PluginError` its words alone."""
    if isinstance(error, PluginError):
        return str(error)
    said = said_by(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


class UsageError(DebugGymError):
    """The person asked for something that does not exist or cannot be: wrong usage, an unknown name, a bad config."""

    exit_status = 2


class UnknownName(UsageError):
    """A component is named that nobody here provides."""


class PluginError(DebugGymError):
    """A plugin that was needed failed to load; the text names the distribution and the cause."""

    exit_status = 3


class RequirementError(DebugGymError):
    """Something that is needed is missing on this machine: a sandbox, a package, a key; the text says how to get it."""

    exit_status = 4


class ActionError(DebugGymError):
    """The agent's action cannot be carried out; becomes an observation, never ends an episode."""


class SandboxError(DebugGymError):
    """The sandbox did not do what it must: infrastructure, never the agent's fault."""


class SandboxLost(SandboxError):
    """The sandbox, or the guest in it, is gone; what it held is lost, a new one must be started."""


class GradingError(SandboxError):
    """The clean grading could not be carried out."""


class GradingInterrupted(GradingError):
    """Somebody ended the clean grading before its time, as by Ctrl-C: it says nothing of what was graded."""


class LLMError(DebugGymError):
    """The language model's service failed, or answered what cannot be understood.

    Attributes:
        charged: what was charged all the same; None: that is not known, as the call was left before its end
    """

    def __init__(self, text: str, *, charged: Usage | None = NOTHING) -> None:
        super().__init__(text)
        self.charged = charged


class LLMUnavailable(LLMError):
    """The service cannot answer now and may when it is asked again: too many requests, its own failure, a timeout.

    Attributes:
        retry_after: seconds that it asked to wait; None: it said nothing
        crowded: whether it refuses for the number or size of requests (429, 529), not for a failure
    """

    def __init__(
        self,
        text: str,
        *,
        retry_after: float | None = None,
        crowded: bool = False,
        charged: Usage | None = NOTHING,
    ) -> None:
        super().__init__(text, charged=charged)
        self.retry_after = retry_after
        self.crowded = crowded


class LLMRefused(LLMError):
    """The service refuses whatever it is asked: the key is wrong, there is no credit, or no such model."""


class LLMRejected(LLMError):
    """The service takes the request for wrong, as the model's settings make it: others may do."""


class ToolsRefused(LLMError):
    """The model, or its server as it was started, takes no tools; it may answer when it is asked in words."""


class ContextOverflow(LLMError):
    """The conversation is longer than the model takes; a shorter one may do."""


class TaskError(DebugGymError):
    """A task is not what its benchmark says: it passes before the fix, or its gold patch does not apply.

    Attributes:
        without_tests: whether it is that its entrypoint finds no test that could pass
    """

    without_tests = False


def class_of(kind: str) -> type[DebugGymError] | None:
    """The class of an error of which only the name was kept; None: it is none of ours.

    Args:
        kind: the name of its class, as the results of a run have it
    """
    found = globals().get(kind)
    return found if isinstance(found, type) and issubclass(found, DebugGymError) else None
