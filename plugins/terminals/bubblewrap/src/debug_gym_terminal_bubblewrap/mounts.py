"""What a sandbox sees of the host: the arguments of bubblewrap that make its file system."""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from debug_gym_core.sandbox.interpreter import PREFIX_PARTS, Interpreter, trace
from debug_gym_core.sandbox.terminal import ROOT, SandboxSpec, files_in

_SYSTEM_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")

# Files and directories of /etc that the system's own programs need, none of which says anything about the machine.
_ETC = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "services",
    "protocols",
    "ssl/certs",
    "ssl/openssl.cnf",
    "pki/tls/certs",
    "pki/ca-trust/extracted",
    "crypto-policies",
)

_FILES = {
    "passwd": "root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/tmp:/bin/sh\n"
    "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    "group": "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}

_MODULES = (".py", ".so", ".zip", ".egg")

# What /proc tells of the kernel and the machine and no program needs, besides what others may write or only root read.
_MASKED = frozenset(("kcore", "keys", "key-users", "latency_stats", "sched_debug", "timer_list", "timer_stats"))
_MASKED_DIRECTORIES = ("acpi", "asound", "driver", "fs", "pressure", "scsi")


@dataclass
class Mounts:
    """The arguments, in order, and what goes with them.

    Attributes:
        arguments: options of bubblewrap; `{NUMBER}` at the place of a descriptor stands for `contents[NUMBER]`
        contents: bytes of files that are made in the sandbox
        notes: what could not be shown
        in_workspace: whether something of the host is mounted in the workspace
        inodes: how many files there may be, by the place of a file system in memory
        exposed: what of the host the interpreter needs
    """

    arguments: list[str] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    in_workspace: bool = False
    inodes: dict[str, int] = field(default_factory=dict)
    exposed: tuple[Path, ...] = ()
    _links: dict[str, str | None] = field(default_factory=dict)  # of this sandbox alone: for the next they may differ

    def real(self, path: Path) -> Path:
        """The place that an absolute path of the host leads to."""
        return trace(path, self._links)[1]

    def add(self, *arguments: str) -> None:
        """Append options."""
        self.arguments += arguments

    def files(self, path: str, mode: str, size: int) -> None:
        """Make a directory in memory for files that are written."""
        self.add("--perms", mode, "--size", str(size), "--tmpfs", path)
        self.inodes[path] = files_in(size)

    def parents(self, path: Path) -> None:
        """Make the directories above a place; bubblewrap itself would make them for their owner only."""
        for parent in reversed(path.parents[:-1]):
            self.add("--perms", "0755", "--dir", str(parent))

    def file(self, path: str, text: str) -> None:
        """Make a file that everybody can read."""
        self.add("--perms", "0444", "--file", f"{{{len(self.contents)}}}", path)
        self.contents.append(text.encode())


def mounts(spec: SandboxSpec, size: int, network: bool) -> Mounts:
    """Decide what the sandbox sees.

    Args:
        spec: what the task needs
        size: bound of the workspace and of /tmp, bytes
        network: whether the host's network is there

    Returns:
        the arguments that make the file system: all read-only but the workspace, /tmp and /dev/shm
    """
    made = Mounts(exposed=spec.interpreter.exposed if spec.interpreter else ())
    made.add("--ro-bind", "/usr", "/usr")
    for name in _SYSTEM_LINKS:
        link = Path("/", name)
        if link.is_symlink():
            made.add("--symlink", str(link.readlink()), str(link))
        elif link.is_dir():
            made.add("--ro-bind", str(link), str(link))
    _etc(made, network)
    _kernel(made)
    made.files("/tmp", "1777", size)
    made.files(ROOT, "0755", size)
    sources = _repository(spec, made)
    shown = _interpreter(spec, sources, made) if spec.interpreter else {}
    if spec.writable is not None:
        made.parents(spec.writable)
        made.add("--bind", str(spec.writable), str(spec.writable))
    _hide(made, spec.hidden, {Path("/usr"): Path("/usr"), **shown})
    covered = _texts(shown.values())
    for source in sources:
        if not _lies_in(source, covered):
            made.parents(source)
            made.add("--symlink", ROOT, str(source))
    for path in ("/dev", "/"):
        made.add("--remount-ro", path)
    return made


def _etc(made: Mounts, network: bool) -> None:
    """A minimal /etc, never the host's as a whole."""
    for path in ("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted"):
        if Path(path).exists():
            made.parents(Path(path))
    made.parents(Path("/etc/passwd"))
    for name, text in _FILES.items():
        made.file(f"/etc/{name}", text)
    if network:
        try:
            made.file("/etc/resolv.conf", Path("/etc/resolv.conf").read_text())
        except (OSError, UnicodeDecodeError):
            made.notes.append("the host's /etc/resolv.conf cannot be read: names of other hosts will not be found")
    for name in _ETC:
        made.add("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    made.add("--symlink", "../usr/lib/os-release", "/etc/os-release")
    made.add("--symlink", "../proc/self/mounts", "/etc/mtab")


def _kernel(made: Mounts) -> None:
    """/proc and /dev, without what shows or changes the host."""
    made.add("--proc", "/proc")
    # Run by root, we own these files even without a capability, and /proc/sys/kernel/core_pattern names a program that
    # root runs. bubblewrap does not see to it: it asks whether the directory can be written.
    made.add("--ro-bind", "/proc/sys", "/proc/sys")
    files, directories = _of_the_machine()
    for path in files:
        made.add("--ro-bind", "/dev/null", path)
    for path in directories:
        _empty(made, path)
    made.add("--dev", "/dev")
    made.files("/dev/shm", "1777", 64 << 20)


@functools.cache
def _of_the_machine() -> tuple[list[str], list[str]]:
    """Files and directories of /proc that tell of the machine or change it; the kernel does not come by new ones."""
    files, directories = [], []
    for path in sorted(Path("/proc").iterdir()):
        if path.name.isdigit() or path.is_symlink():
            continue
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and (path.name in _MASKED or mode & 0o222 or not mode & 0o004):
            files.append(str(path))
        elif path.name in _MASKED_DIRECTORIES:
            directories.append(str(path))
    return files, directories


def _empty(made: Mounts, path: str) -> None:
    """Cover a directory by an empty one."""
    made.add("--perms", "0555", "--size", "4096", "--tmpfs", path, "--remount-ro", path)


def _repository(spec: SandboxSpec, made: Mounts) -> list[Path]:
    """The names that the repository has on the host and can have in the sandbox: as given, and free of links."""
    if spec.source is None:
        return []
    names = dict.fromkeys((made.real(spec.source.absolute()), spec.source.absolute()))
    taken = [Path("/", name) for name in ("usr", "etc", "proc", "dev", *_SYSTEM_LINKS)]
    taken += [path for path in made.exposed if path.is_symlink()]
    not_ours = _texts([*taken, *(made.real(path.absolute()) for path in spec.hidden), *spec.hidden])
    return [
        name for name in names if not _lies_in(name, not_ours) and name not in (Path(ROOT), Path("/"), Path("/tmp"))
    ]


def _texts(places: Iterable[Path]) -> frozenset[str]:
    """Places as text, which is compared in a tenth of the time."""
    return frozenset(map(str, places))


def _lies_in(path: Path | str, places: Collection[str]) -> bool:
    """Whether an absolute path is, or lies below, one of some places."""
    name = str(path)
    while name:
        if name in places:
            return True
        name = name.rpartition("/")[0]
    return "/" in places


def _interpreter(spec: SandboxSpec, sources: Sequence[Path], made: Mounts) -> dict[Path, Path]:
    """Show the interpreter: what lies in the repository in the workspace, the rest in its own place.

    Returns:
        the directories shown and where
    """
    assert spec.interpreter is not None
    shown: dict[Path, Path] = {}
    exposed = [part for path in made.exposed for part in _around(path, sources)]
    for path in (*exposed, *_editable(spec.interpreter, made, (*sources, *spec.hidden))):
        destination = path
        for source in sources:
            if path.is_relative_to(source):
                destination = Path(ROOT) / path.relative_to(source)
                made.in_workspace = True
        made.parents(destination)
        if path.is_symlink():
            made.add("--symlink", str(path.readlink()), str(destination))
        else:
            made.add("--ro-bind", str(path), str(destination))
            shown[path] = destination
    return shown


def _around(path: Path, sources: Sequence[Path]) -> list[Path]:
    """What of an exposed path to show when the repository is in it or is it, whose own files are in the workspace."""
    if path in sources:
        return [path / part for part in PREFIX_PARTS if (path / part).exists()]
    if path.is_symlink() or not any(source.is_relative_to(path) for source in sources):
        return [path]
    return [part for entry in sorted(path.iterdir()) for part in _around(entry, sources)]


def _editable(interpreter: Interpreter, made: Mounts, without: Sequence[Path]) -> list[Path]:
    """Other projects that the interpreter has as editable installs: their packages, not what lies beside them."""
    not_shown = _texts(without)
    covered = _texts(path for path in made.exposed if not path.is_symlink()) | not_shown | {"/usr"}
    found: dict[str, None] = {}
    for place in interpreter.editable:
        real = made.real(place)
        if not real.exists() or _lies_in(real, covered):
            continue
        if real.is_file():  # a path file can name any file at all
            found.update({str(real): None} if real.suffix in _MODULES else {})
        elif _is_package(str(real)):
            found[str(real)] = None
        else:
            with os.scandir(real) as entries:
                paths = sorted(entry.path for entry in entries if _importable(entry))
            found.update((path, None) for path in paths if not _lies_in(path, not_shown))
    return [Path(path) for path in found if not _lies_in(path.rpartition("/")[0], found.keys())]


def _importable(entry: os.DirEntry[str]) -> bool:
    """Whether an entry of a directory on `sys.path` is a module or a package."""
    is_module = os.path.splitext(entry.name)[1] in _MODULES[:2]  # noqa: PTH122 (a name)
    return not entry.is_symlink() and (is_module or _is_package(entry.path))


def _is_package(path: str) -> bool:
    return os.path.exists(f"{path}/__init__.py")  # noqa: PTH110 (text)


def _hide(made: Mounts, hidden: Sequence[Path], shown: dict[Path, Path]) -> None:
    """Cover directories that must not be seen, under every name that they would have."""
    places = [(str(place), os.path.join(place, ""), str(destination)) for place, destination in shown.items()]  # noqa: PTH118
    for directory in hidden:
        if not directory.is_dir():
            continue
        absolute = directory.absolute()
        names = dict.fromkeys((str(made.real(absolute)), str(absolute)))
        for place, prefix, destination in places:
            for name in names:
                if name == place or name.startswith(prefix):
                    _empty(made, destination + name[len(place) :])
