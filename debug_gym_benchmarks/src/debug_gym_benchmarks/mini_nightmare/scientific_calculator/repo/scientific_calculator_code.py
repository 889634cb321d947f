"""A calculator for the laboratory: roots, powers, logarithms, angles and statistics.

Entries look like those in the lab's notebooks, the operation before a colon and the arguments between commas:

    sqrt: 16
    pow: 2, 10
    sin: pi
"""

from __future__ import annotations

import math
from typing import ClassVar

from calculator import CalculationError, Calculator, Operation


def root(x: float) -> float:
    """Return the square root of a number that has one."""
    if x < 0:
        raise CalculationError(f"{x:g} has no square root")
    return math.sqrt(x)


def logarithm(x: float, base: float) -> float:
    """Return the logarithm of a positive number to a base other than 1."""
    if x <= 0 or base <= 0 or base == 1:
        raise CalculationError(f"{x:g} has no logarithm to base {base:g}")
    return math.log2(x) if base == 2 else math.log10(x) if base == 10 else math.log(x, base)


def angle(function):
    """Return a function of an angle in radians that gives a clean 0 where it is one."""

    def calculate(x: float) -> float:
        value = function(x)
        return 0.0 if abs(value) < 1e-12 else value

    return calculate


class ScientificCalculator(Calculator):
    """Calculates entries like `pow: 2, 10`, with all basic operations besides its own."""

    name_separator = ":"
    argument_separator = ","
    constants: ClassVar[dict[str, float]] = {"pi": math.pi, "e": math.e}
    operations: ClassVar[dict[str, Operation]] = {
        **Calculator.operations,
        "sqrt": Operation(("x",), root),
        "pow": Operation(("x", "y"), math.pow),
        "log": Operation(("x", "base"), logarithm),
        "sin": Operation(("x",), angle(math.sin)),
        "cos": Operation(("x",), angle(math.cos)),
        "hyp": Operation(("x", "y"), math.hypot),
    }

    def number(self, text: str) -> float:
        """Return the number that an argument stands for; constants have names."""
        text = text.strip()
        if text in self.constants:
            return self.constants[text]
        return super().number(text)

    def help(self, name: str) -> str:
        """Return how an operation is entered."""
        parameters = f"{self.argument_separator} ".join(self.operations[name].parameters)
        return f"{name}{self.name_separator} {parameters}"

    def run_notebook(self, text: str) -> list[str]:
        """Calculate all entries of a notebook page; empty lines and what follows a # are left out."""
        entries = [line.partition("#")[0].strip() for line in text.splitlines()]
        return [self.run(entry) for entry in entries if entry]
