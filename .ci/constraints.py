#!/usr/bin/env python3
"""Print the root pyproject.toml's `constraint-dependencies`, one a line (nothing when there are none)."""

import sys
import tomllib
from pathlib import Path


def main() -> int:
    """Print the constraints."""
    project = Path(__file__).resolve().parent.parent / "pyproject.toml"
    if project.is_file():
        settings = tomllib.loads(project.read_text(encoding="utf-8"))
        for line in settings.get("tool", {}).get("uv", {}).get("constraint-dependencies", []):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
