"""What shells and make say of what is not there; those of them that a machine may lack, in their own words."""

from __future__ import annotations

import pytest

from debug_gym_core.grading.commands import not_found, scripts

NO_MAKEFILE = "No targets specified and no makefile found"
LEAVING = "make: Leaving directory '/testbed/sub'"


@pytest.mark.parametrize(
    ("command", "status", "last", "said"),
    [
        ("make test", 2, "make: *** No rule to make target 'test'.  Stop.", "No rule to make target 'test'"),
        ("make -f rules", 2, "make: *** No rule to make target 'rules'.  Stop.", "No rule to make target 'rules'"),
        ("cd . && make x", 2, "make: *** No rule to make target `x'.  Stop.", "No rule to make target `x'"),
        ("make -C sub x", 2, f"make: *** No rule to make target 'x'.  Stop.\n{LEAVING}", "No rule to make target 'x'"),
        (
            "make",
            2,
            "make: *** No targets specified and no makefile found.  Stop.",
            "No targets specified and no makefile found",
        ),
        ("make -C a x", 2, "make: *** a: No such file or directory.  Stop.", "a: No such file or directory"),
        ("bash nosuch", 127, "bash: nosuch: No such file or directory", "nosuch: No such file or directory"),
        ("bash -e a.sh b", 1, "bash: a.sh: No such file or directory", "a.sh: No such file or directory"),
        ("/bin/dash a.sh", 2, "/bin/dash: 0: cannot open a.sh: No such file", "cannot open a.sh: No such file"),
        ("sh a.sh", 2, "sh: 0: Can't open a.sh", "Can't open a.sh"),
        (
            "sh a.sh",
            2,
            "sh: can't open 'a.sh': No such file or directory",
            "can't open 'a.sh': No such file or directory",
        ),
        ("zsh a.sh", 127, "zsh: can't open input file: a.sh", "can't open input file: a.sh"),
        ("bash -lc 'a; b -x'", 127, "bash: line 1: b: command not found", "b: command not found"),
        ("bash -o pipefail -c ./b", 126, "bash: line 1: ./b: Permission denied", "./b: Permission denied"),
        ("zsh -c b", 127, "zsh:1: command not found: b", "command not found: b"),
        # What the command names is there, and what it runs is not: that may be the bug.
        ("make test", 2, "make: *** No rule to make target 'a.o', needed by 'test'.  Stop.", ""),
        ("make test", 2, "make: *** No rule to make target 'a.mk'.  Stop.", ""),
        ("make -C sub x", 2, f"make[1]: *** No rule to make target 'x'.  Stop.\nmake: *** [x] Error 2\n{LEAVING}", ""),
        ("make test", 2, "make: *** [Makefile:2: test] Error 127", ""),
        ("make test", 0, "make: *** No rule to make target 'test'.  Stop.", ""),
        ("bash a.sh b", 127, "a.sh: line 1: b: command not found", ""),
        ("bash a.sh b", 127, "bash: b: No such file or directory", ""),
        ("bash -c ./a.sh", 127, "bash: line 1: b: command not found", ""),
        ("bash -s a", 127, "bash: a: No such file or directory", ""),
        ("sh a.sh", 2, "sh: 0: cannot open b.sh: No such file", ""),
    ],
)
def test_only_what_a_command_names_itself_is_not_found(command: str, status: int, last: str, said: str) -> None:
    assert not_found(command, status, f"begins\n{last}\n") == said


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("X=1 sh -e a.sh b", ["a.sh"]),
        ("bash -o posix -- a.sh", ["a.sh"]),
        ("bash -c a.sh", []),
        ("bash", []),
        ("make a.sh", []),
    ],
)
def test_the_script_of_a_shell_is_known(command: str, found: list[str]) -> None:
    assert scripts(command) == found
