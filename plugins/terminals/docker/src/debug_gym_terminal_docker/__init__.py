"""The docker terminal of debug-gym: one hardened container a sandbox.

`terminal` is the backend and `container` one that runs, hardened as `settings` say; `readonly_owner` makes files in it
read-only. `engine` is the connection to Docker, `pull` gets images and `building` prepares them, `python` finds the
Python in one.
"""

from debug_gym_terminal_docker.terminal import DockerTerminal

__all__ = ["DockerTerminal"]
