"""A tool that keeps an interactive program in the sandbox: a Python prompt that survives between calls."""

import pexpect

from debug_gym_core import Tool, hookimpl

PROMPT = ">>> "
LOOP = "import code; code.interact(banner='', exitmsg='')"


class Prompt(Tool):
    """Run one line of Python; names stay from call to call."""

    name = "python"
    _spawn = None

    def use(self, env, command: str):
        """Run it.

        Args:
            env: the environment
            command: one line of Python
        """
        if self._spawn is None or not self._spawn.isalive():
            self._spawn = env.terminal.spawn([env.terminal.python, "-c", LOOP])
            self._spawn.expect_exact(PROMPT)
        self._spawn.sendline(command.replace("\n", " "))
        try:
            self._spawn.expect_exact(PROMPT, timeout=30)
        except (pexpect.TIMEOUT, pexpect.EOF):
            self.close()
            return "Python did not come back to its prompt; the next call starts it anew."
        return self._spawn.before.strip() or "(nothing)"

    def close(self):
        """End the program: called at the end, and before each reset."""
        if self._spawn is not None:
            self._spawn.close(force=True)
            self._spawn = None


@hookimpl
def debug_gym_register_tools():
    """Register the tool."""
    return [Prompt]
