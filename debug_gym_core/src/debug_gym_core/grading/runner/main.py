"""Runs a task's tests in the sandbox and reports each result over a channel of its own.

Started as `python -c BOOT {channel} {blob:code}`, so that no file of ours lies in the sandbox. The first message from
the host is the configuration; then the target runs as `python -m pytest ...` or `python -m unittest ...` would, its
output untouched. A message to the host is the nonce and a JSON object: `t` (what it is), `i` (its number), the rest.

The tested code runs in this very process and may try to make its tests pass by other means than passing them. What is
done against that, and what cannot be done, is a page of the docs ("What a score proves"). In short: tests are compiled
before any tested code runs; results are taken from pytest's own calls and not from its reports or output; a canary test
that must fail runs before and after the others; functions of pytest, pluggy, unittest and of the test modules must be
those that were there before any tested code ran; only the process that was started reports, and only with the nonce.
That is not proof: code that walks the stack or the heap to `send` can report what it likes. It stops children, writes
to open descriptors and accidents.

Standard library only, Python 3.6 to 3.13. Everything that test code could replace is taken into local names first.
"""

import sys

from . import (  # noqa: F401 (all of them are watched)
    anything,
    apart,
    around,
    arrays,
    asked,
    assertions,
    bindings,
    canary,
    channel,
    describe,
    doctests,
    elsewhere,
    expectations,
    expressions,
    files,
    given,
    hooks,
    imports,
    items,
    library,
    literals,
    loaded,
    mocks,
    named,
    opposites,
    origins,
    owners,
    pairs,
    predicates,
    raising,
    rewriting,
    start,
    statements,
    stopping,
    stuck,
    taking,
    tampering,
    turning,
    twins,
    unlike,
    with_pytest,
    with_unittest,
)

_MODULES = [one for one in list(globals().values()) if isinstance(one, type(sys)) and one.__package__ == __package__]
OWN = {space["__name__"]: space for space in (globals(), *map(vars, _MODULES))}  # type: dict[str, dict[str, object]]
"""The namespaces of this package's modules, by name."""


def main(descriptor: int) -> None:
    """Run what the host asks for, then exit as it would have.

    Args:
        descriptor: number of the channel's descriptor
    """
    config, send = channel.open_channel(descriptor)
    start.be_main(config["argv"])
    target = config["argv"][1]
    if target == "pytest":
        status = with_pytest.run_pytest(config, send, OWN)
    elif target == "unittest":
        status = with_unittest.run_unittest(config, send, OWN)
    else:
        raise SystemExit("debug-gym: only pytest and unittest report")
    sys.exit(status)
