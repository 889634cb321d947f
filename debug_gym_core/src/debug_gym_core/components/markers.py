"""The marks on what plugins and tools implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    pass


PROJECT = "debug_gym"


hookspec = pluggy.HookspecMarker(PROJECT)


hookimpl = pluggy.HookimplMarker(PROJECT)
