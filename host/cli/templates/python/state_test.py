import unittest

from componentize_py_types import Err
from wit_world.imports.store import Error_AccessDenied, Error_Other

from component import checked, reason


class Count(unittest.TestCase):
    def test_names_are_letters_and_digits(self):
        checked("tea-2")
        for name in ["", "a/b", "a b"]:
            with self.assertRaises(Err):
                checked(name)

    def test_an_error_says_why(self):
        self.assertEqual(reason(Error_Other("the disk is full")), "the disk is full")
        self.assertEqual(reason(Error_AccessDenied()), "toolcell.toml grants no state")


if __name__ == "__main__":
    unittest.main()
