import json
import unittest

from componentize_py_types import Err

from component import Tools


def count_words(**arguments):
    return json.loads(Tools().call_tool("count_words", json.dumps(arguments)).structured_json)


class CountWords(unittest.TestCase):
    def test_words_are_counted(self):
        self.assertEqual(count_words(text="one two\nthree"), {"lines": 2, "words": 3, "longest": "three"})
        self.assertEqual(count_words(text=""), {"lines": 0, "words": 0})

    def test_short_words_are_left_out(self):
        self.assertEqual(count_words(text="a bb cc", min_length=2)["words"], 2)
        with self.assertRaises(Err):
            count_words(text="a", min_length=0)

    def test_the_schemas_are_json(self):
        for tool in Tools().list_tools():
            self.assertEqual(json.loads(tool.input_schema_json)["type"], "object")


if __name__ == "__main__":
    unittest.main()
