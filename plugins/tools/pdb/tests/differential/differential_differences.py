"""What ours does otherwise than the standard library's pdb, and why: all of it.

`differential_pdb` has for each a change of pdb, as small as can be, with which it does as ours does. That pdb is what
the generated cases are compared with; here is an example for each that shows the difference.
"""

from __future__ import annotations

from dataclasses import dataclass

Version = tuple[int, ...]


@dataclass(frozen=True)
class Difference:
    """A difference.

    Attributes:
        name: as `differential_pdb.LIKE_OURS` has it
        reason: what pdb does, and why ours does not
        main: a program that shows it
        commands: with these commands
        versions: first and last version of Python that has it
        mod: what the program imports
    """

    name: str
    reason: str
    main: str
    commands: tuple[str, ...]
    versions: tuple[Version, Version] = ((3, 6), (3, 99))
    mod: str = ""


DIFFERENCES = (
    Difference(
        "runner",
        "pdb shows the frames of bdb and `<string>` that run the program, and stops when they return: nobody's",
        "a = 1\n",
        ("w", "r", "n"),
    ),
    Difference(
        "stale line",
        "when pdb goes on without a breakpoint, frames stay marked as traced though nothing traces them, and up to "
        "Python 3.9 their line stays what it was then: post-mortem and the traceback show a wrong line",
        "a = 1\nb = 2\n1 / 0\n",
        ("c", "w"),
        ((3, 6), (3, 9)),
    ),
    Difference(
        "untraced callers",
        "pdb does not trace a function that was called when its file had no breakpoint; after `n` at the return of "
        "what it called, or after `u`, pdb goes past it",
        "import mod\ndef f():\n    mod.g()\n    a = 1\n    b = 2\nf()\nc = 3\n",
        ("b mod:2", "c", "u", "n", "n"),
        mod="def g():\n    x = 1\n",
    ),
    Difference(
        "comes back",
        "from Python 3.8 on, a statement of several lines is back at its first line after those of its arguments, and "
        "pdb stops there a second time; a person means the statement",
        "x = 0\na = max(\n    1,\n    abs(2),\n)\nb = 2\n",
        ("b 2", "b 6", "c", "c"),
        ((3, 8), (3, 99)),
    ),
    Difference(
        "nested conditions",
        "a comprehension or a lambda in a condition does not see local names in pdb, which then stops with a NameError "
        "that it does not show",
        "def f(a):\n    return a\nfor i in range(4):\n    f(i)\n",
        ("b 2, any(x == a for x in (2, 3))", "c", "p a"),
    ),
    Difference(
        "nested expressions",
        "a comprehension, lambda or generator that is typed does not see local names in pdb (a statement does from "
        "Python 3.13 on, where pdb carries out twice what raises)",
        "def f(a):\n    return a\nf(1)\n",
        ("b 2", "c", "p sum(a for x in (1, 2))"),
    ),
    Difference(
        "hits",
        "pdb counts a hit whatever the condition says; a person counts stops",
        "def f(a):\n    return a\nfor i in range(4):\n    f(i)\n",
        ("b 2, a == 2", "c", "b"),
    ),
    Difference(
        "first lines",
        "pdb stops at a statement of several lines when its first line is executed, be it at its end or never; a "
        "person means its beginning",
        "a = b = 1\nx = (\n    a\n    + b\n)\ny = 2\n",
        ("b 2", "b 6", "c", "c"),
    ),
    Difference(
        "post-mortem",
        "pdb tries to jump in frames that run no more, and fails with what has nothing to do with it",
        "a = 1\n1 / 0\n",
        ("c", "j 1"),
    ),
    Difference(
        "jumps",
        "pdb jumps to a line of code, be it in the middle of a statement, which Python refuses from 3.11 on; before, "
        "it crashes, as it does after other jumps that it does not check; a person means the statement",
        "def f():\n    a = 1\n    x = max(\n        1,\n        2,\n    )\n    return x\nf()\n",
        ("b 2", "c", "j 5", "c"),
    ),
    Difference(
        "no commands",
        "up to Python 3.10, pdb keeps commands for a breakpoint that there is not",
        "a = 1\n",
        ("n", "commands 2\np a\nend", "b"),
        ((3, 6), (3, 10)),
    ),
    Difference(
        "late commands",
        "pdb does commands that a breakpoint is given after a stop there at the next stop, wherever that is",
        "a = 1\nb = 2\nc = 3\nd = 4\n",
        ("b 2", "c", "commands 1\np a\nend", "n", "n"),
    ),
    Difference(
        "continuation lines",
        "pdb sets a breakpoint on any line of a statement but for blank ones, comments and ends of strings, and mostly "
        "never stops there",
        "x = 0\na = max(\n    1,\n    # two\n    2,\n)\nb = 2\n",
        ("b 5", "b 4", "c"),
    ),
    Difference(
        "blank lines",
        "pdb refuses a breakpoint on a line without code; what is meant is the next one in the function",
        "def f(a):\n    # comment\n    return a\nf(1)\n",
        ("b 2", "c"),
    ),
    Difference(
        "static functions",
        "pdb finds a function that is not defined yet in other modules only, and stops at its `def`; of a decorated "
        "one it takes the wrapper; of two breakpoints on one, up to Python 3.12 the second stops a line later",
        "import functools\ndef d(f):\n    @functools.wraps(f)\n    def w():\n        return f()\n    return w\n"
        "@d\ndef f():\n    return 1\nf()\n",
        ("b f", "b 10", "c", "b f", "c"),
    ),
    Difference(
        "assignments",
        "pdb takes an assignment to a name like that of a command for the command",
        "def f(a):\n    return a\nf(1)\n",
        ("b 2", "c", "a = 5", "p a"),
    ),
    Difference(
        "generators",
        "pdb loses its way at the end of a generator, unless what runs it is traced already, and at that of a task",
        "def g():\n    yield 1\ndef f():\n    x = sum(g())\n    return x\nf()\na = 1\n",
        ("b 2", "c", "n", "n", "n"),
    ),
    Difference(
        "other coroutines",
        "after `r` in a generator or coroutine, pdb stops where any function called since, in a file with breakpoints, "
        "meets a StopIteration, as that of what another coroutine awaits",
        "def other():\n    try:\n        next(iter(()))\n    except StopIteration:\n        pass\n"
        "def f():\n    a = 1\n    other()\n    yield a\ndef main():\n    list(f())\nmain()\n",
        ("b 7", "c", "r"),
    ),
    Difference(
        "inside lines",
        "from Python 3.12 on, comprehensions have no frame of their own, and pdb stops at each of their elements",
        "a = 1\nb = [x for x in range(3)]\nc = 1\n",
        ("n", "n", "n"),
        ((3, 12), (3, 99)),
    ),
    Difference(
        "own names",
        "pdb puts what a function returns or raises among its variables and leaves it there: the program finds it, and "
        "a frame that has raised is shown to have returned",
        "x = 1\n1 / 0\n",
        ("r", "c"),
    ),
    Difference(
        "frozen code",
        "pdb shows importlib, and from Python 3.11 on more of the library, as `<frozen NAME>`, of which "
        "nobody sees the source nor stops at a line",
        "import mod\n",
        ("s", "s", "l"),
        mod="a = 1\n",
    ),
)


def like_ours(version: Version) -> list[str]:
    """The names of the differences that there are with a version of Python."""
    return [one.name for one in DIFFERENCES if one.versions[0] <= version <= one.versions[1]]
