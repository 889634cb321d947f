"""The top-level modules that are installed for a sandbox's Python: a repository must not come to shadow one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from debug_gym_core.errors import SandboxError
from debug_gym_core.grading.python_names import module_name

if TYPE_CHECKING:
    from debug_gym_core.sandbox.session import Session

LISTING = """\
import json, os, sys
places = [one for one in sys.path if os.path.basename(one) in ("site-packages", "dist-packages")]
print(json.dumps([name for one in places if os.path.isdir(one) for name in os.listdir(one)]))
"""
"""What an image's Python, 3.6 or later, is asked; without anything of the workspace or the user."""

TIMEOUT = 60.0
"""Seconds that it may take."""

LIMIT = 4 << 20
"""Bytes of its answer."""


def installed_modules(session: Session) -> frozenset[str]:
    """Names of modules and packages in the directories that distributions are installed in.

    Args:
        session: a sandbox of the task; of an image its Python is asked

    Raises:
        SandboxError: the image's Python does not say
    """
    interpreter = session.spec.interpreter
    names = _listed(interpreter.site) if interpreter is not None else _asked(session)
    return frozenset(module for name in names if (module := module_name(name)) and module.isidentifier())


def _listed(places: tuple[Path, ...]) -> Iterator[str]:
    """What is in directories of the host; nothing is imported from one that is not there or cannot be read."""
    for place in places:
        with contextlib.suppress(OSError):
            yield from (path.name for path in place.iterdir())


def _asked(session: Session) -> list[str]:
    """What is in those of an image."""
    try:
        result = session.run([session.python, "-I", "-c", LISTING], timeout=TIMEOUT, cwd="/", output_limit=LIMIT)
        names = json.loads(result.output)
    except (OSError, ValueError) as error:
        raise SandboxError(f"the image's Python does not say what is installed: {error}") from error
    return [str(name) for name in names]
