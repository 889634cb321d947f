"""What this machine has and lacks for debug-gym, asked quickly and without changing anything."""

from __future__ import annotations

import contextlib
import enum
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from debug_gym_core.errors import DebugGymError, cause_of, said_by

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.sandbox.interpreter import Interpreter
    from debug_gym_core.sandbox.terminal import Terminal
    from debug_gym_core.tasks.task import Benchmark

PATIENCE = 1.2
"""Seconds that the sandbox backends together have to say whether they work here."""

LOW_SPACE = 1 << 30
NO_SPACE = 64 << 20


class State(enum.StrEnum):
    """How something stands."""

    OK = "ok"
    LIMITED = "limited"
    MISSING = "missing"
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        kind: `system`, `terminal`, `image`, `benchmark` or `plugin`
        name: what was looked at
        state: how it stands
        detail: version, path, what is wrong and how it is mended, in one line
        needed: whether nothing can be played while its state is `missing` or `failed`
    """

    kind: str
    name: str
    state: State
    detail: str
    needed: bool = False


def examine(plugins: Plugins, *, patience: float = PATIENCE, images: Sequence[str] = ()) -> list[Finding]:
    """Look at everything.

    Args:
        plugins: what is installed
        patience: seconds that the sandbox backends together have to answer
        images: images to look into as well, which takes a sandbox each

    Returns:
        the findings, in the order in which a person reads them
    """
    answers = _ask(plugins, patience)
    found = [_python(), *_interpreter(plugins), _git(), _temporary_directory(), _kept_setups()]
    benchmarks = [item for item in found if item.kind == "benchmark"]
    found = [item for item in found if item.kind == "system"]
    isolating = False
    for name, ask in answers.items():
        state, detail = ask()
        isolates = plugins.terminals[name].isolates
        isolating = isolating or (isolates and state in (State.OK, State.LIMITED))
        found.append(Finding("terminal", name, state, detail if isolates else _joined("isolates nothing", detail)))
    if not isolating:
        way = "apt-get install bubblewrap"
        if "bubblewrap" not in plugins.terminals:
            way = f"pip install debug-gym-terminal-bubblewrap, and {way}"
        text = f"no terminal that isolates works here; get one with: {way}"
        found.append(Finding("terminal", "isolation", State.MISSING, text, needed=True))
    found += [item for image in images for item in _image(image, plugins)]
    found += benchmarks
    loaded = sum(record.state == "loaded" for record in plugins.records)
    disabled = [record.name for record in plugins.records if record.state == "disabled"]
    more = f"; disabled: {', '.join(disabled)}" if disabled else ""
    found.append(Finding("system", "plugins", State.OK, f"{loaded} loaded{more}"))
    found += [
        Finding("plugin", record.name, State.FAILED, f"{record.distribution} {record.version}: {record.cause}")
        for record in plugins.failed()
    ]
    return found


def healthy(findings: Sequence[Finding]) -> bool:
    """Whether episodes can be played: nothing that is needed is missing."""
    return not any(item.needed and item.state in (State.MISSING, State.FAILED) for item in findings)


def clean(plugins: Plugins, *, patience: float = PATIENCE, setups: bool = False) -> tuple[list[str], list[str]]:
    """Remove what runs that were killed have left on this machine; what a live run owns stays.

    Args:
        plugins: whose terminals are asked
        patience: seconds that the backends together have to say whether they are there at all
        setups: also remove what is kept for later runs: what setting up made, repositories taken out of images

    Returns:
        what was removed, and what could not be, a line each
    """
    from debug_gym_core.environment import image_repositories
    from debug_gym_core.sandbox import kept_setups
    from debug_gym_core.workspace import patch

    removed = [f"patch: directory {directory}" for directory in patch.reap()]
    removed += [f"setup: unfinished, {directory}" for directory in kept_setups.reap()]
    removed += [f"repository of an image: unfinished, {directory}" for directory in image_repositories.reap()]
    failed: list[str] = []
    if setups:
        for gone, stay in (image_repositories.remove_all(), kept_setups.remove_all(plugins.terminals)):
            removed, failed = removed + gone, failed + stay
    for name, ask in _ask(plugins, patience).items():
        state, detail = ask()
        if state is State.MISSING:
            continue
        if state is State.FAILED:
            failed.append(f"{name}: {detail}")
            continue
        try:
            removed += [f"{name}: {line}" for line in plugins.terminals[name].clean()]
        except Exception as error:
            failed.append(f"{name}: {_words(error)}")
    return removed, failed


def _ask(plugins: Plugins, patience: float) -> dict[str, Callable[[], tuple[State, str]]]:
    """Ask all backends at the same time; each answer is a function that waits for what is left of the patience."""
    until = time.monotonic() + patience

    def start(backend: type[Terminal]) -> Callable[[], tuple[State, str]]:
        said: list[tuple[State, str]] = []
        asking = threading.Thread(target=lambda: said.append(_of_terminal(backend)), daemon=True)
        asking.start()

        def answer() -> tuple[State, str]:
            asking.join(max(0.0, until - time.monotonic()))
            return said[0] if said else (State.FAILED, f"no answer within {patience:g} s; does its service hang?")

        return answer

    return {name: start(backend) for name, backend in plugins.terminals.items()}


def _of_terminal(backend: type[Terminal]) -> tuple[State, str]:
    try:
        missing = backend.unavailable()
        if missing is not None:
            return State.MISSING, _one_line(missing)
        facts, limits = list(backend.about()), list(backend.limits())
    except Exception as error:  # A third party's: whatever it does wrong is what there is to say of it.
        return State.FAILED, _words(error)
    return State.LIMITED if limits else State.OK, _joined(*facts, *limits)


def _python() -> Finding:
    return Finding("system", "python", State.OK, f"{platform.python_version()}, {sys.executable}, runs debug-gym")


def _interpreter(plugins: Plugins) -> Iterator[Finding]:
    """The Python of tasks that have none of their own, and whether it has what the benchmarks need."""
    from debug_gym_core.sandbox import pythons

    try:
        found = pythons.find(Path(tempfile.gettempdir()))
    except (DebugGymError, OSError) as error:
        yield Finding("system", "interpreter", State.FAILED, _words(error), needed=True)
        return
    version = ".".join(map(str, found.version))
    others = pythons.installed()
    more = f"; also {', '.join(others)}" if others else ""
    yield Finding("system", "interpreter", State.OK, f"{version}, {found.executable}, runs the tasks' code{more}")
    for name, cls in plugins.benchmarks.items():
        yield Finding("benchmark", name, *_of_benchmark(cls, found))


def _of_benchmark(benchmark: type[Benchmark], python: Interpreter) -> tuple[State, str]:
    from debug_gym_core.sandbox import requirements

    try:
        made = benchmark()
        missing = made.unavailable()
        if missing is not None:
            return State.MISSING, _one_line(missing)
        wanted = list(made.requires())
        requirements.require(python, wanted)
    except DebugGymError as error:
        return State.MISSING, _words(error)
    except Exception as error:  # A third party's, as above.
        return State.FAILED, _words(error)
    return State.OK, f"has {', '.join(wanted)}" if wanted else "its tasks need no packages of this Python"


def _image(image: str, plugins: Plugins) -> Iterator[Finding]:
    """Whether an image is here, and has a Python with what tests and benchmarks need; nothing is got."""
    backends = {name: backend for name, backend in plugins.terminals.items() if backend.runs_images}
    if not backends:
        yield Finding("image", image, State.MISSING, "no terminal that runs images is installed", needed=True)
    for backend in backends.values():
        try:
            state, detail = _of_image(image, backend, plugins)
        except DebugGymError as error:
            state, detail = State.MISSING, _words(error)
        except Exception as error:  # A third party's, as below.
            state, detail = State.FAILED, _words(error)
        yield Finding("image", image, state, f"{backend.name}: {detail}", needed=True)


def _of_image(image: str, backend: type[Terminal], plugins: Plugins) -> tuple[State, str]:
    from debug_gym_core.sandbox import images
    from debug_gym_core.sandbox.session import Session
    from debug_gym_core.sandbox.terminal import SandboxSpec

    reason = backend.unavailable()
    if reason is not None:
        return State.MISSING, reason
    if not backend.has_image(image):
        return State.MISSING, f"it is not here; get it with: docker pull {image}"
    wanted: dict[str, None] = {"pytest": None}
    for benchmark in plugins.benchmarks.values():
        with contextlib.suppress(DebugGymError):  # what is wrong with it is said of the benchmark
            wanted |= dict.fromkeys(benchmark().requires())
    with Session.start(backend(image=image), SandboxSpec(run="doctor")) as session:
        version, path = session.interpreter["version"], session.python
        lacking = images.missing(session, list(wanted))
    python = f"Python {version}, {path}"
    if lacking:
        return State.LIMITED, f"{python}, has no {', '.join(lacking)}; {images.remedy(lacking)}"
    return State.OK, f"{python}, has {', '.join(wanted)}"


def _git() -> Finding:
    program = shutil.which("git")
    if program is None:
        return Finding("system", "git", State.MISSING, "patches need it; get it with: apt-get install git", needed=True)
    try:
        said = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("system", "git", State.FAILED, f"{program}: {_words(error)}", needed=True)
    version = said.stdout.strip().removeprefix("git version ")
    return Finding("system", "git", State.OK, f"{version}, {program}")


def _temporary_directory() -> Finding:
    """Where sandboxes and gradings put their files."""
    name = "temporary files"
    try:
        directory = tempfile.gettempdir()
        free = shutil.disk_usage(directory).free
    except OSError as error:
        return Finding("system", name, State.FAILED, _words(error), needed=True)
    text = f"{directory}, {_size(free)} free"
    if not os.access(directory, os.W_OK | os.X_OK):
        return Finding("system", name, State.FAILED, f"{directory} cannot be written; set TMPDIR", needed=True)
    if free < NO_SPACE:
        return Finding("system", name, State.MISSING, f"{text}; make room, or set TMPDIR", needed=True)
    return Finding("system", name, State.LIMITED if free < LOW_SPACE else State.OK, text)


def _kept_setups() -> Finding:
    """What setting up made for earlier runs."""
    from debug_gym_core.sandbox import kept_setups

    count, size = kept_setups.summary(kept_setups.all_kept())
    text = f"{count} kept, {_size(size)}; debug-gym doctor --clean --setups removes them" if count else "none kept"
    return Finding("system", "setups", State.OK, f"{kept_setups.directory()}, {text}")


def _size(count: int) -> str:
    for power, unit in ((40, "TB"), (30, "GB"), (20, "MB")):
        if count >= 1 << power:
            return f"{count / (1 << power):.1f} {unit}"
    return f"{count >> 10} kB"


def _words(error: BaseException) -> str:
    return said_by(error) if isinstance(error, DebugGymError) else cause_of(error)


def _one_line(text: str) -> str:
    return " ".join(str(text).split())


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
