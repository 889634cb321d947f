"""Where a config's values come from, and how a wrong one is answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pluggy
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from debug_gym_core.agents.agent import Agent, AgentSettings
from debug_gym_core.components.catalogue import PluginRecord, Plugins
from debug_gym_core.components.component import Settings
from debug_gym_core.config.layers import Layer, parse_override, read_text
from debug_gym_core.config.loading import from_data, load
from debug_gym_core.config.model import Config
from debug_gym_core.config.text import as_yaml
from debug_gym_core.errors import UsageError
from debug_gym_core.models.llm import LLM, Completion, Message
from debug_gym_core.runs.local import LocalExecutor
from debug_gym_core.tasks.task import Benchmark, BenchmarkSettings, Task
from debug_gym_core.tools.tool import Tool


class QuizSettings(BenchmarkSettings):
    """Settings of the quiz.

    Attributes:
        level: how hard it is
        notes: a file with hints
    """

    level: int = 1
    notes: Path | None = None


class Quiz(Benchmark):
    """A benchmark."""

    name = "quiz"
    Settings: ClassVar[type[Settings]] = QuizSettings
    config: ClassVar[dict[str, Any]] = {"env": {"run_timeout": 30}, "agent": {"name": "thinker", "max_steps": 20}}

    def names(self) -> list[str]:
        return ["one"]

    def load(self, name: str) -> Task:
        raise NotImplementedError


class Plain(Quiz):
    """A benchmark that ships nothing of its own."""

    name = "mini_nightmare"
    config: ClassVar[dict[str, Any]] = {}


class ThinkerSettings(AgentSettings):
    """Settings of the thinker."""

    memory_size: int = 33
    depth: float = 0.5


class Thinker(Agent):
    """Thinks."""

    name = "thinker"
    Settings: ClassVar[type[Settings]] = ThinkerSettings

    def play(self, env: Any, llm: Any) -> None:
        raise NotImplementedError


class Doer(Thinker):
    """Does."""

    name = "debug_agent"
    Settings: ClassVar[type[Settings]] = AgentSettings


class Rewriter(Doer):
    """Rewrites."""

    name = "rewrite_agent"


class PdbSettings(Settings):
    """Settings of pdb."""

    timeout: float = 60
    persistent_breakpoints: bool = True
    warm: bool = True
    rewind: bool = False


class Pdb(Tool):
    """A debugger."""

    name = "pdb"
    Settings: ClassVar[type[Settings]] = PdbSettings

    def use(self, env: Any, command: str) -> str:
        raise NotImplementedError


class View(Tool):
    """A viewer."""

    name = "view"

    def use(self, env: Any) -> str:
        raise NotImplementedError


class Parrot(LLM):
    """Repeats."""

    name = "human"

    def complete(self, messages: Any, tools: Any) -> Completion:
        return Completion(Message("assistant", ""))


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    import types

    plugins = Plugins(pluggy.PluginManager("debug_gym"))
    plugins.add(
        PluginRecord("test", "test", "1"),
        types.ModuleType("test_plugin"),
        {
            "benchmarks": [Quiz, Plain],
            "agents": [Thinker, Doer, Rewriter],
            "tools": [Pdb, View],
            "llms": [Parrot],
            "executors": [LocalExecutor],
        },
    )
    return plugins


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        path = tmp_path / "config.yaml"
        path.write_text(text)
        return str(path)

    return write


def refused(plugins: Plugins, source: str, *overrides: str, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        load(source, overrides, plugins=plugins, **options)
    text = str(caught.value)
    assert len(text.splitlines()) <= 2
    return text


def test_defaults_are_the_documented_ones() -> None:
    documented = """
    benchmark: {name: mini_nightmare, tasks: all, source: null, split: null, revision: null, mode: visible, path: null}
    env: {entrypoint: null, debug_entrypoint: null, python: null, run_timeout: 300, auto_eval_on_rewrite: false, end_on_resolved: null, allow_passing: false, twins: auto, ignore: [], readonly: [], allowed: []}
    tools: [view, listdir, rewrite, eval, {pdb: {timeout: 60, persistent_breakpoints: true, warm: true, rewind: false}}]
    terminal: {name: auto, image: null, network: none, memory: 4g, cpus: null, pids: 512, allow_unsandboxed: false, setup: []}
    agent: {name: debug_agent, max_steps: 50, max_rewrites: 10, memory_size: 20, reset_prompt_history_after_rewrite: false, system_prompt: null, rewrites_before_pdb: 5}
    llm: {name: gpt-4o, temperature: null, max_tokens: null}
    run: {output: exps, workers: 1, executor: local, repeats: 1, seed: 0, task_timeout: null, max_retries: 2, max_cost: null}
    llm_config_file_path: null
    """  # noqa: E501
    assert Config().model_dump(mode="json") == yaml.safe_load(documented)


def test_each_source_is_over_the_one_before(plugins: Plugins, write: Any) -> None:
    assert load("quiz", plugins=plugins).agent.max_steps == 20
    path = write("benchmark: {name: quiz}\nagent: {max_steps: 21}\n")
    assert load(path, plugins=plugins).agent.max_steps == 21
    path = write("benchmark: {name: quiz}\nagent: {max_steps: 21}\nthinker: {agent: {max_steps: 22}}\n")
    assert load(path, plugins=plugins).agent.max_steps == 22
    assert load(path, plugins=plugins, agent="debug_agent").agent.max_steps == 21
    assert load(path, ["agent.max_steps=23"], plugins=plugins).agent.max_steps == 23
    assert (
        load(path, ["agent.name=debug_agent", "agent.name=thinker"], agent="rewrite_agent", plugins=plugins).agent.name
        == "rewrite_agent"
    )
    config = load(
        path,
        ["llm.name=x", "terminal.name=y", "run.workers=5", "benchmark.tasks=z"],
        llm="human",
        terminal="auto",
        workers=6,
        tasks=["o*"],
        output=Path("out"),
        plugins=plugins,
    )
    assert (config.llm.name, config.terminal.name, config.run.workers) == ("human", "auto", 6)
    assert (config.benchmark.tasks, config.run.output) == (("o*",), Path("out"))


def test_what_the_benchmark_ships_is_below_the_file(plugins: Plugins, write: Any) -> None:
    config = load(write("benchmark: {name: quiz}\nenv: {python: python3.9}\n"), plugins=plugins)
    assert (config.env.run_timeout, config.env.python, config.agent.name) == (30, "python3.9", "thinker")
    assert load(write("env: {python: python3.9}\n"), plugins=plugins).env.run_timeout == 300
    assert load(write(""), ["benchmark.name=quiz"], plugins=plugins).env.run_timeout == 30
    path = write("agent: {name: thinker}\nthinker: {benchmark: {name: quiz}}\n")
    assert load(path, plugins=plugins).env.run_timeout == 30


def test_plugin_settings_are_part_of_its_section(plugins: Plugins) -> None:
    config = load("quiz", ["benchmark.level=3", "agent.depth=2"], plugins=plugins)
    assert config.benchmark.settings_for(Quiz)["level"] == 3
    assert config.agent.settings_for(Thinker) == {
        "max_steps": 20, "max_rewrites": 10, "memory_size": 33, "reset_prompt_history_after_rewrite": False,
        "system_prompt": None, "depth": 2.0,
    }  # fmt: skip
    assert "agent.depth: say a number (got" in refused(plugins, "quiz", "agent.depth=deep")


def test_the_plugins_default_holds_where_nobody_says_otherwise(plugins: Plugins) -> None:
    assert load("quiz", plugins=plugins).agent.memory_size == 33
    assert load("quiz", ["agent.memory_size=20"], plugins=plugins).agent.memory_size == 20


def test_task_of_a_benchmark(plugins: Plugins) -> None:
    assert load("quiz/one", plugins=plugins).benchmark.tasks == ("one",)


def test_minus_p_reaches_into_an_agents_section(plugins: Plugins, write: Any) -> None:
    path = write("rewrite_agent: {llm: {temperature: 0.5}}\n")
    overrides = ["rewrite_agent.llm.name=human"]
    assert load(path, overrides, plugins=plugins).llm.name == "gpt-4o"
    config = load(path, overrides, agent="rewrite_agent", plugins=plugins)
    assert (config.llm.name, config.llm.temperature) == ("human", 0.5)


def test_minus_p_reaches_into_the_list_of_tools(plugins: Plugins, write: Any) -> None:
    path = write("tools: [view, pdb]\n")
    assert load(path, ["tools.pdb.timeout=5"], plugins=plugins).tool_settings() == {"view": {}, "pdb": {"timeout": 5}}
    assert load(path, ["tools.0=pdb", "tools.1=view"], plugins=plugins).tools == ("pdb", "view")
    assert "tools lists no 'grep'; it lists view, pdb" in refused(plugins, path, "tools.grep.x=1")
    shipped = load("mini_nightmare", ["tools.pdb.timeout=5"], plugins=plugins).tool_settings()["pdb"]
    assert shipped == {"timeout": 5, "persistent_breakpoints": True, "warm": True, "rewind": False}


WORDS = st.text(st.characters(categories=["L", "N"], include_characters="_-"), min_size=1, max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@given(path=st.lists(WORDS, min_size=1, max_size=4), value=VALUES)
@examples(200)
def test_minus_p_takes_any_yaml_after_the_first_equals_sign(path: list[str], value: Any) -> None:
    text = yaml.safe_dump(value, default_flow_style=True, width=10**9)
    assert parse_override(f"{'.'.join(path)}={text}") == (tuple(path), value)


@given(
    path=st.lists(WORDS, min_size=1, max_size=4, unique=True), value=VALUES.filter(lambda v: not isinstance(v, dict))
)
@examples(100)
def test_what_was_set_is_there_and_knows_its_origin(path: list[str], value: Any) -> None:
    layer = Layer({"other": {"x": 1}})
    layer.set(tuple(path), value, "here")
    here: Any = layer.data
    for step in path:
        here = here[step]
    assert here == value
    assert layer.origin(path) == "here"
    assert layer.origin([*path, "below"]) == "here"


def test_equals_signs_belong_to_the_value(plugins: Plugins) -> None:
    assert (
        load("quiz", ["env.entrypoint=X=1 python -m pytest -k a=b"], plugins=plugins).env.entrypoint
        == "X=1 python -m pytest -k a=b"
    )


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("env.run_timeout", "say key.path=value"),
        ("=3", "say key.path=value"),
        ("env..x=3", "say key.path=value"),
        ("benchmark.tasks=*", "put the value in quotes"),
        ("benchmark.tasks=[a", "put the value in quotes"),
        ("env.run_timeout.x=3", "has no keys|unknown key|section|number"),
        ("env.run_timout=3", "-p env.run_timout: unknown key env.run_timout; did you mean 'run_timeout'?"),
        ("evn.run_timeout=3", "unknown key evn; did you mean 'env'?"),
        ("env.max_steps=3", "unknown key env.max_steps; did you mean agent.max_steps?"),
        ("agent.dept=3", "unknown key agent.dept; did you mean 'depth'?"),
        ("tools=[{pdb: {timout: 3}}]", "unknown key tools.pdb.timout; did you mean 'timeout'?"),
        ("tools=[veiw]", "unknown tool 'veiw'; did you mean 'view'?"),
        ("tools=[view, view]", "view is listed twice"),
        ("tools=view", "say a list of tools"),
        ("tools=5", "say a list of tools"),
        ("run.max_cost=.inf", "run.max_cost: say a finite number"),
        ("env.run_timeout=0", "env.run_timeout: say more than 0 (got 0)"),
        ("tools=[{pdb: 3}]", "an item is a name or"),
        ("agent.name=thinkr", "unknown agent 'thinkr'; did you mean 'thinker'?"),
        ("run.workers=0", "run.workers: say 1 or more (got 0)"),
        ("run.workers=true", "run.workers: say a whole number (got true)"),
        ("run.seed=-1", "run.seed"),
        ("env.python=3.99", "-p env.python: say a text (got 3.99)"),
        ("env.auto_eval_on_rewrite=3", "env.auto_eval_on_rewrite"),
        ("terminal.network=all", "terminal.network: say none or host"),
        ("terminal.memory=much", "terminal.memory: 'much' is no size; write it as in 512m or 4g"),
        ("benchmark.mode=hiden", "debug; did you mean 'hidden'? (got"),
        ("benchmark.mode=x", "benchmark.mode: say visible, hidden or debug (got"),
        ("benchmark.tasks=3", "say all, a task, a glob, or a list of them"),
        ("env=3", "env is a section with keys of its own"),
        ("agent=thinker", "write agent: {name: thinker}"),
        ("run.executor=ry", "unknown executor 'ry'"),
        ("thinker.agent.name=rewrite_agent", "the section of thinker cannot choose another agent"),
        ("thinker.env.run_timout=3", "unknown key thinker.env.run_timout; did you mean 'run_timeout'?"),
        ("rewrite_agent.env.run_timout=3", "unknown key rewrite_agent.env.run_timout; did you mean 'run_timeout'?"),
        ("rewrite_agent.run.workers=x", "rewrite_agent.run.workers: say a whole number"),
    ],
)
def test_wrong_values_are_answered(plugins: Plugins, override: str, words: str) -> None:
    import re

    text = refused(plugins, "quiz", override)
    assert words in text or re.search(words, text), text
    assert text.startswith("-p ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rewrite_agent.llm_name=human", "-p rewrite_agent.llm_name is now rewrite_agent.llm.name"),
        (
            "debug_5_agent.llm_name=human",
            "-p debug_5_agent.llm_name is now debug_5_agent.llm.name",
        ),  # not installed here
        ("debug_5_agent.terminal.base_image=x", "is now debug_5_agent.terminal.image"),
        ("rewrite_agent.terminal.base_image=x", "it is now rewrite_agent.terminal.image"),
        ("llm_name=human", "-p llm_name is now llm.name"),
        ("max_rewrite_steps=3", "is now agent.max_rewrites"),
        ("agent.max_rewrite_steps=3", "it is now agent.max_rewrites"),
        ("n_rewrites_before_pdb=5", "is now agent.rewrites_before_pdb"),
        ("output_path=x", "is now run.output"),
        ("problems=all", "is now benchmark.tasks"),
        ("dataset.type=aider", "-p dataset.type is now benchmark.name"),
        ("dataset.dataset_id=x", "-p dataset.dataset_id is now benchmark.source"),
        ("env_kwargs.run_on_rewrite=true", "-p env_kwargs.run_on_rewrite is now env.auto_eval_on_rewrite"),
        ("env_kwargs.run_timeout=3", "-p env_kwargs.run_timeout is now env.run_timeout"),
        ("env_kwargs.persistent_breakpoints=true", "is now a setting of the tool: `tools: [{pdb: {persistent"),
        ("env_kwargs.dir_tree_depth=1", "is gone: the agent says a depth"),
        ("env.run_on_rewrite=true", "it is now env.auto_eval_on_rewrite"),
        ("terminal.type=docker", "it is now terminal.name"),
        ("terminal.base_image=python", "it is now terminal.image"),
        ("terminal.setup_commands=[a]", "it is now terminal.setup"),
        ("random_seed=3", "is now run.seed"),
        ("save_patch=true", "is gone: patch.diff is always written"),
        ("log_file_path=x", "is gone: each task has its log.txt"),
        ("use_conversational_prompt=true", "is gone: an agent's prompts are templates"),
        ("show_current_frame=true", "is gone: pdb always shows the source"),
        ("auto_list=true", "is gone: pdb always shows the source"),
        ("base.llm_name=x", "-p base.llm_name is now llm.name"),
        ("persistent_breakpoints=true", "`tools: [{pdb: {persistent_breakpoints: true}}]`"),
    ],
)
def test_spellings_of_the_original_are_answered_with_the_new_ones(plugins: Plugins, text: str, words: str) -> None:
    assert words in refused(plugins, "quiz", text)


def test_a_config_of_the_original_is_answered_whole(plugins: Plugins, write: Any) -> None:
    path = write("base:\n  output_path: exps\n  save_patch: true\nrewrite_agent:\n  tools: [view]\n  llm_name: human\n")
    first, also = refused(plugins, path).splitlines()
    assert first == f"{path}:2: base.output_path is now run.output"
    assert also == "Also: base.save_patch is gone; rewrite_agent.llm_name is now rewrite_agent.llm.name"
    assert "the outermost level" in refused(plugins, write("base: {}\n"))


def test_spellings_of_ours_are_not_taken_for_old_ones(plugins: Plugins) -> None:
    ours = ["rewrite_agent.llm.name=human", "env.run_timeout=3", "benchmark.path=x", "run.seed=3", "agent.max_steps=1"]
    load("quiz", ours, plugins=plugins)


def test_an_agents_section_without_the_agent(plugins: Plugins) -> None:
    assert "debug-gym-agents" in refused(plugins, "quiz", "debug_5_agent.llm.name=human")


def test_files_of_the_original_that_are_shipped_now(plugins: Plugins) -> None:
    assert "debug-gym run aider" in refused(plugins, "scripts/config_aider.yaml")
    assert "debug-gym run" not in refused(plugins, "scripts/config_mine.yaml")


def test_errors_of_a_file_name_file_line_and_key(plugins: Plugins, write: Any) -> None:
    path = write("env:\n  python: x\n  run_timeout: soon\n")
    assert f'{path}:3: env.run_timeout: say a number (got "soon")' in refused(plugins, path)
    path = write("env:\n  python: x\n\n  run_timout: 3\nrun: {wokers: 3}\n")
    text = refused(plugins, path)
    assert text.startswith(f"{path}:4: unknown key env.run_timout; did you mean 'run_timeout'?")
    assert text.endswith("(and 1 more like it)")
    path = write("tools:\n- view\n- pdb:\n    timeout: 3\n    wram: 5\n")
    assert f"{path}:5: unknown key tools.pdb.wram; did you mean 'warm'?" in refused(plugins, path)
    path = write("agent: {name: nobody}\n")
    assert f"{path}:1: unknown agent 'nobody'" in refused(plugins, path)
    path = write("rewrite_agnt:\n  llm: {name: human}\n")
    assert f"{path}:1: unknown agent 'rewrite_agnt'; did you mean 'rewrite_agent'?" in refused(plugins, path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("env: {python: x\nrun: 3\n", ":2:4: "),
        ("env:\n\tpython: x\n", ":2:1: "),
        ("- a\n", "a config is a mapping of sections, this is a list"),
        ("env: {python: a, python: b}\n", ":1: env.python is there twice, first in line 1"),
        ("run: {1: 2}\n", ":1: a key must be a word"),
        ("on: {name: x}\n", "a key must be a word"),
        ("env: &a {python: *a}\n", "contains itself"),
        ("env: {python: \x07}\n", ":1:15: special characters are not allowed"),
        ("env: !!python/object:os.system {}\n", "could not determine a constructor"),
    ],
)
def test_broken_yaml_is_said_with_its_place(plugins: Plugins, write: Any, text: str, words: str) -> None:
    path = write(text)
    answer = refused(plugins, path)
    assert answer.startswith(path) and words in answer, answer


@given(text=st.text(st.characters(codec="utf-8"), max_size=60) | st.text("{}[]:,-&*!|>'\"%@`# \n\tab1", max_size=40))
@examples(300)
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        layer = read_text(text, "x.yaml")
    except UsageError as error:
        assert str(error).startswith("x.yaml")
    else:
        assert isinstance(layer.data, dict)


def test_not_utf8_and_missing_files_are_said(plugins: Plugins, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_bytes(b"env: {python: \xff}\n")
    assert "not UTF-8" in refused(plugins, str(tmp_path / "c.yaml"))
    assert "No such file" in refused(plugins, str(tmp_path / "missing.yaml"))
    assert "is a directory" in refused(plugins, str(tmp_path))
    assert "unknown benchmark 'quizz'; did you mean 'quiz'?" in refused(plugins, "quizz")


def test_relative_paths_start_at_the_file(plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    directory = tmp_path / "configs"
    directory.mkdir()
    (directory / "data.json").touch()
    (directory / "c.yaml").write_text(
        "benchmark: {name: quiz, path: ../repo, source: data.json, notes: hints.txt}\n"
        "env: {python: .venv/bin/python}\n"
        "agent: {system_prompt: prompt.jinja}\n"
        "run: {output: out}\n"
        "llm_config_file_path: ~/llm.yaml\n"
        "rewrite_agent: {run: {output: elsewhere}}\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(directory)
    config = load("c.yaml", plugins=plugins)
    assert config.benchmark.path == directory / "../repo"
    assert config.benchmark.source == str(directory / "data.json")
    assert config.benchmark.settings_for(Quiz)["notes"] == directory / "hints.txt"
    assert config.env.python == str(directory / ".venv/bin/python")
    assert config.agent.system_prompt == str(directory / "prompt.jinja")
    assert config.run.output == directory / "out"
    assert config.llm_config_file_path == home / "llm.yaml"
    assert load("c.yaml", agent="rewrite_agent", plugins=plugins).run.output == directory / "elsewhere"
    assert load("c.yaml", ["run.output=here"], plugins=plugins).run.output == Path("here")


def test_words_that_only_look_like_paths_stay(plugins: Plugins, write: Any) -> None:
    path = write(
        "benchmark: {name: quiz, source: org/data-set}\nenv: {python: python3.9}\nagent: {system_prompt: Fix it.}\n"
    )
    config = load(path, plugins=plugins)
    assert (config.benchmark.source, config.env.python) == ("org/data-set", "python3.9")
    assert config.agent.system_prompt == "Fix it."


def test_empty_sections_are_the_defaults(plugins: Plugins, write: Any) -> None:
    assert load(write("env:\nrun:\n"), plugins=plugins).env.run_timeout == 300


def test_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config().env.run_timeout = 3


def test_yaml_comes_back_as_the_same_config(plugins: Plugins, tmp_path: Path) -> None:
    config = load(
        "quiz",
        [
            "benchmark.level=2",
            "env.entrypoint='a: b # c'",
            "benchmark.tasks=[a, '*']",
            "tools=[view, {pdb: {timeout: 5}}]",
        ],
        plugins=plugins,
    )
    text = as_yaml(config, plugins)
    (tmp_path / "c.yaml").write_text(text)
    assert load(str(tmp_path / "c.yaml"), ["run.output=exps"], plugins=plugins) == config
    assert "level: 2 " in text and "# how hard it is" in text
    assert all(
        "#" in line
        for line in text.splitlines()
        if line.startswith("  ") and ": " in line and "- " not in line and "depth" not in line
    )


def test_the_kept_config_comes_back(plugins: Plugins) -> None:
    config = load("quiz", ["benchmark.level=2", "agent.depth=3"], plugins=plugins)
    assert from_data(config.model_dump(mode="json"), "run.json", plugins) == config
