"""The debugger's backends stop alike, and as the standard library's pdb does but for a table of differences.

2,000 cases over all interpreters to test with. More, and others each time, as many times as one likes:

    DEBUG_GYM_TEST_EXAMPLES=10 pytest plugins/tools/pdb/tests/differential
"""

from __future__ import annotations

import ast
import importlib.util
import io
import json
import os
import re
import signal
import sys
import tokenize
from pathlib import Path
from typing import Any

import pytest
from differential_commands import Command, commands
from differential_differences import DIFFERENCES, like_ours
from differential_programs import Program, programs
from differential_runs import Driver
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from support import examples, interpreters, version_of

pytestmark = pytest.mark.debugger

CASES = 2000
PHASES = [Phase.generate, *([Phase.shrink] if os.environ.get("DEBUG_GYM_TEST_EXAMPLES") else [])]
"""Making a failure small takes minutes: only where more cases than usual are asked for."""
SEQUENCES = 4
"""How many lists of commands each program is run with: a case each."""

BACKENDS = {
    "settrace": ["settrace"],
    "instrument": ["instrument", "settrace"],
    "monitoring": ["monitoring", "settrace"],
}
ADDED = re.compile(
    r"^(?:note: .*|hint: .*|Line \d+ [a-z ]+: the next .*|\S+ has no arguments\.|There are no br.*\.)\n",
    re.MULTILINE,
)
"""Lines that ours says besides."""

GOING = re.compile(r"(c|cont|continue|n|next|s|step|r|return|unt|until|j|jump)\b")


def for_ours(program: Program, sequence: list[Command]) -> tuple[list[Command], int]:
    """The commands with which ours is where pdb is, and the number of the prompt that pdb has not.

    Ours begins before the first line was compiled, pdb at it (difference "entry"): breakpoints on it stop only ours.
    """
    first = ast.parse(program.files["main.py"]).body[0]
    at_first = [str(number) for number in range(first.lineno, (first.end_lineno or first.lineno) + 1)]
    for index, command in enumerate(sequence):
        if GOING.match(command[0]):
            breakpoints = [re.match(r"t?b(?:reak)? main\.py:(\d+)", one[0]) for one in sequence[:index]]
            if any(one is not None and one[1] in at_first for one in breakpoints):
                return [*sequence[:index], [f"j {first.lineno}"], *sequence[index:]], index + 1
            break
    return sequence, -1


ADDRESS = re.compile(r"(?:\b0|[.]{3})x[0-9a-f]{6,}")
"""In a value that is cut in its middle its beginning may be missing."""

ENDLESS = -signal.SIGXCPU
"""How a program ended that used up its processor time: how much it printed until then is chance."""


def without_chance(text: str) -> str:
    """A text without addresses, and without the list of all built-in functions: what instruments files is among them.

    That list is in the arguments of importlib's frames, which are shown up to Python 3.6.
    """
    return re.sub("(?s)'__builtins__': [{].*", "'__builtins__': ...", ADDRESS.sub("0x", text))


def said(answer: dict[str, Any], left_out: int = -1) -> dict[str, Any]:
    """What a debugger said at each prompt, and how the program ended."""
    prompts = [ADDED.sub("", one["out"]) for one in answer["messages"] if one["t"] == "prompt"]
    if 0 <= left_out < len(prompts):
        del prompts[left_out]
    ends = [one for one in answer["messages"] if one["t"] == "exit"]
    end = {key: ends[0].get(key) for key in ("status", "exception", "out")} if ends else None
    prompts = list(map(without_chance, prompts))
    printed = None if answer["died"] == ENDLESS else answer["printed"]
    return {"prompts": prompts, "end": end, "printed": printed, "died": answer["died"]}


def exact(answer: dict[str, Any], version: tuple[int, ...]) -> tuple[Any, ...]:
    """All that a backend said and did, without addresses.

    Before Python 3.10 what has changed in a frame is known only where it was traced (`Reporter.follow`).
    """
    messages = json.loads(ADDRESS.sub("0x", json.dumps(answer["messages"])))
    for message in messages:
        message["out"] = without_chance(message.get("out", ""))
        stop = message.get("stop", {})
        # In 3.12 what a comprehension of a module or a class binds is among its frame's variables by chance.
        by_chance = version[:2] == (3, 12) and re.match(r"<module>|\w?C\d", stop.get("function", ""))
        if version < (3, 10) or by_chance:
            stop.pop("locals", None)
    return messages, None if answer["died"] == ENDLESS else answer["printed"], answer["died"]


def first_difference(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> str:
    """What parts two lists of messages."""
    for one, other in zip(some, others, strict=False):
        if one != other:
            keys = sorted(key for key in {**one, **other} if one.get(key) != other.get(key))
            return "\n".join(f"{key}: {one.get(key)!r}\n{' ' * len(key)}  {other.get(key)!r}" for key in keys)
    return "none in the first messages of both"


def check_reports(answer: dict[str, Any]) -> None:
    """Each stop's report says what pdb's text says."""
    for message in answer["messages"]:
        places = re.findall(r"^> .*?([^/\n]+)\((\d+)\)(\S+?)\(\)", message.get("out", ""), re.MULTILINE)
        if "stop" in message and len(places) == 1:
            stop = message["stop"]
            assert (stop["file"].rpartition("/")[2], str(stop["line"]), stop["function"]) == places[0]


def show(sequence: list[Command], one: dict[str, Any], other: dict[str, Any], names: tuple[str, str]) -> None:
    """Tell hypothesis where two columns part."""
    told = ["\n".join(lines) for lines in [["(start)"], *sequence]]
    for index in range(max(len(one["prompts"]), len(other["prompts"]))):
        texts = [column["prompts"][index] if index < len(column["prompts"]) else None for column in (one, other)]
        command = told[index] if index < len(told) else "?"
        if texts[0] == texts[1]:
            note(f"(Pdb) {command}\n{texts[0]}")
        else:
            note(f"(Pdb) {command}\n--- {names[0]}:\n{texts[0]}\n--- {names[1]}:\n{texts[1]}")
    for name, column in zip(names, (one, other), strict=True):
        note(f"--- {name}: {column['end']} died={column['died']}\n{column['printed']}")


def check(driver: Driver, program: Program, sequences: list[list[Command]]) -> None:
    """Run a program with each list of commands, in all columns."""
    runs = []
    files = about(program, driver.version)
    backends = {name: one for name, one in BACKENDS.items() if name != "monitoring" or driver.version >= (3, 12)}
    for sequence in sequences:
        ours = for_ours(program, sequence)[0]
        runs += [{"kind": "ours", "backends": one, "commands": ours} for one in backends.values()]
        runs.append({"kind": "pdb", "like_ours": like_ours(driver.version), "commands": sequence, "about": files})
    answers = iter(driver.run(program.files, runs))
    for sequence in sequences:
        given_to_ours, left_out = for_ours(program, sequence)
        columns = {name: next(answers) for name in (*backends, "pdb")}
        for name in backends:
            one, other = (exact(columns[each], driver.version) for each in (name, "settrace"))
            if one != other:
                show(given_to_ours, said(columns[name]), said(columns["settrace"]), (name, "settrace"))
                note(f"first message that differs:\n{first_difference(one[0], other[0])}\n{columns[name]['errors']}")
            assert one == other
            check_reports(columns[name])
        ours, theirs = said(columns["settrace"], left_out), said(columns["pdb"])
        died = ours["died"] not in (False, ENDLESS)
        if ours != theirs or died:
            show(sequence, ours, theirs, ("settrace", "pdb"))
            note(columns["settrace"]["errors"] + "\n--- pdb\n" + columns["pdb"]["errors"])
        assert ours == theirs
        assert not died


def about(program: Program, version: tuple[int, ...]) -> dict[str, dict[str, Any]]:
    """What there is in the files, as far as some differences depend on it.

    `last`: the last line of each statement of several lines; of those with a body, of its header. `starts`: the first
    line of each, by its other lines. `functions`: the first line of the function that each line is in, or 0. `bodies`:
    the first line of the body of each function, by the name that `b` takes. `short`: the names of those functions whose
    body is on the line of their header. `once`: statements that go on after a body. `docstrings`: their lines.
    `plain`: the first lines of statements that always have code where they are reached at all.
    `jumps`: the lines that jumps go to, by the other lines of statements and of decorated headers.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, text in program.files.items():
        last, functions = {}, [0] * (len(text.splitlines()) + 1)
        tree = ast.parse(text)
        for node in ast.walk(tree):  # outermost first
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                first = 0 if isinstance(node, ast.ClassDef) else node.lineno
                for line in range(node.lineno, (node.end_lineno or 0) + 1):
                    functions[line] = first
            if isinstance(node, ast.stmt) and last_line(node) != node.lineno:
                last[node.lineno] = last_line(node)
        module = name[:-2] if name != "main.py" else ""
        bodies = {module + one: line for one, (line, _) in bodies_in(tree).items()}
        starts = starts_in(text, {first_line(node, version) for node in ast.walk(tree) if isinstance(node, ast.stmt)})
        whole = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Assert, ast.Delete, ast.Expr, ast.Raise, ast.Return)
        whole += (ast.If, ast.While, ast.Import, ast.ImportFrom)
        once = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt) and not isinstance(node, whole)]
        found[name] = {"once": once, "last": last, "starts": starts, "functions": functions, "bodies": bodies}
        found[name]["jumps"] = {**starts, **decorated_lines(tree)}
        found[name]["short"] = [module + one for one, (_, short) in bodies_in(tree).items() if short]
        found[name]["docstrings"] = docstring_lines(tree)
        found[name]["plain"] = plain_lines(tree, version)
    return found


def first_line(node: ast.stmt, version: tuple[int, ...]) -> int:
    """The line that a version of Python has a statement begin at: the older ones count otherwise."""
    if version < (3, 8):
        if getattr(node, "decorator_list", ()):
            return min(one.lineno for one in node.decorator_list)  # type: ignore[attr-defined]
        at_start = [one for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        at_start = [one for one in at_start if (one.lineno, one.col_offset) == (node.lineno, node.col_offset)]
        return max([node.lineno, *(one.end_lineno or 0 for one in at_start)])
    return node.lineno


def starts_in(text: str, firsts: set[int]) -> dict[int, int]:
    """The first lines of statements and decorators, by their other lines."""
    starts: dict[int, int] = {}
    line: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
            line.append(token)
        if token.type == tokenize.NEWLINE:
            first = line[0].start[0]
            if first in firsts or line[0].string == "@":
                starts.update((one, first) for one in range(first + 1, token.start[0] + 1) if one not in firsts)
            line = []
    return starts


def bodies_in(tree: ast.Module) -> dict[str, tuple[int, bool]]:
    """Where the bodies of functions, and of methods of classes, begin, and whether that is in their headers."""
    found = {}
    for node in tree.body:
        for one in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
                body = one.body[ast.get_docstring(one) is not None and len(one.body) > 1 :]
                first = next((each for each in body if not isinstance(each, (ast.Global, ast.Nonlocal))), body[0])
                line = min([first.lineno, *(each.lineno for each in getattr(first, "decorator_list", ()))])
                where = line, line <= header_end(one)
                found[one.name if one is node else f"{node.name}.{one.name}"] = where  # type: ignore[attr-defined]
    return found


def plain_lines(tree: ast.Module, version: tuple[int, ...]) -> list[int]:
    """The first lines of statements but declarations, constants and those whose condition may be one."""
    others = (ast.AnnAssign, ast.Assert, ast.Global, ast.If, ast.ImportFrom, ast.Nonlocal, ast.Pass, ast.Try, ast.While)
    others += (ast.TryStar,)
    first: dict[int, ast.stmt] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            line = first_line(node, version)
            if line not in first or node.col_offset < first[line].col_offset:
                first[line] = node
    constants = [
        line for line, node in first.items() if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    return [line for line, node in first.items() if not isinstance(node, others) and line not in constants]


def docstring_lines(tree: ast.Module) -> list[int]:
    """The lines of docstrings."""
    found: list[int] = []
    for node in ast.walk(tree):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        if documented and ast.get_docstring(node):
            found += range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    return found


def decorated_lines(tree: ast.Module) -> dict[int, int]:
    """The first decorator's line, by the other lines before the body of what is decorated."""
    found: dict[int, int] = {}
    for node in ast.walk(tree):
        if getattr(node, "decorator_list", ()):
            assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            first = min(one.lineno for one in node.decorator_list)
            found.update(dict.fromkeys(range(first + 1, max(node.lineno + 1, node.body[0].lineno)), first))
    return found


def last_line(node: ast.stmt) -> int:
    """The last line of a statement; of one with a body, of its header."""
    if isinstance(node, ast.Match):
        return node.subject.end_lineno or 0
    return header_end(node) if getattr(node, "body", None) else node.end_lineno or 0


def header_end(node: ast.stmt) -> int:
    """The last line of a header that has code."""
    parts = [one for one in ast.iter_child_nodes(node) if not isinstance(one, (ast.stmt, ast.excepthandler))]
    parts = [one for one in parts if one not in getattr(node, "decorator_list", ())]
    ends = [getattr(one, "end_lineno", 0) for part in parts for one in ast.walk(part)]
    return max([node.lineno, *ends])


def test_cases_do_not_depend_on_what_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn() -> list[list[int]]:
        found = []

        @settings(max_examples=30, derandomize=True, database=None, phases=[Phase.generate])
        @given(st.lists(st.integers(1, 2000), min_size=10))
        def draw(numbers: list[int]) -> None:
            found.append(numbers)

        draw()
        return found

    before = drawn()
    path = tmp_path / "local.py"
    path.write_text(f"ALL = {list(range(101, 2000, 7))}\n")
    spec = importlib.util.spec_from_file_location("local", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "local", module)
    spec.loader.exec_module(module)
    assert drawn() == before


@pytest.mark.parametrize("python", interpreters())
def test_each_difference_is_one(python: str) -> None:
    """With the change ours and pdb are alike, without it they are not."""
    with Driver(python) as driver:
        for one in DIFFERENCES:
            if one.name not in like_ours(driver.version):
                continue
            program = Program({"main.py": one.main, "mod.py": one.mod})
            sequence = [command.split("\n") for command in one.commands]
            files = about(program, driver.version)
            told, left_out = for_ours(program, sequence)
            others = [name for name in like_ours(driver.version) if name != one.name]
            ours, alike, pdb = driver.run(
                program.files,
                [
                    {"kind": "ours", "backends": ["settrace"], "commands": told},
                    {"kind": "pdb", "like_ours": like_ours(driver.version), "commands": sequence, "about": files},
                    {"kind": "pdb", "like_ours": others, "commands": sequence, "about": files},
                ],
            )
            assert said(ours, left_out) == said(alike), one.name
            assert said(ours, left_out) != said(pdb), one.name


@pytest.mark.parametrize("python", interpreters())
def test_backends_and_pdb_stop_alike(python: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = 0
    cases = st.shared(programs(version_of(python)), key="program")

    with Driver(python) as driver:

        @settings(examples(-(-CASES // SEQUENCES // len(interpreters()))), phases=PHASES)
        @given(
            cases,
            cases.flatmap(
                lambda one: st.lists(commands(one, version_of(python)), min_size=SEQUENCES, max_size=SEQUENCES)
            ),
        )
        def run(program: Program, sequences: list[list[Command]]) -> None:
            nonlocal ran
            ran += len(sequences)
            check(driver, program, sequences)

        run()
    with capsys.disabled():
        print(f" [{ran} cases]", end="")
    assert ran >= CASES // len(interpreters())
