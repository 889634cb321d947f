"""Prompts as Jinja templates, and the facts of an episode that they may use.

Templates may come from others: they run in Jinja's sandbox, see values and no objects of ours, and a name that is not
there is an error.
"""

from __future__ import annotations

import dataclasses
import json
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from debug_gym_core.errors import ActionError, UsageError
from debug_gym_core.models.service import CHARACTERS
from debug_gym_core.names import nearest
from debug_gym_core.tools import tool
from debug_gym_core.workspace.lines import body_of, show, shown, split

if TYPE_CHECKING:
    import jinja2

    from debug_gym_core.agents.agent import Agent
    from debug_gym_core.agents.history import History
    from debug_gym_core.environment.env import RepoEnv
    from debug_gym_core.tools.observation import Observation

CONTEXT = 32_000
"""Tokens that a model is thought to take when nobody says: what percentages are of."""

TREE_DEPTH = 3
TREE_ENTRIES = 300
VIEWED_LINES = 400
"""How much of the repository a prompt shows at most."""

_ASKING = ("defined", "undefined", "default", "d")
"""Jinja's tests and filters of names that need not be there."""

INLINE = "<template>"
"""What errors call a template that is no file."""


@dataclass(frozen=True)
class Facts:
    """What a template may use, by these names.

    Attributes:
        agent: `name` of the agent and its settings: `max_steps`, `max_rewrites`, `memory_size`, ...
        info: as the environment's `info`: `score`, `max_score`, `resolved`, `breakpoints`, `step`, `tools`
        task: `id`, `description`, `entrypoint` (the command that runs the tests), `debug_entrypoint`, `max_score`
        instructions: what the environment says of the task and its tools
        tools: for each tool that the model is offered now: `name`, `description`, `parameters` (JSON Schema), `usage`
        tree: the repository's files as text
        breakpoints: one line for each breakpoint
        code_in_view: the lines of the file that were last looked at, as they are now; empty before
        last_evaluation: what the tests last showed; empty before
        last_observation: what the last step showed
        history: for each step that is remembered: `action` and `observation`, both text
        rewrites: changes of files so far
    """

    agent: Mapping[str, Any]
    info: Mapping[str, Any]
    task: Mapping[str, Any]
    instructions: str
    tools: Sequence[Mapping[str, Any]]
    tree: str
    breakpoints: Sequence[str]
    code_in_view: str = ""
    last_evaluation: str = ""
    last_observation: str = ""
    history: Sequence[Mapping[str, str]] = ()
    rewrites: int = 0


@dataclass
class Sight:
    """What an agent has seen last: kept over an episode, told of each step.

    Attributes:
        viewed: path and lines (from 1) that were last looked at
        evaluation: what the tests last showed
    """

    viewed: tuple[str, int, int] | None = None
    evaluation: str = ""

    def see(self, observations: Sequence[Observation]) -> None:
        """Keep what the observations of a step show (`env.last_observations`)."""
        for one in observations:
            if one.error:
                continue
            if one.source == "eval":
                self.evaluation = one.text
            if one.source == "view" and {"path", "start", "end"} <= one.data.keys():
                self.viewed = one.data["path"], one.data["start"], one.data["end"]

    def code(self, env: RepoEnv) -> str:
        """The lines that were last looked at, as they are now, numbered."""
        if self.viewed is None:
            return ""
        path, first, last = self.viewed
        try:
            _, found = env.workspace.read_lines(path, first, min(last - first + 1, VIEWED_LINES), 64 * 1024)
        except ActionError:  # gone meanwhile
            return ""
        lines = [show(body_of(line), found.encoding)[0] for line in split(found.data)]
        return "\n".join([shown(path), *(f"{number:>5}  {line}" for number, line in enumerate(lines, first))])


def facts(env: RepoEnv, agent: Agent, sight: Sight | None = None, history: History | None = None) -> Facts:
    """Gather what a template may use.

    Args:
        env: was reset
        agent: who plays
        sight: what it has seen; None: nothing
        history: what it remembers; None: nothing

    Raises:
        SandboxError: the sandbox does not answer
    """
    sight = sight or Sight()
    tools = {name: type(made) for name, made in env.tools.items()}
    return Facts(
        agent={**agent.settings.model_dump(mode="json"), "name": agent.name},
        info=env.info,
        task={
            "id": env.task.id,
            "description": env.task.description.strip(),
            "entrypoint": env.entrypoint,
            "debug_entrypoint": env.debug_entrypoint,
            "max_score": env.max_score,
        },
        instructions=env.instructions(),
        tools=[{**made.schema(), "usage": tool.usage(made)} for made in tools.values()],
        tree=tree(env),
        breakpoints=[str(one) for one in env.breakpoints],
        code_in_view=sight.code(env),
        last_evaluation=sight.evaluation,
        last_observation=env.last_text,
        history=_remembered(history),
        rewrites=env.rewrites,
    )


def tree(env: RepoEnv) -> str:
    """The files of the repository as an indented list, ignored ones left out."""
    entries = env.workspace.list(".", TREE_DEPTH)
    lines = []
    for entry in entries[:TREE_ENTRIES]:
        name = shown(entry.path.rpartition("/")[2]) + ("/" if entry.kind == "directory" else "")
        lines.append("  " * entry.path.count("/") + name + (" (ro)" if entry.readonly else ""))
    if len(entries) > TREE_ENTRIES:
        lines.append(f"[{len(entries) - TREE_ENTRIES} more]")
    return "\n".join(lines)


@dataclass(frozen=True)
class Prompt:
    """A template, ready to be filled in.

    Attributes:
        source: text, or a path that ends in `.jinja`; a file may include others of its directory
        setting: which setting it is, for errors
        limit: tokens that the model takes; None: unknown
    """

    source: str
    setting: str = "system_prompt"
    limit: int | None = None
    _path: Path | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.source.endswith(".jinja") and "\n" not in self.source:
            object.__setattr__(self, "_path", Path(self.source).expanduser())

    def render(self, values: Facts | Mapping[str, Any]) -> str:
        """Fill in the template.

        Args:
            values: by name

        Raises:
            UsageError: the template cannot be read, is no Jinja, uses what is not there, or fails; says where
        """
        import jinja2

        given = (
            {one.name: getattr(values, one.name) for one in dataclasses.fields(values)}
            if isinstance(values, Facts)
            else dict(values)
        )
        try:
            return str(self._template().render(given)).removesuffix("\n")
        except UsageError:  # it cannot be read
            raise
        except jinja2.TemplateSyntaxError as error:
            raise self._is_no_template(error.name or self._name(), error) from error
        except jinja2.TemplateNotFound as error:
            raise UsageError(f"{self.setting}: {self._where(error)}: there is no template {error.name!r}") from error
        except jinja2.UndefinedError as error:
            said = str(error.message)
            name = said.split("'")[1] if said.count("'") == 2 and "is undefined" in said else ""
            hint = nearest(name, list(given)) if name else ""
            raise UsageError(f"{self.setting}: {self._where(error)}: {said}{hint}") from error
        except Exception as error:  # a template is a program of whoever wrote it: it may raise anything
            said = " ".join(str(error).split()) or type(error).__name__
            raise UsageError(f"{self.setting}: {self._where(error)}: {said}") from error

    def check(self) -> None:
        """Make sure that the template is there, is Jinja and uses no other names than facts, before it is needed.

        Names that it asks for, whether they are defined, may be any; what it includes is not looked at.

        Raises:
            UsageError: it is not; says where
        """
        import jinja2
        import jinja2.meta
        from jinja2 import nodes

        environment, text = self._environment(), self._text()
        try:
            environment.compile(text, filename=self._name())
            parsed = environment.parse(text)
            asking = [one for one in parsed.find_all((nodes.Test, nodes.Filter)) if one.name in _ASKING]
            names = jinja2.meta.find_undeclared_variables(parsed)  # which folds what is constant
        except jinja2.TemplateSyntaxError as error:
            raise self._is_no_template(self._name(), error) from error
        except (RecursionError, ValueError) as error:  # nested too deep, or a number too long to be written down
            raise UsageError(f"{self.setting}: {self._name()}: {error}") from error
        known = [one.name for one in dataclasses.fields(Facts)]
        asked = {one.node.name for one in asking if isinstance(one.node, nodes.Name)}
        unknown = names - {*known, *asked, *environment.globals}
        for one in parsed.find_all(nodes.Name):
            if one.name in unknown:
                where = f"{self.setting}: {self._name()}:{one.lineno}"
                raise UsageError(f"{where}: {one.name!r} is undefined{nearest(one.name, known)}")

    def _is_no_template(self, name: str, error: jinja2.TemplateSyntaxError) -> UsageError:
        return UsageError(f"{self.setting}: {name}:{error.lineno}: {error.message}")

    def _environment(self) -> jinja2.Environment:
        import jinja2

        from debug_gym_core.agents.templates import Environment

        directory = self._path.parent if self._path else None
        environment = Environment(
            undefined=jinja2.StrictUndefined,
            loader=jinja2.FileSystemLoader(directory) if directory else None,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        environment.filters["to_pretty_json"] = to_pretty_json
        environment.filters["trim_message"] = self._trim_message
        environment.globals.update(to_pretty_json=to_pretty_json, trim_message=self._trim_message)
        return environment

    def _text(self) -> str:
        """What the template says.

        Raises:
            UsageError: it cannot be read
        """
        if self._path is None:
            return self.source
        try:
            return self._path.read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{self.setting}: {self._path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{self.setting}: {self._path}: not UTF-8: {error.reason}") from error

    def _template(self) -> Any:
        environment = self._environment()
        if self._path is None:
            return environment.from_string(self.source)
        text = self._text()
        code = environment.compile(text, name=str(self._path), filename=str(self._path))
        return environment.template_class.from_code(environment, code, environment.make_globals(None))

    def _trim_message(
        self,
        text: object,
        max_length: int | None = None,
        max_length_percentage: float | None = None,
        where: Literal["start", "middle", "end"] = "middle",
    ) -> str:
        if (max_length is None) == (max_length_percentage is None):
            raise ValueError("trim_message takes max_length (tokens) or max_length_percentage (of the context limit)")
        if max_length is None:
            assert max_length_percentage is not None
            max_length = int((self.limit or CONTEXT) * max_length_percentage)
        return trim_message(str(text), max_length, where)

    def _name(self) -> str:
        return str(self._path) if self._path else INLINE

    def _where(self, error: BaseException) -> str:
        """File and line of the template that was at work, from the traceback, which Jinja writes in its lines."""
        names = {self._name(), INLINE}
        directory = str(self._path.parent) if self._path else None
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if frame.filename in names or (directory and str(Path(frame.filename).parent) == directory):
                return f"{frame.filename}:{frame.lineno}"
        return self._name()


def to_pretty_json(value: Any) -> str:
    """A value as indented JSON, keys in order."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str)


_LEFT_OUT, _SHORT = "[... {} characters left out ...]", "[...]"


def trim_message(text: str, max_length: int, where: Literal["start", "middle", "end"] = "middle") -> str:
    """Shorten a text to about a number of tokens.

    Args:
        text: any text
        max_length: tokens, estimated; the line that says how much is left out counts
        where: which part is left out

    Raises:
        ValueError: `where` is none of these
    """
    if where not in ("start", "middle", "end"):
        raise ValueError(f"trim_message: where is start, middle or end, not {where!r}")
    room = max(0, int(max_length * CHARACTERS))
    if len(text) <= room:
        return text
    longest = len(f"\n{_LEFT_OUT.format(len(text))}\n")
    short = room < 2 * longest  # the long mark would leave less than itself
    kept = max(0, room - (len(_SHORT) if short else longest))
    head = {"start": 0, "middle": kept - kept // 2, "end": kept}[where]
    mark = _SHORT if short else _LEFT_OUT.format(len(text) - kept)
    parts = (text[:head], mark, text[len(text) - (kept - head) :])
    return ("" if short else "\n").join(part for part in parts if part)


def _remembered(history: History | None) -> list[dict[str, str]]:
    steps = []
    for first, *rest in history.steps if history else ():
        calls = [json.dumps(call.as_json(), ensure_ascii=False, default=str) for call in first.calls]
        action = "\n".join([*([first.content] if first.content else []), *calls])
        steps.append({"action": action, "observation": "\n\n".join(message.content for message in rest)})
    return steps
