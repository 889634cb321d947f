"""Methods of unittest with what they expect turned."""

import textwrap
import unittest

import pytest
from turned_modules import HEAD, SECRET, turned

UNITTESTS = {
    "assertEqual": "self.assertEqual(value(), 5)",
    "assertEqual of others": "self.assertEqual(value(), value())",
    "assertNotEqual": "self.assertNotEqual(value(), 6)",
    "assertTrue": "self.assertTrue(value())",
    "assertFalse": "self.assertFalse(value(0), 'a message')",
    "assertIs": "self.assertIsNone(value(None))",
    "assertIn": "self.assertIn(value(), [5])",
    "assertIn of others": "self.assertIn(value(Number(5)), [Number(5)])",
    "assertIn of an iterator": "self.assertIn(2, (one for one in range(5)))\nself.assertIn(2, map(int, '123'))",
    "assertCountEqual of an iterator": "self.assertCountEqual(iter([1, 2]), [2, 1])",
    "assertEqual of any": "self.assertEqual(value(), mock.ANY)",
    "assertGreater": "self.assertGreater(value(), 4)",
    "assertAlmostEqual": "self.assertAlmostEqual(value(0.1) + 0.2, 0.3, places=7)",
    "assertRegex": "self.assertRegex(value('abc'), 'b')",
    "assertCountEqual": "self.assertCountEqual(value([1, 2]), [2, 1])",
    "assertDictEqual": "self.assertDictEqual(value({1: 2}), {1: 2})",
    "assertRaises": "with self.assertRaises(ValueError) as caught:\n    int('x')\n"
    "self.assertIn('x', str(caught.exception))",
    "assertRaises of a call": "self.assertRaises(ValueError, int, 'x')",
    "assertRaisesRegex": "with self.assertRaisesRegex(ValueError, 'invalid'):\n    int('x')",
    "assertRaisesRegex of a call": "self.assertRaisesRegex(ValueError, 'invalid', int, 'x')",
    "a helper that changes a variable": "self.assertSame = lambda wanted, found: wanted.sort()\n"
    "expected = [3, 1]\nself.assertSame(expected, value([1, 3]))\nself.assertEqual(expected, value([1, 3]))",
    "an old name as another": "self.assertEquals = self.assertEqual\nself.assertEquals(value(), 5)",
    "a name of its own": "self.assertSame = self.assertEqual\nself.assertSame(value(), 5)",
    "subTest": "for one in (1, 2):\n    with self.subTest(one=one):\n        self.assertEqual(value(one), one)",
    "assertLogs": "with self.assertLogs('x'):\n    logging.getLogger('x').error('')\nself.assertTrue(value())",
}

if hasattr(unittest.TestCase, "assertEquals"):  # up to Python 3.11
    UNITTESTS["an old name"] = "warnings.simplefilter('ignore')\nself.assertEquals(value(), 5)"

UNITTESTS_DISBELIEVED = {
    "equal to everything, in a list": "self.assertEqual(value([Same()]), [1])",
    "equal to everything, in a dict": "self.assertDictEqual(value({1: Same()}), {1: 2})",
    "equal to everything, somewhere": "self.assertIn(value(Same()), [5, 6])",
    "equal to what it is compared with first": "self.assertEqual(value(Learner()), 5)",
    "equal to what is as long": "self.assertEqual(value(Long('abc')), 'xyz')",
    "a failure that a context takes": "with taking():\n    self.assertEqual(value(), 6)",
    "an old name of another method": "self.assertEquals = self.assertIsNotNone\nself.assertEquals(value(), 6)",
    "a method by another's name": "self.assertEqual = self.assertIsNotNone\nself.assertEqual(value(), 6)",
    "a function by a method's name": "import functools\n"
    "self.assertEqual = functools.partial(print)\nself.assertEqual(value(), 6)",
    "a method that says that it is unittest's": "def own(*arguments): pass\n"
    "own.__name__, own.__module__ = 'assertEqual', 'unittest.case'\n"
    "type(self).assertEqual = own\nself.assertEqual(value(), 6)",
    "equal to everything": "self.assertEqual(value(Same()), 5)",
    "a method that asserts nothing": "self._getAssertEqualityFunc = lambda *_: lambda *_, **__: None\n"
    "self.assertEqual(value(), 6)",
    "not so, in a subTest": "for one in (1, 2):\n    with self.subTest(one=one):\n"
    "        self.assertEqual(value(one), 1)",
}

UNITTEST_HEAD = HEAD.replace("def test_it():", "class Test(unittest.TestCase):\n  def test_it(self):")


def unittests_outcome(body: str) -> str:
    """What a method of a TestCase comes to when it is run turned."""
    text = UNITTEST_HEAD + textwrap.indent(body, "    ") + "\n"
    result = unittest.TestResult()
    turned(text)["Test"]("test_it").run(result)
    assert not result.errors, result.errors
    if result.failures:
        assert all(SECRET in text for _, text in result.failures)
        return "failed"
    return "skipped" if result.skipped else "passed"


@pytest.mark.parametrize("body", UNITTESTS.values(), ids=UNITTESTS)
def test_methods_of_unittest_that_pass_for_a_reason_fail(body):
    assert unittests_outcome(body) == "failed"


@pytest.mark.parametrize("body", UNITTESTS_DISBELIEVED.values(), ids=UNITTESTS_DISBELIEVED)
def test_methods_of_unittest_that_pass_whatever_they_expect_pass(body):
    assert unittests_outcome(body) == "passed"
