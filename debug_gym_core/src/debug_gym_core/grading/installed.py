"""The top-level modules that are installed for a sandbox's Python: a repository must not come to shadow one."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from debug_gym_core.grading.python_names import module_name
from debug_gym_core.sandbox import plain_files
from debug_gym_core.sandbox.terminal import ROOT

if TYPE_CHECKING:
    from debug_gym_core.sandbox.interpreter import Interpreter
    from debug_gym_core.sandbox.session import Session

log = logging.getLogger("debug_gym")

MARK = "debug-gym-installed:"

LISTING = f"""\
import json, os, sys
standard, root = (os.path.realpath(one) for one in (os.path.dirname(os.__file__), sys.argv[1]))
places = [os.path.realpath(one) for one in sys.path if one and os.path.isdir(one)]
places = [one for one in places if one != standard and not (one + os.sep).startswith(root + os.sep)]
print("\\n{MARK}" + json.dumps(sorted({{name for one in places for name in os.listdir(one)}})))
"""
"""What an image's Python, whichever it is, is asked as it runs the tests, but for the workspace."""

TIMEOUT = 60.0
"""Seconds that it may take."""

LIMIT = 4 << 20
"""Bytes of its answer."""


def installed_modules(session: Session, python: str | None = None) -> frozenset[str]:
    """Names of modules and packages in the directories outside of the workspace that are imported from.

    Args:
        session: a sandbox of the task; of an image its Python is asked, and where that does not say, there are none
        python: that which runs the tests; None: the session's

    Raises:
        SandboxError: the sandbox, or what was asked in it, was lost
    """
    interpreter = session.spec.interpreter
    if interpreter is not None:
        # Of an editable install only the distribution is there; its modules mostly have the same name. What else its
        # `top_level.txt` names is not looked for: `tests` and `utils` are often among it by mistake.
        others = interpreter.packages.keys() - _own(interpreter, session)
        names = {*_listed(interpreter.site), *(name.replace("-", "_") for name in others)}
    else:
        names = set(_asked(session, python or session.python))
    return frozenset(module for name in names if (module := module_name(name)) and module.isidentifier())


def _listed(places: tuple[Path, ...]) -> Iterator[str]:
    """What is in directories of the host; nothing is imported from one that is not there or cannot be read."""
    for place in places:
        with contextlib.suppress(OSError):
            yield from (path.name for path in place.iterdir())


def _own(interpreter: Interpreter, session: Session) -> set[str]:
    """Distributions that are installed editable from the repository, by normalised name: it cannot shadow itself."""
    source = session.spec.source
    roots = {Path(session.root), Path(ROOT)}  # where setup commands install it from
    roots |= {source.absolute(), Path(os.path.realpath(source))} if source is not None else set()
    found: set[str] = set()
    for place in interpreter.site:
        for name in _listed((place,)):
            stem, suffix = os.path.splitext(name)  # noqa: PTH122 (a name)
            project = {".egg-link": stem, ".dist-info": stem.rpartition("-")[0]}.get(suffix)
            directory = _installed_from(place / name) if project else None
            if not project or directory is None or roots.isdisjoint((directory, *directory.parents)):
                continue
            # What `pip install -e git+https://...` fetches lies in the environment, which may be in the repository.
            if not directory.is_relative_to(interpreter.prefix):
                found.add(canonicalize_name(project))
    return found


def _installed_from(path: Path) -> Path | None:
    """The directory that a `.dist-info` (PEP 610) or an `.egg-link` says that it is an editable install of."""
    try:
        if path.suffix == ".egg-link":
            text = (plain_files.read(path) or b"").decode().partition("\n")[0].strip()
        else:
            said = json.loads(plain_files.read(path / "direct_url.json") or b"null")
            text = unquote(urlsplit(str(said["url"])).path) if said["dir_info"]["editable"] else ""
    except (ValueError, TypeError, LookupError, RecursionError):  # setup commands may have written anything
        return None
    return Path(os.path.normpath(text)) if text else None


def _asked(session: Session, python: str) -> list[str]:
    """What is in those of an image."""
    try:
        result = session.run([python, "-c", LISTING, session.root], timeout=TIMEOUT, cwd="/", output_limit=LIMIT)
        said = result.output.rpartition(MARK)[2].partition("\n")[0]  # other things are printed as a Python starts
        return [str(name) for name in json.loads(said)]
    except (OSError, ValueError, TypeError) as error:
        log.warning("%s of the image does not say what is installed, so that it may be shadowed: %s", python, error)
        return []
