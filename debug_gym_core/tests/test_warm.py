"""Warm starts: a program that is forked from a zygote must be as one that is started."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from warm_programs import AT_ONCE, BOOT, MARK, SAY, SHELF, WARM, Programs, blob, zygotes

from debug_gym_core.errors import SandboxError
from debug_gym_core.sandbox.guest import nursery
from debug_gym_core.sandbox.warm import Warm

SELF = """
import gc, os, resource, signal, time
end = time.monotonic() + 10
while open("/proc/self/oom_score_adj").read() == "0\\n" and time.monotonic() < end:
    time.sleep(0.01)  # on a busy machine it may run for a moment before it is put in its place
main = vars(sys.modules["__main__"])
state = dict(
    fds=len(os.listdir("/proc/self/fd")),
    argv=sys.argv[:1], count=len(sys.argv), original=len(getattr(sys, "orig_argv", ())),
    environment=sorted(os.environ.items()), cwd=os.getcwd(), path=sys.path,
    meta=[getattr(one, "__name__", type(one).__name__) for one in sys.meta_path if type(one).__name__ != "Shelf"],
    main=sorted(name for name in main if name not in ("data", "marshal")), name=main["__name__"],
    handlers=[str(signal.getsignal(n)) for n in range(1, 65)], mask=sorted(signal.pthread_sigmask(0, [])),
    limits=[resource.getrlimit(n) for n in range(10)], umask=os.umask(0o22),
    threads=len(os.listdir("/proc/self/task")),
    session=(os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()), nice=os.nice(0),
    victim=open("/proc/self/oom_score_adj").read(), flags=list(sys.flags), hash=hash("abc"),
    streams=[(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.isatty(), s.fileno())
             for s in (sys.stdin, sys.stdout, sys.stderr)],
    terminal=[os.isatty(n) and os.tcgetpgrp(n) == os.getpid() for n in range(3)],
    gc=(gc.isenabled(), gc.get_threshold()), limit=sys.getrecursionlimit(), warnoptions=sys.warnoptions,
    executable=sys.executable, prefix=sys.prefix, trace=sys.gettrace() is None, unbuffered=sys.stdout.write_through
    if hasattr(sys.stdout, "write_through") else None,
)
with open("/dev/null") as file:
    state["next"] = file.fileno() > 2
say(state)
"""


@pytest.mark.parametrize("kind", ["pipe", "pty", "flags"])
@pytest.mark.debugger
def test_a_warm_program_finds_itself_as_a_cold_one_does(programs: Programs, kind: str) -> None:
    programs.pty = kind == "pty"
    if kind == "flags":
        programs.flags = ["-u", "-O", "-W", "ignore"]
        programs.env = {"SOME": "variable", "LANG": None, "PYTHONPATH": "src"}
    cold, warm = programs.both(SELF)
    if os.environ.get("DEBUG_GYM_GUEST_COVERAGE"):  # its probes hold a descriptor, of the zygote's program too
        warm["fds"] = cold["fds"]
    assert warm == cold


@pytest.mark.parametrize("pty", [False, True])
def test_the_first_program_of_its_kind_is_warm_if_it_is_to_be(programs: Programs, pty: bool) -> None:
    programs.pty = pty
    programs.warm = None
    cold = programs.run(SELF)
    programs.warm = AT_ONCE
    first = programs.run(SELF)
    assert (cold[1], first[1]) == (False, True)
    if os.environ.get("DEBUG_GYM_GUEST_COVERAGE"):
        first[0]["fds"] = cold[0]["fds"]
    assert first[0] == cold[0]
    known = zygotes(programs.session.guest()["pid"])
    assert programs.run(f"import json; say('decimal' in {SHELF}.modules)") == (True, True)
    assert len(known) == 1 and zygotes(programs.session.guest()["pid"]) == known


def at_start(directory: Path, source: str) -> None:
    """Have each start of an interpreter run some code: not as `sitecustomize`, of which Debian's has one already."""
    (directory / "runs_first.py").write_text(source)
    (directory / "runs_first.pth").write_text("import runs_first\n")


def test_a_first_program_starts_cold_where_none_can_be_warm(programs: Programs, venv: Path) -> None:
    programs.warm = AT_ONCE
    at_start(venv, "print('hello', flush=True)\n")
    for _ in range(2):
        with programs.start("say(0); print('bye')") as process:
            assert process.receive(30) == b"0"
            assert process.wait(30) == 0
            assert not process.warm and process.take_output()[0] == "hello\nbye\n"
    assert not zygotes(programs.session.guest()["pid"])


@pytest.mark.debugger
def test_a_first_program_does_not_wait_for_an_interpreter_that_hangs(programs: Programs, venv: Path) -> None:
    programs.warm = AT_ONCE
    mark = MARK.encode()
    at_start(venv, f"import time\nwhile {mark!r} in open('/proc/self/cmdline', 'rb').read(): time.sleep(0.1)\n")
    with programs.start("say(0)", timeout=6) as process:
        assert process.receive(30) == b"0"
        assert process.wait(30) == 0
    assert not process.warm and not process.timed_out
    assert not zygotes(programs.session.guest()["pid"])


ENDINGS = {
    "status": "say(0); sys.exit(3)",
    "at once": "import os; say(0); print('lost', end=''); os._exit(4)",
    "signal": "import os, signal; say(0); os.kill(os.getpid(), signal.SIGSEGV)",
    "exception": "say(0); 1 / 0",
    "atexit": "import atexit; atexit.register(print, 'bye'); say(0)",
    "text": "say(0); sys.exit('because')",
}


@pytest.mark.debugger
@pytest.mark.parametrize("pty", [True, False])
def test_endings(programs: Programs, pty: bool) -> None:
    programs.pty = pty
    programs.heat()
    found: dict[bool, list[Any]] = {}
    for warm in (None, WARM):
        programs.warm = warm
        for source in ENDINGS.values():
            with programs.start(source) as process:
                status = process.wait(30)
                output = process.take_output()[0]
            assert process.warm is (warm is not None)
            lines = [line for line in output.splitlines() if "<string>" not in line]
            found.setdefault(warm is not None, []).append(
                (status, [one for one in lines if "Traceback" not in one][-2:])
            )
    assert found[True] == found[False]


POOLS = """
import multiprocessing, random, subprocess, threading
def double(n):
    return 2 * n
if __name__ == "program":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        doubled = pool.map(abs, [-1, -2])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        spawned = pool.map(abs, [-3])
    thread = threading.Thread(target=doubled.append, args=(5,))
    thread.start()
    thread.join()
    out = subprocess.check_output([sys.executable, "-c", "print(input())"], input=b"in\\n").decode()
    say([doubled, spawned, out, threading.active_count(), threading.current_thread() is threading.main_thread()])
"""


@pytest.mark.debugger
def test_pools_threads_and_children(programs: Programs) -> None:
    cold, warm = programs.both(POOLS)
    assert warm == cold == [[1, 2, 5], [3], "in\n", 1, True]


def test_forks_draw_other_random_numbers(programs: Programs) -> None:
    programs.warm = Warm((*WARM.imports, "random", "uuid"))
    programs.heat()
    source = "import random, tempfile, uuid; say([random.random(), str(uuid.uuid4()), tempfile.mktemp()])"
    one, two = programs.run(source), programs.run(source)
    assert one[1] and two[1]
    assert not set(one[0]) & set(two[0])


@pytest.mark.faults
def test_a_warm_program_is_ended_with_all_that_it_started(programs: Programs) -> None:
    programs.pty = True
    programs.heat()
    source = """
import os, subprocess, time
others = [subprocess.Popen(["sleep", "600"], start_new_session=True).pid]
child = os.fork()
if child == 0:
    os.setsid()
    grandchild = os.fork()
    time.sleep(600)
others.append(child)
say(others)
{then}
"""
    for then in ("time.sleep(600)", "pass"):
        with programs.start(source.format(then=then)) as process:
            others = json.loads(process.receive(30) or b"")
            if then == "pass":
                process.wait(30)
        assert process.warm
        assert not [one for one in [process.pid, *others] if alive(one)]
    assert programs.run("say(0)")[1]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_signals_input_and_timeouts_reach_a_warm_program(programs: Programs) -> None:
    programs.pty = True
    programs.heat()
    with programs.start("say(0); print(input()); sys.stdout.flush(); say(1); import time; time.sleep(600)") as process:
        process.receive(30)
        process.write_stdin(b"typed\n")
        process.receive(30)
        assert "typed" in process.take_output()[0]
        process.signal(signal.SIGTERM)
        assert process.wait(30) == -signal.SIGTERM
    # Short sleeps: a signal that comes just before a system call waits for its end in any Python.
    with programs.start("import time; say(0)\nwhile True: time.sleep(0.05)") as process:
        process.receive(30)
        process.write_stdin(b"\x03")  # from the terminal: it is the program's own
        assert process.wait(30) in (1, -signal.SIGINT)
        assert "KeyboardInterrupt" in process.take_output()[0]
    assert process.warm
    process = programs.session.process(
        [programs.python, "-c", BOOT, "{channel}", "{blob:code}"],
        blobs={"code": blob(SAY + "say(0); import time; time.sleep(600)")},
        env=programs.env, pty=True, warm=WARM, timeout=1,
    )  # fmt: skip
    with process:
        assert process.wait(30) == -signal.SIGTERM
    assert process.timed_out and process.warm


@pytest.mark.debugger
def test_a_killed_zygote_costs_nothing_but_the_warmth(programs: Programs) -> None:
    programs.heat()
    kill = """
import glob, os, signal
for file in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        with open(file, "rb") as text:
            ours = b"{mark}" in text.read() and os.path.samefile(os.path.dirname(file) + "/cwd", ".")
    except OSError:  # gone since
        continue
    process = int(file.split("/")[2])
    if ours and process != os.getpid():
        os.kill(process, {signal})
say(0)
"""
    for number in ("signal.SIGKILL", "signal.SIGSTOP"):
        programs.heat()
        assert programs.run(kill.replace("{signal}", number).replace("{mark}", MARK)) == (0, True)
        assert programs.run("say(1)")[0] == 1
    programs.heat()


@pytest.mark.faults
def test_a_fork_that_dies_before_it_speaks_is_started_cold_for_good(programs: Programs) -> None:
    programs.heat()
    source = """
import os, select, socket
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, os.dup(int(sys.argv[1]))) as channel:
    asked = channel.recv(100)
print("an attempt", flush=True)
if any(type(one).__name__ == "Shelf" for one in sys.meta_path):
    os._exit(9)
say(asked.decode("latin-1")[4:])
"""
    with programs.start(source) as process:
        process.send(b"question")
        assert json.loads(process.receive(30) or b"") == "question"
        assert process.wait(30) == 0
        assert process.take_output()[0] == "an attempt\n"
    assert not process.warm
    for _ in range(3):
        assert programs.run("say(1)") == (1, False)


@pytest.mark.faults
@pytest.mark.parametrize("warm", [WARM, AT_ONCE], ids=["later", "at once"])
@pytest.mark.parametrize(
    "change",
    [
        {"env": {"PYTHONHASHSEED": None}},
        {"env": {"PYTHONHASHSEED": "random"}},
        {"env": {"LD_PRELOAD": "/nowhere.so"}},
        {"flags": ["-X", "importtime"]},
        {"flags": ["-I"]},
        {"warm": None},
    ],
    ids=str,
)
def test_what_must_start_cold_leaves_no_zygote(programs: Programs, change: dict[str, Any], warm: Warm) -> None:
    programs.warm = warm
    for name, value in change.items():
        setattr(programs, name, value)
    for _ in range(nursery.OFTEN + 1):
        assert programs.run("say(0)") == (0, False)
    assert not zygotes(programs.session.guest()["pid"])


@pytest.mark.debugger
def test_while_the_host_is_silent_an_interpreter_is_prepared(programs: Programs) -> None:
    guest = programs.session.guest()["pid"]
    assert programs.run("say(0)") == (0, False)
    end = time.monotonic() + 60
    while not zygotes(guest):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.debugger
def test_more_kinds_of_programs_than_there_is_room_for_all_are_heard(programs: Programs) -> None:
    def is_warm(number: int) -> bool:
        programs.env = {"KIND": str(number)}
        with programs.start("import os\nsay(1)\nos.read(int(sys.argv[1]), 100)") as process:
            assert process.receive(30) == b"1"
            process.send(b"go on")
            assert process.wait(30) == 0
        return process.warm

    assert not any(map(is_warm, range(3)))  # all of them are wished for before the first is prepared
    for number in (2, 1, 0):
        end = time.monotonic() + 60
        while not is_warm(number):
            assert time.monotonic() < end, "there is no zygote"
            time.sleep(0.05)


def test_a_host_that_speaks_comes_before_preparations(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(nursery.time, "monotonic", lambda: now)
    monkeypatch.setattr(nursery, "warm_kind", lambda header, surroundings: header["kind"])
    monkeypatch.setattr(nursery, "memory_is_short", lambda: False)
    kept = nursery.Nursery(lambda: SimpleNamespace(requests=set(), ready=False), lambda child: None)

    def prepared() -> list[str]:
        return [header["kind"] for _, header in kept.due(None)]

    kept.wish({"kind": "eval"}, None)
    for _ in range(5):
        now += nursery.REST * 0.9
        assert prepared() == []
        kept.put_off()
    now += nursery.REST
    assert kept.moment == now and prepared() == ["eval"] and prepared() == []
    for _ in range(nursery.OFTEN - 1):
        kept.wish({"kind": "pdb"}, None)
        assert prepared() == []
    kept.wish({"kind": "pdb"}, None)
    kept.put_off()
    assert prepared() == ["pdb"]
    kept.wish({"kind": ""}, None)  # such as always start cold
    assert kept.moment is None


@pytest.mark.debugger
def test_zygotes_are_few_and_end_with_the_sandbox(programs: Programs) -> None:
    for number in range(4):
        programs.env = {"KIND": str(number)}
        programs.heat()
    guest = programs.session.guest()["pid"]
    end = time.monotonic() + 20
    while len(zygotes(guest)) > 2 and time.monotonic() < end:
        time.sleep(0.05)
    known = zygotes(guest)
    assert len(known) == 2
    programs.session.close()
    assert not [one for one in known if alive(one)]
    with pytest.raises(SandboxError):
        programs.run("say(0)")
