"""Which module imports which: noted from the time when the interpreter has hardly imported any.

It imports nothing that the interpreter has not loaded anyway: of what comes later, nothing shall be missed.
"""

import builtins
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# fmt: off
DENIED = frozenset((
    "torch", "torchvision", "torchaudio", "tensorflow", "keras", "jax", "jaxlib", "cupy", "numba", "pycuda", "cuda",
    "cudf", "triton", "nvidia", "grpc", "grpcio", "mpi4py", "ray", "dask", "pyarrow", "zmq", "gevent", "eventlet",
    "twisted", "tkinter", "_tkinter", "turtle", "PyQt5", "PyQt6", "PySide2", "PySide6", "gi", "wx", "kivy",
    "pygame", "cv2", "vtk", "pyspark", "uwsgi", "readline", "idlelib", "antigravity", "this", "setuptools",
    "pkg_resources", "distutils",
))
"""Modules that are not loaded ahead: hostile to fork, or meant to change the process that imports them."""
# fmt: on


class Imports(object):
    """Remembers, as a finder of modules that finds none and in the place of `__import__`, which module imported which.

    Attributes:
        edges: by the name of a module, what was imported while it was itself being imported
        failed: modules without which an attempt to import others is over
    """

    def __init__(self) -> None:
        self.edges = {}  # type: dict[str, set[str]]
        self.failed = set()  # type: set[str]
        self.import_module = builtins.__import__
        builtins.__import__ = self

    def end(self) -> None:
        """Remember no more."""
        builtins.__import__ = self.import_module

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Note who looks for a module."""
        top = name.partition(".")[0]
        if name in self.failed or top in self.failed or top in DENIED:
            os._exit(1)
        self.of_importer().add(name)

    def __call__(
        self, name: str, globals: "Any" = None, locals: "Any" = None, fromlist: "Any" = (), level: int = 0
    ) -> "Any":
        """Note what an import statement names."""
        module = self.import_module(name, globals, locals, fromlist, level)
        if level:
            inside = globals["__name__"] if "__path__" in globals else globals["__name__"].rpartition(".")[0]
            parts = (globals.get("__package__") or inside).split(".")
            name = ".".join(parts[: len(parts) - level + 1] + ([name] if name else []))
        edges = self.of_importer()
        edges.add(name)
        for one in fromlist or ():
            edges.add("{}.{}".format(name, one))
        return module

    def of_importer(self) -> "set[str]":
        """What is noted of the module whose import is under way."""
        frame = sys._getframe(2)  # type: Any
        while frame is not None:
            spec = frame.f_globals.get("__spec__")
            if getattr(spec, "_initializing", False):
                return self.edges.setdefault(spec.name, set())
            frame = frame.f_back
        return set()
