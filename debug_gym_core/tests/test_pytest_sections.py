"""pytest's sections of files that configure other things too, without the files."""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.grading import pytest_sections

NAMES = st.sampled_from(["pytest", "tool:pytest", "flake8", "tox", "x"])
LINES = st.sampled_from(["a = 1", "b = [pytest]", "# [pytest]", "", "  more", "addopts = -x", "key: value"])
INI = st.lists(st.tuples(NAMES, st.lists(LINES, max_size=3)), max_size=4, unique_by=lambda one: one[0]).map(
    lambda blocks: "".join(f"[{name}]\nfirst = 1\n" + "".join(f"{line}\n" for line in lines) for name, lines in blocks)
)


def read_ini(text: str) -> Mapping[str, dict[str, str]]:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


@given(INI, INI)
def test_restored_ini_files_have_the_old_pytest_and_the_new_rest(new: str, old: str) -> None:
    made = pytest_sections.restore("tox.ini", new, old)
    assert made is not None
    sections = pytest_sections.INI_SECTIONS["tox.ini"]
    before, after, result = read_ini(old), read_ini(new), read_ini(made)
    assert {name: result.get(name) for name in sections} == {name: before.get(name) for name in sections}
    others = set(after) | set(result)
    assert {n: result.get(n) for n in others - set(sections)} == {n: after.get(n) for n in others - set(sections)}


TABLES = st.sampled_from(
    [
        "[tool.pytest.ini_options]\na = 1\n",
        "[tool.pytest]\nb = 2\n",
        "[tool.black]\nc = 3\n",
        "[[bin]]\nd = 4\n",
        "e = 5\n",
    ]
)
TOML = st.lists(TABLES, unique=True, max_size=4).map(lambda tables: "".join(sorted(tables, key=lambda t: t[0] == "[")))


@given(TOML, TOML)
def test_restored_toml_has_the_old_pytest_and_the_new_rest(new: str, old: str) -> None:
    made = pytest_sections.restore("pyproject.toml", new, old)
    result, before, after = (tomllib.loads(text) for text in (old if made is None else made, old, new))
    assert result.get("tool", {}).get("pytest") == before.get("tool", {}).get("pytest")
    if made is not None:
        assert result.get("tool", {}).get("black") == after.get("tool", {}).get("black")
        assert (result.get("bin"), result.get("e")) == (after.get("bin"), after.get("e"))


@pytest.mark.parametrize("parting", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_what_only_some_take_for_a_line_end_restores_the_whole_file(parting: str) -> None:
    """To one version of iniconfig what follows it is a section of another name, to another it is the old value's."""
    old = "[tool:pytest]\npython_files = test_*.py\n"
    assert pytest_sections.restore("setup.cfg", f"{old}{parting}[other]\naddopts = -p evil\n", old) is None
    assert (
        pytest_sections.restore("setup.cfg", f"[other]\nx = 1{parting}[tool:pytest]{parting}addopts = -p evil\n", "")
        is None
    )
    assert pytest_sections.restore("setup.cfg", f"{old}[other]\na = 1\n", old) is not None


@pytest.mark.parametrize("table", ['ini_options = "x"', "ini_options = 3"])
def test_options_that_are_none_are_passed_over(table: str) -> None:
    assert pytest_sections.options(f"[tool.pytest]\n{table}\n", {})["addopts"] == []


def test_a_number_that_is_too_long_for_python_is_no_toml() -> None:
    text = f"number = {'9' * 5000}\n"
    assert pytest_sections.has_section("pyproject.toml", text)
    assert pytest_sections.restore("pyproject.toml", text, "") is None
    assert pytest_sections.options(text, {}) == {"python_files": [], "pythonpath": [], "addopts": []}


def test_keys_of_thousands_of_parts_are_not_read_wherever_they_hide() -> None:
    text = f"x = ['''\n#''', {{{'.'.join('a' * 5000)} = 1}}]\n"
    assert pytest_sections.has_section("pyproject.toml", text)
    assert pytest_sections.restore("pyproject.toml", text, "") is None


def test_lines_of_dots_are_no_keys() -> None:
    text = f'art = """\n{"." * 500}\n"""\n'
    assert not pytest_sections.has_section("pyproject.toml", text)
    assert pytest_sections.restore("pyproject.toml", text, "") == text


@pytest.mark.parametrize("value", ["1", "1.5", "true", "1979-05-27", "{a = 1}", "[1, 'x']", "''"])
def test_values_of_any_kind_are_taken_as_words(value: str) -> None:
    found = pytest_sections.options(f"[tool.pytest.ini_options]\naddopts = {value}\npythonpath = 'src lib'\n", {})
    assert found["pythonpath"] == ["src", "lib"]
    assert all(isinstance(word, str) for word in found["addopts"])
