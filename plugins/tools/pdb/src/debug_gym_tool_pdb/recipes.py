"""The commands that make, tox and nox run, read from their files without running anything."""

from __future__ import annotations

import configparser
import re
import shlex


def make_commands(makefile: str, target: str | None, seen: frozenset[str] = frozenset()) -> list[str]:
    """The commands that a target of a Makefile runs, those of its prerequisites first."""
    lines = re.sub(r"\\\n\s*", " ", makefile).split("\n")
    variables = {
        match[1]: match[2].strip() for line in lines if (match := re.fullmatch(r"(\w+)\s*[:?]?=\s*(.*)", line))
    }
    commands: list[str] = []
    inside = False
    for line in lines:
        if line.startswith("\t"):
            if inside:
                command = line.strip().lstrip("@-+")
                commands.append(re.sub(r"\$[({](\w+)[)}]", lambda one: variables.get(one[1], one[0]), command))
            continue
        match = re.fullmatch(r"([\w./ -]+?)\s*::?(?!=)\s*([^#;]*).*", line)
        if match is None:
            continue
        names = match[1].split()
        if target is None and not names[0].startswith("."):
            target = names[0]
        inside = target in names
        if inside and target is not None:
            for one in match[2].split():
                if one not in seen:
                    commands += make_commands(makefile, one, seen | {target, one})
    return commands


def tox_commands(text: str, chosen: str) -> list[str]:
    """The commands of an environment of tox.ini."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return []
    for section in (f"testenv:{chosen}", "testenv"):
        if parser.has_option(section, "commands"):
            lines = parser.get(section, "commands").replace("\\\n", " ").split("\n")
            return [re.sub(r"\{posargs:?([^}]*)\}", r"\1", line).replace("{envpython}", "python") for line in lines]
    return []


def nox_commands(text: str) -> list[str]:
    """The commands that sessions of a noxfile run, where they are written out."""
    found = []
    for call in re.findall(r"session\.run\(([^()]*)\)", text):
        words = [first or second for first, second in re.findall(r"\"([^\"\\]*)\"|'([^'\\]*)'", call)]
        found.append(shlex.join(words))
    return found
