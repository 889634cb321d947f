"""Makes a fork what a fresh interpreter is that was started for its program."""

import fcntl
import os
import sys
import termios
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def begin(request: "dict[str, Any]", descriptors: "list[int]", blob: int) -> None:
    """Make this process what a fresh interpreter is that was started for the program.

    Args:
        request: what is to be started
        descriptors: its standard streams, one to wait on, its places
        blob: see `Prepared`
    """
    stdin, stdout, go = descriptors[:3]
    passed = dict(zip(request["places"], descriptors[3:]))  # noqa: B905 (Python 3.6)
    if not os.read(go, 1):  # the keeper has given up
        os._exit(0)
    os.close(go)
    os.setsid()
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    os.dup2(stdout, 2)
    for descriptor in {stdin, stdout}:
        os.close(descriptor)
    if request["terminal"]:
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)
    os.chdir(request["cwd"].encode("utf-8", "surrogateescape"))
    if blob >= 0:
        code = "{blob:code}"
        if request["same"] and code in passed:
            os.close(passed[code])
            passed[code] = os.open("/proc/self/fd/%d" % blob, os.O_RDONLY)
        os.close(blob)
    arguments = [str(passed[part]) if part in passed else part for part in request["arguments"]]
    for descriptor in passed.values():
        os.set_inheritable(descriptor, True)
    sys.argv[:] = ["-c", *arguments]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = [*request["interpreter"], "-c", request["code"], *arguments]


def reseed(modules: "dict[str, Any]") -> None:
    """Make new what two programs must not have in common, and what tells of the process itself."""
    if "random" in modules:
        modules["random"].seed()
    numpy_random = modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    thread = modules["threading"].main_thread() if "threading" in modules else None  # type: Any
    if hasattr(thread, "_set_native_id"):
        thread._set_native_id()
    logging = modules.get("logging")
    if logging is not None and hasattr(logging, "_startTime"):
        logging._startTime = time.time() if isinstance(logging._startTime, float) else time.time_ns()
