"""A terminal: a plain directory of this machine, with resource limits."""

from debug_gym_core import hookimpl


@hookimpl
def debug_gym_register_terminals():
    from acme_terminal_prlimit.terminal import PrlimitTerminal

    return [PrlimitTerminal]
