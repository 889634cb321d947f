"""Roman numerals."""

VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def to_number(numeral):
    total = 0
    for place, letter in enumerate(numeral):
        value = VALUES[letter]
        if place > 0 and VALUES[numeral[place - 1]] > value:
            total -= value
        else:
            total += value
    return total
