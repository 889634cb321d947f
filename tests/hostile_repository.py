"""A repository whose author wants to reach the machine that it is looked at on.

Each trap leaves a mark of its own name in a directory of the host, if it is ever sprung there. In a sandbox that
directory is not there, and what runs in it leaves none. What must not be seen lies beside the marks.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

SECRET = "what-nobody-gave-away-4711"
TITLE = "\x1b]0;evil\x07"
"""Sets the title of a terminal, and with other numbers much worse."""

CALC = "def add(a, b):\n    return a - b\n"
TESTS = """\
import unittest

from calc import add


class TestAdd(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)

    def test_zero(self):
        self.assertEqual(add(0, 0), 0)
"""
STARS = "a" * 60
"""A name that a pattern with many stars almost matches, in more ways than there is time to try."""

GITS = ("directory", "file", "link", "broken index", "pipe", "bare")
"""What `.git` can be."""

ENVIRONMENTS = ("read", "script", "beside", "pin")
"""What tells which Python is meant: an environment that can be read, programs of the repository's, a version."""


@dataclass(frozen=True)
class Hostile:
    """The repository, and what it is after.

    Attributes:
        directory: the repository
        outside: what belongs to the person
    """

    directory: Path
    outside: Path

    def marks(self) -> list[str]:
        """The traps that were sprung."""
        return sorted(path.name for path in (self.outside / "marks").iterdir())

    def clear(self) -> None:
        """Forget them."""
        for path in (self.outside / "marks").iterdir():
            path.unlink()

    def outside_of_it(self) -> dict[str, bytes]:
        """What lies outside, the marks too."""
        return {str(path): path.read_bytes() for path in self.outside.parent.rglob("*") if _ours(path, self.directory)}


def make(place: Path, git: str = "directory", environment: str | None = None) -> Hostile:
    """Make one.

    Args:
        place: an empty directory
        git: one of `GITS`
        environment: one of `ENVIRONMENTS`; None: nothing tells which Python is meant
    """
    hostile = Hostile(place / "projects" / "hostile", place / "person")
    (hostile.outside / "marks").mkdir(parents=True)
    (hostile.outside / "secrets").mkdir()
    for name in ("secret.txt", "secrets/inner.txt"):
        (hostile.outside / name).write_text(f"{SECRET}\n")
    hostile.directory.mkdir(parents=True)
    (hostile.directory / "calc.py").write_text(CALC)
    (hostile.directory / "test_calc.py").write_text(TESTS)
    (hostile.directory / f"test_{TITLE}.py").write_text(TESTS)
    for trap in (_programs, _modules, _settings, _links, _pipes, _names, _patterns):
        trap(hostile)
    _git(hostile, git)
    if environment is not None:
        _environment(hostile, environment)
    return hostile


def _ours(path: Path, directory: Path) -> bool:
    return not path.is_relative_to(directory) and path.is_file() and not path.is_symlink()


def _shell(hostile: Hostile, name: str) -> str:
    """A command that leaves a mark."""
    return f"touch {shlex.quote(str(hostile.outside / 'marks' / name))}"


def _python(hostile: Hostile, name: str) -> str:
    """A line of Python that leaves a mark where it can."""
    return f"import os; os.system({_shell(hostile, name) + ' 2>/dev/null'!r})\n"


def _script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _programs(hostile: Hostile) -> None:
    """Programs with names that others are called by."""
    for name in ("git", "sh", "python3", "uv", "setpriv", "bwrap", "docker", "pytest", "bin/git", "bin/python3"):
        _script(hostile.directory / name, _shell(hostile, f"program-{name.replace('/', '-')}"))


def _modules(hostile: Hostile) -> None:
    """Modules with names that others import, or that Python and pytest load by themselves."""
    names = ("sitecustomize", "usercustomize", "conftest", "setup", "click", "yaml", "rich", "pathspec", "docker")
    for name in (*names, "debug_gym_core/__init__", "debug_gym_core/sandbox/__init__", "debug_gym_tool_eval/__init__"):
        path = hostile.directory / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_python(hostile, f"module-{name.replace('/', '-')}"))
    (hostile.directory / "evil_plugin.py").write_text(_python(hostile, "module-plugin"))


def _settings(hostile: Hostile) -> None:
    """Settings of tools, which name plugins and programs, or are none."""
    # pytest obeys the first of these, in the sandbox; nobody falls over the others.
    (hostile.directory / "pytest.ini").write_text("[pytest]\naddopts = -p evil_plugin\n")
    (hostile.directory / "tox.ini").write_text(f"[tox]\nrequires = \x00\n[testenv]\ncommands = {'[' * 5000}\n")
    (hostile.directory / "setup.cfg").write_text("[tool:pytest]\npython_files = " + "*" * 40 + "x\n[broken\n= =\n")
    (hostile.directory / ".envrc").write_text(_shell(hostile, "envrc"))
    (hostile.directory / "Makefile").write_text(f"M := $(shell {_shell(hostile, 'makefile')})\n")


def _links(hostile: Hostile) -> None:
    """Links to what lies outside."""
    leads = hostile.directory / "leads"
    leads.mkdir()
    (leads / "secret.txt").symlink_to(hostile.outside / "secret.txt")
    (leads / "secrets").symlink_to(hostile.outside / "secrets")
    (leads / "up").symlink_to("../../../person")
    (leads / "variables").symlink_to("/proc/self/environ")
    (leads / "here").symlink_to("/proc/self/cwd/../../person/secret.txt")
    (leads / "circle").symlink_to("circle")
    for name in ("endless", "run.json", "pyproject.toml", "conftest.py", ".debugreadonly"):
        (leads / name).symlink_to("/dev/zero")
    (leads / ".debugignore").symlink_to(hostile.outside / "secret.txt")
    (hostile.directory / "data").symlink_to(hostile.outside / "secrets")


def _pipes(hostile: Hostile) -> None:
    """What a reader waits at for whoever writes into it, for good."""
    for name in ("pipes", "pipes/environment", "pipes/run"):
        (hostile.directory / name).mkdir()
    for name in ("pipe.py", "test_pipe.py", "run/run.json", "environment/pyvenv.cfg", ".debugignore", ".gitignore"):
        os.mkfifo(hostile.directory / "pipes" / name)
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        here = Path.cwd()
        try:  # the whole path may be longer than one of a socket
            os.chdir(hostile.directory / "pipes")
            listener.bind("socket")
        finally:
            os.chdir(here)


def _names(hostile: Hostile) -> None:
    """Names that steer a terminal, a shell or a parser."""
    names = (b"new\nline.txt", b"\x1b[2J\x1b]0;evil\x07.txt", b"caf\xe9.txt", b"-rf", b"--help", b"a\rb", b"c\xc2\x9bd")
    shell = f"$({_shell(hostile, 'shell').replace('/', '%')})".encode()  # a name has no slash
    for name in (*names, shell, "\u202egpj.exe".encode(), b'quo"te', b"back\\slash", b"%s%n{0}[red]"):
        (Path(os.fsdecode(os.fsencode(hostile.directory) + b"/" + name))).write_bytes(b"1\n")


def _patterns(hostile: Hostile) -> None:
    """Patterns that take for ever."""
    (hostile.directory / STARS).write_text("1\n")
    lines = ["*a" * 30 + "b", "**/a/" * 30 + "b", "[", "!", "/" * 1000, "\\", "[z-a]", "*?" * 30 + "b"]
    for name in (".debugignore", ".debugreadonly"):
        (hostile.directory / name).write_text("".join(f"{line}\n" for line in lines))


def _git(hostile: Hostile, kind: str) -> None:
    """Git's own files: nothing of them travels with a clone, all of them with an archive or a shared disk."""
    top = hostile.directory
    for name in (".GIT", ".Git/hooks", "git~1"):
        (top / name).mkdir(parents=True)
    (top / ".gitattributes").write_text("* filter=mark diff=mark merge=mark\n")
    update = f"!{_shell(hostile, 'git-submodule')}"
    (top / ".gitmodules").write_text(f'[submodule "m"]\n\tpath = m\n\turl = .\n\tupdate = {update}\n')
    (top / "lazy").mkdir()
    (top / "lazy" / ".gitignore").write_text("*.log\n")
    for command in (["init", "-q"], ["add", "lazy", "calc.py"], ["commit", "-q", "-m", "first"]):
        _run_git(top, *command)
    os.utime(top / "calc.py", (0, 0))  # git compares its content then, and not by chance alone
    # An object that is not there, and asked for where git looks what is ignored in a directory.
    name = _run_git(top, "rev-parse", ":lazy/.gitignore").strip()
    _run_git(top, "update-index", "--skip-worktree", "lazy/.gitignore")
    (top / "lazy" / ".gitignore").unlink()
    (top / ".git" / "objects" / name[:2] / name[2:]).unlink()
    _traps_of_git(hostile, top / ".git")
    if kind == "file":
        (top / ".git").rename(top / "store")
        (top / ".git").write_text("gitdir: ./store\n")
    elif kind == "link":
        (top / ".git").rename(hostile.directory.parent / "store")
        (top / ".git").symlink_to("../store")
    elif kind == "broken index":
        (top / ".git" / "index").write_bytes(b"DIRC\0\0\0\2\xff\xff\xff\xff" + b"\0" * 100)
    elif kind == "pipe":
        (top / ".git" / "config").unlink()
        os.mkfifo(top / ".git" / "config")
    elif kind == "bare":
        for path in list((top / ".git").iterdir()):
            path.rename(top / path.name)
        (top / ".git").rmdir()


def _traps_of_git(hostile: Hostile, directory: Path) -> None:
    def command(name: str) -> str:
        return f"{_shell(hostile, f'git-{name}')} #"

    sections = {
        "core": {
            **{key: command(key) for key in ("fsmonitor", "sshCommand", "pager", "editor", "askPass", "gitProxy")},
            "repositoryformatversion": "1",
            "bare": "false",
            "hooksPath": str(hostile.directory / "more-hooks"),
            "attributesFile": str(hostile.directory / ".gitattributes"),
        },
        "extensions": {"partialClone": "origin"},
        'remote "origin"': {"url": ".", "promisor": "true", "uploadpack": command("uploadpack")},
        'protocol "ext"': {"allow": "always"},
        "diff": {"external": command("diff")},
        'diff "mark"': {"textconv": command("textconv"), "command": command("diff-command")},
        'filter "mark"': {key: command(key) for key in ("clean", "smudge")},
        'merge "mark"': {"driver": command("merge")},
        "alias": {key: f"!{command(f'alias-{key}')}" for key in ("status", "apply", "check-ignore", "rev-parse")},
        "gpg": {"program": command("gpg")},
        "commit": {"gpgSign": "true"},
        "credential": {"helper": f"!{command('credential')}"},
        "include": {"path": str(hostile.directory / "more-settings")},
    }
    text = "".join(
        f"[{name}]\n" + "".join(f"\t{key} = {_quoted(value)}\n" for key, value in values.items())
        for name, values in sections.items()
    )
    (directory / "config").write_text(text)
    (hostile.directory / "more-settings").write_text(f"[core]\n\tfsmonitor = {_quoted(command('included'))}\n")
    for place in (directory / "hooks", hostile.directory / "more-hooks"):
        for name in ("post-index-change", "post-checkout", "pre-commit", "reference-transaction", "applypatch-msg"):
            _script(place / name, _shell(hostile, f"hook-{name}"))
    (directory / "info" / "exclude").unlink(missing_ok=True)
    os.mkfifo(directory / "info" / "exclude")


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _run_git(directory: Path, *arguments: str) -> str:
    person = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {"PATH": os.defpath, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", **person}
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def _environment(hostile: Hostile, kind: str) -> None:
    """What tells which Python is meant."""
    place, python = hostile.directory / ".venv", hostile.directory / ".venv" / "bin" / "python"
    if kind == "pin":
        os.mkfifo(hostile.directory / ".python-version")
        return
    if kind == "read":
        venv.create(place, symlinks=True)
        # A number that is too long for Python; pytest falls over it, too.
        (hostile.directory / "pyproject.toml").write_text(f"number = {'9' * 5000}\n[tool.pytest.ini_options]\n")
        site = place / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        (site / "a.pth").write_text(_python(hostile, "pth"))
        (site / "sitecustomize.py").write_text(_python(hostile, "venv-sitecustomize"))
        (site / "b.pth").write_text("../../../../../../person\nimport finder\n")
        (site / "finder.py").write_text(f"X = {str(hostile.outside / 'secrets')!r}\n")
        for name in ("git", "sh", "pip"):
            _script(place / "bin" / name, _shell(hostile, f"venv-{name}"))
        return
    python.parent.mkdir(parents=True)
    (place / "pyvenv.cfg").write_text(f"home = {hostile.directory / 'bin'}\n")
    if kind == "script":
        _script(python, _shell(hostile, "venv-python"))
    else:  # it lies in the same archive as the repository
        _script(hostile.directory.parent / "python3", _shell(hostile, "beside-python"))
        python.symlink_to("../../../python3")
