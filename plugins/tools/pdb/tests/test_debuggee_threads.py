"""Threads and asyncio tasks: where stops and steps are in them."""

from __future__ import annotations

from typing import Any

import pytest
from debugged_programs import dedent

# -- threads

THREADS = """\
    import threading

    ready = threading.Barrier(4)
    go = threading.Event()

    def deeper(n):
        ready.wait()
        go.wait()

    def work(n):
        deeper(n)

    def idle():
        x = 1
        ready.wait()
        go.wait()

    threads = [threading.Thread(target=work, args=(n,), name="worker-%d" % n) for n in range(2)]
    threads.append(threading.Thread(target=idle, name="idle"))
    for thread in threads:
        thread.start()
    ready.wait()
    x = 1
    go.set()
    for thread in threads:
        thread.join()
"""


@pytest.mark.parametrize("command", ["threads", "th"])
def test_all_threads_are_listed(debug: Any, command: str) -> None:
    program = debug("python app.py", dedent(THREADS))
    program.do("b 23")
    program.do("c")
    lines = program.do(command)["out"].splitlines()
    assert lines[0] == "* MainThread: <module> app.py:23"
    assert [line.split(":")[0] for line in lines[1:]] == ["  idle", "  worker-0", "  worker-1"]
    assert lines[2].partition(": deeper app.py:")[2].endswith(" < work app.py:11")
    assert "asterisk" in program.do("help threads")["out"]
    assert program.do("c")["status"] == 0


def test_threads_are_listed_while_the_main_one_joins(debug: Any) -> None:
    program = debug("python app.py", dedent(THREADS))
    program.do("b 14")
    assert program.do("c")["stop"]["thread"] == "idle"
    listed = program.do("threads")["out"]
    assert listed.startswith("* idle: idle app.py:14\n") and "  MainThread: <module> app.py:2" in listed
    assert program.do("n")["stop"]["line"] == 15
    assert program.do("c")["status"] == 0


def test_the_list_of_threads_is_bounded(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import threading, time
            go, ready = threading.Event(), threading.Semaphore(0)
            def work(n):
                if n:
                    work(n - 1)
                else:
                    ready.release()
                    go.wait()
            for n in range(60):
                threading.Thread(target=work, args=(10,), daemon=True, name="t%02d" % n).start()
            for n in range(60):
                ready.acquire()
            x = 1
            go.set()
            """
        ),
    )
    program.do("b 13")
    program.do("c")
    lines = program.do("threads")["out"].splitlines()
    assert len(lines) == 31 and lines[-1] == "  [31 more]"
    assert lines[1].endswith(" < [6 more]")


def test_a_thread_that_ends_while_another_is_stopped(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import threading
            go, gone = threading.Event(), threading.Event()
            def short():
                go.wait()
            def work():
                x = 1
                go.set()
                other.join()
                y = 2
            other = threading.Thread(target=short, name="short")
            worker = threading.Thread(target=work, name="worker")
            other.start()
            worker.start()
            worker.join()
            """
        ),
    )
    program.do("b 6")
    program.do("c")
    assert "short" in program.do("threads")["out"]
    for line in (7, 8, 9):
        assert program.do("n")["stop"]["line"] == line
    assert "short" not in program.do("threads")["out"]
    assert program.do("c")["status"] == 0


def test_a_daemon_thread_at_the_end(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import threading
            started = threading.Event()
            def work():
                n = 0
                while True:
                    n += 1
                    started.set()
            threading.Thread(target=work, daemon=True).start()
            started.wait()
            """
        ),
    )
    program.do("b 6, n == 3")
    assert program.do("c")["stop"]["thread"].startswith("Thread-1")
    program.do("cl 1")
    ended = program.do("c")
    assert (ended["t"], ended["status"]) == ("exit", 0)
    assert program.receive()["status"] == 0


def test_a_thread_without_a_name(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import _thread, pdb
            done = _thread.allocate_lock()
            done.acquire()
            def work():
                pdb.set_trace()
                done.release()
            _thread.start_new_thread(work, ())
            done.acquire()
            """
        ),
    )
    stop = program.do("c")["stop"]
    assert (stop["function"], stop["thread"]) == ("work", "a thread without a name")
    assert program.do("threads")["out"].startswith("* ")
    assert program.do("n")["stop"]["line"] == 6
    assert program.do("c")["status"] == 0


def test_a_step_comes_before_the_stops_of_others_that_wait(debug: Any) -> None:
    program = debug(
        "python app.py",
        dedent(
            """\
            import threading
            together = threading.Barrier(4)
            def work():
                together.wait()
                x = 1
                y = 2
                z = 3
            threads = [threading.Thread(target=work, name="worker-%d" % n) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            """
        ),
    )
    program.do("b 5")
    names = set()
    for _ in range(4):
        stop = program.do("c")["stop"]
        assert (stop["line"], stop["breakpoint"]) == (5, 1)
        for line in (6, 7):
            stepped = program.do("n")["stop"]
            assert (stepped["line"], stepped["thread"]) == (line, stop["thread"])
        names.add(stop["thread"])
    assert len(names) == 4
    assert program.do("c")["status"] == 0


# -- asyncio

ASYNCIO = """\
    import asyncio

    async def leaf(n):
        await asyncio.sleep(0.001)
        value = n * 10
        return value

    async def middle(n):
        found = await leaf(n)
        return found + 1

    async def busy():
        for _ in range(200):
            await asyncio.sleep(0)

    async def numbers():
        for n in range(2):
            await asyncio.sleep(0.001)
            yield n
            after = n

    async def fails():
        await asyncio.sleep(0)
        raise ValueError("in task")

    async def main():
        others = [asyncio.ensure_future(busy()) for _ in range(3)]
        first = await middle(1)
        both = await asyncio.gather(middle(2), middle(3))
        async for n in numbers():
            print(n)
        for other in others:
            await other
        try:
            await asyncio.ensure_future(fails())
        except ValueError as error:
            print("caught", error)

    asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
    print("end")
"""


def places(stop: dict[str, Any]) -> list[tuple[str, int]]:
    return [(one["function"], one["line"]) for one in stop["task"]["awaits"]]


def test_a_task_and_what_awaits_what_in_it(debug: Any) -> None:
    program = debug("python app.py", dedent(ASYNCIO))
    program.do("b 5")
    stop = program.do("c")["stop"]
    assert places(stop) == [("leaf", 5), ("middle", 9), ("main", 28)]
    named = program.hello["python"] >= [3, 8]
    assert stop["task"]["name"] == ("Task-1" if named else "main")
    assert [one["function"] for one in stop["stack"]] == ["leaf", "middle", "main", "<module>"]
    stop = program.do("c")["stop"]
    assert places(stop) == [("leaf", 5), ("middle", 9)]
    assert stop["task"]["name"] != "Task-1"
    program.do("b 40")
    program.do("c")
    assert "task" not in program.do("c")["stop"]


def test_steps_over_await_stay_in_the_task(debug: Any) -> None:
    program = debug("python app.py", dedent(ASYNCIO))
    program.do("tbreak 28")
    program.do("c")
    for line in (29, 30):
        stop = program.do("n")["stop"]
        assert (stop["line"], stop["function"]) == (line, "main")
    assert program.do("p first, both")["out"] == "(11, [21, 31])\n"


def test_steps_into_and_out_of_a_coroutine(debug: Any) -> None:
    program = debug("python app.py", dedent(ASYNCIO))
    program.do("tbreak 9")
    program.do("c")
    assert (program.do("s")["stop"]["function"], program.do("n")["stop"]["line"]) == ("leaf", 4)
    assert [program.do("n")["stop"]["line"] for _ in range(2)] == [5, 6]
    stop = program.do("n")["stop"]
    assert (stop["function"], stop["line"], stop["reason"], stop["return"]) == ("middle", 9, "step", "10")
    assert program.do("n")["stop"]["line"] == 10


def test_return_from_a_coroutine(debug: Any) -> None:
    program = debug("python app.py", dedent(ASYNCIO))
    program.do("tbreak 4")
    program.do("c")
    assert program.do("r")["stop"]["function"] == "middle"
    assert program.do("r")["stop"]["function"] == "main"
    assert program.do("n")["stop"]["line"] == 29


def test_steps_over_the_end_of_a_task(debug: Any) -> None:
    program = debug("python app.py", dedent(ASYNCIO))
    program.do("tbreak 14")
    program.do("c")
    program.do("r")
    stop = program.do("n")["stop"]
    assert (stop["function"], stop["line"]) in (("<module>", 40), ("<module>", 39))


def test_steps_in_an_asynchronous_generator(debug: Any) -> None:
    program = debug("python app.py", dedent(ASYNCIO))
    program.do("tbreak 18")
    stop = program.do("c")["stop"]
    assert places(stop) == [("numbers", 18), ("main", 30)]
    assert program.do("n")["stop"]["line"] == 19
    seen = [(stop["function"], stop["line"]) for stop in (program.do("n")["stop"] for _ in range(8))]
    assert ("main", 31) in seen and set(seen) <= {("numbers", n) for n in (17, 18, 19, 20)} | {
        ("main", 30),
        ("main", 31),
    }


ASYNC_FOR = """\
    import asyncio

    async def numbers():
        yield 1
        await asyncio.sleep(0)

    async def main():
        async for n in numbers():
            seen = n
        await numbers().asend(None)
        made = numbers()
        await made.__anext__()
        await made.__anext__()

    asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
"""


def test_the_end_of_an_async_for_is_no_failure(debug: Any) -> None:
    program = debug("python app.py", dedent(ASYNC_FOR))
    program.do("b 9")
    program.do("c")
    stops = [program.do("n")["stop"] for _ in range(7)]
    assert [(stop["reason"], stop["line"]) for stop in stops] == [
        *[("step", 8), ("step", 8), ("step", 10), ("step", 11), ("step", 12), ("step", 13)],
        ("exception", 13),
    ]


ENDS = {
    "a method that is called often": """\
    n = 20
    async def __anext__(self):
        self.n -= 1
        if self.n < 0:
            raise StopAsyncIteration
        return self.n
""",
    "a method that is no coroutine": """\
    def __anext__(self):
        raise StopAsyncIteration
""",
    "a task that is cancelled": """\
    async def __anext__(self):
        loop.call_soon(task.cancel)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise StopAsyncIteration
""",
}
LOOP = """
async def main():
    "A function with a text has its None behind it and the numbers."
    {}
    numbers = Numbers()
    async for n in numbers:
        seen = n
    ended = True

loop = asyncio.get_event_loop_policy().new_event_loop()
task = loop.create_task(main())
loop.run_until_complete(task)
"""


@pytest.mark.parametrize("constants", [1, 300])
@pytest.mark.parametrize("end", ENDS)
def test_no_end_of_an_async_for_is_a_failure(debug: Any, end: str, constants: int) -> None:
    numbers = "import asyncio\n\nclass Numbers:\n    def __aiter__(self):\n        return self\n\n" + ENDS[end]
    source = numbers + LOOP.format("; ".join(f"x = {n}.5" for n in range(constants)))
    first = 1 + source.splitlines().index("    numbers = Numbers()")
    program = debug("python app.py", {"app.py": source})
    program.do(f"b {first}")
    stop = program.do("c")["stop"]
    reasons = []
    while stop["line"] < first + 3:
        stop = program.do("n")["stop"]
        reasons.append(stop["reason"])
    assert reasons == ["step"] * len(reasons)


def test_an_exception_in_a_task_goes_to_who_awaits_it(debug: Any) -> None:
    program = debug("python app.py", dedent(ASYNCIO))
    program.do("b 24")
    program.do("b 37")
    assert places(program.do("c")["stop"]) == [("fails", 24)]
    stop = program.do("n")["stop"]
    assert (stop["reason"], stop["exceptions"][0]["message"]) == ("exception", "in task")
    assert program.do("c")["stop"]["line"] == 37
    assert program.do("c")["status"] == 0


def test_a_thread_parses_while_breakpoints_are_compiled_in(debug: Any) -> None:
    """Python 3.11 gives up with a SystemError when two threads parse at once."""
    code = """\
        import ast, gc, threading, time
        gc.callbacks.append(lambda phase, info: time.sleep(0))
        gc.set_threshold(50)
        ended = threading.Event()
        def parse():
            while not ended.wait(0.005):
                try:
                    ast.parse("x = [1, (2, 3)]")
                except SystemError:
                    pass
        threading.Thread(target=parse).start()
        try:
            for n in range(20):
                __import__("part%d" % n)
        finally:
            ended.set()
        """
    part = "".join(f"def f{n}(a, b=[1, 2, (3, 4)]):\n    return a + b * {n}\n" for n in range(100)) + "x = 1\n"
    program = debug("python app.py", {**dedent(code), **{f"part{n}.py": part for n in range(20)}})
    for n in range(20):
        program.do(f"b part{n}.py:201")
    for n in range(20):
        stop = program.do("c")["stop"]
        assert (stop["file"], stop["line"]) == (f"part{n}.py", 201)
    assert program.do("c")["status"] == 0


def test_until_after_a_return_in_a_with_statement_goes_on_in_the_program(debug: Any) -> None:
    source = "import contextlib\n@contextlib.contextmanager\ndef cm():\n    yield 1\n"
    source += "def f():\n    with cm() as one:\n        return one\nwith cm() as two:\n    two = f()\nend = 1\n"
    program = debug("python app.py", {"app.py": source})
    if program.hello["python"] < [3, 10]:
        pytest.skip("the end of a with statement has no line there: pdb goes into contextlib too")
    program.do("b 7")
    program.do("c")
    assert program.do("r")["stop"]["reason"] == "return"
    stops = [program.do("unt")["stop"] for _ in range(2)]
    assert [(stop["file"], stop["line"]) for stop in stops][-1] == ("app.py", 10)
    assert {stop["file"] for stop in stops} == {"app.py"}


OUTERMOST = """\
import asyncio

async def child(n):
    await asyncio.sleep(0)
    return n

async def main():
    total = await asyncio.wait_for(child(2), 60)
    return total

def run():
    loop = asyncio.get_event_loop_policy().new_event_loop()
    return loop.run_until_complete(main())

run()
"""


@pytest.mark.parametrize("steps", [["r"], ["n"]])
def test_a_step_out_of_a_task_shows_what_it_returns(debug: Any, steps: list[str]) -> None:
    program = debug("python app.py", {"app.py": OUTERMOST})
    program.do("b 9")
    program.do("c")
    stop = [program.do(step) for step in steps][-1]["stop"]
    assert (stop["reason"], stop["function"], stop["return"]) == ("return", "main", "2")
    stop = program.do("n")["stop"]
    assert (stop["reason"], stop["function"], stop["return"]) == ("return", "run", "2")
    assert program.do("n")["stop"]["function"] == "<module>"
