"""Small programs in the layout that QuixBugs publishes."""

from __future__ import annotations

from pathlib import Path

PROGRAM, TEST = "python_programs/triple.py", "python_testcases/test_triple.py"
RIGHT = "\ndef triple(number, more):\n    marked_as_right = number + number\n    return marked_as_right + number\n"
BY_DATA = """\
import pytest
from load_testdata import load_json_testcases

if pytest.use_correct:
    from correct_python_programs.{0} import {0}
else:
    from python_programs.{0} import {0}


testdata = load_json_testcases({0}.__name__)


@pytest.mark.parametrize("input_data,expected", testdata)
def test_{0}(input_data, expected):
"""

FILES = {
    "README.md": "Programs with bugs.\n",
    "conftest.py": "import pytest\n\n\ndef pytest_configure(config):\n    pytest.use_correct = True\n",
    "python_testcases/load_testdata.py": "import json\nfrom pathlib import Path\n\n\ndef load_json_testcases(name):\n"
    '    path = Path(__file__).parent.parent / "json_testcases" / f"{name}.json"\n'
    "    return [json.loads(line) for line in path.read_text().splitlines()]\n",
    "python_testcases/node.py": "class Node:\n    def __init__(self, value=None, successor=None):\n"
    "        self.value, self.successor = value, successor\n",
    "python_programs/node.py": "class Node:\n    pass\n",
    "correct_python_programs/node.py": "class Node:\n    pass\n",
    # A program that is wrong, one of whose tests is skipped for being slow.
    PROGRAM: '\ndef triple(number, more):\n    marked = number\n    return marked\n\n\n"""\nInput:\n    number\n\n'
    'Three Times\n\nAnd so on.\n"""\n',
    "correct_python_programs/triple.py": RIGHT + '\n\n"""\ndef triple(number, more):\n    return 3 * number\n"""\n',
    TEST: BY_DATA.format("triple") + "    if not pytest.run_slow and input_data == [7, [7, 8]]:\n"
    '        pytest.skip("Takes long")\n    assert triple(*input_data) == expected\n',
    "json_testcases/triple.json": '[[1, []], 3]\n[[0.5, 0], 1.5]\n[[7, [7, 8]], 21]\n[["a b", null], "a ba ba b"]\n'
    '[["\\u00e4", null], "\\u00e4\\u00e4\\u00e4"]\n[[[], null], []]\n[[2, null], true]\n',
    # One that loops for ever.
    "python_programs/count_down.py": "def count_down(number):\n    while number:\n        number = -number\n"
    '    return number\n\n\n"""\nCount Down\n"""\n',
    "correct_python_programs/count_down.py": "def count_down(number):\n    while number:\n        number = number - 1\n"
    "    return number\n",
    "python_testcases/test_count_down.py": f"{BY_DATA}    assert {{0}}(*input_data) == expected\n".format("count_down"),
    "json_testcases/count_down.json": "[[3], 0]\n[[0], 0]\n[[9], 0]\n",
    # One with tests of its own, and a driver that prints.
    "python_programs/last.py": "def last(node):\n    while node:\n        node = node.successor\n    return node\n",
    "python_programs/last_test.py": "from .last import last\n\n\ndef main():\n    print(last(None))\n",
    "correct_python_programs/last.py": "def last(node):\n    while (\n        node.successor\n    ):\n"
    "        node = node.successor\n    return node\n",
    "python_testcases/test_last.py": "import pytest\nfrom node import Node\n\nif pytest.use_correct:\n"
    "    from correct_python_programs.last import last\nelse:\n    from python_programs.last import last\n\n\n"
    'def test1():\n    """Case 1"""\n    end = Node(1)\n    assert last(Node(0, end)) is end\n\n\n'
    "def test2():\n    end = Node(1)\n    assert last(end) is end\n",
}  # fmt: skip
GOOD = FILES["json_testcases/triple.json"].replace("[[[], null], []]\n[[2, null], true]\n", "[[1, null], 3]\n")
"""The data without what no program could return, and what the wrong one returns."""


def write_programs(top: Path) -> Path:
    """Our own programs, in QuixBugs' layout."""
    for path, text in {**FILES, "json_testcases/triple.json": GOOD}.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
    return top
