"""The settings of an environment: the section `env` of a config."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic

from debug_gym_core.components.values import Flag, Positive, Seconds, TimeLimit
from debug_gym_core.errors import UsageError
from debug_gym_core.grading.twins import When as Twins
from debug_gym_core.sandbox.patterns import Patterns

RUN_TIMEOUT = 300
"""Seconds of a run of the tests for which neither the task nor anybody else set a limit."""


def _patterns(lines: tuple[str, ...]) -> tuple[str, ...]:
    try:
        Patterns(lines, lenient=False)
    except UsageError as error:
        raise ValueError(str(error)) from None
    return lines


PatternLines = Annotated[tuple[str, ...], pydantic.AfterValidator(_patterns)]
"""Patterns as in `.gitignore`."""

Tools = tuple[str | dict[str, dict[str, Any]], ...]
"""Tools by name or `{name: settings}`."""

DEFAULT_TOOLS: Tools = (
    "view",
    "listdir",
    "rewrite",
    "eval",
    {"pdb": {"timeout": 60, "persistent_breakpoints": True, "warm": True, "rewind": False}},
)


def default_tools(*, ends_on_resolved: bool) -> Tools:
    """The tools of an environment for which nobody named any.

    Args:
        ends_on_resolved: whether the episode ends when the task is resolved; if not, the agent says when it is through
    """
    return DEFAULT_TOOLS if ends_on_resolved else (*DEFAULT_TOOLS, "submit")


class Section(pydantic.BaseModel):
    """A section of the config: frozen, and an unknown key is an error."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class EnvSection(Section):
    """The environment of each task.

    Attributes:
        entrypoint: command that runs the tests; null: the task's
        debug_entrypoint: command that the debugger starts; null: derived from the entrypoint
        python: interpreter of the task's code; null: the repository's own, else ours
        run_timeout: seconds that one run of the entrypoint may take; 300: the task's own limit where it has one
        auto_eval_on_rewrite: run the tests after each change of a file
        end_on_resolved: end the episode when every test passes; null: as the agent has it
        allow_passing: in a run, play also a task whose tests pass before anything is changed
        ignore: patterns of files that the agent never sees, as in .gitignore
        readonly: patterns of files that the agent may only read
        allowed: test infrastructure that the agent may change
        twins: whether what passes is run again with its expectations turned: `auto` when the task would be resolved,
            `always` or `never`
    """

    entrypoint: str | None = None
    debug_entrypoint: str | None = None
    python: str | None = None
    run_timeout: Seconds = RUN_TIMEOUT
    auto_eval_on_rewrite: Flag = False
    end_on_resolved: Flag | None = None
    allow_passing: Flag = False
    ignore: PatternLines = ()
    readonly: PatternLines = ()
    allowed: PatternLines = ()
    twins: Twins = "auto"


class Conditions(Section):
    """What an environment takes besides the section `env`; `RepoEnv` says what it means and the defaults."""

    trusted: Flag
    allow_unsandboxed: Flag
    max_steps: Positive | None
    max_rewrites: Positive | None
    max_seconds: TimeLimit | None
    run: str
    render_mode: Literal["ansi"] | None
