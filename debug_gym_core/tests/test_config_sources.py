"""Where a config's values come from (defaults, benchmarks, files, sections of agents, -p), and how it is written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from quiz_components import Quiz, Thinker, refused
from support import examples

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.layers import Layer, parse_override, read_file
from debug_gym_core.config.loading import from_data, load
from debug_gym_core.config.model import Config
from debug_gym_core.config.text import as_yaml
from debug_gym_core.config.yaml_types import dumped
from debug_gym_core.errors import UsageError


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


def test_each_source_is_over_the_one_before(quiz_plugins: Plugins, write_config: Any) -> None:
    assert load("quiz", plugins=quiz_plugins).agent.max_steps == 20
    path = write_config("benchmark: {name: quiz}\nagent: {max_steps: 21}\n")
    assert load(path, plugins=quiz_plugins).agent.max_steps == 21
    path = write_config("benchmark: {name: quiz}\nagent: {max_steps: 21}\nthinker: {agent: {max_steps: 22}}\n")
    assert load(path, plugins=quiz_plugins).agent.max_steps == 22
    assert load(path, plugins=quiz_plugins, agent="debug_agent").agent.max_steps == 21
    assert load(path, ["agent.max_steps=23"], plugins=quiz_plugins).agent.max_steps == 23
    assert (
        load(
            path, ["agent.name=debug_agent", "agent.name=thinker"], agent="rewrite_agent", plugins=quiz_plugins
        ).agent.name
        == "rewrite_agent"
    )
    assert load("quiz", ["agent={name: rewrite_agent}"], plugins=quiz_plugins).agent.name == "rewrite_agent"
    config = load(
        path,
        ["llm.name=x", "terminal.name=y", "run.workers=5", "benchmark.tasks=z"],
        llm="human",
        terminal="auto",
        workers=6,
        tasks=["o*"],
        output=Path("out"),
        plugins=quiz_plugins,
    )
    assert (config.llm.name, config.terminal.name, config.run.workers) == ("human", "auto", 6)
    assert (config.benchmark.tasks, config.run.output) == (("o*",), Path("out"))


def test_what_the_benchmark_ships_is_below_the_file(quiz_plugins: Plugins, write_config: Any) -> None:
    config = load(write_config("benchmark: {name: quiz}\nenv: {python: python3.9}\n"), plugins=quiz_plugins)
    assert (config.env.run_timeout, config.env.python, config.agent.name) == (30, "python3.9", "thinker")
    assert load(write_config("env: {python: python3.9}\n"), plugins=quiz_plugins).env.run_timeout == 300
    assert load(write_config(""), ["benchmark.name=quiz"], plugins=quiz_plugins).env.run_timeout == 30
    path = write_config("agent: {name: thinker}\nthinker: {benchmark: {name: quiz}}\n")
    assert load(path, plugins=quiz_plugins).env.run_timeout == 30


def test_plugin_settings_are_part_of_its_section(quiz_plugins: Plugins) -> None:
    config = load("quiz", ["benchmark.level=3", "agent.depth=2"], plugins=quiz_plugins)
    assert config.benchmark.settings_for(Quiz)["level"] == 3
    assert config.agent.settings_for(Thinker) == {
        "max_steps": 20, "max_rewrites": 10, "memory_size": 33, "reset_prompt_history_after_rewrite": False,
        "system_prompt": None, "depth": 2.0,
    }  # fmt: skip
    assert "agent.depth: say a number (got" in refused(quiz_plugins, "quiz", "agent.depth=deep")


def test_the_plugins_default_holds_where_nobody_says_otherwise(quiz_plugins: Plugins) -> None:
    assert load("quiz", plugins=quiz_plugins).agent.memory_size == 33
    assert load("quiz", ["agent.memory_size=20"], plugins=quiz_plugins).agent.memory_size == 20


def test_task_of_a_benchmark(quiz_plugins: Plugins) -> None:
    assert load("quiz/one", plugins=quiz_plugins).benchmark.tasks == ("one",)


def test_minus_p_reaches_into_an_agents_section(quiz_plugins: Plugins, write_config: Any) -> None:
    path = write_config("rewrite_agent: {llm: {temperature: 0.5}}\n")
    overrides = ["rewrite_agent.llm.name=human"]
    assert load(path, overrides, plugins=quiz_plugins).llm.name == "gpt-4o"
    config = load(path, overrides, agent="rewrite_agent", plugins=quiz_plugins)
    assert (config.llm.name, config.llm.temperature) == ("human", 0.5)
    whole = load(path, ["rewrite_agent={llm: {name: human}}"], agent="rewrite_agent", plugins=quiz_plugins)
    assert (whole.llm.name, whole.llm.temperature) == ("human", 0.5)
    assert load(path, ["rewrite_agent=null"], agent="rewrite_agent", plugins=quiz_plugins).llm.temperature == 0.5
    assert "rewrite_agent is an agent's section, with keys" in refused(quiz_plugins, path, "rewrite_agent=5")


def test_the_section_of_an_agent_that_does_not_play_is_checked_for_what_is_wrong_whoever_plays(
    quiz_plugins: Plugins, write_config: Any
) -> None:
    path = write_config("tools: [view, nosuch]\nthinker: {tools: [view]}\nrewrite_agent: {agent: {max_steps: 5}}\n")
    assert load(path, agent="thinker", plugins=quiz_plugins).tools == ("view",)
    with pytest.raises(UsageError, match="unknown tool 'nosuch'"):
        load(path, agent="rewrite_agent", plugins=quiz_plugins)
    for section, error in [
        ("agent: {depth: 2}", None),
        ("agent: {depth: deep}", r":1: rewrite_agent\.agent\.depth: say a number"),
        ("agent: {max_steps: many}", r":1: rewrite_agent\.agent\.max_steps: say a whole number"),
        ("agent: {depht: 2}", r":1: unknown key rewrite_agent\.agent\.depht; did you mean 'depth'\?"),
        ("benchmark: {level: 2}", None),
        ("benchmark: {level: deep}", r":1: rewrite_agent\.benchmark\.level: "),
        (
            "benchmark: {name: quiz, levle: 2}",
            r":1: unknown key rewrite_agent\.benchmark\.levle; did you mean 'level'\?",
        ),
        ("tools: [nosuch]", r":1: unknown tool 'nosuch'"),
        ("llm: {api_key: of-mine-4711}", r":1: rewrite_agent\.llm\.api_key: a key stands in the model's entry"),
        ("env: {run_timout: 3}", r":1: unknown key rewrite_agent\.env\.run_timout; did you mean 'run_timeout'\?"),
    ]:
        path = write_config(f"rewrite_agent: {{{section}}}\n")
        if error is None:
            load(path, agent="thinker", plugins=quiz_plugins)
            continue
        with pytest.raises(UsageError, match=error):
            load(path, agent="thinker", plugins=quiz_plugins)


def test_the_section_of_an_agent_holds_where_it_plays(quiz_plugins: Plugins, write_config: Any) -> None:
    path = write_config("""\
tools: [view, pdb]
debug_agent: {tools: {pdb: {timeout: 5}}}
thinker: {tools: [view], agent: {depth: 2}}
rewrite_agent: {benchmark: {level: 2}}
""")
    quiz = "benchmark.name=quiz"
    config = load(path, [quiz], agent="thinker", plugins=quiz_plugins)
    assert (config.agent.name, config.tools, config.agent.settings_for(Thinker)["depth"]) == ("thinker", ("view",), 2)
    assert load(path, [quiz], agent="debug_agent", plugins=quiz_plugins).tool_settings()["pdb"]["timeout"] == 5
    option = "debug_agent.tools.pdb.timeout={}"
    assert load(path, [quiz, option.format(6)], agent="thinker", plugins=quiz_plugins).tools == ("view",)
    assert load(path, [quiz, "tools=[view]"], agent="rewrite_agent", plugins=quiz_plugins).tools == ("view",)
    for player in "thinker", "debug_agent":
        with pytest.raises(UsageError, match=r"-p debug_agent\.tools\.pdb\.timeout: say a number"):
            load(path, [quiz, option.format("soon")], agent=player, plugins=quiz_plugins)


def test_minus_p_reaches_into_the_list_of_tools(quiz_plugins: Plugins, write_config: Any) -> None:
    path = write_config("tools: [view, pdb]\n")
    assert load(path, ["tools.pdb.timeout=5"], plugins=quiz_plugins).tool_settings() == {
        "view": {},
        "pdb": {"timeout": 5},
    }
    assert load(path, ["tools.0=pdb", "tools.1=view"], plugins=quiz_plugins).tools == ("pdb", "view")
    assert load(path, ["tools.pdb={}"], plugins=quiz_plugins).tools == ("view", "pdb")
    mapping = load(path, ["tools={pdb: {timeout: 5}, view: null}"], plugins=quiz_plugins)
    assert mapping.tools == ({"pdb": {"timeout": 5}}, "view")
    with pytest.raises(UsageError, match=r"tools\.pdb is 5, it has no keys of its own"):
        load(path, ["tools=[{pdb: 5}]", "tools.pdb.timeout=4"], plugins=quiz_plugins)
    assert "tools lists no 'grep'; it lists view, pdb" in refused(quiz_plugins, path, "tools.grep.x=1")
    shipped = load("mini_nightmare", ["tools.pdb.timeout=5"], plugins=quiz_plugins).tool_settings()["pdb"]
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
    assert parse_override(f"{'.'.join(path)}={dumped(value)}") == (tuple(path), value, f"-p {'.'.join(path)}")


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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("1e-3", 0.001), ("1e2", 100.0), ("1.5e2", 150.0), ("-2E+1", -20.0), ("+.5", 0.5), ("1.", 1.0)],
        *[("010", 10), ("-007", -7), ("0o17", 15), ("0x1F", 31), ("0b11", 3), ("128_000", 128_000), ("0", 0)],
        *[("-.inf", float("-inf")), ("!!float 2", 2.0), ("!!int 010", 10)],
        *[("12:30", "12:30"), ("1:30.5", "1:30.5"), ("1e", "1e"), ("e3", "e3"), (".", "."), ("1.2.3", "1.2.3")],
        *[("'1e-3'", "1e-3"), ("on", True), ("no", False), ("~", None)],
    ],
)
def test_numbers_are_those_of_yaml_1_2(text: str, value: Any, write_config: Any) -> None:
    for read in parse_override(f"x={text}").value, read_file(Path(write_config(f"x: {text}\n"))).data["x"]:
        assert (type(read), read) == (type(value), value)
    shown = dumped(value)
    assert parse_override(f"x={shown}").value == value and yaml.safe_load(dumped(str(text))) == str(text)


def test_numbers_with_an_exponent_are_settings(quiz_plugins: Plugins) -> None:
    config = load("quiz", ["run.max_cost=1e-3", "env.run_timeout=1.5e2", "run.seed=010"], plugins=quiz_plugins)
    assert (config.run.max_cost, config.env.run_timeout, config.run.seed) == (0.001, 150, 10)
    assert from_data(config.model_dump(mode="json"), "run.json", quiz_plugins) == config


@pytest.mark.parametrize("word", ["1e-3", "12:30", "010", "1_0", "7e12", "-.5"])
def test_a_text_that_looks_like_a_number_is_shown_as_a_text(word: str, quiz_plugins: Plugins, tmp_path: Path) -> None:
    config = load("quiz", [f"env.python='{word}'", "tools=[view]"], plugins=quiz_plugins)
    (tmp_path / "c.yaml").write_text(as_yaml(config, quiz_plugins))
    assert load(str(tmp_path / "c.yaml"), ["run.output=exps"], plugins=quiz_plugins).env.python == word


def test_a_key_that_is_a_number_is_refused_and_one_with_a_colon_is_a_word(write_config: Any) -> None:
    assert read_file(Path(write_config("12:30: x\n'1e3': y\n"))).data == {"12:30": "x", "1e3": "y"}
    with pytest.raises(UsageError, match="a key must be a word; put it in quotes: '1e3'"):
        read_file(Path(write_config("1e3: x\n")))


def test_equals_signs_belong_to_the_value(quiz_plugins: Plugins) -> None:
    assert (
        load("quiz", ["env.entrypoint=X=1 python -m pytest -k a=b"], plugins=quiz_plugins).env.entrypoint
        == "X=1 python -m pytest -k a=b"
    )


def test_relative_paths_start_at_the_file(
    quiz_plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    directory = tmp_path / "configs"
    directory.mkdir()
    (directory / "data.json").touch()
    python = tmp_path / "venv/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (directory / "c.yaml").write_text(
        "benchmark: {name: quiz, path: ../repo, source: data.json, notes: hints.txt}\n"
        "env: {python: ../venv/bin/python}\n"
        "agent: {system_prompt: prompt.jinja}\n"
        "run: {output: out}\n"
        "llm_config_file_path: ~/llm.yaml\n"
        "rewrite_agent: {run: {output: elsewhere}}\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(directory)
    config = load("c.yaml", plugins=quiz_plugins)
    assert config.benchmark.path == directory.parent / "repo"
    assert config.benchmark.source == str(directory / "data.json")
    assert config.benchmark.settings_for(Quiz)["notes"] == directory / "hints.txt"
    assert config.env.python == str(python)
    assert config.agent.system_prompt == str(directory / "prompt.jinja")
    assert config.run.output == directory / "out"
    assert config.llm_config_file_path == home / "llm.yaml"
    assert load("c.yaml", agent="rewrite_agent", plugins=quiz_plugins).run.output == directory / "elsewhere"
    assert load("c.yaml", ["run.output=here"], plugins=quiz_plugins).run.output == Path("here")


def test_words_that_only_look_like_paths_stay(quiz_plugins: Plugins, write_config: Any) -> None:
    path = write_config(
        "benchmark: {name: quiz, source: org/data-set}\nenv: {python: python3.9}\nagent: {system_prompt: Fix it.}\n"
    )
    config = load(path, plugins=quiz_plugins)
    assert (config.benchmark.source, config.env.python) == ("org/data-set", "python3.9")
    assert config.agent.system_prompt == "Fix it."


def test_empty_sections_are_the_defaults(quiz_plugins: Plugins, write_config: Any) -> None:
    assert load(write_config("env:\nrun:\n"), plugins=quiz_plugins).env.run_timeout == 300


def test_an_empty_mapping_is_all_defaults_and_an_empty_file_a_mistake(quiz_plugins: Plugins, write_config: Any) -> None:
    path = write_config("{}  # see the docs\n")
    assert load(path, plugins=quiz_plugins) == load("mini_nightmare", plugins=quiz_plugins)
    for text in ("# benchmark: {name: quiz}\n", "---\n# later\n...\n"):
        path = write_config(text)
        with pytest.raises(UsageError, match=r"config\.yaml is empty; `\{\}` means all defaults"):
            load(path, plugins=quiz_plugins)
    assert load(path, ["benchmark.name=quiz"], plugins=quiz_plugins).benchmark.name == "quiz"


def test_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config().env.run_timeout = 3


def test_yaml_comes_back_as_the_same_config(quiz_plugins: Plugins, tmp_path: Path) -> None:
    config = load(
        "quiz",
        [
            "benchmark.level=2",
            "env.entrypoint='a: b # c'",
            "benchmark.tasks=[a, '*']",
            "tools=[view, {pdb: {timeout: 5}}]",
        ],
        plugins=quiz_plugins,
    )
    text = as_yaml(config, quiz_plugins)
    (tmp_path / "c.yaml").write_text(text)
    assert load(str(tmp_path / "c.yaml"), ["run.output=exps"], plugins=quiz_plugins) == config
    assert "level: 2 " in text and "# how hard it is" in text
    assert all(
        "#" in line
        for line in text.splitlines()
        if line.startswith("  ") and ": " in line and "- " not in line and "depth" not in line
    )


def test_the_kept_config_comes_back(quiz_plugins: Plugins) -> None:
    config = load("quiz", ["benchmark.level=2", "agent.depth=3"], plugins=quiz_plugins)
    assert from_data(config.model_dump(mode="json"), "run.json", quiz_plugins) == config
