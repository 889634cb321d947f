"""The shopping cart of a small web shop.

The cart page shows the total after every click, so the cart keeps it up to date instead of adding up all lines each
time.
"""

from __future__ import annotations

from dataclasses import dataclass


class CartError(Exception):
    """Something that cannot be done with a cart; the message is shown to the customer."""


@dataclass
class Line:
    """One line of the cart: so many pieces of an article.

    Attributes:
        price: Of one piece, in currency units with two decimals.
        quantity: Pieces, at least 1.
    """

    price: float
    quantity: int

    @property
    def amount(self) -> float:
        """What the pieces cost together, without any discount."""
        return self.price * self.quantity


class ShoppingCart:
    """Lines by article, and at most one discount code."""

    def __init__(self, codes: dict[str, int]) -> None:
        """Start an empty cart.

        Args:
            codes: The discount in percent that each valid code gives.
        """
        self._codes = dict(codes)
        self._lines: dict[str, Line] = {}
        self._code: str | None = None
        self._total = 0.0

    def __repr__(self) -> str:
        return f"ShoppingCart(lines={len(self._lines)}, code={self._code})"

    def add(self, article: str, price: float, quantity: int = 1) -> None:
        """Put pieces of an article into the cart.

        Raises:
            CartError: The quantity is not positive, or the article is there at another price.
        """
        if quantity < 1:
            raise CartError(f"cannot add {quantity} of {article}")
        line = self._lines.setdefault(article, Line(price, 0))
        if line.price != price:
            raise CartError(f"{article} is in the cart at {line.price:.2f}")
        line.quantity += quantity
        self._total += price * quantity

    def remove(self, article: str) -> None:
        """Take an article out of the cart with all its pieces.

        Raises:
            CartError: The article is not in the cart.
        """
        if article not in self._lines:
            raise CartError(f"there is no {article} in the cart")
        line = self._lines.pop(article)
        self._total -= line.amount

    def redeem(self, code: str) -> None:
        """Use a discount code.

        Raises:
            CartError: The code is not valid, or one was used before.
        """
        if self._code is not None:
            raise CartError(f"{self._code} is in use already")
        if code not in self._codes:
            raise CartError(f"{code} is not valid")
        self._code = code
        self._total -= self._total * self._codes[code] / 100

    def total(self) -> float:
        """Return what is to be paid, rounded to two decimals."""
        return round(self._total, 2)

    def receipt(self) -> str:
        """Return the cart as text: a row for each line, the discount if there is one, the total."""
        rows = [
            f"{line.quantity} x {article} at {line.price:.2f}: {line.amount:.2f}"
            for article, line in self._lines.items()
        ]
        if self._code is not None:
            rows.append(f"{self._code}: {self._codes[self._code]} percent off")
        rows.append(f"total: {self.total():.2f}")
        return "\n".join(rows)
