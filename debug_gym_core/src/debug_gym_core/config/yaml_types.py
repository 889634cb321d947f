"""Which values YAML has here: those of JSON, and numbers as YAML 1.2 writes them, where PyYAML knows YAML 1.1."""

from __future__ import annotations

import re
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?(?:0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)\Z")
_FLOAT = re.compile(
    r"""[-+]?(?:(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?
    |[0-9][0-9_]*[eE][-+]?[0-9]+
    |\.(?:inf|Inf|INF))\Z
    |\.(?:nan|NaN|NAN)\Z""",
    re.VERBOSE,
)
_NUMBERS = (f"{_TAG}float", _FLOAT), (f"{_TAG}int", _INT)
"""YAML 1.2's core schema, with the `_` and `0b` of YAML 1.1: `1e-3` is a number, `12:30` a text, 010 is ten."""


class Loader(yaml.SafeLoader):
    """Reads the types of JSON: a date is a text, and a value that cannot be made is an error that says where it is."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """See `yaml.SafeLoader`."""
        try:
            return super().construct_object(node, deep)
        # The words repeat the value, as of `!!bool x`.
        except (ValueError, OverflowError, LookupError, AttributeError):
            problem = f"this cannot be read as {node.tag.rpartition(':')[2]}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """See `yaml.SafeLoader`; a zero before other digits says nothing."""
        text = str(self.construct_scalar(node)).replace("_", "")
        return int(text, 0 if text.lstrip("-+")[:2] in ("0b", "0o", "0x") else 10)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        """See `yaml.SafeLoader`; there are no minutes and seconds."""
        text = str(self.construct_scalar(node)).replace("_", "").lower()
        return float(text.replace(".", "") if text.endswith((".inf", ".nan")) else text)


class _Dumper(yaml.SafeDumper):
    """Puts what would be read as something else in quotes."""


def loaded(text: str) -> Any:
    """The value of a YAML text; None where it says nothing.

    Raises:
        yaml.YAMLError: it is no YAML
    """
    return yaml.load(text, Loader)


def dumped(value: Any) -> str:
    """A value on one line, which `Loader` reads as the same.

    Args:
        value: of the types of JSON
    """
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


Loader.yaml_implicit_resolvers = {
    first: [one for one in resolvers if one[0] not in (f"{_TAG}timestamp", f"{_TAG}int", f"{_TAG}float")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _kind in Loader, _Dumper:
    for _tag, _pattern in _NUMBERS:
        _kind.add_implicit_resolver(_tag, _pattern, list("-+.0123456789"))
Loader.add_constructor(f"{_TAG}int", Loader.construct_yaml_int)
Loader.add_constructor(f"{_TAG}float", Loader.construct_yaml_float)
