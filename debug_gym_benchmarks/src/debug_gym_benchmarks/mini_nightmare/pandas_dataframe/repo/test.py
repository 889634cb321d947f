import unittest
from pathlib import Path

from pandas_dataframe_code import (
    adults,
    dearest_ticket,
    load_passengers,
    mean_adult_price,
    passengers_by_port,
    summary,
    takings_by_class,
)

LIST = Path(__file__).with_name("passengers.csv")


class PassengersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.passengers = load_passengers(LIST)

    def test_passengers_by_port(self):
        counts = passengers_by_port(self.passengers)
        self.assertEqual(counts, {"Harbour": 13, "Lagoon": 10, "Quay": 25})

    def test_adults(self):
        number = len(adults(self.passengers))
        self.assertEqual(number, 43)

    def test_takings_by_class(self):
        takings = takings_by_class(self.passengers)
        self.assertEqual(takings, {"first": 720.30, "second": 610.49, "third": 327.10})

    def test_dearest_ticket(self):
        price = dearest_ticket(self.passengers)
        self.assertEqual(price, 147.00)

    def test_mean_adult_price(self):
        means = {port: mean_adult_price(self.passengers, port) for port in ("Harbour", "Quay", "Lagoon", "Nowhere")}
        self.assertEqual(means, {"Harbour": 45.24, "Quay": 33.44, "Lagoon": 16.15, "Nowhere": 0.0})

    def test_summary(self):
        line = summary(LIST)
        self.assertEqual(line, "48 passengers, takings 1657.89, dearest ticket 147.00")
