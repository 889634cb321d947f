"""A tool that counts the words of a file."""

from debug_gym_core import Tool, hookimpl


class WordCount(Tool):
    """Count the words of a file."""

    name = "wc"
    examples = ({"path": "README.md"},)

    def use(self, env, path: str, unique: bool = False):
        """Count words.

        Args:
            env: the environment
            path: the file, relative to the repository's root
            unique: count each word once
        """
        words = env.workspace.read_text(path).split()
        return f"{path}: {len(set(words) if unique else words)} words"


@hookimpl
def debug_gym_register_tools():
    """Register the tool."""
    return [WordCount]
