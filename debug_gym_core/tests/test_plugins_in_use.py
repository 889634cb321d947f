"""Plugins that load, and fail or clash when a run needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

FAILING = """
from debug_gym_core import {base}, hookimpl

class Failing({base}):
    \"\"\"Cannot be made.\"\"\"
    name = "failing"
    config = {{"terminal": {{"name": "local"}}}}
    tools = ()
    needs_llm = False
    def __init__(self, **settings):
        super().__init__(**settings)
        raise OSError("no licence")
    def use(self, env):
        \"\"\"Use it.\"\"\"
        return ""
    def play(self, env, llm): pass
    def names(self): return ["a"]
    def load(self, name): raise AssertionError
    def complete(self, messages, tools): raise AssertionError
    def ask(self, messages, tools): raise AssertionError
    def execute(self, jobs, play, finished, *, workers, stop): raise AssertionError

@hookimpl
def debug_gym_register_{kind}(): return [Failing]
"""


@pytest.mark.parametrize(
    ("kind", "base", "arguments"),
    [
        ("tools", "Tool", ("toy", "-p", "tools=[failing]")),
        ("agents", "Agent", ("toy", "--agent", "failing")),
        ("benchmarks", "Benchmark", ("failing", "--agent", "fixer", "-p", "tools=[sh]")),
        ("llms", "LLM", ("toy", "--agent", "historian", "--llm", "failing", "-p", "terminal.allow_unsandboxed=true")),
        ("executors", "Executor", ("toy", "-p", "run.executor=failing")),
    ],
)
def test_what_cannot_be_made_names_its_plugin(
    inside: Any, tmp_path: Path, kind: str, base: str, arguments: tuple[str, ...]
) -> None:
    source = FAILING.format(kind=kind, base=base)
    if base == "Executor":
        source = source.replace("import Executor, ", "import ").replace(
            "hookimpl\n", "hookimpl\nfrom debug_gym_core.runs.jobs import Executor\n", 1
        )
    (tmp_path / "plug.py").write_text(source)
    done = inside("run", *arguments, "--task", "a", "--plugin-file", "plug.py", "-o", "out")
    assert done.status == 3, done.err
    said = "failing: plugin file plug.py cannot make it: OSError: no licence (plug.py:"
    assert said in done.err and "in __init__)" in done.err
