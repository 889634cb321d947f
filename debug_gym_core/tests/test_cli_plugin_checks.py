"""`debug-gym plugins --check`, and a tool that it would refuse, in a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

BAD = """
from debug_gym_core import Agent, Benchmark, Settings, Terminal, Tool, hookimpl

class Silent(Tool):
    \"\"\"Explains no argument.\"\"\"
    name = "silent"
    def use(self, env, path: str):
        \"\"\"Nothing.\"\"\"
        return path

class Greedy(Tool):
    \"\"\"Takes anything.\"\"\"
    name = "greedy"
    def use(self, env, *words):
        \"\"\"Nothing.\"\"\"
        return "x"

class Unmade(Silent):
    \"\"\"Cannot be made.\"\"\"
    name = "unmade"
    def __init__(self, **settings):
        raise OSError("no licence")

class Held(Silent):
    \"\"\"Cannot be closed.\"\"\"
    name = "held"
    def __init__(self, **settings):
        super().__init__(**settings)
        self.lock = "a lock"
    def close(self):
        raise OSError("no way to give back " + self.lock)

class Choosy(Silent):
    \"\"\"Wants to be told more.\"\"\"
    name = "choosy"
    class Settings(Settings):
        \"\"\"What it wants.

        Attributes:
            where: it
                looks
            silent: as said
        \"\"\"
        where: str
        silent: bool = True
    def use(self, env):
        \"\"\"Nothing.\"\"\"
        return self.settings.where

class Half(Terminal):
    \"\"\"Leaves out most methods.\"\"\"
    name = "half"

class Wrong(Benchmark):
    \"\"\"Ships a config that is refused.\"\"\"
    name = "wrong"
    config = {"env": {"run_timout": 3}}
    def names(self): return []
    def load(self, name): raise AssertionError

class Alone(Agent):
    \"\"\"Wants a tool that nobody has.\"\"\"
    name = "alone"
    tools = ("laser",)
    def play(self, env, llm): pass

@hookimpl
def debug_gym_register_tools(): return [Silent, Greedy, Unmade, Held, Choosy]
@hookimpl
def debug_gym_register_terminals(): return [Half]
@hookimpl
def debug_gym_register_benchmarks(): return [Wrong]
@hookimpl
def debug_gym_register_agents(): return [Alone]
"""


def test_check_is_silent_about_what_is_right(inside: Any) -> None:
    done = inside("plugins", "--check")
    assert done.status == 0 and done.err == ""
    rows = [line.split(maxsplit=3) for line in done.out.splitlines()[1:]]
    assert ["core", "plugin", "ok"] in [row[:3] for row in rows]
    assert "failed" not in done.out
    assert any("terminal local" in line and "works here" in line for line in done.out.splitlines())


def test_check_names_what_is_wrong(inside: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(BAD)
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    done = inside("plugins", "--check", "--json", "--plugin-file", str(bad), "--plugin-file", "broken.py")
    assert done.status == 3
    found = {(item["kind"], item["name"]): (item["state"], item["detail"]) for item in json.loads(done.out)
             if item["plugin"] == "bad.py"}  # fmt: skip
    assert found["tool", "silent"] == ("warning", "arguments that the docstring of use() does not explain: path")
    assert found["tool", "greedy"][0] == "failed" and "must name its arguments" in found["tool", "greedy"][1]
    unmade = f"tool unmade: plugin file {bad} cannot make it: OSError: no licence (bad.py:"
    assert found["tool", "unmade"][0] == "failed" and unmade in found["tool", "unmade"][1]
    held = f"tool held: plugin file {bad} cannot close it: OSError: no way to give back a lock (bad.py:"
    assert found["tool", "held"][0] == "failed" and held in found["tool", "held"][1]
    assert found["tool", "choosy"] == ("ok", "arguments: none; not made: choosy: where: it is missing")
    assert found["terminal", "half"][0] == "failed" and "does not implement alive, open, start" in str(
        found["terminal", "half"]
    )
    assert (
        found["benchmark", "wrong"][0] == "failed" and "did you mean 'run_timeout'?" in found["benchmark", "wrong"][1]
    )
    assert found["agent", "alone"] == ("warning", "plays with tools that are not installed: laser")
    assert any(item["plugin"] == "broken.py" and item["state"] == "failed" for item in json.loads(done.out))


EVENTS = """
from debug_gym_core import Tool, hookimpl, hookspec

class Own:
    @hookspec
    def on_file_changed_twice(env, path):
        "Specified here: no slip."
    @hookspec
    def on_opened(env, path):
        "Another."

def tool(title, **methods):
    def use(self, env):
        return "x"
    return type(title, (Tool,), {"name": title, "__doc__": "A tool.", "use": use, **methods})

TOOLS = [
    tool("argument", on_file_changed=hookimpl(lambda self, env, file: None)),
    tool("own_argument", on_opened=hookimpl(lambda self, file: None)),
    tool("by_name", on_step=hookimpl(lambda self, *, env: None)),
    tool("wrapper", on_step=hookimpl(wrapper=True)(lambda self, env: None)),
    tool("unmarked", on_reset=lambda self, env: None, on_paint=lambda self: None),
    tool("misspelled", on_file_change=hookimpl(lambda self, env: None)),
    tool("near", on_file_renamed=hookimpl(lambda self, path: None)),
    tool("optional", on_steps=hookimpl(optionalhook=True)(lambda self: None)),
    tool("own", on_file_changed_twice=hookimpl(lambda self, path: None), on_reset=hookimpl(lambda self, extra=1: None)),
    tool("elsewhere", on_moonrise=hookimpl(lambda self, moon: None)),
]

@hookimpl
def debug_gym_register_tools(): return TOOLS
"""


def test_check_looks_at_the_methods_that_answer_events(inside: Any, tmp_path: Path) -> None:
    plugin = tmp_path / "listens.py"
    plugin.write_text(EVENTS)
    done = inside("plugins", "--check", "--json", "--plugin-file", str(plugin))
    assert done.status == 3
    assert {item["name"]: (item["state"], item["detail"]) for item in json.loads(done.out)
            if item["plugin"] == "listens.py" and item["kind"] == "tool"} == {
        "argument": ("failed", "argument.on_file_changed: there is no argument 'file'; it has env, path, edits"),
        "own_argument": ("failed", "own_argument.on_opened: there is no argument 'file'; it has env, path"),
        "by_name": ("failed", "by_name.on_step: its arguments are given by position; take the * out"),
        "wrapper": ("failed", "wrapper.on_step: an event has no wrappers; write @hookimpl alone"),
        "unmarked": ("warning", "unmarked.on_reset is not marked @hookimpl and is never called"),
        "misspelled": (
            "failed",
            "misspelled.on_file_change: there is no event 'on_file_change'; did you mean 'on_file_changed'?",
        ),
        "near": (
            "warning",
            "near.on_file_renamed: there is no event 'on_file_renamed'; did you mean 'on_file_changed'?",
        ),
        "optional": ("ok", "arguments: none; answers what no plugin here specifies: on_steps"),
        "own": ("ok", "arguments: none"),
        "elsewhere": ("ok", "arguments: none; answers what no plugin here specifies: on_moonrise"),
    }  # fmt: skip
    shown = " ".join(inside("plugins", "--check", "--plugin-file", str(plugin)).out.split())
    assert "misspelled failed" in shown and "argument failed" in shown


@pytest.mark.parametrize(
    ("text", "tool", "said"),
    [
        (BAD, "greedy", "tool greedy: Greedy.use must name its arguments, not take *words"),
        (
            EVENTS,
            "misspelled",
            "misspelled.on_file_change: there is no event 'on_file_change'; did you mean 'on_file_changed'?",
        ),
        (
            EVENTS,
            "argument",
            "tool 'argument' cannot be told of on_file_changed: argument.on_file_changed: there is no argument 'file'; "
            "it has env, path, edits",
        ),
    ],
    ids=["greedy", "misspelled", "argument"],
)
def test_a_tool_that_cannot_work_ends_a_run_before_it_begins(
    inside: Any, tmp_path: Path, text: str, tool: str, said: str
) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(text)
    done = inside("run", "toy", "--plugin-file", str(bad), "--agent", "quitter", "-p", f"tools=[{tool}]", "-o", "out")
    assert (done.status, done.err) == (3, f"error: {said}\n") and not (tmp_path / "out" / "toy").exists()


@pytest.mark.parametrize(
    ("text", "state", "detail"),
    [
        (
            "from debug_gym_core import hookimpl\n@hookimpl\ndef debug_gym_register_tools(): return []\n",
            "warning",
            "file, provides nothing: debug_gym_register_tools returns nothing",
        ),
        (
            "from debug_gym_core import hookimpl\n@hookimpl\ndef debug_gym_register_llms(): return []\n"
            "@hookimpl\ndef debug_gym_register_agents(): return ()\n",
            "warning",
            "file, provides nothing: debug_gym_register_agents, debug_gym_register_llms return nothing",
        ),
        ("from debug_gym_core import hookimpl\n@hookimpl\ndef debug_gym_run_started(run): pass\n", "ok", "file"),
    ],
)
def test_check_warns_of_a_plugin_that_provides_nothing(
    inside: Any, tmp_path: Path, text: str, state: str, detail: str
) -> None:
    (tmp_path / "empty.py").write_text(text)
    done = inside("plugins", "--check", "--json", "--plugin-file", str(tmp_path / "empty.py"))
    found = [item for item in json.loads(done.out) if item["plugin"] == "empty.py"]
    assert [(item["kind"], item["state"], item["detail"]) for item in found] == [("plugin", state, detail)]


def test_check_with_warnings_only_is_status_0(inside: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    tools = "return [Silent, Greedy, Unmade, Held, Choosy]"
    bad.write_text(BAD.replace(tools, "return [Silent]").replace("[Half]", "[]").replace("[Wrong]", "[]"))
    done = inside("plugins", "--check", "--plugin-file", str(bad))
    assert done.status == 0 and "warning" in done.out
