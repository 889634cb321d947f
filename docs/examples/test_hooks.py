"""A contract test for each component of hooks.py; none is installed, so none is registered."""

from hooks import AlwaysEval, LookOnce, OneBug, Pool, Scores, WordCount

from debug_gym_core.testing import (
    AgentContract,
    BenchmarkContract,
    ExecutorContract,
    ExporterContract,
    LLMContract,
    ToolContract,
)


class TestWordCount(ToolContract):
    """The tool."""

    tool = WordCount
    calls = ({"path": "hello.txt"},)
    registered = False


class TestOneBug(BenchmarkContract):
    """The benchmark."""

    benchmark = OneBug
    registered = False


class TestLookOnce(AgentContract):
    """The agent."""

    agent = LookOnce
    resolves = False
    registered = False


class TestAlwaysEval(LLMContract):
    """The model."""

    llm = AlwaysEval
    registered = False


class TestPool(ExecutorContract):
    """The executor."""

    executor = Pool
    registered = False


class TestScores(ExporterContract):
    """The exporter."""

    exporter = Scores
    registered = False
