import json
import unittest
import zlib

from component import Tools, png


class DrawBars(unittest.TestCase):
    def test_bars_are_as_high_as_their_values(self):
        picture = png([100, 0, 50])
        self.assertEqual(picture[:4], b"\x89PNG")
        rows = zlib.decompressobj().decompress(picture[picture.index(b"IDAT") + 4 :])
        inked = [sum(rows[y * 25 + 1 + bar * 8] == 0x30 for y in range(100)) for bar in range(3)]
        self.assertEqual(inked, [100, 0, 50])

    def test_the_schema_is_json(self):
        for tool in Tools().list_tools():
            self.assertEqual(json.loads(tool.input_schema_json)["type"], "object")


if __name__ == "__main__":
    unittest.main()
