"""Plugins that load, and fail or clash when a run needs them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pluggy
import pytest
from taken_name import SECOND

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.errors import UnknownName
from debug_gym_core.runs import provenance

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
    said = f"error: {kind.removesuffix('s')} failing: plugin file plug.py cannot make it: OSError: no licence (plug.py:"
    assert said in done.err and "in __init__)" in done.err
    (tmp_path / "plug.py").write_text(source.replace('OSError("no licence")', 'SystemExit("no licence")'))
    left = inside("run", *arguments, "--task", "a", "--plugin-file", "plug.py", "-o", "out")
    assert left.status == 3 and said.replace("OSError", "SystemExit") in left.err


@pytest.mark.parametrize(
    ("kind", "name", "meant", "home"),
    [
        ("agents", "tool_agnt", "tool_agent", "debug-gym-agents"),
        ("tools", "trac", "trace", "debug-gym-tool-trace"),
        ("llms", "antropic", "anthropic", "debug-gym-llm-anthropic"),
    ],
)
def test_a_slip_in_the_name_of_what_is_not_installed_is_told_with_how_to_get_it(
    kind: str, name: str, meant: str, home: str
) -> None:
    said = (
        f"unknown {kind[:-1]} {name!r}; did you mean {meant!r}, which is not installed; get it with: pip install {home}"
    )
    with pytest.raises(UnknownName, match=re.escape(said)):
        Plugins(pluggy.PluginManager("debug_gym")).get(kind, name)


def test_what_is_installed_of_us_is_found_however_it_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = "Metadata-Version: 2.1\nName: {}\nVersion: 1.5\nRequires-Dist: debug-gym-core\n\nName: debug-gym-read\n"
    for place, name in (
        ("a-1.5.dist-info/METADATA", "Debug-Gym-A"),
        ("b.egg-info/PKG-INFO", "debug-gym-b"),
        ("c.egg-info", "debug-gym-c"),
        ("acme-1.5.dist-info/METADATA", "acme"),
    ):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(described.format(name))
    (tmp_path / "debug_gym_none-1.5.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(provenance, "_installed", provenance._installed.__wrapped__)  # without what is known already
    installed = {"Debug-Gym-A": "1.5", "debug-gym-b": "1.5", "debug-gym-c": "1.5"}
    assert provenance.versions(None)["distributions"] == installed


def test_what_a_run_was_played_with_and_is_gone_is_named(inside: Any, tmp_path: Path) -> None:
    assert inside("run", "toy", "--task", "a", "-o", "out").status == 0
    path = tmp_path / "out/run.json"
    record = json.loads(path.read_text())
    record["config"]["benchmark"]["name"] = "zed"
    path.write_text(json.dumps(record))
    for command in (("run", "--resume", "out"), ("replay", "out")):
        done = inside(*command)
        assert done.status == 2 and "unknown benchmark 'zed'" in done.err and "was played with" not in done.err
    record["versions"]["distributions"] |= {"acme-benchmark-zed": "1.2", "/gone/plug.py": "file"}
    path.write_text(json.dumps(record))
    done = inside("replay", "out")
    said = "The run was played with what is not here: acme-benchmark-zed 1.2, --plugin-file /gone/plug.py"
    assert done.status == 2 and "unknown benchmark 'zed'" in done.err and said in done.err
    (tmp_path / "plug.py").write_text(OWNER)
    for command in (("run", "--resume", "out"), ("replay", "out")):
        there = inside(*command, "--plugin-file", "plug.py")
        assert there.err.endswith("was played with what is not here: acme-benchmark-zed 1.2\n")
    record["config"]["benchmark"]["name"] = "toy"
    path.write_text(json.dumps(record))
    slip = inside("run", "--resume", "out", "-p", "run.workrs=2", "--plugin-file", "plug.py")
    assert slip.status == 2 and "run.workrs" in slip.err and "was played with" not in slip.err


OWNER = f"""{SECOND}
from debug_gym_core import Agent, ToolCall

class Owner(Agent):
    \"\"\"Has a tool of its own.\"\"\"
    name = "owner"
    tools = ("sh",)
    needs_llm = False
    def play(self, env, llm): env.step(ToolCall("sh", {{"command": "x"}}))

@hookimpl
def debug_gym_register_agents(): return [Owner]
"""


FAULTY = """
from debug_gym_core import Agent, Tool, ToolCall, hookimpl

class Mute(OSError):
    def __str__(self): return self.words

class Faulty(Tool):
    \"\"\"Fails whenever it is called.\"\"\"
    name = "faulty"
    def use(self, env):
        \"\"\"Use it.\"\"\"
        raise OSError("no licence")
    @hookimpl
    def on_reset(self, env):
        self.begun = True
        raise Mute
    def close(self):
        if hasattr(self, "begun"): raise OSError("no way out")

class User(Agent):
    \"\"\"Calls it.\"\"\"
    name = "user"
    needs_llm = False
    def play(self, env, llm):
        for _ in range(3):
            env.step(ToolCall("faulty", {}))

@hookimpl
def debug_gym_register_tools(): return [Faulty]
@hookimpl
def debug_gym_register_agents(): return [User]
"""


def test_a_tool_that_fails_by_its_own_errors_is_noted_once(inside: Any, tmp_path: Path) -> None:
    (tmp_path / "plug.py").write_text(FAULTY)
    tools = ("--agent", "user", "-p", "tools=[faulty, sh]")
    done = inside("run", "toy", "--plugin-file", "plug.py", "--task", "[ab]", *tools, "-o", "out")
    notes = json.loads((tmp_path / "out/run.json").read_text())["notes"]
    assert done.status == 0
    faults = {
        "faulty": "OSError: no licence",
        "faulty's on_reset": "Mute: (its text cannot be made: AttributeError)",
        "faulty's close": "OSError: no way out",
    }
    for what, error in faults.items():
        said = f"tool {what} failed by an error of its own: {error}; see the log.txt of toy/a"
        assert notes.count(said) == 1 and (done.out + done.err).count(f"tool {what} failed") == 1
        assert said in done.out + done.err and error in (tmp_path / "out/toy/a/log.txt").read_text()


def test_a_config_says_which_of_two_tools_an_agents_own_is(inside: Any, tmp_path: Path) -> None:
    (tmp_path / "second.py").write_text(OWNER)
    command = ("run", "toy", "--plugin-file", "second.py", "--task", "a", "--agent", "owner")
    assert inside(*command).status == 3
    done = inside(*command, "-p", "tools=[second.py:sh]", "-vv")
    assert done.status == 0 and "the other sh" in done.out
    assert "note: tools:" not in done.err and "only the settings" not in done.err
    done = inside("plugins", "--check", "--plugin-file", "second.py")
    assert "plays with tools that are provided twice: sh" in done.out and "not installed: sh" not in done.out
