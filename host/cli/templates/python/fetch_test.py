import unittest

from componentize_py_types import Err

from component import todo
from web import Answer


class GetTodo(unittest.TestCase):
    def test_a_thing_to_do_is_read(self):
        found = todo(Answer(200, b'{"id":1,"title":"tea","completed":true}'))
        self.assertEqual((found.title, found.completed), ("tea", True))

    def test_an_error_says_why(self):
        for status, body, reason in [
            (404, b'{"message":"Not Found"}', "the API answers 404: Not Found"),
            (500, b"<h1>oops</h1>", "the API answers 500: <h1>oops</h1>"),
            (200, b"[]", "the API answers in another form"),
        ]:
            with self.assertRaises(Err) as raised:
                todo(Answer(status, body))
            self.assertEqual(raised.exception.value, reason)


if __name__ == "__main__":
    unittest.main()
