"""`debug-gym llm`: the models of llm.yaml, written, listed and tried."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from debug_gym_core.cli import Command, guarded, prepare_streams, say_error
from debug_gym_core.cli.options import common, llm_config

if TYPE_CHECKING:
    from rich.table import Table

    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.llm_yaml import Models
    from debug_gym_core.errors import DebugGymError

SPARE = ("context", "$ in/out", "backend", "model")
"""Columns of the list that are left out first on a narrow terminal."""

STATE = 20
"""Columns that what is wrong with a model has at least, before others are left out."""

TEMPLATE = """\
# The language models of debug-gym: one entry per model, chosen with --llm NAME.
# Keys: write ${VARIABLE} to take one from the environment, so that none is in this file.
# Try an entry with one tiny request: debug-gym llm check NAME

gpt-4o:
  model: gpt-4o                     # what the service calls it
  tags: [openai]                    # the backend: openai, azure openai, anthropic, vllm
  api_key: ${OPENAI_API_KEY}
  context_limit: 128                # thousands of tokens
  prices: {prompt: 2.5, completion: 10.0, cached: 1.25}   # dollars a million tokens; look up today's

# gpt-5:
#   model: gpt-5
#   tags: [openai]
#   api: responses                  # or chat (the default)
#   api_key: ${OPENAI_API_KEY}

# gpt-4o-azure:
#   model: gpt-4o                   # the deployment's name
#   tags: [azure openai]
#   endpoint: https://YOUR-RESOURCE.openai.azure.com
#   api_version: "2024-10-21"
#   api_key: ${AZURE_OPENAI_API_KEY}
#   # or without a key, by `az login` or a managed identity:
#   # scope: https://cognitiveservices.azure.com/.default

# claude:
#   model: claude-sonnet-4-5
#   tags: [anthropic]
#   api_key: ${ANTHROPIC_API_KEY}
#   context_limit: 200
#   prices: {prompt: 3.0, completion: 15.0, cached: 0.3, written: 3.75}

# qwen:                             # a model that you serve yourself, as with vLLM
#   model: Qwen/Qwen3-Coder-30B-A3B-Instruct
#   tags: [vllm]
#   endpoint: http://localhost:8000/v1
#   api_key: none
#   context_limit: 32
#   prices: {prompt: 0, completion: 0}
"""


@click.group("llm")
def command() -> None:
    """Write, list and check the language models of llm.yaml.

    The file is the one of --llm-config, else of $LLM_CONFIG_FILE_PATH, else ~/.config/debug_gym/llm.yaml.
    """


@command.command(
    "init",
    cls=Command,
    epilog="""
    debug-gym llm init
    debug-gym llm init . && export LLM_CONFIG_FILE_PATH=$PWD/llm.yaml
    """,
)
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("-f", "--force", is_flag=True, help="Write over a file that is there.")
def init(directory: Path | None, force: bool) -> None:
    """Write an llm.yaml to start from, in DIR or where it is looked for.

    Only you can read the file. One that is there is left as it is, unless --force.
    """
    from debug_gym_core.config.llm_yaml import DEFAULT, VARIABLE
    from debug_gym_core.errors import UsageError
    from debug_gym_core.places import expanded

    path = directory / "llm.yaml" if directory else expanded(Path(os.environ.get(VARIABLE) or DEFAULT), VARIABLE)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL), 0o600)
        if force and stat.S_ISREG(os.fstat(descriptor).st_mode):
            with contextlib.suppress(OSError):  # another's, or of a file system without modes
                os.fchmod(descriptor, 0o600)  # one that was there may have been for all to read
    except FileExistsError:
        raise UsageError(f"{path} is there already; edit it, or write over it with --force") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(TEMPLATE)
    click.echo(f"{path}: edit it, then try an entry: debug-gym llm check gpt-4o")


@command.command(
    "list",
    cls=Command,
    epilog="""
    debug-gym llm list
    debug-gym llm list --llm-config my/llm.yaml --json
    """,
)
@llm_config
@click.option("--json", "as_json", is_flag=True, help="Write a JSON array, an object per model.")
@common()
def list_(llm_config: Path | None, as_json: bool, plugins: Plugins, verbose: int) -> int:
    """List the models of llm.yaml, and what each lacks.

    The exit status is 2 when an entry is wrong; a key or package that is missing is only shown.
    """
    from debug_gym_core.config.llm_yaml import read_models
    from debug_gym_core.errors import UsageError

    models = read_models(llm_config)
    looked_at = [_row(models, name, plugins) for name in models.names]
    rows = [row for row, _ in looked_at]
    status = max((error.exit_status for _, error in looked_at if isinstance(error, UsageError)), default=0)
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return status
    if not rows:
        click.echo(_without_models(models))
        return status
    from debug_gym_core.cli.tables import make_console, show_table

    console = make_console()
    click.echo(f"{models.path}:")
    show_table(_table(rows, models.path, console.width), console)
    return status


def _table(rows: Sequence[Mapping[str, Any]], path: Path | None, width: int) -> Table:
    """The table of models; where there is little room, without what one can do without, and no figure is cut."""
    from debug_gym_core.cli.tables import new_table, without_spared

    columns: dict[str, list[str]] = {name: [] for name in ("name", "backend", "model", "context", "$ in/out", "state")}
    for row in rows:
        prices, limit = row["prices"] or {}, row["context_limit"]
        context = f"{limit:g}k" if limit else ""
        cost = f"{prices.get('prompt')}/{prices.get('completion')}" if prices else ""
        # The file's name was written above the table, its lines are what differs.
        state = (row["problem"] or "ready").replace(f"{path}:", "line ", 1)
        cells = (row["name"], row["backend"] or "", row["model"] or "", context, cost, state)
        for cells_of_one, cell in zip(columns.values(), cells, strict=True):
            cells_of_one.append(cell)
    widths = {name: max(map(len, (name, *cells))) for name, cells in columns.items()}
    widths["state"] = min(widths["state"], STATE)  # of a problem more is wrapped
    shown = without_spared(widths, SPARE, width)
    table = new_table()
    for name in shown:
        table.add_column(name, no_wrap=name not in ("name", "state"), overflow="fold")
    for number in range(len(rows)):
        table.add_row(*(columns[name][number] for name in shown))
    return table


@command.command(
    "check",
    cls=Command,
    epilog="""
    debug-gym llm check
    debug-gym llm check gpt-4o
    """,
)
@click.argument("name", metavar="[NAME]", required=False)
@llm_config
@common()
def check(name: str | None, llm_config: Path | None, plugins: Plugins, verbose: int) -> int:
    """Send a model, or each of llm.yaml, one tiny request, and say what is wrong when it fails.

    The request has a tool, so that it also shows whether the model calls tools. It costs about a hundred tokens.
    Of several that fail the exit status is the highest.
    """
    from debug_gym_core.config.llm_yaml import read_models, unknown
    from debug_gym_core.errors import DebugGymError, RequirementError
    from debug_gym_core.models.service import ServiceLLM

    models = read_models(llm_config)
    if name is None:
        if not models.names:
            raise RequirementError(_without_models(models))
        status = 0
        for one in models.names:
            try:
                _ask(models, one, plugins)
            except DebugGymError as error:
                say_error(str(error))
                status = max(status, error.exit_status)
        return status
    if name not in models.names:
        backend = plugins.llms.get(name)
        if backend is not None and not issubclass(backend, ServiceLLM):
            click.echo(f"{name} asks no service: it needs no entry in llm.yaml, and there is nothing to check")
            return 0
        raise unknown(name, models, plugins)
    _ask(models, name, plugins)
    return 0


def _ask(models: Models, name: str, plugins: Plugins) -> None:
    """Send the model of an entry the request, and write what it took.

    Raises:
        DebugGymError: it fails
    """
    from debug_gym_core.components.component import blamed
    from debug_gym_core.errors import DebugGymError, ToolsRefused
    from debug_gym_core.models.llm import Completion, Message, completed
    from debug_gym_core.models.service import ServiceLLM
    from debug_gym_core.names import begins_with

    llm = models.make(name, plugins, {})
    messages = [Message("system", "You test a connection."), Message("user", 'Call the tool `ready` with word "yes".')]
    tools = [_READY] if not isinstance(llm, ServiceLLM) or llm.settings.function_calling else []
    try:
        with contextlib.closing(llm):
            if isinstance(llm, ServiceLLM):
                with blamed(type(llm), "find what it needs"):
                    llm.prepare()  # which imports the SDK
            started = time.monotonic()
            once = llm.ask if isinstance(llm, ServiceLLM) else llm.complete

            def ask(messages: list[Message], tools: list[dict[str, Any]]) -> Completion:
                with blamed(type(llm), "answer"):
                    return completed(llm, once(messages, tools), once.__name__)

            try:
                answer = ask(messages, tools)
            except ToolsRefused as refusal:
                click.echo(f"note: {refusal}")
                tools = []
                answer = ask([*messages[:1], Message("user", "Say that you are ready.")], tools)
    except DebugGymError as error:
        said = str(error)
        named = said if begins_with(said, name) else f"{name}: {said}"
        error.args = (f"{models.layer.origin((name,))}: {named}",)
        raise
    usage = llm.priced_usage(answer.usage) if isinstance(llm, ServiceLLM) else answer.usage
    seconds = time.monotonic() - started
    tokens = f"{usage.prompt} + {usage.completion} tokens"
    cost = f", ${usage.cost:.6f}" if usage.cost else ""
    click.echo(f"{name} answered in {seconds:.1f} s ({tokens}{cost})")
    if tools and not answer.message.calls:
        said = " ".join(answer.message.content.split())[:60]
        mend = "where it never does, say function_calling: false in its entry"
        click.echo(f"note: it called no tool but said {said!r}; {mend}")


_READY = {
    "name": "ready",
    "description": "Tell that you are ready.",
    "parameters": {
        "type": "object",
        "properties": {"word": {"type": "string", "description": "yes or no"}},
        "required": ["word"],
        "additionalProperties": False,
    },
}


_SHOWN = ("model", "endpoint", "context_limit", "prices", "tags")
"""What is shown of an entry."""


def _without_models(models: Models) -> str:
    from debug_gym_core.config.llm_yaml import DEFAULT

    if models.path:
        return f"{models.path} has no models; debug-gym llm init writes one to start from"
    return f"there is no {DEFAULT}; debug-gym llm init writes one to start from, --llm-config FILE takes another"


def _row(models: Models, name: str, plugins: Plugins) -> tuple[dict[str, Any], DebugGymError | None]:
    """What is shown of an entry, without its key, and what is wrong with it."""
    from debug_gym_core.components.component import blamed
    from debug_gym_core.errors import DebugGymError
    from debug_gym_core.models.service import ServiceLLM
    from debug_gym_core.redaction import address_alone

    backend: str | None = None
    problem: DebugGymError | None = None
    values: dict[str, Any] = {}
    try:
        values = models.values(name)
        backend = models.backend(name, plugins).name
        llm = models.make(name, plugins, {})
        if isinstance(llm, ServiceLLM):
            with contextlib.closing(llm), blamed(type(llm), "find what it needs"):
                llm.prepare()
    except DebugGymError as error:
        problem = error
    known = {key: _of_its_kind(key, values.get(key)) for key in _SHOWN}
    if known["endpoint"]:
        known["endpoint"] = address_alone(known["endpoint"])
    said = None if problem is None else str(problem).partition("\n")[0]
    return {"name": name, "backend": backend, **known, "problem": said}, problem


def _of_its_kind(key: str, value: Any) -> Any:
    """A value of an entry; None where it is of a wrong kind, which is told as the problem: it may be a key."""
    from typing import get_type_hints

    import pydantic

    from debug_gym_core.models.service import ServiceSettings

    kind = get_type_hints(ServiceSettings, include_extras=True)[key]
    try:
        pydantic.TypeAdapter(kind).validate_python(value)
    except pydantic.ValidationError:
        return None
    return value


def init_command() -> None:
    """The program `debug-gym-init-llm-config`: `debug-gym llm init` by the name that the seeds gave it."""
    import sys

    prepare_streams()
    arguments = sys.argv[1:]
    named: dict[str, Any] = {"help_option_names": ["-h", "--help"]}

    def run() -> Any:
        return init.main(arguments, "debug-gym-init-llm-config", standalone_mode=False, **named)

    sys.exit(guarded(run, arguments))
