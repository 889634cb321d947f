"""The agents on real tasks in a real sandbox, through HTTP: a server plays a competent model by script."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support import call_debug_gym, repeated, run_debug_gym

from debug_gym_agents.debug_agent import Debug5Agent, DebugAgent, RewriteAgent
from debug_gym_agents.tool_agent import ToolAgent
from debug_gym_core import Agent, Task, ToolCall, make
from debug_gym_core.cli import main
from debug_gym_core.models.text_calls import with_text_calls
from debug_gym_core.plugins import default_plugins
from debug_gym_core.testing.chat_server import chat_reply, error_reply
from debug_gym_core.testing.model_server import ModelServer, Reply, Request
from debug_gym_core.testing.sample import ENTRYPOINT

TASKS = ["counter", pytest.param("purr", marks=pytest.mark.benchmarks)]
AGENTS = [ToolAgent, *repeated("people", DebugAgent, RewriteAgent, Debug5Agent)]
DEFAULT = ("view", "listdir", "rewrite", "eval", "pdb")


class Competent:
    """A model that knows the bug: runs the tests, stops the program there, changes what the gold patch changes.

    It uses what it is offered: without the debugger it reads, or, when told to, makes changes that help nobody until
    the debugger is there.

    Attributes:
        offered: names of the tools in each request
        rewrites: how many rewrites it had made before each
    """

    def __init__(self, task: Task, *, idle_rewrites: int = 0, several: bool = False, looks: int = 0) -> None:
        """Learn the task.

        Args:
            task: has a gold patch and stops
            idle_rewrites: changes that help nobody, made while there is no debugger
            several: several calls a turn
            looks: how often it looks around, one more turn each
        """
        self.offered: list[list[str]] = []
        self.rewrites: list[int] = []
        self._task, self._idle, self._several, self._looks = task, idle_rewrites, several, looks
        self._turns: Iterator[list[ToolCall]] | None = None
        self._rewritten = 0

    def answer(self, request: Request) -> Reply:
        """Choose the next calls by the tools of the request and the number of the turn."""
        self.offered.append([tool["function"]["name"] for tool in request.body.get("tools", ())])
        self.rewrites.append(self._rewritten)
        self._turns = self._turns or self._plan()
        calls = next(self._turns, None)
        if calls is None:
            return chat_reply("All tests pass.")
        calls = [ToolCall(call.name, call.arguments, f"{len(self.offered)}-{n}") for n, call in enumerate(calls)]
        self._rewritten += sum(call.name == "rewrite" for call in calls)
        return self.reply(calls)

    def reply(self, calls: Sequence[ToolCall]) -> Reply:
        """Make calls as models do that are offered tools."""
        return chat_reply("Let me see.", calls)

    def _plan(self) -> Iterator[list[ToolCall]]:
        stop = self._task.stops[0]
        path, _, line = stop.partition(":")
        yield [ToolCall("eval")]
        for number in range(self._idle):
            if "pdb" not in self.offered[-1]:
                yield [ToolCall("rewrite", {"path": f"note_{number}.txt", "new_code": f"{number}\n"})]
        for number in range(self._looks):
            yield [ToolCall("view", {"path": path, "start": 1 + 4 * number, "end": 4 + 4 * number})]
        look = [ToolCall("view", {"path": path, "start": max(1, int(line) - 5), "end": int(line) + 5})]
        if "pdb" in self.offered[-1]:
            look = [ToolCall("pdb", {"command": f"b {stop}"}), ToolCall("pdb", {"command": "c"})]
        yield from [look] if self._several else [[call] for call in look]
        changes = [ToolCall("rewrite", change) for change in reversed(hunks(self._task.gold_patch or b""))]
        yield from [changes] if self._several else [[call] for call in changes]
        yield [ToolCall("eval")]


class Refusing(Competent):
    """The same model behind a server that takes no tools; its entry does not say so."""

    def answer(self, request: Request) -> Reply:
        """Refuse tools as Ollama does; else see `Competent`."""
        if request.body.get("tools"):
            return error_reply(400, "served does not support tools")
        return super().answer(request)

    def reply(self, calls: Sequence[ToolCall]) -> Reply:
        """Write the first call."""
        return chat_reply(f"```json\n{json.dumps(calls[0].as_json())}\n```")


class Unparsed(Competent):
    """The same model behind a server that offers it tools and does not know how it calls them."""

    def reply(self, calls: Sequence[ToolCall]) -> Reply:
        """Write the calls as it was taught to."""
        return chat_reply("\n".join(f"<tool_call>\n{json.dumps(call.as_json())}\n</tool_call>" for call in calls))


class InText(Competent):
    """The same model without function calling: it writes its actions."""

    def reply(self, calls: Sequence[ToolCall]) -> Reply:
        """Write the first call."""
        assert self.offered[-1] == [] and len(calls) == 1
        return chat_reply(f"<think>eval?</think>Let me see.\n```json\n{json.dumps(calls[0].as_json())}\n```")


def hunks(patch: bytes) -> list[dict[str, Any]]:
    """The changes of a patch as arguments of `rewrite`, in order."""
    found: list[dict[str, Any]] = []
    path = ""
    for line in patch.decode().splitlines():
        if line.startswith("--- "):
            path = line[4:].removeprefix("a/")
        elif match := re.match(r"@@ -(\d+),(\d+)", line):
            start, count = int(match[1]), int(match[2])
            found.append({"path": path, "start": start, "end": start + count - 1, "new_code": ""})
        elif found and line[:1] in (" ", "+") and not line.startswith("+++"):
            found[-1]["new_code"] += line[1:] + "\n"
    return found


def play(
    agent: Agent, name: str, sandbox: str, model: type[Competent] = Competent, **habits: Any
) -> tuple[Competent, list[Mapping[str, Any]], str | None]:
    """Let an agent play a task through HTTP, which must resolve it.

    Returns:
        the model, the bodies of the requests that it got, and why the episode ended
    """
    benchmark = default_plugins().get("benchmarks", "mini_nightmare")()
    competent = model(benchmark.load(name), **habits)
    settings = {"function_calling": False} if model is InText else {}
    with ModelServer(competent.answer) as server:
        llm = default_plugins().get("llms", "openai")(
            model="served", endpoint=f"{server.url}/v1", api_key="sk-test", max_retries=0, **settings
        )
        env = make(
            f"mini_nightmare/{name}",
            tools=list(DEFAULT if agent.tools is None else agent.tools),
            terminal=sandbox,
            entrypoint=f"{ENTRYPOINT} test.py",
            max_steps=50,
            max_rewrites=10,
            end_on_resolved=agent.end_on_resolved,
            python=os.environ.get("DEBUG_GYM_TEST_PYTHON"),
        )
        try:
            agent.prepare(env)
            env.reset(seed=0)
            ended = agent.play(env, with_text_calls(llm, env)) or env.ended
            assert env.grade().resolved, env.patch.decode()
        finally:
            env.close()
            llm.close()
        assert all(request.path == "/v1/chat/completions" for request in server.requests)
        return competent, [request.body for request in server.requests], ended


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("agent", AGENTS)
def test_each_agent_resolves_tasks(agent: type[Agent], name: str, sandbox: str) -> None:
    habits: dict[str, Any] = {Debug5Agent: {"idle_rewrites": 9}, ToolAgent: {"several": True}}.get(agent, {})
    model, bodies, ended = play(agent(), name, sandbox, **habits)
    assert ended == "resolved"
    offered, rewrites = model.offered, model.rewrites
    assert len(bodies) == len(offered)
    if agent is Debug5Agent:
        assert [("pdb" in names) for names in offered] == [count >= 5 for count in rewrites]
        assert max(rewrites) >= 6 and 5 in rewrites, "it was offered before and after its sixth rewrite"
        for body, names in zip(bodies, offered, strict=True):
            assert ("- pdb command" in body["messages"][0]["content"]) is ("pdb" in names)
    else:
        assert all(("pdb" in names) is (agent is not RewriteAgent) for names in offered)
    if agent is RewriteAgent:
        assert "pdb" not in json.dumps(bodies)
    said = json.dumps(bodies[-1])
    used = "Breakpoint 1 at" in said and "stopped" in said
    assert used is (agent is not RewriteAgent)


@pytest.mark.services
def test_a_model_without_function_calling_resolves_a_task(sandbox: str) -> None:
    _, bodies, ended = play(ToolAgent(), "purr", sandbox, InText)
    assert ended == "resolved"
    assert all(not body.get("tools") for body in bodies)
    assert all(message["role"] in ("system", "user", "assistant") for body in bodies for message in body["messages"])
    assert "# How to use the tools" in bodies[0]["messages"][0]["content"]


@pytest.mark.services
@pytest.mark.parametrize(
    ("agent", "model"), [(ToolAgent, Refusing), *repeated("services", (DebugAgent, Refusing), (DebugAgent, Unparsed))]
)
def test_a_server_that_takes_no_tools_needs_no_word_in_the_entry(
    agent: type[Agent], model: type[Competent], sandbox: str
) -> None:
    _, bodies, ended = play(agent(), "purr", sandbox, model)
    assert ended == "resolved"
    assert sum(bool(body.get("tools")) for body in bodies) == (1 if model is Refusing else len(bodies))


def test_check_says_that_a_server_takes_no_tools_and_asks_without(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        return error_reply(400, "m does not support tools") if request.body.get("tools") else chat_reply("I am ready.")

    with ModelServer(answer) as server:
        (tmp_path / "llm.yaml").write_text(
            f"mine: {{model: m, tags: [openai], endpoint: '{server.url}/v1', api_key: k}}\n"
        )
        done = call_debug_gym(["llm", "check", "mine", "--llm-config", "llm.yaml"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    note, answered = done.stdout.splitlines()
    assert note.startswith("note: mine (m): m does not support tools (400); it is asked for actions in text (")
    assert answered.startswith("mine answered in ") and len(server.requests) == 2


@pytest.mark.services
def test_calls_that_a_server_leaves_in_the_text_are_carried_out(sandbox: str) -> None:
    _, bodies, ended = play(ToolAgent(), "purr", sandbox, Unparsed, several=True)
    assert ended == "resolved"
    assert all(message["role"] in ("system", "user", "assistant") for body in bodies for message in body["messages"])


@pytest.mark.parametrize(
    ("function_calling", "verbose"),
    [(True, "-vv"), *repeated("services", (False, "-v"), (False, "-vv"), (True, "-v"))],
)
def test_a_call_in_the_text_of_an_answer_is_told_and_exported_as_a_call(
    function_calling: bool, verbose: str, sandbox: str, tmp_path: Path
) -> None:
    call = json.dumps({"name": "listdir", "arguments": {}})
    written = f"<tool_call>\n{call}\n</tool_call>" if function_calling else f"```json\n{call}\n```"
    last = "I leave it as it is." if function_calling else "done"

    def answer(request: Request) -> Reply:
        assert bool(request.body.get("tools")) is function_calling
        answered = any(message["role"] == "assistant" for message in request.body["messages"])
        return chat_reply(last if answered else f"I look.\n{written}")

    with ModelServer(answer) as server:
        entry = {"model": "served", "endpoint": f"{server.url}/v1", "function_calling": function_calling}
        (tmp_path / "llm.yaml").write_text(json.dumps({"mine": entry}))
        words = ["run", "mini_nightmare/purr", "--agent", "tool_agent", "--llm", "mine", "--terminal", sandbox]
        done = call_debug_gym([*words, "--llm-config", "llm.yaml", "-o", "out", verbose], tmp_path)
        assert done.returncode == 0, done.stderr
    shown, made = (CliRunner().invoke(main, [word, str(tmp_path / "out")]).stdout for word in ("view", "export"))
    line = json.loads(made)
    said = [(one["role"], one["content"]) for one in line["messages"] if one["role"] in ("assistant", "tool")]
    text = ("assistant", f"I look.\n{written}")
    silent = [told.count("model mine called no tool") for told in (done.stdout, shown)]
    offered = "listdir" in [tool["function"]["name"] for tool in line.get("tools", ())]
    if verbose == "-v":
        assert (silent, len(said), said[0], offered) == ([1, 1], 3, ("assistant", None), True)
        assert said[1][0] == "tool" and line["messages"][1]["tool_calls"][0]["function"]["name"] == "listdir"
    else:
        assert (silent[1], said, offered) == (1, [text, ("assistant", last)], function_calling)


@pytest.mark.services
def test_the_prompts_of_the_modern_loop_are_growing_prefixes(sandbox: str) -> None:
    _, bodies, _ = play(ToolAgent(), "counter", sandbox, looks=12)
    prompts = [json.dumps(body["tools"]) + "".join(json.dumps(one) for one in body["messages"]) for body in bodies]
    assert len(prompts) >= 15
    for before, after in itertools.pairwise(prompts):
        assert after.startswith(before), "what was sent is sent again, unchanged"
    assert sum(map(len, prompts[2:-1])) / sum(map(len, prompts[3:])) >= 0.9


@pytest.mark.services
@pytest.mark.parametrize("written", ["${PLANTED}", *repeated("people", "sk-planted-0123456789")])
def test_a_run_leaves_its_key_nowhere(sandbox: str, tmp_path: Path, written: str) -> None:
    """The command line with `-vv`, wherever the key comes from, and a service that repeats it in what it says."""
    key = "sk-planted-0123456789"
    competent = Competent(default_plugins().get("benchmarks", "mini_nightmare")().load("purr"))

    def answer(request: Request) -> Reply:
        assert request.headers["authorization"] == f"Bearer {key}"
        reply = competent.answer(request)
        reply.body["choices"][0]["message"]["content"] = f"Your key is {key}."
        return reply

    with ModelServer(answer) as server:
        entry = {"model": "served", "endpoint": f"{server.url}/v1", "api_key": written}
        (tmp_path / "llm.yaml").write_text(json.dumps({"mine": entry}))
        words = ["run", "mini_nightmare", "--task", "purr", "--agent", "tool_agent", "--llm", "mine", "-vv"]
        words += [
            "--llm-config",
            "llm.yaml",
            "--terminal",
            sandbox,
            "-p",
            f"env.entrypoint={ENTRYPOINT} test.py",
            "-o",
            "out",
        ]
        done = run_debug_gym(words, tmp_path, {"PLANTED": key})
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "Your key is ***." in said, said
    assert key not in said
    kept = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {"run.json", "results.jsonl", "trajectory.jsonl", "log.txt"} <= {path.name for path in kept}
    assert all(key.encode() not in path.read_bytes() for path in kept)
    assert json.loads((tmp_path / "out" / "results.jsonl").read_text())["resolved"]


@pytest.mark.people
def test_what_the_backend_of_a_model_has_no_use_for_is_noted(sandbox: str, tmp_path: Path) -> None:
    with ModelServer(lambda request: chat_reply("I leave it as it is.")) as server:
        (tmp_path / "llm.yaml").write_text(json.dumps({"mine": {"model": "served", "endpoint": f"{server.url}/v1"}}))
        words = ["run", "mini_nightmare", "--task", "counter", "--agent", "tool_agent", "--llm", "mine", "-o", "out"]
        words += ["--llm-config", "llm.yaml", "--terminal", sandbox]
        done = run_debug_gym([*words, "-p", "llm.thinking=1024", "-p", "llm.temperature=0.5"], tmp_path)
        assert done.returncode == 0 and server.requests[0].body["temperature"] == 0.5, done.stderr
    note = "llm.thinking is set, which mine does not use"
    notes = json.loads((tmp_path / "out" / "run.json").read_text())["notes"]
    assert note in notes and done.stdout.count(note) == 1 and "temperature" not in " ".join(notes)


@pytest.mark.parametrize("status", [401, 404])
@pytest.mark.faults
def test_a_run_ends_when_the_service_refuses_every_request(status: int, sandbox: str, tmp_path: Path) -> None:
    """What was begun is an error, the rest is not begun, and can be played when the key is right."""
    refuse = True

    def answer(request: Request) -> Reply:
        return error_reply(status, "No, never.") if refuse else chat_reply("I leave it as it is.")

    with ModelServer(answer) as server:
        entry = {"model": "served", "endpoint": f"{server.url}/v1", "api_key": "sk-wrong-0123456789"}
        (tmp_path / "llm.yaml").write_text(json.dumps({"mine": entry}))
        tasks = [word for name in ("counter", "purr", "sum_tree") for word in ("--task", name)]
        words = ["run", "mini_nightmare", *tasks, "--agent", "tool_agent", "--llm", "mine", "--terminal", sandbox]
        done = run_debug_gym([*words, "--llm-config", "llm.yaml", "-o", "out"], tmp_path)
        assert done.returncode == 4 and len(server.requests) == 1, done.stderr
        assert done.stdout.count("mine (served): No, never.") == 1 and "2 not played" in done.stdout
        assert "refuses every request, see the error above; not played: 2\n" in done.stderr
        assert "correct what the error names, then play again what could not be run: debug-gym run --res" in done.stderr
        (line,) = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
        assert json.loads(line)["status"] == "error" and json.loads(line)["error"]["kind"] == "LLMRefused"
        refuse = False
        done = run_debug_gym(["run", "--resume", "out", "-v"], tmp_path)
        assert done.stdout.count("model mine called no tool\n    I leave it as it is.\n") == 3, done.stdout
        assert done.returncode == 0 and "resolved 0 of 3" in done.stdout, done.stderr
        assert done.stdout.count("the model's last answer called no tool, which ends the episode") == 3


@pytest.mark.faults
@pytest.mark.parametrize("stream", [False, True])
def test_a_resumed_run_sends_what_came_beside_the_calls(stream: bool, sandbox: str, tmp_path: Path) -> None:
    """The service is strict as Gemini is, and was away when the run was begun."""
    signed = {"google": {"thought_signature": "c2lnbmVk"}}
    away = True

    def answer(request: Request) -> Reply:
        calls = [call for one in request.body["messages"] for call in one.get("tool_calls", ())]
        if any(call.get("extra_content") != signed for call in calls):
            return error_reply(400, "Function call is missing a thought_signature in functionCall parts.")
        if away and calls:
            return error_reply(500, "Come back later.")
        if len(calls) == 2:
            return chat_reply("I leave it as it is.", stream=stream)
        identity = f"call-{len(calls)}"
        return chat_reply(None, [ToolCall("eval", {}, identity)], beside={identity: signed}, stream=stream)

    with ModelServer(answer) as server:
        entry = {"model": "served", "endpoint": f"{server.url}/v1", "max_retries": 0, "stream": stream}
        (tmp_path / "llm.yaml").write_text(json.dumps({"mine": entry}))
        words = ["run", "mini_nightmare/counter", "--agent", "tool_agent", "--llm", "mine", "--terminal", sandbox]
        done = run_debug_gym([*words, "--llm-config", "llm.yaml", "-o", "out"], tmp_path)
        assert done.returncode == 1 and len(server.requests) == 2, done.stderr
        away = False
        done = run_debug_gym(["run", "--resume", "out"], tmp_path)
        assert done.returncode == 0 and len(server.requests) == 4, done.stderr
    sent = [[one for one in request.body["messages"] if one["role"] == "assistant"] for request in server.requests]
    assert sent[2] == sent[1] and [len(turns) for turns in sent] == [0, 1, 1, 2]


@pytest.mark.faults
def test_what_a_service_takes_for_wrong_is_to_be_corrected_first(sandbox: str, tmp_path: Path) -> None:
    with ModelServer(lambda request: error_reply(400, "top_k is no parameter.")) as server:
        (tmp_path / "llm.yaml").write_text(json.dumps({"mine": {"model": "served", "endpoint": f"{server.url}/v1"}}))
        words = ["run", "mini_nightmare/counter", "--agent", "tool_agent", "--llm", "mine", "--terminal", sandbox]
        done = run_debug_gym([*words, "--llm-config", "llm.yaml", "-o", "out"], tmp_path)
    assert done.returncode == 1 and len(server.requests) == 1, done.stderr
    assert "correct what the error names, then play again what could not be run: debug-gym run --resume" in done.stderr


@pytest.mark.people
def test_the_sandbox_has_no_key(sandbox: str, tmp_path: Path) -> None:
    """What an agent finds there is seen in the requests that tell the model of it."""
    key = "sk-planted-0123456789"
    look = (
        "env; cat /proc/*/environ | tr '\\0' '\\n'; cat ~/llm.yaml; cat $LLM_CONFIG_FILE_PATH; ls -a ~ /; echo looked"
    )

    def answer(request: Request) -> Reply:
        calls = [ToolCall("bash", {"command": look}, "1")] if len(request.body["messages"]) == 2 else []
        return chat_reply("Let me see.", calls)

    with ModelServer(answer) as server:
        entry = {"model": "served", "endpoint": f"{server.url}/v1", "api_key": "${PLANTED}"}
        path = tmp_path / "llm.yaml"
        path.write_text(json.dumps({"mine": entry, "other": {**entry, "api_key": f"{key}-other"}}))
        words = ["run", "mini_nightmare", "--task", "purr", "--agent", "tool_agent", "--llm", "mine", "-o", "out"]
        words += ["--terminal", sandbox, "-p", "tools=[bash]"]
        known = {"PLANTED": key, "OPENAI_API_KEY": f"{key}-openai", "LLM_CONFIG_FILE_PATH": str(path)}
        done = run_debug_gym(words, tmp_path, known)
        assert done.returncode == 0, done.stderr
        (seen,) = [one["content"] for one in server.requests[-1].body["messages"] if one["role"] == "tool"]
    assert "PATH=" in seen and "looked" in seen
    assert key not in seen and "***" not in seen and "PLANTED" not in seen
