"""Directories of published images where a fix may lie outside of the repository: the agent's sandbox has them empty."""

from __future__ import annotations

from collections.abc import Iterable

CACHES = ("/root/.cache", "/var/tmp")
"""What pip, uv and builds leave behind: downloaded releases and unpacked sources."""

CONDA = "/opt/miniconda3"
CONDA_CACHES = (*CACHES, f"{CONDA}/pkgs")

BASE = f"{CONDA}/lib/python3.11/site-packages"
"""What conda itself runs with; no task's code does."""

VENDORS = ("pip/_vendor", "setuptools/_vendor")
"""Where pip and setuptools keep copies of what they need, below an environment's site-packages."""


def copies(module: str, environments: Iterable[str] = ()) -> tuple[str, ...]:
    """Directories in conda, pip and setuptools that hold copies of a project, later releases most often.

    Args:
        module: the package's directory
        environments: site-packages of further environments, in which only what pip and setuptools bring is no part of
            the task
    """
    brought = [f"{place}/{vendor}/{module}" for place in (BASE, *environments) for vendor in VENDORS]
    return (f"{BASE}/{module}", *brought)
