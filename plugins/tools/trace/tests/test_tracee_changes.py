"""What a statement changed, wherever that is: with each interpreter the same."""

from __future__ import annotations

import textwrap

import pytest
from following import Follow, Followed
from support import has

UNSEEN = " (changed where it is not shown)"


def beside(found: Followed) -> dict[int, str]:
    """What stands beside each line, of the last time that it was carried out."""
    lines = [line.strip() for line in found.lines if line.strip()[:1].isdigit()]
    return {int(line.split()[0]): line.partition("| ")[2] for line in lines}


def told(trace: Follow, text: str, target: str = "f") -> dict[int, str]:
    """What is told of a program, by its lines."""
    return beside(trace(textwrap.dedent(text), target))


def test_a_global_that_the_call_creates_is_told(trace: Follow) -> None:
    seen = told(
        trace,
        """\
        def f():
            global LATE
            LATE = {"a": 1}
            LATE["b"] = 2
            make()
            OTHER.append(3)
            del LATE
        def make():
            global OTHER
            OTHER = []
        f()
        """,
    )
    assert seen == {
        3: "LATE = {'a': 1}",
        4: "LATE = {'a': 1, 'b': 2}",
        5: "OTHER = []",
        6: "OTHER = [3]",
        7: "LATE is gone",
    }


def test_a_global_that_the_call_assigns_is_told_whatever_it_was(trace: Follow) -> None:
    seen = told(
        trace,
        """\
        class Connection:
            pass
        current = Connection()
        def f():
            global current
            current = None
            current = 5
        f()
        """,
    )
    assert seen == {6: "current = None", 7: "current = 5"}


def test_items_and_attributes_of_a_container_of_the_program_s_are_told(trace: Follow) -> None:
    seen = told(
        trace,
        """\
        class DictSub(dict):
            def __init__(self, *a, **k):
                super().__init__(*a, **k)
                self.meta = 0
            def both(self): self["z"] = self.meta = 9
        class ListSub(list): pass
        def f():
            d = DictSub(a=1)
            d["b"] = 2
            d.meta = 5
            d.pop("a")
            d.both()
            l = ListSub([1])
            l.append(2)
            l.tag = "x"
            l.append(3)
            l.extend(range(100))
            l[50] = -1
        f()
        """,
    )
    long = "l = [1, 2, 3, 0, 1, 2,"
    assert seen.pop(17).startswith(long)
    unseen = seen.pop(18)
    assert unseen.startswith(long) and unseen.endswith(UNSEEN)
    assert seen == {
        8: "d = {'a': 1}",
        9: "d = {'a': 1, 'b': 2}",
        10: "d.meta = 5",
        11: "d = {'b': 2}",
        12: "d = {'b': 2, 'z': 9}, d.meta = 9",
        13: "l = [1]",
        14: "l = [1, 2]",
        15: "l.tag = 'x'",
        16: "l = [1, 2, 3]",
    }


def test_a_change_anywhere_in_a_value_is_told(trace: Follow) -> None:
    seen = told(
        trace,
        """\
        import array, collections
        NT = collections.namedtuple("NT", "x y")
        class Node:
            def __init__(self, v, next=None): self.v, self.next = v, next
        class Owner:
            def __init__(self): self.root = Node(1, Node(2, Node(3, Node(4))))
            def f(self):
                b = bytearray(200)
                b[100] = 5
                a = array.array("i", range(100))
                a[50] = -7
                n = NT([1], {})
                n.x.append(2)
                n = NT([1, 2], {})
                d = {"a": {"b": {"c": {"d": 1}}}}
                d["a"]["b"]["c"]["d"] = 2
                self.root.next.next.v = 30
                self.root.next.next.next.v = 40
                q = collections.deque(range(100))
                q[50] = 0
                o = collections.OrderedDict((i, i) for i in range(100))
                o[50] = 0
                self.root.v = 1
                b = b
        Owner().f()
        """,
        "Owner.f",
    )
    unseen = [line for line in seen if seen[line].endswith(UNSEEN)]
    assert unseen == [9, 11, 16, 17, 18, 20, 22], seen
    assert (seen[13], seen[14], seen[23], seen[24]) == ("n = NT(x=[1, 2], y={})", "", "", "")


def test_an_attribute_of_a_class_or_of_a_function_is_told(trace: Follow) -> None:
    seen = told(
        trace,
        """\
        class A:
            count = 0
            @classmethod
            def f(cls):
                cls.count += 1
                class K:
                    x = 1
                K.x = 2
                K.y = []
                K.y.append(3)
                def g(): pass
                g.calls = 1
                g.calls += 1
                K.x = 2
        A.f()
        """,
        "A.f",
    )
    assert {line: seen[line] for line in (5, 8, 9, 10, 12, 13, 14)} == {
        5: "cls.count = 1",
        8: "K.x = 2",
        9: "K.y = []",
        10: "K.y = [3]",
        12: "g.calls = 1",
        13: "g.calls = 2",
        14: "",
    }


def test_a_change_in_an_array_is_told(trace: Follow, python: str) -> None:
    if not has(python, "numpy"):
        pytest.skip("this interpreter has no numpy")
    seen = told(
        trace,
        """\
        import numpy as np
        def f(n):
            a = np.zeros((n, 3))
            a[n // 2] = 7
            m = np.zeros((100, 100), order="F")
            m[50, 50] = -1
            v = m[:, 50]
            v[49] = 2
            w = {"v": a}
            a[n // 3] = 7
            a[n // 3] = 7
        f(2000)
        """,
    )
    assert seen[4].endswith(UNSEEN) and seen[6].endswith(UNSEEN)
    assert seen[8].count(UNSEEN) == 2 and seen[10].count(UNSEEN) == 2 and seen[11] == ""


def test_variables_of_a_comprehension_that_waits_are_not_the_function_s(trace: Follow) -> None:
    seen = told(
        trace,
        """\
        import asyncio
        async def aid(x):
            await asyncio.sleep(0)
            return x
        async def agen(n):
            for q in range(n):
                await asyncio.sleep(0)
                yield q
        async def f(xs):
            q = "outer"
            r = [await aid(i) for i in xs]
            l = [q async for q in agen(2)]
            t = await aid(3)
            return r
        loop = asyncio.new_event_loop()
        loop.run_until_complete(f([1, 2]))
        loop.close()
        """,
    )
    assert {line: seen[line].partition(", waits")[0] for line in (10, 11, 12, 13)} == {
        10: "q = 'outer'",
        11: "r = [1, 2]",
        12: "l = [0, 1]",
        13: "t = 3",
    }


def test_what_an_exception_leads_to_is_told_after_it(trace: Follow) -> None:
    lines = trace(
        textwrap.dedent(
            """\
            class Sup:
                def __enter__(self): return self
                def __exit__(self, *error): return True
            def bad(x): raise KeyError(x)
            def f():
                with Sup():
                    bad(1)
            f()
            """
        )
    ).lines
    first = next(number for number, line in enumerate(lines) if "bad(1)" in line)
    said = [line.strip()[:12] for line in lines[first + 1 : first + 4]]
    assert said == ["> bad(x=1) r", "! KeyError: ", "> Sup.__exit"], lines


def test_a_value_that_cannot_be_described_hides_no_other_in_what_it_is_in(trace: Follow) -> None:
    found = trace(
        "from collections import namedtuple\n"
        "class Bad:\n    def __repr__(self): raise ValueError('detached')\n"
        "class Data:\n    def __init__(self, one, two): self.one, self.two = one, two\n"
        "    def __repr__(self): return 'Data(%r, %r)' % (self.one, self.two)\n"
        "Pair = namedtuple('Pair', 'x y')\n"
        "def f(data, pair):\n    return [1, Bad(), 3]\n"
        "f(Data(Bad(), 5), Pair(1, Bad()))\n"
    )
    bad = "<Bad, whose repr raises ValueError>"
    assert dict(found.story.arguments) == {
        "data": f"<Data, whose repr raises ValueError: one={bad}, two=5>",
        "pair": f"<Pair, whose repr raises ValueError: x=1, y={bad}>",
    }
    assert found.lines[-1].startswith(f"returned [1, {bad}, 3]")
