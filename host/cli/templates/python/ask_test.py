import unittest

from wit_world.imports.asking import Answer_Accepted, Answer_Declined

from component import booked


class BookTable(unittest.TestCase):
    def test_the_day_is_the_person_s(self):
        self.assertEqual(booked(2, Answer_Accepted('{"day":"2026-01-31"}')), "A table for 2 is booked on 2026-01-31.")
        self.assertEqual(booked(2, Answer_Declined()), "Nothing is booked: the person chose no day.")


if __name__ == "__main__":
    unittest.main()
