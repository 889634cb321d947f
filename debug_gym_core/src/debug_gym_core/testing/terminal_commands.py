"""What a command in a sandbox is given, and what of it comes back."""

from __future__ import annotations

import pytest

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.commands import COMMANDS
from debug_gym_core.testing.sandboxes import SandboxTests


class CommandTests(SandboxTests):
    """Commands get their arguments, directory, variables and input, and their output comes back whole."""

    @pytest.mark.parametrize(("command", "status", "output"), COMMANDS, ids=[repr(one[0])[1:-1] for one in COMMANDS])
    def test_command(self, session: Session, command: str, status: int | None, output: str | None) -> None:
        """Commands end as they do in any shell, whatever they do to it."""
        result = session.run(command, timeout=20)
        assert not result.timed_out and result.output_cut == 0 and result.seconds < 30
        assert result.exit_status == status or (status is None and result.exit_status != 0)
        assert output is None or result.output == output

    def test_arguments_are_passed_as_they_are(self, session: Session) -> None:
        """A list of arguments meets no shell."""
        argv = ["printf", "%s|", "a b", "", "'", '"', "$HOME", "\\n", "ü", "\n", "*", "-n"]
        assert session.run(argv, timeout=20).output == "a b||'|\"|$HOME|\\n|ü|\n|*|-n|"

    def test_environment_is_the_sandboxs_own(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing of the host's environment is there; what the task and the call say is."""
        monkeypatch.setenv("DEBUG_GYM_CONTRACT_SECRET", "of the host")
        with self.open_session(OWN="value = 'of it'\n") as fresh:
            said = fresh.run(["env"], timeout=20).output
            assert "CONTRACT_SECRET" not in said
            assert "OWN=value = 'of it'\n" in said
            assert "PYTHONHASHSEED=" in said and "PATH=" in said and "HOME=" in said
        assert session.run("echo $CONTRACT $X", env={"X": "1 2"}, timeout=20).output == "yes 1 2\n"
        assert session.run("echo ${CONTRACT-unset}", env={"CONTRACT": None}, timeout=20).output == "unset\n"
        assert session.run('test -w "$HOME" && cd && touch file', timeout=20).exit_status == 0

    def test_working_directory(self, session: Session) -> None:
        """The workspace, or what the call says below it."""
        assert session.mask(session.run("pwd", timeout=20).output) == "/testbed\n"
        session.write("a b/file", b"")
        assert session.run("ls", cwd="a b", timeout=20).output == "file\n"
        with pytest.raises(OSError):
            session.run("ls", cwd="nowhere", timeout=20)

    def test_temporary_files_can_be_made(self, session: Session) -> None:
        """Outside of the workspace."""
        result = session.run('d=$(mktemp -d) && touch "$d/x" && rm -r "$d" && echo made', timeout=20)
        assert result.output == "made\n"

    def test_standard_input(self, session: Session) -> None:
        """Any bytes, also more than a pipe holds."""
        data = bytes(range(256)) * 4096
        result = session.run("wc -c; od -An -tx1 -N0", stdin=data, timeout=20)
        assert result.output.split()[0] == str(len(data))
        assert session.run("cat", stdin=b"a\0b\xff", timeout=20).output == "a\0b\\xff"

    def test_standard_input_that_nobody_reads_holds_nobody_up(self, session: Session) -> None:
        """Of a command that ends, or closes it; without any it is empty."""
        data = bytes(10_000_000)
        assert session.run("true", stdin=data, timeout=20).exit_status == 0
        assert session.run("exec <&-; echo closed", stdin=data, timeout=20).output == "closed\n"
        assert session.run("head -c 3", stdin=b"abcdef", timeout=20).output == "abc"
        assert session.run("wc -c", timeout=20).output.strip() == "0"

    def test_long_arguments(self, session: Session) -> None:
        """As long as the system takes them; longer ones are an error, not the end of the guest."""
        text = "x" * 100_000
        assert session.run(["printf", "%s", text], timeout=20, output_limit=200_000).output == text
        assert session.run(f": {text}; echo long", timeout=20).output == "long\n"
        many = ["true", *["word"] * 20_000]
        assert session.run(many, timeout=20).exit_status == 0
        with pytest.raises(OSError):
            session.run(["true", "x" * 3_000_000], timeout=20)
        assert session.run("echo alive", timeout=20).output == "alive\n"

    def test_every_byte_comes_out(self, session: Session) -> None:
        """What is no UTF-8 is shown as an escape, the rest as it is."""
        output = session.run("cat", stdin=bytes(range(256)), timeout=20).output
        assert output[:128] == bytes(range(128)).decode()
        assert output[128:] == "".join(f"\\x{byte:02x}" for byte in range(128, 256))

    def test_long_output_keeps_head_and_tail(self, session: Session) -> None:
        """And says how much is missing."""
        result = session.run("echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last", timeout=60)
        assert result.output.startswith("first\n") and result.output.endswith("\nlast\n")
        assert result.output_cut > 19_000_000 and len(result.output) < 100_000

    def test_programs_that_do_not_exist(self, session: Session) -> None:
        """An error at once, as Python's own."""
        with pytest.raises(FileNotFoundError):
            session.run(["/no/such/program"], timeout=20)
        with pytest.raises(OSError):
            session.run(["/"], timeout=20)

    def test_python_runs(self, session: Session) -> None:
        """The task's interpreter is there; that of the host is called `python` too."""
        code = "import sys; print(sys.executable)"
        assert session.run([session.python, "-c", code], timeout=30).output.strip() == session.python
        if not self.terminal.runs_images:
            assert session.run("python -c 'print(6 * 7)'", timeout=30).output == "42\n"
