"""Tests of the tool: what every tool promises, and what this one does."""

from my_word_count import WordCount

from debug_gym_core.testing import ToolContract

MORE = {"empty.txt": ""}  # beside the files of the kit's sample repository


class TestWordCount(ToolContract):
    """The contract's tests, and one more; they share an environment with a small repository."""

    tool = WordCount
    calls = ({"path": "hello.txt"}, {"path": "hello.txt", "unique": True}, {"path": "empty.txt"})
    more_files = MORE

    def test_words_are_counted(self, env):
        """What an agent reads."""
        observation, *_ = env.step("wc hello.txt")
        assert observation["text"] == "hello.txt: 5 words"
