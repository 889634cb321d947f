"""The bubblewrap terminal of debug-gym: a sandbox without a daemon."""

from debug_gym_terminal_bubblewrap.terminal import BubblewrapTerminal

__all__ = ["BubblewrapTerminal"]
