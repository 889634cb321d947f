"""Players of episodes."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from debug_gym_core.components.component import Component, Settings
from debug_gym_core.components.values import Count, Flag, Positive

if TYPE_CHECKING:
    from debug_gym_core.environment.env import RepoEnv
    from debug_gym_core.models.llm import LLM
    from debug_gym_core.tasks.task import Task


class AgentSettings(Settings):
    """The `agent` section of a config; an agent adds fields of its own by subclassing.

    Attributes:
        max_steps: steps after which an episode is cut off, 1 or more
        max_rewrites: changes of files after which it is, 1 or more
        memory_size: steps that the history keeps
        reset_prompt_history_after_rewrite: forget the steps before each change of files
        system_prompt: replaces the agent's own: a Jinja template, or the path of one, which ends in .jinja
    """

    max_steps: Positive = 50
    max_rewrites: Positive = 10
    memory_size: Count = 20
    reset_prompt_history_after_rewrite: Flag = False
    system_prompt: str | None = None


class LateDebuggerSettings(AgentSettings):
    """Those of an agent that begins without the debugger, which every config names, as the original's do.

    Attributes:
        rewrites_before_pdb: changes of files before it gets the debugger
    """

    rewrites_before_pdb: Count = 5


class Agent(Component, abc.ABC):
    """A player.

    Attributes:
        tools: names of the tools that it plays with; None: what the config lists
        needs_llm: whether a language model drives it; such an agent is not trusted outside a sandbox
        trusted: whether what it does without a model is its author's own, so that it may do without a sandbox
        end_on_resolved: whether an episode of its ends when the task is resolved
        unused: settings of `AgentSettings` that mean nothing to it; a run in which one is set says so
    """

    Settings: ClassVar[type[Settings]] = AgentSettings
    settings: AgentSettings
    tools: ClassVar[Sequence[str] | None] = None
    needs_llm: ClassVar[bool] = True
    trusted: ClassVar[bool] = True
    end_on_resolved: ClassVar[bool] = True
    unused: ClassVar[frozenset[str]] = frozenset()

    def check(self, task: Task) -> None:
        """Make sure that it can play a task, before anything is set up. It takes all, unless one overrides this.

        Args:
            task: as its benchmark gives it

        Raises:
            TaskError: it cannot; says why
        """

    def prepare(self, env: RepoEnv) -> None:
        """See to the environment before it is reset: an agent may withhold tools. Does nothing unless one overrides it.

        Args:
            env: was not reset yet
        """

    @abc.abstractmethod
    def play(self, env: RepoEnv, llm: LLM | None) -> str | None:
        """Play one episode: `env` was reset by the caller, who grades it and closes it afterwards.

        Returns when `env` is terminated or truncated, or when there is nothing more to do.

        Returns:
            why it ended by itself, in a word: `gave_up` (the model calls nothing), `over` (a person left, or a script
            was played to its end), `refused` (the model refuses to answer), `malformed` (nothing in its answers is a
            call); None: the environment knows (`env.ended`), or there was nothing more to do
        """
