"""A model behind a service: asked until it answers, at the pace that the service sets, and priced."""

from __future__ import annotations

import functools
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support import repeated

import debug_gym_core.models.gate as gates
import debug_gym_core.models.service as service
from debug_gym_core.errors import ContextOverflow, LLMError, LLMUnavailable, PluginError
from debug_gym_core.models.gate import Gate
from debug_gym_core.models.llm import LLM, Completion, Message, completed
from debug_gym_core.models.service import Prices, ServiceLLM
from debug_gym_core.plugins import load_plugins
from debug_gym_core.testing.model_server import ModelServer, Reply, Request
from debug_gym_core.usage import Usage

ASKED = [Message("user", "Hello?")]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "FIRST_PAUSE", 0.01)


@pytest.fixture
def serve() -> Iterator[Callable[..., ModelServer]]:
    servers: list[ModelServer] = []

    def serve(*replies: Reply) -> ModelServer:
        def answer(request: Request) -> Reply:
            return replies[min(len(server.requests), len(replies)) - 1]

        server = ModelServer(answer)
        servers.append(server)
        return server

    yield serve
    for server in servers:
        server.close()


@functools.cache
def backend() -> type[ServiceLLM]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEBUG_GYM_PLUGINS", "core")
        found: type[ServiceLLM] = load_plugins(files=[Path(__file__).parent / "wire_plugin.py"], strict=True).llms[
            "wire"
        ]
    return found


def wire(server: ModelServer, **settings: Any) -> ServiceLLM:
    return backend()(**{"model": "m", "endpoint": server.url, **settings})


GOOD = Reply({"text": "Hello.", "prompt": 1000, "completion": 100, "cached": 400})


def test_an_answer_is_priced(serve: Callable[..., ModelServer]) -> None:
    prices = {"prompt": 2.0, "completion": 10.0, "cached": 0.5}
    completion = wire(serve(GOOD), prices=prices).complete(ASKED, [])
    assert completion.usage.cost == pytest.approx((600 * 2 + 400 * 0.5 + 100 * 10) / 1e6)
    assert wire(serve(GOOD)).complete(ASKED, []).usage.cost == 0.0
    usage = Usage(1000, 100, cached=400, written=500)
    assert Prices(prompt=1, completion=0, cached=0, written=3).cost(usage) == pytest.approx((100 + 1500) / 1e6)
    assert Prices(prompt=1, completion=0).cost(usage) == pytest.approx(1000 / 1e6)


@pytest.mark.parametrize("failure", [Reply({}, status=503), Reply({}, status=500), Reply({"text": "x"}, cut=3)])
def test_a_failure_of_the_service_is_asked_again(serve: Callable[..., ModelServer], failure: Reply) -> None:
    server = serve(failure, failure, GOOD)
    assert wire(server).complete(ASKED, []).message.content == "Hello."
    assert len(server.requests) == 3


def test_failures_have_an_end(serve: Callable[..., ModelServer]) -> None:
    server = serve(Reply({}, status=503))
    with pytest.raises(LLMError, match="status 503; it was asked 3 times"):
        wire(server, max_retries=2).complete(ASKED, [])
    assert len(server.requests) == 3


@pytest.mark.parametrize(("status", "error"), [(400, LLMError), (401, LLMError), (413, ContextOverflow)])
def test_what_is_wrong_is_asked_once(serve: Callable[..., ModelServer], status: int, error: type[Exception]) -> None:
    server = serve(Reply({"error": "no"}, status=status))
    with pytest.raises(error):
        wire(server).complete(ASKED, [])
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (LLMError("no such thing"), "mine (model-1): no such thing"),
        (LLMError("model-1: no such thing"), "model-1: no such thing"),
        (LLMError("model-12 is unknown"), "mine (model-1): model-12 is unknown"),
        (LLMUnavailable("busy"), "mine (model-1): busy; it was asked once"),
        (ContextOverflow("too long"), "mine (model-1): too long"),
        (ValueError("no JSON"), "mine (model-1): the backend careless failed: ValueError: no JSON (test_service.py:"),
    ],
)
def test_what_a_backend_raises_names_its_model(raised: Exception, said: str) -> None:
    class Careless(ServiceLLM):
        name = "careless"

        def ask(self, messages: Any, tools: Any) -> Any:
            raise raised

    llm = Careless(model="model-1", max_retries=0)
    llm.entry = "mine"
    with pytest.raises(type(raised) if isinstance(raised, ContextOverflow) else LLMError) as caught:
        llm.complete(ASKED, [])
    assert str(caught.value).startswith(said)


def test_being_told_to_wait_does_not_count(serve: Callable[..., ModelServer]) -> None:
    server = serve(*[Reply({}, status=429)] * 6, GOOD)
    assert wire(server, max_retries=0).complete(ASKED, []).message.content == "Hello."
    assert len(server.requests) == 7


def test_patience_has_an_end(serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PATIENCE", 60.0)
    server = serve(Reply({}, status=429, headers={"retry-after": "61"}))
    with pytest.raises(LLMError, match="status 429; it has had too many requests for 1 minutes"):
        wire(server).complete(ASKED, [])
    monkeypatch.setattr(service, "PATIENCE", 0.2)
    server = serve(Reply({}, status=429))
    with pytest.raises(LLMError, match="too many requests"):
        wire(server).complete(ASKED, [])
    assert len(server.requests) > 1


def test_the_service_says_how_long(serve: Callable[..., ModelServer]) -> None:
    started = time.monotonic()
    wire(serve(Reply({}, status=429, headers={"retry-after": "0.3"}), GOOD)).complete(ASKED, [])
    assert time.monotonic() - started >= 0.3


@pytest.mark.parametrize("status", [429, *repeated("faults", 503)])
def test_without_a_word_the_pauses_grow_up_to_a_most(
    serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(gates, "FIRST_PAUSE", 0.1)
    monkeypatch.setattr(gates, "LONGEST_PAUSE", 0.3)
    came: list[float] = []

    def answer(request: Request) -> Reply:
        came.append(time.monotonic())
        return Reply({}, status=status) if len(came) < 5 else GOOD

    with ModelServer(answer) as server:
        wire(server).complete(ASKED, [])
    pauses = [after - before for before, after in itertools.pairwise(came)]
    assert all(pause >= least for pause, least in zip(pauses, (0.05, 0.1, 0.15, 0.15), strict=True)), pauses
    assert all(0.05 <= service.pause(0, asked) <= 0.1 for asked in (None, 0.0) for _ in range(20))
    assert all(0.15 <= service.pause(before, None) <= 0.3 for before in (2, 10, 2000) for _ in range(20))
    assert service.pause(0, 7.0) == 7.0


def test_a_wait_is_ended(serve: Callable[..., ModelServer]) -> None:
    for status in (429, 503):
        llm = wire(serve(Reply({}, status=status, headers={"retry-after": "600"})))
        threading.Timer(0.3, llm.interrupt).start()
        started = time.monotonic()
        with pytest.raises(LLMError, match="is being stopped"):
            llm.complete(ASKED, [])
        assert time.monotonic() - started < 30


def test_an_answer_under_way_has_some_seconds_when_the_run_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, leave = threading.Event(), threading.Event()

    def answer(request: Request) -> Reply:
        asked.set()
        leave.wait(60)
        return GOOD

    with ModelServer(answer) as server:
        llm = wire(server)

        def stop() -> None:
            asked.wait(60)
            llm.interrupt()
            leave.set()

        threading.Thread(target=stop).start()
        assert llm.complete(ASKED, []).message.content == "Hello."
    asked.clear()
    leave.clear()
    monkeypatch.setattr("debug_gym_core.models.stopping.GRACE", 0.0)
    with ModelServer(answer) as server:
        llm = wire(server)
        threading.Thread(target=lambda: (asked.wait(60), llm.interrupt())).start()
        with pytest.raises(LLMError, match="is being stopped") as left:
            llm.complete(ASKED, [])
        leave.set()
    assert left.value.charged is None


def test_answers_that_say_nothing_are_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service counts them; whether another comes that is of use or not."""

    class Mute(backend()):  # type: ignore[misc]
        def ask(self, messages: Any, tools: Any) -> Any:
            found = super().ask(messages, tools)
            if not found.message.content:
                raise LLMUnavailable("the answer is empty", charged=found.usage)
            return found

    replies = [Reply({"prompt": 1000, "completion": 50}), Reply({"prompt": 1000, "completion": 50}), GOOD]
    prices = Prices(prompt=1.0, completion=10.0)
    with ModelServer(lambda request: replies[len(server.requests) - 1]) as server:
        said = Mute(model="m", endpoint=server.url, prices=prices).complete(ASKED, [])
    assert (said.usage.prompt, said.wasted.prompt, said.wasted.completion) == (1000, 2000, 100)
    assert said.wasted.cost == pytest.approx(0.003)
    replies[1] = Reply({"error": "too long"}, status=413)
    reply = lambda request: replies[len(server.requests) - 1]  # noqa: E731
    with ModelServer(reply) as server, pytest.raises(ContextOverflow) as long:
        Mute(model="m", endpoint=server.url, prices=prices).complete(ASKED, [])
    assert long.value.charged is not None and long.value.charged.cost == pytest.approx(0.0015)
    replies[1] = replies[0]
    with ModelServer(lambda request: replies[0]) as server:
        llm = Mute(model="m", endpoint=server.url, prices=prices, max_retries=1)
        with pytest.raises(LLMError, match="it was asked 2 times") as failed:
            llm.complete(ASKED, [])
    usage = failed.value.charged
    assert usage is not None and (usage.prompt, usage.completion) == (2000, 100) and usage.cost == pytest.approx(0.003)


def test_an_empty_answer_is_asked_for_once_more_and_paid_for(serve: Callable[..., ModelServer]) -> None:
    """It may be a slip; one that comes again is what the model has to say."""
    mute, failed = Reply({"text": "", "prompt": 1000, "completion": 50}), Reply({}, status=503)
    prices = Prices(prompt=1.0, completion=10.0)
    server = serve(mute, mute)
    said = wire(server, prices=prices).complete(ASKED, [])
    assert (said.message.content, said.finish, len(server.requests)) == ("", "stop", 2)
    assert said.wasted == said.usage and said.usage.cost == pytest.approx(0.0015)
    server = serve(mute, failed, GOOD)
    said = wire(server, prices=prices).complete(ASKED, [])
    assert said.message.content == "Hello." and said.wasted.prompt == 1000
    with pytest.raises(LLMError, match="it was asked once") as lost:
        wire(serve(mute, failed), max_retries=0, prices=prices).complete(ASKED, [])
    assert lost.value.charged is not None and lost.value.charged.prompt == 1000


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("hello", r"must return a Completion, not 'hello'"),
        (Completion("hello"), r"must return a Message with a text, not 'hello'"),
        (Completion(Message("assistant", None)), r"must return a Message with a text, not Message\("),
        (Completion(Message("assistant", "", ("eval",))), r"must return its calls as a tuple of ToolCall, not \('"),
        (Completion(Message("assistant", ""), None), r"must return a Usage of finite numbers .* not None"),
        *(
            (Completion(Message("assistant", ""), **{field: Usage(**{name: number})}), r"must return a Usage of finite")
            for field in ("usage", "wasted")
            for name, number in (("cost", math.nan), ("cost", math.inf), ("prompt", -1), ("cached", None))
        ),
    ],
)  # fmt: skip
def test_what_a_backend_answers_is_checked_before_it_is_written(answer: Any, said: str) -> None:
    """Nobody could read a run's results with a cost that is no number."""

    class Odd(LLM):
        name = "odd"

        def complete(self, messages: Any, tools: Any) -> Any:
            raise NotImplementedError

    with pytest.raises(PluginError, match=rf"^llm odd: complete\(\) {said}"):
        completed(Odd(), answer)


def test_what_was_charged_before_a_run_is_stopped_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is stopped: at the gate, or in a call of which nobody knows what it costs."""
    asked, leave = threading.Event(), threading.Event()

    class Mute(backend()):  # type: ignore[misc]
        def ask(self, messages: Any, tools: Any) -> Any:
            found = super().ask(messages, tools)
            if at_the_gate:
                threading.Timer(0.1, self.interrupt).start()  # before the gate opens again
            asks = {"crowded": True, "retry_after": 600.0} if at_the_gate else {}
            raise LLMUnavailable("the answer is empty", charged=found.usage, **asks)

    def answer(request: Request) -> Reply:
        if len(server.requests) > 1:
            asked.set()
            leave.wait(60)
        return Reply({"prompt": 1000, "completion": 50})

    prices = Prices(prompt=1.0, completion=10.0)
    charged = {}
    for at_the_gate in (True, False):
        leave.clear()
        monkeypatch.setattr("debug_gym_core.models.stopping.GRACE", 60.0 if at_the_gate else 0.0)
        with ModelServer(answer) as server:
            llm = Mute(model="m", endpoint=server.url, prices=prices, max_tokens=100)
            if not at_the_gate:
                threading.Thread(target=lambda llm=llm: (asked.wait(60), llm.interrupt())).start()
            with pytest.raises(LLMError, match="is being stopped") as left:
                llm.complete(ASKED, [])
            leave.set()
        charged[at_the_gate] = left.value.charged
    estimate = llm.estimate(ASKED, [])
    assert charged[True] is not None and charged[True].prompt == 1000
    assert charged[False] is not None and charged[False].prompt == 1000 + estimate.prompt
    assert charged[False].completion == 150 and charged[False].cost == pytest.approx(0.0015 + estimate.cost)


def test_a_pause_of_hours_is_not_waited_for(serve: Callable[..., ModelServer]) -> None:
    llm = wire(serve(Reply({}, status=503, headers={"retry-after": "86400"})))
    with pytest.raises(LLMError, match="it asks to wait for 86400 s"):
        llm.complete(ASKED, [])


@pytest.mark.parametrize(
    ("settings", "bound"),
    [
        ({}, None),
        ({"max_tokens": 50}, 50),
        ({"generate_kwargs": {"max_completion_tokens": 60_000}}, 60_000),
        ({"generate_kwargs": {"max_output_tokens": None, "extra_body": {"max_new_tokens": 70}}}, 70),
    ],
)
def test_the_bound_on_answers_is_found_wherever_it_is_set(settings: dict[str, Any], bound: int | None) -> None:
    llm = backend()(model="m", endpoint="http://127.0.0.1:9", **settings)
    assert (llm.longest_answer, llm.bounds_answers) == (bound or llm.answer_guess, bound is not None)


@pytest.mark.faults
def test_a_storm_of_refusals_fails_nobody_and_the_pace_adapts() -> None:
    """A service that takes four at once, and sixteen that ask."""
    busy = threading.Semaphore(4)

    def answer(request: Request) -> Reply:
        if not busy.acquire(blocking=False):
            return Reply({}, status=429)
        time.sleep(0.05)
        busy.release()
        return GOOD

    with ModelServer(answer) as server:
        gate = Gate()
        models = [wire(server, max_retries=0) for _ in range(16)]
        for llm in models:
            llm.gate = gate

        def play(llm: ServiceLLM) -> int:
            return sum(llm.complete(ASKED, []).message.content == "Hello." for _ in range(10))

        with ThreadPoolExecutor(16) as pool:
            assert sum(pool.map(play, models)) == 160
        refused = len(server.requests) - 160
        assert server.most_active >= 4
        # Without adapting, twelve of sixteen would be refused each time: more than 400.
        assert 0 < refused < 160


def test_whoever_looks_on_is_told_once_that_the_service_does_not_answer(
    serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However many calls wait; and of what passes at once nothing."""
    caplog.set_level("INFO", "debug_gym")

    def levels() -> list[str]:
        return [record.levelname for record in caplog.records if "asked again" in record.getMessage()]

    wire(serve(Reply(status=503), GOOD)).complete(ASKED, [])
    assert levels() == ["INFO"]
    monkeypatch.setattr(service, "SILENCE", 0.0)
    llm = wire(serve(Reply(status=503), Reply(status=429), Reply(status=503), GOOD))
    for _ in range(2):
        llm.complete(ASKED, [])
    assert levels() == ["INFO", "WARNING", "INFO", "INFO"]
    monkeypatch.setattr(gates, "TOLD", 0.0)
    wire(serve(Reply(status=503), Reply(status=503), GOOD)).complete(ASKED, [])
    assert levels()[4:] == ["WARNING", "WARNING"]


def test_the_gate_halves_once_for_calls_that_were_under_way_together() -> None:
    gate, go = Gate(), threading.Event()
    entered = [gate.enter(go) for _ in range(8)]
    for one in entered:
        gate.leave(one, LLMUnavailable("no", crowded=True))
    assert gate._limit == 4


def test_an_estimate_of_a_conversation_that_goes_on_rests_on_what_was_counted() -> None:
    llm = backend()(model="m", max_tokens=50, prices={"prompt": 1.0, "completion": 2.0})
    long = [Message("user", "word " * 7000)]
    first = llm.estimate(long, [])
    assert first.prompt >= 10_000 and first.completion == 50
    assert first.cost == pytest.approx((first.prompt + 100) / 1e6)
    answer = Message("assistant", "yes")
    more = [*long, answer, Message("user", "And?")]
    estimate = llm.estimate(more, [], ([*long, answer], Usage(7001, 3)))
    assert 7004 < estimate.prompt < 7030
