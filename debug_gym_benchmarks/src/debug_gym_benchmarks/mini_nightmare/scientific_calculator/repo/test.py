import unittest

from calculator import Calculator
from scientific_calculator_code import ScientificCalculator

PAGE = """
# lengths
sqrt:16
pow: 2, 10      # a kilo
hyp:3,4

log: ans, 5
"""


class CalculatorTest(unittest.TestCase):
    def test_basic_calculator(self):
        calculator = Calculator()
        shown = [calculator.run(entry) for entry in ("add 2 3", "mul ans 4", "div 1 4", "neg 2", "sub 1 2 3")]
        self.assertEqual(shown, ["5", "20", "0.25", "error: there is no neg", "error: sub takes 2, not 3"])


class ScientificCalculatorTest(unittest.TestCase):
    def test_help_shows_how_to_enter(self):
        calculator = ScientificCalculator()
        shown = [calculator.help("sqrt"), calculator.help("log")]
        self.assertEqual(shown, ["sqrt: x", "log: x, base"])

    def test_page_of_a_notebook(self):
        shown = ScientificCalculator().run_notebook(PAGE)
        self.assertEqual(shown, ["4", "1024", "5", "1"])

    def test_constants(self):
        shown = ScientificCalculator().run_notebook("cos: pi\nsin:pi\nlog: e, e\n")
        self.assertEqual(shown, ["-1", "0", "1"])

    def test_basic_operations_too(self):
        calculator = ScientificCalculator()
        shown = [calculator.run("add: 2, 3"), calculator.run("mul:ans,4")]
        self.assertEqual(shown, ["5", "20"])

    def test_reasons_for_errors(self):
        shown = ScientificCalculator().run_notebook("sqrt: -4\nlog: 8, 1\ntan: 1\npow: 2\n")
        self.assertEqual(
            shown,
            [
                "error: -4 has no square root",
                "error: 8 has no logarithm to base 1",
                "error: there is no tan",
                "error: pow takes 2, not 1",
            ],
        )
