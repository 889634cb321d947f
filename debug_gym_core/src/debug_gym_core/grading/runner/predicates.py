"""What tests like to assert of others, and whether it is their owners' own still."""

import sys

from .given import module_code, plainly, space_of, within
from .origins import OTHER, TAKING_PART, Origins, is_made

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import CodeType
    from typing import Any, Union

    Space = Mapping[str, Any]


def table(*lines: str) -> "tuple[tuple[str, tuple[str, ...]], ...]":
    """Owners, each with its names.

    Args:
        lines: an owner and names in it
    """
    return tuple((owner, tuple(names)) for owner, *names in map(str.split, lines))


PREDICATES = table(
    "math isclose isnan isinf isfinite",
    "posixpath exists lexists isfile isdir islink samefile",
    "filecmp cmp",
    "subprocess run call check_call check_output",
    "numpy allclose array_equal array_equiv isclose",
    "numpy.testing._private.utils assert_equal assert_array_compare assert_almost_equal assert_approx_equal",
    "numpy.testing._private.utils assert_array_equal assert_allclose assert_array_almost_equal assert_array_less",
    "pandas._testing.asserters assert_frame_equal assert_series_equal assert_index_equal assert_almost_equal",
    "pandas._testing.asserters assert_extension_array_equal assert_numpy_array_equal assert_attr_equal",
    "pandas.core.generic.NDFrame equals",
    "pandas.core.series.Series equals",
    "pandas.core.frame.DataFrame equals",
)
"""What tests like to assert of others: an owner, which may be imported at any time, and its functions."""

ARRAYS = ("numpy", "pandas")
"""Packages that make some of their functions."""


DISPATCHING = """
def {name}(*args, **kwargs):
    relevant_args = dispatcher(*args, **kwargs)
    return implement_array_function(implementation, {name}, relevant_args, args, kwargs)
"""
"""What numpy runs to make some of its functions, from 1.16 to 1.19."""

CALLED = "numpy", "implement_array_function"
"""The package whose function that calls, and what this is called: one that is built in, of a module."""


class Predicates(object):
    """Remembers the owners that there are at first, and tells which functions became others'.

    Attributes:
        table: `PREDICATES`, without packages that are what is tested
        owners: their namespaces; tests have these, too, where others stand in their places later
        kinds: the classes of those that are modules
    """

    def __init__(self, origins: Origins) -> None:
        """See `Origins`."""
        self.origins = origins
        own = [one for one in ARRAYS if origins.holds_tests(one)]
        self.table = [one for one in PREDICATES if one[0].partition(".")[0] not in own]
        self.owners = {}  # type: dict[str, Space]
        self.kinds = {}  # type: dict[str, type]
        self.builtin = type(len)

    def remember(self) -> None:
        """Take in the owners that are there."""
        for owner, names in self.table:
            space = find(owner)
            if space is not None and owner not in self.owners:
                self.owners[owner] = space
                if owner in sys.modules:
                    self.kinds[owner] = type(sys.modules[owner])
                values = (self.origins.plain_function_of(space.get(name)) for name in names)
                self.origins.remember(one for one in values if one is not None)

    def changed(self) -> "Iterator[str]":
        """Tell what is not its owner's now."""
        for owner, names in self.table:
            first, now = self.owners.get(owner, {}), find(owner)
            for name in names:
                gone = name in first and now is not None and name not in now  # it may be made when it is asked for
                given = [one[name] for one in (first, now or {}) if name in one]
                if gone or not all(self.is_owners(value, name, owner.partition(".")[0]) for value in given):
                    yield "{}.{} was replaced".format(owner, name)

    def stand_ins(self) -> "Iterator[str]":
        """Tell of what stands where a module was that was there at first: nobody can know what that says it has."""
        for owner, kind in self.kinds.items():
            found = sys.modules.get(owner)
            if found is not None and type(found) is not kind:
                yield "sys.modules[{!r}] was replaced by what is no module".format(owner)

    def is_owners(self, value: "Any", name: str, top: str) -> bool:
        """Whether a function is one of its owner's.

        Args:
            value: it
            name: by which it is asked
            top: the package
        """
        function = self.origins.plain_function_of(value)
        if function is not None:
            if self.origins.may_replace(function, TAKING_PART):
                return True
            return top in ARRAYS and (self.is_public_api(function) or self.is_dispatching(function))
        if type(value) is self.builtin:
            return bool(value.__name__ == name)
        kind = type(value)
        return top in ARRAYS and not is_made(kind) and str(kind.__module__).partition(".")[0] in ARRAYS

    def is_public_api(self, function: "Any") -> bool:
        """Whether a function is as numpy makes some from 1.20 to 1.24: code of its own, under another name."""
        code, path = function.__code__, function.__globals__.get("__file__")
        if not self.origins.may_replace(function, OTHER) or any(self.origins.held_by_nobody(function, TAKING_PART)):
            return False
        made = [one for one in self.origins.codes_of(path) if one.co_name == "public_api"]
        return any(written_in(one) == written_in(code) for one in made)

    def is_dispatching(self, function: "Any") -> bool:
        """Whether a function is as numpy makes some before: by `exec`, in a namespace that has what it calls."""
        code, space = function.__code__, function.__globals__
        if not code.co_name.isidentifier() or not self.is_called(space.get("implement_array_function")):
            return False
        text = DISPATCHING.format(name=code.co_name).encode()
        module = module_code(text, "", plainly)  # none where that is a keyword
        made = [one for one in within(module) if one.co_varnames] if module is not None else []
        inner = [self.origins.plain_function_of(space.get(name)) for name in ("implementation", "dispatcher")]
        theirs = all(one is not None and self.origins.may_replace(one, TAKING_PART) for one in inner)
        return theirs and any(written_in(one) == written_in(code) for one in made)

    def is_called(self, value: "Any") -> bool:
        """Whether a function is numpy's own that calls the others: any other that is built in does what it likes."""
        package, name = CALLED
        if type(value) is not self.builtin or value.__name__ != name:
            return False
        return str((space_of(getattr(value, "__self__", None)) or {}).get("__name__")).partition(".")[0] == package


def written_in(code: "CodeType") -> "tuple[Any, ...]":
    """What code does, whatever it is called and wherever it is written."""
    return code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars


def find(owner: str) -> "Union[Space, None]":
    """The namespace of a module, of what stands in its place, or of a class in one; None: there is none."""
    found = sys.modules.get(owner)
    if found is not None:
        space = space_of(found)
        return space if space is not None else standing_in(found)
    module, _, name = owner.rpartition(".")
    kind = (space_of(sys.modules.get(module)) or {}).get(name)
    return vars(kind) if isinstance(kind, type) else None


def standing_in(value: "Any") -> "Union[Space, None]":
    """What an object has itself that tests have put in a module's place; None: it makes up what it is asked for."""
    try:
        space = object.__getattribute__(value, "__dict__")
    except Exception:
        return None
    names = (name for _, names in PREDICATES for name in names)
    return space if type(space) is dict and any(name in space for name in names) else None
