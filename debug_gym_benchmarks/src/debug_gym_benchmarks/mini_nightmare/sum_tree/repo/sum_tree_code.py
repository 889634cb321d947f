"""Adds up costs along the tree of a company's units and prints the tree.

The units come from a CSV file, one a row: id, own cost, and the ids of the units right below it with blanks between
them. A unit that works for two others is listed below both.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Dict, Iterator, NamedTuple

MAX_DEPTH = 24


class Unit(NamedTuple):
    """One unit of the company.

    Attributes:
        id: Unique in its file.
        cost: Its own, in thousands, without the units below.
        below: The ids of the units right below it.
    """

    id: str
    cost: int
    below: tuple[str, ...]


Company = Dict[str, Unit]


class Place(NamedTuple):
    """A unit where the tree has it; a unit that is listed twice has two places."""

    depth: int
    unit: Unit


def load_company(path: str | Path) -> Company:
    """Read the units of a company, by id."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        return make_company((row["unit"], int(row["cost"]), row["below"]) for row in csv.DictReader(file))


def make_company(rows) -> Company:
    """Return a company from rows of id, cost and ids below (one text), and check that all of these exist."""
    company = {name: Unit(name, cost, tuple(below.split())) for name, cost, below in rows}
    for unit in company.values():
        for name in unit.below:
            if name not in company:
                raise ValueError(f"{unit.id} lists {name}, which is no unit")
    return company


def walk(company: Company, name: str, depth: int = 0) -> Iterator[Place]:
    """Yield the places of the tree below a unit from top to bottom, beginning with the unit's own.

    Raises:
        RecursionError: The tree has more levels than any company.
    """
    if depth > MAX_DEPTH:
        raise RecursionError(f"more than {MAX_DEPTH} levels")
    unit = company[name]
    yield Place(depth, unit)
    for lower in unit.below:
        yield from walk(company, lower, depth + 1)


def total_cost(company: Company, name: str) -> int:
    """Return the cost of a unit and all that is below it, once for each place."""
    return sum(place.unit.cost for place in walk(company, name))


def leaf_count(company: Company, name: str) -> int:
    """Return the number of places in a unit's tree with nothing below them."""
    places = list(walk(company, name))
    depths = [place.depth for place in places] + [0]
    return sum(1 for here, following in zip(depths, depths[1:]) if following <= here)


def outline(company: Company, name: str) -> str:
    """Return a unit's tree as text, a line for each place, indented by its depth."""
    return "".join(f"{'  ' * place.depth}{place.unit.id} {place.unit.cost}\n" for place in walk(company, name))
