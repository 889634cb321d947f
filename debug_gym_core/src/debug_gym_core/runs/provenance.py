"""Which programs played a run: what its record says of their versions."""

from __future__ import annotations

import contextlib
import functools
import platform
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debug_gym_core.components.catalogue import FILE
from debug_gym_core.errors import UnknownName

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from debug_gym_core.components.catalogue import Plugins

_OURS = "debug-gym-"


def versions(plugins: Plugins | None) -> dict[str, Any]:
    """The versions of Python, of the platform, and of what is installed of debug-gym and its plugins."""
    found = _installed() | {record.distribution: record.version for record in (plugins.records if plugins else ())}
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "distributions": dict(sorted(found.items())),
    }


@functools.cache
def _installed() -> dict[str, str]:
    """The versions of what was installed of debug-gym when this process first asked: what it runs is that."""
    import importlib.metadata

    found = (one.metadata for one in importlib.metadata.distributions() if _may_be_ours(one))
    return {name: one["Version"] for one in found if (name := one["Name"]) and name.lower().startswith(_OURS)}


def _may_be_ours(distribution: Distribution) -> bool:
    """Whether the head of what describes a distribution has such a name in it, which is seen in a tenth of the time.

    Its name stands in that file alone, and `metadata` reads all of it, a README included, as an e-mail is read.
    """
    texts = map(distribution.read_text, ("METADATA", "PKG-INFO", ""))  # as it does
    return _OURS in next(filter(None, texts), "").partition("\n\n")[0].lower()


@contextlib.contextmanager
def naming_absent(record: Mapping[str, Any], plugins: Plugins | None) -> Iterator[None]:
    """In its block the config of a run is understood; what it names may be of a plugin that is not there.

    Args:
        record: the run.json
        plugins: what is there

    Raises:
        UnknownName: the block raised it; the text names what the run was played with, and is not there
    """
    try:
        yield
    except UnknownName as error:
        gone = _absent(record, plugins)
        if not gone:
            raise
        told = [f"--plugin-file {name}" if version == FILE else f"{name} {version}" for name, version in gone.items()]
        raise UnknownName(f"{error}\nThe run was played with what is not here: {', '.join(told)}") from error


def _absent(record: Mapping[str, Any], plugins: Plugins | None) -> dict[str, str]:
    """The versions of the distributions that a run was played with and that are not there; files go by their names."""
    kept = record.get("versions")
    found = kept.get("distributions") if isinstance(kept, dict) else None
    here = versions(plugins)["distributions"]
    files = {path.name for path in plugins.files} if plugins else set()
    return {
        name: version
        for name, version in (found if isinstance(found, dict) else {}).items()
        if (Path(name).name not in files if version == FILE else name not in here)
    }


def absent_files(record: Mapping[str, Any], plugins: Plugins) -> list[str]:
    """The unpackaged plugins that a run was played with, and that are not there, by their names.

    Args:
        record: the run.json
        plugins: what is there
    """
    return [name for name, version in _absent(record, plugins).items() if version == FILE]


def file_options(files: Iterable[str | Path]) -> str:
    """The options that name unpackaged plugins in a command, each with a blank before it."""
    return "".join(f" --plugin-file {shlex.quote(str(path))}" for path in files)


def commit(package: Path) -> dict[str, Any] | None:
    """The commit of the checkout that debug-gym runs from; None when it was installed from a package.

    A package can lie in a virtual environment of somebody's repository, whose settings name programs to git.
    """
    if not any((root / ".git").exists() for root in package.parents[2:3]):
        return None

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(package), *arguments], capture_output=True, text=True, timeout=20, check=True
        )
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")
        return {"hash": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.SubprocessError):
        return None
