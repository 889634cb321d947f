"""A tool with settings, structured data and an error for the agent."""

import json
from typing import ClassVar

from pydantic import Field

from debug_gym_core import ActionError, Observation, Settings, Tool, hookimpl


class ColumnSettings(Settings):
    """Settings of the tool.

    Attributes:
        limit: rows that are read at most
    """

    limit: int = Field(1000, ge=1)


class Column(Tool):
    """Show the values of one key in a file of JSON lines."""

    name = "column"
    Settings: ClassVar[type[Settings]] = ColumnSettings

    def use(self, env, path: str, key: str):
        """Look the values up.

        Args:
            env: the environment
            path: the file, a JSON object a line
            key: the key
        """
        lines = env.workspace.read_text(path).splitlines()[: self.settings.limit]
        try:
            rows = [json.loads(line) for line in lines]
        except ValueError as error:
            raise ActionError(f"column: {path} is not JSON lines: {error}") from None
        values = [row[key] for row in rows if isinstance(row, dict) and key in row]
        if not values:
            raise ActionError(f"column: no row of {path} has the key {key!r}")
        return Observation(self.name, "\n".join(map(str, values)), {"path": path, "values": values})


@hookimpl
def debug_gym_register_tools():
    """Register the tool."""
    return [Column]
