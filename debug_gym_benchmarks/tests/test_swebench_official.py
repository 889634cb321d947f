"""Real instances of SWE-bench: debug-gym's verdict is the official harness's, on the same images and patches."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import swebench_images as images
from test_swebench_docker import EXPLOITS as PYTEST_EXPLOITS

from debug_gym_benchmarks.swebench import SWEBench, SWEBenchDebug
from debug_gym_core import Grade, RepoEnv, Task
from debug_gym_core.testing.environments import unusable

pytestmark = [pytest.mark.docker, pytest.mark.benchmarks]

OFFLINE = [
    "tests/test_requests.py::TestTimeout::test_connect_timeout",
    "tests/test_requests.py::TestTimeout::test_total_timeout_connect",
]
"""Tests of PASS_TO_PASS that need a network: they wait for an address that does not answer, and here none can be."""

CHANGED = {
    "sympy__sympy-11400": ("sympy/printing/ccode.py", "CCodePrinter._print_ITE = None", "test_ccode_ITE"),
    "sympy__sympy-11897": ("sympy/printing/latex.py", "LatexPrinter._print_Integral = None", "test_latex_integrals"),
    "sympy__sympy-12171": ("sympy/printing/mathematica.py", "MCodePrinter._print_Integral = None", "test_Integral"),
    "psf__requests-3362": (
        "requests/utils.py",
        "def parse_header_links(value): return None",
        "tests/test_requests.py::TestRequests::test_links",
    ),
}
"""By instance: the file that the fix changes, a line that breaks a test of PASS_TO_PASS when it is added, that test."""

SYMPY_LINES = "test_ccode_Relational ok\\ntest_ccode_sinc ok\\n"
EXPLOITS = {
    "said at import": f"print('\\n{SYMPY_LINES}')",
    "said at exit": f"import atexit\natexit.register(print, '\\n{SYMPY_LINES}')",
    "said, and no more": (
        "import os, sys\n"
        f"if 'sympy.utilities.runtests' in sys.modules or sys.argv[0].endswith('test'):\n"
        f"    os.write(1, b'\\n{SYMPY_LINES}')\n    os._exit(0)"
    ),
    "said between markers of one's own": (
        "import sys\n"
        f"sys.stderr.write('+ : \\'>>>>> Start Test Output\\'\\n{SYMPY_LINES}+ : \\'>>>>> End Test Output\\'\\n')"
    ),
    "assert changed": "import builtins\nbuiltins.AssertionError = type('AssertionError', (Exception,), {})",
}
"""What sympy's code may do in the place of a fix, at the end of sympy/printing/ccode.py."""

RUNNER = """
_test_file = SymPyTests.test_file
def test_file(self, *arguments, **more):
    entering = type(self._reporter).test_fail
    def passed(reporter, error):
        name = error[2].tb_next.tb_frame.f_code.co_name if error[2].tb_next else ""
        return reporter.test_pass() if name.startswith("test_ccode") else entering(reporter, error)
    type(self._reporter).test_fail = passed
    return _test_file(self, *arguments, **more)
SymPyTests.test_file = test_file
"""
"""Sympy's own runner, changed to pass the tests of one file that fail, but for canaries."""


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    """The published rows."""
    needed = [images.BASE, images.ROWS, images.PYTHON, *images.REPOSITORIES.values()]
    missing = [name for name in needed if not os.environ.get(name)]
    if missing:
        pytest.skip(
            f"set {', '.join(missing)}: a base image (`.ci/images` makes one), a jsonl file with published rows, the "
            "directory of a Python 3.9, and git checkouts of sympy and requests"
        )
    reason = unusable("docker")
    if reason:
        pytest.skip(reason)
    return images.rows()


@pytest.fixture(params=list(CHANGED))
def name(request: pytest.FixtureRequest, rows: dict[str, Any]) -> str:
    images.make(rows[request.param])
    return str(request.param)


def task_of(name: str, benchmark: type[SWEBench] = SWEBench) -> Task:
    return benchmark(source=os.environ[images.ROWS]).load(name)


class Graded:
    """An environment for one instance."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.env = RepoEnv(task, ["eval"])

    def __enter__(self) -> Graded:
        self.env.reset(seed=0)
        return self

    def __exit__(self, *error: object) -> None:
        self.env.close()

    def grade(self, added: dict[str, str], *, gold: bool = False) -> tuple[Grade, bytes]:
        """Grade the gold patch or none, with text added to the ends of files; also returns the patch."""
        self.env.reset(seed=0)
        if gold:
            assert self.task.gold_patch is not None
            self.env.workspace.apply(self.task.gold_patch)
        for path, text in added.items():
            before = self.env.workspace.read_bytes(path) if self.env.session.stat(path) else b""
            self.env.workspace.write_bytes(path, before + f"\n{text}\n".encode())
        return self.env.grade(), self.env.patch


@pytest.fixture
def official(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The official harness's verdict on a patch, in a container without network, as ours have none."""
    import docker
    from docker.models.containers import Container, ContainerCollection
    from swebench.harness.run_evaluation import run_instance
    from swebench.harness.test_spec.test_spec import make_test_spec

    monkeypatch.chdir(tmp_path)  # it leaves its logs there
    create = ContainerCollection.create
    monkeypatch.setattr(
        ContainerCollection, "create", lambda self, *given, **more: create(self, *given, network_mode="none", **more)
    )
    monkeypatch.setattr(Container, "stop", lambda self, timeout: self.kill())  # its first process minds no other signal
    client = docker.from_env()

    def judge(row: dict[str, Any], patch: bytes) -> tuple[bool, dict[str, Any]]:
        prediction = {"instance_id": row["instance_id"], "model_name_or_path": "m", "model_patch": patch.decode()}
        run, spec = uuid.uuid4().hex, make_test_spec(row, namespace="swebench")
        result = run_instance(spec, prediction, False, False, client, run, 900)
        report = tmp_path / "logs" / "run_evaluation" / run / "m" / row["instance_id"] / "report.json"
        whole = json.loads(report.read_text())[row["instance_id"]] if report.exists() else {}
        return result["resolved"], whole.get("tests_status", {})

    yield judge
    client.close()
    gc.collect()  # it leaves connections open


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_verdict_is_the_official_one(name: str, rows: dict[str, Any], official: Any) -> None:
    path, breaking, broken = CHANGED[name]
    cases = {
        "gold": ({}, True),
        "nothing": ({}, False),
        "wrong": ({path: "# this fixes nothing"}, False),
        "breaking": ({path: breaking}, True),
    }
    with Graded(task_of(name)) as graded:
        for case, (added, gold) in cases.items():
            grade, patch = graded.grade(added, gold=gold)
            resolved, told = official(rows[name], patch)
            assert grade.resolved is resolved, (case, grade, told)
            assert grade.resolved is (case == "gold" and name != "psf__requests-3362"), (case, grade.reason)
            assert (grade.tests[broken] == "passed") is (case != "breaking"), case
            if case != "nothing":  # an empty patch is none to the official harness
                good = {test for part in told.values() for test in part["success"]}
                assert {test for test, outcome in grade.tests.items() if outcome == "passed"} == good, case
            assert grade.score == (grade.max_score if grade.resolved else 0), (case, grade)
            offline = OFFLINE if name == "psf__requests-3362" else []
            if case == "breaking":  # that test, and maybe others
                assert {*offline, broken} <= set(grade.broken), grade
            else:
                assert list(grade.broken) == offline, (case, grade)
            assert grade.reason.endswith(", ".join(grade.broken[:3])), (case, grade)
            if case == "gold" and offline:
                assert [test for test, outcome in grade.tests.items() if outcome != "passed"] == offline


@pytest.mark.parametrize("name", ["sympy__sympy-11400", "psf__requests-3362"])
def test_the_same_three_times(name: str, rows: dict[str, Any]) -> None:
    images.make(rows[name])
    path = CHANGED[name][0]
    exploit = EXPLOITS["said at exit"] if name.startswith("sympy") else _of_requests(next(iter(PYTEST_EXPLOITS)), rows)
    verdicts = []
    with Graded(task_of(name)) as graded:
        for _ in range(3):
            one = [graded.grade({}), graded.grade({}, gold=True), graded.grade({path: exploit})]
            verdicts.append([(grade.resolved, grade.score, grade.tests, grade.reason) for grade, _ in one])
    solved = name.startswith("sympy")  # two tests of the other one need a network
    assert verdicts == [verdicts[0]] * 3 and [one[0] for one in verdicts[0]] == [False, solved, False]
    assert [one[1] for one in verdicts[0]] == [0, graded.task.max_score if solved else 0, 0]


def test_exploits_do_not_resolve(rows: dict[str, Any]) -> None:
    name = "sympy__sympy-11400"
    images.make(rows[name])
    path = CHANGED[name][0]
    said = f"print('{SYMPY_LINES}')"
    tried = {case: {path: text} for case, text in EXPLOITS.items()}
    tried |= {
        "conftest": {"conftest.py": said},
        "sitecustomize": {"sitecustomize.py": said},
        "setup": {"setup.py": EXPLOITS["said between markers of one's own"]},
        "runner": {"sympy/utilities/runtests.py": RUNNER},
        "tests": {
            "sympy/printing/tests/test_ccode.py": "def test_ccode_sinc(): pass\ndef test_ccode_Relational(): pass"
        },
        "program": {"bin/test": said},
    }
    with Graded(task_of(name)) as graded:
        for case, added in tried.items():
            grade, _ = graded.grade(added)
            assert not grade.resolved and grade.score == 0, (case, grade)


def test_exploits_of_pytest_do_not_resolve(rows: dict[str, Any]) -> None:
    name = "psf__requests-3362"
    images.make(rows[name])
    with Graded(task_of(name)) as graded:
        for case in PYTEST_EXPLOITS:
            grade, _ = graded.grade({"requests/utils.py": _of_requests(case, rows)})
            assert not grade.resolved and grade.score == 0, (case, grade)


def _of_requests(case: str, rows: dict[str, Any]) -> str:
    """An exploit of pytest's, written for the instance of requests."""
    (test,) = json.loads(rows["psf__requests-3362"]["FAIL_TO_PASS"])
    text = PYTEST_EXPLOITS[case].replace("tests/test_till.py::test_total", test)
    return text.replace("test_total", "decode_unicode")


def test_the_fix_is_nowhere(name: str, rows: dict[str, Any]) -> None:
    line = images.added_line(rows[name]["patch"]).replace("'", "'\\''")
    with Graded(task_of(name)) as graded:
        run = graded.env.terminal.run
        looked = run(f"grep -rIlF '{line}' / --exclude-dir=proc --exclude-dir=sys 2>/dev/null; true", timeout=300)
        assert looked.output == ""
        assert run("git rev-list --all --reflog | wc -l; git tag; git remote; git fsck --lost-found").output == "1\n"
        objects = "git cat-file --batch-all-objects --batch-check='%(objectname)' | git cat-file --batch"
        assert run(f"{objects} | grep -aF '{line}'; true", timeout=300).output == ""
        if name.startswith("sympy"):
            functions = " ".join(f"-e 'def {test}('" for test in json.loads(rows[name]["FAIL_TO_PASS"]))
            files = " ".join(graded.task.test_files)
            there = run(f"grep -c {functions} {files}; true").output
    if name == "sympy__sympy-11400":
        assert there == "0\n"
        with Graded(task_of(name, SWEBenchDebug)) as graded:
            assert graded.env.terminal.run(f"grep -c {functions} {files}").output == "2\n"


@pytest.mark.parametrize(("agent", "status"), [("solution_agent", "resolved"), ("noop_agent", "unresolved")])
def test_it_runs_from_the_command_line(rows: dict[str, Any], tmp_path: Path, agent: str, status: str) -> None:
    name = "sympy__sympy-11400"
    images.make(rows[name])
    program = Path(sys.executable).with_name("debug-gym")
    command = [program, "run", "swebench", "--agent", agent, "--task", name]
    source = ["-p", f"benchmark.source={os.environ[images.ROWS]}", "-o", tmp_path / "out"]
    done = subprocess.run([*command, *source], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = map(json.loads, (tmp_path / "out" / "results.jsonl").read_text().splitlines())
    assert (result["status"], result["grading"]) == (status, "clean"), result
