"""The documentation: it builds, its examples run, its links lead somewhere, and nothing that there is goes unmentioned.

A fenced block in the docs and in README.md that could be run has a comment before it:

    <!-- test -->             a Python block is run as a script, a bash block by bash
    <!-- test: continue -->   a Python block that goes on where the one before ended
    <!-- test: transcript --> a console block: its commands are run, what they print is compared; `...` is anything
    <!-- test: config -->     a YAML block that the config loader must take
    <!-- not run: why -->

The blocks of a page are run in order in one directory, which holds what lies in docs/examples.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from support import COMMAND

import debug_gym_core
from debug_gym_core import Environment, Measurement, RepoEnv, Session, Terminal, hookspecs
from debug_gym_core.components.catalogue import KINDS
from debug_gym_core.config.loading import load
from debug_gym_core.config.model import Config
from debug_gym_core.debugging.breakpoints import Breakpoints
from debug_gym_core.plugins import default_plugins
from debug_gym_core.tools import events
from debug_gym_core.workspace.files import Workspace

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not {"_build", "examples"} & set(path.parts))
EVERYTHING = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
RUNNABLE = {"python", "bash", "sh", "console", "yaml", "toml"}
FENCE = re.compile(
    r"^(?:<!-- (?P<verb>test|not run|command)(?:: (?P<what>[^>]*?))? -->\n)?"
    r"(?P<fence>```+)(?P<language>[\w{}-]*)[^\n]*\n(?P<code>.*?)^(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
DURATION = re.compile(r"\b\d+(?:\.\d+)? s\b|\b\d+:\d\d\b(?=\n|$|,)| +\d+\.\d(?=\n|$)")
"""Seconds, minutes, and the last column of a run's table with the blanks before it."""


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, what the comment before it says, its language and text."""

    page: Path
    line: int
    verb: str | None
    what: str
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start("fence")) + 1
        yield Block(page, line, found["verb"], found["what"] or "", found["language"], found["code"])


def to_run(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.verb == "test"]


def pages_with_tests() -> list[Path]:
    return [page for page in EVERYTHING if to_run(page)]


@pytest.mark.parametrize("page", EVERYTHING, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_that_could_run_says_whether_it_does(page: Path) -> None:
    silent = [str(block) for block in blocks(page) if block.language in RUNNABLE and block.verb is None]
    assert silent == []
    assert len(re.findall(r"^<!-- (?:test|not run)", page.read_text(encoding="utf-8"), re.MULTILINE)) == sum(
        block.verb in ("test", "not run") for block in blocks(page)
    ), "a marker does not stand right before its block"


@pytest.mark.documents
@pytest.mark.parametrize("page", pages_with_tests(), ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_a_page_run(page: Path, tmp_path: Path, sandbox: str, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "here"
    shutil.copytree(DOCS / "examples", directory, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    monkeypatch.chdir(directory)
    script = ""
    for block, following in zip(queue := to_run(page), [*queue[1:], None], strict=True):
        if block.language == "python":
            script = (script if block.what == "continue" else "") + block.code
            if following is None or following.what != "continue":
                run([sys.executable, "-W", "error", "-c", script], directory, block)
        elif block.language == "bash":
            run(["bash", "-euo", "pipefail", "-c", block.code], directory, block)
        elif block.language == "console":
            compare(block, directory)
        elif block.language == "yaml":
            (directory / "block.yaml").write_text(block.code, encoding="utf-8")
            load(str(directory / "block.yaml"))
        else:
            pytest.fail(f"{block}: nobody knows how to test {block.language}")


def run(command: list[str], directory: Path, block: Block, *, check: bool = True) -> str:
    environment = {**os.environ, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert not check or done.returncode == 0, f"{block} ended with status {done.returncode}:\n{done.stdout}"
    return done.stdout


LACKING = re.compile(r"(?m)^note: (?:memory|pids|cpus|user|seccomp): .*\n")
"""What a sandbox lacks on this machine, which a transcript of another one does not have."""


def compare(block: Block, directory: Path) -> None:
    """Run the commands of a transcript and compare what they print."""
    parts = re.split(r"^\$ ((?:.*\\\n)*.*)\n", block.code, flags=re.MULTILINE)[1:]
    assert parts, f"{block}: a transcript begins with `$ command`"
    for command, expected in zip(parts[::2], parts[1::2], strict=True):
        printed = run(["bash", "-c", command], directory, block, check=False)
        wanted, shown = (DURATION.sub("<time>", text.rstrip()) for text in (expected, LACKING.sub("", printed)))
        pieces = re.split(r"(?m)^ *\.\.\.$|\.\.\.(?= |$)", wanted)
        fitting = next(n for n in range(len(pieces), -1, -1) if re.match(pattern(pieces[:n], len(pieces)), shown, re.S))
        missing = pieces[fitting] if fitting < len(pieces) else ""
        assert fitting == len(pieces), f"{block}: {command} printed\n{printed}\nwithout, at its place,\n{missing}"


def pattern(pieces: list[str], total: int) -> str:
    """A regular expression for the pieces with anything between them, up to the end when they are all there are."""
    return ".*?".join(map(re.escape, pieces)) + (r"\Z" if len(pieces) == total else "")


def test_a_transcript_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    page = ROOT / "README.md"
    good = "$ printf 'a\\nb 1.5 s\\nc\\n'\na\nb 9.9 s\n...\n$ echo x\nx\n"
    compare(Block(page, 1, "test", "transcript", "console", good), tmp_path)
    for wrong in (good.replace("a\n", "z\n", 1), good.replace("\nx\n", "\ny\n"), good.replace("b 9", "b! 9")):
        with pytest.raises(AssertionError):
            compare(Block(page, 1, "test", "transcript", "console", wrong), tmp_path)


@pytest.mark.parametrize("page", [*EVERYTHING, ROOT / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_of_the_repository_lead_there(page: Path) -> None:
    text = re.sub(FENCE, "", page.read_text(encoding="utf-8"))
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)|\{literalinclude\} (\S+)|\{image\} (\S+)|src=\"([^\"]+)\"", text):
        name = next(filter(None, target)).partition("#")[0]
        if name and "://" not in name and not name.startswith("mailto:"):
            base = DOCS if name.startswith("/") else page.parent
            if not (base / name.lstrip("/")).exists():
                broken.append(name)
    assert broken == []


@pytest.mark.parametrize("page", sorted(DOCS.rglob("design/*.md")), ids=lambda page: page.name)
def test_links_of_what_a_page_includes_are_pages_there(page: Path) -> None:
    for name, options in re.findall(r"\{include\} (\S+)\n((?::.*\n)*)", page.read_text(encoding="utf-8")):
        relative = re.search(r"^:relative-docs: (\S+)$", options, re.MULTILINE)
        prefix = relative[1] if relative else "nothing is taken off"
        text = re.sub(FENCE, "", (page.parent / name).read_text(encoding="utf-8"))
        links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s:]+)\)", text)]
        assert [link for link in links if not (link.startswith(prefix) and link.endswith(".md"))] == []


def test_there_are_few_links_out_and_they_are_plain() -> None:
    found = {url for page in EVERYTHING for url in re.findall(r"https?://[^\s)>\"'`]+", page.read_text("utf-8"))}
    assert len(found) < 15, found
    assert not [url for url in found if not url.startswith(("https://", "http://localhost:"))]


def test_configs_in_the_examples_load(monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted((DOCS / "examples").glob("*.yaml"))
    assert files
    for file in files:
        load(str(file))


def text_of_the_docs() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def rendered(directives: list[str]) -> str:
    """What the generated parts of the reference say, as Markdown."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS / "_ext")
        module = importlib.import_module("debug_gym_reference")
    made = []
    for name in directives:
        directive = getattr(module, name).__new__(getattr(module, name))
        made.append("\n".join(directive.markdown()))
    return "\n".join(made)


def test_the_reference_has_every_key_tool_and_command() -> None:
    pytest.importorskip("sphinx", reason="Sphinx is not installed: uv sync --group docs")
    text = rendered(["ConfigReference", "ToolReference", "CommandReference", "Spellings", "ErrorReference"])
    keys = [name for name in Config.model_fields] + [
        key
        for field in Config.model_fields.values()
        for key in getattr(field.annotation, "model_fields", {})
    ]  # fmt: skip
    plugins = default_plugins()
    missing = [key for key in keys if f"`{key}`" not in text]
    ours = [record for record in plugins.records if record.distribution.startswith("debug-gym-")]
    for record in ours:
        for tool in record.provides.get("tools", ()):
            missing += [name for name in plugins.tools[tool].parameters() if f"| `{name}` |" not in text]
            missing += [] if f"## `{tool}`" in text else [tool]
    assert missing == []
    for option in ("--resume DIR", "--force-failed", "-p KEY.PATH=VALUE"):
        assert f"`{option}`" in text or option in text


def test_a_tool_without_an_example_has_no_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx", reason="Sphinx is not installed: uv sync --group docs")
    assert "```json\n{" in rendered(["ToolReference"])
    monkeypatch.setattr("debug_gym_reference.example", lambda tool: "")
    assert "As a model calls it" not in rendered(["ToolReference"])


def test_every_component_of_ours_is_mentioned() -> None:
    text = text_of_the_docs() + (ROOT / "README.md").read_text(encoding="utf-8")
    sphinx_made = {"tools": "{tool-reference}", "agents": "{component-reference} agents"}
    missing = []
    for record in default_plugins().records:
        if record.distribution.startswith("debug-gym-"):
            for kind in KINDS:
                if sphinx_made.get(kind, "\0") not in text:
                    missing += [name for name in record.provides.get(kind, ()) if f"`{name}`" not in text]
    assert missing == []


def test_what_the_tutorial_says_of_the_environment_is_there() -> None:
    """Names in the tables of what a tool's author uses: attributes of the classes, or set by their `__init__`."""
    classes: dict[str, type] = {"workspace": Workspace, "terminal": Session, "breakpoints": Breakpoints}
    rows = [line for line in (DOCS / "plugins/tool.md").read_text("utf-8").splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`env\.([\w.]+)", row.split(" | ")[0])]
    assert len(named) > 30
    missing = []
    for name in named:
        first, _, rest = name.partition(".")
        owner, attribute = (classes[first], rest) if rest else (Environment, first)
        words = "".join(inspect.getsource(one) for one in owner.__mro__ if one.__module__.startswith("debug_gym"))
        declared = owner.__annotations__ if owner is Environment else ()
        if not hasattr(owner, attribute) and attribute not in declared and f"self.{attribute}" not in words:
            missing.append(name)
    assert missing == []


def test_every_type_that_a_public_signature_names_is_in_the_reference() -> None:
    page = (DOCS / "plugins/api.md").read_text(encoding="utf-8")
    shown = {one.rpartition(".")[2]: one for one in re.findall(r"autoclass:: (debug_gym_core\.[\w.]+)", page)}
    named: dict[str, str] = {}
    for cls in (RepoEnv, Workspace, Session, Breakpoints, Measurement, Terminal):
        for name, member in vars(cls).items():
            function = member.fget if isinstance(member, property) else member
            if not name.startswith("_") and inspect.isfunction(function):
                for note in function.__annotations__.values():
                    named |= dict.fromkeys(re.findall(r"\b[A-Z]\w+", str(note)), f"{cls.__name__}.{name}")
    for name, function in vars(events).items():
        if name.startswith("on_"):
            for note in function.__annotations__.values():
                named |= dict.fromkeys(re.findall(r"\b[A-Z]\w+", str(note)), name)
    foreign = {"Any", "None", "Callable", "Collection", "Iterable", "Iterator", "Mapping", "Sequence", "HookRelay"}
    assert {name: where for name, where in named.items() if name not in shown and name not in foreign} == {}


def test_every_name_that_the_guide_tells_authors_to_use_is_in_the_reference() -> None:
    listed = set(re.findall(r":: +(debug_gym_core[.\w]*)", (DOCS / "plugins/api.md").read_text(encoding="utf-8")))
    modules = ("debug_gym_core.testing", "debug_gym_core.sandbox.grep")  # with a page or a paragraph of their own
    unlisted = {}
    for page in (DOCS / "plugins").glob("*.md"):
        for name in re.findall(r"\bdebug_gym_core(?:\.\w+)+", page.read_text(encoding="utf-8")):
            if name not in listed and not name.startswith(modules):
                unlisted[name] = page.name
    assert unlisted == {}


def test_what_is_public_is_in_the_reference() -> None:
    page = (DOCS / "plugins/api.md").read_text(encoding="utf-8")
    hidden = {"__version__", "ROOT"}
    assert [
        name for name in debug_gym_core.__all__ if name not in hidden and f":: debug_gym_core.{name}\n" not in page
    ] == []


def test_every_hook_and_event_has_an_example() -> None:
    examples = {"debug_gym_": ("hooks.py", hookspecs), "on_": ("on_events.py", events)}
    for prefix, (file, module) in examples.items():
        source = (DOCS / "examples" / file).read_text(encoding="utf-8")
        specified = [name for name in vars(module) if name.startswith(prefix)]
        assert [name for name in specified if f"def {name}(" not in source] == []
        assert [name for name in specified if not (getattr(module, name).__doc__ or "").strip()] == []
        assert re.findall(rf"def ({prefix}\w+)\(", source) == specified, "in the order of the specification"


def test_no_page_is_left_out_of_the_contents() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    names = [str(page.relative_to(DOCS).with_suffix("")) for page in PAGES]
    assert [name for name in names if name != "index" and f"\n{name}\n" not in index] == []


def test_every_variable_that_the_tests_read_is_explained() -> None:
    sources = [
        path for top in ("tests", "debug_gym_*/tests", "plugins/*/*/tests") for path in ROOT.glob(f"{top}/**/*.py")
    ]
    read = {name for path in sources for name in re.findall(r'"(DEBUG_GYM_TEST_\w+)"', path.read_text())}
    assert len(read) >= 15
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert {name for name in read if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("page", ["docs/plugins/tool.md", "docs/plugins/publish.md", "examples/README.md"])
def test_what_a_page_installs_from_a_checkout_are_all_plugins_and_nothing_else(page: str) -> None:
    """As bash expands it, where pytest has left byte code, too; the whole command is run by tests/test_examples.py."""
    (pattern,) = re.findall(r'"\$CHECKOUT"(/plugins\S*)', (ROOT / page).read_text(encoding="utf-8"))
    done = subprocess.run(
        ["bash", "-c", f'printf "%s\\n" "$CHECKOUT"{pattern}'],
        env={**os.environ, "CHECKOUT": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {Path(line) for line in done.stdout.splitlines()} == {
        path.parent for path in ROOT.glob("plugins/*/*/pyproject.toml")
    }


def test_readme_says_what_there_is() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    plugins = default_plugins()
    for record in plugins.records:
        if record.distribution.startswith("debug-gym-"):
            for kind in ("tools", "terminals", "benchmarks"):
                assert [name for name in record.provides.get(kind, ()) if name not in text] == []
    for marker in ("<!-- command: run -->\n```bash", "<!-- command: tests -->\n```bash"):
        assert text.count(marker) == 1


@pytest.mark.documents
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    missing = [
        name for name in ("sphinx", "myst_parser", "furo", "sphinx_copybutton") if not importlib.util.find_spec(name)
    ]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: uv sync --group docs")
    site = tmp_path / "html"
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-n", "-q", "-b", "html", "-d", tmp_path / "trees", DOCS, site],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    for page in PAGES:
        assert (site / page.relative_to(DOCS).with_suffix(".html")).is_file(), page


def test_ci_and_the_project_name_the_same_group() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    assert {"sphinx", "myst-parser", "furo"} <= {re.split(r"[><= ]", one)[0] for one in groups["docs"]}
    assert "--group docs" in (ROOT / ".ci/full").read_text(encoding="utf-8")


def test_yaml_blocks_are_yaml() -> None:
    for page in EVERYTHING:
        for block in blocks(page):
            if block.language == "yaml":
                assert isinstance(yaml.safe_load(block.code), dict), block
