import pytest
from acme_tool_syntax import Syntax

from debug_gym_core.testing import ToolContract

pytest_plugins = ["debug_gym_core.testing.fixtures"]


class TestSyntax(ToolContract):
    tool = Syntax
    calls = ({"path": "shop.py"}, {"path": "hello.txt"})


@pytest.fixture
def tools():
    return [Syntax()]


def test_an_error_is_told_with_its_line(say):
    assert say("syntax shop.py").text == "shop.py: no syntax error"
    assert say("syntax hello.txt").text.startswith("hello.txt, line 2\n    and good night")


def test_a_change_is_checked_by_itself(env, say):
    env.workspace.write_text("shop.py", "def total(:\n")
    say("syntax hello.txt")
    assert "shop.py, line 1" in env.last_observations[1].text
