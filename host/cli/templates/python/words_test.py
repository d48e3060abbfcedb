import unittest

from componentize_py_types import Err
from wit_world.exports.text import Counts

from component import Text


class CountWords(unittest.TestCase):
    def test_words_are_counted(self):
        self.assertEqual(Text().count_words("one two\nthree", None), Counts(2, 3, "three"))
        self.assertEqual(Text().count_words("", None), Counts(0, 0, None))

    def test_short_words_are_left_out(self):
        self.assertEqual(Text().count_words("a bb cc", 2).words, 2)
        with self.assertRaises(Err):
            Text().count_words("a", 0)


if __name__ == "__main__":
    unittest.main()
