"""Two tools that talk through an event of their own."""

from debug_gym_core import Tool, hookimpl, hookspec


class Events:
    """The events that these tools add."""

    @hookspec
    def on_suspected(self, env, path, line):
        """The agent suspects a line."""


class Suspect(Tool):
    """Note a line that may be wrong."""

    name = "suspect"

    @hookimpl
    def on_reset(self, env):
        """Add the event; doing so at each reset does no harm."""
        env.add_event_specs(Events)

    def use(self, env, path: str, line: int):
        """Note it.

        Args:
            env: the environment
            path: the file
            line: its line
        """
        env.emit("on_suspected", path=path, line=line)
        return f"noted {path}:{line}"


class Board(Tool):
    """Show the suspects."""

    name = "board"
    _suspects: tuple[str, ...] = ()

    def use(self, env):
        """List them."""
        return "\n".join(self._suspects) or "no suspects"

    @hookimpl
    def on_suspected(self, path, line):
        """Remember one; what is returned joins the observation of the call that told of it."""
        self._suspects += (f"{path}:{line}",)
        return f"{len(self._suspects)} on the board"


@hookimpl
def debug_gym_register_tools():
    """Register both."""
    return [Suspect, Board]
