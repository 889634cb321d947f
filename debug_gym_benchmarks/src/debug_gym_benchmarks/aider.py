"""The practice exercises of Exercism's Python track, as the coding assistant aider was first measured by."""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from debug_gym_benchmarks import cache, passes_before, plain_pytest
from debug_gym_benchmarks.checkouts import Checkout, CheckoutSettings, Published, open_checkout
from debug_gym_benchmarks.written_tests import written_tests
from debug_gym_core import Benchmark, BenchmarkSettings, Task, UsageError
from debug_gym_core.names import nearest
from debug_gym_core.workspace import patch
from debug_gym_core.workspace.snapshot import FileState

PUBLISHED = Published(
    "exercism/python", "https://github.com/exercism/python", "9eb657d4507d91efef99f484e7f2a1f4074911b5"
)
EXERCISES = "exercises/practice"
TRACK = "config.json"
TIME_LIMIT = 60.0
"""Seconds for a run of the tests; those of the examples take far less than one."""

_REFACTORING = "its stub passes the tests: it is to be rewritten, not repaired"
UNSOLVABLE: Mapping[str, str] = {"ledger": _REFACTORING, "markdown": _REFACTORING}
"""Exercises of the published commit that have nothing to solve, and why."""

_DOCS = ("introduction.md", "instructions.md", "instructions.append.md")


@dataclass(frozen=True)
class _Exercise:
    """The files of an exercise, by path, as they lie in the task's repository.

    Attributes:
        stubs: what is to be written
        examples: a right solution, by the paths of the stubs
        tests: what checks it, and what only the tests use
        others: files that solution or tests may need
    """

    stubs: Mapping[str, FileState]
    examples: Mapping[str, FileState]
    tests: Mapping[str, FileState]
    others: Mapping[str, FileState]


class Aider(Benchmark):
    """The Exercism Python practice exercises: instructions, a stub to fill and its tests; from git or `source`."""

    name = "aider"

    Settings: ClassVar[type[BenchmarkSettings]] = CheckoutSettings
    settings: CheckoutSettings

    def names(self) -> Sequence[str]:
        """The exercises in alphabetical order, with underscores."""
        return [name for name in self._slugs if name not in self._excluded]

    def excluded(self) -> dict[str, str]:
        """What Exercism has withdrawn, and what has nothing to solve."""
        return dict(self._excluded)

    def titles(self) -> Mapping[str, str]:
        """The track's line about each exercise."""
        paths = {name: f"{EXERCISES}/{slug}/.meta/config.json" for name, slug in self._slugs.items()}
        found = self._checkout.states(paths.values())
        facts = {name: self._parsed(path, found[path].data) for name, path in paths.items() if path in found}
        for name, one in facts.items():
            if not isinstance(one.get("blurb", ""), str):
                raise self._changed(paths[name], "blurb")
        return {name: one["blurb"] for name, one in facts.items() if one.get("blurb")}

    def requires(self) -> Sequence[str]:
        """What runs the tests."""
        return ("pytest",)

    def load(self, name: str) -> Task:
        """Make an exercise a task; dashes in the name do as well."""
        plain = name.replace("-", "_")
        if plain not in self._slugs:
            raise UsageError(f"{self.name} has no task {name!r}{nearest(plain, self._slugs)}")
        slug = self._slugs[plain]
        exercise = self._exercise(slug)
        hidden = self.settings.mode == "hidden"
        found = {path: written_tests(path, _text(state)) for path, state in exercise.tests.items()}
        run = [path for path, tests in found.items() if tests != ()]
        tests = () if None in found.values() else tuple(one for path in run for one in found[path] or ())
        if hidden and not tests:
            raise UsageError(f"{self.name}/{plain} cannot be hidden: only a run tells what tests {', '.join(run)} has")
        counting, kept = passes_before.split(self.name, plain, tests)
        visible = {**exercise.stubs, **exercise.others, **({} if hidden else exercise.tests)}
        return Task(
            benchmark=self.name,
            name=plain,
            repository=cache.keep(f"{self.name}/{plain}", visible),
            entrypoint=" ".join(["python -m pytest -q", *run]),
            description=self._description(slug, list(exercise.stubs), [] if hidden else run),
            tests=counting,
            pass_to_pass=kept,
            max_score=len(counting) or None,
            stops=tuple(stop for path, state in exercise.stubs.items() for stop in _first_line(path, _text(state))),
            gold_patch=patch.make(exercise.stubs, exercise.examples),
            environment=plain_pytest.ENVIRONMENT,
            known_to_fail=True,
            requires=tuple(self.requires()),
            readonly=tuple(f"/{path}" for path in exercise.tests),
            time_limit=TIME_LIMIT,
            mode=self.settings.mode,
            tests_patch=patch.make({}, exercise.tests) if hidden else None,
            test_files=tuple(exercise.tests),
        )

    @functools.cached_property
    def _checkout(self) -> Checkout:
        return open_checkout(PUBLISHED, self.settings.source, self.settings.revision)

    @functools.cached_property
    def _slugs(self) -> dict[str, str]:
        """Directories of exercises, by the names of tasks."""
        return {slug.replace("-", "_"): slug for slug in self._checkout.children(EXERCISES) if not slug.startswith(".")}

    @functools.cached_property
    def _excluded(self) -> dict[str, str]:
        track = self._parsed(TRACK, self._checkout.read(TRACK))
        try:
            listed = [(one["slug"], one.get("status", "")) for one in track["exercises"]["practice"]]
        except (KeyError, TypeError, AttributeError) as error:
            raise self._changed(TRACK, "exercises.practice[].slug") from error
        for field, values in zip(("slug", "status"), zip(*listed, strict=True), strict=False):
            if not all(isinstance(value, str) for value in values):
                raise self._changed(TRACK, f"exercises.practice[].{field}")
        withdrawn = {slug.replace("-", "_") for slug, status in listed if status == "deprecated"}
        reasons = {**dict.fromkeys(withdrawn, "Exercism has withdrawn it (deprecated)"), **UNSOLVABLE}
        return {name: reasons[name] for name in sorted(reasons) if name in self._slugs}

    def _exercise(self, slug: str) -> _Exercise:
        top = f"{EXERCISES}/{slug}"
        config = f"{top}/.meta/config.json"
        named = self._parsed(config, self._checkout.read(config)).get("files")
        stubs, tests, examples = (self._named(config, named, key) for key in ("solution", "test", "example"))
        if len(examples) != len(stubs):
            raise self._changed(config, "files.example")
        editor = self._named(config, named, "editor") if isinstance(named, dict) and "editor" in named else []
        # Tests import what no configuration names (test_utils.py); what begins with a dot is not for those who learn.
        beside = [name for name in self._checkout.children(top) if not name.startswith(".")]
        needed = [path for path in (*editor, *beside) if path not in (*stubs, *tests, *examples)]
        paths = dict.fromkeys([*stubs, *tests, *examples, *needed])
        found = self._checkout.states([f"{top}/{path}" for path in paths])
        files = {path: found[f"{top}/{path}"] for path in paths if f"{top}/{path}" in found}
        for path in (*stubs, *tests, *examples):
            if path not in files:
                raise self._checkout.lacks(f"{top}/{path}")
        helpers = [path for path in needed if path in files and path.startswith("test_")]
        return _Exercise(
            stubs={path: files[path] for path in stubs},
            examples={stub: files[path] for stub, path in zip(stubs, examples, strict=True)},
            tests={path: files[path] for path in (*tests, *helpers)},
            others={path: files[path] for path in needed if path in files and path not in helpers},
        )

    def _named(self, config: str, named: Any, key: str) -> list[str]:
        """The files that an exercise's configuration lists under a key."""
        listed = named.get(key) if isinstance(named, dict) else None
        if not isinstance(listed, list) or not listed or not all(isinstance(path, str) for path in listed):
            raise self._changed(config, f"files.{key}")
        if odd := [path for path in listed if not cache.is_plain(path)]:
            raise UsageError(f"benchmark.source: {config} in {self._checkout.place} names {odd[0]!r}, a path elsewhere")
        return listed

    def _description(self, slug: str, stubs: list[str], tests: list[str]) -> str:
        checks = f"{_listed(tests)} must pass" if tests else "tests that you do not see must pass"
        paths = [f"{EXERCISES}/{slug}/.docs/{name}" for name in _DOCS]
        found = self._checkout.states(paths)
        docs = [_text(found[path]).strip() for path in paths if path in found]
        return "\n\n".join([f"Write {_listed(stubs)} as the instructions say: {checks}.", *docs])

    def _parsed(self, path: str, data: bytes) -> dict[str, Any]:
        try:
            parsed = json.loads(data)
        except ValueError as error:
            raise UsageError(f"benchmark.source: {path} in {self._checkout.place} is not JSON: {error}") from None
        if not isinstance(parsed, dict):
            raise self._changed(path, "files")
        return parsed

    def _changed(self, path: str, field: str) -> UsageError:
        return self._checkout.lacks_field(path, field, "Exercism's", PUBLISHED)


def _first_line(path: str, text: str) -> list[str]:
    """The first line of a stub that runs, on import: of a stub, no later line is sure to be reached."""
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise UsageError(f"benchmark.source: {path} is not Python of this version: {error}") from error
    for node in body:
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            decorators = getattr(node, "decorator_list", [])
            return [f"{path}:{min(one.lineno for one in (node, *decorators))}"]
    return []


def _text(state: FileState) -> str:
    return state.data.decode("utf-8", "replace")


def _listed(paths: Sequence[str]) -> str:
    return " and ".join(paths)
