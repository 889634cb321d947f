"""The command `debug-gym tally`."""

from collections import Counter
from pathlib import Path

import click

from acme_results import results_of


@click.command("tally")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
def command(runs):
    """Count the results of RUNS by agent and status."""
    counts = Counter((result["agent"], result["status"]) for run in runs for result in results_of(run))
    for (agent, status), count in sorted(counts.items()):
        click.echo(f"{agent}  {status}  {count}")
