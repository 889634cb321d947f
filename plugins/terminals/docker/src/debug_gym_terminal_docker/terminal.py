"""A sandbox in a Docker container: the task's image, with nothing of the host in it."""

from __future__ import annotations

import base64
import contextlib
import functools
import threading
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from debug_gym_core import seccomp
from debug_gym_core.component import Settings
from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost
from debug_gym_core.terminal import ROOT, SandboxSpec, Stream, Terminal, TerminalSettings, parse_size
from debug_gym_terminal_docker import container, engine
from debug_gym_terminal_docker.python import Python, find
from debug_gym_terminal_docker.stream import ExecStream, hang_up

if TYPE_CHECKING:
    from docker import APIClient

_LOG_SIZE = 16384
_PULL_TIMEOUT = 1800
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENVIRONMENT = {"HOME": "/tmp", "USER": "sandbox", "LOGNAME": "sandbox"}

# Adds our filter of system calls to the engine's, then becomes the command.
_FILTERED = """
import base64, ctypes, os, sys
code = base64.b64decode(sys.argv[1])
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
program = Program(len(code) // 8, code)
prctl = ctypes.CDLL(None, use_errno=True).prctl
prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
if prctl(22, 2, ctypes.addressof(program), 0, 0) != 0:  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
    sys.exit("seccomp: " + os.strerror(ctypes.get_errno()))
os.environ.pop("LC_CTYPE", None)  # Python's own, set for its children
os.execvp(sys.argv[2], sys.argv[2:])
"""


class DockerSettings(TerminalSettings):
    """Settings of the docker terminal.

    Attributes:
        pull: `missing` gets an image that is not there; `never` does not
        runtime: the engine's runtime, such as `runsc` (gVisor); null: its default
    """

    pull: Literal["missing", "never"] = "missing"
    runtime: str | None = None


class DockerTerminal(Terminal):
    """A Docker container of the task's image.

    No network, no capability, no new privileges, a read-only root; the workspace and /tmp are in memory and bounded.
    Nothing of the host is mounted. The interpreter is the image's.
    """

    name = "docker"
    isolates: ClassVar[bool] = True
    runs_images: ClassVar[bool] = True
    Settings: ClassVar[type[Settings]] = DockerSettings
    settings: DockerSettings

    def __init__(self, **settings: Any) -> None:
        """Check the settings; see `DockerSettings`."""
        super().__init__(**settings)
        size = parse_size(self.settings.workspace_size)
        self._bounds = container.Bounds(parse_size(self.settings.memory), self.settings.pids, self.settings.cpus, size)
        self._client: APIClient | None = None
        self._id: str | None = None
        self._hold: Any = None
        self._python: Python | None = None
        self._environment: dict[str, str] = {}
        self._streams: list[ExecStream] = []
        self._log: deque[int] = deque(maxlen=_LOG_SIZE)
        self._stopping = threading.Lock()

    @classmethod
    def unavailable(cls) -> str | None:
        """Why there is no Docker: the SDK is missing, or no engine answers."""
        return engine.unavailable()

    @classmethod
    def clean(cls) -> Sequence[str]:
        """Remove containers of runs that were killed."""
        try:
            client = engine.connect()
        except RequirementError:
            return ()
        with contextlib.closing(client), engine.explained("the containers cannot be listed"):
            left = container.leftovers(client)
            for identifier in left:
                _remove(client, identifier)
            return [f"container {identifier[:12]}" for identifier in left]

    def start(self, spec: SandboxSpec) -> None:
        """Start a container of the image, and find its Python."""
        image = self.settings.image
        if image is None:
            raise RequirementError("docker needs an image that the task does not name: -p terminal.image=python:3.12")
        self._client = client = engine.connect()
        try:
            _clean()
            with engine.explained(f"the container of {image} did not start"):
                self._id = self._create(client, image, spec.run)
                self._hold = client.attach_socket(self._id, params={"stdin": 1, "stream": 1})
                client.start(self._id)
                facts = client.inspect_container(self._id)
                self._python = find(client, self._id, facts["Image"], spec.python)
        except BaseException:
            self.stop()
            raise
        self.python = self._python.executable
        path = _path(facts["Config"]["Env"] or [], self.python)
        self._environment = {"PATH": path, **_ENVIRONMENT, **spec.environment}

    def _create(self, client: APIClient, image: str, run: str) -> str:
        """Create the container, with the image pulled when it is missing."""
        import docker.errors

        def create() -> str:
            return container.create(client, image, run, self._bounds, self.settings.network, self.settings.runtime)

        try:
            return create()
        except docker.errors.ImageNotFound:
            if self.settings.pull == "never":
                raise RequirementError(f"the image {image} is not here; get it with: docker pull {image}") from None
        _pull(image)
        return create()

    def open(self, argv: Sequence[str]) -> Stream:
        """Run the guest's command in the container, over one attached socket."""
        client, identifier = self._client, self._id
        if client is None or identifier is None or self._python is None:
            raise SandboxLost("the container is gone")
        import docker.errors

        command = list(argv)
        if self._python.filters and seccomp.supported(self._python.machine):
            code = base64.b64encode(seccomp.program(self._python.machine)).decode("ascii")
            command = [self._python.executable, "-I", "-S", "-c", _FILTERED, code, *command]
        try:
            with engine.explained("the guest did not start"):
                started = client.exec_create(
                    identifier,
                    command,
                    stdin=True,
                    user=container.USER,
                    workdir=ROOT,
                    environment=self._environment,
                )
                stream = ExecStream(client.exec_start(started["Id"], socket=True), self._log.extend)
        except SandboxError as error:
            cause = error.__cause__
            if isinstance(cause, docker.errors.NotFound) or not self.alive():
                raise SandboxLost("the container is gone") from error
            raise
        self._streams.append(stream)
        return stream

    def alive(self) -> bool:
        """Whether the container runs."""
        if self._client is None or self._id is None:
            return False
        try:
            with engine.explained("the container cannot be asked"):
                return bool(self._client.inspect_container(self._id)["State"]["Running"])
        except SandboxError:
            return False

    def stop(self) -> None:
        """Kill and remove the container."""
        with self._stopping:
            client, identifier = self._client, self._id
            self._client = self._id = None
            if client is None:
                return
            try:
                if identifier is not None:
                    _remove(client, identifier)
            finally:
                for stream in self._streams:
                    stream.close()
                self._streams.clear()
                if self._hold is not None:
                    hang_up(self._hold)
                    self._hold = None
                client.close()

    def log(self) -> str:
        """The end of what the guest wrote to standard error."""
        return bytes(self._log).decode("utf-8", "backslashreplace").strip()

    def notes(self) -> Sequence[str]:
        """Where the container is less cut off than it could be."""
        if self._python is None or (self._python.filters and seccomp.supported(self._python.machine)):
            return ()
        return ("seccomp: only the engine's own filter, the image's Python has no ctypes",)


def _path(variables: Sequence[str], python: str) -> str:
    """The image's search path, with the interpreter's directory first when another would be found."""
    path = dict(variable.partition("=")[::2] for variable in variables).get("PATH") or _SYSTEM_PATH
    directory = python.rpartition("/")[0]
    return path if directory in path.split(":") else f"{directory}:{path}"


def _pull(image: str) -> None:
    """Get an image.

    Raises:
        RequirementError: it cannot be got
    """
    import docker.errors
    import requests
    from docker.utils import parse_repository_tag

    name, tag = parse_repository_tag(image)
    client = engine.connect(_PULL_TIMEOUT)
    try:
        for line in client.pull(name, tag=tag or "latest", stream=True, decode=True):
            if "error" in line:
                raise RequirementError(_not_pulled(image, str(line["error"])))
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        raise RequirementError(_not_pulled(image, str(getattr(error, "explanation", None) or error))) from error
    finally:
        client.close()


def _not_pulled(image: str, cause: str) -> str:
    return f"the image {image} is not here and cannot be got ({cause[:200]}); try: docker pull {image}"


def _remove(client: APIClient, identifier: str) -> None:
    """Kill and remove a container that may be ending on its own."""
    import docker.errors
    import requests

    try:
        client.remove_container(identifier, force=True, v=True)
    except docker.errors.NotFound:
        return
    except docker.errors.APIError as error:
        if error.status_code != 409:  # its removal is under way
            raise SandboxError(
                f"docker: the container {identifier[:12]} was not removed: {error.explanation}"
            ) from error
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        raise SandboxError(f"docker: the container {identifier[:12]} was not removed: no answer") from error


@functools.cache
def _clean() -> None:
    """Remove what killed runs left, once a process."""
    with contextlib.suppress(SandboxError):
        DockerTerminal.clean()
