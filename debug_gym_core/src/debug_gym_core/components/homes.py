"""Which distribution brings a name that the documentation speaks of, and which name took an old one's place."""

from __future__ import annotations

from collections.abc import Mapping

AGENTS = {
    "froggy_agent": "debug_agent",
    "froggy": "debug_agent",
    "simple_agent": "tool_agent",
    "simple": "tool_agent",
}
"""Agents of the original that have another name here."""


HOMES: Mapping[str, Mapping[str, str]] = {
    "tools": {
        name: f"debug-gym-tool-{name}"
        for name in ("listdir", "view", "grep", "rewrite", "edit", "eval", "pdb", "bash", "submit", "trace")
    },
    "terminals": {name: f"debug-gym-terminal-{name}" for name in ("local", "bubblewrap", "docker", "kubernetes")},
    "benchmarks": dict.fromkeys(
        ("mini_nightmare", "repo", "aider", "swebench", "swebench-debug", "swesmith", "r2egym", "quixbugs", "bugsinpy"),
        "debug-gym-benchmarks",
    ),
    "agents": dict.fromkeys(
        ("debug_agent", "rewrite_agent", "debug_5_agent", "tool_agent", "solution_agent", "noop_agent", "patch_agent"),
        "debug-gym-agents",
    ),
    "llms": {
        name: f"debug-gym-llm-{name}"
        for name in ("openai", "azure-openai", "anthropic", "huggingface", "human", "scripted")
    },
    "executors": {"ray": "debug-gym-executor-ray"},
    "exporters": {},
}
"""Where the names that the documentation speaks of live, to tell somebody who asks for one that is not installed."""
