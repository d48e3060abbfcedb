"""What the tools answer, run natively with the generated bindings: no component is needed for it."""

import unittest

from componentize_py_types import Err
from wit_world.exports import tables
from wit_world.exports.tables import Measure

from tool import Tables

CITIES = "city,country,people,area\nOslo,Norway,709000,454\nBergen,Norway,291000,465\nTurku,Finland,\"202,000\",\n"


class Summaries(unittest.TestCase):
    def test_columns_are_told_apart_by_what_is_in_them(self):
        summary = Tables().summarize(CITIES + "Nowhere,,,\n")
        self.assertEqual(summary.rows, 4)
        kinds = [(column.name, type(column.content), column.empty_cells) for column in summary.columns]
        texts, numbers = tables.Content_Texts, tables.Content_Numbers
        self.assertEqual(kinds, [("city", texts, 0), ("country", texts, 1), ("people", numbers, 1), ("area", numbers, 2)])
        self.assertEqual(summary.columns[1].content.value.frequent[0], tables.Occurrence("Norway", 2))

    def test_numbers_are_summed_up(self):
        content = Tables().summarize("n\n1\n2\n3\n4\n100\n").columns[0].content.value
        self.assertEqual((content.count, content.sum, content.mean), (5, 110.0, 22.0))
        self.assertEqual((content.lower_quartile, content.median, content.upper_quartile), (2.0, 3.0, 4.0))
        self.assertEqual((content.minimum, content.maximum, content.outliers), (1.0, 100.0, [100.0]))
        self.assertAlmostEqual(content.standard_deviation, 43.6177, places=4)

    def test_one_number_has_no_deviation(self):
        content = Tables().summarize("n\n7\n").columns[0].content.value
        self.assertEqual((content.standard_deviation, content.median, content.outliers), (None, 7.0, []))

    def test_a_column_may_be_empty(self):
        self.assertEqual(Tables().summarize("a;b\n1;\n").columns[1].content, tables.Content_Empty())

    def test_any_of_the_delimiters_may_be_between_cells(self):
        for delimiter in ",;\t|":
            with self.subTest(delimiter):
                table = f"\ufeffa{delimiter} b\r\n\r\n1{delimiter} 2\r\n"
                self.assertEqual([column.name for column in Tables().summarize(table).columns], ["a", "b"])

    def test_what_is_no_number_is_text(self):
        for cell in ["1,2", "12,34,567", "nan", "inf", "1e999", "0x10", "1 000", "€5", "5%", "-", ".", "١"]:
            with self.subTest(cell):
                self.assertIsInstance(Tables().summarize(f'n|m\n"{cell}"|1\n').columns[0].content, tables.Content_Texts)
        for cell, number in [("-1.5e3", -1500.0), ("1,234,567.5", 1234567.5), ("+.5", 0.5), ("1_000", 1000.0)]:
            with self.subTest(cell):
                self.assertEqual(Tables().summarize(f'n|m\n"{cell}"|1\n').columns[0].content.value.sum, number)


class Groups(unittest.TestCase):
    def test_groups_are_measured_and_the_largest_comes_first(self):
        for measure, expected in [
            (Measure.COUNT, [("Norway", 2.0), ("Finland", 1.0)]),
            (Measure.SUM, [("Norway", 1_000_000.0), ("Finland", 202_000.0)]),
            (Measure.MEAN, [("Norway", 500_000.0), ("Finland", 202_000.0)]),
            (Measure.MEDIAN, [("Norway", 500_000.0), ("Finland", 202_000.0)]),
            (Measure.MINIMUM, [("Norway", 291_000.0), ("Finland", 202_000.0)]),
            (Measure.MAXIMUM, [("Norway", 709_000.0), ("Finland", 202_000.0)]),
        ]:
            with self.subTest(measure.name):
                groups = Tables().group_by(CITIES, "country", "people", measure)
                self.assertEqual([(group.key, group.value) for group in groups], expected)

    def test_a_group_without_numbers_has_no_value_and_comes_last(self):
        groups = Tables().group_by(CITIES, "country", "area", Measure.MEAN)
        self.assertEqual([(group.key, group.rows, group.value) for group in groups], [("Norway", 2, 459.5), ("Finland", 1, None)])


class Relations(unittest.TestCase):
    def test_a_line_is_found(self):
        relation = Tables().relate("x,y\n1,3\n2,5\n3,7\n4,\n", "x", "y")
        self.assertEqual((relation.pairs, relation.slope, relation.intercept), (3, 2.0, 1.0))
        self.assertAlmostEqual(relation.correlation, 1.0)

    def test_what_does_not_vary_has_no_correlation(self):
        flat = Tables().relate("x,y\n1,3\n2,3\n", "x", "y")
        self.assertEqual((flat.correlation, flat.slope, flat.intercept), (None, 0.0, 3.0))
        upright = Tables().relate("x,y\n1,3\n1,4\n", "x", "y")
        self.assertEqual((upright.correlation, upright.slope), (None, None))


class Problems(unittest.TestCase):
    def test_each_problem_says_what_is_wrong(self):
        not_a_table, tool = tables.Problem_NotATable, Tables()
        for asked, problem in [
            (lambda: tool.summarize(" \n"), not_a_table("there is nothing in it")),
            (lambda: tool.summarize("a,b\n1\n"), not_a_table("line 2: has 1 cells, the header has 2")),
            (lambda: tool.summarize("a,a\n1,2\n"), not_a_table("two columns are called 'a'")),
            (lambda: tool.summarize('a\n"b\n'), not_a_table("line 2: unexpected end of data")),
            (lambda: tool.relate("a,b\n1,2\n", "a", "c"), tables.Problem_NoSuchColumn(tables.Missing("c", ["a", "b"]))),
            (lambda: tool.relate("a,b\n1,x\n", "a", "b"), tables.Problem_NotANumber(tables.Cell("b", 1, "x"))),
            (lambda: tool.relate("a,b\n1,2\n", "a", "b"), tables.Problem_TooFew("1 rows have a number in both columns; 2 are needed")),
        ]:
            with self.assertRaises(Err) as raised:
                asked()
            self.assertEqual(raised.exception.value, problem)


if __name__ == "__main__":
    unittest.main()
