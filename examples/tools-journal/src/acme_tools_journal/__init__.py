"""Two tools: `hypothesis` emits an event of this package, `journal` answers it and one of debug-gym's own."""

from debug_gym_core import ActionError, Observation, Tool, hookimpl


class Hypothesis(Tool):
    """Say what you believe the cause of the bug is, before you look whether it is so."""

    name = "hypothesis"
    examples = ({"text": "total() leaves out the first price"},)

    def __init__(self, **settings):
        super().__init__(**settings)
        self.count = 0

    def use(self, env, text: str):
        """Note a hypothesis.

        Args:
            text: one sentence
        """
        if not text.strip():
            raise ActionError("hypothesis: the text is empty; say in one sentence what you believe")
        self.count += 1
        env.emit("on_hypothesis", number=self.count, text=text.strip()[:500])
        return f"Hypothesis {self.count} is noted."

    @hookimpl
    def on_reset(self, env):
        from acme_tools_journal import events

        env.add_event_specs(events)
        self.count = 0


class Journal(Tool):
    """Show the hypotheses of this episode and how many tests passed after each."""

    name = "journal"

    def __init__(self, **settings):
        super().__init__(**settings)
        self.lines = []

    def use(self, env):
        """Show the journal."""
        return Observation(
            self.name, "\n".join(self.lines[-50:]) or "The journal is empty.", {"lines": self.lines[-50:]}
        )

    @hookimpl
    def on_reset(self):
        self.lines = []

    @hookimpl
    def on_hypothesis(self, number, text):
        self.lines.append(f"{number}. {text}")
        return f"{number} in the journal" if number > 1 else None

    @hookimpl
    def on_evaluated(self, env):
        if self.lines:
            self.lines.append(f"   then {env.score} of {env.max_score} tests passed")


@hookimpl
def debug_gym_register_tools():
    return [Hypothesis, Journal]
