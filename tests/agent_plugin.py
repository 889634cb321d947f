"""Plugins of one file with an agent that plays nothing: something happens before it could."""

from __future__ import annotations

import textwrap
from pathlib import Path

SOURCE = '''
import os
import shutil
import signal
from pathlib import Path

from debug_gym_core import Agent, hookimpl

{loaded}


class Idle(Agent):
    """Plays nothing."""

    name = "{name}"
    needs_llm = False

    def __init__(self, **settings):
        super().__init__(**settings)
{made}

    def play(self, env, llm): ...


@hookimpl
def debug_gym_register_agents():
    return [Idle]


@hookimpl
def debug_gym_run_started(run):
{begun}
'''


def write_agent(path: Path, name: str, *, loaded: str = "", made: str = "pass", begun: str = "pass") -> None:
    """Write such a plugin.

    Args:
        path: its file
        name: its agent's
        loaded: code that is run when the plugin is loaded, which may use `os`, `shutil`, `signal` and `Path`
        made: when the agent is made
        begun: when the run begins, with the `run`
    """
    made, begun = textwrap.indent(made, " " * 8), textwrap.indent(begun, " " * 4)
    path.write_text(SOURCE.format(name=name, loaded=loaded, made=made, begun=begun))
