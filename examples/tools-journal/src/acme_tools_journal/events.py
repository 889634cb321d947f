"""The events of this package: tools of anybody may answer them."""

from debug_gym_core import hookspec


@hookspec
def on_hypothesis(env, number: int, text: str):
    """The agent said what it believes; `number` counts from 1 in the episode."""
