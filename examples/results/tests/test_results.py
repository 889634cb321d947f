from acme_results import CsvExporter
from acme_results.tally import command
from click.testing import CliRunner

from debug_gym_core.testing import ExporterContract


class TestCsvExporter(ExporterContract):
    exporter = CsvExporter
    target = "results.csv"

    def test_a_line_a_task(self, run, tmp_path):
        CsvExporter().export(run, tmp_path / "results.csv")
        lines = (tmp_path / "results.csv").read_text().splitlines()
        assert lines[0] == "task,agent,llm,status,score,max_score,steps,cost"
        assert lines[1] == "toy/a,solution_agent,,resolved,2,2,3,0.0"

    def test_the_command_counts(self, run):
        result = CliRunner().invoke(command, [str(run), str(run)])
        assert result.output.splitlines() == [
            "solution_agent  error  2",
            "solution_agent  resolved  2",
            "solution_agent  unresolved  2",
        ]
