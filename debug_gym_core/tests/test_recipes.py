"""What make, tox and nox would run."""

from __future__ import annotations

import pytest

from debug_gym_core.debugging.recipes import make_commands, nox_commands, tox_commands

MAKEFILE = """\
PY := python
.PHONY: test
all: lint test
lint:
\t@ruff check .
test: build # first
\t-$(PY) -m pytest\\
\t  -q
build: test
\techo $(HERE) ${PY}
"""


@pytest.mark.parametrize(
    ("target", "commands"),
    [
        (None, ["ruff check .", "echo $(HERE) python", "python -m pytest -q"]),
        ("lint", ["ruff check ."]),
        ("build", ["python -m pytest -q", "echo $(HERE) python"]),
        ("nosuch", []),
    ],
)
def test_a_target_of_a_makefile(target: str | None, commands: list[str]) -> None:
    assert make_commands(MAKEFILE, target) == commands


def test_a_hostile_makefile_takes_no_time() -> None:
    layers = "".join(f"a{n} b{n}: a{n + 1} b{n + 1}\n\techo {n}\n" for n in range(3000))
    assert len(make_commands(layers, "a0")) == 2 * 3000 - 1
    for text in (" " * 60_000, " :\n\tx", "a" * 60_000, "a: a\n\tx", ":" * 60_000):
        assert make_commands(text, None) in ([], ["x"])


def test_an_environment_of_tox() -> None:
    text = "[testenv]\ncommands = pytest {posargs:-q}\n[testenv:app]\ncommands =\n    {envpython} \\\n    app.py\n"
    assert tox_commands(text, "py") == ["pytest -q"]
    assert [" ".join(one.split()) for one in tox_commands(text, "app")] == ["", "python app.py"]
    assert tox_commands("no section", "") == tox_commands("", "") == []


def test_the_sessions_of_nox() -> None:
    text = "def tests(session):\n    session.run('pytest', \"-q\")\n    session.run(*words)\n"
    assert nox_commands(text) == ["pytest -q", ""]
