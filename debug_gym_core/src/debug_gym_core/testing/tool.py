"""What a tool promises."""

from __future__ import annotations

from debug_gym_core.testing.tool_answers import AnswerTests
from debug_gym_core.testing.tool_endings import EndTests
from debug_gym_core.testing.tool_events import EventTests
from debug_gym_core.testing.tool_paths import PathTests


# pytest begins with the last of the bases.
class ToolContract(EndTests, PathTests, EventTests, AnswerTests):
    """The tests that every tool must pass. They run in the sample repository (`debug_gym_core.testing.sample`).

    Attributes:
        tool: the tool's class
        calls: arguments of calls that must work, in this order, on the sample; at least one
        paths: names of arguments that are paths in the repository
        writes: whether the tool changes the file that a path names, so that read-only files must be refused
        companions: tools that must be there beside it
        more_files: files to add to the sample or to replace in it, content by path
        env_settings: further settings of the environment, fields of the task among them
        terminal: the terminal to try it in; one that isolates for a tool that runs what it is told
        tries: how many random argument sets hypothesis tries
    """
