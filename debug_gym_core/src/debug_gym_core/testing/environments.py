"""Environments for tests, all of which are closed at the end."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import DebugGymError, UsageError
from debug_gym_core.plugins import default_plugins
from debug_gym_core.sandbox.terminal import Terminal
from debug_gym_core.tasks.task import Task
from debug_gym_core.testing.sample import sample_task, write_sample

TERMINAL = "local"
"""The terminal that environments run in unless told otherwise: quick, without isolation, for the author's own code."""


def unusable(terminal: str) -> str | None:
    """Why a terminal cannot be used here and what to install, in a line; None when it can.

    Args:
        terminal: its name
    """
    try:
        reason: str | None = default_plugins().get("terminals", terminal).unavailable()
    except DebugGymError as error:
        return str(error)
    return f"terminal {terminal}: {reason}" if reason else None


class Environments:
    """Makes environments and closes them all; a context manager."""

    def __init__(self, directory: Path, terminal: str | Mapping[str, Any] = TERMINAL) -> None:
        """Make none yet.

        Args:
            directory: an empty one, for repositories
            terminal: what environments run in: a name or `{name: settings}`
        """
        self._directory = directory
        self._terminal = terminal
        self._made: list[RepoEnv] = []
        self._written = 0

    def make(
        self,
        tools: Sequence[Any] = (),
        *,
        files: Mapping[str, str | bytes] | None = None,
        more_files: Mapping[str, str | bytes] | None = None,
        task: Task | None = None,
        terminal: str | Mapping[str, Any] | None = None,
        seed: int = 0,
        **settings: Any,
    ) -> RepoEnv:
        """Make an environment and reset it.

        Args:
            tools: Tool instances, names or `{name: settings}`
            files: the repository, content by path; None: the sample's. A task of files of one's own runs nothing and
                counts one test
            more_files: files to add to the repository or to replace in it
            task: what to work on, in place of these files
            terminal: in place of the default
            seed: of the episode
            settings: what else `RepoEnv` takes: `max_steps`, `auto_eval_on_rewrite`, ...; and fields of `Task`
        """
        fields = {name: settings.pop(name) for name in list(settings) if name in Task.__dataclass_fields__}
        if task is None:
            self._written += 1
            repository = write_sample(self._directory / f"repository-{self._written}", files)
            write_sample(repository, more_files or {})
            bare = {"entrypoint": "python -c pass", "tests": (), "max_score": 1, "requires": (), "gold_patch": None}
            own = bare | {"debug_entrypoint": None, "stops": (), "description": ""} if files is not None else {}
            task = sample_task(repository, **{**own, **fields})
        elif fields:
            task = dataclasses.replace(task, **fields)
        env = RepoEnv(
            task, tools, self._terminal if terminal is None else terminal, **{"allow_unsandboxed": True, **settings},
            notify=lambda text: None,
        )  # fmt: skip
        self._made.append(env)
        env.reset(seed=seed)
        return env

    def close(self) -> None:
        """Close all environments.

        Raises:
            AssertionError: the sandbox of one still lives
        """
        terminals: list[Terminal] = []
        while self._made:
            env = self._made.pop()
            with contextlib.suppress(UsageError):  # closed by the test itself
                terminals.append(env.session.terminal)
            env.close()
        lives = [terminal.name for terminal in terminals if terminal.alive()]
        assert not lives, f"sandboxes that still live after close(): {', '.join(lives)}"

    def __enter__(self) -> Environments:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
