"""Making an environment by a task's id."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from gymnasium.envs.registration import EnvSpec

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.components.component import construct
from debug_gym_core.config.shipped import benchmark_settings, env_arguments, left_out, without_idle
from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.environment.parts import refuse_unknown
from debug_gym_core.errors import UsageError
from debug_gym_core.names import some
from debug_gym_core.plugins import default_plugins
from debug_gym_core.tasks.selection import load_task, task_names

log = logging.getLogger("debug_gym")


def make(
    task: str,
    tools: Sequence[Any] | Mapping[str, Mapping[str, Any] | None] | None = None,
    terminal: Any = "auto",
    **settings: Any,
) -> RepoEnv:
    """Make an environment of a task by its id.

    The caller counts as untrusted: without a sandbox there is no environment, unless `allow_unsandboxed` is true.
    What the benchmark ships as config for itself, `env`, `tools` and `terminal` holds where the arguments do not say
    otherwise, key by key, so that the task is the same as in a run.

    Args:
        task: `benchmark/task`, or `repo` with `path=` and `entrypoint=`
        tools: names, `{name: settings}` or Tool instances, or a mapping of names to settings; None: those that the
            benchmark ships; where it ships none, view, listdir, rewrite, eval and pdb, and submit if
            `end_on_resolved` is false
        terminal: a backend's name, `{name: settings}`, or both side by side as in a config; or `auto`: the one that the
            benchmark ships; where it ships none, docker for a task with an image, else bubblewrap
        settings: what else `RepoEnv` takes; and the benchmark's settings (`path`, `source`, `split`, ...)

    Returns:
        the environment, to be reset

    Raises:
        UsageError: an unknown name or a wrong setting
        PluginError: a plugin that is needed failed
        RequirementError: there is no sandbox, or something else is missing
    """
    if not isinstance(task, str):
        raise UsageError(f"say which task: BENCHMARK/TASK, or repo with path=, not {task!r:.80}")
    benchmark_name, _, task_name = task.partition("/")
    again = {"benchmark": benchmark_name, "task": task_name or None, "tools": tools, "terminal": terminal, **settings}
    plugins: Plugins = settings.pop("plugins", None) or default_plugins()
    benchmark_class = plugins.get("benchmarks", benchmark_name)
    settings = without_idle(benchmark_class, settings)
    of_benchmark = {key: settings.pop(key) for key in list(settings) if key in benchmark_class.Settings.model_fields}
    refuse_unknown(settings, benchmark_class.Settings.model_fields)
    benchmark = construct(benchmark_class, **benchmark_settings(benchmark_class, of_benchmark))
    if not task_name:
        names = task_names(benchmark)
        if len(names) != 1:
            raise UsageError(
                f"benchmark {benchmark_name} has {len(names)} tasks; say {benchmark_name}/NAME "
                f"(in gymnasium.make: task=NAME), as {some(names, 3)}"
            )
        task_name = names[0]
    arguments = env_arguments(benchmark_class, plugins, tools=tools, terminal=terminal, settings=settings)
    env = RepoEnv(load_task(benchmark, task_name), plugins=plugins, **arguments)
    for text in left_out(benchmark_class, plugins):
        (settings.get("notify") or log.warning)(text)
    env.spec = TaskSpec(
        f"debug_gym/{benchmark_name}-v0",
        entry_point="debug_gym_core.envs:make_benchmark",
        disable_env_checker=True,
        order_enforce=False,
        kwargs=again,
    )
    return env


class TaskSpec(EnvSpec):
    """A specification of Gymnasium's that says what its arguments lack to be written as JSON."""

    def to_json(self) -> str:
        """See `EnvSpec`.

        Raises:
            UsageError: an argument is, or holds, an object; names it, and what to do
        """
        for name, value in self.kwargs.items():
            try:
                json.dumps(value)
            except (TypeError, ValueError) as error:
                raise UsageError(
                    f"{name}: {error}; say names, {{name: settings}} and texts instead of objects, take `plugins` out "
                    "of the specification's `kwargs` and give it to gymnasium.make anew, or pickle the specification"
                ) from error
        return super().to_json()
