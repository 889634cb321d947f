"""The agent that does nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from debug_gym_core import LLM, Agent

if TYPE_CHECKING:
    from debug_gym_core import RepoEnv


class NoopAgent(Agent):
    """Changes nothing, so resolves nothing; its score counts what passes anyway. Shows that tasks fail as published."""

    name = "noop_agent"
    tools: ClassVar[Sequence[str] | None] = ()
    needs_llm = False

    def play(self, env: RepoEnv, llm: LLM | None) -> None:
        """Leave everything as it is."""
