from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.errors import UsageError
from debug_gym_core.tasks.entrypoint import Entrypoint, Kind


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("pytest", ["PY", "-m", "pytest"]),
        ("pytest -q tests", ["PY", "-m", "pytest", "-q", "tests"]),
        ("py.test -q", ["PY", "-m", "pytest", "-q"]),
        ("  python -m pytest 't.py::test_x[a b]'\n", ["PY", "-m", "pytest", "t.py::test_x[a b]"]),
        ("pytest t.py::test_x[1]", ["PY", "-m", "pytest", "t.py::test_x[1]"]),
        ("python3 app.py --verbose", ["PY", "app.py", "--verbose"]),
        ("python -m package.module -m x", ["PY", "-m", "package.module", "-m", "x"]),
        ("python -mpytest", ["PY", "-m", "pytest"]),
        ("python -um app", ["PY", "-u", "-m", "app"]),
        ("python -OO -X dev -Wx -W y app.py -O", ["PY", "-O", "-O", "-X", "dev", "-W", "x", "-W", "y", "app.py", "-O"]),
        ("python -c 'print(1)' a", ["PY", "-c", "print(1)", "a"]),
        ("/opt/py/bin/python3.8 app.py", ["/opt/py/bin/python3.8", "app.py"]),
        (".venv/bin/python -m pytest", [".venv/bin/python", "-m", "pytest"]),
        ("python3.9 app.py", ["python3.9", "app.py"]),
        ("uv run pytest -q", ["PY", "-m", "pytest", "-q"]),
        ("uv run --with x --extra=dev -q python -m app", ["PY", "-m", "app"]),
        ("uv run -m app a", ["PY", "-m", "app", "a"]),
        ("uv run app.py a", ["PY", "app.py", "a"]),
        ("uv run -- pytest", ["PY", "-m", "pytest"]),
        ("make test", ["/bin/sh", "-c", "make test"]),
        ("A=1 make test", ["/bin/sh", "-c", "A=1 make test"]),
        ("cd sub && pytest", ["/bin/sh", "-c", "cd sub && pytest"]),
    ],
)
def test_argv(text: str, argv: list[str]) -> None:
    assert Entrypoint.parse(text).argv("PY") == argv


def test_variables() -> None:
    entrypoint = Entrypoint.parse("A=1 B='x y' C= python -m app D=2")
    assert entrypoint.env == {"A": "1", "B": "x y", "C": ""}
    assert (entrypoint.module, entrypoint.args, entrypoint.script) == ("app", ("D=2",), None)


@pytest.mark.parametrize(
    "text",
    [
        "make test",
        "python",
        "python -V",
        "python -",
        "python --help app.py",
        "python -m",
        "python -X",
        "uv run make",
        "uv run --directory sub pytest",
        "uv run uv run pytest",
        "uv run",
        "A=1",
        "cd sub && pytest",
        "pytest | tee log",
        "pytest $ARGS",
        'pytest "$ARGS"',
        "pytest `cat args`",
        "pytest tests/*.py",
        "pytest; true",
        "pytest\ntrue",
        "./run.sh",
    ],
)
def test_commands_cannot_be_debugged_and_say_why(text: str) -> None:
    entrypoint = Entrypoint.parse(text)
    assert entrypoint.kind is Kind.COMMAND
    assert not entrypoint.debuggable
    assert entrypoint.why_not
    assert entrypoint.argv("PY") == ["/bin/sh", "-c", text]


def test_code_can_be_debugged() -> None:
    assert Entrypoint.parse("python -c 'print(1)'").debuggable


@pytest.mark.parametrize("text", ["pytest '$A'", "pytest 'a|b'", r"pytest a\|b", 'pytest "a;b"', "pytest '*'"])
def test_quoted_shell_syntax_is_plain_text(text: str) -> None:
    assert Entrypoint.parse(text).debuggable


@pytest.mark.parametrize("text", ["", "   ", "pytest 'x", 'pytest "'])
def test_unreadable(text: str) -> None:
    with pytest.raises(UsageError):
        Entrypoint.parse(text)


def test_with_args_is_what_it_says() -> None:
    entrypoint = Entrypoint.parse("A='1 2' python -O app.py old").with_args(["new", "x y"])
    assert entrypoint.text == "A='1 2' python -O app.py new 'x y'"
    assert Entrypoint.parse(entrypoint.text) == entrypoint


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_arguments_survive(args: list[str]) -> None:
    entrypoint = Entrypoint.parse("python app.py " + shlex.join(args))
    assert entrypoint.args == tuple(args)


@given(st.text())
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        entrypoint = Entrypoint.parse(text)
    except UsageError:
        return
    assert entrypoint.argv("PY")


def test_an_entrypoint_that_is_too_long_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="too long: 10000000 characters"):
        Entrypoint.parse("x" * 10_000_000)
