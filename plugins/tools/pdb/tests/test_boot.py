"""How the modules of the debuggee become one program."""

from __future__ import annotations

import ast
from collections import defaultdict
from importlib.resources import files

from debug_gym_tool_pdb import boot


def sources() -> dict[str, str]:
    directory = files("debug_gym_tool_pdb").joinpath("debuggee")
    return {part: directory.joinpath(f"{part}.py").read_text() for part in boot.PARTS}


def defined(source: str) -> set[str]:
    """Names that a module's own statements bind, but for imports."""
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return names


def test_no_name_is_defined_by_two_modules() -> None:
    modules = defaultdict(list)
    for part, source in sources().items():
        for name in defined(source) - {"TYPE_CHECKING"}:
            modules[name].append(part)
    assert {name: parts for name, parts in modules.items() if len(parts) > 1} == {}


def test_every_module_is_sent_and_keeps_its_lines() -> None:
    package = files("debug_gym_tool_pdb").joinpath("debuggee")
    found = {one.name.removesuffix(".py") for one in package.iterdir() if one.name.endswith(".py")}
    assert found - {"__init__"} == set(boot.PARTS)
    joined = boot.program()
    assert "debug_gym_tool_pdb.debuggee" not in joined.replace("    from debug_gym_tool_pdb.debuggee", "")
    assert joined.count("\n") == sum(source.count("\n") for source in sources().values()) + len(boot.PARTS) - 1


def test_each_module_imports_only_from_those_before_it() -> None:
    for place, (part, source) in enumerate(sources().items()):
        for node in ast.parse(source).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("debug_gym_tool_pdb.debuggee"):
                assert (node.module or "").rpartition(".")[2] in boot.PARTS[:place], (part, node.module)
