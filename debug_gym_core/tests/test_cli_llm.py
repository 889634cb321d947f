"""`debug-gym llm`: it writes llm.yaml, lists its entries, and asks the models whether they answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from asking_runs import KEY
from click.testing import CliRunner

from debug_gym_core.cli import main
from debug_gym_core.config.llm_yaml import read_models
from debug_gym_core.testing.model_server import ModelServer, Reply, Request

WIRE = Path(__file__).parent / "wire_plugin.py"
pytestmark = pytest.mark.usefixtures("home")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["llm", *arguments, "--plugin-file", str(WIRE)], standalone_mode=True)
    return result.exit_code, result.output


def test_init_writes_a_file_for_its_owner_only_and_none_over_another(home: Path, tmp_path: Path) -> None:
    path = home / ".config" / "debug_gym" / "llm.yaml"
    for target, arguments in ((path, []), (tmp_path / "d" / "llm.yaml", [str(tmp_path / "d")])):
        assert CliRunner().invoke(main, ["llm", "init", *arguments]).exit_code == 0
        assert target.stat().st_mode & 0o777 == 0o600
        assert read_models(target).names == ["gpt-4o"]
        target.write_text("mine: {model: m}\n")
        refused = CliRunner().invoke(main, ["llm", "init", *arguments])
        assert refused.exit_code == 2 and "is there already" in refused.output
        assert read_models(target).names == ["mine"]
        target.chmod(0o644)
        assert CliRunner().invoke(main, ["llm", "init", "--force", *arguments]).exit_code == 0
        assert target.stat().st_mode & 0o777 == 0o600
        assert read_models(target).names == ["gpt-4o"]


def test_the_name_that_the_original_gave_to_init(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "debug-gym-init-llm-config"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and read_models(tmp_path / "llm.yaml").names == ["gpt-4o"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "is there already" in done.stderr and "Traceback" not in done.stderr
    done = subprocess.run([command[0], "-h"], capture_output=True, text=True)
    assert done.returncode == 0 and "-h, --help" in done.stdout


def test_list_shows_what_is_missing_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)
    path = tmp_path / "llm.yaml"
    path.write_text(
        f"good: {{model: m, tags: [wire], api_key: {KEY}, context_limit: 8, "
        "prices: {prompt: 1, completion: 2, cached: null}}\n"
        "keyless: {model: m, tags: [wire], api_key: '${NOWHERE}'}\nwrong: {tags: [wire]}\n"
        "unprepared: {model: m, tags: [wire], dialect: keyed, endpoint: 'http://me:pw@one.example/v1'}\n"
        "queried: {model: m, tags: [wire], endpoint: 'http://one.example?api-key=hidden@end'}\n"
        "'[red]odd': {model: {a: b}, tags: [wire], context_limit: x, prices: x}\n"
        f"moved: {{model: m, tags: [wire], context_limit: {KEY}, prices: {{prompt: {KEY}}}}}\n"
        f"colon: {{model: m, tags: [wire], api_key:{KEY}}}\n"
        f"bare: {{model: m, tags: [wire], {KEY}}}\n"
    )
    status, output = run("list", "--llm-config", str(path))
    assert status == 2 and KEY not in output, "there are entries that are wrong"
    lines = output.splitlines()
    assert lines[0] == f"{path}:" and str(path) not in "".join(lines[1:])
    assert lines[2].split() == ["good", "wire", "m", "8k", "1/2", "ready"]
    assert "line 2: the environment has no NOWHERE" in lines[3] and "line 3: wrong: model: it is missing" in lines[4]
    assert lines[5].endswith("m: there is no key")
    assert lines[7].split()[:5] == ["[red]odd", "wire", "line", "6:", "[red]odd:"]
    assert "context_limit: say a number; prices.prompt: say a number; " in lines[8]
    assert "unknown key 'api_key:***'" in lines[9] and "unknown key '***'" in lines[10]
    status, output = run("list", "--llm-config", str(path), "--json")
    assert [row["problem"] is None for row in json.loads(output)] == [True, *[False] * 8] and KEY not in output
    assert [row["endpoint"] for row in json.loads(output)[3:5]] == ["http://one.example/v1", "http://one.example"]
    assert json.loads(output)[4]["problem"].endswith("a query is generate_kwargs: {extra_query: {name: value}}")
    status, output = run("list")
    assert status == 0 and "debug-gym llm init" in output
    path.write_text("keyless: {model: m, tags: [wire], api_key: '${NOWHERE}'}\n")
    assert run("list", "--llm-config", str(path))[0] == 0, "what is missing is not wrong"
    path.write_text("keyless: {model: m, tags: [wire], api_key: '${NOWHERE}', endpiont: x}\n")
    status, output = run("list", "--llm-config", str(path))
    assert status == 2 and "unknown key 'endpiont'; did you mean 'endpoint'?" in output


def test_check_asks_once_and_says_what_is_wrong(tmp_path: Path) -> None:
    replies = [
        Reply({"text": "", "calls": [{"name": "ready", "arguments": {"word": "yes"}}], "prompt": 100}),
        Reply({"text": "I am ready"}),
        Reply({"error": f"no such key {KEY}"}, status=401),
        Reply({}, status=503),
    ]

    def answer(request: Request) -> Reply:
        return replies[len(server.requests) - 1]

    with ModelServer(answer) as server:
        path = tmp_path / "llm.yaml"
        path.write_text(
            f"mine: {{model: m, tags: [wire], api_key: {KEY}, endpoint: '{server.url}', "
            "prices: {prompt: 10000, completion: 0}}\n"
        )
        status, output = run("check", "mine", "--llm-config", str(path))
        assert status == 0 and "mine answered in " in output and "100 + 1 tokens, $1.000000" in output
        status, output = run("check", "mine", "--llm-config", str(path))
        assert status == 0 and "it called no tool but said 'I am ready'" in output
        status, output = run("check", "mine", "--llm-config", str(path))
        assert status == 1 and f'{path}:1: mine: m: {{"error": "no such key ***"}}' in output
        status, output = run("check", "mine", "--llm-config", str(path))
        assert status == 1 and "status 503" in output
        assert len(server.requests) == 4 and server.requests[0].headers["authorization"] == KEY
        with path.open("a") as file:
            file.write(f"lost: {{tags: [wire]}}\nother: {{model: o, tags: [wire], endpoint: '{server.url}'}}\n")
        replies += [Reply({"text": ""}), Reply({"text": ""})]
        status, output = run("check", "--llm-config", str(path))
        assert status == 2 and "mine answered in " in output and "other answered in " in output
        assert f"error: {path}:2: lost: model: it is missing" in output and len(server.requests) == 6
        path.write_text(f"mine: {{model: m, tags: [wire], endpoint: '{server.url}'}}\nlost: {{tags: [wire]}}\n")
        replies += [Reply({"error": "no"}, status=401)]
        assert run("check", "--llm-config", str(path))[0] == 2, "the highest of all, as that of `llm list`"
        path.write_text(
            "".join(f"{name}: {{model: m, tags: [wire], endpoint: '{server.url}'}}\n" for name in ("mine", "b"))
        )
        replies += [Reply({"calls": 5}), Reply({"text": ""})]
        status, output = run("check", "--llm-config", str(path))
        assert status == 3 and f"error: {path}:1: mine: llm wire: " in output and "b answered in " in output
        assert " cannot answer: TypeError: 'int' object is not iterable (wire_plugin.py:" in output
    assert run("check")[0] == 4 and "there is no ~/.config/debug_gym/llm.yaml; debug-gym llm init" in run("check")[1]
    status, output = run("check", "min", "--llm-config", str(path))
    assert status == 2 and "did you mean 'mine'?" in output


@pytest.mark.parametrize("name", ["human", "scripted"])
def test_what_asks_no_service_needs_no_check(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEBUG_GYM_PLUGINS", raising=False)
    (tmp_path / "llm.yaml").write_text("mine: {model: m, tags: [wire]}\n")
    for more in ((), ("--llm-config", str(tmp_path / "llm.yaml"))):
        status, output = run("check", name, *more)
        assert (status, output) == (
            0,
            f"{name} asks no service: it needs no entry in llm.yaml, and there is nothing to check\n",
        )
