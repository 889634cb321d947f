"""Patches by git on the host, over trees that live in a temporary object store and never touch a work tree.

No file of the task is ever written under its name on the host: contents go through `git fast-import`, so that odd
names, symbolic links, line ends and `.gitattributes` mean nothing to the host. The user's git configuration does not
count. (`git diff --no-index` will not do: it writes renames that `git apply` refuses.)
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path

from debug_gym_core import hermetic_git
from debug_gym_core.errors import ActionError, RequirementError
from debug_gym_core.sandbox import ownership
from debug_gym_core.sandbox.terminal import above_of
from debug_gym_core.workspace.lines import decode, encode
from debug_gym_core.workspace.snapshot import FileState

_COMMANDS = ("apply", "read-tree", "fast-import", "diff-tree", "ls-files", "cat-file")

_NOT_THE_PATCH = re.compile(
    r"^fatal: Out of memory"
    r"|: (?:No space left on device|Cannot allocate memory|Permission denied|Too many open files)$",
    re.MULTILINE,
)
"""What git says when the machine is at fault."""

_LINK, _EXECUTABLE, _FILE = "120000", "100755", "100644"

_DIFF = ["diff-tree", "-r", "-p", "--binary", "--no-color", "--no-ext-diff", "--no-textconv"]
_APPLY = ["apply", "--whitespace=nowarn"]

# What is stored lives for moments: nothing is compressed, and no second process makes single files of the pack.
_IMPORT = ["-c", "core.compression=0", "-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--done"]

# What git's verify_path refuses with core.protectNTFS (the default everywhere) and core.protectHFS (macOS'): names
# that Windows takes for `.git`, also after a backslash, and characters that macOS passes over.
_GITS_OWN = re.compile(r"(?:^|[/\\])(?:\.git|git~1)[. ]*(?:$|[/\\:])", re.IGNORECASE)
_GITS_LINKS = re.compile(
    r"(?:^|[/\\])(?:\.gitmodules|gitmod~[1-4]|gi7eba~[1-9]|gi7eb~[1-9]\d|gi7e~[1-9]\d\d)[. ]*(?:$|[/\\:])",
    re.IGNORECASE,
)
_UNSEEN = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")

_RENAMED = re.compile(rb"^rename from (.+)\nrename to (.+)$", re.MULTILINE)
"""No line of a hunk or of a binary file begins so."""

# `git apply` takes the name of an empty file from this line, and cannot tell where it ends when a directory's name ends
# with a space, unless it is quoted. No line of a hunk or of a binary file begins so.
_SPACE_BEFORE_SLASH = re.compile(rb"^diff --git a/(.* /.*) b/\1$", re.MULTILINE)


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
        patch = store.git([*_DIFF, "--no-renames" if replaced else "-M", "refs/heads/before", "refs/heads/after"])
    return _SPACE_BEFORE_SLASH.sub(rb'diff --git "a/\1" "b/\1"', patch)


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


def renamed(patch: bytes) -> dict[str, str]:
    """The old names of files that a patch renames, by their new ones.

    Args:
        patch: as `git diff` writes it
    """
    return {unquoted(decode(new)): unquoted(decode(old)) for old, new in _RENAMED.findall(patch)}


def unquoted(name: str) -> str:
    """A path as git writes it in a patch: in C-style quotes, with bytes escaped, where it needs them."""
    if not name.startswith('"'):
        return name
    return decode(encode(name[1:-1]).decode("unicode_escape", "replace").encode("latin-1", "replace"))


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
    old_names = renamed(patch)
    result: dict[str, FileState | None] = {path: None for path, state in files.items() if state is not None}
    for (fields, name), data in zip(entries, contents, strict=True):
        path, mode = decode(name), fields.split()[0].decode()
        result[path] = _state(data, mode, files.get(old_names.get(path, path)))
    return {path: state for path, state in result.items() if state != files.get(path)}


def _state(data: bytes, mode: str, before: FileState | None) -> FileState:
    """A file as git has it, with the permissions that it had as far as git does not say otherwise."""
    if mode == _LINK:
        return FileState(data, 0o777, "link")
    executable = mode == _EXECUTABLE
    known = before.mode if before is not None and before.kind == "file" else 0o644
    return FileState(data, permissions(known, executable=executable))


def permissions(before: int, *, executable: bool) -> int:
    """The permissions of a file that a patch has changed or renamed.

    Args:
        before: those that it had
        executable: whether its owner may execute it now, which is all that git knows: where that is new, so may who may
            read it
    """
    if bool(before & 0o100) == executable:
        return before
    return before | 0o100 | (before & 0o444) >> 2 if executable else before & ~0o111


def takes_name(path: str, *, link: bool = False) -> bool:
    """Whether git accepts a patch that makes a file of that name; no when some file system might take it for `.git`.

    Args:
        path: relative to the root
        link: whether it is to be a symbolic link
    """
    name = _UNSEEN.sub("", path)
    return not (_GITS_OWN.search(name) or (link and _GITS_LINKS.search(name)))


def reap() -> list[Path]:
    """Remove what patches left that were being made in processes which were killed; returns which directories."""
    return ownership.reap(ownership.PATCHES)


_reap_once = functools.cache(reap)


class _Store:
    """A bare repository in a temporary directory, for the time of a `with` block or until the program ends."""

    def __init__(self) -> None:
        program = shutil.which("git")
        if program is None:
            raise RequirementError("git is not installed; patches need it (apt install git)")
        self._command = [*_mortal(), program]
        self._directory = Path()
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> _Store:
        _reap_once()
        self._directory = Path(tempfile.mkdtemp(prefix=f"{ownership.PATCHES}{os.getpid()}-"))
        # Also when the program ends while another thread is in here, as after a second Ctrl-C.
        self._remove = weakref.finalize(self, _remove, os.getpid(), self._directory, self._processes)
        ownership.write_lease(self._directory, "")
        hermetic_git.make_empty(self._directory)
        (self._directory / "home").mkdir()
        (self._directory / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def git(self, arguments: list[str], stdin: bytes = b"") -> bytes:
        """Run git in the store.

        Args:
            arguments: of git
            stdin: what it reads

        Returns:
            what it printed

        Raises:
            ActionError: it finds fault with the patch, or with a name in it
            RequirementError: it failed for another reason: it was killed, the disk is full, it is too old
        """
        places = {"HOME": str(self._directory / "home"), "GIT_DIR": str(self._directory)}
        environment = {"PATH": os.environ.get("PATH", os.defpath), **hermetic_git.ALONE, **places}
        pipe = subprocess.PIPE
        command = [*self._command, *arguments]
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd=self._directory
        ) as process:
            self._processes.append(process)
            try:
                output, complaint = process.communicate(stdin)
            except BaseException:
                process.kill()
                raise
            finally:
                self._processes.remove(process)
        if process.returncode != 0:
            raise _failure(arguments, process.returncode, complaint)
        return output

    def load(self, trees: Mapping[str, Mapping[str, FileState | None]]) -> None:
        """Store files, as one commit without parents a branch.

        Args:
            trees: files by path, by name of the branch
        """
        self.git(_IMPORT, b"".join(_commits(trees)))

    def contents(self, objects: list[bytes]) -> list[bytes]:
        """The contents of objects by their ids, in order."""
        output = self.git(["cat-file", "--batch"], b"".join(one + b"\n" for one in objects)) if objects else b""
        return list(hermetic_git.objects(output, len(objects)))


@functools.cache
def _mortal() -> list[str]:
    """What a command begins with to be killed when its parent is, as it may compute for long without looking."""
    program = shutil.which("setpriv")
    if program is None:
        return []
    prefix = [program, "--pdeathsig", "KILL"]
    try:
        tried = subprocess.run([*prefix, "true"], stdin=subprocess.DEVNULL, capture_output=True)
    except OSError:
        return []
    return prefix if tried.returncode == 0 else []


def _remove(owner: int, directory: Path, processes: list[subprocess.Popen[bytes]]) -> None:
    """Remove a store, with git if it runs there still. Not from a fork of its owner."""
    if os.getpid() != owner:
        return
    for process in list(processes):
        with contextlib.suppress(OSError):
            process.kill()
            process.wait()
    shutil.rmtree(directory, ignore_errors=True)


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


def _failure(arguments: list[str], status: int, stderr: bytes) -> ActionError | RequirementError:
    """What it means that git failed: that it refuses the patch, or that it cannot work here."""
    text = stderr.decode("utf-8", "replace").strip()
    lines = [re.sub(r"^(error|fatal): ", "", line) for line in text.splitlines() if line.strip()]
    said = "; ".join(lines[:5])[:1000]
    judges = any(name in arguments for name in ("apply", "read-tree"))
    if judges and status > 0 and not _NOT_THE_PATCH.search(text):
        return ActionError(f"the patch does not apply: {said}")
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    command = next(one for one in (*_COMMANDS, arguments[0]) if one in arguments)
    room = f"; make room in {tempfile.gettempdir()}" if "No space left" in text else ""
    return RequirementError(f"git {command}, which patches need, {how}: {said or 'it says nothing'}{room}")
