"""A sandbox in a Docker container: the task's image, with nothing of the host in it."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import threading
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from debug_gym_core.components.component import Settings
from debug_gym_core.errors import RequirementError, SandboxError, SandboxLost
from debug_gym_core.sandbox import seccomp
from debug_gym_core.sandbox.terminal import ROOT, Protected, SandboxSpec, Stream, Terminal
from debug_gym_terminal_docker import building, container, engine, pull, readonly_owner
from debug_gym_terminal_docker.python import Python, find
from debug_gym_terminal_docker.settings import OWNER, DockerSettings
from debug_gym_terminal_docker.stream import ExecStream

if TYPE_CHECKING:
    from docker import APIClient

_LOG_SIZE = 16384
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENVIRONMENT = {"HOME": "/tmp", "USER": "sandbox", "LOGNAME": "sandbox"}
# git would refuse to work in a directory that is another user's, as the workspace is where files are read-only.
_GIT_ENVIRONMENT = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": ROOT}

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


class DockerTerminal(Terminal):
    """A Docker container of the task's image.

    No network, no capability, no new privileges, a read-only root; the workspace and /tmp are in memory and bounded.
    Nothing of the host is there but what `volumes` names. The interpreter is the image's.
    """

    name = "docker"
    isolates: ClassVar[bool] = True
    runs_images: ClassVar[bool] = True
    keeps_setup: ClassVar[bool] = True
    Settings: ClassVar[type[Settings]] = DockerSettings
    settings: DockerSettings

    def __init__(self, **settings: Any) -> None:
        """Check the settings; see `DockerSettings`."""
        super().__init__(**settings)
        self._name = f"debug-gym-{uuid.uuid4().hex}"
        self._client: APIClient | None = None
        self._id: str | None = None
        self._main: ExecStream | None = None
        self._python: Python | None = None
        self._shared = False  # whether the workspace is another user's than the commands', and open to all
        self._init = True
        self._environment: dict[str, str] = {}
        self._streams: list[ExecStream] = []
        self._log: deque[int] = deque(maxlen=_LOG_SIZE)
        self._unprotected: list[str] = []
        self._effective = self.settings
        self._podman = False
        self._stopping = threading.Lock()

    @classmethod
    def unavailable(cls) -> str | None:
        """Why there is no Docker: the SDK is missing, or no engine answers."""
        return engine.unavailable()

    @classmethod
    def about(cls) -> Sequence[str]:
        """The engine's version, and how many images are here."""
        return engine.about()

    @classmethod
    def clean(cls) -> Sequence[str]:
        """Remove containers of runs that were killed, and images that they were about to keep."""
        try:
            client = engine.connect(engine.STOP_TIMEOUT)
        except RequirementError:
            return ()
        with contextlib.closing(client), engine.explained("the containers cannot be listed"):
            left = container.leftovers(client)
            for identifier in left:
                _remove(client, identifier)
            images = building.leftovers(client)
            for identifier in images:
                building.remove(client, identifier)
            return [*(f"container {one[:12]}" for one in left), *(f"image {one[7:19]}" for one in images)]

    def start(self, spec: SandboxSpec) -> None:
        """Start a container of the image, and find its Python."""
        image = spec.image or self._image()
        self._effective = building.settings(self.settings) if spec.builds else self.settings
        self._client = client = engine.connect()
        self._podman = engine.is_podman(client)
        try:
            _clean()
            with engine.explained(f"the container of {image} did not start"):
                self._id = self._create(client, image, spec)
                attached = client.attach_socket(self._id, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
                self._main = ExecStream(attached, self._log.extend)
                client.start(self._id)
                container.await_start(self._main)
                facts = client.inspect_container(self._id)
                self.image_id = facts["Image"]
                self._python = find(client, self._id, facts["Image"], spec.python, self._effective.user)
        except BaseException:
            with contextlib.suppress(SandboxError):
                self.stop()
            raise
        self.python = self._python.executable
        path = _path(facts["Config"]["Env"] or [], self.python)
        shared = _GIT_ENVIRONMENT if self._shared else {}
        given = self._effective.environment
        self._environment = {"PATH": path, **_ENVIRONMENT, **shared, **given, **spec.environment}

    def _image(self) -> str:
        if self.settings.image is None:
            raise RequirementError("docker needs an image, and the task names none: -p terminal.image=IMAGE")
        return self.settings.image

    def _create(self, client: APIClient, image: str, spec: SandboxSpec) -> str:
        """Create the container: with the image pulled when it is missing, without an init where the engine has none."""
        import docker.errors

        def create() -> str:
            settings = self._effective if self._init else self._effective.model_copy(update={"init": False})
            return container.create(
                client, self._name, image, spec.run, settings, shared=self._shared, masked=spec.masked
            )

        self._shared = spec.protects or container.is_shared(client, self._effective)
        pulled = False
        while True:
            try:
                return create()
            except docker.errors.ImageNotFound:
                if spec.image is not None:
                    raise SandboxError("docker: the image that terminal.setup made was removed meanwhile") from None
                if self.settings.pull == "never":
                    raise RequirementError(f"the image {image} is not here; get it with: docker pull {image}") from None
                if pulled:
                    raise
            except docker.errors.APIError as error:
                if not self._init or "init binary not found" not in str(error.explanation):
                    raise
                self._init = False
                continue
            pull.get(image, self.settings.pull_timeout, self.settings.pull_stall)
            pulled = True

    def open(self, argv: Sequence[str]) -> Stream:
        """Run the guest's command in the container, over one attached socket."""
        client, identifier = self._client, self._id
        if client is None or identifier is None or self._python is None:
            raise SandboxLost("the container is gone")
        import docker.errors

        command = list(argv)
        if self._filters:
            code = base64.b64encode(seccomp.program(self._python.machine)).decode("ascii")
            command = [self._python.executable, "-I", "-S", "-c", _FILTERED, code, *command]
        try:
            if self._streams:
                self._bury(client, identifier)
            with engine.explained("the guest did not start"):
                started = client.exec_create(
                    identifier,
                    command,
                    stdin=True,
                    user=self._effective.user,
                    workdir=ROOT,
                    environment=self._environment,
                )
                stream = ExecStream(client.exec_start(started["Id"], socket=True), self._log.extend)
        except SandboxLost:
            raise
        except SandboxError as error:
            cause = error.__cause__
            if isinstance(cause, docker.errors.NotFound) or not self.alive():
                raise SandboxLost("the container is gone") from error
            raise
        self._streams.append(stream)
        return stream

    def _bury(self, client: APIClient, identifier: str) -> None:
        """See that nothing is left of a guest that died."""
        for stream in self._streams:  # which stay known until nothing is left, as that may have to be seen to once more
            stream.close()
        why = "processes of its user stay"
        try:
            with engine.explained("it is not known what it left"):
                quiet = container.quieten(client, identifier, self._effective)
        except SandboxError as error:
            quiet, why = False, str(error)
        if not quiet:
            self.stop()
            raise SandboxLost(f"the guest died, and {why}; the container was removed")
        self._streams.clear()

    def protect(self, paths: Protected) -> None:
        """Make read-only files another user's."""
        if self._client is None or self._id is None:
            raise SandboxLost("the container is gone")
        self._unprotected = readonly_owner.protect(
            self._client, self._id, self.python, paths, self.settings.user, f"{OWNER}:{OWNER}"
        )

    def identify_image(self) -> str:
        """The image's id, and the variables that the commands have."""
        image = self._image()
        with contextlib.closing(engine.connect()) as client:
            found = building.identify(client, image)
            if found is None and self.settings.pull != "never":
                pull.get(image, self.settings.pull_timeout, self.settings.pull_stall)
                found = building.identify(client, image)
        if found is None:
            raise RequirementError(f"the image {image} is not here; get it with: docker pull {image}")
        return f"{found} {json.dumps(self.settings.environment, sort_keys=True)}"

    def image_archive(self, directory: str) -> Iterator[bytes]:
        """Read a directory of the image from a container that is never started."""
        import docker.errors

        image = self._image()
        with contextlib.closing(engine.connect()) as client:
            with engine.explained(f"the image {image} cannot be read"):
                identifier = container.create_unstarted(client, image)
            try:
                with engine.explained(f"the image {image} cannot be read"):
                    try:
                        blocks, _ = client.get_archive(identifier, directory)
                    except docker.errors.NotFound:
                        raise RequirementError(f"the image {image} has no {directory}") from None
                    yield from blocks
            finally:
                _remove(client, identifier)

    def keep_setup(self, name: str) -> tuple[str, int]:
        """Make an image of the container."""
        if self._id is None:
            raise SandboxLost("the container is gone")
        with contextlib.closing(engine.connect(building.COMMIT_TIMEOUT)) as client:
            return building.keep(client, self._id, name)

    @classmethod
    def has_image(cls, image: str) -> bool:
        """Whether the image is there."""
        with contextlib.closing(engine.connect()) as client:
            return building.identify(client, image) is not None

    @classmethod
    def remove_image(cls, image: str) -> None:
        """Remove the image."""
        with contextlib.closing(engine.connect()) as client:
            building.remove(client, image)

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
        """Kill and remove the container.

        Raises:
            SandboxError: the engine did not do so in `engine.STOP_TIMEOUT` seconds; as nobody is attached any more, the
                container ends by itself once the engine works again
        """
        with self._stopping:
            client, identifier = self._client, self._id
            self._client = self._id = None
            if client is None:
                return
            engine.limit(client, engine.STOP_TIMEOUT)
            try:
                # Without an id it may be there all the same: the engine was asked for it, and did not answer.
                _remove(client, identifier or self._name)
            finally:
                for stream in (*self._streams, *([self._main] if self._main is not None else [])):
                    stream.close()
                self._streams.clear()
                self._main = None
                client.close()

    def log(self) -> str:
        """The end of what the guest wrote to standard error."""
        return bytes(self._log).decode("utf-8", "backslashreplace").strip()

    def notes(self) -> Sequence[str]:
        """Where the container is less cut off than it could be."""
        said = [*self._unprotected]
        if self._podman:
            said.append("files: Podman bounds their size in the workspace and /tmp, not how many there are")
        if not self._init:
            said.append("init: the engine has none (apt-get install catatonit); orphans that ended count as processes")
        if self._python is not None and self._python.uid == 0:
            said.append(f"terminal.user is {self.settings.user}: commands are root in the container")
        if self._python is not None and self.settings.seccomp == "default" and not self._filters:
            why = f"there is none of ours for {self._python.machine}"
            if not self.settings.no_new_privileges:
                why = "terminal.no_new_privileges is false"
            elif not self._python.filters:
                why = "the image's Python has no ctypes"
            said.append(f"seccomp: only the engine's own filter, {why}")
        return said

    @property
    def _filters(self) -> bool:
        """Whether our filter of system calls is added to the engine's; who loads one can gain no privileges."""
        python = self._python
        return (
            python is not None
            and python.filters
            and self.settings.no_new_privileges
            and self.settings.seccomp == "default"
            and seccomp.supported(python.machine)
        )


def _path(variables: Sequence[str], python: str) -> str:
    """The image's search path, with the interpreter's directory first when another would be found."""
    path = dict(variable.partition("=")[::2] for variable in variables).get("PATH") or _SYSTEM_PATH
    directory = python.rpartition("/")[0]
    return path if directory in path.split(":") else f"{directory}:{path}"


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
        raise SandboxError(
            f"docker: the container {identifier[:12]} was not removed: {engine.silence(error)}"
        ) from error


@functools.cache
def _clean() -> None:
    """Remove what killed runs left, once a process."""
    with contextlib.suppress(SandboxError):
        DockerTerminal.clean()
