from pathlib import Path

import pytest

from sum_tree_code import leaf_count, load_company, make_company, outline, total_cost

COMPANY = load_company(Path(__file__).with_name("company.csv"))


def test_a_plain_tree():
    company = make_company([("a", 1, "b c"), ("b", 20, ""), ("c", 300, "d"), ("d", 4000, "")])
    found = total_cost(company, "a"), total_cost(company, "c"), leaf_count(company, "a")
    assert found == (4321, 4300, 2)


def test_a_unit_below_two_others_counts_twice():
    company = make_company([("a", 1, "b c"), ("b", 20, "d"), ("c", 300, "d"), ("d", 4000, "")])
    found = total_cost(company, "a"), leaf_count(company, "a")
    assert found == (8321, 2)
    text = outline(company, "a")
    assert text == "a 1\n  b 20\n    d 4000\n  c 300\n    d 4000\n"


def test_unknown_units_are_errors():
    with pytest.raises(ValueError, match=r"^a lists x, which is no unit$"):
        make_company([("a", 1, "x")])


def test_branches_of_the_company():
    costs = [total_cost(COMPANY, name) for name in ("legal", "finance", "mill", "foundry")]
    assert costs == [89, 140, 194, 238]


def test_cost_of_the_company():
    cost = total_cost(COMPANY, "head")
    assert cost == 1363


def test_leaves_of_the_company():
    leaves = leaf_count(COMPANY, "head"), leaf_count(COMPANY, "works")
    assert leaves == (21, 11)


def test_outline_of_the_yard():
    text = outline(COMPANY, "yard")
    assert text.splitlines() == [
        "yard 29",
        "  cranes 33",
        "    power 47",
        "      boilers 21",
        "      grid 16",
        "  stores 11",
        "    trucks 26",
        "      repair 18",
        "        tools 9",
        "        spares 13",
        "          stock 6",
        "            tools 9",
    ]
