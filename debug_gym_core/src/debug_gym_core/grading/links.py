"""Where paths of a repository lead, by its symbolic links."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from debug_gym_core.workspace.snapshot import Member

MOST = 40
"""Links that a path may pass, as on Linux."""


def way(members: Mapping[str, Member], path: str) -> list[str]:
    """What decides what a path is: the links that it passes and, last, the path without any, whether that is or not.

    Of one that leads out of the repository, or round and round, only the links.

    Args:
        members: the repository
        path: relative to its root, which is empty
    """
    links: list[str] = []
    place, left = "", path.split("/")[::-1]
    if path.startswith("/"):
        return links
    while left:
        part = left.pop()
        if part == ".." and not place:
            return links
        if part in ("", ".", ".."):
            place = posixpath.dirname(place) if part == ".." else place
            continue
        place = posixpath.join(place, part)
        target = members[place].target if place in members else None
        if target is None:
            continue
        links.append(place)
        if target.startswith("/") or len(links) > MOST:
            return links
        place, left = posixpath.dirname(place), left + target.split("/")[::-1]
    return [*links, place]


def leads_to(members: Mapping[str, Member], path: str) -> str:
    """Where a path leads: the last one on the way, or itself where that is out of the repository.

    Args:
        members: as for `way`
        path: as for `way`
    """
    return [path, *way(members, path)][-1]


def above(path: str) -> Iterator[str]:
    """The directories that a path is in, the root (empty) last."""
    while path.strip("/"):
        path = posixpath.dirname(path)
        yield path
