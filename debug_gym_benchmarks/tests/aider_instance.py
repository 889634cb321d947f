"""A small track in the layout that Exercism publishes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

MARK = "twice_as_much_of_it"
"""A name that only a solution has."""

EXERCISES: dict[str, dict[str, str]] = {
    "double-it": {
        "double_it.py": '"""To be written."""\n\n\ndef double(number):\n    pass\n',
        "double_it_test.py": "import unittest\n\nfrom double_it import (\n    double,\n)\n\n\n"
        "class DoubleItTest(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(double(1), 2)\n\n"
        "    def test_none(self):\n        self.assertEqual(double(0), 0)\n\n"
        '    @unittest.skip("for later")\n    def test_text(self):\n        self.assertEqual(double("a"), "aa")\n',
        ".meta/example.py": f"def double(number):\n    {MARK} = 2 * number\n    return {MARK}\n",
        ".docs/introduction.md": "# Introduction\n\nNumbers grow.\n",
        ".docs/instructions.md": "# Instructions\n\nDouble a number.\n",
        ".docs/instructions.append.md": "# More\n\nOf zero too.\n",
        ".docs/hints.md": f"Call it {MARK}.\n",
        ".approaches/plain/content.md": f"```python\n{MARK} = number + number\n```\n",
        ".gitignore": "*.log\n",
    },
    "shelf": {
        "Shelf.py": "import io\n\nSIZE = None\n\n\nclass Shelf(io.StringIO):\n"
        '    def put(self, thing):\n        raise NotImplementedError("put something there")\n',
        "shelf_test.py": "import unittest\nfrom unittest.mock import patch\n\nimport Shelf as shelf\n"
        "from test_things import Thing\n\n\nclass ShelfTest(unittest.TestCase):\n    def test_size(self):\n"
        "        self.assertEqual(shelf.SIZE, 3)\n\n    @patch('Shelf.SIZE', 4)\n    def test_put(self):\n"
        "        for number in range(4):\n            with self.subTest(number=number):\n"
        "                self.assertEqual(shelf.Shelf().put(Thing(number)), shelf.SIZE - number)\n",
        "order_test.py": "import pytest\n\nfrom Shelf import Shelf\n\n\ndef test_order():\n"
        "    with pytest.raises(ValueError):\n        Shelf().put(None)\n",
        "test_things.py": "import io\n\n\nclass Thing:\n    def __init__(self, size):\n        self.size = size\n\n\n"
        "class Tin(io.BytesIO):\n    pass\n",
        "names.txt": "read by nobody\n",
        ".meta/example.py": "import io\n\nSIZE = 3\n\n\nclass Shelf(io.StringIO):\n    def put(self, thing):\n"
        "        if thing is None:\n            raise ValueError(thing)\n        return SIZE - thing.size\n",
        ".docs/instructions.md": "# Instructions\n\nPut things on a shelf.\n",
    },
    "old-thing": {
        "old_thing.py": "def old():\n    pass\n",
        "old_thing_test.py": "from old_thing import old\n\n\ndef test_old():\n    assert old()\n",
        ".meta/example.py": "def old():\n    return True\n",
        ".docs/instructions.md": "Something from long ago.\n",
    },
}  # fmt: skip
FILES = {
    "double-it": {"solution": ["double_it.py"], "test": ["double_it_test.py"], "example": [".meta/example.py"]},
    "shelf": {
        "solution": ["Shelf.py"],
        "test": ["shelf_test.py", "order_test.py"],
        "editor": ["names.txt"],
        "example": [".meta/example.py"],
    },
    "old-thing": {"solution": ["old_thing.py"], "test": ["old_thing_test.py"], "example": [".meta/example.py"]},
}


def write_track(top: Path) -> Path:
    """Our own track, in Exercism's layout."""
    practice = [{"slug": slug, "name": slug.title()} for slug in EXERCISES]
    practice[-1]["status"] = "deprecated"
    (top / "exercises" / "concept" / "basics").mkdir(parents=True)
    (top / "config.json").write_text(json.dumps({"language": "Python", "exercises": {"practice": practice}}))
    for slug, files in EXERCISES.items():
        config = {"authors": [], "files": FILES[slug], "blurb": f"About {slug}."}
        for path, text in {**files, ".meta/config.json": json.dumps(config)}.items():
            place = top / "exercises" / "practice" / slug / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    return top


def commit(track: Path) -> Path:
    """A bare git directory that has the track in a commit."""
    place = track.with_name("track.git")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=0"]
    commands = (
        ["init", "-q"],
        ["add", "-A", "-f"],
        ["commit", "-qm", "all"],
        ["clone", "-q", "--bare", ".", str(place)],
    )
    for command in commands:
        subprocess.run(["git", *identity, *command], cwd=track, check=True, capture_output=True, timeout=60)
    return place
