"""Tests with the fixtures of debug_gym_core.testing."""

import pytest
from my_word_count import WordCount

pytest_plugins = ["debug_gym_core.testing.fixtures"]


@pytest.fixture
def tools():
    """The tools of the environment that `say` uses."""
    return [WordCount()]


def test_words_are_counted(say):
    """In the sample repository."""
    assert say("wc hello.txt").text == "hello.txt: 5 words"


@pytest.mark.parametrize("files", [{"a.txt": "to be or not to be"}])
def test_unique_words(say):
    """In a repository of the test's own."""
    assert say("wc a.txt unique=yes").text == "a.txt: 4 words"
