"""Compiles modules as pytest does, with what is asserted rewritten, as long as all of that is what it was at first."""

import builtins
import importlib
import sys

from .given import plainly
from .owners import REPLACED, Had, keep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType
    from typing import Any

    from .given import Compile

MODULES = ("ast", "itertools")
"""Of Python's library what pytest rewrites by."""

OTHERS = REPLACED["builtins"] | {"open"}
"""Of Python's own functions those that tests like to replace, and by which it does not."""

_compile = compile  # type: Callable[..., Any]


def rewritten(config: "Any", function_of: "Callable[[Any], Any]") -> "Compile":
    """What compiles a module as pytest does; nothing, when something was replaced that it does so by.

    Args:
        config: pytest's, early
        function_of: finds the Python function in what stands for one, see `Origins`
    """
    import ast

    from _pytest.assertion import rewrite

    if not any(type(one) is rewrite.AssertionRewritingHook for one in sys.meta_path):
        return plainly

    rewrite_asserts = rewrite.rewrite_asserts  # type: Any
    takes_text = rewrite_asserts.__code__.co_argcount > 3  # since pytest 5.0
    local = None if takes_text else importlib.import_module("py").path.local
    parts = [rewrite, *(importlib.import_module(name) for name in MODULES)]
    had = [one for part in [*parts, builtins] for one in parts_of(part, function_of)]

    def compiled(text: bytes, path: str) -> "CodeType":
        if not all(one.now() is one.value and not one.is_rewritten() for one in had):
            raise ValueError("what modules are rewritten by is not what it was")
        tree = _compile(text, path, "exec", ast.PyCF_ONLY_AST, True)
        if local is None:
            rewrite_asserts(tree, text, path, config)
        else:
            rewrite_asserts(tree, local(path), config)
        return plainly(tree, path)

    return compiled


def parts_of(module: "Any", function_of: "Callable[[Any], Any]") -> "Iterator[Had]":
    """What a module has that can be called, and what its classes have, but for `OTHERS`.

    Args:
        module: it
        function_of: see `rewritten`
    """
    owners = {}  # type: dict[int, Any]
    home = module.__name__
    keep(owners, module, home, function_of, lambda kind: vars(kind).get("__module__") == home)
    others = OTHERS if module is builtins else ()
    for owner in owners.values():
        for name, value in owner.had.items():
            own = name in owner.functions or (callable(value) and not name.startswith("__"))
            if own and name not in others:
                yield Had(owner, name)
