"""A repository that nobody here wrote, with a virtual environment of its own and an editable install."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from support import published, run_debug_gym, terminals

RELEASE = "itsdangerous==2.2.0"
RIGHT = "value, sig = signed_value.rsplit(self.sep, 1)"
WRONG = "value, sig = signed_value.split(self.sep, 1)"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of a release as its authors published them, a bug in them, installed in `.venv` in editable mode."""
    directory = published(RELEASE, tmp_path_factory.mktemp("published"))
    signer = directory / "src" / RELEASE.partition("==")[0] / "signer.py"
    text = signer.read_text()
    assert RIGHT in text
    signer.write_text(text.replace(RIGHT, WRONG))
    subprocess.run(["uv", "venv", "-q", ".venv"], cwd=directory, check=True)
    subprocess.run(
        ["uv", "pip", "install", "-q", "-p", ".venv", "-e", ".", "pytest", "freezegun"], cwd=directory, check=True
    )
    return directory


def config(repository: Path, terminal: str, actions: list[object]) -> str:
    return yaml.safe_dump(
        {
            "benchmark": {"name": "repo", "path": str(repository)},
            "env": {"entrypoint": "python -m pytest -q", "readonly": ["tests/"]},
            "tools": ["view", "rewrite", "eval", "pdb", "submit"],
            "terminal": {"name": terminal, "allow_unsandboxed": terminal == "local"},
            "agent": {"name": "tool_agent"},
            "llm": {"name": "scripted", "actions": actions},
        }
    )


@pytest.mark.parametrize("terminal", terminals("local", "bubblewrap"))
@pytest.mark.benchmarks
def test_a_bug_in_it_is_found_fixed_and_graded(
    repository: Path, terminal: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if terminal == "bubblewrap":
        request.getfixturevalue("sandbox")
    source = repository / "src/itsdangerous/signer.py"
    before = source.read_text()
    line = next(n for n, text in enumerate(before.splitlines(), 1) if WRONG in text)
    actions = [
        "eval",
        f"pdb b src/itsdangerous/signer.py:{line}",
        "pdb c",
        "pdb p signed_value, self.sep",
        f"rewrite src/itsdangerous/signer.py {line} <<<\n        {RIGHT}\n>>>",
        "eval",
        {"name": "submit", "arguments": {"message": "split at the last separator"}},
    ]
    (tmp_path / "my.yaml").write_text(config(repository, terminal, actions))
    result = run_debug_gym(["run", "my.yaml", "-o", "out"], tmp_path)
    assert result.returncode == 0, result.stderr
    row = json.loads((tmp_path / "out/results.jsonl").read_text())
    assert row["status"] == "resolved", row
    assert (row["score"], row["max_score"], row["grading"]) == (297, 297, "clean")
    events = [
        json.loads(text) for text in (tmp_path / "out" / row["task"] / "trajectory.jsonl").read_text().splitlines()
    ]
    said = [event["observation"]["text"] for event in events if event["kind"] == "step"]
    assert f"src/itsdangerous/signer.py:{line} in unsign" in said[3]
    assert source.read_text() == before
    patch = (tmp_path / "out" / row["task"] / "patch.diff").read_bytes()
    shutil.copytree(repository, tmp_path / "applied", ignore=shutil.ignore_patterns(".venv"))
    subprocess.run(["git", "apply", "-"], input=patch, cwd=tmp_path / "applied", check=True)
    assert RIGHT in (tmp_path / "applied/src/itsdangerous/signer.py").read_text()
