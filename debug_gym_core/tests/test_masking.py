"""The output of test runs, made equal from run to run."""

from __future__ import annotations

import pytest

from debug_gym_core.grading.masking import DrawnNames, mask, mask_temporary

HOSTILE = ["=", "= ", "- ", "- Captured ", "_ ", "___ ", " ", "/", "/a", "/pytest-of-a", "/pytest-of-a/pytest-", " in "]
HOSTILE += ["1", "1 passed, ", " tests collected", "1 tests collected", "no tests collected ", " at 0x", "rootdir:"]
HOSTILE += ["/tmpab12cd", "/tmp"]


@pytest.mark.parametrize("before", ["", "1", "=== FAILURES ===\n"])
@pytest.mark.parametrize("line", HOSTILE)
def test_a_line_of_any_length_is_read_at_once(before: str, line: str) -> None:
    output = before + line * (1_000_000 // len(line)) + "x"
    assert mask(output) == mask_temporary(output) == output  # some took minutes


@pytest.mark.parametrize(
    ("said", "masked"),
    [
        ("1 failed, 2 passed in 0.12s\n", "1 failed, 2 passed in <time>\n"),
        ("3 passed, 1 warning in 75.01s (0:01:15)", "3 passed, 1 warning in <time>"),
        ("no tests ran in 0.00s", "no tests ran in <time>"),
        ("1/3 tests collected (2 deselected) in 0.01s", "1/3 tests collected (2 deselected) in <time>"),
        ("no tests collected (3 deselected) in 0.01s", "no tests collected (3 deselected) in <time>"),
        ("=== 1 failed in 0.12s ===", f"{'=' * 30} 1 failed in <time> {'=' * 30}"),
        ("Ran 3 tests in 0.001s", "Ran 3 tests in <time>"),
        ("platform linux -- Python 3.11.2, pytest-8.3.4\nrootdir: /here\nplugins: x-1\n\n.\n", "\n.\n"),
    ],
)
def test_what_differs_is_masked(said: str, masked: str) -> None:
    assert mask(said) == masked


@pytest.mark.parametrize(
    "said",
    ["took 1 passed in 0.1s", "===1 failed in 0.1s", "1 failed in 3s", "1 hit in 0.1s", "tests collected in 0.1s"],
)
def test_what_only_looks_like_it_is_left(said: str) -> None:
    assert mask(said) == said


def test_frames_of_what_runs_the_tests_are_left_out() -> None:
    head, tail = "Traceback (most recent call last):\n", '  File "/testbed/a.py", line 3, in f\n'
    assert mask(f'{head}  File "<debug-gym>", line 77, in main\n{tail}') == head + tail


def test_only_reports_of_failures_are_masked() -> None:
    told = "<A at 0x7f3a> in /tmp/pytest-of-me/pytest-12/test_a0\n"
    captured = f"---- Captured stdout call ----\n{told}"
    output = f"{told}=== FAILURES ===\n___ test_a ___\n{told}{captured}_ _ _ _\n{told}"
    masked = "<A> in /tmp/pytest-of-user/pytest-0/test_a0\n"
    assert mask(output) == f"{told}=== FAILURES ===\n___ test_a ___\n{masked}{captured}_ _ _ _\n{masked}"


@pytest.mark.parametrize(
    ("path", "masked"),
    [
        ("/var/folders/x.y/pytest-of-me/pytest-7/a", "/tmp/pytest-of-user/pytest-0/a"),
        ("'/pytest-of-me/pytest-7'", "'/tmp/pytest-of-user/pytest-0'"),
        ("a//b/pytest-of-me/pytest-7", "a//tmp/pytest-of-user/pytest-0"),
        ("x/pytest-of-me/pytest-7", "x/tmp/pytest-of-user/pytest-0"),
        (
            "/a/pytest-of-me/pytest-1 /b/pytest-of-me/pytest-2",
            "/tmp/pytest-of-user/pytest-0 /tmp/pytest-of-user/pytest-0",
        ),
    ],
)
def test_temporary_directories_are_named_alike(path: str, masked: str) -> None:
    assert mask_temporary(path) == masked


def test_names_that_tempfile_draws_are_numbered_as_they_are_met() -> None:
    names = DrawnNames()
    assert names.mask("'tmpq0_abcde', '/tmp/tmpq0_abcde'") == "'tmp00000001', '/tmp/tmp00000001'"
    assert names.mask("/tmp/tmpaaaaaaaa.txt tmpq0_abcde") == "/tmp/tmp00000002.txt tmp00000001"
    untouched = "tmp_counter /tmp/tmp_a /tmp/tmpLetters1 /tmp/tmp_counters src/tmp_helper0"
    assert names.mask(untouched) == untouched
    output = (
        "=== FAILURES ===\nassert '/tmp/tmpbbbbbbbb' == 'tmpq0_abcde'\n--- Captured stdout call ---\n/tmp/tmpcccccccc\n"
    )
    masked = output.replace("tmpbbbbbbbb", "tmp00000003").replace("tmpq0_abcde", "tmp00000001")
    assert mask(output, names) == masked


@pytest.mark.parametrize(
    ("said", "masked"),
    [
        ("/tmp/pytest-of-user/pytest-0/test0/tmpab12cd34/a", "/tmp/pytest-of-user/pytest-0/test0/tmp00000001/a"),
        ("open('/scratch/me/tmpab12cd34')", "open('/scratch/me/tmp00000001')"),
        ("/tmp/tmpab12cd34/tmpef56gh78", "/tmp/tmp00000001/tmp00000002"),
        ("/testbedroom/tmpab12cd34", "/testbedroom/tmp00000001"),
        ("/testbed/tmp_helpers/a.py:3", "/testbed/tmp_helpers/a.py:3"),
        ("tests/tmp_helpers/a.py", "tests/tmp_helpers/a.py"),
        (
            "/tmp/a-tmpab12cd34 /tmp/tmpab12cd345 /tmp/tmpab12cd3",
            "/tmp/a-tmpab12cd34 /tmp/tmpab12cd345 /tmp/tmpab12cd3",
        ),
    ],
)
def test_drawn_names_are_known_by_their_place(said: str, masked: str) -> None:
    assert DrawnNames().mask(said) == masked


def test_a_name_alone_is_left_in_lines_of_source() -> None:
    output = "=== FAILURES ===\nE   /tmp/tmpfilename\n{0}E   assert {1}\n"
    source = "    assert tmpfilename.read_text()\n>   assert tmpfilename\n"
    masked = output.replace("/tmp/tmpfilename", "/tmp/tmp00000001")
    assert mask(output.format(source, "tmpfilename")) == masked.format(source, "tmp00000001")
