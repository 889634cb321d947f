"""Names that a file of the repository has are shown as they are; others that look as if they were drawn, as numbers."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from debug_gym_core.grading.masking import DrawnNames
from debug_gym_core.grading.measure import measure
from debug_gym_core.grading.written_names import MOST, numbered
from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.sample import ENTRYPOINT

SAID = "/data/tmp_results /tmp/tmpab12cd34/tmp_outputs tmp_results"
DRAWN = "/data/tmp00000001 /tmp/tmp00000002/tmp00000003 tmp00000001"


def shown(session: Session, said: str = SAID, since: int | None = None) -> str:
    return numbered(lambda names: names.mask(said), session, time.time_ns() if since is None else since)


def test_names_that_files_have_are_left(local_session: Session) -> None:
    assert shown(local_session) == DRAWN
    local_session.write("a/b.py", b"# in tmp_results\n")
    assert shown(local_session) == "/data/tmp_results /tmp/tmp00000001/tmp00000002 tmp_results"
    local_session.write("data.json", b'["' + b"tmp_results " * 100_000 + b'", "./tmp_outputs/x"]')
    assert shown(local_session, "/data/tmp_outputs") == "/data/tmp_outputs"


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("a.txt", b"xtmp_results tmp_results1 TMP_RESULTS tmp-results"),
        ("a.bin", b"\0tmp_results"),
        ("tmp_results", b""),
        (".git/a", b"tmp_results"),
        (".venv/lib/a.py", b"tmp_results"),
    ],
)
def test_what_has_no_such_word_in_its_text_or_is_not_of_the_repository_tells_nothing(
    local_session: Session, path: str, data: bytes
) -> None:
    local_session.write(path, data)
    assert shown(local_session) == DRAWN


def test_what_a_run_has_written_tells_nothing(local_session: Session) -> None:
    began = time.time_ns()
    local_session.write("report.xml", SAID.encode())
    changed = local_session.stat("report.xml")
    assert changed is not None
    assert shown(local_session, since=min(began, changed.mtime_ns)) == DRAWN
    assert shown(local_session) == SAID


def test_of_many_names_each_is_looked_for(local_session: Session) -> None:
    names = [f"tmp{number:08}" for number in range(10_000, 10_000 + MOST)]
    local_session.write("a.py", "".join(f"{name}\n" for name in names[::2]).encode())
    assert shown(local_session, "\n".join(f"/a/{name}" for name in names)).split("\n") == [
        f"/a/{name}" if number % 2 == 0 else f"/a/tmp{number // 2 + 1:08}" for number, name in enumerate(names)
    ]


def test_where_files_cannot_be_searched_all_are_taken_for_drawn(open_session: Callable[..., Session]) -> None:
    session = open_session()
    session.write("a.py", SAID.encode())
    assert shown(session) == SAID
    session.close()
    assert shown(session) == DRAWN


def test_only_what_has_a_written_name_is_masked_twice(local_session: Session) -> None:
    asked: list[DrawnNames] = []

    def show(names: DrawnNames) -> str:
        asked.append(names)
        return names.mask(SAID)

    assert numbered(show, local_session, time.time_ns()) == DRAWN
    assert len(asked) == 1
    local_session.write("a.py", SAID.encode())
    assert numbered(show, local_session, time.time_ns()) == SAID
    assert len(asked) == 3


def test_the_texts_of_a_grade_are_the_same_whatever_its_files_have(local_session: Session) -> None:
    local_session.write("test_a.py", b"def test_a():\n    assert '/data/tmp_outputs' == '/data/tmp_results'\n")
    told = [measure(local_session, ENTRYPOINT, timeout=60, details=read).tests[0].message for read in (False, True)]
    assert "'/data/tmp00000001' == '/data/tmp00000002'" in told[0]
    assert "'/data/tmp_outputs' == '/data/tmp_results'" in told[1]
