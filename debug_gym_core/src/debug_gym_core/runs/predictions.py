"""What a run leaves for a benchmark's own harness: `predictions.jsonl`, a line a task."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from debug_gym_core.components.component import blamed
from debug_gym_core.runs.replacing import replaced

if TYPE_CHECKING:
    from debug_gym_core.runs.run import Run
    from debug_gym_core.tasks.task import Benchmark


def write(run: Run, benchmark: Benchmark) -> None:
    """Write the predictions of all results that a run has, for a benchmark whose harness takes some.

    Tasks that failed for infrastructure are left out. The further episodes of a task that is repeated are in
    `predictions.2.jsonl` and so on, since harnesses take one patch a task. A file that no result is for is removed.

    Args:
        run: whose results and patches
        benchmark: where its tasks are from

    Raises:
        OSError: a file cannot be read or written
        PluginError: the benchmark fails
    """
    found: dict[int, list[str]] = defaultdict(list)
    for (task, repeat), result in sorted(run.results.items(), key=lambda item: (item[0][0], item[0][1] or 1)):
        path = run.task_directory(task, repeat) / "patch.diff"
        if result.status == "error" or not path.exists():
            continue
        model = "+".join(filter(None, (result.agent, result.llm)))
        patch = path.read_bytes()
        with blamed(type(benchmark), f"make the prediction of {task}"):
            line = benchmark.prediction(task.removeprefix(f"{benchmark.name}/"), patch, model)
            if line is not None:
                found[repeat or 1].append(json.dumps(line, ensure_ascii=False) + "\n")
    for left in run.directory.glob("predictions*.jsonl"):
        named = re.fullmatch(r"predictions(?:\.(\d+))?\.jsonl", left.name)
        if named and int(named[1] or 1) not in found:
            left.unlink()
    for number, lines in found.items():
        name = "predictions.jsonl" if number == 1 else f"predictions.{number}.jsonl"
        with replaced(run.directory / name) as path:
            path.write_text("".join(lines), encoding="utf-8", errors="backslashreplace")
