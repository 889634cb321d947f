"""Where a tool may go: not out of the workspace, not to what is ignored, and it leaves what is read-only."""

from __future__ import annotations

import json

import pytest

from debug_gym_core.environment.env import RepoEnv
from debug_gym_core.testing.sample import SECRET
from debug_gym_core.testing.tool_calls import ToolTests

OUTSIDE = "what lies outside of the workspace"
"""Content of a file that no tool may show."""

# Makes a directory beside the workspace and links that lead there; prints its path.
_LINKS = (
    'outside=$(mktemp -d); printf %s "$1" > "$outside/outside.txt"; ln -s "$outside/outside.txt" link.txt; '
    'ln -s "$outside" link; mkdir -p moved/inner; echo inner > moved/inner/outside.txt; rm -rf moved/inner; '
    'ln -s "$outside" moved/inner; printf %s "$outside"'
)


class PathTests(ToolTests):
    """Paths are refused that lead to what is not the agent's."""

    def test_paths_out_of_the_workspace_are_refused(self, env: RepoEnv) -> None:
        """Through `..`, absolute paths and links, whenever they were made."""
        if not self.path_calls():
            pytest.skip("takes no path")
        outside = env.session.run(["sh", "-c", _LINKS, "sh", OUTSIDE], timeout=60).output
        doors = ["..", "../outside", "docs/../../x", "/", "/etc/passwd", "//etc/passwd", f"{outside}/outside.txt"]
        doors += ["link", "link.txt", "link/outside.txt", "moved/inner", "moved/inner/outside.txt", "link/new.txt"]
        for one, name in self.path_calls():
            for path in doors:
                seen = self.answer(env, {**one, name: path})
                assert seen.error, f"{self.tool.name} with {name}={path!r} is not refused: {seen.text[:500]}"
                assert OUTSIDE not in json.dumps(seen.as_json())
        files = env.session.run(["sh", "-c", 'cat "$1"/*; ls -A "$1"', "sh", outside], timeout=60).output
        assert files == f"{OUTSIDE}outside.txt\n", f"{self.tool.name} changed what lies outside"

    def test_ignored_files_are_refused(self, env: RepoEnv) -> None:
        """What the task hides is neither shown nor named by a tool that takes paths."""
        if not self.path_calls():
            pytest.skip("takes no path")
        env.session.run("ln -s secret/plan.txt friendly.txt; ln -s secret friendly", timeout=60)
        for one, name in self.path_calls():
            for path in ("secret", "secret/plan.txt", "./secret/../secret/plan.txt", "friendly.txt", "friendly"):
                seen = self.answer(env, {**one, name: path})
                assert seen.error, f"{self.tool.name} with {name}={path!r} is not refused: {seen.text[:500]}"
                assert SECRET not in json.dumps(seen.as_json())
        env.session.run("rm friendly.txt friendly", timeout=60)
        for one in self.calls:
            said = json.dumps(self.answer(env, one).as_json())
            assert SECRET not in said and "plan.txt" not in said, f"{self.tool.name} {dict(one)} shows what is ignored"
        assert env.session.read("secret/plan.txt") == f"{SECRET}\n".encode()

    def test_readonly_files_are_not_changed(self, env: RepoEnv) -> None:
        """A tool that writes refuses them; none changes them."""
        path = "test_shop.py"
        before = env.session.read(path)
        for one, name in self.path_calls():
            seen = self.answer(env, {**one, name: path})
            if self.writes:
                assert seen.error, f"{self.tool.name} with {name}={path!r} is not refused: {seen.text[:500]}"
        for one in self.calls:
            self.answer(env, one)
        assert env.session.read(path) == before, f"{self.tool.name} changed a read-only file"
