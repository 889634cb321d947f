import pytest
from acme_tools_journal import Hypothesis, Journal

from debug_gym_core import Tool, hookimpl
from debug_gym_core.testing import ToolContract

pytest_plugins = ["debug_gym_core.testing.fixtures"]


class TestHypothesis(ToolContract):
    tool = Hypothesis
    calls = ({"text": "the first price is left out"}, {"text": "another"})
    companions = (Journal(),)


class TestJournal(ToolContract):
    tool = Journal
    calls = ({},)


class Echo(Tool):
    """A tool of somebody else that answers the event."""

    name = "echo"

    def use(self, env):
        """Run the tests."""
        return str(env.measure().exit_status)

    @hookimpl
    def on_hypothesis(self, text):
        return f"You believe: {text}"


@pytest.fixture
def tools():
    return [Hypothesis(), Journal(), Echo()]


def test_an_event_of_ones_own_reaches_every_tool(env, say):
    say("hypothesis 'the sum is wrong'")
    said = [(one.source, one.text) for one in env.last_observations]
    assert said == [("hypothesis", "Hypothesis 1 is noted."), ("echo", "You believe: the sum is wrong")]
    say("hypothesis 'it is not'")
    assert [one.source for one in env.last_observations] == ["hypothesis", "journal", "echo"]


def test_the_journal_says_what_became_of_it(say):
    say("hypothesis 'the sum is wrong'")
    say("echo")
    assert say("journal").text == "1. the sum is wrong\n   then 1 of 2 tests passed"
