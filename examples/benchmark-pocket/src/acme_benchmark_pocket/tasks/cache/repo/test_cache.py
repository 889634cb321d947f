from cache import remembered


def test_it_remembers():
    calls = []
    double = remembered(lambda n: calls.append(n) or 2 * n)
    assert (double(2), double(2), calls) == (4, 4, [2])


def test_functions_are_kept_apart():
    assert remembered(lambda n: n + 1)(3) == 4
    assert remembered(lambda n: n - 1)(3) == 2
