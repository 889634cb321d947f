"""Every event once: a tool that says what it is told of."""

from debug_gym_core import Tool, hookimpl


class Notice(Tool):
    """Say what happened since it was last asked."""

    name = "notice"

    def __init__(self, **settings):
        """Nothing has happened yet."""
        super().__init__(**settings)
        self.changed = set()

    def use(self, env):
        """List the changed files."""
        return ", ".join(sorted(self.changed)) or "nothing changed"

    @hookimpl
    def on_reset(self, env):
        """Forget the episode before."""
        self.changed.clear()

    @hookimpl
    def on_file_changed(self, path, edits):
        """Remember the file; say how many places changed."""
        self.changed.add(path)
        return f"{path} changed in {len(edits)} place(s)"

    @hookimpl
    def on_evaluated(self, result):
        """Name the first test that failed."""
        return f"first failure: {result.failures[0].id}" if result.failures else None

    @hookimpl
    def on_step(self, env, call):
        """Remind of the budget; arguments that are not needed may be left out."""
        return f"{env.steps} steps used" if env.steps % 10 == 0 else None

    @hookimpl
    def on_submitted(self, env, message):
        """Keep the agent's words."""
        env.workspace.write_text("NOTES.md", f"{message}\n")


@hookimpl
def debug_gym_register_tools():
    """Register the tool."""
    return [Notice]
