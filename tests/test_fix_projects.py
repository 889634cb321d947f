"""`debug-gym fix` as a person has it in a terminal, tmux: projects of others with a bug, and every way to answer.

The projects are small packages that the tests' own environment has, each with its author's tests beside it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import COMMAND, reason_not_to_use

from debug_gym_core.testing import wait_until

pytestmark = pytest.mark.people

PATIENCE = 120.0


@dataclass(frozen=True)
class Project:
    """A package with a bug.

    Attributes:
        path: the file that has it
        right: as its author wrote it, on one line
        wrong: the bug
        tests: what pytest is told
    """

    path: str
    right: str
    wrong: str
    tests: str

    @property
    def fix(self) -> dict[str, object]:
        """The action that repairs it."""
        return {"name": "edit", "arguments": {"path": self.path, "old": self.wrong, "new": self.right}}


PROJECTS = {
    "smmap": Project(
        "smmap/util.py", "if round_up and (res != num):", "if round_up and (res == num):", "smmap/test/test_util.py"
    ),
    "sniffio": Project(
        "sniffio/_impl.py",
        "if current_task() is not None:",
        "if current_task() is None:",
        "sniffio/_tests/test_sniffio.py -k 'not curio'",
    ),
    "referencing": Project(
        "referencing/_core.py",
        "resources = resources.update(registry._resources)",
        "resources = registry._resources",
        "referencing/tests/test_core.py",
    ),
}
EVAL = {"name": "eval", "arguments": {}}
WAIT = {"name": "bash", "arguments": {"command": "echo it begins; sleep 60", "timeout": 100}}


class Tmux:
    """A terminal of 150 columns, which no line looked for here is longer than, with one command in it."""

    def __init__(self, place: Path, cwd: Path, command: list[str]) -> None:
        """Start the command.

        Args:
            place: a directory for the socket, with a short path: sockets have no more than 107 characters
            cwd: where the command runs
            command: its words
        """
        self._tmux = ["tmux", "-S", str(place / "socket"), "-f", "/dev/null"]
        self._status = place / "status"
        # tmux itself does not always learn how a command ended; a shell that Ctrl-C does not end does.
        ended = f"echo $? >{place}/part; mv {place}/part {self._status}; exec sleep 1000"
        # A pytest that has loaded readline has its own size in its environment.
        words = f"unset COLUMNS LINES; trap : INT; {shlex.join(command)}; {ended}"
        self._do("new-session", "-d", "-x", "150", "-y", "50", "-c", str(cwd), words)

    def _do(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], check=True, capture_output=True, text=True, timeout=PATIENCE)
        return done.stdout

    @property
    def screen(self) -> str:
        """What was shown from the start, lines joined that were only broken at the edge."""
        return self._do("capture-pane", "-p", "-J", "-S", "-")

    def expect(self, text: str) -> None:
        """Wait until a text is shown."""
        wait_until(lambda: text in self.screen or self._status.exists(), f"it does not show {text!r}", PATIENCE)
        assert text in self.screen, self.screen

    def press(self, *keys: str) -> None:
        """Press keys, as tmux calls them."""
        self._do("send-keys", *keys)

    def status(self) -> int:
        """Wait for the command's end; its exit status."""
        wait_until(self._status.exists, "it does not end", PATIENCE)
        return int(self._status.read_text())

    def close(self) -> None:
        """End it, with its server."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=PATIENCE)


@pytest.fixture(params=PROJECTS)
def name(request: pytest.FixtureRequest) -> str:
    if reason := reason_not_to_use("bubblewrap"):
        pytest.skip(reason)
    if shutil.which("tmux") is None:
        pytest.skip("tmux is missing: apt-get install tmux")
    return str(request.param)


@pytest.fixture
def project(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package, under git, with its bug and what the person did not commit."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"{name} is not installed: uv sync")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    directory = tmp_path / "project"
    package = Path(found.origin).parent
    shutil.copytree(package, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    bug = PROJECTS[name]
    text = (directory / bug.path).read_text()
    assert text.count(bug.right) == 1 and bug.wrong not in text
    (directory / bug.path).write_text(text.replace(bug.right, bug.wrong))
    identity = ["-c", "user.name=a person", "-c", "user.email=person@example.org", "-c", "commit.gpgsign=0"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "as it is"]):
        subprocess.run(["git", *identity, *command], cwd=directory, check=True)
    (directory / "notes.txt").write_text("not committed\n")
    return directory


@pytest.fixture
def fix(project: Path, name: str) -> Iterator[Callable[..., Tmux]]:
    """Have `debug-gym fix` play actions in the project, each time in a terminal of its own."""
    with contextlib.ExitStack() as stack:

        def fix(*actions: object) -> Tmux:
            tests = f"python -m pytest -q {PROJECTS[name].tests}"
            playing = ["--llm", "scripted", "-p", f"llm.actions={json.dumps(actions)}", "--terminal", "bubblewrap"]
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tmux-")))
            command = [str(COMMAND), "fix", str(project), "--entrypoint", tests, *playing]
            terminal = Tmux(place, project.parent, command)
            stack.callback(terminal.close)
            return terminal

        yield fix


def files(project: Path) -> dict[str, bytes]:
    """All files, and what git says of them."""
    found = {str(path): path.read_bytes() for path in project.rglob("*") if path.is_file() and ".git" not in path.parts}
    told = subprocess.run(["git", "status", "--porcelain"], cwd=project, capture_output=True, check=True)
    return {**found, "git status": told.stdout}


def repaired(project: Path, name: str) -> bool:
    """Whether the file is as its author wrote it."""
    bug = PROJECTS[name]
    return bug.wrong not in (text := (project / bug.path).read_text()) and bug.right in text


def test_yes_repairs_the_project(project: Path, name: str, fix: Callable[..., Tmux]) -> None:
    before = files(project)
    terminal = fix(EVAL, PROJECTS[name].fix, EVAL)
    terminal.expect("[y/N]: ")
    shown = terminal.screen
    assert PROJECTS[name].wrong in shown and PROJECTS[name].right in shown and "pass with this change" in shown
    assert files(project) == before
    terminal.press("y", "Enter")
    assert terminal.status() == 0 and "applied to " in terminal.screen
    assert repaired(project, name)
    changed = {path for path, data in files(project).items() if before[path] != data}
    assert changed == {str(project / PROJECTS[name].path), "git status"}
    again = fix()
    assert again.status() == 0 and "nothing to fix" in again.screen


@pytest.mark.parametrize("keys", ["n", "", "C-c"], ids=["no", "nothing", "Ctrl-C"])
def test_anything_else_leaves_it_alone(project: Path, name: str, keys: str, fix: Callable[..., Tmux]) -> None:
    before = files(project)
    terminal = fix(PROJECTS[name].fix, EVAL)
    terminal.expect("[y/N]: ")
    terminal.press(*([keys] if keys else []), *([] if keys == "C-c" else ["Enter"]))
    assert terminal.status() == (130 if keys == "C-c" else 0)
    assert "it is kept: " in terminal.screen and files(project) == before


def test_ctrl_c_while_it_plays_leaves_it_alone(project: Path, name: str, fix: Callable[..., Tmux]) -> None:
    before = files(project)
    terminal = fix(PROJECTS[name].fix, WAIT, EVAL)
    terminal.expect(PROJECTS[name].right)
    terminal.press("C-c")
    assert terminal.status() == 130, terminal.screen
    assert "stopped; go on with" in terminal.screen and "the same debug-gym fix" in terminal.screen
    assert files(project) == before
