"""Asyncio tasks: where stops and steps are in them."""

from __future__ import annotations

from typing import Any

import pytest
from debugged_programs import dedent
from support import repeated

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


@pytest.mark.parametrize("constants", [1, *repeated("debugger", 300)])
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
