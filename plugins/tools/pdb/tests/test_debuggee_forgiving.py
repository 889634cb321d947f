"""What people type who know another debugger, or have only read the help."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

BANK = textwrap.dedent(
    '''\
    """A module."""
    import functools


    def logged(function):
        @functools.wraps(function)
        def inner(*args):
            return function(*args)

        return inner


    class Account:
        """One account."""

        # who it belongs to
        def __init__(self, owner):

            # a comment
            self.owner = owner
            self.balance = 0

        @logged
        def deposit(self, amount):
            """Put money in."""
            self.balance += amount
            return self.balance

        @property
        def rich(self):
            return self.balance > 100


    class Empty:
        pass


    def make(owner):
        account = Account(owner)
        return account


    def twice():
        return 1


    class Shop:
        def twice(self):
            return 2
    '''
)
MAIN = textwrap.dedent(
    """\
    import sys
    from bank import make


    def work(n):
        account = make("ann")
        for amount in range(n):
            account.deposit(amount)
        return account.balance


    total = work(4)
    print(total)
    """
)
FILES = {"main.py": MAIN, "bank.py": BANK, "pkg/__init__.py": "", "pkg/deep.py": "def dig():\n    return 1\n"}


@pytest.fixture
def at_entry(debug: Any) -> Any:
    return debug("python main.py", FILES)


@pytest.fixture
def in_work(at_entry: Any) -> Any:
    """Stopped at line 8, with `n`, `account` and `amount`."""
    at_entry.do("tbreak 8")
    at_entry.do("c")
    return at_entry


def where(answer: dict[str, Any]) -> str:
    return f"{answer['stop']['file']}:{answer['stop']['line']}"


PLACES = [
    ("main.py:8", "main.py:8"),
    ("main.py 8", "main.py:8"),
    ("main.py, 8", "main.py:8"),
    ("main.py line 8", "main.py:8"),
    ("main 8", "main.py:8"),
    ("line 8", "main.py:8"),
    (":8", "main.py:8"),
    ("8", "main.py:8"),
    ("main.py:8 # here", "main.py:8"),
    ("'main.py:8'", "main.py:8"),
    ("main.py(8)work()", "main.py:8"),
    ('File "main.py", line 8, in work', "main.py:8"),
    ("/testbed/main.py:8", "main.py:8"),
    ("work", "main.py:6"),
    ("main.work", "main.py:6"),
    ("main.py:work", "main.py:6"),
    ("main.py::work", "main.py:6"),
    ("make", "bank.py:39"),
    ("bank.make", "bank.py:39"),
    ("bank.py:make", "bank.py:39"),
    ("bank:make", "bank.py:39"),
    ("Account", "bank.py:20"),
    ("Account.deposit", "bank.py:26"),
    ("bank.Account.deposit", "bank.py:26"),
    ("bank.py::Account::deposit", "bank.py:26"),
    ("Account.rich", "bank.py:31"),
    ("dig", "pkg/deep.py:2"),
    ("pkg.deep.dig", "pkg/deep.py:2"),
    ("deep.dig", "pkg/deep.py:2"),
    ("Shop.twice", "bank.py:49"),
    ("bank.py:18", "bank.py:20"),
    ("bank.py:19", "bank.py:20"),
    ("bank.py::Shop::twice[1-a, b]", "bank.py:49"),
]


def test_places_of_breakpoints_before_anything_is_imported(at_entry: Any) -> None:
    for typed, place in PLACES:
        answer = at_entry.do("b " + typed)
        state = at_entry.breakpoints["list"][-1]
        assert (f"{state['file']}:{state['line']}", answer["failed"]) == (place, False), (typed, answer["out"])
        assert at_entry.do("cl {}".format(state["number"]))["failed"] is False


def test_conditions_of_breakpoints(at_entry: Any) -> None:
    for typed in ("main.py:8, amount > 1", "main.py:8 if amount > 1", "8 if amount > 1", "main.py:8, if amount > 1"):
        assert not at_entry.do("b " + typed)["failed"], typed
        assert at_entry.breakpoints["list"][-1]["condition"] == "amount > 1", typed
    for condition in ("str(amount)[::2] == '1'", "'::' in str(amount)"):
        assert not at_entry.do("b main.py:8, " + condition)["failed"]
        assert at_entry.breakpoints["list"][-1]["condition"] == condition
        at_entry.do("cl {}".format(at_entry.breakpoints["list"][-1]["number"]))
    assert not at_entry.do("b main.py:8 amount > 1")["failed"]
    assert at_entry.breakpoints["list"][-1]["condition"] == "amount > 1"
    assert not at_entry.do("b work if n")["failed"]
    assert at_entry.breakpoints["list"][-1]["condition"] == "n"
    answer = at_entry.do("condition 1 if amount == 3")
    assert not answer["failed"] and at_entry.breakpoints["list"][0]["condition"] == "amount == 3"


WRONG_AT_ENTRY = [
    ("b bnk.py:3", "*** there is no file bnk.py; did you mean bank.py?\n"),
    ("b deap:3", "*** there is no file deap; did you mean pkg/deep.py?\n"),
    ("b bank.py:500", "*** End of file: bank.py has 49 lines\nhint: near it there is code at 49 `return 2`\n"),
    ("b bank.py:16", "*** Blank or comment\nhint: near it there is code at 13 `class Account:` and 17 `def"),
    ("b wrok", "*** there is no function wrok; did you mean work?\n"),
    ("b bank.py:mkae", "*** there is no function mkae in bank.py; did you mean make?\n"),
    ("b twice", "*** several functions are called twice: bank.py:44 twice, bank.py:49 Shop.twice\n"),
    ("b Empty", "*** Empty is a class without __init__: b Empty.METHOD\n"),
    ("b main.py:8, x >", "*** The condition 'x >' is no Python expression: "),
    ("b main.py:8, x = 3", "*** The condition 'x = 3' is no Python expression: "),
    ("b main.py:x y", "*** Bad lineno: x y; b FILE:LINE, as b app.py:12\n"),
    ("b ???", "*** '???' is no place: b FILE:LINE, as b app.py:12, or b FUNCTION\n"),
    ("cl 99", "*** Breakpoint number 99 out of range\nhint: there are no breakpoints\n"),
    ("condition 1, x >", "*** The condition 'x >' is no Python expression: "),
    ("condition 99 x", "*** Breakpoint number 99 out of range\n"),
    ("disable", "*** There are no breakpoints\n"),
    ("enable all", "*** There are no breakpoints\n"),
    ("commands", "*** There are no breakpoints\n"),
    ("ignore 1", "*** ignore takes a breakpoint's number and how often it is passed, as ignore 1 5\n"),
    ("ignore 1 x", "*** x is no count; as in ignore 1 5\n"),
    ("p x", "*** NameError: name 'x' is not defined\nhint: nothing has run yet"),
    ('command="c" entrypoint="pytest"', "*** SyntaxError: invalid syntax\nhint: arguments are named before a block"),
    ("unalias zz", "*** there is no alias zz\n"),
    ("help brek", "*** No help for 'brek'\nhint: did you mean break (b)?\n"),
    ("c 5", "*** c takes no argument: until LINE runs to a line, ignore N COUNT"),
    ("r 5", "*** r takes no argument"),
    ("l nosuch.py:3", "*** there is no file nosuch.py"),
    ("l bank.py:300", "*** bank.py has 49 lines\n"),
]


def test_what_is_wrong_is_answered_with_what_is_right(at_entry: Any) -> None:
    for typed, said in WRONG_AT_ENTRY:
        answer = at_entry.do(typed)
        assert answer["out"].startswith(said), (typed, answer["out"])
        assert answer["failed"] and "stop" not in answer, typed
    assert at_entry.breakpoints.get("list", []) == []


WRONG_IN_A_FRAME = [
    ("p acount", "*** NameError: name 'acount' is not defined\nhint: did you mean account or amount?\n"),
    ("acount", "*** NameError: name 'acount' is not defined\nhint: did you mean account?\n"),
    ("nxt", "*** NameError: name 'nxt' is not defined\nhint: did you mean the command next (n)?\n"),
    ("continu", "*** NameError: name 'continu' is not defined\nhint: did you mean the command continue (c)?\n"),
    ("brek 3", "hint: did you mean the command break (b)?\n"),
    ("finsh", "hint: did you mean the command return?\n"),
    ("watch amount", "hint: pdb has no watchpoints: display EXPRESSION"),
    ("start", "hint: the program is started and stopped: c goes on, restart starts it again\n"),
    ("frame 2", "hint: w shows the stack, u and d move in it\n"),
    ("set foo", "hint: variables are set as in Python: x = 3\n"),
    ("view app.py", "hint: view is a tool of its own, where there is one; this is the debugger\n"),
    ("submit", "hint: submit is a tool of its own, where there is one; this is the debugger\n"),
    ("Look at the locals", "hint: this is neither a command of pdb nor Python; help lists the commands\n"),
    ("info nosuch", "hint: info knows locals, args, breakpoints, stack, frame, display\n"),
    ("p", "*** p takes an expression, such as one of: n, account, amount\n"),
    ("whatis", "*** whatis takes an expression, such as one of: n, account, amount\n"),
    ("until abc", "hint: lines are given by number, as until 12, l 12, l 5, 12 or l FILE:12\n"),
    ("l 1,2,3", "hint: lines are given by number, as until 12, l 12, l 5, 12 or l FILE:12\n"),
    ("step into make", "; b FUNCTION, then c, stops in a function of that name\n"),
    ("n; n", "; several commands are written one a line\n"),
    ("cat main.py", "hint: this is the debugger, no shell: bash is a tool of its own, where there is one; l FILE:LINE"),
    ("ls", "hint: this is the debugger, no shell"),
    ("set_trace()", "hint: the program is stopped already; b FILE:LINE sets a breakpoint\n"),
    ("pause", "hint: the program is stopped already"),
    ("for one in range(n): p one", "hint: within a statement only Python does: print(...) in place of p\n"),
    ("if n: pp account", "hint: within a statement only Python does: print(...) in place of p\n"),
    ("amount?", "hint: p EXPRESSION prints a value, whatis EXPRESSION its type, source NAME its source\n"),
    ("?amount", "hint: p EXPRESSION prints a value, whatis EXPRESSION its type, source NAME its source\n"),
]


def test_wrong_words_name_what_was_probably_meant(in_work: Any) -> None:
    for typed, said in WRONG_IN_A_FRAME:
        answer = in_work.do(typed)
        assert said in answer["out"] and answer["failed"] and "stop" not in answer, (typed, answer["out"])


def test_a_mistyped_attribute_names_the_near_one(in_work: Any, python: str) -> None:
    out = in_work.do("p account.balanse")["out"]
    assert out.startswith("*** AttributeError: 'Account' object has no attribute 'balanse'")
    if in_work.hello["python"] >= [3, 10]:
        assert out.endswith("\nhint: did you mean balance?\n")


def test_a_private_attribute_is_named_as_it_is_stored(debug: Any) -> None:
    app = "class A:\n    def __init__(self): self.__size = 1\n    def f(self):\n        return self.__size\nA().f()\n"
    program = debug("python app.py", {"app.py": app})
    program.do("b A.f")
    program.do("c")
    out = program.do("p self.__size")["out"]
    assert out.startswith("*** AttributeError: 'A' object has no attribute '__size'")
    if program.hello["python"] >= [3, 10]:
        assert out.endswith("\nhint: did you mean _A__size?\n")


SAME = [
    ("print amount", "p amount"),
    ("inspect amount", "p amount"),
    ("p(amount)", "p amount"),
    ("eval amount", "p amount"),
    ("ptype amount", "whatis amount"),
    ("backtrace", "w"),
    ("info stack", "w"),
    ("info args", "a"),
    ("info breakpoints", "b"),
    ("n == 4", "p n == 4"),
    ("n + 1", "p n + 1"),
    ("call str(n)", "p str(n)"),
    ("help(n)", "help n"),
    ("a  # arguments", "a"),
    ("l .", "l 3, 13"),
    ("l bank.py", "l bank.py:1, 11"),
    ("list pkg/deep.py", "l pkg/deep.py:1"),
]


def test_words_of_other_debuggers_do_what_they_mean(in_work: Any) -> None:
    for typed, meant in SAME:
        got, wanted = in_work.do(typed), in_work.do(meant)
        assert (got["out"], got["failed"]) == (wanted["out"], False), typed


def test_locals_are_shown_whatever_they_are_asked_with(in_work: Any) -> None:
    for typed in ("locals", "info locals", "vars"):
        lines = in_work.do(typed)["out"].splitlines()
        assert lines[0] == "n = 4" and lines[2] == "amount = 0", typed
    assert "'amount': 0" in in_work.do("locals()")["out"]


def test_statements_that_begin_with_a_commands_name_are_statements(in_work: Any) -> None:
    assert "stop" not in in_work.do("n = 2")
    assert in_work.do("p n")["out"] == "2\n"
    in_work.do("s = [5, 6]")
    in_work.do("c = iter(s)")
    assert in_work.do("s[0]")["out"] == "5\n"
    assert in_work.do("s.index(6)")["out"] == "1\n"
    assert in_work.do("next(c)")["out"] == "5\n"
    assert in_work.do("list(c)")["out"] == "[6]\n"
    in_work.do("a, b = 7, 8")
    assert in_work.do("!a + b")["out"] == "15\n"
    in_work.do("n += 1")
    assert in_work.do("p n")["out"] == "3\n"
    in_work.do("finish = 9")
    assert in_work.do("finish")["out"] == "9\n"
    assert where(in_work.do("n()")) == "main.py:7"


def test_finish_and_step_into_go_where_they_say(in_work: Any) -> None:
    assert where(in_work.do("over")) == "main.py:7"
    assert where(in_work.do("step over")) == "main.py:8"
    assert in_work.do("step into")["stop"]["file"] == "bank.py"
    assert in_work.do("step out")["stop"]["reason"] == "return"
    assert where(in_work.do("n")) == "main.py:7"
    assert in_work.do("finish")["stop"]["reason"] == "return"


def test_short_words_of_gdb_set_breakpoints(in_work: Any) -> None:
    for typed, place, temporary in (("br 9", 9, False), ("bp main.py:12", 12, False), ("tb main.py:13", 13, True)):
        assert not in_work.do(typed)["failed"], typed
        state = in_work.breakpoints["list"][-1]
        assert (state["line"], state["temporary"]) == (place, temporary), typed
    assert "main.py(9)work()" in in_work.do("goto 9")["out"]


def test_empty_parts_of_a_line_repeat_nothing(in_work: Any) -> None:
    assert where(in_work.do("n;;")) == "main.py:7"
    assert "stop" not in in_work.do(";;")
    assert in_work.do("# just a comment")["out"] == ""


def test_until_and_return_from_the_entry_go_all_the_way(debug: Any) -> None:
    program = debug("python main.py", FILES)
    assert where(program.do("until 11")) == "main.py:12"
    program = debug("python main.py")
    stop = program.do("r")["stop"]
    assert (stop["reason"], stop["line"]) == ("return", 13)
    program = debug("python main.py")
    program.do("b 1")
    assert program.do("until 11")["stop"]["reason"] == "breakpoint"
    assert where(program.do("n")) == "main.py:2"


def test_numbers_of_breakpoints(in_work: Any) -> None:
    for line in (5, 6, 7):
        in_work.do(f"b {line}")

    def enabled() -> list[bool]:
        return [one["enabled"] for one in in_work.breakpoints["list"]]

    for typed, wanted in [
        ("disable", [False] * 3),
        ("enable 2-3", [True, True, False]),
        ("disable 2, 3", [False] * 3),
        ("enable all", [True] * 3),
        ("disable main.py:6", [True, False, True]),
    ]:
        in_work.do(typed)
        assert enabled() == wanted, typed
    in_work.do("cl 2-3")
    assert [one["line"] for one in in_work.breakpoints["list"]] == [7]
    assert in_work.do("cl 99")["out"].endswith("hint: breakpoints are 4 at main.py:7\n")
    assert "note: at this line there is breakpoint 4 too" in in_work.do("b 7")["out"]
    in_work.do("cl all")
    assert in_work.breakpoints["list"] == []
    assert in_work.do("b")["out"] == "There are no breakpoints.\n"


def test_a_decorated_method_stops_in_its_own_body(in_work: Any) -> None:
    in_work.do("b account.deposit")
    assert in_work.breakpoints["list"][-1]["line"] == 26
    assert where(in_work.do("c")) == "bank.py:26"


def test_commands_without_lines_say_where_they_belong(in_work: Any) -> None:
    in_work.do("b 7")
    answer = in_work.do("commands")
    assert answer["failed"] and "write the commands below it" in answer["out"]
    assert not in_work.do("commands", "p 1", "end")["failed"]
    assert in_work.breakpoints["list"][-1]["commands"] == ["p 1"]


def test_lists_of_places_and_functions(in_work: Any) -> None:
    assert "def make(owner):" in in_work.do("l bank.py:38")["out"]
    assert in_work.do("l bank.py:38, 39")["out"].count("\n") in (2, 3)
    assert "def work(n):" in in_work.do("l work")["out"]
    assert "no arguments" in in_work.do("u")["out"] + in_work.do("a")["out"]


def test_after_an_exception_nothing_can_be_jumped_to(debug: Any) -> None:
    program = debug("python app.py", {"app.py": "def f(x):\n    return 1 / x\n\n\nf(0)\n"})
    assert program.do("c")["stop"]["reason"] == "exception"
    answer = program.do("j 2")
    assert answer["failed"] and answer["out"].startswith("*** the exception is over")


def test_where_takes_a_count(in_work: Any) -> None:
    assert in_work.do("w 1")["out"].count("main.py(") == 1
    assert in_work.do("w 2")["out"].count("main.py(") == 2
    assert in_work.do("w x")["failed"]


def test_help_is_short_and_says_what_differs(at_entry: Any) -> None:
    text = at_entry.do("help")["out"]
    assert text.startswith("Set\n  b FILE:LINE[, CONDITION]") and len(text) < 2500
    assert text == at_entry.do("?")["out"] == at_entry.do("help pdb")["out"]
    for command in ("b", "commands", "interact", "ll", "where", "exec", "source", "n", "restart", "help"):
        said = at_entry.do("help " + command)
        assert not said["failed"] and 10 < len(said["out"]) < 2000, command
    assert at_entry.do("help ignore")["out"].endswith("Here, the count starts again with each restart.\n")


def test_a_program_of_pytest_has_no_line_before_it_runs(debug_tests: Any) -> None:
    program = debug_tests("python -m pytest -q -p no:cacheprovider", {"test_a.py": "def test_a():\n    x = 1\n"})
    for typed in ("l", "ll", "b 5", "n"):
        answer = program.do(typed)
        assert answer["failed"] and "b FILE:LINE" in answer["out"].replace("b file:line", "b FILE:LINE"), typed
    program.do("b test_a")
    assert where(program.do("c")) == "test_a.py:2"
    out = program.do("w")["out"]
    assert out.count("\n") == 3 and "frames of the runner above these: w " in out
    assert program.do("w 999")["out"].count("pluggy") > 1


def test_code_of_the_command_line(debug: Any) -> None:
    code = "import bank\nx = bank.make('ann')\nprint(x.owner, 1)"
    program = debug(f"python -c '{code.replace(chr(39), chr(34))}' one", FILES)
    assert program.do("p __name__, __import__('sys').argv")["out"] == "('__main__', ['-c', 'one'])\n"
    program.do("b bank.py:39")
    stop = program.do("c")["stop"]
    assert (stop["stack"][0]["file"], stop["stack"][0]["line"]) == ("bank.py", 39)
    program.do("u")
    assert "->\tx = bank.make" in program.do("l")["out"]
    assert program.do("c")["t"] == "exit"
    assert b"ann 1" in program.printed


FILES_OF_MODULES = {
    "app.py": "x = 1\n",
    "src/click/__init__.py": "version = 1\nname = 2\n",
    "src/click/types.py": "def convert():\n    a = 1\n    return a\n",
}


def test_files_of_the_repository_come_before_those_of_python(debug: Any) -> None:
    program = debug("python app.py", FILES_OF_MODULES)
    for place in ("types.py:2", "types:2", "click.types:2", "click/types.py:2", "click.types:convert"):
        assert program.do(f"tbreak {place}")["out"].splitlines()[0].endswith("/src/click/types.py:2"), place
    told = program.do("b json.nosuch:2")
    assert (told["failed"], told["out"]) == (True, "*** there is no file json.nosuch\n")
    assert program.do("b pprint.py:37")["out"].startswith("Breakpoint")
    assert "site.py" not in program.do("b /etc/passwd:1")["out"] and "failed" in program.do("b /etc/passwd:1")


def test_an_expression_goes_on_over_the_lines_that_it_needs(debug: Any) -> None:
    program = debug("python app.py", {"app.py": "x = 1\ny = 2\n"})
    program.do("b 2")
    program.do("c")
    answer = program.do("p (x,", " 2,", '"three")', "n")
    assert answer["out"] == "(1, 2, 'three')\n" and answer["used"] == 2
    answer = program.do("pp (x,", "n")
    assert answer["failed"] and answer["used"] == 0
    assert program.do("p x", "n")["used"] == 0
