"""Directives that write the reference from the code: configs, tools, commands, hooks, events, old spellings, errors.

Each makes Markdown of what the code says about itself and lets MyST parse it in place.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import click
import pydantic
from debug_gym_markdown import (
    arguments_table,
    code,
    escaped,
    sentence,
    settings_table,
    signature,
    table,
    with_options,
    yaml_text,
)
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from debug_gym_core import errors, hookspecs
from debug_gym_core.agents.prompts import Facts
from debug_gym_core.cli import COMMANDS, main
from debug_gym_core.components import homes
from debug_gym_core.components.catalogue import Plugins
from debug_gym_core.components.component import Component
from debug_gym_core.components.homes import HOMES
from debug_gym_core.config import spellings
from debug_gym_core.config.model import COMPONENT_SECTIONS, Config
from debug_gym_core.config.text import attribute_help
from debug_gym_core.models.service import ServiceLLM, ServiceSettings
from debug_gym_core.plugins import default_plugins
from debug_gym_core.tools import events
from debug_gym_core.tools.tool import example, usage

OURS = "debug-gym-"
"""How the names of our distributions begin; what else is installed is not documented."""


class Generated(SphinxDirective):
    """Base: Markdown in, nodes out."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Parse what `markdown` writes."""
        self.env.note_reread()  # what it says comes from code, of whose changes Sphinx knows nothing
        text = "\n".join(self.markdown())
        return self.parse_text_to_nodes(text, offset=self.lineno, allow_section_headings=True)

    def markdown(self) -> Iterator[str]:
        """The lines."""
        raise NotImplementedError


class ConfigReference(Generated):
    """A section a heading, a key a row: `{config-reference}`."""

    def markdown(self) -> Iterator[str]:
        """The lines."""
        words = attribute_help(Config)
        plugins = default_plugins()
        for name, field in Config.model_fields.items():
            yield from ("", f"## `{name}`", "", f"{sentence(words[name])}", "")
            model = field.annotation
            if not (inspect.isclass(model) and issubclass(model, pydantic.BaseModel)):
                default = field.get_default(call_default_factory=True)
                yield from (f"Default: {code(yaml_text(default))}", "")
                continue
            yield from settings_table(model)
            kind = COMPONENT_SECTIONS.get(name)
            for component in components(plugins, kind) if kind else ():
                extra = set(component.Settings.model_fields) - set(model.model_fields)
                if extra and not issubclass(component, ServiceLLM):  # whose keys are in `model-reference`
                    yield from ("", f"With `name: {component.name}` also:", "")
                    yield from settings_table(component.Settings, extra)


class ModelReference(Generated):
    """The keys of an entry of llm.yaml, all backends' and each one's own: `{model-reference}`."""

    def markdown(self) -> Iterator[str]:
        """The lines."""
        yield from settings_table(ServiceSettings)
        for component in components(default_plugins(), "llms"):
            extra = set(component.Settings.model_fields) - set(ServiceSettings.model_fields)
            if issubclass(component, ServiceLLM) and extra:
                yield from ("", f"With the tag `{component.tags[0]}` also:", "")
                yield from settings_table(component.Settings, extra)


class ToolReference(Generated):
    """A tool a heading: `{tool-reference}`."""

    def markdown(self) -> Iterator[str]:
        """The lines."""
        for tool in components(default_plugins(), "tools"):
            yield from ("", f"## `{tool.name}`", "", escaped(tool.help()), "")
            yield from ("```text", usage(tool), "```", "")
            yield from arguments_table(tool)
            yield ""
            if call := example(tool):
                yield from ("As a model calls it:", "", "```json", call, "```", "")
            if tool.Settings.model_fields:
                yield from ("Settings:", "")
                yield from settings_table(tool.Settings)


class ComponentReference(Generated):
    """The components of a kind and their words: `{component-reference} agents`."""

    required_arguments = 1

    def markdown(self) -> Iterator[str]:
        """The lines."""
        rows = [(code(one.name), escaped(" ".join(one.help().split()))) for one in self._components()]
        yield from table(("name", "what it is"), rows)

    def _components(self) -> list[type[Component]]:
        return components(default_plugins(), self.arguments[0])


class CommandReference(Generated):
    """Every command with its options and examples: `{command-reference}`."""

    def markdown(self) -> Iterator[str]:
        """The lines."""
        context = click.Context(main, info_name="debug-gym")
        for name in COMMANDS:
            command = main.get_command(context, name)
            assert command is not None
            yield from self._command(command, f"debug-gym {name}")

    def _command(self, command: click.Command, path: str) -> Iterator[str]:
        yield from ("", f"## `{path}`", "")
        if isinstance(command, click.Group):
            yield from (escaped(inspect.cleandoc(command.help or "")), "")
            for name in command.list_commands(click.Context(command)):
                inner = command.get_command(click.Context(command), name)
                assert inner is not None
                yield from self._command(inner, f"{path} {name}")
            return
        context = click.Context(command, info_name=path)
        pieces = " ".join(command.collect_usage_pieces(context))
        yield from (with_options(inspect.cleandoc(command.help or "")), "")
        yield from ("```text", f"{path} {pieces}", "```", "")
        rows = []
        for parameter in command.params:
            record = parameter.get_help_record(context)
            if isinstance(parameter, click.Option) and record is not None:
                rows.append((code(record[0]), with_options(re.sub(r"\s*\[x>=\d+\]", "", record[1]))))
        yield from table(("option", "what it does"), rows)
        if command.epilog:
            yield from ("", "```bash", *(line.strip() for line in command.epilog.strip().splitlines()), "```", "")


class Spellings(Generated):
    """What the original called something, and what it is here: keys of configs, options, agents: `{spellings}`."""

    def markdown(self) -> Iterator[str]:
        """The lines."""
        keys = [(code(old), code(new)) for old, new in spellings.NOW.items()]
        keys += [(code(f"{old}.*"), code(f"{new}.*")) for old, new in spellings.SECTIONS.items()]
        keys += [(code(old), new.removeprefix("is now ")) for old, new in spellings.WORDS.items()]
        yield from ("## Keys", "")
        yield from table(("in the original", "here"), keys)
        yield from ("## Options", "")
        yield from table(("in the original", "here"), [(code(old), new) for old, new in spellings.OPTIONS.items()])
        yield from ("## Agents", "")
        agents = homes.AGENTS.items()
        yield from table(("in the original", "here"), [(code(old), code(new)) for old, new in agents])


class HookReference(Generated):
    """One section a hook, or an event: `{hook-reference} hooks FILE`, `{hook-reference} events FILE`."""

    required_arguments = 2
    option_spec: ClassVar[dict[str, Any]] = {"only": directives.unchanged}

    def markdown(self) -> Iterator[str]:
        """The lines."""
        module = {"hooks": hookspecs, "events": events}[self.arguments[0]]
        prefix = {"hooks": "debug_gym_", "events": "on_"}[self.arguments[0]]
        file = self.arguments[1]
        source = (Path(self.env.srcdir) / file).read_text(encoding="utf-8")
        for name, function in vars(module).items():
            if not name.startswith(prefix) or self.options.get("only", "") not in name:
                continue
            found = re.search(rf"^class (\w+)\b(?:(?!^class ).)*?^    def {name}\(", source, re.MULTILINE | re.DOTALL)
            where = f"{found[1]}.{name}" if found else name
            yield from ("", f"## `{name}`", "", "```python", signature(name, function), "```", "")
            yield from (escaped(inspect.getdoc(function) or ""), "")
            yield from (f"```{{literalinclude}} /{file}", f":pyobject: {where}", ":language: python", "```", "")


class ContractReference(Generated):
    """Contract classes: what an author sets, what each test holds: `{contract-reference} ToolContract ...`."""

    required_arguments = 1
    final_argument_whitespace = True

    def markdown(self) -> Iterator[str]:
        """The lines."""
        from debug_gym_core import testing

        for name in self.arguments[0].split():
            contract = getattr(testing, name)
            words = (inspect.getdoc(contract) or "").partition("Attributes:")[0]
            yield from ("", f"## `{name}`", "", escaped(words.strip()), "", "You set:", "")
            help_of = attribute_help(contract)
            rows = []
            for key, text in help_of.items():
                value = getattr(contract, key, None)
                default = code(yaml_text(value)) if hasattr(contract, key) else "required"
                rows.append((code(key), default, escaped(text)))
            yield from table(("attribute", "default", "what it is"), rows)
            yield from ("It holds:", "")
            tests = [one for cls in reversed(contract.__mro__) for one in vars(cls) if one.startswith("test_")]
            for test in dict.fromkeys(tests):
                title = test.removeprefix("test_").replace("_", " ")
                yield f"- *{title}*: {escaped(' '.join((inspect.getdoc(getattr(contract, test)) or '').split()))}"
            yield ""


class FixtureReference(Generated):
    """The fixtures for tests of plugins: `{fixture-reference}`."""

    def markdown(self) -> Iterator[str]:
        """The lines."""
        from debug_gym_core.testing import fixtures

        found = [(name, thing) for name, thing in vars(fixtures).items() if "ixture" in type(thing).__name__]
        rows = [(code(name), escaped(" ".join((inspect.getdoc(thing) or "").split()))) for name, thing in found]
        yield from table(("fixture", "what it is"), rows)


class ErrorReference(Generated):
    """The errors and the exit status that each ends a command with: `{error-reference}`."""

    def markdown(self) -> Iterator[str]:
        """The lines."""
        rows = []
        for name, cls in vars(errors).items():
            if inspect.isclass(cls) and issubclass(cls, errors.DebugGymError):
                base = cls.__mro__[1].__name__ if cls is not errors.DebugGymError else "Exception"
                words = (inspect.getdoc(cls) or "").split("\n\n")[0]
                rows.append((code(name), code(base), str(cls.exit_status), escaped(" ".join(words.split()))))
        yield from table(("error", "is a", "exit status", "when"), rows)


class PromptVariables(Generated):
    """What a template of a prompt may use: `{prompt-variables}`."""

    def markdown(self) -> Iterator[str]:
        """The lines."""
        rows = [(code(name), escaped(words)) for name, words in attribute_help(Facts).items()]
        yield from table(("name", "what it is"), rows)


def components(plugins: Plugins, kind: str) -> list[type[Any]]:
    """Our own components of a kind: the order of the documentation first, others after it."""
    records = [record for record in plugins.records if record.distribution.startswith(OURS)]
    for record in records:
        if record.state == "failed":
            raise ExtensionError(f"{record} failed, so the reference would be without it: {record.cause}")
    ours = {name for record in records for name in record.provides.get(kind, ())}
    order = [*HOMES[kind], *sorted(ours)]
    return [getattr(plugins, kind)[name] for name in dict.fromkeys(order) if name in ours]


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx of the directives."""
    for name, directive in {
        "config-reference": ConfigReference,
        "model-reference": ModelReference,
        "tool-reference": ToolReference,
        "component-reference": ComponentReference,
        "command-reference": CommandReference,
        "spellings": Spellings,
        "hook-reference": HookReference,
        "contract-reference": ContractReference,
        "fixture-reference": FixtureReference,
        "error-reference": ErrorReference,
        "prompt-variables": PromptVariables,
    }.items():
        app.add_directive(name, directive)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
