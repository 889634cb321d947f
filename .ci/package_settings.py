#!/usr/bin/env python3
"""Print what pip and uv need of this machine to install packages, for a process in another root.

Usage: package_settings.py HOME_INSIDE. One item a line, fields separated by tabs:
`env NAME VALUE`, a variable to set; `bind HERE THERE`, a file or directory to mount read-only. What is read: the
variables PIP_*, UV_* and those that name CA bundles and proxies, pip's and uv's configuration files, and every file
or directory that those name by an absolute path or a file: address.
"""

import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlparse

BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
BUNDLE_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
# Where things are put and which interpreter is used is for the other root to say.
NOT_PASSED = re.compile(
    r"PIP_(CONFIG_FILE|.*CACHE.*|TARGET|PREFIX|ROOT|USER|SRC|LOG|REQUIRE_VIRTUALENV|PYTHON|.*BREAK_SYSTEM.*)"
    r"|UV_(CONFIG_FILE|.*CACHE.*|PROJECT.*|PYTHON.*|TOOL.*|INSTALL.*|WORKING_.*|ENV_FILE|RUN_.*|OFFLINE|FROZEN|LOCKED)"
)


def config_files(home_inside: Path) -> list[tuple[Path, Path]]:
    """Return the configuration files there are, as (here, there)."""
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    inside = home_inside / ".config"
    system = [Path(p) for p in ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "/etc/uv/uv.toml", "/etc/xdg/uv/uv.toml")]
    places = [(path, path) for path in system]
    places += [(config / "pip/pip.conf", inside / "pip/pip.conf"), (config / "uv/uv.toml", inside / "uv/uv.toml")]
    places += [(home / ".pip/pip.conf", home_inside / ".pip/pip.conf")]
    return [(here, there) for here, there in places if here.is_file()]


def named_paths(text: str) -> list[Path]:
    """Return the files and directories that `text` names by file: addresses or absolute paths, and that exist."""
    paths = []
    for word in re.split(r"""[\s,"'\[\]=]+""", text):
        path = unquote(urlparse(word).path) if word.startswith("file:") else word
        if path.startswith("/") and path != "/" and Path(path).exists():
            paths.append(Path(path))
    return paths


def with_siblings(path: Path) -> Path:
    """Return the directory to mount for `path`: a `simple` index refers to files that lie beside it."""
    return path.parent if path.name == "simple" and path.parent != Path("/") else path


def main() -> int:
    """Print variables and mounts."""
    home_inside = Path(sys.argv[1])
    variables: dict[str, str] = {}
    for name, value in os.environ.items():
        installer = re.match(r"(PIP|UV)_", name) and not NOT_PASSED.fullmatch(name)
        if installer or name in BUNDLE_VARIABLES or name.lower() in PROXIES:
            variables[name] = value
    mounts: dict[Path, Path] = {}
    texts = list(variables.values())
    files = config_files(home_inside)
    for variable, there in (("PIP_CONFIG_FILE", Path("/etc/pip.conf.ci")), ("UV_CONFIG_FILE", Path("/etc/uv.toml.ci"))):
        here = Path(os.environ.get(variable) or "/nonexistent")
        if here.is_file():
            files.append((here, there))
            variables[variable] = str(there)
    for here, there in files:
        mounts[there] = here
        lines = here.read_text(encoding="utf-8").splitlines()
        texts += [line for line in lines if not line.lstrip().startswith(("#", ";")) and "cache" not in line]
    if BUNDLE.is_file():
        mounts[BUNDLE] = BUNDLE
    for text in texts:
        for path in named_paths(text):
            mounts[with_siblings(path)] = with_siblings(path)
    for name, value in variables.items():
        if "\n" not in value:
            print("env", name, value, sep="\t")
    for there, here in mounts.items():
        print("bind", here.resolve(), there, sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
