"""How a config that is wrong is answered: with its place, its key, and what was probably meant."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quiz_components import refused
from support import examples

from debug_gym_core.components import component
from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.components.component import Component
from debug_gym_core.config.layers import read_text
from debug_gym_core.config.loading import load
from debug_gym_core.errors import UsageError


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
        ("llm.api_key=abc", "-p llm.api_key: a key stands in the model's entry in llm.yaml only"),
        ("evn.run_timeout=3", "unknown key evn; did you mean 'env'?"),
        ("env.max_steps=3", "unknown key env.max_steps; did you mean agent.max_steps?"),
        ("agent.dept=3", "unknown key agent.dept; did you mean 'depth'?"),
        ("tools=[{pdb: {timout: 3}}]", "unknown key tools.pdb.timout; did you mean 'timeout'?"),
        ("tools=[veiw]", "unknown tool 'veiw'; did you mean 'view'?"),
        ("tools=[view, view]", "view is listed twice"),
        ("tools=view", "say a list of tools"),
        ("tools=5", "say a list of tools"),
        ("run.max_cost=.inf", "run.max_cost: say a finite number"),
        ("env.ignore=['[']", "env.ignore: '[' is not a pattern as .gitignore has them"),
        ("env.run_timeout=0", "env.run_timeout: say more than 0 (got 0)"),
        ("tools=[{pdb: 3}]", "an item is a name or"),
        ("agent.name=", "-p agent.name: say a text (got null)"),
        ("agent={name: 3}", "agent.name: say a text (got 3)"),
        ("agent.name=thinkr", "unknown agent 'thinkr'; did you mean 'thinker'?"),
        ("tools=[{1: 2}]", "-p tools:1: a key must be a word; put it in quotes: '1'"),
        ("debug_agent={1: 2}", "a key must be a word"),
        ("env={run_timeout: 1, run_timeout: 2}", "env.run_timeout is there twice"),
        ("env.run_timeout=10000000000", "env.run_timeout: say 1e+08 or less (got 10000000000)"),
        ("run.repeats=3000000", "run.repeats: say 10000 or less (got 3000000)"),
        ("run.workers=0", "run.workers: say 1 or more (got 0)"),
        ("run.workers=true", "run.workers: say a whole number (got true)"),
        ("run.seed=-1", "run.seed"),
        ("env.python=3.99", "-p env.python: say a text (got 3.99)"),
        ("env.auto_eval_on_rewrite=3", "env.auto_eval_on_rewrite"),
        ("terminal.network=all", "terminal.network: say none or host"),
        ("terminal.memory=much", "terminal.memory: 'much' is no size; write it as in 512m or 4g"),
        ("benchmark.mode=hiden", "debug; did you mean 'hidden'? (got"),
        ("benchmark.split=x", "-p benchmark.split: quiz has none; leave it out (got"),
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
def test_wrong_values_are_answered(quiz_plugins: Plugins, override: str, words: str) -> None:
    import re

    text = refused(quiz_plugins, "quiz", override)
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
        ("base.benchmark=aider", "-p base.benchmark is now benchmark.name"),
        ("persistent_breakpoints=true", "`tools: [{pdb: {persistent_breakpoints: true}}]`"),
    ],
)
def test_spellings_of_the_original_are_answered_with_the_new_ones(quiz_plugins: Plugins, text: str, words: str) -> None:
    assert words in refused(quiz_plugins, "quiz", text)


def test_a_config_of_the_original_is_answered_whole(quiz_plugins: Plugins, write_config: Any) -> None:
    path = write_config(
        "base:\n  output_path: exps\n  save_patch: true\nrewrite_agent:\n  tools: [view]\n  llm_name: human\n"
    )
    first, also = refused(quiz_plugins, path).splitlines()
    assert first == f"{path}:2: base.output_path is now run.output"
    assert also == "Also: base.save_patch is gone; rewrite_agent.llm_name is now rewrite_agent.llm.name"
    assert "the outermost level" in refused(quiz_plugins, write_config("base: {}\n"))


def test_spellings_of_ours_are_not_taken_for_old_ones(quiz_plugins: Plugins) -> None:
    ours = ["rewrite_agent.llm.name=human", "env.run_timeout=3", "benchmark.path=x", "run.seed=3", "agent.max_steps=1"]
    load("quiz", ours, plugins=quiz_plugins)


def test_an_agents_section_without_the_agent(quiz_plugins: Plugins) -> None:
    assert "debug-gym-agents" in refused(quiz_plugins, "quiz", "debug_5_agent.llm.name=human")


def test_files_of_the_original_that_are_shipped_now(quiz_plugins: Plugins) -> None:
    assert "debug-gym run aider" in refused(quiz_plugins, "scripts/config_aider.yaml")
    assert "debug-gym run" not in refused(quiz_plugins, "scripts/config_mine.yaml")


def test_errors_of_a_file_name_file_line_and_key(quiz_plugins: Plugins, write_config: Any) -> None:
    path = write_config("env:\n  python: x\n  run_timeout: soon\n")
    assert f'{path}:3: env.run_timeout: say a number (got "soon")' in refused(quiz_plugins, path)
    path = write_config("env:\n  python: x\n\n  run_timout: 3\nrun: {wokers: 3}\n")
    text = refused(quiz_plugins, path)
    assert text.startswith(f"{path}:4: unknown key env.run_timout; did you mean 'run_timeout'?")
    assert text.endswith(f"\nAlso: {path}:5: unknown key run.wokers; did you mean 'workers'?")
    path = write_config(f"run: {{{', '.join(f'x{number}: 1' for number in range(9))}}}\n")
    assert refused(quiz_plugins, path).endswith("; and 5 more")
    path = write_config("tools:\n- view\n- pdb:\n    timeout: 3\n    wram: 5\n")
    assert f"{path}:5: unknown key tools.pdb.wram; did you mean 'warm'?" in refused(quiz_plugins, path)
    path = write_config("agent: {name: nobody}\n")
    assert f"{path}:1: unknown agent 'nobody'" in refused(quiz_plugins, path)
    path = write_config("rewrite_agnt:\n  llm: {name: human}\n")
    assert f"{path}:1: unknown agent 'rewrite_agnt'; did you mean 'rewrite_agent'?" in refused(quiz_plugins, path)


def test_a_list_has_no_keys(quiz_plugins: Plugins, write_config: Any) -> None:
    path = write_config("agent: {name: thinker}\nenv: {ignore: [a]}\n")
    said = "env.ignore has no item 'a', it has 1, counted from 0; or say the whole list"
    assert refused(quiz_plugins, path, "env.ignore.a=1") == f"-p env.ignore.a: {said}"
    said = 'thinker.env.ignore: say a list (got {"a": 1})'
    assert refused(quiz_plugins, path, "thinker.env.ignore.a=1") == f"-p thinker.env.ignore.a: {said}"


@pytest.mark.parametrize("where", ["", "thinker."])
@pytest.mark.parametrize("below", ["pids: 100", "cpus: null"])
def test_a_setting_below_a_value_is_told_where_it_was_said(
    quiz_plugins: Plugins, write_config: Any, below: str, where: str
) -> None:
    path = write_config(f"agent: {{name: thinker}}\nterminal:\n  {below}\n")
    assert refused(quiz_plugins, path, f"{where}terminal.cpus.x=1").startswith(f"-p {where}terminal.cpus.x: ")
    if where:
        path = write_config("agent: {name: thinker}\nterminal: {cpus: 2}\n")
        assert refused(quiz_plugins, path, f"{where}terminal.cpus.x=1").startswith(f"-p {where}terminal.cpus.x: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("env: {python: x\nrun: 3\n", ":2:4: "),
        ("env:\n\tpython: x\n", ":2:1: "),
        ("- a\n", "a config is a mapping of sections, this is a list"),
        ("OPENAI_API_KEY=sk-secret\n", "a config is a mapping of sections, this is one text"),
        ("env: {python: a, python: b}\n", ":1: env.python is there twice, first in line 1"),
        ("run: {1: 2}\n", ":1: a key must be a word"),
        ("on: {name: x}\n", "a key must be a word"),
        ("env: &a {python: *a}\n", "contains itself"),
        ("env: {python: \x07}\n", ":1:15: special characters are not allowed"),
        ("env: !!python/object:os.system {}\n", ":1:6: a tag (!...) has no meaning here; put a text"),
        (
            "env: {}\n---\nrun: {}\n",
            ":2:1: a second document begins here; there may be only one; take out",
        ),
        ("env: {python: a}\n...\nrun: {}\n", ":3:1: what is before this is whole already"),
        ("env: {python: *}\n", ":1:16: * names an anchor, and there is none of this name; put a text that begins"),
        ("env:\n\tpython: a\n", ":2:1: no tab can stand here; write blanks"),
        ("env:\n  python:\ta\n", ":2:10: no tab can stand here; write blanks"),
        ('env:\n  entrypoint: "python" -m pytest\n', ":2:24: the value before this has ended; put a text of both"),
        ('env: {python: !!int ""}\n', ":1:15: this cannot be read as int"),
        ("env: {python: @a}\n", ":1:15: no text begins with this character; put the text in quotes"),
        ('env: {python: "\\q"}\n', ": no text in double quotes has this escape"),
        ("tools:\n  [view, eval\n", ":2:3: a list in [ ] has no end, or lacks a comma; write [one, other]"),
        ("env: {python: a\n", ":1:6: a mapping in { } has no end, or lacks a comma"),
        ("env: python: a\n", ":1:12: no value can begin with this colon"),
        ("env: {}\nrun\n", ":2:1: a key has no colon behind it; write key: value"),
        ("env:\n  python: a\n ignore: []\n", ":3:2: this is indented unlike what it belongs to"),
        ("env: {python: !!timestamp 2024-13-45}\n", ":1:15: this cannot be read as timestamp"),
        (f"env: {{run_timeout: {'9' * 5000}}}\n", ":1:20: this cannot be read as int"),
    ],
)
def test_broken_yaml_is_said_with_its_place(quiz_plugins: Plugins, write_config: Any, text: str, words: str) -> None:
    path = write_config(text)
    answer = refused(quiz_plugins, path)
    assert answer.startswith(path) and words in answer, answer


def test_a_date_is_a_text(quiz_plugins: Plugins, write_config: Any) -> None:
    path = write_config("env: {python: 2024-13-45}\nbenchmark: {revision: 2024-01-02}\n")
    config = load(path, plugins=quiz_plugins)
    assert (config.env.python, config.benchmark.revision) == ("2024-13-45", "2024-01-02")


KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{KEY}\n", "this is one text"),
        (f"- {KEY}\n", "this is a list"),
        (f"me: {{api_key: *{KEY}}}\n", ":1:15: * names an anchor, and there is none of this name"),
        (f"me: {{api_key: !{KEY} x}}\n", ":1:15: a tag (!...) has no meaning here; put a text that begins with !"),
        (f"me: {{api_key: !{KEY}!x y}}\n", ":1:15: a tag (!...) has no meaning here"),
        (f"me: [&{KEY} a, &{KEY} b]\n", ":1:30: two anchors (&...) have one name"),
        *[
            (f"me: {{api_key: !!{kind} {KEY}}}\n", f":1:15: this cannot be read as {kind}")
            for kind in ("int", "bool", "timestamp")
        ],
        (f"me:\n  api_key: '{KEY}\n", ":2:12: a text in quotes has no end"),
        (f"me: {{a:{KEY}, a:{KEY}}}\n", ":1: me.a:*** is there twice"),
        ("me: {1234567890: x}\n", ":1: a key must be a word; put it in quotes: a text"),
        (
            f"benchmark: {{name: quiz}}\nllm: {KEY}\n",
            ":2: llm is a section with keys of its own; write llm: {name: NAME}",
        ),
        (
            "benchmark: {name: quiz}\nllm: gpt-4o\n",
            ":2: llm is a section with keys of its own; write llm: {name: gpt-4o}",
        ),
        (f"benchmark: {{name: quiz}}\nllm: {{name: [{KEY}]}}\n", ":2: llm.name: say a text"),
        (f"benchmark: {{name: quiz}}\nllm: {{api_key:{KEY}}}\n", "unknown key llm.api_key:***"),
        (f"benchmark: {{name: quiz}}\nllm: {{{KEY}}}\n", "unknown key llm.***"),
        ("benchmark: {name: quiz}\nrun: {workers: several of them}\n", '(got "several of them")'),
    ],
)
def test_no_error_repeats_what_may_be_a_key(quiz_plugins: Plugins, write_config: Any, text: str, words: str) -> None:
    path = write_config(text)
    with pytest.raises(UsageError) as caught:
        load(path, plugins=quiz_plugins)
    assert str(caught.value).startswith(path) and words in str(caught.value), str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value))  # which `-vv` shows


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (f"llm.api_key:{KEY}", "-p llm.api_key:***: say key.path=value"),
        (KEY, "-p ***: say key.path=value"),
        (
            f"llm.api_key=*{KEY}",
            "-p llm.api_key: * names an anchor, and there is none of this name; put",
        ),
        (f"llm.temperature={KEY}", "-p llm.temperature: say a number"),
        ("llm.temperature=hot", '-p llm.temperature: say a number (got "hot")'),
    ],
)
def test_no_error_of_an_option_repeats_what_may_be_a_key(quiz_plugins: Plugins, option: str, words: str) -> None:
    said = refused(quiz_plugins, "quiz", option)
    assert said.startswith(words) and KEY not in said


@pytest.mark.parametrize(
    "setting",
    [
        "endpoint: 'http://u:pw@127.0.0.1/v1'",
        "endpoint: 'http://127.0.0.1/v1?api-key=pw'",
        "generate_kwargs: {extra_headers: {Authorization: Bearer x}}",
        "generate_kwargs: {extra_query: {api-key: x}}",
        "generate_kwargs: {api_key: x}",
        "generate_kwargs: {extra_body: {accessToken: x}}",
    ],
)
def test_a_config_is_no_place_for_a_secret(quiz_plugins: Plugins, write_config: Any, setting: str) -> None:
    path = write_config(f"llm:\n  name: mine\n  {setting}\n")
    answer = refused(quiz_plugins, path)
    assert (
        "holds what may be secret, which the run's record would show; put it into the model's entry in llm.yaml"
        in answer
    )
    assert answer.startswith(f"{path}:3: llm.") and "pw" not in answer
    assert answer.endswith("; a query is generate_kwargs: {extra_query: {name: value}}") is ("?" in setting)


class Server(pydantic.BaseModel):
    url: int = pydantic.Field(repr=False)


class Addressed(component.Settings):
    endpoint: int = pydantic.Field(0, repr=False)


class Lying(Component):
    name = "lying"

    class Settings(Addressed):
        endpoint: int = 1
        base: int = pydantic.Field(0, repr=False, alias="base-url")
        either: int = pydantic.Field(0, repr=False, validation_alias=pydantic.AliasChoices("one", "other"))
        deep: int = pydantic.Field(0, repr=False, validation_alias=pydantic.AliasPath("below", "here"))
        server: Server | None = None
        several: tuple[Server, ...] = ()
        named: dict[str, Server | int] = pydantic.Field(default_factory=dict)
        addresses: list[int] = pydantic.Field(default=[], repr=False)
        where: int = pydantic.Field(0, repr=False)
        port: int = 0


def test_a_value_that_settings_do_not_show_is_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        Lying(addresses=[1, "pw"], where="pw", port="no")
    said = "addresses.1: say a whole number; where: say a whole number; port: say a whole number (got 'no')"
    assert str(caught.value) == f"lying: {said}"


@pytest.mark.parametrize(
    "given",
    [
        {"endpoint": "pw"},
        {"base-url": "pw"},
        {"one": "pw"},
        {"other": "pw"},
        {"below": {"here": "pw"}},
        {"server": {"url": "pw"}},
        {"several": [{"url": 1}, {"url": "pw"}]},
        {"named": {"here": {"url": "pw"}}},
    ],
)
def test_a_value_is_hidden_below_any_type_by_any_name_and_by_the_base(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        Lying(**given)
    assert "say a whole number" in str(caught.value) and "pw" not in str(caught.value)


@pytest.mark.parametrize("setting", ["endpoint: 'http://[::1'", "generate_kwargs: {extra_headers: {X-Monkey: x}}"])
def test_what_is_no_secret_is_taken_for_none(quiz_plugins: Plugins, write_config: Any, setting: str) -> None:
    load(write_config(f"llm:\n  name: mine\n  {setting}\n"), plugins=quiz_plugins)


@given(text=st.text(st.characters(codec="utf-8"), max_size=60) | st.text("{}[]:,-&*!|>'\"%@`# \n\tab1", max_size=40))
@examples(300)
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        layer = read_text(text, "x.yaml")
    except UsageError as error:
        assert str(error).startswith("x.yaml")
    else:
        assert isinstance(layer.data, dict)


def test_not_utf8_and_missing_files_are_said(quiz_plugins: Plugins, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_bytes(b"env: {python: \xff}\n")
    assert "not UTF-8" in refused(quiz_plugins, str(tmp_path / "c.yaml"))
    assert "No such file" in refused(quiz_plugins, str(tmp_path / "missing.yaml"))
    assert "is a directory" in refused(quiz_plugins, str(tmp_path))
    (tmp_path / "my répo").mkdir()
    assert f": repo -p 'benchmark.path={tmp_path}/my répo'" in refused(quiz_plugins, str(tmp_path / "my répo"))
    (tmp_path / "run.json").touch()
    assert "for a repository of your own" in refused(quiz_plugins, str(tmp_path))
    (tmp_path / "results.jsonl").touch()
    assert f"to go on with it: debug-gym run --resume {tmp_path}" in refused(quiz_plugins, str(tmp_path))
    assert "unknown benchmark 'quizz'; did you mean 'quiz'?" in refused(quiz_plugins, "quizz")
