"""Which calls of a test module assert something, by what they are called, and of what those are made."""

import ast

from .bindings import called, written_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Union

RAISES = frozenset(("raises", "assertRaises", "assertRaisesRegex"))
"""Functions and methods that expect an exception, whose class is their first argument."""

UNTURNED = frozenset((
    "assertWarns", "assertWarnsRegex", "assertLogs", "assertNoLogs", "assert_", "assert_raises", "assert_raises_regex",
    "assert_warns", "assert_no_warnings", "assert_no_gc_cycles",
))  # fmt: skip
"""Assertions that stay as they are: those of which no opposite can be made, and numpy's that compare nothing."""


def is_plain(call: ast.Call) -> bool:
    """Whether all arguments of a call are written in it."""
    return not any(isinstance(one, ast.Starred) for one in call.args) and all(one.arg for one in call.keywords)


def assertion(node: ast.AST) -> "Union[ast.Call, None]":
    """The call that a statement is, where that asserts something; None: it is none, or stays as it is."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not is_plain(call):
        return None
    name = called(call.func)
    return call if name.startswith("assert") and name not in UNTURNED and name not in RAISES else None


def asserted_by(node: ast.AST) -> "list[ast.expr]":
    """The arguments of such a call; none of any other statement."""
    call = assertion(node)
    return [] if call is None else [*call.args, *(one.value for one in call.keywords)]


def expecting(node: ast.AST) -> "Iterator[ast.Call]":
    """The calls in a statement that expect an exception: what `with` enters, or one that is given a function to call.

    Not where that is code in a text, for a pytest before 5: it runs in the frame that calls.
    """
    if isinstance(node, ast.With):
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and called(call.func) in RAISES and call.args:
                yield call
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        own = own_arguments(call)
        if called(call.func) in RAISES and is_plain(call) and len(call.args) > own and not written_text(call.args[own]):
            yield call


def own_arguments(call: ast.Call) -> int:
    """How many arguments of what expects an exception are not the function's that it calls."""
    return 2 if called(call.func) == "assertRaisesRegex" else 1
