"""The docker terminal of debug-gym: one hardened container a sandbox."""

from debug_gym_terminal_docker.terminal import DockerTerminal

__all__ = ["DockerTerminal"]
