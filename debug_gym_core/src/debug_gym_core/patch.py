"""Patches by git on the host, over trees that live in a temporary object store and never touch a work tree.

No file of the task is ever written under its name on the host: contents go through `git fast-import`, so that odd
names, symbolic links, line ends and `.gitattributes` mean nothing to the host. The user's git configuration does not
count. (`git diff --no-index` will not do: it writes renames that `git apply` refuses.)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from debug_gym_core.errors import ActionError, RequirementError
from debug_gym_core.lines import decode, encode
from debug_gym_core.snapshot import FileState

_LINK, _EXECUTABLE, _FILE = "120000", "100755", "100644"


_DIFF = ["diff-tree", "-r", "-p", "--binary", "--no-color", "--no-ext-diff", "--no-textconv"]
_APPLY = ["apply", "--whitespace=nowarn"]


def make(before: Mapping[str, FileState | None], after: Mapping[str, FileState | None]) -> bytes:
    """The difference of two states as a patch for `git apply`: binary, with modes, links and renames.

    Args:
        before: files by path; None is the same as no entry
        after: likewise

    Returns:
        the patch; empty when git sees no difference (of permissions it knows whether a file is executable)

    Raises:
        RequirementError: git is not installed
    """
    # `git apply` fails on a link that is renamed to a place below itself; whatever changes so is shown without renames.
    replaced = any(before.get(above) is not None for path in after for above in above_of(path))
    with _Store() as store:
        store.load({"before": before, "after": after})
        return store.git([*_DIFF, "--no-renames" if replaced else "-M", "refs/heads/before", "refs/heads/after"])


def touched(patch: bytes) -> list[str]:
    """Paths of all files that a patch reads or writes, as it names them.

    Args:
        patch: as `git diff` or `diff -u` writes it

    Raises:
        ActionError: it is no patch
        RequirementError: git is not installed
    """
    with _Store() as store:
        # Applied backwards, a renamed file is listed under its old name.
        listings = [store.git([*_APPLY, "--numstat", "-z", *reverse], patch) for reverse in ([], ["-R"])]
    paths = {decode(line.split(b"\t", 2)[2]) for listing in listings for line in listing.split(b"\0") if line}
    return sorted(paths)


def apply(patch: bytes, files: Mapping[str, FileState | None]) -> dict[str, FileState | None]:
    """Apply a patch to files.

    Args:
        patch: as `git diff` or `diff -u` writes it
        files: all that `touched` names; None: there is no such file

    Returns:
        the files that are different afterwards, None for those that are gone

    Raises:
        ActionError: it is no patch, does not fit, or writes outside
        RequirementError: git is not installed
    """
    with _Store() as store:
        store.load({"before": files})
        store.git(["read-tree", "refs/heads/before"])
        store.git([*_APPLY, "--cached"], patch)
        listing = store.git(["ls-files", "-s", "-z"])
        entries = [line.split(b"\t", 1) for line in listing.split(b"\0") if line]
        contents = store.contents([fields.split()[1] for fields, _ in entries])
    result: dict[str, FileState | None] = {path: None for path, state in files.items() if state is not None}
    for (fields, name), data in zip(entries, contents, strict=True):
        path, mode = decode(name), fields.split()[0].decode()
        result[path] = _state(data, mode, files.get(path))
    return {path: state for path, state in result.items() if state != files.get(path)}


def above_of(path: str) -> list[str]:
    """The directories above a path, from the top, without the root."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _state(data: bytes, mode: str, before: FileState | None) -> FileState:
    """A file as git has it, with the permissions that it had as far as git does not say otherwise."""
    if mode == _LINK:
        return FileState(data, 0o777, "link")
    executable = mode == _EXECUTABLE
    if before is not None and before.kind == "file" and before.executable == executable:
        return FileState(data, before.mode)
    if before is not None and before.kind == "file":
        return FileState(data, before.mode | 0o111 if executable else before.mode & ~0o111)
    return FileState(data, 0o755 if executable else 0o644)


class _Store:
    """A bare repository in a temporary directory, for the time of a `with` block."""

    def __init__(self) -> None:
        program = shutil.which("git")
        if program is None:
            raise RequirementError("git is not installed; patches need it (apt install git)")
        self._program = program
        self._directory = Path()

    def __enter__(self) -> _Store:
        self._directory = Path(tempfile.mkdtemp(prefix="debug-gym-"))
        for name in ("objects", "refs", "home"):
            (self._directory / name).mkdir()
        (self._directory / "HEAD").write_text("ref: refs/heads/none\n")
        (self._directory / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def git(self, arguments: list[str], stdin: bytes = b"") -> bytes:
        """Run git in the store.

        Args:
            arguments: of git
            stdin: what it reads

        Returns:
            what it printed

        Raises:
            ActionError: it failed
        """
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._directory / "home"),
            "LC_ALL": "C",
            "GIT_DIR": str(self._directory),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }
        done = subprocess.run(
            [self._program, *arguments], input=stdin, capture_output=True, env=environment, cwd=self._directory
        )
        if done.returncode != 0:
            raise ActionError(_complaint(done.stderr))
        return done.stdout

    def load(self, trees: Mapping[str, Mapping[str, FileState | None]]) -> None:
        """Store files, as one commit without parents a branch.

        Args:
            trees: files by path, by name of the branch
        """
        self.git(["fast-import", "--quiet", "--done"], b"".join(_commits(trees)))

    def contents(self, objects: list[bytes]) -> list[bytes]:
        """The contents of objects by their ids, in order."""
        output = self.git(["cat-file", "--batch"], b"".join(one + b"\n" for one in objects)) if objects else b""
        found, position = [], 0
        for _ in objects:
            header, _, _ = output[position : position + 200].partition(b"\n")
            position += len(header) + 1
            size = int(header.split()[2])
            found.append(output[position : position + size])
            position += size + 1
        return found


def _commits(trees: Mapping[str, Mapping[str, FileState | None]]) -> Iterator[bytes]:
    """The input of `git fast-import`: https://git-scm.com/docs/git-fast-import ."""
    for branch, files in trees.items():
        yield b"commit refs/heads/%s\ncommitter debug-gym <> 0 +0000\ndata 0\n" % branch.encode()
        for path, state in sorted(files.items()):
            if state is None:
                continue
            mode = _LINK if state.kind == "link" else _EXECUTABLE if state.executable else _FILE
            yield b"M %s inline %s\ndata %d\n" % (mode.encode(), _quoted(path), len(state.data))
            yield state.data
            yield b"\n"
        yield b"\n"
    yield b"done\n"


def _quoted(path: str) -> bytes:
    """A path as fast-import reads it: C-style quotes where it needs them."""
    name = encode(path)
    if not name.startswith(b'"') and b"\n" not in name:
        return name
    return b'"' + name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


def _complaint(stderr: bytes) -> str:
    """What git says when it refuses a patch, in a few short lines."""
    text = stderr.decode("utf-8", "replace").strip()
    lines = [re.sub(r"^(error|fatal): ", "", line) for line in text.splitlines() if line.strip()]
    return "the patch does not apply: " + "; ".join(lines[:5])[:1000]
