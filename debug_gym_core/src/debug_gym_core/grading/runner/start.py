"""Makes of this process what `python -m` would have made, as far as the program that is run can see."""

import os
import sys

IMPLICIT = globals().get("IMPLICIT", True)  # type: bool
"""Whether the interpreter puts the current directory into `sys.path`; given by who starts this."""


def be_main(argv: "list[str]") -> None:
    """Make `sys.argv`, `sys.path` and `__main__` what `python -m` makes them; the program is not imported yet."""
    import importlib.machinery
    import importlib.util

    name, package = argv[1], argv[1]
    spec = None
    for place in (None, os.getcwd()):
        if place is not None and IMPLICIT:
            sys.path.insert(0, place)  # Only the workspace has it.
        spec = importlib.util.find_spec(name)
        if spec is not None:
            break
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.machinery.PathFinder.find_spec(name + ".__main__", spec.submodule_search_locations)
    else:
        package = ""  # As pytest is before 5.2.
    if spec is None:
        raise SystemExit("{}: No module named {}".format(sys.executable, name))
    space = vars(sys.modules["__main__"])
    for name in [name for name in space if name not in ("__name__", "__builtins__")]:
        del space[name]
    space.update(
        __doc__=None,
        __file__=spec.origin,
        __cached__=spec.cached,
        __loader__=spec.loader,
        __package__=package,
        __spec__=spec,
    )
    sys.argv[:] = [spec.origin or "", *argv[2:]]


def enter_workspace() -> None:
    """Put the current directory first in `sys.path`, as `python -m` does; what we need is imported by now."""
    if IMPLICIT and os.getcwd() not in sys.path[:1]:
        sys.path.insert(0, os.getcwd())
