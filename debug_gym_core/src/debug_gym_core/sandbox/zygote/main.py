"""A zygote: an interpreter with modules loaded, from which programs are forked instead of started.

Started by a keeper (see `supervisor`) as `python FLAGS -c BOOT CONTROL CODE PROGRAM` with the environment, flags and
kind of standard streams of the programs that it is for. It imports what they will need and what is installed, never
code of the workspace; then it forks a program at each request. A program runs in a grandchild whose parent has ended,
so that it becomes the keeper's own child, as one that was started would be.

A program must not notice. What was loaded is therefore kept apart: the program begins with the `sys.modules` of a fresh
interpreter, and a module is handed out, with all that importing it had imported, when the program imports it and would
find that very file. Each import is made in a fork that replaces its parent only if nothing else came of it: a thread,
output, a warning, a changed environment or signal handler, an open descriptor.

Where the programs' code says how far all of them do the same, that much of it runs here, once.

Standard library only, Python 3.6 to 3.13.
"""

import builtins
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import CodeType, ModuleType
    from typing import Any

    Space = dict[str, Any]


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


imports = Imports()

# From here on it is known what is imported for what.
import ast  # noqa: E402
import fcntl  # noqa: E402
import gc  # noqa: E402
import importlib.machinery  # noqa: E402
import json  # noqa: E402
import select  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import struct  # noqa: E402
import termios  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from importlib.util import MAGIC_NUMBER  # noqa: E402

IMPORT_SECONDS = 10.0
PREPARE_SECONDS = 30.0
CANDIDATES = 80
"""Modules that are imported because the workspace imports them."""
FILES = 400
FILE_SIZE = 1 << 18
ENTRIES = 20000
"""Directory entries that are looked at in search of the workspace's files."""
FRESH = 2e9
"""Nanoseconds after its last change in which a directory's list of names is not relied on."""

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

NAME = "<debug-gym>"
"""The file that code of ours seems to come from."""

PREPARED = "debug_gym_code"
"""A program that has this name in its text finds under it, in `__main__`, the code objects of its blob `code`."""
READY = "debug_gym_ready"
"""One that has this name finds a function: it calls it when it has done what does not depend on who starts it."""

SKIPPED_DIRECTORIES = frozenset(("node_modules", "site-packages", "__pycache__", "build", "dist"))


def main(
    control: int, program: int, space: "Space", first: "Space", modules: "frozenset[str]", implicit: bool
) -> "CodeType":
    """Load modules, then fork programs; returns, in each fork or before them all, the code that they are to run.

    Args:
        control: descriptor of the keeper's socket
        program: descriptor of the code that programs will be given
        space: the namespace of `__main__`
        first: what was in it at the beginning
        modules: names of the modules that the interpreter itself had loaded
        implicit: whether the current directory was first in `sys.path`
    """
    began = time.time()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, control)
    connection.set_inheritable(False)
    prepared = Prepared(program)
    path = [""] * implicit + sys.path
    config = json.loads(connection.recv(1 << 18).decode())
    nursery = Nursery(config)
    directories = stamps(places_of(nursery.places))
    nursery.prepare()
    shelf = Shelf(modules)
    stamp = stamps(files_of(list(sys.modules.values())))
    if any(one is not None and one[0] > began * 1e9 for one in stamp.values()):
        os._exit(0)  # changed while it was loaded
    stamp.update(directories)
    shelf.clear_the_table()
    shelf.remember(config["imports"], stamp)
    text = config["code"]  # type: str
    codes = {text: compile(text, "<string>", "exec", dont_inherit=True)}
    # For each page on which a fork frees something the kernel makes a copy: it is freed before, or not at all.
    shelf.kept = (nursery, directories, stamp, path)
    same_imports = all(entry in stamp for entry in sys.path)  # elsewhere a file might turn up that comes first
    space.clear()
    space.update(first)
    sys.path[:] = path
    sys.meta_path.insert(0, shelf)
    if READY in text and same_imports:
        if PREPARED in text:
            space[PREPARED] = prepared.codes
        space[READY] = lambda: serve(connection, shelf, stamp, prepared, codes)
        return codes[text]
    request = serve(connection, shelf, stamp, prepared, codes)
    if request["same"] and PREPARED in request["code"]:
        space[PREPARED] = prepared.codes
    return codes[request["code"]]


# ------------------------------------------------------------------------------------------------------- preparing


class Nursery(object):
    """Imports modules, and remembers which imported which."""

    def __init__(self, config: "dict[str, Any]") -> None:
        self.config = config
        self.root = os.path.realpath(config["root"])
        self.places = installed_places(self.root)

    def prepare(self) -> None:
        """Load what programs will need."""
        path, finders = list(sys.path), list(sys.meta_path)
        sys.path[:] = self.places
        own = (importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter, importlib.machinery.PathFinder)
        sys.meta_path[:] = [imports, *own]
        end = time.monotonic() + PREPARE_SECONDS
        for name in self.wanted():
            if name not in sys.modules and self.may_import(name):
                self.attempt(name)
            if time.monotonic() > end:
                break
        imports.end()
        sys.path[:], sys.meta_path[:] = path, finders

    def wanted(self) -> "Iterator[str]":
        """The modules to load: those that our program uses, pytest's, those that the workspace's files import."""
        for name in self.config["imports"]:
            yield name
        if "pytest" in sys.modules and not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
            for name in pytest_plugins():
                yield name
        for name in imported_names(self.root)[:CANDIDATES]:
            yield name

    def may_import(self, name: str) -> bool:
        """Whether a module is installed and, as far as can be told without importing it, harmless."""
        parts = name.split(".")
        if parts[0] in DENIED or parts[0] in imports.failed:
            return False
        where = None  # type: Any
        for depth in range(1, len(parts) + 1):
            known = sys.modules.get(".".join(parts[:depth]))
            if known is None:
                spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:depth]), where)
                return spec is not None and self.is_installed(spec.origin)
            where = getattr(known, "__path__", None)
            if where is None:
                return False
        return False

    def is_installed(self, origin: "str | None") -> bool:
        """Whether a file belongs to the standard library or to an installed distribution."""
        if not origin or not any(origin.startswith(place + os.sep) for place in self.places):
            return False
        real = os.path.realpath(origin)
        return not is_inside(real, self.root) or is_inside(real, os.path.realpath(sys.prefix))

    def attempt(self, name: str) -> None:
        """Import a module in a fork, which takes our place if nothing but modules came of it."""
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            if self.imports_cleanly(name):
                os.write(write_end, b"1")
                os.close(write_end)
                return
            os._exit(1)
        os.close(write_end)
        told = select.select([read_end], [], [], IMPORT_SECONDS)[0] and os.read(read_end, 1)
        os.close(read_end)
        if told:
            os._exit(0)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        imports.failed.add(name)

    def imports_cleanly(self, name: str) -> bool:
        """Import a module; whether nothing else came of it."""
        known = set(sys.modules)
        printed, write_end = os.pipe()
        streams = os.dup(1), os.dup(2)
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        before = state()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                filters = list(warnings.filters)
                __import__(name)
                clean = not caught and list(warnings.filters) == filters
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:  # whatever it is, the module is left for the program to import
            return False
        clean = clean and state() == before and not select.select([printed], [], [], 0)[0]
        for saved, stream in zip(streams, (1, 2)):  # noqa: B905 (Python 3.6)
            os.dup2(saved, stream)
            os.close(saved)
        os.close(printed)
        os.close(write_end)
        fresh = [(key, sys.modules[key]) for key in sys.modules if key not in known]
        return clean and all(self.is_fine(key, module) for key, module in fresh) and resident() < self.config["limit"]

    def is_fine(self, key: str, module: "ModuleType | None") -> bool:
        """Whether a module that was loaded can be kept apart and handed out later."""
        top = key.partition(".")[0]
        if module is None or top in DENIED:
            return False
        spec = getattr(module, "__spec__", None)
        if is_built_in(key, spec):
            return True
        if spec is None or spec.name != key:  # another name of a module, made by the package that it stands in
            return "." in key and top in sys.modules
        return spec.origin == "frozen" or (bool(spec.has_location) and self.is_installed(spec.origin))


def installed_places(root: str) -> "list[str]":
    """The entries of `sys.path` where the standard library and installed distributions lie."""
    given = [] if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "").split(os.pathsep)
    library = os.path.dirname(os.__file__)
    prefix = os.path.realpath(sys.prefix)
    places = []
    for entry in sys.path:
        name = os.path.basename(entry)
        real = os.path.realpath(entry)
        if entry in given or not os.path.isdir(entry) or (is_inside(real, root) and not is_inside(real, prefix)):
            continue
        if entry == library or name in ("lib-dynload", "site-packages", "dist-packages"):
            places.append(entry)
    return places


def is_inside(path: str, directory: str) -> bool:
    """Whether a path is, or lies below, a directory; both without links."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def is_built_in(key: str, spec: "Any") -> bool:
    """Whether a module is part of the interpreter: no other can take its name."""
    return key in sys.builtin_module_names or (spec is not None and spec.origin == "built-in")


def state() -> "list[object]":
    """What of the process an import should not change."""
    mask = os.umask(0o077)
    os.umask(mask)
    handlers = [signal.getsignal(number) for number in range(1, int(signal.NSIG))]
    logging = sys.modules.get("logging")  # type: Any
    root = logging.getLogger() if logging is not None else None
    locale = sys.modules.get("_locale") or __import__("_locale")  # type: Any
    return [
        dict(os.environ),
        os.getcwd(),
        mask,
        list(sys.path),
        list(sys.meta_path),
        list(sys.path_hooks),
        handlers,
        sorted(os.listdir("/proc/self/task")),
        sorted(os.listdir("/proc/self/fd")),
        sys.getrecursionlimit(),
        sys.getswitchinterval(),
        (sys.gettrace(), sys.getprofile(), sys.excepthook, sys.displayhook, getattr(sys, "breakpointhook", None)),
        (id(sys.stdin), id(sys.stdout), id(sys.stderr), sys.dont_write_bytecode),
        (gc.isenabled(), gc.get_threshold(), len(gc.callbacks)),
        locale.setlocale(locale.LC_ALL),
        {name: id(value) for name, value in vars(builtins).items() if name != "__import__"},
        (len(root.handlers), root.level, root.manager.disable) if root is not None else (0, 30, 0),
        socket.getdefaulttimeout(),
    ]


def resident() -> int:
    """Bytes of memory that this process holds."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def pytest_plugins() -> "list[str]":
    """The modules of installed plugins of pytest, and what pytest itself imports when it starts."""
    names = ["_pytest.config", *("_pytest." + name for name in sys.modules["_pytest.config"].default_plugins)]
    try:
        from importlib.metadata import distributions
    except ImportError:
        return names
    for distribution in distributions():
        for entry in distribution.entry_points:
            if entry.group == "pytest11":
                names.append(entry.value.partition(":")[0].strip())
    return names


def imported_names(root: str) -> "list[str]":
    """What the workspace's Python files import when they are imported themselves, the most frequent first."""
    counts = {}  # type: dict[str, int]
    for path in python_files(root):
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read(FILE_SIZE))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for name in set(names_in(tree.body)):
            counts[name] = counts.get(name, 0) + 1
    # A package before what is in it; else the more frequent first.
    return sorted(counts, key=lambda name: (name.count("."), -counts[name], name))


def python_files(root: str) -> "list[str]":
    """Python files of the workspace, tests first; of many some."""
    found = []  # type: list[str]
    seen = 0
    for directory, directories, files in os.walk(root):
        seen += len(directories) + len(files)
        if seen > ENTRIES:
            break
        directories[:] = sorted(
            name
            for name in directories
            if not name.startswith(".")
            and name not in SKIPPED_DIRECTORIES
            and not os.path.exists(os.path.join(directory, name, "pyvenv.cfg"))
        )
        found += [os.path.join(directory, name) for name in sorted(files) if name.endswith(".py")]
    found.sort(key=lambda path: not os.path.basename(path).startswith(("test_", "conftest")))
    return found[:FILES]


def names_in(body: "Iterable[Any]") -> "Iterator[str]":
    """The modules that statements of a module import when it is imported."""
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.module and not node.level:
                yield node.module
                for alias in node.names:
                    if alias.name.isidentifier() and alias.name.islower():  # it may be a module of a package
                        yield "{}.{}".format(node.module, alias.name)
        elif isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.dump(node.test):
                for name in names_in(node.body + node.orelse):
                    yield name
        elif isinstance(node, ast.Try):
            for name in names_in(node.body + node.orelse):
                yield name


# ------------------------------------------------------------------------------------------- what programs are given


class Shelf(object):
    """A finder that hands out modules that were loaded, when a program imports them and would find the same file."""

    def __init__(self, first: "frozenset[str]") -> None:
        self.modules = {}  # type: dict[str, Any]
        self.debug_gym_modules = self.modules  # by this name the debugger finds them
        for key, module in list(sys.modules.items()):
            if key in first or is_built_in(key, getattr(module, "__spec__", None)):
                continue
            if getattr(getattr(module, "__spec__", None), "name", None) != key and key.rpartition(".")[0] in first:
                continue  # another name of a module, below one that is there from the beginning
            self.modules[key] = module
        self.specs = {key: getattr(module, "__spec__", None) for key, module in self.modules.items()}
        self.waiting = set(self.modules)
        self.closures = {}  # type: dict[str, list[str]]
        self.found = {}  # type: dict[str, Any]
        self.found_by = self.found_in = None  # type: Any
        self.finder = importlib.machinery.PathFinder
        self.usual = importlib.machinery.FileFinder, type(None)
        self.listings = {}  # type: dict[str, tuple[int, set[str]]]
        self.kept = ()  # type: object
        self.edges = {}  # type: dict[str, set[str]]
        for key in self.modules:
            edges = set(imports.edges.get(key, ()))
            parts = key.split(".")
            edges.update(".".join(parts[:depth]) for depth in range(1, len(parts)))
            self.edges.setdefault(key, set()).update(name for name in edges if name in self.modules and name != key)
            spec = self.specs[key]
            if spec is None or spec.name != key:
                self.edges.setdefault(parts[0], set()).add(key)

    def clear_the_table(self) -> None:
        """Take the modules out of sight: out of `sys.modules`, and of packages that do not themselves import them."""
        for key, module in self.modules.items():
            above, _, name = key.rpartition(".")
            parent = self.modules.get(above) or sys.modules.get(above)
            shown = above in self.modules and key in self.closure(above)
            if above and not shown and parent is not None and vars(parent).get(name) is module:
                delattr(parent, name)
        for key in self.modules:
            del sys.modules[key]

    def closure(self, key: str) -> "list[str]":
        """What importing a module loads, itself included."""
        if key in self.closures:
            return self.closures[key]
        found = [key]
        seen = {key}
        for one in found:
            fresh = self.edges[one] - seen
            seen |= fresh
            found.extend(sorted(fresh))
        self.closures[key] = found
        return found

    def find_spec(self, name: str, path: "Any" = None, target: object = None) -> "Any":
        """Find a module that lies here."""
        if name not in self.waiting:
            return None
        above = name.rpartition(".")[0]
        if above and sys.modules.get(above) is not self.modules.get(above, sys.modules.get(above)):
            return None
        spec = self.look_up(name, path)
        if spec is None:
            return None
        for key in self.closure(name):
            if key not in self.waiting:
                if sys.modules.get(key) is not self.modules[key]:
                    return None
            elif key in sys.modules or ("." not in key and key != name and self.look_up(key, None) is None):
                return None
        spec.loader = handing_out(spec.loader, self)
        return spec

    def remember(self, names: "Iterable[str]", stamp: "dict[str, Any]") -> None:
        """Find now what programs import first: they need not look for it again where they would look as is done here.

        Args:
            names: modules
            stamp: of the files and directories that are asked for changes before each start; what is found after any
                other directory is not remembered
        """
        known = []
        for entry in sys.path:
            if entry not in stamp:
                if os.path.exists(entry):
                    break
                stamp[entry] = None
            known.append(entry)
        for name in names:
            for key in self.closure(name) if name in self.modules else ():
                spec = None if "." in key else self.look_up(key, None)
                if spec is None:
                    continue
                directory = os.path.dirname(spec.origin or "")
                if spec.submodule_search_locations is not None:
                    directory = os.path.dirname(directory)
                if spec.origin in ("built-in", "frozen") or directory in known:
                    self.found[key] = spec
        self.found_by, self.found_in = self.finders(), sys.path[:]

    def finders(self) -> "Any":
        """What looks for modules besides this, and in what way."""
        return [one for one in sys.meta_path if one is not self], sys.path_hooks[:]

    def found_again(self, name: str) -> bool:
        """Whether a program that imports a module would find what was found by `remember`."""
        if name not in self.found or self.found_by != self.finders():
            return False
        before = len(sys.path) - len(self.found_in)
        if sys.path[before:] != self.found_in:
            return False
        if not before or self.found[name].origin in ("built-in", "frozen"):
            return True
        # What programs have on the path besides, as their own directory, comes first.
        front = [entry for entry in sys.path[:before] if self.may_hold(entry, name)]
        return not front or self.finder.find_spec(name, front) is None

    def may_hold(self, entry: str, name: str) -> bool:
        """Whether a module may lie at an entry of the path; a directory's list of names tells it at once of most."""
        if not isinstance(sys.path_importer_cache.get(entry), self.usual):
            return True
        try:
            changed = os.stat(entry or ".").st_mtime_ns
            if self.listings.get(entry, (0,))[0] != changed:
                self.listings[entry] = changed, {one.partition(".")[0] for one in os.listdir(entry or ".")}
        except (OSError, TypeError, ValueError):
            return True
        # What changes again within a tick of the file system's clock has the same time.
        return name in self.listings[entry][1] or time.time() * 1e9 - changed < FRESH

    def invalidate_caches(self) -> None:
        """See `importlib.invalidate_caches`."""
        self.listings.clear()

    def look_up(self, name: str, path: "Any") -> "Any":
        """What all the others find under a name, if that is what was loaded; else None."""
        if path is None and self.found_again(name):
            return self.found[name]
        own = self.specs[name]
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path)
            if spec is not None:
                same = own is not None and spec.origin == own.origin and type(spec.loader) is type(own.loader)
                return spec if same else None
        return None

    def hand_out(self, name: str) -> "Any":
        """Put a module, and what importing it had imported, where a program looks for it."""
        fresh = []
        for key in self.closure(name):
            if key not in self.waiting:
                continue
            self.waiting.discard(key)
            fresh.append(key)
            sys.modules[key] = self.modules[key]
        for key in fresh:
            above, _, last = key.rpartition(".")
            parent = sys.modules.get(above)
            if above and parent is not None and last not in vars(parent):
                setattr(parent, last, self.modules[key])
        module = self.modules[name]
        module.__spec__ = self.specs[name]
        if not self.waiting and self in sys.meta_path:
            sys.meta_path.remove(self)
        return module


_loaders = {}  # type: dict[type, type]


def handing_out(loader: "Any", shelf: Shelf) -> "Any":
    """A loader like another one, but that it loads what lies on the shelf."""
    of_class = isinstance(loader, type)  # as that of frozen modules
    kind = loader if of_class else type(loader)  # type: Any
    if kind not in _loaders:

        def create_module(self: "Any", spec: "Any") -> "Any":
            if spec.name in shelf.waiting:
                return shelf.modules[spec.name]
            return super(_loaders[kind], self).create_module(spec)  # type: ignore[arg-type]

        def exec_module(self: "Any", module: "Any") -> None:
            name = module.__spec__.name
            if name in shelf.waiting and module is shelf.modules[name]:
                shelf.hand_out(name)
            else:
                super(_loaders[kind], self).exec_module(module)  # type: ignore[arg-type]

        body = {"create_module": create_module, "exec_module": exec_module, "__module__": kind.__module__}
        _loaders[kind] = type(kind.__name__, (kind,), body)
    same = object.__new__(_loaders[kind])  # type: Any
    if not of_class:
        same.__dict__.update(loader.__dict__)
    return same


# ---------------------------------------------------------------------------------------------------------- serving


def places_of(path: "list[str]") -> "list[str]":
    """Where installing something would show, besides in the files of modules that were loaded."""
    found = [sys.executable, os.path.join(sys.prefix, "pyvenv.cfg")]
    for entry in path:
        if entry:
            found.append(entry)
            try:
                names = [name for name in os.listdir(entry) if name.endswith((".pth", ".egg-link"))]
                found += [os.path.join(entry, name) for name in names]
            except OSError:
                continue
    return found


def files_of(modules: "Iterable[Any]") -> "list[str]":
    """The files of modules."""
    files = (getattr(module, "__file__", None) for module in modules)
    return [file for file in files if isinstance(file, str)]


def stamps(paths: "Iterable[str]") -> "dict[str, tuple[int, int, int] | None]":
    """What tells whether files or directories were changed."""
    found = {}  # type: dict[str, tuple[int, int, int] | None]
    for path in paths:
        try:
            status = os.stat(path)
            found[path] = status.st_mtime_ns, status.st_size, status.st_ino
        except OSError:
            found[path] = None
    return found


class Stamped(object):
    """Files and directories as they were, to be asked before each start whether they still are.

    In two pieces: to look at hundreds of objects would make the kernel copy a page for nearly each, after every fork.
    """

    STATUS = struct.Struct("=qqQ")
    GONE = STATUS.pack(0, 0, 0)

    def __init__(self, stamp: "dict[str, tuple[int, int, int] | None]") -> None:
        self.paths = "".join(path + "\0" for path in stamp)
        self.known = b"".join(self.GONE if one is None else self.STATUS.pack(*one) for one in stamp.values())

    def has_changed(self) -> bool:
        """Whether anything is not as `stamps` found it."""
        stat, pack, paths, known, size = os.stat, self.STATUS.pack, self.paths, self.known, self.STATUS.size
        begin = place = 0
        while begin < len(paths):
            end = paths.index("\0", begin)
            try:
                status = stat(paths[begin:end])
                now = pack(status.st_mtime_ns, status.st_size, status.st_ino)
            except OSError:
                now = self.GONE
            if now != known[place : place + size]:
                return True
            begin, place = end + 1, place + size
        return False


class Prepared(object):
    """The code that programs are given, as blob `code`, ready to be run.

    Attributes:
        codes: the program's, by module
        blob: a descriptor of it, compiled for this interpreter; -1: the one that is passed is so already
    """

    def __init__(self, program: int) -> None:
        import marshal

        self.blob = -1
        with os.fdopen(program, "rb") as file:
            data = file.read()
        size = int.from_bytes(data[4:8], "big")
        if data[:4] == MAGIC_NUMBER:
            self.codes = marshal.loads(data[8 : 8 + size])  # type: dict[str, CodeType]
            return
        sources = marshal.loads(data[8 + size :])
        self.codes = {name: compile(sources[name], NAME, "exec", dont_inherit=True) for name in sources}
        compiled = marshal.dumps(self.codes)
        if hasattr(os, "memfd_create"):
            self.blob = os.memfd_create("blob")
        else:
            import tempfile

            with tempfile.TemporaryFile() as temporary:
                self.blob = os.dup(temporary.fileno())
        with os.fdopen(os.dup(self.blob), "wb") as out:
            out.write(MAGIC_NUMBER + len(compiled).to_bytes(4, "big") + compiled + data[8 + size :])


def serve(
    connection: socket.socket, shelf: Shelf, stamp: "dict[str, Any]", prepared: Prepared, codes: "dict[str, CodeType]"
) -> "dict[str, Any]":
    """Fork a program at each request, until the keeper goes; returns, in each fork, the request.

    Args:
        connection: to the keeper
        shelf: what was loaded
        stamp: of what was loaded from, and where something might be installed
        prepared: the programs' code
        codes: what programs are told to run by `-c`, compiled
    """
    stamp.update(stamps(files_of(list(sys.modules.values()))))  # what the programs' own code loaded, if it ran
    stamped = Stamped(stamp)
    gc.collect()
    sys.path_importer_cache.clear()
    connection.send(b'{"ready":%d}' % os.getpid())
    while True:
        data, ancillary = connection.recvmsg(1 << 18, socket.CMSG_SPACE(16 * 4), socket.MSG_CMSG_CLOEXEC)[:2]
        if not data:
            os._exit(0)
        raw = b"".join(content for _, _, content in ancillary)
        descriptors = [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw), 4)]
        request = json.loads(data.decode())  # type: dict[str, Any]
        if stamped.has_changed() or len(os.listdir("/proc/self/task")) != 1:
            connection.send(b'{"stale":true}')
            os._exit(0)
        text = request["code"]
        if text not in codes:
            codes[text] = compile(text, "<string>", "exec", dont_inherit=True)
        process = fork_orphan()
        if process == 0:
            os.close(connection.detach())
            begin(request, descriptors, prepared.blob)
            reseed(shelf.modules)
            return request
        for descriptor in descriptors:
            os.close(descriptor)
        connection.send(b'{"pid":%d}' % process)


def fork_orphan() -> int:
    """Fork a process that is not our child but, its parent being gone, the keeper's; returns 0 in it, -1 for none."""
    read_end, write_end = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.close(read_end)
        try:
            process = os.fork()
        except OSError:
            os._exit(1)
        if process:
            os.write(write_end, b"%d" % process)
            os._exit(0)
        os.close(write_end)
        return 0
    os.close(write_end)
    told = os.read(read_end, 32)
    os.close(read_end)
    os.waitpid(middle, 0)
    return int(told or b"-1")


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
