"""What the tools write, run natively with the generated bindings. The other tools are stand-ins."""

import json
import unittest
from unittest import mock

from componentize_py_types import Err, Ok
from wit_world.imports.calling import Called, NotCalled_Failed, NotCalled_Refused, Reason, Refusal
from wit_world.imports.types import Content_Text, TextContent

import report
from calling import CallFailed, call, call_all
from tool import Tools


def called(value=None, said=""):
    content = [Content_Text(TextContent(text=said, annotations=None, meta_json=None))] if said else []
    return Called(content=content, structured_json=None if value is None else json.dumps(value))


def normals(city, high):
    return called({"city": city, "months": [{"name": "July", "high": high, "precipitation": 4.0}]})


class Reports(unittest.TestCase):
    def test_a_report_compares_with_home(self):
        july = {"name": "July", "high": 28, "precipitation": 4.0}
        text = report.written("Oslo", "Lisbon", july, 6, 82.4, ["Athens", "Tunis"])
        self.assertEqual(
            text,
            "July in Lisbon: days of 28 °C (82 °F), 6 degrees warmer than in Oslo, and 4 mm of rain. About as warm and no "
            "wetter: Athens, Tunis.",
        )
        self.assertTrue(report.written("Rome", "Lisbon", july, 0, 82.4, []).endswith("(82 °F), as warm as in Rome, and 4 mm of rain."))
        self.assertIn("7 degrees colder than in Cairo", report.written("Cairo", "Lisbon", july, -7, 82.4, []))

    def test_three_tools_are_called_and_a_report_does_without_the_last(self):
        def one(tool, arguments_json):
            if tool == "weather_find":
                raise Err(NotCalled_Refused(Refusal(Reason.DENIED, "not in calls")))
            self.assertEqual(json.loads(arguments_json), {"value": 28, "from": "celsius", "to": "fahrenheit"})
            return called({"value": 82.4})

        both = [Ok(normals("Oslo", 23)), Ok(normals("Lisbon", 28))]
        with mock.patch("calling.calling.call_all", return_value=both), mock.patch("calling.calling.call", side_effect=one):
            answer = Tools().call_tool("report_trip", '{"from":"Oslo","to":"Lisboa","month":7}')
        self.assertEqual(json.loads(answer.structured_json)["warmer"], 5)
        self.assertEqual(json.loads(answer.structured_json)["alike"], [])

    def test_a_city_that_is_not_known_is_left_out_with_its_reason(self):
        ends = [Ok(normals("Oslo", 22)), Err(NotCalled_Failed(called(said="no climate"))), Ok(normals("Rome", 31))]
        with mock.patch("calling.calling.call_all", return_value=ends):
            answer = report.cities(["Oslo", "Nowhere", "Rome"], 7)
        self.assertEqual([city["city"] for city in answer["warmest_first"]], ["Rome", "Oslo"])
        self.assertEqual(answer["not_found"], ["weather_normals: no climate"])


class Calls(unittest.TestCase):
    def test_a_call_without_a_result_says_whose_and_why(self):
        refusal = Err(NotCalled_Refused(Refusal(Reason.BUSY, "busy: try again")))
        with mock.patch("calling.calling.call", side_effect=refusal), self.assertRaisesRegex(CallFailed, "^count: busy: try again$"):
            call("count", text="one")
        with mock.patch("calling.calling.call", return_value=called(said="two")), self.assertRaisesRegex(CallFailed, "gave no JSON"):
            call("count", text="one")
        with mock.patch("calling.calling.call_all", return_value=[Ok(called([1])), refusal]):
            first, second = call_all("count", [{}, {}])
        self.assertEqual(first, [1])
        self.assertEqual(str(second), "count: busy: try again")
