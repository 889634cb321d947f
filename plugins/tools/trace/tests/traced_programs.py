"""Programs of which a call is followed: the function, and the text."""

from __future__ import annotations

from collections.abc import Mapping

ASYNCHRONOUS = """\
import asyncio
async def g(x):
    await asyncio.sleep(0)
    return x + 1
async def ag(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i
async def f(n):
    total = 0
    async for i in ag(n):
        total += await g(i)
    return total
loop = asyncio.new_event_loop()
loop.run_until_complete(f(3))
loop.close()
"""

PROGRAMS: Mapping[str, tuple[str, str]] = {
    "loop": (
        "f",
        """\
def g(x):
    return x * 2
def f(n):
    total = 0
    for i in range(n):
        if i % 2:
            total += g(i)
    return total
f(20)
""",
    ),
    "nested loops": (
        "f",
        """\
def f(n):
    out = []
    for i in range(n):
        for j in range(i):
            if j == 2:
                continue
            out.append((i, j))
    while out:
        out.pop()
    return out
f(8)
""",
    ),
    "loops without a test": (
        "f",
        """\
def f():
    n = 0
    while True:
        n += 1
        if n == 12:
            break
    while True:
        for x in [1, 2]:
            n -= x
        if n < 0:
            break
    return n
f()
""",
    ),
    "statements of several lines": (
        "f",
        """\
def g(*a, **k):
    return sum(a)
def f(
    a,
    b=2,
):
    x = g(
        a,
        b,
        *[
            q * 2
            for q in range(3)
            if q
        ],
    )
    y = {k: v
         for k, v in zip('ab', [1, 2])}
    if (
        x and
        y
    ):
        return [
            x,
            y,
        ]
f(1)
""",
    ),
    "exceptions": (
        "f",
        """\
import contextlib
def bad(x):
    raise ValueError('no %s' % x)
def f(x):
    try:
        bad(x)
    except KeyError:
        pass
    except ValueError as error:
        y = str(error)
    finally:
        z = 1
    with contextlib.suppress(ZeroDivisionError):
        1 / 0
    with open('/dev/null') as h:
        w = h.read()
    d = {}
    return d['k']
try:
    f(3)
except KeyError:
    pass
""",
    ),
    "generator": (
        "f",
        """\
def f(n):
    for i in range(n):
        got = yield i
        if got:
            yield got
    return 'end'
def main():
    it = f(3)
    print(next(it))
    print(it.send('x'))
    print(list(it))
main()
""",
    ),
    "closed generator": (
        "f",
        """\
def f(n):
    try:
        while True:
            yield n
            n += 1
    finally:
        n = -1
for x in f(1):
    if x > 3:
        break
""",
    ),
    "coroutine": ("f", ASYNCHRONOUS),
    "asynchronous generator": ("ag", ASYNCHRONOUS),
    "recursion": (
        "f",
        """\
def f(n):
    if n < 2:
        return n
    return f(n - 1) + f(n - 2)
f(6)
""",
    ),
    "method": (
        "A.f",
        """\
class A:
    kind = 'base'
    seen = []
    def __init__(self, n):
        self.n = n
        self.items = []
    def f(self, x):
        self.n += x
        self.items.append(x)
        self.seen.append(x)
        del x
        return self.kind
a = A(1)
a.f(5)
""",
    ),
    "decorated": (
        "f",
        """\
import functools
def deco(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        return fn(*args) + 1
    return wrapper
@deco
@deco
def f(x):
    return x
f(1)
""",
    ),
    "property": (
        "A.p",
        """\
class A:
    @property
    def p(self):
        return self._p
    @p.setter
    def p(self, v):
        self._p = v
a = A()
a.p = 3
a.p
""",
    ),
    "thread": (
        "f",
        """\
import threading
class S:
    def __repr__(self):
        return 'S!'
def f(x, s):
    y = [x]
    return y
t = threading.Thread(target=f, args=(1, S()))
t.start(); t.join()
""",
    ),
    "hostile values": (
        "f",
        """\
import time
class Slow:
    def __repr__(self):
        time.sleep(5)
        return 'slow'
class Raises:
    def __repr__(self):
        raise SystemExit(3)
class Spins:
    def __repr__(self):
        for _ in range(3):
            try:
                while True: pass
            except BaseException: pass
        return 'spun'
class Huge:
    def __repr__(self):
        return 'x' * 10**7
class Calls:
    def __repr__(self):
        f(1, 2, 3, 4, 5)
        return 'calls'
class Dict(dict): pass
def f(a, b, c, d, e):
    big = list(range(10**6))
    text = 'y' * 10**6
    big2 = {i: i for i in range(10**5)}
    number = 10 ** 5000
    deep = []
    for _ in range(5):
        deep = [deep, deep]
    cyc = []
    cyc.append(cyc)
    odd = Dict(a=1)
    return a
f(Slow(), Raises(), Spins(), Huge(), Calls())
""",
    ),
    "lambda": (
        "f",
        """\
f = lambda x: x + 1
g = [lambda: 3]
f(2)
""",
    ),
    "one line": (
        "f",
        """\
def f(x): return x + 1
f(2)
""",
    ),
    "inner function": (
        "f.inner",
        """\
def f(x):
    y = 2
    def inner(z):
        nonlocal y
        y += z
        return y + x
    return inner(5)
f(2)
""",
    ),
    "globals": (
        "f",
        """\
LIMIT = 3
counts = {}
total = 0
def f(x):
    global total
    counts[x] = counts.get(x, 0) + LIMIT
    total += 1
    return counts
f('a')
""",
    ),
    "exit": (
        "f",
        """\
import sys
def f():
    x = 1
    sys.exit(3)
f()
""",
    ),
    "death": (
        "f",
        """\
import os
def f():
    x = 1
    for i in range(50):
        x += i
    os._exit(7)
f()
""",
    ),
    "short lines": (
        "f",
        """\
def f(x):
    if x: y = 1; z = 2
    else: y = 3
    try: w = {}['a']
    except KeyError: w = 4
    for q in range(30): y += q
    while y > 3: y -= 100
    return y
f(1)
""",
    ),
    "else of a loop": (
        "f",
        """\
def f(n):
    for i in range(n):
        if i == 100:
            break
    else:
        i = -1
    for i in range(n):
        pass
    return i
f(13)
""",
    ),
    "many calls": (
        "f",
        """\
def key(x):
    return -x
def f(xs):
    return sorted(xs, key=key)
f(list(range(100)))
""",
    ),
}
