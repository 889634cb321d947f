"""Which files hold a test, told by its id and by what the pristine files name."""

from __future__ import annotations

import pytest

from debug_gym_core.grading.places import Places

FILES = {
    "test_top.py": "def test_a(): ...\n",
    "calc.py": "def add(): ...\n",
    "check_a.py": "def run(): ...\n",
    "src/check_a.py": "def run(): ...\n",
    "checks/check_a.py": "class TestA:\n    def test_sum(self): ...\n",
    "checks/check_b.py": "TestB = made_from('table.yaml')\n",
    "more/deep/test_c.py": "for n in range(9): globals()[f'test_{n}'] = made(n)\n",
    "pkg/__init__.py": "class TestP:\n    def test_p(self): ...\n",
    "pkg/test_d.py": "class TestD(Base): ...\n",
    "old/pkg/test_d.py": "class TestD(Base): ...\n",
    "docs/guide.rst": ">>> 1 + 1\n2\n",
    "guide.rst": "the guide, in rst\n",
    "tests/test_e.py": "class TestE:\n    def test_a(self): ...\n",
    "sub/tests/test_e.py": "class TestE:\n    def test_b(self): ...\n",
}


@pytest.mark.parametrize(
    ("test", "found"),
    [
        pytest.param("test_top.py::test_a", ("test_top.py",), id="its path from the root"),
        pytest.param("test_top.py::test_a[x::y-a.b]", ("test_top.py",), id="with a parameter"),
        pytest.param("check_a.py::TestA::test_sum", ("check_a.py", "checks/check_a.py"), id="a namesake at the root"),
        pytest.param("check_a.TestA.test_sum", ("check_a.py", "checks/check_a.py"), id="of unittest, likewise"),
        pytest.param("check_b.py::TestB::test_row", ("checks/check_b.py",), id="a class that a function makes"),
        pytest.param("deep/test_c.py::test_4", ("more/deep/test_c.py",), id="a test that code makes"),
        pytest.param("pkg.test_d.TestD.test_inherited", ("pkg/test_d.py",), id="the root's before another's"),
        pytest.param("test_d.TestD.test_x", ("pkg/test_d.py", "old/pkg/test_d.py"), id="two that may be it"),
        pytest.param("pkg.TestP.test_p", ("pkg/__init__.py",), id="in a package itself"),
        pytest.param("__init__.py::pkg.TestP", ("pkg/__init__.py",), id="in a package that is tested from inside"),
        pytest.param("pkg/__init__.py::TestP::test_p", ("pkg/__init__.py",), id="in a package, by its path"),
        pytest.param("docs/guide.rst::guide.rst", ("docs/guide.rst",), id="a text"),
        pytest.param("guide.rst::guide.rst", ("guide.rst",), id="a text with a namesake"),
        pytest.param(
            "tests/test_e.py::TestE::test_b",
            ("tests/test_e.py", "sub/tests/test_e.py"),
            id="the root's names the class, another the test as well",
        ),
        pytest.param("linked/test_e.py::TestE::test_a", ("linked/test_e.py",), id="through a link to a directory"),
        pytest.param("linked.test_e.TestE.test_a", ("linked/test_e.py",), id="of unittest, likewise through a link"),
        pytest.param("calc.py::calc.add", ("calc.py",), id="a doctest"),
        pytest.param("gone.py::test_a", (), id="in no file"),
        pytest.param("make check", (), id="a command"),
    ],
)
def test_the_files_of_a_test(test: str, found: tuple[str, ...]) -> None:
    def text(path: str) -> str:
        return FILES[path.replace("linked/", "tests/")]

    assert Places(FILES, text, "linked/test_e.py".__eq__).find(test) == found
