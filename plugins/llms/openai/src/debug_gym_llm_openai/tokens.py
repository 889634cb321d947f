"""Counts tokens with tiktoken, where it is installed and the encoding was downloaded before."""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from debug_gym_core import Message

FILES = {
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
"""By encoding: the name of the file in tiktoken's cache, and its SHA-256. tiktoken downloads what does not match."""

MESSAGE = 4
"""Tokens that a message, or a tool, takes besides its text."""


def count_tokens(model: str, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> int | None:
    """Tokens of a prompt; None: they cannot be counted on this machine.

    Args:
        model: a model, or the name of an encoding
        messages: the conversation
        tools: the tools that the model is offered
    """
    encoding = find_encoding(model)
    if encoding is None:
        return None
    texts = [message.content for message in messages]
    texts += [f"{call.name}{json.dumps(call.arguments)}" for message in messages for call in message.calls]
    texts += [json.dumps(tool, ensure_ascii=False) for tool in tools]
    return sum(len(encoding.encode_ordinary(text)) for text in texts) + MESSAGE * (len(messages) + len(tools))


@functools.cache
def find_encoding(model: str) -> Any:
    """The encoding of a model.

    None without tiktoken, for a model that it does not know, and for an encoding that it would have to download.
    """
    try:
        tiktoken = importlib.import_module("tiktoken")
    except ImportError:
        return None
    name = model
    if model not in tiktoken.list_encoding_names():
        try:
            name = tiktoken.encoding_name_for_model(model)
        except KeyError:
            return None
    return tiktoken.get_encoding(name) if is_here(name) else None


def is_here(encoding: str) -> bool:
    """Whether the file of an encoding is in tiktoken's cache, whole."""
    if encoding not in FILES:
        return False
    name, digest = FILES[encoding]
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder == "":  # which tells tiktoken to keep nothing
        return False
    path = Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache") / name
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest
