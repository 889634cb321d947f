"""llm.yaml with entries for models, and a backend that looks its models up."""

from __future__ import annotations

from pathlib import Path

from debug_gym_core.config.llm_yaml import Models, read_models

PICKY = """
import pydantic
from debug_gym_core import LLM, hookimpl
from debug_gym_core.models.service import ServiceLLM, ServiceSettings

class PickySettings(ServiceSettings):
    @pydantic.field_validator("model")
    @classmethod
    def _check(cls, value):
        if value == "gone":
            raise SystemExit("bye")
        return {"m": value}[value]

class Picky(ServiceLLM):
    \"\"\"Looks its models up.\"\"\"
    name = "picky"
    Settings = PickySettings
    def send(self, request): raise NotImplementedError

@hookimpl
def debug_gym_register_llms(): return [Picky]
"""


def models(path: Path, text: str) -> Models:
    (path / "llm.yaml").write_text(text)
    return read_models(path / "llm.yaml")
