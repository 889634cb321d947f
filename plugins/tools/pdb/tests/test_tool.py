"""The tool over a session in a local terminal."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
import time
from typing import Any

import pytest
from debugged_programs import LOOP
from support import repeated
from tool_environment import Environment

from debug_gym_core import ActionError, ToolCall, UsageError
from debug_gym_core.debugging.breakpoints import Breakpoints
from debug_gym_core.testing.sample import ENTRYPOINT
from debug_gym_tool_pdb import Pdb

PYTEST = f"{ENTRYPOINT} -p no:cacheprovider test_app.py"


@pytest.mark.smoke
def test_breakpoint_to_stop(env: Environment, pdb: Pdb) -> None:
    observation = pdb.use(env, "b app.py:4")
    assert observation.text == (
        "Started `python app.py`, stopped before its first line.\n"
        "> /testbed/app.py(1)<module>()\n"
        "-> import sys\n"
        "Breakpoint 1 at /testbed/app.py:4"
    )
    assert [str(one) for one in env.breakpoints] == ["1 at app.py:4"]
    observation = pdb.use(env, "c")
    assert observation.text == (
        "> /testbed/app.py(4)add()\n"
        "-> result = total + n\n"
        "stopped: breakpoint 1 at app.py:4 in add (MainThread)\n"
        "   1  import sys\n"
        "   2\n"
        "   3  def add(total, n):\n"
        "-> 4      result = total + n\n"
        "   5      return result\n"
        "   6\n"
        "   7  def main():\n"
        "   8      total = 0\n"
        "locals: total = 0, n = 0\n"
        "stack: add app.py:4 < main app.py:10 < <module> app.py:15"
    )
    assert observation.data["stop"]["line"] == 4
    json.dumps(observation.data)


def test_steps_of_other_tools_say_where_the_program_is_stopped(env: Environment, pdb: Pdb) -> None:
    other = ToolCall("view", {"path": "app.py"})
    assert pdb.on_step(env, other) is None
    pdb.use(env, "b app.py:4")
    said = pdb.on_step(env, other)
    assert said is not None and said.text.startswith("The debugger is stopped ")
    assert said.data == {"breakpoints": env.breakpoints.as_json()} and said.data["breakpoints"]
    pdb.use(env, "q")
    assert pdb.on_step(env, other) is None and len(env.breakpoints) == 1


def test_several_commands_run_until_one_fails(env: Environment, pdb: Pdb) -> None:
    observation = pdb.use(env, "b app.py:5\nc\np result\np nosuch\np result\nc")
    assert "(Pdb) p result\n0\n(Pdb) p nosuch\n*** NameError" in observation.text
    assert observation.text.endswith("[2 more commands not carried out]")
    assert observation.text.count("stopped:") == 1
    assert [one["failed"] for one in observation.data["commands"]] == [False, False, False, True]


def test_listing_no_breakpoints_says_so(env: Environment, pdb: Pdb) -> None:
    pdb.use(env, "l")
    assert pdb.use(env, "b").text == "There are no breakpoints."
    assert "There are no breakpoints." not in pdb.use(env, "b app.py:5\nb").text
    pdb.use(env, "cl 1")
    assert pdb.use(env, "break").text == "There are no breakpoints."


def test_commands_block_in_one_call(env: Environment, pdb: Pdb) -> None:
    text = pdb.use(env, "b app.py:4\ncommands 1\nsilent\np n * 100\nc\nend\nb app.py:11\nc").text
    assert "0\n100\n200\n300\n400\n> /testbed/app.py(11)main()" in text
    assert env.breakpoints[1].commands == ("silent", "p n * 100", "c")


def test_program_output_is_apart(env: Environment, pdb: Pdb) -> None:
    env.session.write("app.py", b"print('(Pdb) fake')\nx = 1\n")
    text = pdb.use(env, "b app.py:2\nc").text
    assert "program printed:\n(Pdb) fake\nstopped: breakpoint 1 at app.py:2" in text


def test_end_of_program_and_next_command_starts_again(env: Environment, pdb: Pdb) -> None:
    observation = pdb.use(env, "c")
    assert observation.text.endswith(
        "program printed:\ntotal 10\nThe program exited with status 0. The next pdb command starts a new session."
    )
    assert observation.data["ended"] == {"how": "exited", "status": 0, "exception": None}
    assert pdb.use(env, "b app.py:4").text.startswith("Started `python app.py`")


def test_breakpoints_survive_restart(env: Environment, pdb: Pdb) -> None:
    pdb.use(env, "b app.py:4, n == 3\ntbreak app.py:11\nb app.py:5\ndisable 3\nignore 1 0")
    text = pdb.use(env, "restart\nb").text
    assert "stop only if n == 3" in text and "del  yes" in text and "keep no" in text
    assert pdb.use(env, "c").data["stop"]["locals"]["changed"]["n"] == "3"
    assert pdb.use(env, "c").data["stop"]["line"] == 11
    assert 2 not in env.breakpoints
    pdb.use(env, "c")
    assert pdb.use(env, "b").text.count("breakpoint   keep") == 2


def test_aliases_survive_restarts_and_ends_but_not_the_episode(env: Environment, pdb: Pdb) -> None:
    pdb.use(env, "alias say p 'it is', %1\nalias gone p 1\nunalias gone")
    assert pdb.use(env, "restart\nsay 3\nalias").text.endswith("('it is', 3)\n(Pdb) alias\nsay = p 'it is', %1")
    pdb.use(env, "unalias say\nalias other p %1\nq")
    assert pdb.use(env, "alias").text.endswith("\nother = p %1")
    pdb.close()
    pdb.on_reset()
    assert pdb.use(env, "alias").text.endswith("There are no aliases.")


def test_restart_with_arguments(env: Environment, pdb: Pdb) -> None:
    env.session.write("app.py", b"import sys\nprint(sys.argv[1:])\n")
    text = pdb.use(env, "run one 'two three'\nc").text
    assert "Started `python app.py one 'two three'`" in text
    assert "['one', 'two three']" in text


@pytest.mark.parametrize("words", ["app.py", *repeated("debugger", "python app.py", "pytest -q")])
def test_who_names_a_program_after_run_is_told_that_it_is_an_argument(env: Environment, pdb: Pdb, words: str) -> None:
    said = "What follows `run` are arguments of the program; another program is named as the call's `entrypoint`."
    text = pdb.use(env, f"run {words}").text
    assert f"Started `python app.py {words}`, stopped before its first line.\n{said}" in text
    assert said not in pdb.use(env, "run one\nrun").text


def test_breakpoints_follow_edits_and_the_session_ends(env: Environment, pdb: Pdb) -> None:
    pdb.use(env, "b app.py:4, n > 1\nb app.py:11\nb app.py:8\nc")
    new = LOOP.replace("import sys\n", "import sys\nimport json\n").replace("total = 0\n", "total = 1\n")
    observation = env.edit(pdb, "app.py", new)
    assert observation.text.splitlines() == [
        "Breakpoint 1 moved from app.py:4 to app.py:5.",
        "Breakpoint 2 moved from app.py:11 to app.py:12.",
        "Breakpoint 3 at app.py:8 was dropped: its line was replaced.",
        "The debugger session ended because a file changed; the next pdb command starts a new one.",
    ]
    assert observation.data["ended"] == {"how": "file_changed", "status": None, "exception": None}
    stop = pdb.use(env, "c").data["stop"]
    assert (stop["line"], stop["locals"]["changed"]["n"]) == (5, "2")


def test_an_edit_of_what_the_program_does_not_run_leaves_the_session(env: Environment, pdb: Pdb) -> None:
    env.session.write("data.json", b"{}")
    env.session.write("later.py", b"x = 1\n")
    pdb.use(env, "b app.py:4\nc")
    assert env.edit(pdb, "data.json", "[]") is None
    assert env.edit(pdb, "later.py", "x = 2\n") is None
    assert "2" in pdb.use(env, "!import later\np later.x").text
    assert env.edit(pdb, "later.py", "x = 3\n").text.startswith("The debugger session ended because a file changed")


def test_objects_among_the_modules_are_not_asked_for_anything(env: Environment, pdb: Pdb) -> None:
    odd = """\
        import sys, types


        class Odd:
            __slots__ = ()

            def __getattribute__(self, name):
                raise RuntimeError("asked for " + name)


        class OddModule(types.ModuleType):
            def __getattribute__(self, name):
                raise RuntimeError("asked for " + name)


        class OddName(str):
            def __hash__(self):
                raise RuntimeError("hashed")


        sys.modules["odd"] = Odd()
        sys.modules["odd_module"] = OddModule("odd_module")
        sys.modules["odd_name"] = types.ModuleType("odd_name")
        sys.modules["odd_name"].__file__ = OddName("x")
        sys.modules["empty"] = types.ModuleType.__new__(types.ModuleType)
        x = 1
        """
    env.session.write("odd.py", textwrap.dedent(odd).encode())
    env.session.write("other.py", b"z = 1\n")
    pdb.use(env, "b odd.py:26\nc", entrypoint="python odd.py")
    assert env.edit(pdb, "other.py", "z = 2\n") is None
    assert "1" in pdb.use(env, "p len('x')").text
    assert env.edit(pdb, "odd.py", "x = 2\n") is not None


def test_a_stop_in_an_ignored_file_shows_none_of_it(env: Environment, pdb: Pdb) -> None:
    env.session.write("secret.py", b"def tell(number):\n    hidden = 'hush'\n    return number\n")
    env.session.write("app.py", b"from secret import tell\ntell(1)\n")
    observation = pdb.use(env, "b app.py:2\nc\ns\nn\nn\nl\nll")
    assert "secret.py:3 in tell" in observation.text and "ignored in th" in observation.text
    assert "hush" not in observation.text and "hush" not in str(observation.data)
    assert not {"source", "locals", "return"} & set(observation.data["stop"])
    assert "hush" in pdb.use(env, "p hidden").text  # what the agent evaluates is its own affair


def test_edit_without_session_moves_only(env: Environment, pdb: Pdb) -> None:
    assert env.edit(pdb, "app.py", "# new\n" + LOOP) is None
    env.breakpoints.add("app.py", 5)
    moved = env.edit(pdb, "app.py", "# newer\n# new\n" + LOOP)
    assert (moved.text, moved.data["ended"]) == ("Breakpoint 1 moved from app.py:5 to app.py:6.", None)


def test_own_entrypoint_is_for_one_session(env: Environment, pdb: Pdb) -> None:
    observation = pdb.use(env, "c", entrypoint=PYTEST)
    assert observation.data["stop"]["test"] == "test_app.py::test_main"
    assert "exception: AssertionError" in observation.text
    assert pdb.use(env, "p found", entrypoint=PYTEST).text == "10"
    pdb.use(env, "q")
    assert pdb.use(env, "p 1").text.startswith("Started `python app.py`")


@pytest.mark.parametrize(
    ("entrypoint", "why"),
    [
        ("python nosuch.py", "there is no file nosuch.py"),
        ("python -m nosuch", "there is no module nosuch"),
        ("python test.sh", "is not Python"),
        *repeated(
            "debugger",
            ("make test", "cannot be debugged"),
            ("pytest 'x", "cannot be read"),
            ("/nosuch/python app.py", "cannot be started"),
            ("python --nosuch-flag app.py", "cannot be debugged"),
            ("pytest nosuch.py", "there is no file nosuch.py"),
            ("/bin/false-python3 app.py", "cannot be"),
        ),
    ],
)
def test_bad_entrypoint_is_told_at_once_and_not_remembered(
    env: Environment, pdb: Pdb, entrypoint: str, why: str
) -> None:
    env.session.write("test.sh", b"echo $HOME | cat\n")
    pdb.use(env, "b app.py:4\nc")
    started = time.monotonic()
    with pytest.raises(ActionError, match=why):
        pdb.use(env, "c", entrypoint=entrypoint)
    assert time.monotonic() - started < 30
    assert pdb.use(env, "p n").text == "0"
    pdb.use(env, "q")
    assert pdb.use(env, "c").data["stop"]["breakpoint"] == 1


def test_quit(env: Environment, pdb: Pdb) -> None:
    assert pdb.use(env, "q").text.startswith("There is no session")
    pdb.use(env, "b app.py:4\nc")
    assert pdb.use(env, "q").text == "The session ended. The next pdb command starts a new session."
    assert pdb.use(env, "c").data["stop"]["line"] == 4


REPLACES = "import os; os.execl('/bin/sh', 'sh', '-c', '{}')"
OVERWRITES = """\
import os
for number in range(3, 70000):
    try:
        os.write(number, b"\\0\\0\\0\\5(Pdb)")
    except OSError:
        pass
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os; os._exit(3)", "The program ended at once with exit status 3"),
        (
            "import os; os.closerange(0, 70000)",
            "The program closed or overwrote the debugger's own descriptor, and was",
        ),
        (
            REPLACES.format("exit 5"),
            "The program was replaced by another one (os.exec), not debugged, which exited with s",
        ),
        (
            "import os\ntry:\n    os.execl('/no', 'x')\nexcept OSError:\n    os._exit(3)",
            "at once with exit status 3",
        ),
        ("import os; os.kill(os.getpid(), 11)", "The program was killed by SIGSEGV."),
        ("import os; os.kill(os.getpid(), 9)", "The program was killed by SIGKILL (out of memory?)."),
        *repeated(
            "debugger",
            (
                "import os; os.kill(os.getppid(), 9)",
                "The process that ran the program was killed, by the program",
            ),
            ("import sys; sys.exit(4)", "The program exited with status 4."),
            (OVERWRITES, "The program closed or overwrote the debugger's own descriptor, and was"),
        ),
    ],
)
def test_how_it_ended(env: Environment, pdb: Pdb, code: str, said: str) -> None:
    env.session.write("app.py", code.encode())
    assert said in pdb.use(env, "c").text
    assert pdb.use(env, "p 1").text.startswith("Started")


def test_breakpoint_in_an_ignored_file_is_refused(env: Environment, pdb: Pdb) -> None:
    env.session.write("secret.py", b"x = 1\n")
    text = pdb.use(env, "b secret.py:1\nb app.py:4").text
    assert "*** secret.py is ignored in this task: no breakpoint is set in it" in text
    assert pdb.use(env, "b app.py:4").text == "Breakpoint 1 at /testbed/app.py:4"
    env.workspace.ignored_files = lambda suffix: []  # it came later, when the session had begun
    pdb.use(env, "restart")
    assert "Breakpoint 2 was cleared: secret.py is ignored" in pdb.use(env, "b secret.py:1").text
    assert [str(one) for one in env.breakpoints] == ["1 at app.py:4"]


def test_breakpoints_that_do_not_persist(env: Environment) -> None:
    pdb = Pdb(timeout=10, persistent_breakpoints=False)
    try:
        pdb.use(env, "b app.py:4\nc")
        pdb.use(env, "q")
        assert len(env.breakpoints) == 0
    finally:
        pdb.close()


def test_same_actions_give_the_same_text(env: Environment) -> None:
    def play() -> list[str]:
        env.breakpoints = Breakpoints()
        pdb = Pdb(timeout=10)
        try:
            calls = ["b app.py:4, n > 2", "c\nn", "w", "p object", "b nosuch.py:1", "c", "l", "c"]
            return [observation.text + json.dumps(observation.data) for observation in (pdb.use(env, c) for c in calls)]
        finally:
            pdb.close()

    first, second = play(), play()
    assert first == second
    assert not any(env.session.root in text for text in first)


def test_nothing_is_written_to_the_workspace(env: Environment, pdb: Pdb) -> None:
    before = [entry.path for entry in env.session.walk()]
    pdb.use(env, "b app.py:4\nc\nc")
    pdb.close()
    assert [entry.path for entry in env.session.walk()] == before


def test_interpreter_named_in_the_entrypoint(env: Environment, pdb: Pdb) -> None:
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        pytest.skip("there is no other Python")
    text = pdb.use(env, "b app.py:4\nc\n!import sys\np sys.executable", entrypoint=f"{python} app.py").text
    assert text.splitlines()[-1] == repr(python)


def test_long_output_is_bounded_and_says_so(env: Environment, pdb: Pdb) -> None:
    env.session.write("app.py", b"for i in range(100000):\n    print('line', i)\nx = 1\n")
    text = pdb.use(env, "b app.py:3\nc\np list(range(100000))").text
    assert len(text) < 15_000
    assert "line 99999" in text and "bytes more" in text
    cut = re.search(
        r"(\[0, 1, .*)\n\[\.\.\. (\d+) characters left out; ask for less at once \.\.\.\]\n(.*99999\])", text
    )
    assert cut is not None
    assert len(cut[1]) + int(cut[2]) + len(cut[3]) == len(str(list(range(100000))))


def test_schema_of_the_tool() -> None:
    schema = Pdb.schema()
    assert schema["parameters"]["required"] == ["command"]
    assert set(schema["parameters"]["properties"]) == {"command", "entrypoint"}
    with pytest.raises(Exception, match="timeouts"):
        Pdb(timeouts=3)


@pytest.mark.parametrize("settings", [{"timeout": float("inf")}, {"timeout": 0}, {"timeout": "60"}, {"warm": "yes"}])
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"pdb: {next(iter(settings))}: "):
        Pdb(**settings)


def test_breakpoints_are_listed_while_no_session_can_start(env: Environment, pdb: Pdb) -> None:
    pdb.use(env, "b app.py:4, n > 0\nq")
    env.session.write("app.py", b"def f(:\n")
    listed = pdb.use(env, "b").text.splitlines()
    assert listed[0] == "Breakpoint 1 at app.py:4, if n > 0" and listed[1].startswith("There is no session: ")
    with pytest.raises(ActionError):
        pdb.use(env, "c")
