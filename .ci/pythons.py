#!/usr/bin/env python3
"""Print the Python interpreters of this machine, one for each version from 3.6 on: `VERSION<TAB>PATH`.

Looked for on PATH and among pyenv's; only those that start, of one minor version the newest, virtual environments not.
"""

import os
import subprocess
import sys
from pathlib import Path

QUESTION = (
    "import sys; sys.prefix == sys.base_prefix and print('%d.%d.%d' % sys.version_info[:3] + '\\t' + sys.executable)"
)


def candidates() -> list[Path]:
    """Return the files that may be interpreters."""
    names = [*(f"python3.{minor}" for minor in range(6, 21)), "python3", "python"]
    found = [Path(folder) / name for folder in os.environ.get("PATH", "").split(os.pathsep) if folder for name in names]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for root in {pyenv, Path.home() / ".pyenv"}:
        found += sorted(root.glob("versions/*/bin/python3"))
    return [path for path in found if path.is_file()]


def asked(path: Path) -> tuple[tuple[int, ...], Path] | None:
    """Return the version and the real path of an interpreter, or None if it does not start or is not one to use."""
    try:
        done = subprocess.run(
            [path, "-I", "-c", QUESTION], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version, _, executable = done.stdout.strip().partition("\t")
    if done.returncode != 0 or not executable:
        return None
    numbers = tuple(int(part) for part in version.split("."))
    return (numbers, Path(executable)) if numbers >= (3, 6) else None


def main() -> int:
    """Print them."""
    newest: dict[tuple[int, ...], tuple[tuple[int, ...], Path]] = {}
    for path in candidates():
        answer = asked(path)
        if answer is not None and answer[0] > newest.get(answer[0][:2], ((), path))[0]:
            newest[answer[0][:2]] = answer
    for _, (version, path) in sorted(newest.items()):
        print(".".join(map(str, version)), path, sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
