"""What code in an isolating sandbox tries in order to get out, and must not achieve: the kit's probes, on ours."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from support import hold_for_an_ordinary_user

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing import EscapeProbes
from debug_gym_core.testing.escape_bounds import Fresh
from debug_gym_core.testing.escape_harness import MakeEnv, bounded, make_files
from debug_gym_core.testing.inside import python
from debug_gym_terminal_bubblewrap import BubblewrapTerminal
from debug_gym_terminal_docker import DockerTerminal

IMAGE = os.environ.get("DEBUG_GYM_TEST_IMAGE", "")


class OurProbes(EscapeProbes):
    """What both of ours keep beyond what is asked of every terminal."""

    def test_commands_are_user_1000s(self, session: Session) -> None:
        status = session.run("cat /proc/self/status").output
        assert "Uid:\t1000\t1000\t1000\t1000\n" in status
        assert "Gid:\t1000\t1000\t1000\t1000\n" in status

    def test_other_address_families_do_not_exist(self, session: Session) -> None:
        opened = python(
            session,
            """
            import json, socket
            opened = []
            for family in range(47):
                try:
                    socket.socket(family, socket.SOCK_STREAM if family != 38 else socket.SOCK_SEQPACKET).close()
                    opened.append(family)
                except OSError:
                    pass
            print(json.dumps(opened))
            """,
        )
        assert opened == [socket.AF_UNIX, socket.AF_INET, socket.AF_INET6]

    def test_a_disk_is_full_before_memory_is(self, fresh: Fresh) -> None:
        """Files are in memory: nobody is killed for those that are written where little of it is given."""
        session = fresh(memory="200m")
        for place in (".", "/tmp"):
            full = session.run(f"head -c 150m /dev/zero > {place}/fill; rm {place}/fill; echo again")
            assert "No space left on device" in full.output and full.output.endswith("again\n")


class TestBubblewrap(OurProbes):
    terminal = BubblewrapTerminal
    repeats = {  # noqa: RUF012
        "terminals": [r"the_number_of_files_is_bounded\[(?!\.\])", "memory_that_is_no_processs_own", "huge_files_fill"]
    }

    def test_a_command_that_is_killed_for_want_of_memory_says_so(self, fresh: Fresh) -> None:
        session = fresh(memory="200m")
        held = session.run([session.python, "-c", "import time; held = b'x' * (400 << 20); time.sleep(60)"])
        assert held.exit_status == -9
        assert held.output.endswith("[killed: out of memory, of which the sandbox has 200m]\n")
        assert session.run("kill -9 $$").output == ""

    @pytest.mark.terminals
    def test_a_hundred_thousand_files_are_no_end(self, make: MakeEnv) -> None:
        super().test_a_hundred_thousand_files_are_no_end(make)

    @pytest.mark.terminals
    def test_what_is_swapped_between_listing_and_reading_leads_nowhere(self, make: MakeEnv, tmp_path: Path) -> None:
        super().test_what_is_swapped_between_listing_and_reading_leads_nowhere(make, tmp_path)

    @pytest.mark.terminals
    def test_the_patch_of_a_hundred_thousand_files_is_made(self, make: MakeEnv) -> None:
        env = make()
        make_files(env, 0, 100)
        assert bounded(lambda: env.patch, 180).count(b"diff --git") == 100_000


@pytest.mark.terminals
class TestDocker(OurProbes):
    terminal = DockerTerminal
    settings = {"image": IMAGE}  # noqa: RUF012

    @classmethod
    def unusable(cls) -> str | None:
        missing = None if IMAGE else "set DEBUG_GYM_TEST_IMAGE to an image with Python; `.ci/images` makes one"
        return missing or super().unusable()


@pytest.mark.terminals
@pytest.mark.timeout(1500)
def test_all_of_it_holds_for_an_ordinary_user() -> None:
    hold_for_an_ordinary_user(__file__, "-m", "", "-k", "TestBubblewrap")
