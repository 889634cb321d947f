"""What the terminal does when the engine lacks something, with an engine that runs nothing."""

from __future__ import annotations

import docker.errors
import pytest
from pretended_engine import PretendedEngine

from debug_gym_core.errors import RequirementError, SandboxError
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_docker import DockerTerminal, container
from debug_gym_terminal_docker.engine import connect
from debug_gym_terminal_docker.settings import DockerSettings

IMAGE = "python:3.12"
SPEC = SandboxSpec(run="test")


@pytest.mark.parametrize("is_here", [True, False])
@pytest.mark.parametrize("has_init", [True, False])
def test_a_missing_image_and_a_missing_init_are_seen_to_together(
    monkeypatch: pytest.MonkeyPatch, is_here: bool, has_init: bool
) -> None:
    with PretendedEngine(has_init=has_init) as engine:
        engine.images |= {IMAGE} if is_here else set()
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        terminal = DockerTerminal(image=IMAGE)
        with pytest.raises(SandboxError, match="this engine runs nothing"):
            terminal.start(SPEC)
    # Once more for the image, once more for the init; the last one was created.
    assert engine.created == [(IMAGE, True)] * (2 - is_here) + [(IMAGE, False)] * (not has_init)
    assert any(note.startswith("init: the engine has none") for note in terminal.notes()) is not has_init


def test_what_a_pull_does_not_bring_is_pulled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(PretendedEngine):
        def _create(self, image: str, init: bool) -> tuple[int, object]:
            self.images.clear()
            return super()._create(image, init)

    with Forgetful() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        with pytest.raises(SandboxError, match=f"No such image: {IMAGE}"):
            DockerTerminal(image=IMAGE).start(SPEC)
        assert len(engine.created) == 2
        with pytest.raises(RequirementError, match=f"docker pull {IMAGE}"):
            DockerTerminal(image=IMAGE, pull="never").start(SPEC)


def test_an_engine_that_was_started_meanwhile_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    started = PretendedEngine()
    with PretendedEngine() as stopped:
        monkeypatch.setenv("DOCKER_HOST", stopped.url)
    assert "no Docker engine answers" in str(DockerTerminal.unavailable())
    with started:
        monkeypatch.setenv("DOCKER_HOST", started.url)
        assert DockerTerminal.unavailable() is None


def test_why_a_container_cannot_be_made_to_stand_still_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with PretendedEngine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        client = connect()
        try:
            with pytest.raises(docker.errors.APIError, match="/pause"):
                container.quieten(client, "0123", DockerSettings())
        finally:
            client.close()
