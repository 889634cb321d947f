"""Which backend a model of llm.yaml has, by the tags of its entry, and what is said where there is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from model_entries import PICKY, models

from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.config.llm_yaml import Models, unknown
from debug_gym_core.errors import PluginError, RequirementError
from debug_gym_core.plugins import load_plugins

WIRE = Path(__file__).parent / "wire_plugin.py"


def test_a_backend_that_is_not_installed_is_named(tmp_path: Path, wire_plugins: Plugins) -> None:
    tags = ["fast, pdb", "azure openai", "anthropic"]  # pdb is what a tool is called whose plugin is turned off, too
    lines = [f"{name}: {{model: m, tags: [{text}]}}\n" for name, text in zip("abc", tags, strict=True)]
    found = models(tmp_path, "".join(lines))
    for name, package in (("a", "openai"), ("b", "azure-openai"), ("c", "anthropic")):
        # Where it is installed it is turned off by the variable of the fixture `wire_plugins`.
        with pytest.raises(RequirementError, match=rf"[ (]debug-gym-llm-{package}( |$)"):
            found.make(name, wire_plugins, {})


def test_a_backend_that_failed_is_named_and_no_other_is_sent_its_key(tmp_path: Path) -> None:
    (tmp_path / "birds.py").write_text('raise ImportError("no beak")\nname = "magpie"\n')
    plugins = load_plugins(files=[WIRE, tmp_path / "birds.py"])
    found = models(tmp_path, "mine: {model: m, tags: [Magpie]}\nother: {model: m, tags: [wire, magpie]}\n")
    cause = r"llm 'magpie': plugin file .*birds\.py failed: ImportError: no beak"
    with pytest.raises(PluginError, match=rf"llm\.yaml:1: mine: {cause}"):
        found.backend("mine", plugins)
    assert found.backend("other", plugins).name == "wire"
    for configured in (found, Models()):
        error = unknown("magpie", configured, plugins)
        assert isinstance(error, PluginError) and re.match(cause, str(error))


def test_a_plugin_that_failed_and_only_says_a_word_takes_no_tag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBUG_GYM_PLUGINS", "core")
    (tmp_path / "birds.py").write_text('raise ImportError("no beak")\ndef debug_gym_register_tools(): "chat"\n')
    found = models(tmp_path, "mine: {model: m, tags: [chat]}\n")
    with pytest.raises(RequirementError, match="llm 'openai'"):
        found.backend("mine", load_plugins(files=[tmp_path / "birds.py"]))


def test_a_backend_that_two_bring_is_said_with_its_distribution(tmp_path: Path) -> None:
    for name in ("crows.py", "rooks.py"):
        (tmp_path / name).write_text(PICKY.replace("picky", "caw"))
    plugins = load_plugins(files=[tmp_path / "crows.py", tmp_path / "rooks.py"])
    found = models(tmp_path, f"a: {{model: m, tags: [caw]}}\nb: {{model: m, tags: [caw, '{tmp_path}/rooks.py:caw']}}\n")
    with pytest.raises(PluginError, match=r"llm\.yaml:1: a: llm 'caw' is provided twice; say .*crows\.py:caw or .*"):
        found.backend("a", plugins)
    assert found.backend("b", plugins).brought_by == f"plugin file {tmp_path}/rooks.py"


def test_a_model_without_an_entry_names_the_nearest(tmp_path: Path, wire_plugins: Plugins) -> None:
    found = models(tmp_path, "gpt-4o: {model: m, tags: [wire]}\n")
    assert "has no entry 'gpt-4'; did you mean 'gpt-4o'?" in str(unknown("gpt-4", found, wire_plugins))
    assert "debug-gym llm init" in str(unknown("gpt-4o", Models(), wire_plugins))
