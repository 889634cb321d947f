"""What was seen of a call, as it comes from the sandbox: checked, since the program there could say anything."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Pair = Annotated[tuple[str, str], Field(strict=False)]
"""A name and a value."""


MOST_UNFOLLOWED = 200_000


class _Checked(BaseModel):
    # Built when the first call is seen: it would cost each start of the program a twentieth of a second.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True)


class Failure(_Checked):
    """An exception."""

    type: str
    message: str = ""

    def __str__(self) -> str:
        """As Python ends a traceback."""
        return f"{self.type}: {self.message}" if self.message else self.type


class Raised(Failure):
    """An exception that was raised in a statement; `after` how many calls that the statement had made."""

    after: int = 0


class Place(_Checked):
    """Where a program was."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        """As in `app.py:3 in total`."""
        return f"{self.file}:{self.line} in {self.function}"


class Ending(_Checked):
    """How a call ended.

    Attributes:
        how: `returned` or `raised`; `running` and `suspended` while it lasts; `unseen`: nothing told of it
        line: where
        value: what it returned
        exception: what it raised
        within: the line that ran a generator to its end, where that is not the one that made it
    """

    how: str
    line: int | None = None
    value: str | None = None
    exception: Failure | None = None
    within: int | None = None


class Step(_Checked):
    """A statement that was carried out once.

    Attributes:
        line: its first
        text: the statement, in one line
        indent: columns that it is indented by
        changed: variables that it changed, and to what; an empty text: it is gone
        more_changed: how many others it changed
        calls: what it called of the repository's own functions
        more_calls: how many others
        raised: exceptions that were raised in it
        yielded: first values that it yielded
        yields: how many it yielded
        awaited: how often it waited
    """

    line: int
    text: str
    indent: int = 0
    changed: list[Pair] = Field(default_factory=list)
    more_changed: int = 0
    calls: list[Call] = Field(default_factory=list)
    more_calls: int = 0
    raised: list[Raised] = Field(default_factory=list)
    yielded: list[str] = Field(default_factory=list)
    yields: int = 0
    awaited: int = 0


class Loop(_Checked):
    """A loop that was run.

    Attributes:
        loop: its line
        passes: how often it was run
        first: steps and loops of its first passes
        last: the same of its last ones
    """

    loop: int
    passes: int
    first: list[list[Step | Loop]]
    last: list[list[Step | Loop]]


class Call(_Checked):
    """A call of a function.

    Attributes:
        function: its qualified name
        file: where it is defined
        line: where its definition begins
        kind: `function`, `generator`, `coroutine`, `async generator`, `class` or `module`
        arguments: names and values
        end: how it ended
        yielded: first values that it yielded
        yields: how many
        used: attributes and globals that it uses, as they were at its beginning
        items: its steps and loops in their order; None: it was not followed
        steps: how many steps it took
        unfollowed: lines after the steps that were followed; they are counted up to `MOST_UNFOLLOWED`
        at_end: variables that these changed
        call: which call of the function it was
        caller: where it was called from
        main_thread: whether it was called in the main thread
        test: the test that ran
    """

    model_config = ConfigDict(populate_by_name=True)

    function: str
    file: str
    line: int
    kind: str = "function"
    arguments: list[Pair] = Field(default_factory=list)
    end: Ending
    yielded: list[str] = Field(default_factory=list)
    yields: int = 0
    used: list[Pair] = Field(default_factory=list)
    items: list[Step | Loop] | None = None
    steps: int = 0
    unfollowed: int = 0
    at_end: list[Pair] = Field(default_factory=list)
    call: int = 1
    caller: Place | None = Field(default=None, alias="from")
    main_thread: bool = True
    test: str = ""


class Test(_Checked):
    """How the test ended that the call was in."""

    __test__ = False

    test: str
    outcome: str
    message: str = ""


class End(_Checked):
    """How a program ended by itself."""

    status: int = 0
    exception: str = ""
    refused: str = ""


class About(_Checked):
    """The function that was found."""

    function: str
    line: int
    kind: str
    definitions: int = 1


class Message(_Checked):
    """One message.

    Attributes:
        t: `begun`, `refused`, `story` or `test`
        why: why it is refused
        what: which kind of thing is
        signals: by which the program tells what it has seen so far, and Python itself where it is
        root: where the repository is
        about: the function
        calls: calls of it so far
        all: whether these are all, as the next one is told of at once
        blind: whether others may not have been heard of, as the program traces itself
        done: whether the call that was asked for is over
        problem: why it was not followed to its end
        story: the call, as far as it was seen
        now: where the program is
        end: how it ended
        tests: how many tests ended how
    """

    t: str
    why: str = ""
    what: str = ""
    signals: dict[str, int] = Field(default_factory=dict)
    root: str = ""
    about: About | None = None
    calls: int = 0
    all: bool = True
    blind: bool = False
    done: bool = False
    problem: str = ""
    story: Call | None = None
    now: Place | None = None
    end: End | None = None
    tests: dict[str, int] | None = None
    test: str = ""
    outcome: str = ""
    message: str = ""


def cleaned(value: Any) -> Any:
    """JSON whose texts can be encoded and shown in one line."""
    if isinstance(value, str):
        text = value.encode("utf-8", "backslashreplace").decode()
        return (
            text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
        )
    if isinstance(value, list):
        return [cleaned(one) for one in value]
    if isinstance(value, dict):
        return {key: cleaned(one) for key, one in value.items()}
    return value
