import unittest
from datetime import date

from tomorrow_date_code import busiest_month, read_date, reminder_days, tomorrow

DUE = [
    ("2023-01-30", "Tue"),
    ("31.01.2023", "Wed"),
    ("28 Feb 2023", "Wed"),
    ("2023-03-31", "Sat"),
    ("30.4.2023", "Mon"),
    ("1st of May, 2023", "Tue"),
    ("2023-05-31", "Thu"),
    ("30 June 2023", "Sat"),
    ("31.07.2023", "Tue"),
    ("2023-8-31", "Fri"),
    ("30th September 2023", "Sun"),
    ("9.10.2023", "Tue"),
    ("2023-11-30", "Fri"),
    ("31 December 2023", "Mon"),
    ("2024-01-01", "Tue"),
    ("27.2.2024", "Wed"),
    ("28 FEB 2024", "Thu"),
    ("29.2.2024", "Fri"),
    ("2024-03-01", "Sat"),
    ("30. 4. 2024", "Wed"),
    ("31st of October 2024", "Fri"),
    ("2024-12-31", "Wed"),
    ("28.2.1900", "Thu"),
    ("1 March 1900", "Fri"),
    ("28.02.2000", "Tue"),
    ("29th of February 2000", "Wed"),
    ("2000-03-30", "Fri"),
    ("31.12.1999", "Sat"),
    ("28 feb 2100", "Mon"),
    ("2100-12-30", "Fri"),
    ("2nd of January, 2025", "Fri"),
    ("3rd sept 2025", "Thu"),
    ("2025-06-29", "Mon"),
    ("  30   Nov   2025 ", "Mon"),
    ("29.01.2026", "Fri"),
]


class TomorrowTest(unittest.TestCase):
    def test_ways_to_write_a_date(self):
        dates = [read_date(text) for text in ("2024-05-01", "1.5.2024", "1 May 2024", " 1ST of  May, 2024")]
        self.assertEqual(dates, [date(2024, 5, 1)] * 4)

    def test_what_is_no_date(self):
        days = [tomorrow(text) for text in ("", "soon", "2024-13-01", "31.4.2024", "29 Feb 2023", "1 Foo 2024")]
        self.assertEqual(days, [None] * 6)

    def test_the_ends_of_the_calendar(self):
        days = tomorrow("0001-01-01"), tomorrow("9999-12-30"), tomorrow("9999-12-31")
        self.assertEqual(days, (date(1, 1, 2), date(9999, 12, 31), None))

    def test_every_readable_date_gets_a_reminder(self):
        days = reminder_days(text for text, _ in DUE)
        by_hand = days.count("?")
        self.assertEqual(by_hand, 0)

    def test_reminder_days(self):
        days = reminder_days(text for text, _ in DUE)
        self.assertEqual(" ".join(days), " ".join(day for _, day in DUE))

    def test_busiest_month(self):
        month = busiest_month(text for text, _ in DUE if "2024" in text or "2000" in text)
        self.assertEqual(month, "2000-03")
