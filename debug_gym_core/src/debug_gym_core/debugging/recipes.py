"""The commands that make, tox and nox run, read from their files without running anything."""

from __future__ import annotations

import configparser
import re
import shlex


def make_commands(makefile: str, target: str | None) -> list[str]:
    """The commands that a target of a Makefile runs, those of its prerequisites first, each target's once."""
    lines = re.sub(r"\\\n\s*", " ", makefile).split("\n")
    variables = {
        match[1]: match[2].strip() for line in lines if (match := re.fullmatch(r"(\w+)\s*[:?]?=\s*(.*)", line))
    }
    prerequisites: dict[str, list[str]] = {}
    commands: dict[str, list[str]] = {}
    names: list[str] = []
    for line in lines:
        if line.startswith("\t"):
            command = line.strip().lstrip("@-+")
            command = re.sub(r"\$[({](\w+)[)}]", lambda one: variables.get(one[1], one[0]), command)
            for name in names:
                commands[name].append(command)
        elif (rule := _rule(line)) is not None:
            names = rule[0]
            if target is None and not names[0].startswith("."):
                target = names[0]
            for name in names:
                commands.setdefault(name, [])
                prerequisites.setdefault(name, []).extend(rule[1])
    found: list[str] = []
    begun: set[str] = set()
    waiting = [] if target is None else [(target, False)]
    while waiting:  # no recursion: a Makefile may be as deep as it likes
        name, is_next = waiting.pop()
        if is_next:
            found += commands.get(name, [])
        elif name not in begun:
            begun.add(name)
            waiting.append((name, True))
            waiting += [(one, False) for one in reversed(prerequisites.get(name, []))]
    return found


def _rule(line: str) -> tuple[list[str], list[str]] | None:
    """The targets and prerequisites of a line of a Makefile; None: it is no rule."""
    targets, colon, rest = line.partition(":")
    rest = rest.removeprefix(":")
    if not colon or rest.startswith("=") or not re.fullmatch(r"\s*[\w./-][\w./ -]*", targets):
        return None
    return targets.split(), re.split("[#;]", rest, maxsplit=1)[0].split()


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
