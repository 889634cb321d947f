"""Probes of what takes things out of a sandbox: listing, searching, the patch, grading; and of what it runs there."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.errors import DebugGymError
from debug_gym_core.plugins import default_plugins
from debug_gym_core.sandbox.grep import Query
from debug_gym_core.testing.environments import Environments
from debug_gym_core.testing.inside import python
from debug_gym_core.testing.sandboxes import SECRET, SandboxTests

BROKEN = "def add(a, b):\n    return a - b\n"
TEST = """\
import unittest
import calc


class TestCalc(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calc.add(2, 3), 5)
"""

PROGRAMS = (
    *("python", "python3", "python3.11", "sh", "bash", "dash", "env", "git", "ls", "cat", "grep", "find", "tar", "rm"),
    *("ps", "kill", "id", "setsid", "nice", "timeout", "sleep", "printenv", "stty", "mkdir", "chmod"),
)
"""Whose names the trojans have: what a harness might start in the sandbox."""

MAKE_TROJANS = """
    import json, os, site, sys
    home = os.environ["HOME"]
    directories = [".", "bin", home + "/.local/bin", home + "/bin", "/tmp"]
    for directory in directories:
        os.makedirs(directory, exist_ok=True)
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "w") as file:
                file.write("#!/bin/sh\\necho $0 >> /tmp/trojans\\necho OK\\nexit 0\\n")
            os.chmod(path, 0o755)
    for name in (".bashrc", ".profile", ".bash_profile", ".bash_login", ".zshenv", ".shrc", ".pythonrc.py"):
        with open(os.path.join(home, name), "w") as file:
            file.write("export PATH=/testbed:/testbed/bin:$PATH LD_PRELOAD=/testbed/x.so BASH_ENV=/testbed/env\\n")
    places = [".", home + "/.local/lib/python%d.%d/site-packages" % sys.version_info[:2]]
    for directory in places:
        os.makedirs(directory, exist_ok=True)
        for name in ("sitecustomize.py", "usercustomize.py", "json.py", "struct.py", "selectors.py", "subprocess.py"):
            with open(os.path.join(directory, name), "w") as file:
                file.write("open('/tmp/trojans', 'a').write(__file__)\\nraise SystemExit(0)\\n")
    print(json.dumps(None))
"""

# What in the repository has programs run by git, for whoever runs it there.
GIT_TRAPS = """
    mkdir -p .git/hooks .git/info
    printf '[core]\\n fsmonitor = touch PLACE\\n sshCommand = touch PLACE\\n pager = touch PLACE\\n' > .git/config
    printf ' hooksPath = hooks\\n' >> .git/config
    printf '[filter "x"]\\n clean = touch PLACE\\n smudge = touch PLACE\\n[diff "x"]\\n textconv = touch PLACE\\n' \
        >> .git/config
    printf '[diff]\\n external = touch PLACE\\n[include]\\n path = /testbed/more\\n' >> .git/config
    printf '* filter=x diff=x\\n' > .gitattributes
    cp .gitattributes .git/info/attributes
    printf '#!/bin/sh\\ntouch PLACE\\n' > .git/hooks/post-checkout
    chmod +x .git/hooks/post-checkout; cp .git/config .gitconfig; cp .git/config "$HOME/.gitconfig"
"""

MakeEnv = Callable[..., RepoEnv]


class HarnessProbes(SandboxTests):
    """What code in the sandbox can make of whoever works with its files."""

    @pytest.fixture
    def make(self, available: None, tmp_path: Path) -> Iterator[MakeEnv]:
        """Make environments in the terminal, which need nothing but Python."""
        name = self.terminal.name
        with contextlib.suppress(DebugGymError):
            if default_plugins().get("terminals", name) is self.terminal:
                with Environments(tmp_path / "repositories", {name: dict(self.settings)}) as environments:

                    def make(**settings: Any) -> RepoEnv:
                        return environments.make(
                            files={"calc.py": BROKEN, "test_calc.py": TEST, "docs/guide.txt": "how to add\n"},
                            entrypoint="python -m unittest -q",
                            tests=("test_calc.TestCalc.test_add",),
                            max_score=1,
                            time_limit=30.0,
                            **settings,
                        )

                    yield make
                return
        pytest.skip(f"no installed plugin brings terminal {name}, which environments look up by its name")

    # What comes out

    def test_links_lead_to_nothing_of_the_host(self, make: MakeEnv, tmp_path: Path) -> None:
        """Links in place of files and directories: a patch has where they point, never what is there."""
        (tmp_path / "secret.txt").write_text(SECRET)
        env = make()
        done = env.session.run(
            f"rm calc.py; ln -s {tmp_path}/secret.txt calc.py; ln -s {tmp_path} directory; ln -s / root; "
            "ln -s /etc/passwd passwd; ln -s /etc/shadow shadow; ln -s /proc/self/environ environ; "
            "ln -s /proc/1/environ first; ln -s /proc/self/root/etc/passwd through; ln -s /dev/zero zero; "
            f"ln -s /dev/stdin input; ln -s ../../../..{tmp_path}/secret.txt up; rm -r docs; ln -s {tmp_path} docs; "
            "ln -s self self; ln -s . here",
            timeout=20,
        )
        assert done.exit_status == 0, done.output
        assert SECRET.encode() not in bounded(lambda: env.patch)
        assert bounded(env.grade).resolved is False
        assert bounded(lambda: env.workspace.grep(Query("secret-of|root:x"))).files == []
        for entry in bounded(env.workspace.list):
            with contextlib.suppress(DebugGymError):
                data = bounded(lambda path=entry.path: env.workspace.read_lines(path, 1, 10, 10_000))  # type: ignore[misc]
                assert SECRET.encode() not in data[1].data
        for path in ("docs/secret.txt", "directory/secret.txt", "root/etc/passwd", "passwd", "environ", "zero", "self"):
            with pytest.raises(DebugGymError):
                bounded(lambda path=path: env.workspace.read_bytes(path))  # type: ignore[misc]

    def test_hard_links_lead_to_nothing_of_the_host(self, make: MakeEnv, tmp_path: Path) -> None:
        """They cannot be made to files of other places; what can be made is a file like any other."""
        (tmp_path / "secret.txt").write_text(SECRET)
        (tmp_path / "secret.txt").chmod(0o666)
        env = make()
        env.session.run(
            f"ln {tmp_path}/secret.txt hard; ln -f {tmp_path}/secret.txt calc.py; ln /etc/shadow shadow; "
            "ln /proc/self/environ environ; ln -L /proc/self/fd/0 input; ln /proc/1/environ first",
            timeout=20,
        )
        assert SECRET.encode() not in bounded(lambda: env.patch)
        assert not {"hard", "shadow", "environ", "first"} & {entry.path for entry in env.workspace.list()}

    def test_pipes_sockets_and_devices_hold_nobody_up(self, make: MakeEnv) -> None:
        """A FIFO in place of a source, sockets, thousands of them: nothing waits for somebody to write."""
        env = make()
        done = env.session.run(
            [
                env.session.python,
                "-c",
                "import os, socket\n"
                "for path in ('calc.py', 'docs/guide.txt'):\n"
                "    os.unlink(path); os.mkfifo(path)\n"
                "os.mkdir('many')\n"
                "for number in range(1000): os.mkfifo('many/%d' % number)\n"
                "socket.socket(socket.AF_UNIX).bind('socket')\n"
                "os.mkfifo('.gitignore'); os.mkfifo('.debugignore')\n"
                "os.symlink('many/1', 'link')\n",
            ],
            timeout=20,
        )
        assert done.exit_status == 0, done.output
        bounded(lambda: env.patch)
        assert bounded(env.grade).resolved is False
        assert len(bounded(env.workspace.list)) > 1000
        assert bounded(lambda: env.workspace.grep(Query("add"))).files is not None
        for path in ("calc.py", "many/1", "socket", "link", ".gitignore"):
            with pytest.raises(DebugGymError):
                bounded(lambda path=path: env.workspace.read_bytes(path))  # type: ignore[misc]
            with pytest.raises(DebugGymError):
                bounded(lambda path=path: env.workspace.read_lines(path, 1, 10, 1000))  # type: ignore[misc]
        bounded(env.measure)
        assert env.resolved is False

    def test_what_is_swapped_between_listing_and_reading_leads_nowhere(self, make: MakeEnv, tmp_path: Path) -> None:
        """A directory that is now one, now a link to the host's secret, to the sandbox's own, now nothing."""
        (tmp_path / "guide.txt").write_text(SECRET)
        env = make()
        swapping = (
            "import os\n"
            "os.makedirs('/tmp/outside', exist_ok=True)\n"
            "open('/tmp/outside/guide.txt', 'w').write('of the outside')\n"
            f"for number, target in enumerate(({str(tmp_path)!r}, '/tmp/outside', '/proc/self')):\n"
            "    os.symlink(target, 'link-%d' % number)\n"
            "os.rename('docs', 'kept')\n"
            "while True:\n"
            "    for name in ('kept', 'link-0', 'kept', 'link-1', 'kept', 'link-2'):\n"
            "        os.rename(name, 'docs')\n"
            "        os.rename('docs', name)\n"
        )
        read = set()
        with env.session.process([env.session.python, "-c", swapping], channel=False):
            end = time.monotonic() + 2.5
            while time.monotonic() < end:
                for _ in range(20):
                    with contextlib.suppress(OSError):
                        read.add(env.session.read("docs/guide.txt", 0, 1000))
                assert SECRET.encode() not in bounded(lambda: env.patch)
                assert not any(b"of the outside" in one for one in read)
                assert bounded(lambda: env.workspace.grep(Query("secret-of|of the outside"))).files == []
        assert read <= {b"how to add\n"}

    def test_git_in_the_workspace_runs_nothing_on_the_host(self, make: MakeEnv, tmp_path: Path) -> None:
        """The patch is made by git: settings, hooks, filters and attributes of the repository are none of its."""
        env = make()
        place = tmp_path / "ran"
        done = env.session.run(GIT_TRAPS.replace("PLACE", str(place)), timeout=20)
        assert done.exit_status == 0, done.output
        env.session.write("calc.py", BROKEN.replace("-", "+").encode())
        assert b"+    return a + b" in bounded(lambda: env.patch)
        assert bounded(env.grade).resolved
        assert not place.exists()

    # What runs inside

    def test_trojaned_programs_deceive_nobody(self, make: MakeEnv) -> None:
        """In the workspace, its bin, ~/.local/bin, /tmp, and modules of the library: ours are never taken for them."""
        env = make()
        python(env.session, MAKE_TROJANS, names=PROGRAMS)
        bounded(env.measure)
        assert env.resolved is False
        assert bounded(lambda: env.workspace.list())
        assert bounded(lambda: env.workspace.grep(Query("return a"))).files
        assert env.session.run("echo fine; pwd", timeout=20).output == "fine\n/testbed\n"
        bounded(lambda: env.patch)
        assert bounded(env.grade).resolved is False
        ran = env.session.run(["/bin/cat", "/tmp/trojans"], timeout=20).output
        # Python itself looks for modules where it is started from; that the run in place may do, the record does not.
        assert not [line for line in ran.splitlines() if line.rsplit("/", 1)[-1] in PROGRAMS], ran

    def test_a_wrong_home_and_a_removed_workspace_end_in_one_clear_error_at_most(self, make: MakeEnv) -> None:
        """HOME closed, the workspace emptied and closed, /tmp full: files are asked for, graded, closed."""
        env = make()
        env.session.run(
            'chmod 0 "$HOME"; rm -rf /testbed/* /testbed/.[a-z]*; chmod 0 /testbed; '
            "head -c 4g /dev/zero > /tmp/full; head -c 1g /dev/zero > /dev/shm/full",
            timeout=60,
        )
        assert bounded(env.grade).resolved is False
        assert b"-def add" in bounded(lambda: env.patch)

    # Much of everything

    def test_a_hundred_thousand_files_are_no_end(self, make: MakeEnv) -> None:
        """Listing, searching and closing take seconds; so does the patch of a tenth of them."""
        env = make()
        make_files(env, 0, 10)
        assert bounded(lambda: env.patch, 60)
        make_files(env, 10, 100)
        assert len(bounded(env.workspace.list, 60)) > 100_000
        bounded(lambda: env.workspace.grep(Query("return a", timeout=20)), 60)
        bounded(env.close, 30)

    def test_paths_longer_than_the_kernel_takes_are_no_end(self, make: MakeEnv) -> None:
        """Two thousand directories in one another, with long names; and names of every odd kind."""
        env = make()
        python(
            env.session,
            """
            import json, os
            here = os.open(".", os.O_RDONLY)
            for number in range(2000):
                os.mkdir("n" * 200)
                os.chdir("n" * 200)
            open("deepest", "w").close()
            os.fchdir(here)
            for name in (b"\\xff\\xfe", b"new\\nline", b"\\x1b[31m", b"-rf", b"a\\\\b", b'"', b"x" * 255):
                open(name, "w").close()
            print(json.dumps(None))
            """,
        )
        assert sum(len(entry.path) for entry in bounded(env.workspace.list, 60)) < 1_000_000
        bounded(lambda: env.workspace.grep(Query("return a", timeout=10)), 60)
        assert "too long a path" in str(bounded(env.workspace.changes, 60).left_out)
        bounded(lambda: env.patch, 60)
        bounded(env.measure, 60)
        bounded(env.close, 30)

    def test_huge_files_fill_nobodys_memory(self, make: MakeEnv) -> None:
        """Sparse ones, as large as the workspace may be: they are left out of the patch, and searched in pieces."""
        env = make()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        env.session.run("truncate -s 1g calc.py; for n in 1 2 3; do truncate -s 1g huge-$n; done", timeout=20)
        bounded(lambda: env.patch, 60)
        bounded(lambda: env.workspace.grep(Query("return a", timeout=5)), 60)
        bounded(lambda: env.workspace.read_lines("calc.py", 1, 100, 10_000), 60)
        with pytest.raises(DebugGymError):
            env.workspace.read_existing("calc.py", 1 << 20)
        assert bounded(env.grade, 60).resolved is False
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 200_000, f"{grown >> 10} MiB more memory"


def make_files(env: RepoEnv, first: int, last: int) -> None:
    """Make directories with a thousand empty files each."""
    python(
        env.session,
        """
        import json, os
        for directory in range(first, last):
            os.mkdir("d%d" % directory)
            for name in range(1000):
                os.mknod("d%d/%d" % (directory, name))
        print(json.dumps(None))
        """,
        first=first,
        last=last,
    )


def bounded(action: Callable[[], Any], seconds: float = 40) -> Any:
    """What an action returns, which must come in time."""
    started = time.monotonic()
    answer = action()
    took = time.monotonic() - started
    assert took < seconds, f"it took {took:.1f} s"
    return answer
