"""Each default of the docker terminal, as the engine has it, and each setting that changes one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import debug_gym_core
from debug_gym_core.errors import SandboxError, UsageError
from debug_gym_core.sandbox.ownership import owner
from debug_gym_core.sandbox.session import Session
from debug_gym_core.sandbox.terminal import SandboxSpec
from debug_gym_terminal_docker import DockerTerminal
from debug_gym_terminal_docker.engine import connect

IMAGE = os.environ.get("DEBUG_GYM_TEST_IMAGE", "")
PYTHON = os.environ.get("DEBUG_GYM_TEST_PYTHON")
Inspect = Callable[[], dict[str, Any]]


@pytest.fixture(scope="module")
def inspect() -> Iterator[Inspect]:
    """Asks the engine about the one container that this process has."""
    if not IMAGE:
        pytest.skip("set DEBUG_GYM_TEST_IMAGE to an image with pytest and pandas; `.ci/images` makes one")
    reason = DockerTerminal.unavailable()
    if reason:
        pytest.skip(reason)
    client = connect()

    def ask() -> dict[str, Any]:
        [container] = client.containers(filters={"label": ["app=debug-gym", f"owner={owner()}"]})
        facts: dict[str, Any] = client.inspect_container(container["Id"])
        return facts

    yield ask
    client.close()


@pytest.fixture
def started(inspect: Inspect) -> Iterator[Callable[..., DockerTerminal]]:
    """Starts a container with settings; it ends with the test."""
    terminals = []

    def start(**settings: Any) -> DockerTerminal:
        terminal = DockerTerminal(image=IMAGE, **settings)
        terminals.append(terminal)
        terminal.start(SandboxSpec(run="settings"))
        return terminal

    yield start
    for terminal in terminals:
        terminal.stop()


def said(terminal: DockerTerminal) -> list[str]:
    """What a run's record would say of it."""
    return [*terminal.settings.weakened(), *terminal.notes()]


def test_a_running_task_has_every_default(inspect: Inspect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "1")
    env = debug_gym_core.make(
        "mini_nightmare/counter", tools=["view"], terminal={"docker": {"image": IMAGE, "cpus": 1.5}}, python=PYTHON
    )
    try:
        env.reset(seed=0)
        facts = inspect()
        commands = env.terminal.run("id -u; id -g; ulimit -n; ulimit -c; env").output
        assert not [note for note in env.notes if "terminal." in note]
    finally:
        env.close()
    host, config = facts["HostConfig"], facts["Config"]
    assert host["NetworkMode"] == "none"
    assert [network for network in facts["NetworkSettings"]["Networks"] if network != "none"] == []
    assert config["User"] == "65533:65533" and commands.startswith("1000\n1000\n4096\n0\n")
    assert host["CapDrop"] == ["ALL"] and not host["CapAdd"] and not host["Privileged"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert (host["Memory"], host["MemorySwap"]) == (4 << 30, 4 << 30)
    assert host["PidsLimit"] == 512 and host["NanoCpus"] == 1_500_000_000
    limits = {limit["Name"]: (limit["Soft"], limit["Hard"]) for limit in host["Ulimits"]}
    assert limits == {"nofile": (4096, 4096), "fsize": (2 << 30, 2 << 30), "core": (1, 1)}
    assert host["ReadonlyRootfs"] is True and host["Init"] is True and host["ShmSize"] == 64 << 20
    assert set(host["Tmpfs"]) == {"/testbed", "/tmp", "/dev/shm"}
    assert all(f"size={2 << 30}" in host["Tmpfs"][path].split(",") for path in ("/testbed", "/tmp"))
    assert all({"nosuid", "nodev"} <= set(options.split(",")) for options in host["Tmpfs"].values())
    assert not host["Binds"] and not host.get("Mounts") and not host["Devices"] and not facts["Mounts"]
    assert (host["IpcMode"], host["PidMode"], host["UsernsMode"]) == ("private", "", "")
    assert host["AutoRemove"] and host["LogConfig"]["Type"] == "none"
    assert not [name for name in config["Env"] if "SECRET" in name] and "SECRET" not in commands
    assert config["Labels"].items() >= {"app": "debug-gym", "run": "interactive", "owner": owner()}.items()
    assert int(config["Labels"]["lease"]) > time.time()


def test_stronger_or_equal_settings_are_not_noted(inspect: Inspect, started: Callable[..., DockerTerminal]) -> None:
    terminal = started(
        shm_size="8m", tmp_size="16m", tmpfs=["/var/cache:4m", "/srv"], labels={"team": "a", "number": 3}, pids=64,
        ulimits={"nofile": 256, "fsize": "1g", "nproc": 100}, memory="1g", memswap_limit="1g", user="1234:1234",
        environment={"LANG": "C.UTF-8", "NUMBER": 3}
    )  # fmt: skip
    facts = inspect()
    host = facts["HostConfig"]
    assert host["ShmSize"] == 8 << 20
    assert "size=16777216" in host["Tmpfs"]["/tmp"] and "size=4194304" in host["Tmpfs"]["/var/cache"]
    assert "size=67108864" in host["Tmpfs"]["/srv"] and "uid=1234,gid=1234" in host["Tmpfs"]["/testbed"]
    assert {limit["Name"]: limit["Hard"] for limit in host["Ulimits"]} == {
        "nofile": 256, "fsize": 1 << 30, "core": 1, "nproc": 100,
    }  # fmt: skip
    assert (facts["Config"]["Labels"]["team"], facts["Config"]["Labels"]["number"]) == ("a", "3")
    stream = terminal.open(["/bin/sh", "-c", "id -u; touch here /srv/x /var/cache/x && echo $LANG $NUMBER"])
    assert read_all(stream) == b"1234\nC.UTF-8 3\n"
    assert said(terminal) == []


@pytest.mark.terminals
@pytest.mark.parametrize(
    ("settings", "place", "value", "note"),
    [
        ({"network": "host"}, "NetworkMode", "host", "terminal.network is host: the sandbox can reach the network"),
        ({"cap_add": ["cap_net_raw", "KILL"]}, "CapAdd", ["NET_RAW", "KILL"], "terminal.cap_add has NET_RAW: "),
        ({"no_new_privileges": False}, "SecurityOpt", None, "terminal.no_new_privileges is false: "),
        (
            {"seccomp": "unconfined"},
            "SecurityOpt",
            ["no-new-privileges", "seccomp=unconfined"],
            "terminal.seccomp is unconfined: no system call is refused",
        ),
        ({"read_only": False}, "ReadonlyRootfs", False, "terminal.read_only is false: "),
        ({"memory": "1g", "memswap_limit": "2g"}, "MemorySwap", 2 << 30, "terminal.memswap_limit is 2g: "),
        ({"memswap_limit": -1}, "MemorySwap", -1, "terminal.memswap_limit is -1: "),
        ({"init": False}, "Init", False, "terminal.init is false: "),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)
def test_what_weakens_arrives_and_is_noted(
    inspect: Inspect,
    started: Callable[..., DockerTerminal],
    settings: dict[str, Any],
    place: str,
    value: Any,
    note: str,
) -> None:
    terminal = started(**settings)
    found = inspect()["HostConfig"][place]
    assert sorted(found) == sorted(value) if isinstance(value, list) else found == value or not (found or value)
    assert [line for line in said(terminal) if line.startswith(note)] and len(said(terminal)) <= 2


def test_limits_of_processes_can_be_lifted(inspect: Inspect, started: Callable[..., DockerTerminal]) -> None:
    terminal = started(ulimits={"nofile": 8192, "fsize": -1, "core": "1m"})
    limits = {limit["Name"]: limit["Hard"] for limit in inspect()["HostConfig"]["Ulimits"]}
    assert limits == {"nofile": 8192, "fsize": -1, "core": 1 << 20}
    assert said(terminal) == [
        "terminal.ulimits.nofile is 8192: more than 4096",
        f"terminal.ulimits.fsize is no bound: more than {2 << 30}",
        "terminal.ulimits.core is 1m: more than 1",
    ]
    assert read_all(terminal.open(["/bin/sh", "-c", "ulimit -n; ulimit -f"])) == b"8192\nunlimited\n"


def test_users_of_the_image_and_root(started: Callable[..., DockerTerminal]) -> None:
    root = started(user="root")
    assert said(root) == ["terminal.user is root: commands are root in the container"]
    command = "id -u; touch here && ls here; touch /etc/x || echo read-only; grep CapEff /proc/self/status"
    assert read_all(root.open(["/bin/sh", "-c", command])) == b"0\nhere\nread-only\nCapEff:\t0000000000000000\n"
    named = started(user="nobody")
    assert said(named) == []
    assert read_all(named.open(["/bin/sh", "-c", "id -un; touch here && git init -q . && git status -sb"])) == (
        b"nobody\n## No commits yet on master\n?? here\n"
    )
    with pytest.raises(UsageError, match=r"^terminal\.user: the image has no user somebody; write one of its users"):
        started(user="somebody")


def test_commands_run_where_privileges_may_be_gained(inspect: Inspect) -> None:
    """Our filter of system calls cannot be loaded there, and neither can the kernel keep commands from the guest."""
    session = Session.start(DockerTerminal(image=IMAGE, no_new_privileges=False), SandboxSpec(run="test"))
    try:
        said = session.run("grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'").output
        assert said == "NoNewPrivs:0Seccomp:2"
        assert "seccomp: only the engine's own filter, terminal.no_new_privileges is false" in session.terminal.notes()
        assert any("commands can stop and kill the guest" in note for note in session.guest()["notes"])
    finally:
        session.close()


def test_capabilities_are_root_s(started: Callable[..., DockerTerminal]) -> None:
    terminal = started(user="0:0", cap_add=["CHOWN"])
    assert [line.partition(":")[0] for line in said(terminal)] == ["terminal.cap_add has CHOWN", "terminal.user is 0"]
    command = "touch mine && chown 5:5 mine && stat -c %u mine"
    assert read_all(terminal.open(["/bin/sh", "-c", command])) == b"5\n"


def test_mounts_of_the_host(inspect: Inspect, started: Callable[..., DockerTerminal], tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir(mode=0o777)
        (tmp_path / name).chmod(0o777)
    tmp_path.chmod(0o755)
    (tmp_path / "a" / "file").write_text("of the host\n")
    terminal = started(volumes=[f"{tmp_path}/a:/data", f"{tmp_path}/b:/srv/b:rw"])
    assert sorted((one["Source"], one["Destination"], one["RW"]) for one in inspect()["Mounts"]) == [
        (f"{tmp_path}/a", "/data", False),
        (f"{tmp_path}/b", "/srv/b", True),
    ]
    assert said(terminal) == [
        f"terminal.volumes has {tmp_path}/a: this of the host can be read at /data",
        f"terminal.volumes has {tmp_path}/b: this of the host can be changed at /srv/b",
    ]
    command = "cat /data/file; touch /data/x 2>/dev/null || echo refused; touch /srv/b/x"
    assert read_all(terminal.open(["/bin/sh", "-c", command])) == b"of the host\nrefused\n"
    assert (tmp_path / "b" / "x").exists() and not (tmp_path / "a" / "x").exists()
    with pytest.raises(SandboxError, match="nosuchplace"):
        started(volumes=["/nosuchplace:/data:ro"])
    assert not Path("/nosuchplace").exists()


def test_a_profile_of_system_calls(inspect: Inspect, started: Callable[..., DockerTerminal], tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    rule = {"names": ["chmod", "fchmod", "fchmodat"], "action": "SCMP_ACT_ERRNO"}
    profile.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [rule]}))
    terminal = started(seccomp=str(profile))
    options = inspect()["HostConfig"]["SecurityOpt"]
    assert [json.loads(one.removeprefix("seccomp="))["syscalls"] for one in options if "seccomp=" in one] == [[rule]]
    assert said(terminal) == [
        f"terminal.seccomp is {profile}: it stands for the engine's filter of system calls and ours"
    ]
    assert read_all(terminal.open(["/bin/sh", "-c", "touch x; chmod 700 x 2>&1 | grep -o 'not permitted'"])) == (
        b"not permitted\n"
    )


def test_only_the_default_has_our_filter_too(started: Callable[..., DockerTerminal]) -> None:
    filters = {}
    for value in ("default", "unconfined"):
        stream = started(seccomp=value).open(["/bin/sh", "-c", "grep Seccomp: /proc/self/status"])
        filters[value] = read_all(stream).split()[1]
    assert filters == {"default": b"2", "unconfined": b"0"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"user": "1000:1000:1"}, "user: write a user of the image, UID or UID:GID, as in 1000:1000"),
        ({"user": 65533}, "user: 65533 is kept"),
        ({"cap_add": ["FLY"]}, "cap_add: there is no capability FLY; write it as in SYS_PTRACE, or ALL"),
        ({"seccomp": "off"}, "seccomp: write default, unconfined, or the absolute path of a profile"),
        ({"seccomp": "/nosuchfile"}, "seccomp: the profile cannot be read (No such file or directory)"),
        ({"seccomp": __file__}, "seccomp: the profile is no JSON"),
        ({"memswap_limit": "1g"}, "memswap_limit: it counts memory too: write at least 4g (terminal.memory)"),
        ({"shm_size": "much"}, "shm_size: 'much' is no size; write it as in 512m or 4g"),
        ({"memory": "0"}, "memory: '0' is no size; write it as in 512m or 4g"),
        ({"pids": -1}, "pids: write how many there may be"),
        ({"cpus": 0}, "cpus: write how many there may be"),
        ({"tmp_size": "-1"}, "tmp_size: '-1' is no size"),
        ({"tmpfs": ["cache"]}, "tmpfs: 'cache': write PATH or PATH:SIZE, as in /var/cache:256m"),
        ({"tmpfs": ["/proc/x"]}, "not in /testbed, /proc, /sys, /dev"),
        ({"tmpfs": ["/tmp"]}, "tmpfs: something is mounted at /tmp already (/tmp: tmp_size says how large it is)"),
        ({"tmpfs": ["/a"], "volumes": ["/b:/a"]}, "volumes: something is mounted at /a already"),
        ({"kept": ["/opt/venv"]}, "kept: /opt/venv is not below /testbed; write it as in /testbed/.venv"),
        ({"kept": ["/testbed/../etc"]}, "kept: /testbed/../etc is not below /testbed"),
        ({"ulimits": {"files": 1}}, "ulimits: there is no limit files; there are core, cpu, data"),
        ({"ulimits": {"nofile": "lots"}}, "ulimits: nofile: 'lots' is no size"),
        ({"ulimits": {"nofile": -2}}, "ulimits: nofile: write a number, a size as in 512m, or -1 for no bound"),
        ({"environment": {"A=B": "x"}}, "environment: 'A=B' is no name of a variable"),
        ({"volumes": ["data:/data"]}, "volumes: 'data:/data': write HOST:CONTAINER:ro or :rw, both absolute"),
        ({"volumes": ["/data:/data:rox"]}, "write HOST:CONTAINER:ro or :rw"),
        ({"volumes": ["/data:/testbed/data:ro"]}, "not in /testbed, /proc, /sys, /dev"),
        ({"labels": {"owner": "me"}}, "labels: owner: by this label containers are found and removed"),
        ({"pull_stall": 0}, "pull_stall: say more than 0"),
        ({"pull_stall": float("inf")}, "pull_stall: say a finite number"),
        ({"pull_timeout": "60"}, "pull_timeout: say a number"),
        ({"cpus": float("inf")}, "cpus: say a finite number"),
        ({"read_only": "off"}, "read_only: say true or false"),
        ({"no_new_privileges": 0}, "no_new_privileges: say true or false"),
        ({"init": "no"}, "init: say true or false"),
    ],
    ids=lambda value: json.dumps(value)[:40] if isinstance(value, dict) else None,
)
def test_bad_values_are_answered_in_a_line(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        DockerTerminal(image="any", **settings)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.terminals
def test_a_run_s_record_names_what_weakens(inspect: Inspect, tmp_path: Path) -> None:
    settings = ["network=host", "user=root", "cap_add=[CHOWN]", "read_only=false", f"volumes=['{tmp_path}:/data:ro']"]
    words = [word for setting in (f"image={IMAGE}", *settings) for word in ("-p", f"terminal.{setting}")]
    command = ["run", "mini_nightmare", "--task", "counter", "--agent", "noop_agent", "--terminal", "docker"]
    output = tmp_path / "run"
    ran = debug_gym(*command, *words, "-p", f"env.python={PYTHON}", "-o", str(output))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    notes = json.loads((output / "run.json").read_text())["notes"]
    assert [note.partition(": ")[0] for note in notes if note.startswith("terminal.")] == [
        "terminal.network is host",
        "terminal.cap_add has CHOWN",
        "terminal.read_only is false",
        f"terminal.volumes has {tmp_path}",
        "terminal.user is root",
    ]
    refused = debug_gym(*command, "-p", "terminal.ulimits={files: 1}")
    assert refused.returncode == 2 and "terminal.ulimits: there is no limit files" in refused.stderr


@pytest.fixture
def odd_image(inspect: Inspect) -> Iterator[str]:
    """An image that has a /testbed of its own, for root alone, and a /tmp where only root writes."""
    client, name = connect(), f"debug-gym-test:odd-{os.getpid()}"
    alone = client.create_host_config(network_mode="none")
    command = ["/bin/sh", "-c", "mkdir -m 700 /testbed && chmod 755 /tmp"]
    made = client.create_container(IMAGE, command, host_config=alone)["Id"]
    try:
        client.start(made)
        assert client.wait(made)["StatusCode"] == 0
        client.commit(made, *name.split(":"))
        yield name
    finally:
        client.remove_container(made, force=True)
        if client.images(name):
            client.remove_image(name)
        client.close()


@pytest.mark.parametrize("user", ["1000:1000", "nobody"])
@pytest.mark.parametrize("protects", [False, True])
@pytest.mark.terminals
def test_directories_of_the_image_do_not_matter(odd_image: str, user: str, protects: bool) -> None:
    terminal = DockerTerminal(image=odd_image, user=user)
    with Session.start(terminal, SandboxSpec(run="settings", protects=protects)) as session:
        assert session.run("touch here /tmp/there && ls").output == "here\n"


def test_settings_work_together_in_a_session(started: Callable[..., DockerTerminal]) -> None:
    terminal = DockerTerminal(image=IMAGE, user="root", read_only=False, seccomp="unconfined", init=False)
    with Session.start(terminal, SandboxSpec(run="settings")) as session:
        assert session.run("echo x > /etc/made && cat /etc/made").output == "x\n"


def debug_gym(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([Path(sys.executable).parent / "debug-gym", *words], capture_output=True, text=True)


def read_all(stream: Any) -> bytes:
    return b"".join(iter(lambda: stream.read(1 << 16), b""))
