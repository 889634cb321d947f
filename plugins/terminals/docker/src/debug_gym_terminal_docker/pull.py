"""Getting an image that is not there: once for all who wait for it, in bounded time, with progress told."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from debug_gym_core import progress
from debug_gym_core.errors import DebugGymError, RequirementError, SandboxLost
from debug_gym_terminal_docker import engine

if TYPE_CHECKING:
    from docker import APIClient

_PRESENT = ("Pull complete", "Already exists")
_CAUSE = 300
"""Characters of the engine's words that an error has."""

_OFTEN = 0.5
"""Seconds between two questions whether the image is still wanted."""


class _Pull:
    """An image that is being got by one thread, for others too."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.failure: str | None = None
        self.unwanted = False


_under_way: dict[str, _Pull] = {}
_mutex = threading.Lock()


def get(image: str, timeout: float, stall: float) -> None:
    """Get an image; who asks while another thread gets it waits for that one.

    Args:
        image: its name
        timeout: seconds that it may take
        stall: seconds without any progress after which it is given up

    Raises:
        RequirementError: it cannot be got, or not in time
        SandboxLost: it is wanted no more
    """
    while True:
        with _mutex:
            pull = _under_way.get(image)
            mine = pull is None
            if pull is None:
                pull = _under_way[image] = _Pull()
        if mine:
            return _lead(pull, image, timeout, stall)
        while not pull.ended.wait(_OFTEN):
            _insist_that_it_is_wanted(image)
        if pull.failure is not None:
            raise RequirementError(pull.failure)
        if not pull.unwanted:
            return None


def _lead(pull: _Pull, image: str, timeout: float, stall: float) -> None:
    """Get an image, for those too who wait for it meanwhile."""
    try:
        _get(image, timeout, stall)
    except SandboxLost:
        pull.unwanted = True
        raise
    except BaseException as error:
        pull.failure = str(error) if isinstance(error, DebugGymError) else _not_got(image, "it was interrupted")
        raise
    finally:
        with _mutex:
            del _under_way[image]
        pull.ended.set()


def _insist_that_it_is_wanted(image: str) -> None:
    if not progress.is_wanted():
        raise SandboxLost(f"docker: getting the image {image} was given up, as nobody waits for it")


def _get(image: str, timeout: float, stall: float) -> None:
    began = time.monotonic()
    if _is_here(image):  # another thread had got it when this one came to wait
        return
    state = Progress(image)
    answers = _Answers(image, stall)
    moved = began
    try:
        progress.tell(image, state.line())
        while True:
            now = time.monotonic()
            if now >= began + timeout:
                raise RequirementError(
                    _not_got(image, f"it took longer than {timeout:g} s, terminal.pull_timeout", state)
                )
            if now >= moved + stall:
                words = f"nothing came for {stall:g} s, terminal.pull_stall"
                raise RequirementError(_not_got(image, f"it stalled: {words}", state))
            _insist_that_it_is_wanted(image)
            with contextlib.suppress(queue.Empty):
                answer = answers.next(min(began + timeout - now, moved + stall - now, _OFTEN))
                if answer is None:
                    break
                if state.take(answer):
                    moved = time.monotonic()
                    progress.tell(image, state.line())
        progress.tell(image, f"pulled {image}: {state.size()} in {time.monotonic() - began:.0f} s")
    finally:
        answers.abandon()
        progress.tell(image, None)


@dataclass
class _Layer:
    downloaded: int = 0
    total: int = 0
    extracted: int = 0
    present: bool = False


class Progress:
    """How far getting an image is, from what the engine says of its layers."""

    def __init__(self, image: str) -> None:
        """Know nothing yet."""
        self._image = image
        self._layers: dict[str, _Layer] = {}
        self._words: set[str] = set()

    def take(self, message: Mapping[str, Any]) -> bool:
        """Learn from a message of the engine's.

        Returns:
            whether it is further than before; that it tries again is no progress
        """
        before = self._measure()
        status, name = str(message.get("status", "")), str(message.get("id", ""))
        detail = message.get("progressDetail") or {}
        if name and (detail or status in _PRESENT or status == "Pulling fs layer"):
            layer = self._layers.setdefault(name, _Layer())
            current = int(detail.get("current") or 0)
            if status == "Downloading":
                layer.downloaded = max(layer.downloaded, current)
                layer.total = max(layer.total, int(detail.get("total") or 0))
            elif status == "Extracting":
                layer.extracted = max(layer.extracted, current)
                layer.downloaded = layer.total
            layer.present = layer.present or status in _PRESENT
        elif not status.startswith("Retrying"):
            self._words.add(f"{name} {status}")
        return self._measure() != before

    def _measure(self) -> tuple[int, ...]:
        layers = self._layers.values()
        return (
            len(self._words),
            len(layers),
            sum(layer.downloaded + layer.extracted for layer in layers),
            sum(layer.present for layer in layers),
        )

    def line(self) -> str:
        """For a person: `pulling python:3.12: 3 of 7 layers, 41 of 120 MB`."""
        if not self._layers:
            return f"pulling {self._image}"
        return f"pulling {self._image}: {self.part()}"

    def part(self) -> str:
        """`3 of 7 layers, 41 of 120 MB`; the size is of the layers that have begun."""
        present = sum(layer.present for layer in self._layers.values())
        return f"{present} of {len(self._layers)} layers, {self.size()}"

    def size(self) -> str:
        """`41 of 120 MB`, or `120 MB` when that is all."""
        downloaded = sum(layer.total if layer.present else layer.downloaded for layer in self._layers.values())
        total = sum(layer.total for layer in self._layers.values())
        unit, name = (10**6, "MB") if total >= 10**6 else (10**3, "kB")
        return f"{total // unit} {name}" if downloaded >= total else f"{downloaded // unit} of {total // unit} {name}"


class _Answers:
    """What the engine says while it gets an image, read by a thread of its own: neither side can hold the other up."""

    def __init__(self, image: str, stall: float) -> None:
        self._image = image
        self._stall = stall
        self._abandoned = threading.Event()
        self._said: queue.SimpleQueue[Mapping[str, Any] | RequirementError | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="debug-gym-pull", daemon=True).start()

    def next(self, timeout: float) -> Mapping[str, Any] | None:
        """Wait for the next message; None at the end.

        Raises:
            queue.Empty: none came in `timeout` seconds
            RequirementError: the engine cannot get the image
        """
        item = self._said.get(timeout=timeout)
        if isinstance(item, RequirementError):
            raise item
        return item

    def abandon(self) -> None:
        """Let the engine stop: the thread hangs up at its next message, or when none came for long."""
        self._abandoned.set()

    def _read(self) -> None:
        import docker.errors
        import requests

        try:
            with contextlib.closing(engine.connect(self._stall)) as client:
                for message in self._messages(client):
                    if self._abandoned.is_set():
                        return
                    if "error" in message:
                        raise RequirementError(_not_got(self._image, str(message["error"])))
                    self._said.put(message)
        except RequirementError as error:
            self._said.put(error)
        except (docker.errors.DockerException, requests.exceptions.RequestException, OSError, ValueError) as error:
            self._said.put(RequirementError(_not_got(self._image, engine.silence(error))))
        else:
            self._said.put(None)

    def _messages(self, client: APIClient) -> Iterator[Mapping[str, Any]]:
        from docker import auth
        from docker.utils import parse_repository_tag

        name, tag = parse_repository_tag(self._image)
        header = auth.get_config_header(client, auth.resolve_repository_name(name)[0])
        # Not the SDK's `pull`: it waits for each message without a limit, and cannot be told to hang up.
        with client.post(
            f"{client.base_url}/v{client.api_version}/images/create",
            params={"fromImage": name, "tag": tag or "latest"},
            headers={"X-Registry-Auth": header} if header else {},
            stream=True,
            timeout=self._stall,
        ) as response:
            if not response.ok:
                with contextlib.suppress(ValueError):
                    raise RequirementError(_not_got(self._image, str(response.json()["message"])))
                raise RequirementError(_not_got(self._image, f"the engine answers {response.status_code}"))
            for line in response.iter_lines(chunk_size=None):
                if line.strip():
                    yield json.loads(line)


def _is_here(image: str) -> bool:
    import docker.errors

    client = engine.connect()
    with contextlib.closing(client), engine.explained(f"the image {image} cannot be looked for"):
        try:
            client.inspect_image(image)  # type: ignore[no-untyped-call]
        except docker.errors.ImageNotFound:
            return False
    return True


def _not_got(image: str, cause: str, state: Progress | None = None) -> str:
    far = f" ({state.part()})" if state is not None and state.line() != f"pulling {image}" else ""
    cause = " ".join(cause.split())[:_CAUSE]
    return f"the image {image} is not here and cannot be got: {cause}{far}; try: docker pull {image}"
