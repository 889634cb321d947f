"""What a backend promises that is built on `ChatLLM`: the SDK against a server on loopback, well and failing."""

from __future__ import annotations

from debug_gym_core.testing.chat_answers import AnswerTests
from debug_gym_core.testing.chat_connections import ConnectionTests
from debug_gym_core.testing.chat_refusals import RefusalTests


# pytest begins with the last of the bases.
class ChatContract(ConnectionTests, RefusalTests, AnswerTests):
    """The tests of `LLMContract`, and all that a service may answer, in both formats, streamed and not.

    Attributes:
        llm: the backend's class
        endpoint: where its service lies below the server's address
        ways: to speak, that are tried
    """
