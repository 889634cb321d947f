"""The components that core brings, registered through the same door as anyone's; its executor is here."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

from debug_gym_core.components.markers import hookimpl
from debug_gym_core.runs.exporters import Messages, ShareGPT
from debug_gym_core.runs.jobs import Executor, Exporter, Job
from debug_gym_core.runs.trajectory import Result


class LocalExecutor(Executor):
    """Plays in threads of this process: an episode waits for its sandbox and its model most of the time."""

    name = "local"

    def execute(
        self,
        jobs: Sequence[Job],
        play: Callable[[Job], Result | None],
        finished: Callable[[Job, Result | None], None],
        *,
        workers: int,
        stop: threading.Event,
    ) -> None:
        """Play every job; see `Executor.execute`."""
        waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            waiting.put(job)
        failures: list[Exception] = []

        def work() -> None:
            while not stop.is_set():
                try:
                    job = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    finished(job, play(job))
                except Exception as error:
                    failures.append(error)
                    stop.set()

        # Daemons, so that a second Ctrl-C need not wait for them.
        threads = [
            threading.Thread(target=work, name=f"worker-{number}", daemon=True)
            for number in range(min(workers, len(jobs)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]


@hookimpl
def debug_gym_register_executors() -> Sequence[type[Executor]]:
    """The executors of core."""
    return [LocalExecutor]


@hookimpl
def debug_gym_register_exporters() -> Sequence[type[Exporter]]:
    """The exporters of core."""
    return [Messages, ShareGPT]
