import unittest

from patcher_code import run, run_many

POEM = """\
The keel was laid in early spring,
the ribs went up in May;
we heard the caulking mallets ring
from dawn till end of day.
The mast was stepped, the rigging set,
the name in gold and blue;
she had not touched the water yet
and every plank was new.
"""


class PatcherTest(unittest.TestCase):
    maxDiff = None

    def test_one_line_and_a_range(self):
        edited = run("a\nb\nc\nd\ne\n", "@ 2\nB\n@ 4:5\nD\nE\nF\n")
        self.assertMultiLineEqual(edited, "a\nB\nc\nD\nE\nF\n")

    def test_numbers_are_those_of_the_original(self):
        edited = run("a\nb\nc\nd\n", "@ 4\nD\n@ 1:2\n@ 3\nC1\nC2\n")
        self.assertMultiLineEqual(edited, "C1\nC2\nD\n")

    def test_a_range_stops_at_the_end(self):
        edited = run("a\nb\nc\n", "@ 3:99\nC\n"), run("a\nb\nc\n", "@ 4\nd\n")
        self.assertEqual(edited, ("a\nb\nC\n", "a\nb\nc\nd\n"))

    def test_what_is_no_script(self):
        messages = [run(POEM, script) for script in ("text\n@ 1\n", "@ one\n", "@ 1-3\n", "@ 2:4\n@ 4\n")]
        self.assertEqual(
            messages,
            [
                "syntax error: a script starts with a heading",
                "syntax error: 'one' is not a range of lines",
                "syntax error: '1-3' is not a range of lines",
                "conflict: line 4 is edited twice",
            ],
        )

    def test_line_numbers_start_at_one(self):
        edited, messages = run_many(POEM, ["@ 1\nThe keel was laid in early fall,\n", "@ 0\nHER BUILDING\n", "@ -2\n"])
        self.assertMultiLineEqual(edited, POEM.replace("spring", "fall"))
        self.assertEqual(
            messages,
            ["syntax error: '0' is not a range of lines", "syntax error: '-2' is not a range of lines"],
        )

    def test_ranges_run_forwards(self):
        edited, messages = run_many(POEM, ["@ 8:7\nand all the paint was new.\n", "@ 2:-1\n", "@ 5:5\nThe mast,\n"])
        self.assertMultiLineEqual(edited, POEM.replace("The mast was stepped, the rigging set,", "The mast,"))
        self.assertEqual(
            messages,
            ["syntax error: '8:7' is not a range of lines", "syntax error: '2:-1' is not a range of lines"],
        )
