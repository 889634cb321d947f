"""The bubblewrap terminal of debug-gym: a sandbox without a daemon.

`terminal` is the backend and `sandbox` one that runs. `mounts` is what it sees of the host, `isolation` how it is cut
off, `readonly_mounts` what is read-only in it; `cgroup`, `inodes` and `watch` bound it.
"""

from debug_gym_terminal_bubblewrap.terminal import BubblewrapTerminal

__all__ = ["BubblewrapTerminal"]
