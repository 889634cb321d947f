"""Events between the tools of one environment.

Each environment has a plugin manager of its own with its tools registered there. A tool takes part by implementing a
method of one of these names, marked `@hookimpl`; what it returns (text or an Observation, or None) becomes part of the
observation that the agent gets, in the order of the events. A plugin may add specifications of its own with
`env.add_event_specs(module)` and call them through `env.hook`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from debug_gym_core.components.markers import hookspec

if TYPE_CHECKING:
    from debug_gym_core.tasks.results import Measurement
    from debug_gym_core.tools.action import ToolCall
    from debug_gym_core.tools.environment import Environment
    from debug_gym_core.tools.observation import Observation
    from debug_gym_core.workspace.edits import Edit


@hookspec
def on_reset(env: Environment) -> str | Observation | None:
    """The environment was reset: the workspace is pristine, nothing has run."""


@hookspec
def on_file_changed(env: Environment, path: str, edits: Sequence[Edit]) -> str | Observation | None:
    """A file of the workspace changed; `edits` are the replaced line ranges, in the old numbering, from the top."""


@hookspec
def on_evaluated(env: Environment, result: Measurement) -> str | Observation | None:
    """The tests were run in place; what that is worth `env.score`, `env.max_score` and `env.resolved` say."""


@hookspec
def on_step(env: Environment, call: ToolCall) -> str | Observation | None:
    """A step is done; last of the events of a step."""


@hookspec
def on_submitted(env: Environment, message: str | None) -> str | Observation | None:
    """The agent ended the episode, which was graded: `env.final_grade`."""
