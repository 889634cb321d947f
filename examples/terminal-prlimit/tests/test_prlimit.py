from acme_terminal_prlimit.terminal import PrlimitTerminal

from debug_gym_core.testing import TerminalContract


class TestPrlimit(TerminalContract):
    terminal = PrlimitTerminal
    settings = {"memory": "2g", "open_files": 512}

    def test_limits_hold(self, session):
        assert session.run("ulimit -n; ulimit -v", timeout=20).output == f"512\n{2 << 20}\n"
        result = session.run([session.python, "-c", "print(len(bytearray(3 << 30)))"], timeout=20)
        assert "MemoryError" in result.output
