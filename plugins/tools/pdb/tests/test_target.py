"""Entrypoints of every form, started as real processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import repeated

from debug_gym_core import ActionError
from debug_gym_core.debugging.target import find_target
from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.tasks.entrypoint import Kind
from debug_gym_core.testing.environments import Environments
from debug_gym_tool_pdb import Pdb

SHOW = """\
import os, sys
print(__name__, sys.argv[1:], os.environ.get('A'), os.environ.get('B'), os.path.basename(os.getcwd()))
"""
TEST = "import unittest\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 2)\n"
FILES = {
    "show.py": SHOW,
    "test_it.py": TEST,
    "sub/show.py": SHOW,
    "pkg/__init__.py": "",
    "pkg/__main__.py": SHOW,
    "pkg/mod.py": SHOW,
    "run.sh": '#!/bin/sh\nset -e\n# python old.py\nexport A=1\nexec python -m pytest -q "$@"\n',
    "plain.sh": "echo hi\n",
    "secret.sh": "python hidden.py\n",
    "Makefile": "PY = python\nall: build\nbuild:\n\techo hi\ntest: lint unit\nlint:\n\truff check .\n"
    "unit:\n\t@$(PY) -m pytest -q \\\n\t\t-x\nrun:\n\t-${PY} show.py\nloop: loop\n",
    "tox.ini": "[testenv]\ncommands = pytest {posargs:-q}\n[testenv:app]\ncommands =\n    {envpython} show.py\n",
    "noxfile.py": "def tests(session):\n    session.run('pip', 'list')\n    session.run('pytest', '-q')\n",
    ".debugignore": "secret*\n",
}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RepoEnv]:
    with Environments(tmp_path_factory.mktemp("target")) as environments:
        env = environments.make(["pdb"], files=FILES, debug_entrypoint="python show.py")
        scripts = {
            "bin/tool": f"#!{sys.executable} -O\n{SHOW}print(__debug__)\n",
            "bin/enved": f"#!/usr/bin/env python3\n{SHOW}",
            "bin/long": f"#!/bin/sh\n'''exec' {sys.executable} \"$0\" \"$@\"\n' '''\n{SHOW}",
            "bin/other": "#!/nosuch/python3\n",
            "bin/shell": "#!/bin/bash\npython show.py\n",
            "venv/bin/pytest": f"#!{sys.executable}\nfrom pytest import console_main\nconsole_main()\n",
            "perl": "#!/usr/bin/perl\n",
            "data": "\x7fELF\n",
            "run.sh": FILES["run.sh"],
        }
        for name, text in scripts.items():
            env.session.write(name, text.encode(), 0o755)
        yield env


@pytest.mark.parametrize(
    ("entrypoint", "printed"),
    [
        ("python show.py 1 2", "__main__ ['1', '2'] None None {root}"),
        ("python -m pkg x", "__main__ ['x'] None None {root}"),
        ("python -m pkg.mod", "__main__ [] None None {root}"),
        ("A=0 A=1 env B=2 timeout -k 5 60 nice -n 3 python show.py", "__main__ [] 1 2 {root}"),
        ("env -S 'A=1 python show.py'", "__main__ [] 1 None {root}"),
        ("nohup time stdbuf -oL uv run show.py -x", "__main__ ['-x'] None None {root}"),
        ("poetry run python show.py", "__main__ [] None None {root}"),
        *repeated(
            "debugger",
            ("sh -c 'A=3 python show.py'", "__main__ [] 3 None {root}"),
            ("cd sub && python show.py", "__main__ [] None None sub"),
            ("bash -lc 'cd /testbed/sub; python show.py'", "__main__ [] None None sub"),
            ("cd sub && python /testbed/show.py x", "__main__ ['x'] None None sub"),
            ("coverage run --source . -m pkg y", "__main__ ['y'] None None {root}"),
            ("python -m coverage run -a show.py", "__main__ [] None None {root}"),
            ("python -m pdb -c continue show.py z", "__main__ ['z'] None None {root}"),
            ("python -m cProfile -s time -m pkg", "__main__ [] None None {root}"),
            ("bin/tool 1", "__main__ ['1'] None None {root}\nFalse"),
            ("bin/enved", "__main__ [] None None {root}"),
            ("bin/long 'a b'", "__main__ ['a b'] None None {root}"),
            ("python -c 'import show, sys; print(sys.argv)' x", "show ['x'] None None {root}\n['-c', 'x']"),
        ),
    ],
)
def test_programs_behind_other_programs_run(env: RepoEnv, entrypoint: str, printed: str) -> None:
    tool = Pdb(timeout=20)
    try:
        text = tool.use(env, "c", entrypoint=entrypoint).text
    finally:
        tool.close()
    root = Path(env.session.root).name
    assert f"program printed:\n{printed.format(root=root)}\nThe program exited with status 0." in text


@pytest.mark.parametrize(
    ("entrypoint", "meant"),
    [
        ("python -m pdb -c continue show.py z", (Kind.SCRIPT, "show.py", ("z",), ())),
        ("python -m cProfile -s time -m pkg", (Kind.MODULE, "pkg", (), ())),
        ("python -O -c 'import show' x", (Kind.CODE, "import show", ("x",), ("-O",))),
        ("bin/tool 1", (Kind.SCRIPT, "bin/tool", ("1",), ("-O",))),
        ("bin/enved", (Kind.SCRIPT, "bin/enved", (), ())),
        ("bin/long 'a b'", (Kind.SCRIPT, "bin/long", ("a b",), ())),
    ],
)
def test_what_an_entrypoint_starts_is_found(env: RepoEnv, entrypoint: str, meant: tuple[Any, ...]) -> None:
    found = find_target(entrypoint, env).entrypoint
    assert (found.kind, found.target, found.args, found.flags) == meant and found.text == entrypoint


@pytest.mark.parametrize(
    "entrypoint",
    [
        "timeout 60 pytest -q -p no:cacheprovider test_it.py",
        *repeated(
            "debugger",
            "venv/bin/pytest -q -p no:cacheprovider test_it.py",
            "python -m unittest test_it",
        ),
    ],
)
def test_failing_tests_stop_behind_other_programs(env: RepoEnv, entrypoint: str) -> None:
    tool = Pdb(timeout=20)
    try:
        stop = tool.use(env, "c", entrypoint=entrypoint).data["stop"]
    finally:
        tool.close()
    assert (stop["reason"], stop["file"], stop["line"]) == ("test failed", "test_it.py", 5)


def test_what_is_left_out_is_said(env: RepoEnv) -> None:
    notes = find_target("xvfb-run -a coverage run show.py", env).notes
    assert [note.split(" is left out")[0] for note in notes] == ["xvfb-run", "coverage"]
    tool = Pdb(timeout=20)
    try:
        assert "coverage is left out: it needs the" in tool.use(env, "p 1", entrypoint="coverage run show.py").text
    finally:
        tool.close()


def test_a_restart_keeps_the_directory(env: RepoEnv) -> None:
    tool = Pdb(timeout=20)
    try:
        tool.use(env, "p 1", entrypoint="cd sub && python show.py")
        assert "['new'] None None sub" in tool.use(env, "restart new\nc").text
    finally:
        tool.close()


@pytest.mark.parametrize(
    ("entrypoint", "why", "instead"),
    [
        ("make test", "make starts other programs", "python -m pytest -q -x"),
        ("make -j2 run", "make starts other programs", "python show.py"),
        ("make", "make starts other programs", ""),
        ("make loop", "make starts other programs", ""),
        ("./run.sh", "./run.sh is a shell script", "python -m pytest -q"),
        ("bash -x run.sh a", "run.sh is a shell script", "python -m pytest -q"),
        ("sh plain.sh", "plain.sh is a shell script", ""),
        ("sh secret.sh", "secret.sh is a shell script", ""),
        ("bin/shell", "bin/shell is a shell script", "python show.py"),
        ("tox -e py", "tox starts other programs", "pytest -q"),
        ("python -m tox -e app", "tox starts other programs", "python show.py"),
        ("nox", "nox starts other programs", "pytest -q"),
        ("pytest -q | tee log", "it uses the shell ('|')", "pytest -q"),
        ("pytest -q > log 2>&1", "it uses the shell ('>')", "pytest -q"),
        ("echo hi && python show.py", "it uses the shell ('&')", "python show.py"),
        ("python - <<EOF\nprint(1)\nEOF", "it uses the shell ('<')", ""),
        ("python", "Python is given no program: a file, -m MODULE or -c CODE", ""),
        ("python -", "Python is given no program: a file, -m MODULE or -c CODE", ""),
        ("show.py", "show.py is not executable, or not there", "python show.py"),
        ("./perl", "./perl is a program of perl, not of Python", ""),
        ("./data", "./data is not a Python program", ""),
        ("nosuchprogram run", "there is no program nosuchprogram", ""),
        ("cd nosuch && python show.py", "there is no directory nosuch", ""),
        ("cd .. && python show.py", ".. is outside of the repository", ""),
        ("timeout 5", "timeout is given no command", ""),
        ("env -u A python show.py", "env -u is not understood", ""),
        ("A=1", "it names no program", ""),
        ("sh", "it starts sh, a shell", ""),
        ("env " * 8 + "A=1", "it has more than 8 commands that start another one", ""),
    ],
)
def test_what_cannot_be_debugged_says_why_and_what_could(env: RepoEnv, entrypoint: str, why: str, instead: str) -> None:
    started = time.monotonic()
    with pytest.raises(ActionError) as raised:
        find_target(entrypoint, env)
    assert time.monotonic() - started < 30
    said = " ".join(str(raised.value).split())
    assert f"cannot be debugged: {why}; give `entrypoint`, " in said
    assert said.endswith(f"what it runs is {instead!r}" if instead else "for example 'python -m pytest -q'")


@pytest.mark.parametrize("entrypoint", ["python 'x", "", "a\0b", "\ud800 x"])
def test_what_is_no_command_is_refused(env: RepoEnv, entrypoint: str) -> None:
    with pytest.raises(ActionError, match="pdb: the entrypoint"):
        find_target(entrypoint, env)


def test_an_interpreter_of_a_script_that_is_not_there(env: RepoEnv) -> None:
    tool = Pdb(timeout=20)
    with pytest.raises(ActionError, match="cannot be started: /nosuch/python3"):
        tool.use(env, "c", entrypoint="bin/other")
