"""Results of runs: an export format."""

import csv

from debug_gym_core import UsageError, hookimpl
from debug_gym_core.runs.jobs import Exporter

FIELDS = ("task", "agent", "llm", "status", "score", "max_score", "steps", "cost")


def results_of(run):
    """The results of a run, an object a task."""
    from debug_gym_core.runs.trajectory import read_results

    if not (run / "results.jsonl").is_file():
        raise UsageError(f"{run} is no run: it has no results.jsonl")
    return [result.as_json() for result in read_results(run / "results.jsonl")]


class CsvExporter(Exporter):
    """A table that spreadsheets read: a line a task."""

    name = "csv"

    def export(self, run, target):
        results = results_of(run)
        try:
            with target.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, FIELDS, extrasaction="ignore")
                writer.writeheader()
                writer.writerows(results)
        except OSError as error:
            raise UsageError(f"{target}: {error.strerror}") from error


@hookimpl
def debug_gym_register_exporters():
    return [CsvExporter]
