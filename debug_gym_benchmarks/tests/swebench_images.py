"""Builds Docker images in the layout of SWE-bench's official ones, without a registry and without network.

An image has a Debian below it (`DEBUG_GYM_TEST_IMAGE`), the repository in /testbed, a Python in
/opt/miniconda3/envs/testbed, and as much of conda as the official evaluation scripts call. It is made careless on
purpose: the fix is in the history (a branch, a tag, the reflog, packed objects), as some published images had it.

    swebench_images.py INSTANCE...      for rows of DEBUG_GYM_TEST_SWEBENCH_ROWS
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

BASE = "DEBUG_GYM_TEST_IMAGE"
ROWS = "DEBUG_GYM_TEST_SWEBENCH_ROWS"
PYTHON = "DEBUG_GYM_TEST_SWEBENCH_PYTHON"
REPOSITORIES = {"sympy/sympy": "DEBUG_GYM_TEST_SYMPY", "psf/requests": "DEBUG_GYM_TEST_REQUESTS"}
PACKAGES = {"sympy/sympy": ["mpmath==1.3.0"], "psf/requests": ["pytest==8.3.4", "wheel"]}
"""What `pip install` brings into the environment, with what it needs."""

CACHES = (
    "/root/.cache/pip/http/fixed.py",
    "/opt/miniconda3/pkgs/fixed-99.0/site-packages/fixed/utils.py",
    "/var/tmp/build/utils.py",
)
"""Where the fix lies outside of the repository: pip's cache, and conda's, and what a build left."""

LEAKS = {
    "sympy/sympy": CACHES,
    "psf/requests": (*CACHES, "/opt/miniconda3/lib/python3.11/site-packages/requests/utils.py"),
}
"""The same by repository; of requests, conda itself needs a later release."""

TESTBED = "/opt/miniconda3/envs/testbed"

ACTIVATE = """\
export PATH=/opt/miniconda3/bin:$PATH
conda() {
    [ "$1" = activate ] || return 0
    export CONDA_DEFAULT_ENV=$2 CONDA_PREFIX=/opt/miniconda3/envs/$2
    export PATH=$CONDA_PREFIX/bin:$PATH
}
"""
"""In place of conda's own: what the evaluation scripts ask of it."""

COMMIT = ["-c", "user.name=Someone", "-c", "user.email=someone@example.org", "-c", "commit.gpgsign=false"]


def official_name(instance: str) -> str:
    """What the official image of an instance is called."""
    return f"swebench/sweb.eval.x86_64.{instance.lower().replace('__', '_1776_')}:latest"


def rows() -> dict[str, dict[str, Any]]:
    """The published rows, by instance."""
    lines = Path(os.environ[ROWS]).read_text(encoding="utf-8").splitlines()
    return {row["instance_id"]: row for row in map(json.loads, lines)}


def git(directory: Path, *arguments: str, data: bytes | None = None, **variables: str) -> str:
    """Run git, and insist on success."""
    done = subprocess.run(
        ["git", *COMMIT, *arguments],
        cwd=directory,
        input=data,
        capture_output=True,
        env={**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": str(directory.parent), **variables},
    )
    assert done.returncode == 0, f"git {arguments}: {done.stderr.decode()}"
    return done.stdout.decode().strip()


def checkout(testbed: Path, source: Path, commit: str) -> None:
    """Put a commit of a repository, with its own hash, into a new directory."""
    testbed.mkdir(parents=True)
    git(testbed, "init", "--quiet", "--initial-branch=main")
    allowed = {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "uploadpack.allowAnySHA1InWant",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_CONFIG_KEY_1": "safe.directory",
        "GIT_CONFIG_VALUE_1": "*",
    }
    git(testbed, "fetch", "--quiet", "--depth=1", source.resolve().as_uri(), commit, **allowed)
    git(testbed, "reset", "--quiet", "--hard", commit)


def leak(testbed: Path, fix: bytes) -> None:
    """Leave the fix in the history: packed, on a branch, under a tag, in the reflog, and once more unreachable."""
    base = git(testbed, "rev-parse", "HEAD")
    for name in ("forgotten", "fixed"):
        git(testbed, "checkout", "--quiet", "-b", name, base)
        git(testbed, "apply", "--index", data=fix)
        git(testbed, "commit", "--quiet", "--message", f"{name}: the fix")
    git(testbed, "tag", "v99.0", "fixed")
    git(testbed, "remote", "add", "origin", "https://example.org/upstream.git")
    git(testbed, "update-ref", "refs/remotes/origin/main", "fixed")
    git(testbed, "gc", "--quiet")
    git(testbed, "checkout", "--quiet", "main")
    git(testbed, "branch", "--quiet", "-D", "forgotten")
    git(testbed, "commit", "--quiet", "--allow-empty", "--all", "--message", "SWE-bench")  # as the official images have


def environment(place: Path, python: Path, packages: Sequence[str]) -> None:
    """Copy a Python, and install packages into the copy."""
    assert not (python / "pyvenv.cfg").exists(), (
        f"{PYTHON}: {python} is a virtual environment; name its Python's prefix"
    )
    shutil.copytree(python, place, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "test", "*.a"))
    executable = place / "bin" / "python3"
    variables = {**os.environ, "LD_LIBRARY_PATH": str(place / "lib"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [executable, "-I", "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-compile"]
    done = subprocess.run([*command, *packages], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for script in (place / "bin").iterdir():  # they name where they were installed
        data = script.read_bytes() if script.is_file() and not script.is_symlink() else b""
        if data.startswith(b"#!") and b"python" in data.partition(b"\n")[0]:
            _, _, rest = data.partition(b"\n")
            script.write_bytes(f"#!{TESTBED}/bin/python3\n".encode() + rest)


def build(
    name: str, base: str, testbed: Path, *, python: Path | None = None, more: Mapping[str, str] | None = None
) -> None:
    """Build an image.

    Args:
        name: what to call it
        base: the image below
        testbed: the repository
        python: the environment's directory; None: a link to the base's own virtual environment
        more: files to add, text by absolute path
    """
    with tempfile.TemporaryDirectory(prefix="debug-gym-swebench-", dir=testbed.parent) as scratch:
        root = Path(scratch) / "root"
        own = {"/opt/miniconda3/bin/activate": ACTIVATE}
        if python is not None:
            own["/etc/ld.so.conf.d/testbed.conf"] = f"{TESTBED}/lib\n"
        for path, text in {**own, **(more or {})}.items():
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        environments = root / "opt/miniconda3/envs"
        environments.mkdir(parents=True)
        if python is None:
            (environments / "testbed").symlink_to("/opt/debug-gym-test/venv")
        else:
            shutil.move(python, environments / "testbed")
        testbed.rename(root / "testbed")
        linked = "" if python is None else "RUN ldconfig\n"
        (Path(scratch) / "Dockerfile").write_text(f"FROM {base}\nCOPY root /\n{linked}WORKDIR /testbed\n")
        _docker_build(Path(scratch), name)


def build_of(base: str, context: Path, tag: str, files: Mapping[str, str], commands: str) -> None:
    """Build an image of files and what is run then in /testbed.

    Args:
        base: the image below
        context: an empty directory
        tag: what to call it
        files: text by absolute path
        commands: of a shell
    """
    for path, text in files.items():
        target = context / "root" / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (context / "Dockerfile").write_text(f"FROM {base}\nCOPY root /\nWORKDIR /testbed\nRUN {commands}\n")
    _docker_build(context, tag)


def _docker_build(context: Path, tag: str) -> None:
    """Build the image of a directory's Dockerfile, without a network."""
    options = ["--quiet", "--no-cache", "--network=none", "--pull=false", "--force-rm"]
    command = ["docker", "build", *options, "--tag", tag, context]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "DOCKER_BUILDKIT": "0"})
    assert done.returncode == 0, done.stdout + done.stderr


def added_line(fix: str) -> str:
    """The longest line that a patch adds: who finds it has found the fix."""
    return max((line[1:].strip() for line in re.findall(r"^\+(?!\+\+).*", fix, re.MULTILINE)), key=len)


def make(row: Mapping[str, Any]) -> str:
    """Build the image of a published row, unless it is there; returns its name."""
    name = official_name(row["instance_id"])
    if subprocess.run(["docker", "image", "inspect", name], capture_output=True).returncode == 0:
        return name
    with tempfile.TemporaryDirectory(prefix="debug-gym-swebench-") as scratch:
        testbed, python = Path(scratch) / "testbed", Path(scratch) / "python"
        checkout(testbed, Path(os.environ[REPOSITORIES[row["repo"]]]), row["base_commit"])
        leak(testbed, row["patch"].encode())
        environment(python, Path(os.environ[PYTHON]), PACKAGES[row["repo"]])
        build(name, os.environ[BASE], testbed, python=python, more=dict.fromkeys(LEAKS[row["repo"]], row["patch"]))
    return name


if __name__ == "__main__":
    for instance in sys.argv[1:]:
        print(make(rows()[instance]))
