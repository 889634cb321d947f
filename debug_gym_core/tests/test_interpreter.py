"""Finding and probing interpreters, with real ones."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from debug_gym_core.config.loading import load
from debug_gym_core.errors import RequirementError, UsageError
from debug_gym_core.sandbox.interpreter import Interpreter, probe, trace
from debug_gym_core.sandbox.pythons import find, passed_over
from debug_gym_core.sandbox.requirements import missing, require


@pytest.fixture(autouse=True)
def no_environment_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("VIRTUAL_ENV", "PYENV_ROOT", "PYENV_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def environment(place: Path, **options: bool) -> Path:
    venv.create(place, symlinks=True, **options)
    return place / "bin" / "python"


def site_packages(place: Path) -> Path:
    return next((place / "lib").glob("python*/site-packages"))


def install(place: Path, name: str, version: str) -> None:
    (site_packages(place) / f"{name}-{version}.dist-info").mkdir()


def script(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(0o755)
    return place


def test_probe_says_what_the_interpreter_is() -> None:
    interpreter = probe(sys.executable)
    assert interpreter.version == sys.version_info[:3]
    assert interpreter.prefix == Path(sys.prefix)
    assert interpreter.base_prefix == Path(sys.base_prefix)
    assert interpreter.magic == importlib.util.MAGIC_NUMBER.hex()
    assert interpreter.packages["pytest"] == pytest.__version__
    assert interpreter.executable == Path(sys.executable)


def test_a_path_through_another_directory_is_made_plain(tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    (tmp_path / "elsewhere").mkdir()
    assert probe(tmp_path / "elsewhere" / ".." / "env" / "bin" / "python").executable == python


def test_probe_runs_once_until_something_changes(tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    first = probe(python)
    assert probe(python) is first
    install(tmp_path / "env", "Some_Thing", "1.0")
    assert probe(python).packages == {"some-thing": "1.0"}


def test_probe_does_not_see_the_hosts_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert probe(environment(tmp_path / "env")).version == sys.version_info[:3]


def test_probe_survives_what_site_prints(tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    (site_packages(tmp_path / "env") / "noisy.pth").write_text("import sys; sys.stdout.write('noise {}[]\\n')\n")
    assert probe(python).version == sys.version_info[:3]


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        (None, UsageError, "there is no interpreter"),
        ("#!/bin/sh\nexit 0\n", UsageError, "is no Python"),
        ("#!/bin/sh\necho broken library >&2; exit 127\n", RequirementError, "does not start: broken library"),
        ("#!/bin/sh\necho 'debug-gym-interpreter:[3, 5]'\n", RequirementError, "is Python 3.5; at least 3.6 is needed"),
        ("#!/bin/sh\nkill -9 $$\n", UsageError, "is no Python"),
        ("#!/nonexistent\n", RequirementError, "does not start"),
    ],
)
def test_what_is_no_interpreter_is_said_so(tmp_path: Path, text: str | None, error: type[Exception], says: str) -> None:
    path = tmp_path / "python"
    if text is not None:
        script(path, text)
    with pytest.raises(error, match=says) as raised:
        probe(path)
    assert str(path) in str(raised.value)


def test_broken_environment_names_what_its_link_points_to(tmp_path: Path) -> None:
    python = environment(tmp_path / "repo" / ".venv")
    python.unlink()
    python.symlink_to("/nonexistent/python3")
    with pytest.raises(RequirementError, match="link to /nonexistent/python3, which is not there"):
        find(tmp_path / "repo")


def test_broken_environments_that_are_passed_over_are_named(tmp_path: Path) -> None:
    assert passed_over(tmp_path) == []
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to("/nonexistent/python3")
    (tmp_path / "venv").symlink_to("/nonexistent/venv")
    assert find(tmp_path).executable == Path(sys.executable)
    assert passed_over(tmp_path) == [
        ".venv/bin/python of the repository is a link to /nonexistent/python3, which is not there",
        "venv of the repository is a link to /nonexistent/venv, which is not there",
    ]
    (tmp_path / ".venv/bin/python").unlink()
    environment(tmp_path / ".venv")
    assert passed_over(tmp_path) == []


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.13"])
def test_other_versions(version: str) -> None:
    versions = Path(pwd.getpwuid(os.getuid()).pw_dir, ".pyenv", "versions")
    installed = sorted(versions.glob(f"{version}.*")) if os.access(versions, os.R_OK) else []
    if not installed:
        pytest.skip(f"Python {version} is not here: pyenv install {version}")
    if version == "2.7":
        with pytest.raises(RequirementError, match=r"Python 2\.7"):
            probe(installed[0] / "bin" / "python")
    else:
        interpreter = probe(installed[0] / "bin" / "python")
        assert ".".join(map(str, interpreter.version[:2])) == version
        assert "pip" in interpreter.packages


def test_order_of_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    repository.mkdir()
    (repository / "venv").mkdir()  # a directory of that name that is no virtual environment
    assert find(repository).executable == Path(sys.executable)

    pyenv = tmp_path / "pyenv"
    environment(pyenv / "versions" / "3.99.2")
    environment(pyenv / "versions" / "3.99.10")
    monkeypatch.setenv("PYENV_ROOT", str(pyenv))
    (repository / ".python-version").write_text("# for the tests\n3.99  # newest\n")
    for other in ("3.99.11rc2", "3.99.10-mine", "3.99.10.dev"):  # not released, and somebody's environment
        environment(pyenv / "versions" / other)
    assert find(repository).prefix == pyenv / "versions" / "3.99.10"

    environment(tmp_path / "active")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert find(repository).prefix == tmp_path / "active"

    environment(repository / ".venv")
    assert find(repository).prefix == repository / ".venv"

    environment(tmp_path / "named")
    for explicit in (tmp_path / "named", tmp_path / "named" / "bin" / "python"):
        assert find(repository, str(explicit)).prefix == tmp_path / "named"
    assert find(repository, "3.99.2").prefix == pyenv / "versions" / "3.99.2"


def test_what_pyenv_does_not_start_is_looked_for_among_its_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyenv = tmp_path / "pyenv"
    said = "pyenv: python3.99: command not found\n\nNote: See 'pyenv help global' for tips."
    script(pyenv / "shims" / "python3.99", f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nexit 127\n")
    monkeypatch.setenv("PATH", f"{pyenv / 'shims'}:{os.environ['PATH']}")
    monkeypatch.setenv("PYENV_ROOT", str(pyenv))
    with pytest.raises(RequirementError, match=r"python3\.99 does not start: pyenv: python3\.99: command not found$"):
        find(tmp_path, "python3.99")
    environment(pyenv / "versions" / "3.99.2")
    assert find(tmp_path, "python3.99").prefix == pyenv / "versions" / "3.99.2"


def copied(place: Path) -> None:
    """An environment whose Python is a file of its own, with code that it loads when it starts."""
    venv.create(place, symlinks=False)
    install(place, "tinything", "1.5")


def linked(place: Path) -> None:
    environment(place)
    install(place, "tinything", "1.5")


@pytest.mark.parametrize("make", [linked, copied])
@pytest.mark.parametrize("how", ["found", "active", "named"])
def test_an_environment_of_the_repository_is_read_and_not_run(
    make: Callable[[Path], None], how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repo"
    place = repository / (".venv" if how == "found" else "environment")
    make(place)
    (site_packages(place) / "x.pth").write_text(f"import os; open({str(tmp_path / 'ran')!r}, 'w')\n")
    if how == "active":
        monkeypatch.setenv("VIRTUAL_ENV", str(place))
    interpreter = find(repository, str(place) if how == "named" else None)
    assert not (tmp_path / "ran").exists()
    told = probe(place / "bin/python")
    assert (tmp_path / "ran").exists()  # had it been run, this would have been there
    for name in ("executable", "prefix", "base_prefix", "version", "magic", "packages", "editable", "site", "exposed"):
        assert getattr(interpreter, name) == getattr(told, name), name


@pytest.mark.parametrize("config", ["home = {repo}/bin", "home = /nonexistent", "home = \0", "", "home = ../bin"])
@pytest.mark.parametrize("python", ["script", "link within", "link to a program", "link to another checkout"])
def test_a_program_of_the_repository_is_not_run(tmp_path: Path, config: str, python: str) -> None:
    repository = tmp_path / "checkout" / "repo"
    (tmp_path / "checkout" / ".git").mkdir(parents=True)
    text = f"#!/bin/sh\ntouch {tmp_path}/ran\n"
    for name in ("repo/bin/python3", "other/python3"):
        script(tmp_path / "checkout" / name, text)
    script(tmp_path / "elsewhere" / "tool", text)
    place = repository / ".venv" / "bin" / "python"
    place.parent.mkdir(parents=True)
    (repository / ".venv" / "pyvenv.cfg").write_text(config.format(repo=repository))
    if python == "script":
        script(place, text)
    else:
        ends = {"link within": "../../bin/python3", "link to a program": tmp_path / "elsewhere" / "tool"}
        place.symlink_to(ends.get(python, "../../../other/python3"))
    with pytest.raises(RequirementError, match=r"not run outside of a sandbox.*env\.python"):
        find(repository)
    assert not (tmp_path / "ran").exists()


def test_an_environment_that_cannot_be_understood_does_no_harm(tmp_path: Path) -> None:
    place = tmp_path / "repo" / ".venv"
    environment(place)
    site = site_packages(place)
    os.mkfifo(site / "a.pth")
    (site / "b.pth").write_bytes(b"\xff\0\nimport deep\nimport pipe\nimport ../outside\n" + b"/nonexistent\n" * 9)
    (site / "deep.py").write_text("x = " + "-" * 200_000 + "1")
    os.mkfifo(site / "pipe.py")
    (site / "c.pth").mkdir()
    assert find(tmp_path / "repo").editable == ()


def test_a_pin_is_a_version_and_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "bin" / "uv", f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.defpath}")
    (tmp_path / ".python-version").write_text("--offline\n..\n")
    assert find(tmp_path).executable == Path(sys.executable)
    assert not (tmp_path / "asked").exists()


def test_pin_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".python-version").write_text("3.98\n")
    monkeypatch.setenv("PATH", os.defpath)
    with pytest.raises(RequirementError, match=r"uv python install 3\.98"):
        find(tmp_path)
    with pytest.raises(UsageError, match=r"uv python install 3\.98"):
        find(tmp_path, "3.98")


def test_unknown_command_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no command 'no-such-python'"):
        find(tmp_path, "no-such-python")


def test_script_that_starts_an_interpreter_stands_for_it(tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    shim = script(tmp_path / "shims" / "python", f'#!/bin/sh\nexec {python} "$@"\n')
    assert probe(shim).executable == python


def test_missing_distributions_are_named_with_the_command(tmp_path: Path) -> None:
    install_at = tmp_path / "env"
    python = environment(install_at)
    install(install_at, "Zope.Interface", "5.4")
    interpreter = probe(python)
    assert missing(interpreter, ["zope-interface", "zope_interface>=5", "zope.interface<5", "pytest"]) == [
        "zope.interface<5",
        "pytest",
    ]
    require(interpreter, ["zope.interface"])
    with pytest.raises(RequirementError) as raised:
        require(interpreter, ["pytest", "pandas>=2"])
    assert str(raised.value) == (
        f"the interpreter {python} has no pytest, pandas>=2; get them with: {python} -m pip install pytest 'pandas>=2'"
        f" (or uv pip install -p {python} pytest 'pandas>=2')"
    )
    with pytest.raises(UsageError, match="no requirement"):
        missing(interpreter, ["not a name!"])


def test_editable_installs_of_all_kinds(tmp_path: Path) -> None:
    python = environment(tmp_path / "env")
    packages = site_packages(tmp_path / "env")
    for name in ("plain", "mapped/src/mapped", "link"):
        (tmp_path / name).mkdir(parents=True)
    (packages / "_plain.pth").write_text(f"{tmp_path}/plain\n# a comment\n/nonexistent\n\n")
    (packages / "easy-install.pth").write_text(f"{tmp_path}/link\n")
    (packages / "__editable__.mapped-1.0.pth").write_text("import __editable___mapped_1_0_finder; it.install()\n")
    (packages / "__editable___mapped_1_0_finder.py").write_text(
        f"MAPPING: dict[str, str] = {{'mapped': {str(tmp_path / 'mapped/src/mapped')!r}}}\ndef install(): pass\n"
    )
    assert set(probe(python).editable) == {tmp_path / "plain", tmp_path / "link", tmp_path / "mapped/src/mapped"}


def test_exposed_is_the_environment_its_base_and_the_links_between(tmp_path: Path) -> None:
    base = tmp_path / "pythons" / "cpython-3.1.2"
    environment(base)
    (tmp_path / "pythons" / "cpython-3.1").symlink_to("cpython-3.1.2")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("../pythons/cpython-3.1/bin/python")
    interpreter = Interpreter(
        executable=tmp_path / "bin" / "python",
        prefix=tmp_path / "pythons" / "cpython-3.1",
        base_prefix=Path("/usr"),
        version=(3, 12, 0),
        magic="",
        packages={},
    )
    assert {path for path in interpreter.exposed if path.is_relative_to(tmp_path)} == {
        tmp_path / "bin" / "python",
        tmp_path / "pythons" / "cpython-3.1",
        base,
    }


def test_exposed_of_a_prefix_that_holds_other_things_is_its_python_only(tmp_path: Path) -> None:
    home = Path.home()
    for name in ("bin", "lib", "Documents", ".ssh"):
        (home / name).mkdir(parents=True)
    interpreter = Interpreter(home / "bin" / "python", home, Path("/"), (3, 12, 0), "", {})
    assert set(interpreter.exposed) == {home / "bin", home / "lib"}


def test_exposed_of_the_system_is_empty() -> None:
    system = Path("/usr/bin/python3")
    if not system.exists():
        pytest.skip("there is no /usr/bin/python3")
    assert probe(system).exposed == ()


def test_trace_follows_every_link(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_text("")
    (tmp_path / "one").symlink_to("a")
    (tmp_path / "a" / "two").symlink_to(tmp_path / "one" / "b" / ".." / "b")
    known: dict[str, str | None] = {}
    links, real = trace(tmp_path / "one" / "two" / "file", known)
    assert trace(tmp_path / "one" / "two" / "file", known) == trace(tmp_path / "one" / "two" / "file") == (links, real)
    assert trace(tmp_path.joinpath("one", *[".."] * len(tmp_path.parts), "usr"), known)[1] == Path("/usr")
    assert set(links) >= {tmp_path / "one", tmp_path / "a" / "two"}
    assert real == (tmp_path / "one" / "two" / "file").resolve()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="too many"):
        trace(tmp_path / "loop")


def test_import_is_light() -> None:
    code = "import sys, debug_gym_core.sandbox.pythons, debug_gym_core.sandbox.requirements\n"
    code += "print(any(name in sys.modules for name in ('pydantic', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_a_home_that_is_no_directory_is_not_shown(tmp_path: Path) -> None:
    place = tmp_path / "repo" / ".venv"
    environment(place)
    (tmp_path / "key").write_text("secret")
    config = (place / "pyvenv.cfg").read_text().splitlines()
    lines = [line for line in config if not line.startswith("home")]
    (place / "pyvenv.cfg").write_text("\n".join([f"home = {tmp_path / 'key'}", *lines]))
    assert tmp_path / "key" not in find(tmp_path / "repo").exposed


@pytest.mark.parametrize("target", ["../../../../python3", "/proc/self/cwd/../python3"])
def test_a_program_that_came_beside_the_repository_is_not_run(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "python3", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    place = tmp_path / "archive" / "repo" / ".venv" / "bin" / "python"
    place.parent.mkdir(parents=True)
    (place.parent.parent / "pyvenv.cfg").write_text("")
    place.symlink_to(target)
    monkeypatch.chdir(tmp_path / "archive")
    with pytest.raises(RequirementError, match=r"not run outside of a sandbox"):
        find(tmp_path / "archive" / "repo")
    assert not (tmp_path / "ran").exists()


def test_a_pin_names_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "bin" / "uv", f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.defpath}")
    (tmp_path / ".python-version").write_text("reboot\n")  # uv starts what is called so
    with pytest.raises(RequirementError, match="asks for Python reboot, which is not installed"):
        find(tmp_path)
    assert not (tmp_path / "asked").exists()


def test_a_pin_that_nobody_writes_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".python-version")
    assert find(tmp_path).executable == Path(sys.executable)


@pytest.mark.parametrize("word", ["3.99", "python3"])
def test_a_version_or_command_is_no_file_of_that_name(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / word / "bin" / "python", f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.defpath)
    assert str(load("repo", [f"env.python='{word}'"]).env.python) == word
    with contextlib.suppress(UsageError):
        find(tmp_path, word)
    assert not (tmp_path / "ran").exists()
