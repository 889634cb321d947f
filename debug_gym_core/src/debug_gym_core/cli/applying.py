"""Applies a change to the files of a person's own repository: all of it, or nothing."""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from debug_gym_core import hermetic_git
from debug_gym_core.cli.shown_paths import shown_path
from debug_gym_core.errors import DebugGymError, RequirementError


def apply(patch: Path, directory: Path) -> None:
    """Apply a patch to the files of a directory, all of it or nothing.

    Args:
        patch: the file
        directory: a repository of git or none; what lies above it is not looked at

    Raises:
        RequirementError: git is not installed
        DebugGymError: it does not fit, as the files were changed meanwhile
    """
    from debug_gym_core.workspace.patch import renamed, touched

    command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", str(patch.absolute())]
    data = patch.read_bytes()
    files = {path: directory / path for path in touched(data)}
    _refuse_to_wait(patch, files.values(), directory)
    known = {path: _state(file) for path, file in files.items()}
    try:
        with tempfile.TemporaryDirectory() as empty:
            # A repository's own settings name programs, such as filters, that git would run on its files. And where
            # the directory is one of a larger repository, git would take the paths for that one's. The person's own
            # settings name programs too, which the repository could have run on what it likes.
            hermetic_git.make_empty(Path(empty))
            places = {"GIT_DIR": empty, "GIT_WORK_TREE": str(directory.absolute())}
            environment = {**hermetic_git.without_git(), **hermetic_git.ALONE, **places}
            done = subprocess.run(
                command, cwd=directory, env=environment, capture_output=True, text=True, errors="replace"
            )
    except FileNotFoundError:
        raise RequirementError(f"git is not installed; the change is kept: {shown_path(patch)}") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["git says nothing"])[0].removeprefix("error: ")
        raise DebugGymError(
            f"nothing was applied, {directory} has changed meanwhile: {said}\nThe change is kept: {shown_path(patch)}"
        )
    old_names = renamed(data)
    for path, file in files.items():
        before = known.get(old_names.get(path, path))
        if before is not None:
            with contextlib.suppress(OSError):  # what git made of it stays, as the change is applied
                _restore(file, before)


def _state(file: Path) -> os.stat_result | None:
    """Whose a file is, and its permissions; None where there is none, or something else."""
    try:
        found = file.lstat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _restore(file: Path, before: os.stat_result) -> None:
    """Give a file back whose it was, and its permissions but for whether it is executable: git makes a new one of it.

    Where it cannot be its owner's and group's again, nobody may do more with it than before.
    """
    from debug_gym_core.workspace.patch import permissions

    now = _state(file)
    if now is None:
        return
    wanted = permissions(stat.S_IMODE(before.st_mode), executable=bool(now.st_mode & stat.S_IXUSR))
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.chown(file, before.st_uid, before.st_gid, follow_symlinks=False)
        except OSError:
            wanted &= now.st_mode
    if wanted != stat.S_IMODE(now.st_mode):
        file.chmod(wanted)


def by_hand(patch: Path, directory: Path) -> str:
    """The command that applies a patch to the files of a directory.

    Args:
        patch: the file
        directory: a repository of git, a directory of one, or none: below a larger repository git takes the paths of a
            patch for that one's, wherever it is started, and passes over those that are not below the directory
    """
    where, more = directory, []
    real = directory.resolve()
    above = next((one for one in (real, *real.parents) if (one / ".git").exists()), real)
    if above != real:
        where, more = above, [f"--directory={real.relative_to(above)}"]
    return shlex.join(["git", "-C", str(where), "apply", *more, str(patch.absolute())])


def _refuse_to_wait(patch: Path, files: Iterable[Path], directory: Path) -> None:
    """Refuse to apply a patch where git would wait for whoever writes into a pipe.

    Raises:
        DebugGymError: there is one in place of git's own file
    """
    for place in sorted({above for file in files for above in file.parents}):
        file = place / ".gitattributes"
        if place.is_relative_to(directory) and file.is_fifo():
            raise DebugGymError(
                f"nothing was applied, {file} is a pipe: remove it.\nThe change is kept: {shown_path(patch)}"
            )
