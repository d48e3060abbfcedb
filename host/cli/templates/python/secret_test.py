import unittest

from componentize_py_types import Err

from component import user
from web import Answer


class WhoAmI(unittest.TestCase):
    def test_an_account_is_read(self):
        found = user(Answer(200, b'{"login":"ada","name":null,"id":1}'))
        self.assertEqual((found.login, found.name), ("ada", None))

    def test_a_refused_token_is_told_of(self):
        with self.assertRaises(Err) as raised:
            user(Answer(401, b"{}"))
        self.assertIn("refuses the token", raised.exception.value)


if __name__ == "__main__":
    unittest.main()
