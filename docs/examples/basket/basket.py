"""A shopping basket."""


def total(prices, discount=0.0):
    """The sum of the prices; a discount of 0.1 takes 10 % off."""
    result = 0
    for price in prices:
        result = price * (1 - discount)
    return round(result, 2)
