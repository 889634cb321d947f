"""`debug-gym view`: what is shown of episodes, of those that are damaged or hostile too."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import saved_episodes as saved
from click.testing import CliRunner

from debug_gym_core.cli import main
from debug_gym_core.models.llm import Message
from debug_gym_core.runs.run_directory import hold
from debug_gym_core.tools.action import ToolCall

HOSTILE = "</pre><script>alert(1)</script>\x1b[2J\x07\u202eover\r\x9b31m"


def view(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["view", *map(str, arguments)], env={"COLUMNS": "100"})
    return done.exit_code, done.output


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return saved.write_run(tmp_path / "run", saved.result(), saved.result("toy/two", resolved=False))


def test_an_episode_is_told_from_its_facts_to_its_patch(run: Path) -> None:
    place = saved.played(run)
    (place / "patch.diff").write_text("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n")
    status, said = view(place)
    assert status == 0
    for part in (
        "toy/one\n  agent    tool_agent\n  model    m\n",
        "status   resolved, score 2/2",
        "tokens   100 read + 10 written, $0.2500",
        "0  reset  (0.1 s)\n    Fix it.",
        "1  view a.py  (score 2/2, was 0/2, 0.1 s)\n    1 x = 1",
        "graded: resolved, 2/2  (clean)",
        "patch\n--- a/a.py",
        "+x = 2",
    ):
        assert part in said, f"{part!r} is not in\n{said}"
    assert view(run, "--task", "one")[1] == said == view(run)[1]


def test_several_episodes_are_a_table_with_the_command_for_each(run: Path) -> None:
    saved.played(run)
    saved.played(run, "toy/two", resolved=False)
    status, said = view(run)
    assert status == 0
    lines = said.splitlines()
    assert lines[0].split()[:5] == ["episode", "state", "score", "steps", "tokens"]
    assert lines[1].split()[:3] == ["toy/one", "resolved", "2/2"]
    assert lines[2].split()[:3] == ["toy/two", "unresolved", "1/2"]
    assert f"debug-gym view {run}/toy/one" in said
    assert view(run, "--task", "tw*")[1].startswith("toy/two\n")
    status, said = view(run, "--task", "tow")
    assert status == 2 and "has no episode of 'tow'; did you mean 'two'?" in said
    status, said = view(run, "--step", "1")
    assert status == 2 and "--step is for one episode, these are 2" in said


def test_what_a_terminal_would_obey_is_shown_by_numbers(run: Path) -> None:
    events = [saved.started(agent=HOSTILE), saved.step(0, None, HOSTILE), saved.step(1, saved.call(HOSTILE), HOSTILE)]
    status, said = view(saved.write_episode(run, events))
    assert status == 0 and not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", said)
    assert "\\x1b[2J\\x07\\u202eover\\r\\x9b31m" in said


def test_long_texts_are_cut_and_say_what_shows_them(run: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(500)) + "\n" + "y" * 5000
    events = [saved.started(), saved.step(0, None, "Fix it."), saved.step(1, saved.call("view", path="a.py"), text)]
    place = saved.write_episode(run, events)
    said = view(place)[1]
    assert f"(... 465 lines are left out; all of them: debug-gym view {place} --step 1)" in said
    assert "line 23\n" in said and "line 24\n" not in said and "line 499\n" in said
    assert "(... and 4000 more characters)" in said
    said = view(place, "--step", "1")[1]
    assert "line 250\n" in said and "y" * 5000 in said and "Fix it." not in said


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("7", "has steps 0 to 1, none of --step"),
        ("2:1", "'2:1' ends before it begins"),
        ("x", "'x' is no number of a step, nor a range of them as 3:7 or 3:"),
        (":", "':' is no number of a step"),
    ],
)
def test_steps_that_are_not_there(run: Path, steps: str, said: str) -> None:
    status, output = view(saved.played(run), "--step", steps)
    assert status == 2 and said in output


def test_prompts_are_shown_when_they_were_kept(run: Path) -> None:
    answer = Message("assistant", "I look.", (ToolCall("view", {"path": "a.py"}, "1"),))
    prompt = [Message("system", "You fix bugs."), Message("user", "Fix it.")]
    silent = saved.asked(prompt, Message("assistant", "I am done."))
    events = [saved.started(), saved.step(0, None, "Fix it."), saved.asked(prompt, answer)]
    place = saved.write_episode(run, [*events, saved.step(1, saved.call("view", path="a.py"), "1 x"), silent])
    plain, whole = view(place)[1], view(place, "--llm")[1]
    assert "You fix bugs." not in plain and "I am done." in plain
    assert "You fix bugs." in whole and "I look." in whole and "100 + 10 tokens, $0.2500" in whole


def test_what_is_wrong_with_a_file_is_said_and_the_rest_shown(run: Path) -> None:
    events = [
        saved.started(),
        saved.step(0, None, "Fix it."),
        {"kind": "step", "step": "x"},
        {"kind": "of_tomorrow", "schema_version": 99},
    ]
    status, said = view(saved.write_episode(run, events, tail='{"schema_version": 1, "ki'))
    assert status == 0 and "0  reset" in said
    for note in (
        "written by a newer debug-gym (schema 99, this one knows 1): some may be missing",
        "line 3 is damaged and left out",
        "the last line is cut off and left out",
    ):
        assert f"note: {note}" in said
    empty = saved.write_episode(run, [], "toy/empty")
    status, said = view(empty)
    assert status == 0 and "note: the trajectory is empty" in said


def test_places_without_episodes(tmp_path: Path, run: Path) -> None:
    status, said = view(tmp_path / "missing")
    assert status == 2 and "there is no such directory" in said
    (tmp_path / "empty").mkdir()
    status, said = view(tmp_path / "empty")
    assert status == 2 and "holds no episode (no trajectory.jsonl); debug-gym run makes some" in said
    status, said = view(run)
    assert status == 2 and "holds no episode (no trajectory.jsonl) yet: nothing was played" in said
    (run / "results.jsonl").write_text('{"task": "toy/a"}\n')
    status, said = view(run / "results.jsonl")
    assert status == 2 and "results.jsonl is no trajectory; say a run's directory" in said


def test_a_run_that_is_being_played_is_told_from_one_that_was_killed(run: Path) -> None:
    place = saved.write_episode(run, [saved.started("toy/new"), saved.step(0, None, "Fix it.")], "toy/new")
    assert "did not come to its end: it was stopped or killed" in view(place)[1]
    lock = hold(run)
    try:
        said = view(place)[1]
    finally:
        os.close(lock)
    assert "status   being played now, score 0/2" in said and "0  reset" in said


def test_an_episode_that_infrastructure_failed_says_why(run: Path) -> None:
    error = {"kind": "error", "error": {"kind": "SandboxLost", "message": "it is gone"}}
    events = [saved.started(), saved.step(0, None, "Fix it."), {**error, "retried": True}, {**error, "retried": False}]
    said = view(saved.write_episode(run, events, "toy/new"))[1]
    assert "status   error: " in said and said.count("it is gone") == 3 and "the episode was played again" in said


class Page(html.parser.HTMLParser):
    """The tags of a page; fails where one is closed that was not opened last."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_needs_nothing_but_itself_and_runs_nothing(run: Path, tmp_path: Path) -> None:
    saved.played(run, text=HOSTILE)
    name = "toy/t' <b>wo"
    saved.played(run, name, resolved=False)
    (run / name / "patch.diff").write_text(f"+{HOSTILE}\n")
    path = tmp_path / "page.html"
    status, said = view(run, "--html", path)
    assert status == 0 and "2 episodes in " in said
    text = path.read_text()
    page = Page(text)
    assert page.open == [] and {tag for tag, _ in page.tags} <= {
        *("html", "meta", "title", "style", "h1", "p", "details", "summary", "span", "dl", "dt", "dd", "pre", "code")
    }
    assert not any(key.startswith("on") or key in ("src", "href", "style") for _, found in page.tags for key in found)
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(found["content"] for _, found in page.tags if "http-equiv" in found)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "</pre><script>alert(1)</script>\\x1b[2J" in page.text and name in page.text
    status, said = view(run, "--html", path)
    assert status == 2 and "is there already; --force replaces it" in said and path.read_text() == text
    assert view(run, "--html", path, "--force", "--task", "one")[0] == 0 and path.read_text() != text


def test_numbers_that_no_machine_counts_are_damage(run: Path) -> None:
    place = saved.played(run)
    path = place / "trajectory.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[2]["score"] = 10**30
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    status, said = view(place)
    assert status == 0 and "line 3 is damaged and left out" in said
