"""A small repository as SWE-smith publishes its own: a row, and the image with the right code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import swebench_images as images

from debug_gym_core.workspace import patch
from debug_gym_core.workspace.snapshot import FileState

RIGHT = """\
def area(width, height):
    the_area = width * height
    return the_area


def around(width, height):
    return 2 * (width + height)
"""
BUGGY = RIGHT.replace("width * height", "width + height")
FILES = {
    "shapes.py": RIGHT,
    "tests/test_area.py": (
        "import pytest\nfrom shapes import area\n\n\n@pytest.mark.parametrize('n', [3, 4])\ndef test_area(n):\n"
        "    assert area(n, 5) == 5 * n\n\n\ndef test_nothing():\n    assert area(0, 0) == 0\n"
    ),
    "tests/test_around.py": "from shapes import around\n\n\ndef test_around():\n    assert around(1, 2) == 6\n",
    "conftest.py": "",
}
NAME = "acme__shapes.12345678.func_basic__abcdefgh"


def made_patch(before: str, after: str, path: str = "shapes.py") -> str:
    return patch.make({path: FileState(before.encode())}, {path: FileState(after.encode())}).decode()


def row(**changes: Any) -> dict[str, Any]:
    return {
        "instance_id": NAME,
        "repo": "swesmith/acme__shapes.12345678",
        "patch": made_patch(RIGHT, BUGGY),
        "FAIL_TO_PASS": ["tests/test_area.py::test_area[3]", "tests/test_area.py::test_area[4]"],
        "PASS_TO_PASS": ["tests/test_area.py::test_nothing", "tests/test_around.py::test_around"],
        "created_at": "2025-01-01T00:00:00",
        "image_name": "swesmith.x86_64.acme__shapes.12345678",
        "base_commit": "0" * 40,
        "problem_statement": "The area of a rectangle is wrong.\n",
    } | changes


def build(base: str, python: str, context: Path, tag: str, more: Mapping[str, str]) -> None:
    """Build an image in the published layout: the right repository with its history at /testbed, conda's interpreter.

    Args:
        base: the image below
        python: its Python
        context: an empty directory
        tag: what to call it
        more: files to add, text by absolute path
    """
    files = {**{f"/testbed/{path}": text for path, text in FILES.items()}, **more}
    commands = (
        f"mkdir -p /opt/miniconda3/envs && ln -s {Path(python).parent.parent} /opt/miniconda3/envs/testbed"
        " && git init -q -b main && git add -A"
        " && git -c user.name=t -c user.email=t@localhost commit -qm 'the right code'"
    )
    images.build_of(base, context, tag, files, commands)
