from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from debug_gym_core.postponed import postponed_interrupts, wait_for
from debug_gym_core.sandbox.replies import Waiter


class Ended(KeyboardInterrupt):
    """As what SIGTERM makes of a run."""


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    def terminate(number: int, frame: object) -> None:
        raise Ended

    before = signal.signal(signal.SIGTERM, terminate), signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGTERM, before[0])
    signal.signal(signal.SIGINT, before[1])


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Ended)])
def test_an_interrupt_waits_for_the_end_of_the_block(number: int, error: type[BaseException]) -> None:
    done = []
    handler = signal.getsignal(number)
    with pytest.raises(error) as caught, postponed_interrupts():
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        done.append("all")
    assert caught.type is error and done == ["all"] and signal.getsignal(number) is handler


def test_an_error_in_the_block_is_kept_beside_the_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt) as caught, postponed_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        raise ValueError("inside")
    assert isinstance(caught.value.__context__, ValueError)


def test_without_an_interrupt_nothing_happens() -> None:
    with postponed_interrupts():
        pass
    with pytest.raises(ValueError, match="inside"), postponed_interrupts():
        raise ValueError("inside")


def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with postponed_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_another_thread_goes_on_as_ever() -> None:
    done = []

    def work() -> None:
        with postponed_interrupts():
            done.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [signal.default_int_handler]


@pytest.mark.parametrize(
    "wait", [lambda: wait_for(threading.Event()), lambda: Waiter().next(None)], ids=["event", "reply"]
)
def test_an_interrupt_that_does_not_wake_who_waits_is_noticed(wait: Callable[[], object]) -> None:
    """As one that comes just as the thread falls asleep: here another thread takes the signal, which wakes nobody."""

    def interrupt() -> None:
        time.sleep(0.2)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        wait()
    thread.join()
    assert time.monotonic() - began < 30
