"""What may be loaded when: names of modules, not milliseconds."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

import pytest

HEAVY = {
    "gymnasium",
    "numpy",
    "pydantic",
    "pluggy",
    "rich",
    "docker",
    "openai",
    "anthropic",
    "pandas",
    "pytest",
    "prompt_toolkit",
    "yaml",
}
SDKS = (HEAVY | {"requests", "pexpect"}) - {"pluggy", "pydantic", "rich", "yaml"}


def modules_after(code: str) -> set[str]:
    """Top-level modules and those of ours that a fresh interpreter has loaded after some code."""
    report = "import json, sys; json.dump(sorted(sys.modules), open(sys.argv[-1], 'w'))"
    script = f"import sys\ntry:\n {code}\nexcept SystemExit: pass\n{report}"
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        subprocess.run([sys.executable, "-c", script, file.name], check=True, stdout=subprocess.DEVNULL)
        return set(json.load(file))


def top(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def plugin_modules(modules: set[str]) -> set[str]:
    return {name for name in top(modules) if name.startswith("debug_gym_")} - {"debug_gym_core"}


def test_import_loads_nothing() -> None:
    modules = modules_after("import debug_gym_core")
    assert not top(modules) & HEAVY
    assert {name for name in modules if name.startswith("debug_gym")} == {"debug_gym_core"}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_loads_no_plugin_and_no_library_but_click(option: str) -> None:
    modules = modules_after(f"from debug_gym_core.cli import main; main(['{option}'])")
    assert not top(modules) & HEAVY
    assert not plugin_modules(modules)
    assert "click" in modules


def test_listing_plugins_loads_their_registration_only() -> None:
    modules = modules_after("import debug_gym_core; debug_gym_core.load_plugins(strict=True)")
    assert not top(modules) & SDKS
    assert {"debug_gym_tool_pdb", "debug_gym_terminal_docker", "debug_gym_agents"} <= plugin_modules(modules)
