from purr_code import Cat, follow_plan, is_kept_well


def test_a_cat_that_is_never_hungry_purrs():
    cat = Cat("Mia")
    state = follow_plan(cat, [(3, 9), (2, 6), (3, 20)])
    kept_well = is_kept_well(cat)
    assert state == "Mia: hunger 0, energy 8, trust 5, purred 8 of 8 hours"
    assert kept_well


def test_a_late_meal_is_begged_for_and_earns_trust():
    cat = Cat("Tom")
    follow_plan(cat, [(5, 12)])
    assert cat.diary == ["rests", "rests", "rests", "begs", "begs"]
    state = cat.summary()
    assert state == "Tom: hunger 3, energy 6, trust 6, purred 3 of 5 hours"


def test_a_tired_cat_naps():
    cat = Cat("Ida", energy=3)
    state = follow_plan(cat, [(3, 9), (1, 0)])
    assert state == "Ida: hunger 3, energy 7, trust 5, purred 2 of 4 hours"


def test_a_cat_without_trust_does_not_purr():
    cat = Cat("Rex", trust=0)
    state = follow_plan(cat, [(3, 6)])
    assert state == "Rex: hunger 3, energy 8, trust 0, purred 0 of 3 hours"


def test_a_working_day_alone():
    cat = Cat("Mia")
    state = follow_plan(cat, [(2, 6), (9, 20), (4, 12)])
    assert state == "Mia: hunger 0, energy 5, trust 5, purred 6 of 15 hours"


def test_a_weekend_alone():
    cat = Cat("Tom")
    state = follow_plan(cat, [(7, 5), (7, 5), (7, 5)])
    assert state == "Tom: hunger 6, energy 0, trust 0, purred 3 of 21 hours"


def test_whether_a_plan_keeps_a_cat_well():
    plans = [[(5, 15)] * 4, [(7, 40)] * 2, [(8, 30), (2, 6)], [(12, 36)]]
    verdicts = []
    for plan in plans:
        cat = Cat("Ida")
        follow_plan(cat, plan)
        verdicts.append(is_kept_well(cat))
    assert verdicts == [True, False, False, False]
