"""Keys of the original's configs, answered with the ones that took their place."""

from __future__ import annotations

from debug_gym_core.config_layers import KeyPath

_TOOLS = "an item of tools, as in `tools: [{pdb: {persistent_breakpoints: true}}]`"

NOW: dict[str, str] = {
    "base": "the outermost level: put its keys into the sections env, agent, llm, run",
    "llm_name": "llm.name",
    "output_path": "run.output",
    "problems": "benchmark.tasks",
    "random_seed": "run.seed",
    "seed": "run.seed",
    "max_steps": "agent.max_steps",
    "max_rewrite_steps": "agent.max_rewrites",
    "memory_size": "agent.memory_size",
    "system_prompt": "agent.system_prompt",
    "agent_type": "agent.name",
    "task_name": "benchmark.tasks",
    "dataset": "benchmark",
    "dataset_id": "benchmark.source",
    "task_data": "benchmark, with `name: repo`",
    "env_kwargs": "env",
    "run_on_rewrite": "env.auto_eval_on_rewrite",
    "entrypoint": "env.entrypoint",
    "debug_entrypoint": "env.debug_entrypoint",
    "run_timeout": "env.run_timeout",
    "path": "benchmark.path",
    "persistent_breakpoints": _TOOLS,
    "reset_prompt_history_after_rewrite": "agent.reset_prompt_history_after_rewrite",
    "env_kwargs.path": "benchmark.path",
    "env_kwargs.run_on_rewrite": "env.auto_eval_on_rewrite",
    "env_kwargs.auto_eval_on_rewrite": "env.auto_eval_on_rewrite",
    "env_kwargs.dataset_id": "benchmark.source",
    "env_kwargs.readonly_patterns": "env.readonly",
    "env_kwargs.persistent_breakpoints": _TOOLS,
    "env.run_on_rewrite": "env.auto_eval_on_rewrite",
    "env.path": "benchmark.path",
    "env.readonly_patterns": "env.readonly",
    "benchmark.type": "benchmark.name",
    "benchmark.problems": "benchmark.tasks",
    "benchmark.dataset_id": "benchmark.source",
    "benchmark.dataset_revision": "benchmark.revision",
    "dataset.type": "benchmark.name",
    "dataset.problems": "benchmark.tasks",
    "dataset.dataset_id": "benchmark.source",
    "dataset.dataset_revision": "benchmark.revision",
    "terminal.type": "terminal.name",
    "terminal.base_image": "terminal.image",
    "terminal.setup_commands": "terminal.setup",
    "terminal.mem_limit": "terminal.memory",
    "terminal.pids_limit": "terminal.pids",
    "terminal.cpu_limit": "terminal.cpus",
    "agent.type": "agent.name",
    "agent.llm_name": "llm.name",
    "agent.max_rewrite_steps": "agent.max_rewrites",
    "run.output_path": "run.output",
    "run.random_seed": "run.seed",
    "run.problems": "benchmark.tasks",
}

GONE: dict[str, str] = {
    "save_patch": "patch.diff is always written",
    "log_prompt_response_pairs": "say `debug-gym run -vv`, which keeps them",
    "auto_list": "pdb always shows the source around a stop",
    "auto_view_change": "pdb shows the source around each stop",
    "env_kwargs.auto_list": "pdb always shows the source around a stop",
    "env_kwargs.auto_view_change": "pdb shows the source around each stop",
    "env_kwargs.dir_tree_depth": "the agent says a depth when it calls listdir",
    "env.dir_tree_depth": "the agent says a depth when it calls listdir",
    "use_conversational_prompt": "an agent's prompts are templates; see agent.system_prompt",
    "uuid": "say `debug-gym run -o DIR` to name a run's directory",
    "terminal.volumes": "the repository is copied in; nothing of the host is mounted",
}


def answer(path: KeyPath) -> str | None:
    """What to write instead of a key of the original's.

    Args:
        path: the key's path, without the agent's section that it may stand in

    Returns:
        the words for an error message; None when the original had no such key
    """
    text = ".".join(path)
    if text in NOW:
        return f"is now {NOW[text]}"
    if text in GONE:
        return f"is gone: {GONE[text]}"
    if path[0] == "env_kwargs":
        return f"is now env.{'.'.join(path[1:])}"
    return None
