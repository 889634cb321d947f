"""What an image has of what tasks need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from debug_gym_core.errors import SandboxError

if TYPE_CHECKING:
    from debug_gym_core.sandbox.session import Session

_LOOK = (
    "import sys\ntry: from importlib.metadata import version\n"
    "except ImportError: from importlib_metadata import version\n"
    "for name in sys.argv[1:]:\n try: version(name)\n except Exception: print(name)\n"
)


def missing(session: Session, requires: Sequence[str]) -> list[str]:
    """Find out which distributions the Python of a sandbox's image lacks.

    Args:
        session: the sandbox
        requires: names of distributions

    Raises:
        SandboxError: the Python does not work, or the sandbox was lost
    """
    if not requires:
        return []
    result = session.run([session.python, "-c", _LOOK, *requires], timeout=60)
    if result.exit_status != 0:
        raise SandboxError(f"the image's Python {session.python} does not work: {result.output[-500:]}")
    return result.output.split()


def remedy(lacking: Sequence[str]) -> str:
    """How an image comes by distributions that it lacks, for an error message."""
    install = f"pip install {' '.join(lacking)}"
    return (
        f"take an image that has (-p terminal.image=...), have it installed once (-p 'terminal.setup=[\"{install}\"]' "
        "-p terminal.network=host), or name another Python of it (-p env.python=...)"
    )
