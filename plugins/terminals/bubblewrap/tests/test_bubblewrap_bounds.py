"""Bounds on what a sandbox uses: by control groups of either version, and by looking where there are none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.sandbox.interpreter import probe
from debug_gym_core.sandbox.ownership import owner
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_bubblewrap import BubblewrapTerminal, cgroup, processes, watch
from debug_gym_terminal_bubblewrap.cgroup import Cgroup, Limits

LIMITS = Limits(memory=64 << 20, pids=50, cpus=1.5)


# -- by looking


Looked = Callable[..., tuple[str, BubblewrapTerminal]]


@pytest.fixture
def looked_after(monkeypatch: pytest.MonkeyPatch) -> Iterator[Looked]:
    """Runs a program where no control group can be made, as for users whom nobody gave any; what it printed."""
    reason = BubblewrapTerminal.unavailable()
    if reason:
        pytest.skip(reason)
    monkeypatch.setattr(cgroup, "places", lambda controllers: {})
    for module in ("sandbox", "terminal"):
        monkeypatch.setattr(f"debug_gym_terminal_bubblewrap.{module}.counts_processes", lambda: False)
    terminals: list[BubblewrapTerminal] = []

    def run(code: str, **settings: Any) -> tuple[str, BubblewrapTerminal]:
        terminal = BubblewrapTerminal(**settings)
        terminals.append(terminal)
        terminal.start(SandboxSpec(run="test", interpreter=probe(sys.executable)))
        command = 'exec 2>&1; "$0" -c "$1"; echo "status $?"'
        stream = terminal.open(["/bin/sh", "-c", command, terminal.python, code])
        output = b""
        while data := stream.read(65536):
            output += data
        return output.decode(), terminal

    yield run
    for terminal in terminals:
        terminal.stop()


@pytest.mark.parametrize(
    "code",
    [
        "import time; held = b'x' * (400 << 20); time.sleep(60)",
        "import os, time; f = os.memfd_create('f'); os.posix_fallocate(f, 0, 400 << 20); time.sleep(60)",
    ],
    ids=["its own", "in a file without a name"],
)
def test_memory_is_bounded_by_looking(looked_after: Looked, code: str) -> None:
    output, terminal = looked_after(code, memory="100m")
    assert "status 137" in output
    assert "out of memory: processes killed: 1" in terminal.log() and terminal.out_of_memory() == 1


def test_processes_are_bounded_by_looking(looked_after: Looked) -> None:
    code = "import subprocess; [subprocess.Popen(['sleep', '60']) for _ in range(40)]; input()"
    output, terminal = looked_after(code, pids=20)
    assert "status 137" in output
    assert "processes were killed: there were more than 20" in terminal.log()


def test_why_something_is_killed_is_told_before_it_is() -> None:
    """Else who misses it would look up why when nothing stands there yet."""
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60 & sleep 60 & echo; wait"], stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        told: list[int] = []
        namespace = Path("/proc/self/ns/pid").stat().st_ino
        bounds = watch._Watched(namespace, None, 2, lambda _: told.append(len(list(processes.descendants(shell.pid)))))
        watch._look(shell.pid, bounds)
    assert told == [3]
    assert shell.returncode is not None


def test_what_is_within_the_bounds_is_left_alone(looked_after: Looked) -> None:
    code = "import time; held = b'x' * (20 << 20); time.sleep(0.5); print('done')"
    output, terminal = looked_after(code, memory="100m", pids=20, cpus=1)
    assert output == "done\nstatus 0\n"
    assert terminal.log() == ""
    notes = "\n".join(terminal.notes())
    for part in ("memory: no control group", "pids: no control group", "cpus: no control group"):
        assert part in notes


# -- by control groups, in files that look like the kernel's


@pytest.fixture
def hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Have /proc tell of groups below the temporary directory."""
    real = cgroup._text

    def tell(groups: str, mounts: str) -> None:
        files = {"/proc/self/cgroup": groups, "/proc/self/mountinfo": mounts.replace("ROOT", str(tmp_path))}
        monkeypatch.setattr(cgroup, "_text", lambda path: files.get(str(path)) or real(path))

    return tell


def test_version_1_has_a_hierarchy_a_controller(hierarchy: Any, tmp_path: Path) -> None:
    for name in ("memory/user", "pid s", "cpu,cpuacct"):
        (tmp_path / name).mkdir(parents=True)
    hierarchy(
        "12:memory:/user\n11:pids:/elsewhere\n3:cpu,cpuacct:/\n1:name=systemd:/\n",
        "20 1 0:1 / /sys rw - sysfs sysfs rw\n"
        "31 20 0:27 / ROOT/memory rw shared:9 - cgroup cgroup rw,memory\n"
        "32 20 0:28 /within ROOT/pid\\040s rw - cgroup cgroup rw,pids\n"
        "33 20 0:29 / ROOT/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
    )
    group = Cgroup(LIMITS)
    assert group.bounded == {"memory", "pids", "cpu"}
    group.add(os.getpid())
    (memory,) = (tmp_path / "memory" / "user").iterdir()
    (pids,) = (tmp_path / "pid s").iterdir()
    (cpu,) = (tmp_path / "cpu,cpuacct").iterdir()
    assert {file.name: file.read_text() for file in memory.iterdir()} == {
        "memory.limit_in_bytes": str(64 << 20),
        "memory.memsw.limit_in_bytes": str(64 << 20),
        "cgroup.procs": str(os.getpid()),
    }
    assert (pids / "pids.max").read_text() == "50"
    period, quota = (int((cpu / f"cpu.cfs_{name}_us").read_text()) for name in ("period", "quota"))
    assert quota == 1.5 * period
    assert group.out_of_memory() == 0
    (memory / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert group.out_of_memory() == 3


def test_version_2_is_switched_on_where_nobody_else_is(hierarchy: Any, tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("memory\n")
    hierarchy("0::/\n", "35 20 0:30 / ROOT rw - cgroup2 cgroup rw\n")
    places = cgroup.places(("memory", "pids", "cpu"))
    assert set(places) == {"memory", "cpu"}
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    group = Cgroup(LIMITS)
    assert group.bounded == {"memory", "cpu"}
    (made,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert (made / "memory.max").read_text() == str(64 << 20)
    assert (made / "cpu.max").read_text() == "150000 100000"


def test_version_2_is_switched_on_once_for_all_sandboxes(
    hierarchy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By two rules of the kernel's: no bounds below a group that holds processes, none but those of the group above."""
    own = tmp_path / "own"
    own.mkdir()
    place = {"of us": own}
    switched: dict[Path, set[str]] = {tmp_path: {"memory", "pids", "cpu"}}
    hierarchy("", "35 20 0:30 / ROOT rw - cgroup2 cgroup rw\n")
    text = cgroup._text

    def read(path: Path) -> str:
        if path == Path("/proc/self/cgroup"):
            return f"0::/{place['of us'].relative_to(tmp_path)}\n"
        known = {
            "cgroup.controllers": switched.get(path.parent.parent, set()),
            "cgroup.subtree_control": switched.get(path.parent, set()),
            "cgroup.procs": {str(os.getpid())} if path.parent == place["of us"] else set(),
        }
        return "\n".join(known[path.name]) if path.name in known else text(path)

    def write(path: Path, value: str) -> bool:
        group, above = path.parent, switched.get(path.parent.parent, set())
        if path.name == "cgroup.subtree_control":
            if group == place["of us"] or value[1:] not in above:
                return False
            switched.setdefault(group, set()).add(value[1:])
        elif path.name == "cgroup.procs":
            if switched.get(group):
                return False
            place["of us"] = group
        return path.name.partition(".")[0] in {"cgroup", *above}

    monkeypatch.setattr(cgroup, "_text", read)
    monkeypatch.setattr(cgroup, "_write", write)
    for _ in range(3):
        assert Cgroup(LIMITS).bounded == {"memory", "pids", "cpu"}
        assert place["of us"] == own / cgroup._LEAF


def test_groups_that_may_not_be_made_are_not_used(hierarchy: Any, tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("memory pids\n")
    (tmp_path / "cgroup.subtree_control").mkdir()  # which cannot be written
    (tmp_path / "cgroup.procs").write_text("1\n")  # who is not ours
    hierarchy("0::/\n", "35 20 0:30 / ROOT rw - cgroup2 cgroup rw\n36 20 0:31 / ROOT/no rw - cgroup cgroup rw,cpu\n")
    assert cgroup.places(("memory", "pids", "cpu")) == {}
    group = Cgroup(LIMITS)
    assert group.bounded == set() and group.out_of_memory() == 0
    group.add(os.getpid())
    group.remove()


def test_groups_whose_maker_is_gone_are_removed(hierarchy: Any, tmp_path: Path) -> None:
    hierarchy("5:pids:/\n", "32 20 0:28 / ROOT rw - cgroup cgroup rw,pids\n")
    boot, namespace, _, _ = owner().split("/")
    gone = tmp_path / f"{cgroup._PREFIX}{boot}~{namespace}~4194303~1.0"
    elsewhere = tmp_path / f"{cgroup._PREFIX}{boot}~{int(namespace) + 1}~4194303~1.0"
    odd = tmp_path / f"{cgroup._PREFIX}something"
    own = Cgroup(LIMITS)._directories["pids"][0]
    for directory in (gone, elsewhere, odd):
        directory.mkdir()
    assert cgroup.clean() == [str(gone)]
    assert not gone.exists() and elsewhere.exists() and odd.exists() and own.exists()
