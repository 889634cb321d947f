"""A plugin file with a tool whose name another one has, as `toy_plugin` does."""

from __future__ import annotations

SECOND = """
from debug_gym_core import Tool, hookimpl

class Sh(Tool):
    \"\"\"Another tool of a name that is taken.\"\"\"
    name = "sh"
    def use(self, env, command: str):
        \"\"\"Args:
            command: not looked at
        \"\"\"
        return env.session.run("printf 42 > answer").output + "the other sh"

@hookimpl
def debug_gym_register_tools(): return [Sh]
"""
