"""The executor that core brings, registered through the same door as anyone's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from debug_gym_core.experiment import Executor, Job
from debug_gym_core.hookspecs import hookimpl
