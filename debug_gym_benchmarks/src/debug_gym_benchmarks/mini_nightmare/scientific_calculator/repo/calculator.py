"""The calculator that all calculators of the family build on: reads entries, runs operations, keeps a history."""

from __future__ import annotations

from typing import Callable, ClassVar, NamedTuple


class CalculationError(Exception):
    """An entry that cannot be calculated; the message is shown to the person."""


class Operation(NamedTuple):
    """Something a calculator can do.

    Attributes:
        parameters: The names of its arguments, for the help.
        function: Takes that many numbers and returns one.
    """

    parameters: tuple[str, ...]
    function: Callable[..., float]


class Calculator:
    """Calculates entries like `add 2 3`: the name of an operation, then its arguments.

    Subclasses bring their own operations, and may choose other marks between the parts of an entry.

    Attributes:
        separator: What stands between name and arguments; None for blanks.
        argument_separator: What stands between two arguments; None for blanks.
        operations: By name.
    """

    separator: ClassVar[str | None] = None
    argument_separator: ClassVar[str | None] = None
    operations: ClassVar[dict[str, Operation]] = {
        "add": Operation(("x", "y"), lambda x, y: x + y),
        "sub": Operation(("x", "y"), lambda x, y: x - y),
        "mul": Operation(("x", "y"), lambda x, y: x * y),
        "div": Operation(("x", "y"), lambda x, y: x / y),
    }

    def __init__(self) -> None:
        self.history: list[str] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}(history={self.history})"

    def run(self, entry: str) -> str:
        """Calculate an entry and return what the display shows: a number, or `error: ` and the reason."""
        try:
            shown = format(self.evaluate(entry), ".10g")
        except (CalculationError, ArithmeticError, ValueError) as problem:
            shown = f"error: {problem}"
        self.history.append(shown)
        return shown

    def evaluate(self, entry: str) -> float:
        """Return the number that an entry comes to.

        Raises:
            CalculationError: The operation is unknown, or has another number of arguments.
            ArithmeticError: The arguments are outside what the operation can do.
            ValueError: An argument is no number.
        """
        name, rest = entry.split(self.separator, 1)
        operation = self.operations.get(name.strip())
        if operation is None:
            raise CalculationError(f"there is no {name.strip()}")
        arguments = [self.number(part) for part in rest.split(self.argument_separator)]
        if len(arguments) != len(operation.parameters):
            raise CalculationError(f"{name.strip()} takes {len(operation.parameters)}, not {len(arguments)}")
        return float(operation.function(*arguments))

    def number(self, text: str) -> float:
        """Return the number that an argument stands for; `ans` is the last result."""
        if text.strip() == "ans" and self.history:
            text = self.history[-1]
        return float(text)
