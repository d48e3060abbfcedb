import tempfile
import unittest
from pathlib import Path

from componentize_py_types import Err

import component


class Notes(unittest.TestCase):
    def test_what_is_written_is_read(self):
        notes = component.Notes()
        with tempfile.TemporaryDirectory() as folder:
            component.FOLDER = Path(folder)
            self.assertEqual(notes.write_note("tea", "größe"), 7)
            self.assertEqual(notes.read_note("tea"), "größe")
            for name in ["milk", "../tea", ""]:
                with self.assertRaises(Err):
                    notes.read_note(name)


if __name__ == "__main__":
    unittest.main()
