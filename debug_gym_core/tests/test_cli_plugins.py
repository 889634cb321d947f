"""`debug-gym plugins`, and plugins that fail, clash or come as files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from support import repeated
from taken_name import SECOND

from debug_gym_core.components.catalogue import of_core
from debug_gym_core.components.entry_points import command_entry_points, entry_points
from debug_gym_core.plugins import load_plugins

GOOD = """
from debug_gym_core import Tool, hookimpl

class Good(Tool):
    \"\"\"Does nothing.\"\"\"
    name = "good"
    def use(self, env): return ""

@hookimpl
def debug_gym_register_tools(): return [Good]
"""


@pytest.fixture
def broken(tmp_path: Path) -> str:
    path = tmp_path / "broken.py"
    path.write_text("import no_such_module\n")
    return str(path)


def test_plugins_lists_what_is_there_and_what_failed(inside: Any, broken: str) -> None:
    done = inside("plugins", "--plugin-file", broken)
    assert done.status == 0 and done.err.count("no_such_module") == 1 and len(done.err.splitlines()) == 1
    row = next(line for line in done.out.splitlines() if line.startswith("toy_plugin.py "))
    assert row.endswith("loaded")
    assert "No module named 'no_such_module'" in done.out
    data = {item["name"]: item for item in json.loads(inside("plugins", "--json", "--plugin-file", broken).out)}
    assert data["toy_plugin.py"]["provides"]["benchmarks"] == ["toy"]
    assert data["core"]["provides"] == {"executors": ["local"], "exporters": ["messages", "sharegpt"]}
    assert data["core"]["distribution"] == "debug-gym-core"
    assert data["broken.py"]["state"] == "failed" and "no_such_module" in data["broken.py"]["cause"]


@pytest.mark.parametrize(
    ("columns", "header"),
    [
        (20, "plugin state"),
        *repeated(
            "people", (200, "plugin kind provides distribution version state"), (80, "plugin kind provides state")
        ),
    ],
)
def test_a_narrow_terminal_shows_the_names_that_can_be_chosen(columns: int, header: str) -> None:
    import pexpect

    code = "from debug_gym_core.cli import main; main()"
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    child = pexpect.spawn(
        sys.executable,
        ["-c", code, "plugins"],
        env=environment,
        dimensions=(50, columns),
        encoding="utf-8",
        timeout=60,
    )
    child.expect(pexpect.EOF)
    child.close()
    lines = re.sub(r"\x1b\[[0-9;]*m", "", str(child.before)).splitlines()
    assert " ".join(lines[0].split()) == header
    assert any(line.startswith("core ") and line.rstrip().endswith("loaded") for line in lines)
    assert all(len(line) <= columns for line in lines[:10])


def test_a_wanted_plugin_that_is_not_there_is_told(inside: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "core,local,cores")
    monkeypatch.setenv("DEBUG_GYM_DISABLE_PLUGINS", "tool-pbd")
    done = inside("plugins")
    assert "DEBUG_GYM_PLUGINS: there is no plugin 'local'; did you mean 'terminal-local'?" in done.err
    assert "DEBUG_GYM_PLUGINS: there is no plugin 'cores'; did you mean 'core'?" in done.err
    assert "DEBUG_GYM_DISABLE_PLUGINS: there is no plugin 'tool-pbd'; did you mean 'tool-pdb'?" in done.err
    assert done.err.count("there is no plugin") == 3
    assert "\ndisabled by DEBUG_GYM_PLUGINS: agents, benchmarks, " in done.out


def test_only_what_clashes_is_failed_by_it(inside: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    information = site / "acme-1.5.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.5\n")
    modules = {"acme_good": GOOD, "acme_clash": SECOND, "acme_broken": "import no_such_module\n"}
    for name, text in modules.items():
        (site / f"{name}.py").write_text(text)
    (information / "entry_points.txt").write_text("".join(["[debug_gym]\n", *(f"{one} = {one}\n" for one in modules)]))
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "acme,terminal-local")
    monkeypatch.setattr("debug_gym_core.plugins.entry_points", entry_points.__wrapped__)
    data = {item["name"]: item for item in json.loads(inside("plugins", "--json").out)}
    assert data["acme_good"]["state"] == "loaded"
    assert "no_such_module" in data["acme_broken"]["cause"]
    assert data["acme_clash"]["cause"].startswith("tool 'sh' is provided by ")


def test_what_all_stand_on_is_loaded_whatever_is_chosen(inside: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "terminal-local")
    data = {item["name"]: item["state"] for item in json.loads(inside("plugins", "--json").out)}
    assert {name for name, state in data.items() if state == "loaded"} == {"core", "terminal-local", "toy_plugin.py"}


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        (
            {"url": "https://x.org/x.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}, "subdirectory": "t"},
            "acme-tool @ git+https://x.org/x.git@c0ffee#subdirectory=t",
        ),
        *repeated(
            "people",
            (None, "acme-tool==1.5"),
            ({"url": "file:///a%20b/tool", "dir_info": {"editable": True}}, "-e file:///a%20b/tool"),
            ({"url": "file:///a%20b/tool", "dir_info": {}}, "acme-tool @ file:///a%20b/tool"),
            ({"url": "file:///w/t.whl", "archive_info": {}}, "acme-tool @ file:///w/t.whl"),
            (
                {"url": "file:///w/t-1.5.zip", "archive_info": {"hashes": {"sha256": "ab"}}, "subdirectory": "t"},
                "acme-tool @ file:///w/t-1.5.zip#sha256=ab&subdirectory=t",
            ),
        ),
    ],
)
def test_requirements_say_where_a_distribution_came_from(
    origin: dict[str, Any] | None, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no index has must not be pinned by its version alone: pip would not find it."""
    information = tmp_path / "site" / "acme_tool-1.5.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tool\nVersion: 1.5\n")
    (information / "entry_points.txt").write_text("[debug_gym]\nacme = acme_tool\n")
    if origin is not None:
        (information / "direct_url.json").write_text(json.dumps(origin))
    shutil.copy(Path(__file__).with_name("toy_plugin.py"), tmp_path / "site" / "acme_tool.py")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "DEBUG_GYM_PLUGINS": "acme"}
    done = subprocess.run(
        [sys.executable, "-c", "from debug_gym_core.cli import main; main()", "plugins", "--requirements"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert line in done.stdout.splitlines(), done.stdout + done.stderr
    assert len(re.findall(r"acme-tool|a%20b/tool", done.stdout)) == len(re.findall(r"acme-tool|a%20b/tool", line))


@pytest.mark.parametrize("command", [("tasks", "toy"), ("config", "show", "toy"), ("run", "toy", "--list")])
def test_a_file_that_was_asked_for_and_fails_is_status_3(inside: Any, broken: str, command: tuple[str, ...]) -> None:
    done = inside(*command, "--plugin-file", broken)
    assert done.status == 3 and done.out == ""
    assert done.err.startswith(f"error: plugin file {broken} failed to load: ModuleNotFoundError: No module named")
    assert len(done.err.splitlines()) == 1
    missing = inside(*command, "--plugin-file", "nowhere.py")
    assert missing.status == 2 and missing.err == "error: there is no plugin file nowhere.py\n"


@pytest.mark.parametrize("name", ["two words", "my.tool", "wörter", "x" * 65, ""])
def test_a_name_that_no_model_may_call_is_refused_when_it_is_loaded(inside: Any, tmp_path: Path, name: str) -> None:
    """A run, too, would be refused by the service, in each episode."""
    spaced = tmp_path / "spaced.py"
    spaced.write_text(GOOD.replace('"good"', repr(name)))
    said = f"Good: {name!r} is no name: ASCII letters, digits, _ and -, 64 at most"
    done = inside("plugins", "--check", "--json", "--plugin-file", str(spaced))
    (found,) = [item for item in json.loads(done.out) if item["plugin"] == "spaced.py"]
    assert (done.status, found["state"], found["detail"]) == (3, "failed", said)
    done = inside("tasks", "toy", "--plugin-file", str(spaced))
    assert (done.status, done.err) == (3, f"error: plugin file {spaced} failed to load: {said}\n")


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("Loud", "debug_gym_register_tools must return a list of classes, not <class "),
        ("3", "debug_gym_register_tools must return a list of classes, not 3"),
        ("None", "debug_gym_register_tools returns nothing; it must return a list of classes"),
        (
            "[type('Odd', (Loud,), {'__doc__': 'Has odd settings.', 'Settings': dict})]",
            "Odd.Settings is no subclass of debug_gym_core.Settings",
        ),
        ("Loud()", "debug_gym_register_tools must return a list of classes, not an instance of Loud"),
        ("[Loud()]", "debug_gym_register_tools must return the class Loud, not an instance of it"),
        ("[3]", "debug_gym_register_tools must return component classes, not 3"),
        (
            "[]\n@hookimpl\ndef debug_gym_run_started(run, when): pass",
            "debug_gym_run_started has no argument 'when'; it may have: run; the rest works",
        ),
        (
            "[]\n@hookimpl(specname='debug_gym_register_llms')\ndef models(env): pass",
            "debug_gym_register_llms has no argument 'env'; it may have: none; the rest works",
        ),
    ],
)
def test_a_hook_that_returns_no_list(inside: Any, tmp_path: Path, returned: str, words: str) -> None:
    (tmp_path / "loud.py").write_text(LOUD.format(returned))
    done = inside("plugins", "--plugin-file", "loud.py")
    assert words in done.err, done.err


LOUD = """
from debug_gym_core import Tool, hookimpl
print("loading!")
class Loud(Tool):
    \"\"\"Prints.\"\"\"
    name = "loud"
    def use(self, env): return ""
@hookimpl
def debug_gym_register_tools():
    print("registering!")
    return {}
"""


def test_what_a_plugin_prints_is_no_part_of_what_we_write(inside: Any, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD.format("[Loud]"))
    done = inside("plugins", "--json", "--plugin-file", "loud.py")
    assert "loud.py" in {item["name"] for item in json.loads(done.out)}
    assert "loading!" in done.err and "registering!" in done.err


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory with a distribution that brings two commands, one of which is broken."""
    site = tmp_path / "site"
    information = site / "acme-1.5.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.5\n")
    (information / "entry_points.txt").write_text("[debug_gym.commands]\nbad = acme_bad:it\nhello = acme_hello:it\n")
    (site / "acme_hello.py").write_text("import click\n@click.command()\ndef it(): 'Greet.'\n")
    monkeypatch.syspath_prepend(site)
    command_entry_points.cache_clear()
    yield str(site)
    command_entry_points.cache_clear()


def test_a_distribution_of_commands_alone_is_listed_as_other_plugins_are(
    inside: Any, commands: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "core,acme")
    (Path(commands) / "acme_hello.py").write_text("import click\nprint('loud')\n@click.command()\ndef it(): 'Greet.'\n")
    done = inside("plugins")
    rows = [line.split() for line in done.out.splitlines() if " acme " in line and " 1.5 " in line]
    assert rows == [
        ["bad", "command", "bad", "acme", "1.5", "failed"],
        ["hello", "command", "hello", "acme", "1.5", "loaded"],
    ]
    assert "plugin bad (acme 1.5) failed:\n  ModuleNotFoundError: No module named 'acme_bad'\n" in done.out
    found = {item["name"]: item for item in json.loads(inside("plugins", "--json").out)}
    assert found["hello"] == {
        "name": "hello",
        "distribution": "acme",
        "version": "1.5",
        "provides": {"commands": ["hello"]},
        "state": "loaded",
        "cause": None,
        "module": "acme_hello",
    }
    assert found["bad"]["state"] == "failed" and "acme_bad" in found["bad"]["cause"]
    assert "acme==1.5" in inside("plugins", "--requirements").out.splitlines()


@pytest.mark.parametrize(
    ("variable", "names", "states"),
    [
        ("DEBUG_GYM_DISABLE_PLUGINS", "bad", {"bad": False, "hello": True}),
        *repeated(
            "people",
            ("DEBUG_GYM_DISABLE_PLUGINS", "acme", {"bad": False, "hello": False}),
            ("DEBUG_GYM_PLUGINS", "core,terminal-local,hello", {"bad": False, "hello": True}),
        ),
    ],
)
def test_commands_are_left_out_as_other_plugins_are(
    inside: Any, commands: str, monkeypatch: pytest.MonkeyPatch, variable: str, names: str, states: dict[str, bool]
) -> None:
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "core,terminal-local,acme")
    assert inside("plugins", "--check").status == 3
    assert inside("bad").err.startswith("error: command 'bad' of acme 1.5 failed to load: ModuleNotFoundError: ")
    monkeypatch.setenv(variable, names)
    done = inside("plugins", "--check", "--json")
    found = {item["name"]: (item["state"], item["detail"]) for item in json.loads(done.out) if item["plugin"] == "acme"}
    without = f"disabled by {variable}"
    assert found == {name: ("ok", "Greet." if there else without) for name, there in states.items()}
    assert (done.status, done.err) == (0, "")
    listed = inside("plugins").out.rpartition(f"\n{without}: ")[2].splitlines()[0].split(", ")
    assert {"bad", "hello"} & {*listed} == {name for name, there in states.items() if not there}
    done = inside("bad")
    assert done.status == 2 and done.err.startswith(f"error: command 'bad' is {without}\n")


def test_a_broken_command_does_not_stand_in_the_way_of_completion(
    gym: Any, commands: str, environment: dict[str, str]
) -> None:
    words = {"_DEBUG_GYM_COMPLETE": "bash_complete", "COMP_WORDS": "debug-gym ", "COMP_CWORD": "1"}
    environment.update(words, PYTHONPATH=commands, DEBUG_GYM_PLUGINS="acme")
    done = gym(toy=False)
    assert {"plain,run", "plain,bad", "plain,hello"} <= {*done.stdout.split()} and done.stderr == ""


@pytest.mark.parametrize("group", ["debug-gym", "debug_gyms", "debug_gym.plugins", "debuggym"])
def test_entry_points_in_a_group_of_nearly_the_right_name(
    inside: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    information = tmp_path / "site" / "acme_tool-1.5.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tool\nVersion: 1.5\n")
    (information / "entry_points.txt").write_text(f"[{group}]\nacme = acme_tool\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    found = json.loads(inside("plugins", "--check", "--json").out)
    assert [(item["name"], item["state"], item["detail"]) for item in found if item["plugin"] == "acme-tool"] == [
        (
            "acme",
            "warning",
            f"its entry point acme is in the group {group!r}, which nobody looks at; say 'debug_gym'",
        )
    ]


WRONG = """
from pathlib import Path
from debug_gym_core import Agent, Benchmark, LLM, Task, Terminal, hookimpl
from debug_gym_core.models.service import ServiceLLM

class Odd(Benchmark):
    \"\"\"Loads what is no task.\"\"\"
    name = "odd"
    config = {{"tools": ["sh"], "agent": {{"name": "fixer"}}, "terminal": {{"name": "local"}}}}
    def names(self): return {names}
    def load(self, name):
        if name == "played":
            return Task("odd", name, Path("{repository}"), "python check.py", max_score=1, known_to_fail=True)
        return {{"name": name}} if name == "a" else 1 // 0
    def prediction(self, name, patch, model): return {{}}[name]
    def titles(self): return dict.fromkeys(self.names(), 5)
    def excluded(self): return {{}}[1] if "x" in self.names() else {{}}

class Shy(Terminal):
    \"\"\"Cannot be asked.\"\"\"
    name = "shy"
    open = start = stop = alive = None
    @classmethod
    def unavailable(cls): raise SystemExit(5)

class Mute(LLM):
    \"\"\"Answers nothing.\"\"\"
    name = "mute"
    def complete(self, messages, tools): return None

class Vague(Mute):
    \"\"\"Cannot say what it costs, and keeps what it holds.\"\"\"
    name = "vague"
    def estimate(self, messages, tools, last=None): return None
    def close(self): raise OSError("stays\\nopen" + "!" * 9000)

class Unfit(ServiceLLM):
    \"\"\"Cannot say what it needs.\"\"\"
    name = "unfit"
    ask = None
    def prepare(self): return {{}}["key"]

@hookimpl
def debug_gym_register_benchmarks(): return [Odd]
@hookimpl
def debug_gym_register_llms(): return [Mute, Unfit, Vague]
@hookimpl
def debug_gym_register_terminals(): return [Shy]
"""


def test_what_a_plugin_returns_that_is_wrong_names_the_plugin(inside: Any, tmp_path: Path) -> None:
    plugin = tmp_path / "wrong.py"
    for names, words in (
        ("5", "benchmark odd: names() must return a list of names, not 5"),
        ("['a', 5]", "benchmark odd: names() must return texts, not 5"),
        ("['a']", "benchmark odd: load('a') must return a Task, not {'name': 'a'}"),
        ("['bug']", "cannot load 'bug': ZeroDivisionError: integer division or modulo by zero (wrong.py:14 in load)"),
        ("['x', 'y']", "cannot list the tasks that it leaves out: KeyError: 1 (wrong.py:17 in excluded)"),
        ("exit(5)", "cannot list its tasks: SystemExit: 5 (wrong.py:10 in names)"),
        ("['played']", "cannot make the prediction of odd/played: KeyError: 'played' (wrong.py:15 in prediction)"),
    ):
        plugin.write_text(WRONG.format(names=names, repository=Path(__file__).parent / "toy_repository"))
        done = inside("run", "odd", "--plugin-file", "wrong.py", "-p", "agent.name=fixer")
        assert done.status == 3 and words in done.err, (done.out, done.err)
        (error,) = [line for line in done.err.splitlines() if line.startswith("error: ")]
        assert error.startswith("error: benchmark odd: ") and len(done.err.splitlines()) == 1
    done = inside("tasks", "odd", "--plugin-file", "wrong.py")
    assert done.status == 3 and done.err.startswith("error: benchmark odd: plugin file wrong.py cannot give its tasks'")
    done = inside("run", "toy", "--plugin-file", "wrong.py", "--terminal", "shy", "--task", "a")
    assert done.status == 3 and done.err.startswith("error: terminal shy: plugin file wrong.py cannot say whether")
    said = ["--agent", "chatter", "-p", "terminal.allow_unsandboxed=true", "--task", "a"]
    for llm, words in (
        ("mute", "llm mute: complete() must return a Completion, not None"),
        ("vague", "llm vague: estimate() must return a Usage, not None"),
        ("vague", "warning: closing model vague failed: OSError: stays open"),
    ):
        done = inside("run", "toy", "--plugin-file", "wrong.py", *said, "-p", f"llm.name={llm}")
        assert words in done.out + done.err, (done.out, done.err)
        assert len(max(done.err.splitlines(), key=len)) < 600
    (tmp_path / "llm.yaml").write_text("mine: {model: m, tags: [unfit], prices: {prompt: 0, completion: 0}}\n")
    words = "llm unfit: plugin file wrong.py cannot find what it needs: KeyError: 'key' (wrong.py:41 in prepare)"
    for command in (("llm", "check"), ("run", "toy", *said, "--llm", "mine")):
        done = inside(*command, "--llm-config", "llm.yaml", "--plugin-file", "wrong.py")
        assert done.status == 3 and words in done.err and len(done.err.splitlines()) == 1, (done.out, done.err)


def test_two_of_one_name(inside: Any, tmp_path: Path) -> None:
    second = tmp_path / "second.py"
    second.write_text(SECOND)
    options = ("--plugin-file", "second.py", "--task", "a")
    done = inside("run", "toy", *options)
    assert done.status == 3
    warning, error = done.err.splitlines()
    assert warning.startswith("warning: tool 'sh' is provided by second.py and ") and "toy_plugin.py" in warning
    assert error.startswith("error: the config of toy: tool 'sh' is provided twice; say second.py:sh or ")
    done = inside("run", "toy", *options, "-p", "tools=[second.py:sh]", "-vv")
    assert done.status == 0 and "the other sh" in done.out
    assert inside("plugins", "--check", "--plugin-file", "second.py").status == 3


def test_a_failed_plugin_that_is_needed_is_status_3(inside: Any, tmp_path: Path) -> None:
    assert inside("run", "toy", "--strict-plugins", "--plugin-file", "nowhere.py").status == 2
    done = inside("run", "toy", "-p", "tools=[view]")
    assert done.status == 2 and "disabled" in done.err


PLUG = """
from debug_gym_core import Tool, hookimpl

class Named(Tool):
    \"\"\"A tool of one's own.\"\"\"
    name = "NAME"
    def use(self, env):
        \"\"\"Use it.\"\"\"
        return "NAME"

@hookimpl
def debug_gym_register_tools():
    return [Named]
"""


def test_two_files_of_one_name_are_two_plugins(tmp_path: Path) -> None:
    files = [tmp_path / name / "plug.py" for name in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        file.write_text(PLUG.replace("NAME", file.parent.name))
    plugins = load_plugins(files=[*files, str(files[0])], strict=True)
    assert {"one", "two"} <= plugins.tools.keys()
    assert plugins.tools["one"].__module__ != plugins.tools["two"].__module__
    records = [record for record in plugins.records if record.name == "plug.py"]
    assert [record.distribution for record in records] == [str(file) for file in files]
    assert all(plugins.module_of(record) is not None for record in records)


def test_two_entry_points_of_one_name_or_one_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"acme_{name}.py").write_text(PLUG.replace("NAME", name))
    monkeypatch.syspath_prepend(tmp_path)
    points = [EntryPoint("same", "acme_first", "debug_gym"), EntryPoint("same", "acme_second", "debug_gym")]
    points.append(EntryPoint("third", "acme_first", "debug_gym"))
    monkeypatch.setattr("debug_gym_core.plugins.entry_points", lambda: tuple(points))
    plugins = load_plugins()
    assert {"first", "second"} <= plugins.tools.keys()
    (failed,) = plugins.failed()
    assert (failed.name, failed.cause) == ("third", "acme_first is loaded already, by another entry point")


def test_only_the_core_is_the_core() -> None:
    texts = [
        "debug-gym-core-extras>=99",
        "debug_gym.Core >=0.1,<0.2",
        "debug-gym-core<9; python_version < '3'",
        "pluggy",
    ]
    assert [str(one.specifier) for one in of_core(texts)] == ["<0.2,>=0.1"]


def test_ctrl_c_while_a_plugin_is_loaded_is_no_fault_of_the_plugin(tmp_path: Path) -> None:
    path = tmp_path / "slow.py"
    path.write_text("""\
class Slow:
    def __set_name__(self, owner, name):
        raise KeyboardInterrupt

class Owner:
    attribute = Slow()
""")
    with pytest.raises(KeyboardInterrupt):
        load_plugins(files=[path])


def test_without_docstrings_one_line_says_what_to_do(gym: Any, environment: dict[str, str]) -> None:
    environment["PYTHONOPTIMIZE"] = "2"
    done = gym("plugins", toy=False)
    said = "docstrings tell models what tools do: start Python without -OO and PYTHONOPTIMIZE=2"
    assert (done.returncode, done.stdout, done.stderr) == (4, "", f"error: {said}\n")
