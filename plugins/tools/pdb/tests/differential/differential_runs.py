"""Runs cases of the differential test in warm processes, one for each interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from support import version_of

from debug_gym_core.sandbox import shipping
from debug_gym_tool_pdb.boot import blob

START = "import sys; sys.path.insert(0, sys.argv[1]); import differential_driver as d; d.main(sys.argv[2])"


class Driver:
    """A process of an interpreter in which programs are run."""

    def __init__(self, python: str) -> None:
        self.version = version_of(python)
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
            file.write(f"{shipping.BOOT}\nblob = {blob()!r}\n")
        self._program = Path(file.name)
        flags = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"}
        here = Path(__file__).resolve().parent
        self.process = subprocess.Popen(
            [python, "-c", START, str(here), file.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **flags},
        )

    def run(self, files: dict[str, str], runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run `main.py` of these files once for each run; what each said."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"files": files, "runs": runs}) + "\n")
        self.process.stdin.flush()
        answer: list[dict[str, Any]] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
        self._program.unlink()

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
