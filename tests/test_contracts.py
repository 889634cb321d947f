"""Every component of this workspace is tried by the contract of its kind; and contracts can fail."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

from debug_gym_core.components.catalogue import KINDS, Plugins
from debug_gym_core.plugins import load_plugins

pytestmark = pytest.mark.documents

HERE = Path(__file__).parent
TOP = HERE.parent


def report(tmp_path: Path, *arguments: object, **environment: str) -> list[dict[str, Any]]:
    """What the plugin `contract_report` tells of a run of pytest."""
    target = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "contract_report", "-p", "no:cacheprovider", *map(str, arguments)],
        cwd=TOP,
        env={**os.environ, "CONTRACT_REPORT": str(target), "PYTHONPATH": str(HERE), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert target.is_file(), done.stdout[-3000:] + done.stderr[-3000:]
    told: list[dict[str, Any]] = json.loads(target.read_text())
    assert told, done.stdout[-3000:] + done.stderr[-3000:]
    return told


def folder_of(distribution: str) -> Path | None:
    """Where a distribution of the workspace lies; None for one that is not of it."""
    text = importlib.metadata.distribution(distribution).read_text("direct_url.json") or "{}"
    folder = Path(unquote(urlparse(json.loads(text).get("url", "")).path))
    return folder if folder.is_relative_to(TOP) and folder != Path() else None


def registered(plugins: Plugins) -> dict[tuple[str, str], Path]:
    """The folder of each component, by kind and by where its class lies."""
    found = {}
    for record in plugins.records:
        folder = folder_of(record.distribution)
        if folder is not None and record.state == "loaded":
            for kind, names in record.provides.items():
                for name in names:
                    component = plugins.get(kind, f"{record.distribution}:{name}")
                    found[kind, f"{component.__module__}:{component.__qualname__}"] = folder
    return found


def test_every_component_is_tried_by_its_contract(tmp_path: Path) -> None:
    """In the tests that lie beside it."""
    components = registered(load_plugins())
    assert {kind for kind, _ in components} == set(KINDS)
    folders = sorted({folder / "tests" for folder in components.values() if (folder / "tests").is_dir()})
    tried = {(one["kind"], one["component"]): Path(one["file"]) for one in report(tmp_path, "--collect-only", *folders)}
    missing = [
        f"{component} ({kind}): inherit the contract from debug_gym_core.testing in {folder.relative_to(TOP)}/tests"
        for (kind, component), folder in components.items()
        if not tried.get((kind, component), Path()).is_relative_to(folder)
    ]
    assert not missing, "\n".join(missing)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """What became of the tests that must fail, by class and test."""
    broken = [HERE / name for name in ("broken_tools.py", "broken_components.py")]
    told = report(tmp_path_factory.mktemp("broken"), *broken, CONTRACT_BROKEN="1")
    return {one["test"]: (one["outcome"], one["text"]) for one in told}


def test_contracts_see_what_is_broken(outcomes: dict[str, tuple[str, str]]) -> None:
    assert len(outcomes) >= 35
    passed = [test for test, (outcome, _) in outcomes.items() if outcome != "failed" and "[50]" not in test]
    assert not passed, f"these ought to have failed: {passed}"


@pytest.mark.parametrize(
    ("test", "words"),
    [
        (
            "TestUndocumented::test_schema_is_json_schema_and_every_argument_is_explained",
            "argument path is not explained",
        ),
        (
            "TestRaises::test_wrong_arguments_are_answered_with_what_is_wrong_and_an_example",
            "it raised: broken failed:",
        ),
        ("TestLeaves::test_ignored_files_are_refused", "is not refused: "),
        ("TestUnbounded::test_calls_work", "characters, over 20000"),
        ("TestRemembers::test_the_same_episode_twice_reads_the_same", "after reset() it reads otherwise"),
        ("TestNamesThePlace::test_the_same_episode_twice_reads_the_same", "after reset() it reads otherwise"),
        ("TestNotRegistered::test_a_plugin_registers_it_under_its_name", "pip install -e ."),
        ("TestName::test_name_and_help_are_fit", "'two words'"),
        (
            "TestFailsOnReset::test_events_are_answered",
            "when the episode began, broken.on_reset raised: broken's on_reset failed: LookupError: of the event",
        ),
        (
            "TestFailsOnStep::test_events_are_answered",
            "broken.on_step raised: broken's on_step failed: TypeError: it must answer with text or an Observation",
        ),
        (
            "TestFailsOnDeletedFiles::test_events_are_answered",
            "when a tool deleted a file, broken.on_file_changed raised: there is no file hello.txt",
        ),
        (
            "TestFailsOnFilesOfCommands::test_events_are_answered",
            "when a command made a file that is not UTF-8, broken.on_file_changed raised: broken's on_file_changed",
        ),
        ("TestFailsOnEvaluated::test_events_are_answered", "when the tests were run, broken.on_evaluated raised"),
        ("TestFailsOnSubmitted::test_events_are_answered", "the episode was submitted, broken.on_submitted raised"),
        (
            "TestUnmarked::test_events_are_known_and_marked",
            "broken.on_reset is not marked @hookimpl and is never called",
        ),
        *(
            (f"TestNoTool::{test}", "TestNoTool.tool must be the class that is tried, as in `tool = MyClass`")
            for test in ("test_calls_work", "test_ignored_files_are_refused")
        ),
        ("TestInstance::test_calls_work", "TestInstance.tool must be the class that is tried"),
        (
            "TestOneCall::test_calls_work",
            'TestOneCall.calls must be a list of the arguments of each call, by name, as in `calls = [{"path"',
        ),
        (
            "TestMisspelled::test_events_are_known_and_marked",
            "there is no event 'on_file_change'; did you mean 'on_file_changed'?",
        ),
        (
            "TestMisnamedArgument::test_events_are_known_and_marked",
            "broken.on_file_opened: there is no argument 'file'; it has env, path",
        ),
        ("TestStubborn::test_it_plays_to_the_end", "it goes on after the episode was terminated"),
        (
            "TestHopeful::test_it_plays_to_the_end",
            "the task is not resolved, though the contract class says resolves = True; score ",
        ),
        (
            "TestModest::test_it_plays_to_the_end",
            "the task is resolved, though the contract class says resolves = False; score ",
        ),
        ("TestCareless::test_tasks_are_whole", "there is no directory /nowhere"),
        ("TestSolved::test_gold_patches_make_the_tests_pass", "the tests pass without a fix"),
        ("TestGenerous::test_gold_patches_make_the_tests_pass", "score 1 without a fix"),
    ],
)
def test_what_a_contract_says_helps(outcomes: dict[str, tuple[str, str]], test: str, words: str) -> None:
    assert words in outcomes[test][1]


def test_without_pytest_the_kit_says_what_to_install() -> None:
    code = "import sys; sys.modules['pytest'] = None; import debug_gym_core.testing"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "needs pytest: pip install 'debug-gym-core[testing]'" in done.stderr.splitlines()[-1]


def test_the_core_does_without_the_kit() -> None:
    code = "import sys, debug_gym_core.cli, debug_gym_core.environment.env; print('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
