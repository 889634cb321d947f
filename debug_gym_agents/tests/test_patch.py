"""The agent that applies a patch: where it finds it, and what it makes of one that does not fit."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import changed_lines, repeated

from debug_gym_agents.patch import PatchAgent
from debug_gym_core import RepoEnv, UsageError
from debug_gym_core.testing import AgentContract
from debug_gym_core.testing.sample import GOLD_PATCH

pytest_plugins = ["debug_gym_core.testing.fixtures"]

PATCH = GOLD_PATCH.decode()
TASK = "sample/shop"


def predictions(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


class TestPatchAgent(AgentContract):
    agent = PatchAgent

    @pytest.fixture(autouse=True)
    def patches(self, tmp_path: Path) -> None:
        """A patch of the sample task."""
        path = predictions(tmp_path / "predictions.jsonl", {"instance_id": TASK, "model_patch": PATCH})
        self.settings = {"patches": str(path)}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run in which the sample task was played."""
    directory = tmp_path / "run"
    (directory / TASK).mkdir(parents=True)
    (directory / "run.json").write_text("{}")
    (directory / TASK / "patch.diff").write_text(PATCH)
    return directory


def graded(env: RepoEnv, path: Path) -> tuple[str | None, bool]:
    """What a patch comes to: why it was not applied, and whether the task is resolved."""
    ended = PatchAgent(patches=path).play(env, None)
    return ended, env.grade().resolved


def applied(env: RepoEnv, path: Path) -> tuple[str | None, bool]:
    """As `graded`, without a grading: whether the changes are those that resolve the task, and no others."""
    ended = PatchAgent(patches=path).play(env, None)
    return ended, changed_lines(env.patch) == changed_lines(GOLD_PATCH)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", json.dumps({"instance_id": "other", "model_patch": "?"}) + "\n\n" + json.dumps(
            {"instance_id": "shop", "model_name_or_path": "m", "model_patch": PATCH.rstrip("\n")})),
        ("a.json", json.dumps([{"instance_id": "other", "model_patch": None}, {"task": TASK, "patch": PATCH}])),
        ("a.json", json.dumps({"other": {"model_patch": None}, "shop": {"model_patch": PATCH}})),
        ("a.json", json.dumps({"other": "", TASK: PATCH})),
        ("a.json", json.dumps({"instance_id": TASK, "model_patch": PATCH})),
    ],
)  # fmt: skip
def test_predictions_are_read_as_harnesses_take_them(
    make_env: Callable[..., RepoEnv], tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    assert applied(make_env(), tmp_path / name) == (None, True)


def test_the_patches_of_a_run_are_graded_again(make_env: Callable[..., RepoEnv], run: Path) -> None:
    env = make_env()
    assert applied(env, run) == (None, True)
    (run / TASK / "patch.diff").unlink()
    env.reset()
    assert applied(env, run) == ("no_patch", False)
    (run / TASK / "1").mkdir()
    with pytest.raises(UsageError, match=r"has several episodes of sample/shop; its files predictions\*\.jsonl"):
        applied(env, run)


@pytest.mark.parametrize("patch", [None, *repeated("grading", "", "\n")])
def test_a_task_without_a_patch_is_not_resolved(make_env: Callable[..., RepoEnv], tmp_path: Path, patch: Any) -> None:
    path = predictions(tmp_path / "a.jsonl", {"instance_id": "shop", "model_patch": patch})
    env = make_env()
    assert applied(env, path) == ("no_patch", False) and env.patch == b""


@pytest.mark.parametrize(
    "patch", ["nonsense", PATCH.replace("total", "totals"), PATCH.replace("shop.py", "../shop.py")]
)
def test_a_patch_that_does_not_fit_is_not_resolved(
    make_env: Callable[..., RepoEnv], tmp_path: Path, patch: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = predictions(tmp_path / "a.jsonl", {"instance_id": "shop", "model_patch": patch})
    env = make_env()
    assert applied(env, path) == ("unapplied", False) and env.patch == b""
    assert "sample/shop: its patch is not applied: " in caplog.text


def test_a_file_is_read_once_for_all_episodes_and_again_when_it_has_changed(
    make_env: Callable[..., RepoEnv], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    monkeypatch.setattr("debug_gym_agents.patch._parsed", lambda text, place: parsed.append(place) or json.loads(text))
    path = predictions(tmp_path / "a.jsonl", {"task": "other", "patch": ""}, {"task": TASK, "patch": PATCH})
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    env = make_env()
    assert applied(env, path) == (None, True)
    env.reset()
    assert applied(env, path) == (None, True)
    assert parsed == [f"{path}:1", f"{path}:2"]
    predictions(path, {"task": TASK, "patch": ""})
    env.reset()
    assert applied(env, path) == ("no_patch", False)


def test_read_only_files_are_left_as_they_are(
    make_env: Callable[..., RepoEnv], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    more = "--- a/test_shop.py\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x = 1\n"
    more += "--- /dev/null\n+++ b/conftest.py\n@@ -0,0 +1 @@\n+import sys\n"
    env = make_env(more_files={"extra_test.py": "x = 1\n"}, readonly=("extra_test.py", "conftest.py"))
    patch = PATCH + more.replace("test_shop.py", "extra_test.py")
    path = predictions(tmp_path / "a.jsonl", {"instance_id": "shop", "model_patch": patch})
    assert graded(env, path) == (None, True)
    assert env.workspace.read_text("extra_test.py") == "x = 1\n"
    assert "changes read-only files, which are left: " in caplog.text
    for name in ("extra_test.py", "conftest.py"):
        assert name in caplog.text and name.encode() not in env.patch


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '{"instance_id": "x", "model_patch": ""}\n{]\n', r"a\.jsonl:2: it is no JSON"),
        ("a.jsonl", "[]\n", r"a\.jsonl:1: an object with instance_id and model_patch is meant, not \[\]"),
        ("a.jsonl", '{"model_patch": ""}\n', r"a\.jsonl:1: instance_id and model_patch are missing"),
        ("a.jsonl", '{"instance_id": "x"}\n', r"a\.jsonl:1: instance_id and model_patch are missing"),
        ("a.jsonl", '{"instance_id": "x", "model_patch": 5}\n', r"a\.jsonl:1: .* are no texts"),
        ("a.jsonl", '{"task": "shop", "patch": ""}\n' * 2, r"a\.jsonl has 2 patches for sample/shop"),
        ("a.json", "5", r"a\.json: a list of predictions is meant"),
        ("a.json", "", r"a\.json: it is no JSON"),
        ("a.json", "[" * 100_000, r"a\.json: it is no JSON"),
        ("a.json", b"\xff\xfe", r"a\.json cannot be read: "),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    make_env: Callable[..., RepoEnv], tmp_path: Path, name: str, text: str | bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=said):
        PatchAgent(patches=tmp_path / name).play(make_env(), None)


def test_where_the_patches_are_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"patch_agent needs patches: say -p agent\.patches=FILE"):
        PatchAgent()
    with pytest.raises(UsageError, match=r"no\.jsonl: there is no such file or directory"):
        PatchAgent(patches=tmp_path / "no.jsonl")
    with pytest.raises(UsageError, match=r"is no run: it has no run\.json"):
        PatchAgent(patches=tmp_path)
