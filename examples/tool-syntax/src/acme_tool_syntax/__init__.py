from debug_gym_core import Tool, hookimpl

CHECK = "import ast, sys; ast.parse(sys.stdin.buffer.read())"


class Syntax(Tool):
    """Check the syntax of a Python file. Files that change are checked by themselves."""

    name = "syntax"

    def use(self, env, path: str):
        """Args:
        path: the file, relative to the repository's root
        """
        return self.look_at(env, path) or f"{path}: no syntax error"

    @hookimpl
    def on_file_changed(self, env, path):
        return self.look_at(env, path) if path.endswith(".py") and env.terminal.stat(path) else None

    def look_at(self, env, path):
        run = env.terminal.run([env.terminal.python, "-c", CHECK], stdin=env.workspace.read_bytes(path), timeout=10)
        return path + run.output.rpartition('"<unknown>"')[2] if run.exit_status else None


@hookimpl
def debug_gym_register_tools():
    return [Syntax]
