"""What agents may see and change, with exactly git's reading of the patterns."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import examples

from debug_gym_core.errors import UsageError
from debug_gym_core.sandbox.patterns import Patterns
from debug_gym_core.workspace.rules import Rules
from debug_gym_core.workspace.snapshot import Snapshot


def rules(ignored: str = "", **outside: tuple[str, ...]) -> Rules:
    return Rules({"": ignored.encode()}, **outside)


def test_what_is_below_an_ignored_directory_is_ignored() -> None:
    found = rules("build/\n!build/keep.py\n")
    assert found.ignored("build", is_dir=True)
    assert found.ignored("build/deep/x.py")
    assert found.ignored("build/keep.py")
    assert not found.ignored("build", is_dir=False)
    assert not found.ignored("src/x.py")


def test_a_later_pattern_takes_back() -> None:
    found = rules("*.log\n!keep.log\n")
    assert found.ignored("a/x.log")
    assert not found.ignored("a/keep.log")


def test_the_nearest_file_decides() -> None:
    found = Rules({"": b"*.txt\n", "docs": b"!*.txt\n", "docs/old": b"/a.txt\n"})
    assert found.ignored("x.txt")
    assert not found.ignored("docs/x.txt")
    assert found.ignored("docs/old/a.txt")
    assert not found.ignored("docs/old/b/a.txt")


def test_caches_and_version_control_are_always_ignored() -> None:
    found = rules()
    for path in (".git/config", ".git", "a/__pycache__/x.cpython-311.pyc", "a/x.pyc", ".pytest_cache/v", "sub/.git"):
        assert found.ignored(path), path
    assert not found.ignored(".gitignore")


def test_rule_files_cannot_be_changed() -> None:
    found = rules()
    assert found.readonly(".debugignore") and found.readonly("sub/.debugreadonly")
    assert not found.ignored(".debugignore")


def test_patterns_of_task_and_config_come_first() -> None:
    found = rules("!secret.py\n", ignore=("secret.py",), readonly=("/tests/",))
    assert found.ignored("secret.py")
    assert found.readonly("tests/a/test_x.py")
    assert not found.readonly("a/tests/test_x.py")


@pytest.mark.parametrize("pattern", ["[/]", "a[", "[[:nope:]]"])
def test_a_pattern_that_matches_nothing_is_an_error_of_the_config_s(pattern: str) -> None:
    assert [Rules({"": f"{pattern}\nx\n".encode()}).ignored(path) for path in ("a", "a[", "x")] == [False, False, True]
    with pytest.raises(UsageError, match=rf"'{re.escape(pattern)}' is not a pattern as \.gitignore has them: "):
        Rules(ignore=[pattern])


def test_a_wrong_pattern_of_the_config_is_an_error_and_one_of_a_file_is_passed_over() -> None:
    with pytest.raises(UsageError, match="is not a pattern"):
        Rules(ignore=["!"])
    found = rules("!\n//\nx.py\n")
    assert found.ignored("x.py")


def test_line_ends_byte_order_mark_and_comments_of_rule_files() -> None:
    found = Rules({"": "\ufeffa.py\r\n# b.py\r\n\r\n\\#c.py\r\n".encode()})
    assert found.ignored("a.py") and found.ignored("#c.py")
    assert not found.ignored("b.py")


def test_line_ends_in_names_are_characters_like_others() -> None:
    found = rules("*.key\nsecret\n")
    assert found.ignored("a\nb/x.key")
    assert not found.ignored("secret\n")
    assert found.ignored("a\n/secret")


def test_rules_come_from_the_snapshot(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".debugignore").write_text("hidden.py\n")
    (tmp_path / "sub" / ".debugreadonly").write_text("*.json\n")
    (tmp_path / "odd [env]").mkdir()
    (tmp_path / "odd [env]" / "pyvenv.cfg").touch()
    with Snapshot.take(tmp_path) as snapshot:
        found = Rules.of(snapshot, ignore=["*.csv"], readonly=["LICENSE"])
    assert found.ignored("hidden.py") and found.ignored("a.csv")
    assert found.readonly("sub/a.json") and found.readonly("LICENSE")
    assert not found.readonly("a.json")
    assert found.ignored("odd [env]/lib/x.py") and not found.ignored("odd e/lib/x.py")


names = st.sampled_from(["a", "b", "ab", "a.py", "b.py", "x y", "a.d", "[a]"])
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
characters = st.sampled_from([*"ab*?/!# ", "**", ".py", ".d", "[ab]", "[!a]", "[a", "\\a", "\\[a]", "x y"])
sets = st.sampled_from(
    [
        "[[:alpha:]]",
        "[![:punct:]]",
        "[+-9]",
        "[--a]",
        "[\\]]",
        "[a-\\]]",
        "[[:nope:]]",
        "[]-a]",
        "[a-[:digit:]]",
        "\t",
        " ",
    ]
)
lines = st.lists(characters | sets, min_size=1, max_size=5).map("".join)
pattern_files = st.dictionaries(
    st.sampled_from(["", "a", "b", "a/b", "a.d"]), st.lists(lines, min_size=1, max_size=5), min_size=1, max_size=3
)


@pytest.mark.parametrize(
    "pattern", ["[a/[ab]", "[a/]b", "[/]", "[!/]", "[!/a]", "[+-/]", "[/-1]", "[a/", "x[/]a", "[]/]"]
)
def test_slashes_in_brackets(pattern: str) -> None:
    files = ("a", "b", "ab", "a]b", "]", "0", "-", "x/a", "x/ab", "x/0")
    same_as_git(pattern, files)


@pytest.mark.parametrize("pattern", ["****/b", "!***/b", "x/***", "a***b", "***/*b", "\\***b"])
def test_more_than_two_stars(pattern: str) -> None:
    same_as_git(pattern, ("b", "x/b", "ab", "axb", "x/y/b", "*b"))


@pytest.mark.parametrize("pattern", ["[^]x]b", "[!]x]b", "[^]]b", "[]x]b", "[^x]b", "[^^]b", "[!!]b", "[^]-a]b"])
def test_a_bracket_in_brackets(pattern: str) -> None:
    files = ("]b", "xb", "ab", "^b", "!b", "[b", "-b", "x/b", "b")
    same_as_git(pattern, files)


@pytest.mark.parametrize(
    "pattern",
    [
        *("[[:alpha:]]b", "[![:alpha:]]b", "[[:punct:]]b", "[[:digit:]x]b", "[[:nope:]]b", "[[:alpha]b", "[:x:]b"),
        *("[+-9]b", "x[+-9]b", "[--a]b", "[\\]]b", "[a-\\]]b", "[x-]b", "[-x]b", "[a-c-e]b", "[z-ax]b"),
        *("[a-[:digit:]]b", "[]-[:digit:]]b", "[a-b-[:digit:]]b", "[[:alpha:]-[:digit:]]b", "b\t", " b", "b "),
    ],
)
def test_ranges_classes_and_escapes_in_brackets(pattern: str) -> None:
    files = (
        "]b",
        "xb",
        "ab",
        "^b",
        "!b",
        "[b",
        "-b",
        "x/b",
        "b",
        "1b",
        "b\t",
        " b",
        "b ",
        "eb",
        "g]b",
        "1]b",
        "[]b",
        "]]b",
    )
    same_as_git(pattern, files)


@examples(60)
@given(st.sets(paths, min_size=1, max_size=8), pattern_files)
@example({"a"}, {"": ["aa", "[a/[ab]"]})
def test_the_verdict_is_that_of_git(files: set[str], patterns: dict[str, list[str]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        entries: dict[str, bool] = {}
        for path in sorted(files, key=lambda path: -path.count("/")):
            if path in entries:
                continue
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            if not (root / path).exists():
                (root / path).touch()
            entries[path] = (root / path).is_dir()
            entries.update({str(above): True for above in Path(path).parents if str(above) != "."})
        given_files = {where: "\n".join(text).encode() for where, text in patterns.items() if (root / where).is_dir()}
        for where, text in given_files.items():
            (root / where / ".gitignore").write_bytes(text)
        expected = ignored_by_git(root, list(entries))
    found = Rules(given_files)
    assert {path for path, is_dir in entries.items() if found.ignored(path, is_dir)} == expected


def same_as_git(pattern: str, files: tuple[str, ...]) -> None:
    """Assert that git ignores the same of some files, where there is but one pattern."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "x").mkdir()
        (Path(directory) / ".gitignore").write_text(pattern)
        expected = ignored_by_git(Path(directory), list(files))
    found = rules(f"{pattern}\n")
    assert {path for path in files if found.ignored(path)} == expected


def ignored_by_git(root: Path, entries: list[str]) -> set[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    subprocess.run(["git", "init", "-q"], cwd=root, env=environment, check=True)
    # `./` keeps git from reading a leading `:` or `!` as something else; it prints the path as given.
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=root,
        env=environment,
        input="\0".join(entries).encode(),
        capture_output=True,
    )
    assert done.returncode in (0, 1), done.stderr
    return {name.decode() for name in done.stdout.split(b"\0") if name}


def test_one_pattern_says_nothing_of_what_is_below() -> None:
    assert Patterns(["a/"]).match("a", True) is True
    assert Patterns(["a/"]).match("a/b", False) is None
    assert Patterns(["a", "!a"]).match("a", False) is False


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 30 + "b", "a" * 255),
        ("*?" * 60 + "b", "a" * 255),
        pytest.param("**/a/" * 30 + "b", "a/" * 2000 + "c", marks=pytest.mark.faults),
    ],
)
def test_a_pattern_that_nearly_matches_in_many_ways_does_not_try_them_all(pattern: str, path: str) -> None:
    rules = Rules({"": f"{pattern}\n".encode()})
    assert not rules.ignored(path)
    assert rules.ignored(f"{path.removesuffix('c')}b")


@pytest.mark.parametrize("pattern", ["[" + "-" * 500, "[]" + "-" * 500, "[" + "a-" * 500, "[" + "[:a" * 500])
def test_brackets_that_are_left_open_are_not_read_in_all_ways(pattern: str) -> None:
    with pytest.raises(UsageError, match="a bracket is left open"):
        Patterns([pattern], lenient=False)
