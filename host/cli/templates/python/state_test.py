import unittest

from wit_world.imports.store import Error_AccessDenied, Error_Other

from component import reason


class Count(unittest.TestCase):
    def test_an_error_says_why(self):
        self.assertEqual(reason(Error_Other("the disk is full")), "the disk is full")
        self.assertEqual(reason(Error_AccessDenied()), "toolcell.toml grants no state")


if __name__ == "__main__":
    unittest.main()
