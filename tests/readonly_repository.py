"""A repository with read-only and ignored files, tools that run programs in it, and what is noticed of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support import python_in

import debug_gym_core
from debug_gym_core import RepoEnv, Tool, hookimpl
from debug_gym_core.testing.sample import ENTRYPOINT

READONLY = "test_*.py\n/data/\n*.ro\n/sealed/*/\n"
FILES = {
    ".debugreadonly": READONLY,
    ".debugignore": "/hidden/\n",
    "app.py": "def double(number):\n    twice = number * 3\n    return twice\n",
    "test_app.py": "from app import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
    "pkg/__init__.py": "",
    "pkg/inner/test_deep.py": "DEEP = 1\n",
    "pkg/inner/free.py": "FREE = 1\n",
    "pkg/conf/.debugreadonly": "*.cfg\n!mine.cfg\n",
    "pkg/conf/a.cfg": "a\n",
    "pkg/conf/mine.cfg": "mine\n",
    "data/a.txt": "a\n",
    "data/sub/b c.txt": "b\n",
    "sealed/box/x.txt": "x\n",
    "odd/with space.ro": "1\n",
    "odd/naïve ☃.ro": "2\n",
    "odd/new\nline.ro": "3\n",
    "odd/free.txt": "free\n",
    "tool.ro": "#!/bin/sh\n",
    "hidden/secret.py": "SECRET = 'hush'\n\n\ndef reveal(number):\n    inside = SECRET\n    return number / 0\n",
}


class Run(Tool):
    """Run a command, as a third party's tool might."""

    name = "run"

    def use(self, env: RepoEnv, command: str) -> str:
        """Run a command.

        Args:
            env: the environment
            command: for the shell
        """
        result = env.terminal.run(command, timeout=60)
        return f"exit status {result.exit_status}\n{result.output}"


class Start(Tool):
    """Start a program that goes on."""

    name = "start"

    def use(self, env: RepoEnv, command: str) -> str:
        """Start it.

        Args:
            env: the environment
            command: for the shell
        """
        self.process = env.terminal.process(["sh", "-c", command], channel=False)
        return "started"


class Seen(Tool):
    """Remembers which files changed."""

    name = "seen"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.changes: list[tuple[str, list[tuple[int, int, int]]]] = []

    def use(self, env: RepoEnv) -> str:
        """Do nothing."""
        return "nothing"

    @hookimpl
    def on_file_changed(self, path: str, edits: Any) -> None:
        self.changes.append((path, [(edit.start, edit.old, edit.new) for edit in edits]))

    def take(self) -> list[tuple[str, list[tuple[int, int, int]]]]:
        taken, self.changes = self.changes, []
        return taken


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def start(terminal: object, root: Path, **more: Any) -> RepoEnv:
    env = debug_gym_core.make(
        "repo",
        ["view", "rewrite", "listdir", "eval", "pdb", "bash", Run(), Start(), Seen()],
        terminal,
        path=root,
        entrypoint=more.pop("entrypoint", f"{ENTRYPOINT} -p no:cacheprovider"),
        python=python_in(terminal),
        allow_unsandboxed=True,
        **more,
    )
    env.reset(seed=0)
    return env


def fresh_env(terminal: object, directory: Path) -> Iterator[RepoEnv]:
    """An environment of the repository, written below a directory; closed at the end."""
    made = start(terminal, write(directory / "repository", FILES))
    yield made
    made.close()


def run(command: str) -> dict[str, Any]:
    return {"name": "run", "arguments": {"command": command}}


def run_output(env: RepoEnv, command: str) -> str:
    return env.step(run(command))[0]["text"]


def pdb(command: str) -> dict[str, Any]:
    return {"name": "pdb", "arguments": {"command": command}}


def state(env: RepoEnv) -> dict[str, tuple[Any, ...]]:
    """Kind, permissions and content of all that is read-only, and of what matches a read-only pattern."""
    found: dict[str, tuple[Any, ...]] = {}
    for entry in env.session.walk():
        is_dir = entry.kind == "directory"
        if not env.workspace.is_readonly(entry.path) and not (
            is_dir and env.workspace._rules.readonly(entry.path, True)
        ):
            continue
        if env.workspace._rules.ignored(entry.path, is_dir):
            continue
        content = entry.target if entry.kind == "link" else None if is_dir else env.session.read(entry.path)
        found[entry.path] = (entry.kind, entry.mode, content)
    return found


def changes_of(env: RepoEnv) -> list[tuple[str, list[tuple[int, int, int]]]]:
    seen = env.tools["seen"]
    assert isinstance(seen, Seen)
    return seen.take()
