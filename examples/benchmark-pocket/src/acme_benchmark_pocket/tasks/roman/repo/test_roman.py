from roman import to_number


def test_one_letter():
    assert to_number("X") == 10


def test_addition():
    assert to_number("XVI") == 16


def test_subtraction():
    assert to_number("MCMXCIV") == 1994
