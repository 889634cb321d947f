"""Paths that lead out of the workspace are refused by every tool that takes one, on every terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core import RepoEnv, Task, ToolCall
from debug_gym_core.errors import ActionError
from debug_gym_core.plugins import default_plugins

pytestmark = pytest.mark.terminals

PATH_ARGUMENTS = frozenset({"path", "file", "target", "directory", "folder", "glob"})
"""Names of arguments that are paths, whatever tool they belong to."""

TOKEN = "4711-of-the-outside"
TEXT = "the secret is"
"""What the agent knows of the file that it must not get at: its beginning."""

PLANT = f"""
set -e
out=$(mktemp -d {{above}}/debug-gym-test-XXXXXX)
mkdir "$out/sub"
printf '{TEXT} {TOKEN}\\n' > "$out/secret.txt"
printf '{TEXT} = "{TOKEN}"\\n' > "$out/secret.py"
printf '{TEXT} {TOKEN}\\n' > "$out/sub/{TOKEN}.txt"
echo "$out"
"""
LOOK = "cd {out} && ls -lAR --time-style=full-iso . && find . -type f -exec sha256sum {{}} +"

WAYS: dict[str, tuple[str, str]] = {
    "upwards": ("", "{up}{out}/secret.txt"),
    "upwards from a directory": ("", "pkg/../{up}{out}/secret.txt"),
    "absolute": ("", "{out}/secret.txt"),
    "two slashes": ("", "/{out}/secret.txt"),
    "the root of a process": ("", "/proc/self/root{out}/secret.txt"),
    "the directory of a process": ("", "/proc/self/cwd/{up}{out}/secret.txt"),
    "upwards from the public name": ("", "/testbed/../../../../../..{out}/secret.txt"),
    "a directory": ("", "{out}"),
    "link to a file": ("ln -s {out}/secret.txt link", "link"),
    "link to a program": ("ln -s {out}/secret.py link.py", "link.py"),
    "link to a directory": ("ln -s {out} link", "link"),
    "below a link to a directory": ("ln -s {out} link", "link/secret.txt"),
    "chained links": ("ln -s {out} one; ln -s one two; ln -s two/sub three", "three/new.txt"),
    "relative link": ("ln -s {up}{out}/secret.txt pkg/link", "pkg/link"),
    "link to the root": ("ln -s / link", "link{out}/secret.txt"),
    "link upwards": ("ln -s .. pkg/up; ln -s pkg/up/.. link", "link/{up}{out}/secret.txt"),
    "link to the root of a process": ("ln -s /proc/self/root link", "link{out}/secret.txt"),
    "link to nothing yet": ("ln -s {out}/new.txt link", "link"),
    "below a link to nothing yet": ("ln -s {out}/new link", "link/deep/er.txt"),
    "file replaced by a link": ("ln -sf {out}/secret.txt pkg/app.py", "pkg/app.py"),
    "parent replaced by a link": ("mv pkg gone; ln -s {out} pkg", "pkg/secret.txt"),
    "grandparent replaced by a link": ("mv pkg gone; ln -s {out} pkg", "pkg/sub/new.txt"),
}


@dataclass
class World:
    """An environment with every tool that is installed, and a directory outside of its workspace."""

    env: RepoEnv
    out: str

    def act(self, name: str, arguments: Mapping[str, Any]) -> dict[str, str]:
        """Use a tool; the episode goes on."""
        observation, _, terminated, truncated, _ = self.env.step(ToolCall(name, arguments))
        assert not (terminated or truncated)
        return observation

    def look(self) -> str:
        """What is outside: names, kinds, times, contents."""
        result = self.env.terminal.run(LOOK.format(out=self.out))
        assert result.exit_status == 0, result.output
        return result.output

    def calls(self, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """A call of every tool for every path that it takes; what it searches for is what lies outside."""
        for name, tool in self.env.tools.items():
            schema = type(tool).schema()["parameters"]
            for argument in PATH_ARGUMENTS & schema["properties"].keys():
                arguments = dict.fromkeys(schema.get("required", ()), TEXT)
                yield name, {**arguments, argument: f"{path}:main" if name == "trace" else path}


def tools() -> list[Any]:
    return [name for name in default_plugins().tools if ":" not in name]


def is_pathlike(name: str) -> bool:
    return bool(PATH_ARGUMENTS & default_plugins().get("tools", name).schema()["parameters"]["properties"].keys())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "pkg" / "sub").mkdir(parents=True)
    (root / "pkg" / "app.py").write_text("x = 1\nprint(x)\n")
    (root / "pkg" / "secret.txt").write_text("inside\n")
    (root / "pkg" / "sub" / "inner.txt").write_text("inside\n")
    return root


@pytest.fixture(params=["$HOME", "/tmp"])
def world(request: pytest.FixtureRequest, terminal: Any, repository: Path) -> Iterator[World]:
    task = Task("tests", "paths", repository, "python pkg/app.py", max_score=1)
    env = RepoEnv(task, tools(), terminal, trusted=True)
    out = ""
    try:
        env.reset(seed=0)
        planted = env.terminal.run(PLANT.format(above=request.param))
        assert planted.exit_status == 0, planted.output
        out = planted.output.strip()
        yield World(env, out)
    finally:
        if out:
            env.terminal.run(["rm", "-rf", out])
        env.close()


def test_tools_that_take_paths_are_known() -> None:
    assert {"view", "listdir", "rewrite"} <= {name for name in tools() if is_pathlike(name)}


def test_no_way_out_is_taken(world: World) -> None:
    """All ways in one environment each time: what is made for one is taken away for the next."""
    before = world.look()
    up = "/".join([".."] * 20)
    for way, (command, template) in WAYS.items():
        path = template.format(out=world.out, up=up)
        world.act("view", {"path": "pkg/app.py"})
        world.env.terminal.run(command.format(out=world.out, up=up) or "true")
        breakpoints = {"command": f"b {path}:1\ntbreak {path}:1\nb\ncl {path}:1"}
        for name, arguments in [*world.calls(path), ("pdb", breakpoints)]:
            observation = world.act(name, arguments)
            case = f"{way}: {name} {arguments}: {observation['text']}"
            assert TOKEN not in observation["text"] + observation["json"], case
            spoken = json.loads(observation["json"])[0]
            assert spoken.get("error") or name == "pdb" or "glob" in arguments, case
            if name != "pdb" and "glob" not in arguments:
                assert "outside the workspace" in case or "leads out of the workspace" in case, case
            assert not list(world.env.breakpoints), case
        with pytest.raises(ActionError):
            world.env.workspace.read_bytes(path)
        with pytest.raises(ActionError):
            world.env.workspace.write_bytes(path, b"x")
        assert TOKEN.encode() not in world.env.patch
        world.env.terminal.run("rm -rf link link.py one two three pkg; mv gone pkg || true; mkdir -p pkg/sub")
        for name in ("pkg/app.py", "pkg/secret.txt", "pkg/sub/inner.txt"):
            world.env.workspace.write_bytes(name, b"x = 1\n")
    assert world.look() == before


def test_what_is_below_is_not_followed_outwards(world: World) -> None:
    """Listing and searching the workspace does not enter links."""
    world.env.terminal.run(f"ln -s {world.out} link; ln -s {world.out}/secret.txt pkg/secret2.txt; ln -s / pkg/sub/top")
    before = world.look()
    for name, arguments in [*world.calls("."), *world.calls("pkg"), *world.calls("**/*")]:
        for more in ({}, {"depth": 10}, {"path": "."}):
            known = type(world.env.tools[name]).schema()["parameters"]["properties"]
            observation = world.act(name, {**arguments, **{key: value for key, value in more.items() if key in known}})
            assert TOKEN not in observation["text"] + observation["json"], (name, arguments)
    patch = world.env.patch
    assert TOKEN.encode() not in patch and b"secret2.txt" in patch
    assert world.look() == before


SWAP = """
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
os.symlink(OUT, "swapped")
os.write(1, b"ready\\n")
while True:  # pkg is a directory and a link in turn
    if libc.renameat2(-100, b"pkg", -100, b"swapped", 2):
        raise OSError(ctypes.get_errno(), "renameat2")
    time.sleep(0.0002)
"""


@pytest.mark.parametrize("world", ["/tmp"], indirect=True)
def test_a_race_for_a_parent_is_not_lost(world: World) -> None:
    before = world.look()
    program = [world.env.terminal.python, "-c", SWAP.replace("OUT", repr(world.out))]
    answers: dict[bool, int] = {True: 0, False: 0}
    with world.env.terminal.process(program, channel=False, follow=True) as swapper:
        assert swapper.read_text(10) == b"ready\n"
        for round_ in range(20):
            for path in ("pkg/secret.txt", "pkg", f"pkg/new{round_}.txt"):
                for name, arguments in world.calls(path):
                    observation = world.act(name, arguments)
                    assert TOKEN not in observation["text"] + observation["json"], (name, arguments)
                    answers[bool(json.loads(observation["json"])[0].get("error"))] += 1
            for read in (world.env.workspace.read_bytes, lambda path: world.env.workspace.read_existing(path, 1000)):
                try:
                    assert TOKEN.encode() not in (read("pkg/secret.txt") or b"")
                    answers[False] += 1
                except ActionError:
                    answers[True] += 1
            assert not any(TOKEN in entry.path for entry in world.env.workspace.list())
            if round_ % 5 == 0:
                assert TOKEN.encode() not in world.env.patch
        swapper.kill()
    assert min(answers.values()) > 10, answers
    assert world.look() == before
