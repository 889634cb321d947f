"""Tests of the basket."""

from basket import total


def test_one_price():
    """One price is the sum."""
    assert total([2.5]) == 2.5


def test_several_prices():
    """Several are added up, each with the discount."""
    assert total([2.0, 3.0], discount=0.5) == 2.5
