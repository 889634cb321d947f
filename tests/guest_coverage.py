"""Counts which lines and branches of the programs that run in sandboxes are reached while the tests run.

Those programs (`PACKAGES`) reach their interpreter over a stream, fork, end by `os._exit` or a signal, and one of them
is a trace function itself, in which no tracer sees anything. So they are not traced: with the variable
DEBUG_GYM_GUEST_COVERAGE set to a directory, conftest.py has them sent with a probe before each statement and at both
ends of each `if`, `for` and `while`. A probe sets a byte of a file that all processes have mapped, which outlives them
however they end. Where the file cannot be reached (another user, another file system) the program runs, uncounted.

    DEBUG_GYM_GUEST_COVERAGE=DIR pytest ...
    python tests/guest_coverage.py DIR [--fail-under PERCENT]
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType
from typing import NamedTuple

VARIABLE = "DEBUG_GYM_GUEST_COVERAGE"

HERE = Path(__file__).resolve().parent.parent
PACKAGES = (
    "debug_gym_core.sandbox.guest",
    "debug_gym_core.sandbox.zygote",
    "debug_gym_core.grading.runner",
    "debug_gym_core.debugging.inside",
    "debug_gym_tool_pdb.debuggee",
    "debug_gym_tool_trace.tracee",
)

# It must not show: no name but one, no module, no descriptor that programs inherit.
PRELUDE = """\
def _reached():
    import sys
    known = "mmap" in sys.modules
    try:
        import mmap, os
        descriptor = os.open({path!r}, os.O_RDWR)
        try:
            return mmap.mmap(descriptor, {size})
        finally:
            os.close(descriptor)
    except (ImportError, OSError, ValueError):
        return bytearray({size})
    finally:
        if not known:
            sys.modules.pop("mmap", None)
_reached = _reached()
"""


class Probe(NamedTuple):
    """A place that is reached or not.

    Attributes:
        line: where
        way: of a branch, which one: `to its body` or `past it`; empty: a statement
    """

    line: int
    way: str


@dataclass
class Program:
    """A module of one, with probes.

    Attributes:
        path: its source
        source: what was there when it was read
        probes: the number of each is its place in the file of marks
    """

    path: Path
    source: bytes
    probes: list[Probe] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Program:
        """Read a program."""
        program = cls(path, path.read_bytes())
        program.tree("")
        return program

    def marks(self, directory: Path) -> Path:
        """The file of marks; a program that was changed has another."""
        return directory / f"{self.path.parent.name}-{self.path.stem}-{sha256(self.source).hexdigest()[:16]}"

    def tree(self, marks: str) -> ast.Module:
        """The program with its probes, which mark what is reached in the file `marks`."""
        self.probes = []
        tree = ast.parse(self.source)
        tree.body = self._block(tree.body)
        start = 1 if ast.get_docstring(tree) is not None else 0
        prelude = ast.parse(PRELUDE.format(path=marks, size=len(self.probes))).body
        tree.body[start:start] = prelude
        return ast.fix_missing_locations(tree)

    def _probe(self, node: ast.stmt, way: str = "") -> ast.stmt:
        number = len(self.probes)
        self.probes.append(Probe(node.lineno, way))
        probe = ast.parse(f"_reached[{number}] = 1").body[0]
        for one in ast.walk(probe):
            ast.copy_location(one, node)
        return probe

    def _block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        probed: list[ast.stmt] = []
        for node in statements:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
                probed.append(node)
            elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                pass
            else:
                probed.append(self._probe(node))
                probed.append(node)
                self._inside(node)
        return probed

    def _inside(self, node: ast.stmt) -> None:
        branches = isinstance(node, ast.If | ast.For | ast.While)
        endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant)
        for name in ("body", "orelse", "finalbody"):
            if hasattr(node, name):
                block = self._block(getattr(node, name))
                if branches and not endless:
                    block.insert(0, self._probe(node, "to its body" if name == "body" else "past it"))
                setattr(node, name, block)
        for handler in getattr(node, "handlers", ()):
            handler.body = self._block(handler.body)


def modules(package: str) -> list[Path]:
    """The files of a package that travels."""
    [directory] = importlib.import_module(package).__path__
    return [path for path in sorted(Path(directory).glob("*.py")) if path.stem != "__init__"]


def path_of(module: str) -> Path:
    """The file of a module."""
    package, _, name = module.rpartition(".")
    return next(path for path in modules(package) if path.stem == name)


@functools.cache
def probed(path: Path, directory: Path, name: str) -> tuple[CodeType, bytes]:
    """A module with probes: compiled under the file name `name`, and as source for other interpreters."""
    program = Program.read(path)
    marks = program.marks(directory)
    directory.mkdir(parents=True, exist_ok=True)
    if not marks.exists():
        marks.write_bytes(bytes(len(program.probes)))
    tree = program.tree(str(marks))
    return compile(tree, name, "exec", dont_inherit=True), ast.unparse(tree).encode()


class Probing(importlib.machinery.SourceFileLoader):
    """Loads a module with probes."""

    directory: Path

    def get_code(self, fullname: str) -> CodeType:
        return probed(Path(self.path), self.directory, self.path)[0]


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that travel, for this process and for what is sent by it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path) if name.rpartition(".")[0] in PACKAGES else None
        if spec is not None:
            spec.loader = Probing(name, str(spec.origin))
            spec.loader.directory = self.directory
        return spec


def install(directory: Path) -> None:
    """Have the programs sent with probes from now on, by this process."""
    from debug_gym_core.sandbox import shipping

    plain = shipping.sources_of

    def sources_of(package: str) -> dict[str, bytes]:
        paths = {name: path_of(name if "." in name else f"{package}.{name}") for name in plain(package)}
        return {name: probed(path, directory, str(path))[1] for name, path in paths.items()}

    sys.meta_path.insert(0, Finder(directory))
    shipping.sources_of = sources_of


def ranges(lines: Iterable[int], every: Sequence[int]) -> str:
    """Lines as text, those that follow each other in `every` as one range."""
    order = {line: place for place, line in enumerate(every)}
    parts: list[list[int]] = []
    for line in sorted(set(lines)):
        if parts and order[line] == order[parts[-1][1]] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def describe(file: Path, probes: Sequence[tuple[Probe, int]]) -> tuple[int, int]:
    """Print what of a file was reached; returns how many branches it has, and how many of them were taken."""
    missed = [probe for probe, mark in probes if not mark]
    statements = [probe.line for probe, _ in probes if not probe.way]
    lines = [probe.line for probe in missed if not probe.way]
    branches = [probe for probe, _ in probes if probe.way]
    left = [probe for probe in missed if probe.way]
    print(
        f"{file.relative_to(HERE)}: "
        f"{len(statements) - len(lines)} of {len(statements)} statements ({percent(lines, statements):.1f} %), "
        f"{len(branches) - len(left)} of {len(branches)} branches ({percent(left, branches):.1f} %)"
    )
    print(f"    lines not reached: {ranges(lines, sorted(set(statements))) or 'none'}")
    partial = [probe for probe in left if probe.line not in set(lines)]
    print(f"    branches not taken: {', '.join(f'{probe.line} {probe.way}' for probe in partial) or 'none else'}")
    return len(branches), len(branches) - len(left)


def report(directory: Path) -> float:
    """Print what was reached; returns the percentage of branches."""
    known = reached = 0
    for path in (path for package in PACKAGES for path in modules(package)):
        program = Program.read(path)
        marks = program.marks(directory)
        found = marks.read_bytes() if marks.exists() else bytes(len(program.probes))
        branches, taken = describe(path, list(zip(program.probes, found, strict=True)))
        known += branches
        reached += taken
    total = 100 * reached / known
    print(f"{reached} of {known} branches in sandboxes: {total:.1f} %")
    return total


def percent(missed: Sequence[object], every: Sequence[object]) -> float:
    """How much was not missed."""
    return 100 - 100 * len(missed) / max(1, len(every))


def main() -> int:
    """Report."""
    parser = argparse.ArgumentParser(description="Report which branches of the programs in sandboxes were reached.")
    parser.add_argument("directory", type=Path, help="what the variable " + VARIABLE + " was set to")
    parser.add_argument("--fail-under", type=float, default=0.0, metavar="PERCENT")
    arguments = parser.parse_args()
    return int(report(arguments.directory) < arguments.fail_under)


if __name__ == "__main__":
    sys.exit(main())
