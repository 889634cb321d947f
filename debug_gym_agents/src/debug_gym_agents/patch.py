"""The agent that makes a change which somebody else has made before: to grade what is not played here."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from debug_gym_core import LLM, Agent, AgentSettings, Settings, UsageError
from debug_gym_core.errors import ActionError

if TYPE_CHECKING:
    from debug_gym_core import RepoEnv, Task

log = logging.getLogger("debug_gym")

TASK_KEYS = ("instance_id", "task")
PATCH_KEYS = ("model_patch", "patch")


class PatchSettings(AgentSettings):
    """The settings of an agent, and where its patches are.

    Attributes:
        patches: the directory of a run, or predictions as SWE-bench's harness takes them: JSON, or an object a line,
            with `instance_id` (or `task`) and `model_patch` (or `patch`)
    """

    patches: Path | None = None


class PatchAgent(Agent):
    """Applies a patch that there is for the task, whoever made it, and leaves the rest to grading."""

    name = "patch_agent"
    Settings: ClassVar[type[Settings]] = PatchSettings
    settings: PatchSettings
    tools: ClassVar[Sequence[str] | None] = ()
    needs_llm = False
    trusted = False
    unused: ClassVar[frozenset[str]] = frozenset(AgentSettings.model_fields)

    def __init__(self, **settings: Any) -> None:
        """Check and keep the settings.

        Raises:
            UsageError: a setting is wrong, or there is nothing at `patches`
        """
        super().__init__(**settings)
        path = self.settings.patches
        if path is None:
            raise UsageError(f"{self.name} needs patches: say -p agent.patches=FILE, or the directory of a run")
        if path.is_dir() and not (path / "run.json").is_file():
            raise UsageError(f"{path} is no run: it has no run.json")
        if not path.exists():
            raise UsageError(f"{path}: there is no such file or directory")
        self._patches = path

    def play(self, env: RepoEnv, llm: LLM | None) -> str | None:
        """Play one episode; see `Agent`.

        Returns:
            `no_patch` or `unapplied`, where it changes nothing; None: it has applied its patch

        Raises:
            UsageError: what is at `patches` cannot be read
        """
        patch = self._patch(env.task)
        if not patch.strip():
            return "no_patch"
        try:
            left_out = env.workspace.apply(patch, editable_only=True)
        except ActionError as error:
            log.warning("%s: its patch is not applied: %s", env.task.id, error)
            return "unapplied"
        if left_out:
            log.warning("%s: its patch changes read-only files, which are left: %s", env.task.id, ", ".join(left_out))
        return None

    def _patch(self, task: Task) -> bytes:
        """The patch of a task; empty: there is none."""
        try:
            if self._patches.is_dir():
                return _of_run(self._patches, task.id)
            status = self._patches.stat()
            found = _predictions(self._patches, status.st_mtime_ns, status.st_size)
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{self._patches} cannot be read: {error}") from error
        given = found.get(task.id, ()) + (found.get(task.name, ()) if task.name != task.id else ())
        if len(given) > 1:
            raise UsageError(f"{self._patches} has {len(given)} patches for {task.id}")
        patch = given[0] if given else b""
        return patch if not patch or patch.endswith(b"\n") else patch + b"\n"


def _of_run(run: Path, task: str) -> bytes:
    """The patch that a run has for a task; empty: none."""
    path = run / task / "patch.diff"
    if path.is_file():
        return path.read_bytes()
    if (run / task / "1").is_dir():
        raise UsageError(f"{run} has several episodes of {task}; its files predictions*.jsonl have one of each")
    return b""


@functools.lru_cache(maxsize=1)  # a run has an agent for each episode, and one file for all of them
def _predictions(path: Path, changed: int, size: int) -> Mapping[str, tuple[bytes, ...]]:
    """The patches in a file, by their tasks.

    Args:
        path: the file
        changed: when, in nanoseconds: one that has changed is read again
        size: in bytes, likewise

    Raises:
        UsageError: it is no such file; says where
        OSError, UnicodeDecodeError: it cannot be read
    """
    found: dict[str, tuple[bytes, ...]] = {}
    for place, record in _records(path):
        if not isinstance(record, Mapping):
            raise UsageError(f"{place}: an object with instance_id and model_patch is meant, not {record!r:.60}")
        name = next((record[key] for key in TASK_KEYS if key in record), None)
        patch = next((record[key] for key in PATCH_KEYS if key in record), ...)
        if not isinstance(name, str) or not (patch is None or isinstance(patch, str)):
            raise UsageError(f"{place}: instance_id and model_patch are missing, or are no texts")
        found[name] = (*found.get(name, ()), (patch or "").encode("utf-8", "surrogateescape"))
    return found


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    """What a file holds of each task, and where."""
    with path.open(encoding="utf-8-sig") as file:
        if path.suffix == ".jsonl":
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield f"{path}:{number}", _parsed(line, f"{path}:{number}")
            return
        whole = _parsed(file.read(), str(path))
    if isinstance(whole, Mapping) and set(TASK_KEYS) & set(whole) and set(PATCH_KEYS) & set(whole):  # a single one
        whole = [whole]
    if isinstance(whole, Mapping):  # by their names
        given = ((name, one if isinstance(one, Mapping) else {"model_patch": one}) for name, one in whole.items())
        whole = [{TASK_KEYS[0]: name, **one} for name, one in given]
    if not isinstance(whole, list):
        raise UsageError(f"{path}: a list of predictions is meant, or an object of them by their tasks")
    yield from ((f"{path}, number {number}", record) for number, record in enumerate(whole, 1))


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: it is no JSON: {error}") from error
