"""Keys, options and names of the original, answered with the ones that took their place."""

from __future__ import annotations

import re
from collections.abc import Collection

from debug_gym_core.config.layers import KeyPath

_PDB = "is now a setting of the tool: `tools: [{pdb: {persistent_breakpoints: true}}]`"
_FRAME = "is gone: pdb always shows the source around a stop"
_PROMPT = "is gone: an agent's prompts are templates; see agent.system_prompt"
_DEPTH = "is gone: the agent says a depth when it calls listdir"

NOW: dict[str, str] = {
    "llm_name": "llm.name",
    "llm_temperature": "llm.temperature",
    "output_path": "run.output",
    "problems": "benchmark.tasks",
    "random_seed": "run.seed",
    "seed": "run.seed",
    "max_steps": "agent.max_steps",
    "max_rewrite_steps": "agent.max_rewrites",
    "memory_size": "agent.memory_size",
    "system_prompt": "agent.system_prompt",
    "agent_type": "agent.name",
    "n_rewrites_before_pdb": "agent.rewrites_before_pdb",
    "task_name": "benchmark.tasks",
    "dataset": "benchmark",
    "dataset_id": "benchmark.source",
    "env_kwargs": "env",
    "run_on_rewrite": "env.auto_eval_on_rewrite",
    "auto_eval_on_rewrite": "env.auto_eval_on_rewrite",
    "entrypoint": "env.entrypoint",
    "debug_entrypoint": "env.debug_entrypoint",
    "run_timeout": "env.run_timeout",
    "readonly_patterns": "env.readonly",
    "path": "benchmark.path",
    "base_image": "terminal.image",
    "setup_commands": "terminal.setup",
    "reset_prompt_history_after_rewrite": "agent.reset_prompt_history_after_rewrite",
    "env.run_on_rewrite": "env.auto_eval_on_rewrite",
    "env.path": "benchmark.path",
    "env.dataset_id": "benchmark.source",
    "env.readonly_patterns": "env.readonly",
    "benchmark.type": "benchmark.name",
    "benchmark.problems": "benchmark.tasks",
    "benchmark.dataset_id": "benchmark.source",
    "benchmark.dataset_revision": "benchmark.revision",
    "terminal.type": "terminal.name",
    "terminal.base_image": "terminal.image",
    "terminal.setup_commands": "terminal.setup",
    "terminal.mem_limit": "terminal.memory",
    "terminal.pids_limit": "terminal.pids",
    "terminal.cpu_limit": "terminal.cpus",
    "agent.type": "agent.name",
    "agent.llm_name": "llm.name",
    "agent.max_rewrite_steps": "agent.max_rewrites",
    "agent.n_rewrites_before_pdb": "agent.rewrites_before_pdb",
    "run.output_path": "run.output",
    "run.random_seed": "run.seed",
    "run.problems": "benchmark.tasks",
}
"""Keys that have another name or place."""

WORDS: dict[str, str] = {
    "base": "is now the outermost level: put its keys into the sections env, agent, llm, run",
    "task_data": "is now benchmark, with `name: repo` for a repository of your own",
    "persistent_breakpoints": _PDB,
    "env.persistent_breakpoints": _PDB,
    "auto_list": _FRAME,
    "env.auto_list": _FRAME,
    "show_current_frame": _FRAME,
    "env.show_current_frame": _FRAME,
    "auto_view_change": _FRAME,
    "env.auto_view_change": _FRAME,
    "show_current_breakpoints": "is gone: the breakpoints are in each observation",
    "agent.show_current_breakpoints": "is gone: the breakpoints are in each observation",
    "env.show_current_breakpoints": "is gone: the breakpoints are in each observation",
    "dir_tree_depth": _DEPTH,
    "env.dir_tree_depth": _DEPTH,
    "show_directory_tree": _DEPTH,
    "env.show_directory_tree": _DEPTH,
    "use_conversational_prompt": _PROMPT,
    "agent.use_conversational_prompt": _PROMPT,
    "instance_prompt": _PROMPT,
    "agent.instance_prompt": _PROMPT,
    "save_patch": "is gone: patch.diff is always written",
    "log_file_path": "is gone: each task has its log.txt in the run's directory",
    "log_prompt_response_pairs": "is gone: `debug-gym run -vv` keeps prompts and answers",
    "uuid": "is gone: `debug-gym run -o DIR` names a run's directory",
    "terminal.volumes": "is docker's (pip install debug-gym-terminal-docker); elsewhere nothing of the host is mounted",
    "benchmark.prepull_images": "is gone: an image is pulled when a task needs it",
    "benchmark.build_image": "is gone: an image is pulled when a task needs it",
    "mcp_servers": "is gone: a plugin brings tools; `debug-gym plugins` lists them",
}
"""Keys that have no other key in their place, and what to do."""

SECTIONS = {"env_kwargs": "env", "dataset": "benchmark"}
"""Sections that have another name; what is below is looked up under that."""

_THINKING = (
    "is now `chat_template_kwargs: {enable_thinking: true}` for models with the tag vllm, and `thinking: TOKENS` for"
    " those with the tag anthropic"
)
_TOKENIZER = "is gone: with `tokenizer`, prompts are counted as the model's chat template writes them"

ENTRY: dict[str, str] = {
    "ignore_kwargs": "is gone: only what is set is sent to the service",
    "endpoints": "is gone: an entry has one endpoint; write an entry for each",
    "apply_chat_template": _TOKENIZER,
    "tokenizer_kwargs": _TOKENIZER,
    "enable_thinking": _THINKING,
    "thinking_param_name": _THINKING,
}
"""Keys of a model in llm.yaml, and what to do."""

OPTIONS: dict[str, str] = {
    "--config": "name the file without it: debug-gym run CONFIG.yaml",
    "--num-workers": "say -n N",
    "--timeout": "say -p run.task_timeout=SECONDS",
    "-t": "say -p run.task_timeout=SECONDS, or --task GLOB",
    "--max-retries": "say -p run.max_retries=N",
    "--keep-completed-tasks": "leave it out: finished tasks are kept; --force-all plays them again",
    "--no-live-display": "leave it out: without a terminal there are plain lines (debug-gym run ... | cat)",
    "--max-display": "leave it out: the table fits the screen",
    "--logging-level": "say -v for the steps, -vv for prompts and whole output",
}
"""Options of the original's `scripts/run.py`, and what to say instead."""


_SHIPPED = re.compile(r"(?:config_)?([a-z0-9_-]+)\.ya?ml")


def answer(path: KeyPath, agents: Collection[str] = ()) -> str | None:
    """What to write instead of a key of the original's.

    Args:
        path: the key's path
        agents: names of agents, whose sections hold what the outermost level holds

    Returns:
        the words for an error message; None when the original had no such key
    """
    if len(path) > 1 and path[0] in agents:
        return _answer(path[1:], f"{path[0]}.")
    if path == ("base", "benchmark"):  # was a name
        return "is now benchmark.name"
    if len(path) > 1 and path[0] == "base":
        return _answer(path[1:], "")
    return _answer(path, "")


def _answer(path: KeyPath, prefix: str) -> str | None:
    known = (SECTIONS.get(path[0], path[0]), *path[1:])
    for text in (".".join(path), ".".join(known)):
        if text in NOW:
            return f"is now {prefix}{NOW[text]}"
        if text in WORDS:
            return WORDS[text]
    return f"is now {prefix}{'.'.join(known)}" if known != path else None


def shipped(path: str, benchmarks: Collection[str]) -> str | None:
    """The benchmark whose config a file of the original's was, as in `scripts/config_aider.yaml`.

    Args:
        path: a file that is not there
        benchmarks: names of benchmarks
    """
    match = _SHIPPED.fullmatch(path.rpartition("/")[2])
    return match[1] if match and match[1] in benchmarks else None
