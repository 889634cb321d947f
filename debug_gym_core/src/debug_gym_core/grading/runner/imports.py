"""What the imports of a test module bind."""

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

IMPORTS = (ast.Import, ast.ImportFrom)


class Import(object):
    """A name that an import binds.

    Attributes:
        node: the import
        name: it; `*`: all those of the module
        level: how many packages above the module is looked for
        module: what is imported
        home: the module that the name is of, or is: of `import a.b` the first one
        inside: what the name is there; empty: that itself
    """

    __slots__ = ("home", "inside", "level", "module", "name", "node")

    def __init__(self, node: "ast.stmt", name: str, level: int, module: str, home: str, inside: str) -> None:
        self.node = node
        self.name = name
        self.level = level
        self.module = module
        self.home = home
        self.inside = inside


def imports_in(nodes: "Iterable[ast.AST]") -> "Iterator[Import]":
    """The names that imports bind anywhere in a module.

    Args:
        nodes: all of it
    """
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            for one in node.names:
                yield Import(node, one.asname or one.name, node.level or 0, module, module, one.name)
        elif isinstance(node, ast.Import):
            for one in node.names:
                home = one.name if one.asname else one.name.partition(".")[0]
                yield Import(node, one.asname or home, 0, one.name, home, "")
