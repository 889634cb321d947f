"""The prompt in a terminal: Tab, history, a line of help, forms to fill in. Loads prompt_toolkit."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable

from prompt_toolkit import PromptSession, print_formatted_text
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.completion import Completion as MenuItem
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus, is_done
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from debug_gym_core.tools import blocks
from debug_gym_llm_human import usage
from debug_gym_llm_human.completion import Candidate, Completion, common_beginning
from debug_gym_llm_human.hints import hint
from debug_gym_llm_human.history import KeptHistory, history_path
from debug_gym_llm_human.layout import STYLES, Fragments

KEYS = (
    ("Tab", "complete; after a tool's name: its form; after <<<: the lines as they are"),
    ("Up, Ctrl-R", "what was typed before, also in other sessions"),
    ("Ctrl-C", "clear the line; on an empty one, twice: stop the run"),
    ("Ctrl-D", "end the episode"),
    ("Alt-Enter", "send from inside a text"),
)

STYLE = Style.from_dict(
    {
        **STYLES,
        "prompt": "bold",
        "more": STYLES["faint"],
    }
)


class WorkspaceCompleter(Completer):
    """What can stand at the cursor, as prompt_toolkit asks for it."""

    def __init__(self, completion: Completion | None = None) -> None:
        """Complete nothing until there is something to complete.

        Args:
            completion: finds the candidates
        """
        self.completion = completion
        self.mode = ""

    def candidates(self, document: Document) -> list[Candidate]:
        """Candidates for the word before the cursor."""
        text = document.text_before_cursor
        return self.completion.candidates(f"{self.mode} {text}" if self.mode else text) if self.completion else []

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[MenuItem]:
        """The candidates as items of the menu."""
        for one in self.candidates(document):
            yield MenuItem(one.text, one.start, display=one.shown or one.text, display_meta=one.help)


class TerminalPrompt:
    """A prompt with completion, history and help, for a terminal that can move its cursor."""

    def __init__(self) -> None:
        self.interrupted = False
        self._output = Vt100_Output.from_pty(
            sys.stdout, os.environ.get("TERM"), default_color_depth=ColorDepth.from_env(), enable_bell=False
        )
        self._output.enable_cpr = False  # the answers would mix with what is typed while a tool runs
        self._completer = WorkspaceCompleter()
        self._mode = ""
        self._fields: tuple[tuple[str, bool], ...] = ()
        self._notice = ""
        self._session: PromptSession[str] = PromptSession(
            self._message,
            multiline=True,
            completer=self._completer,
            complete_while_typing=False,
            history=KeptHistory(history_path(), lambda text: self.show([("faint", f"note: {text}\n")])),
            search_ignore_case=True,
            prompt_continuation=lambda width, line, wraps: [("class:more", "" if wraps else "... ".rjust(width))],
            style=STYLE,
            include_default_pygments_style=False,
            key_bindings=self._bindings(),
            reserve_space_for_menu=8,
            output=self._output,
        )
        # prompt_toolkit's own toolbar appears only where the terminal has told the position of its cursor.
        below = Window(FormattedTextControl(self._hint), height=1, style="class:faint")
        body = self._session.layout.container
        self._session.layout = self._session.app.layout = Layout(
            HSplit([body, ConditionalContainer(below, ~is_done)]), self._session.default_buffer
        )

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self._output.get_size().columns

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """What can be pressed."""
        return KEYS

    def begin(self, completion: Completion) -> None:
        """Complete in a new episode."""
        self._completer.completion = completion

    def show(self, fragments: Fragments) -> None:
        """Write styled text."""
        styled = FormattedText([(f"class:{style}" if style else "", text) for style, text in fragments])
        print_formatted_text(
            styled, end="", style=STYLE, output=self._output, include_default_pygments_style=False, flush=True
        )

    def read(self, mode: str) -> str:
        """Let the person type; see `Prompt.read`."""
        self._mode = self._completer.mode = mode
        self._fields, self._notice = (), ""
        if self.interrupted:
            raise KeyboardInterrupt
        return self._session.prompt(pre_run=self._stop_if_asked, handle_sigint=False)

    def where(self) -> str:
        """Whoever types sees which line is meant."""
        return ""

    def interrupt(self) -> None:
        """Let `read` end at once."""
        self.interrupted = True
        loop = self._session.app.loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._stop_if_asked)

    def _stop_if_asked(self) -> None:
        app = self._session.app
        if self.interrupted and app.future is not None and not app.future.done():
            app.exit(exception=KeyboardInterrupt)

    # What is drawn

    def _message(self) -> FormattedText:
        return FormattedText([("class:prompt", f"debug-gym {self._mode}> " if self._mode else "debug-gym> ")])

    def _hint(self) -> FormattedText:
        document = self._session.default_buffer.document
        text = document.text_before_cursor
        completion = self._completer.completion
        tools = completion.tools if completion else {}
        line = self._notice or hint(f"{self._mode} {text}" if self._mode else text, tools)
        room = self.width - 1
        return FormattedText([("", line if len(line) <= room else f"{line[: room - 3]}...")])

    # What is pressed

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()
        typing = has_focus(DEFAULT_BUFFER)

        def bind(key: str, action: Callable[[Buffer, Application[str]], None]) -> None:
            @bindings.add(key, filter=typing)
            def _(event: KeyPressEvent) -> None:
                self._notice = ""
                action(event.current_buffer, event.app)

        bind("tab", self._tab)
        bind("s-tab", self._shift_tab)
        bind("enter", self._enter)
        bind("c-c", self._interrupt)
        return bindings

    def _interrupt(self, buffer: Buffer, app: Application[str]) -> None:
        """Ctrl-C clears what was typed; with nothing typed it ends the prompt."""
        if buffer.text:
            buffer.reset()
            self._fields = ()
        else:
            app.exit(exception=KeyboardInterrupt, style="class:aborting")

    def _enter(self, buffer: Buffer, app: Application[str]) -> None:
        """Take what the menu shows, go to a field that is not filled in, start a new line of a text, or send."""
        if buffer.complete_state is not None:
            chosen = buffer.complete_state.current_completion is not None
            buffer.complete_state = None
            if chosen:
                return
        if self._has_empty_field(buffer):
            return
        document = buffer.document
        head, *below = buffer.text.split("\n")
        if not blocks.begins(head):
            buffer.validate_and_handle()
        elif document.cursor_position_row == 0:
            buffer.cursor_position = len(head)
            if below:
                buffer.cursor_down()
            else:
                buffer.insert_text("\n")
        elif self._is_behind_text(document):
            lines = buffer.text.rstrip().split("\n")
            buffer.text = "\n".join([*lines[:-1], blocks.END])
            buffer.cursor_position = len(buffer.text)
            buffer.validate_and_handle()
        else:
            if buffer.selection_state is not None:
                buffer.cut_selection()
            buffer.insert_text("\n")

    @staticmethod
    def _is_behind_text(document: Document) -> bool:
        """Whether the cursor is on the last `>>>` or below it, where a text that was pasted ends with a line end."""
        lines = document.text.rstrip().split("\n")
        return blocks.ends(lines[-1].lstrip()) and document.cursor_position_row >= len(lines) - 1

    def _shift_tab(self, buffer: Buffer, app: Application[str]) -> None:
        """Back in the menu; in a text, less indentation."""
        if buffer.complete_state is not None:
            buffer.complete_previous()
        elif buffer.document.cursor_position_row > 0:
            indent = re.match(r" {1,4}", buffer.document.current_line)
            if indent:
                column = buffer.document.cursor_position_col
                start = buffer.cursor_position - column
                length = len(indent.group())
                buffer.text = buffer.text[:start] + buffer.text[start + length :]
                buffer.cursor_position = start + max(0, column - length)

    def _tab(self, buffer: Buffer, app: Application[str]) -> None:
        """Complete, show a form, go to its next field, indent."""
        if buffer.complete_state is not None:
            buffer.complete_next()
            return
        if buffer.selection_state is not None:
            buffer.cut_selection()
        document = buffer.document
        completion = self._completer.completion
        if completion is None:
            return
        if document.cursor_position_row > 0:
            if not self._complete(buffer):
                buffer.insert_text(" " * (4 - document.cursor_position_col % 4))
        elif blocks.begins(document.text) and document.is_cursor_at_the_end:
            self._take_lines(buffer, completion)
        elif not self._mode and document.text.lstrip() in completion.tools and document.is_cursor_at_the_end:
            self._show_form(buffer, completion)
        elif not self._complete(buffer) and not self._select_field(buffer):
            buffer.cursor_position = len(buffer.document.lines[0])

    def _complete(self, buffer: Buffer) -> bool:
        """Put in what all candidates have in common, and show them when there are several; whether there is one."""
        for _ in range(2):
            candidates = self._completer.candidates(buffer.document)
            common = common_beginning(candidates)
            typed = buffer.document.text_before_cursor[candidates[0].start :] if candidates and common else ""
            if len(candidates) == 1 and candidates[0].start == 0:
                typed = ""
            if not candidates or (len(candidates) == 1 and common == typed):
                return False
            if len(common) > len(typed):
                buffer.delete_before_cursor(-candidates[0].start)
                buffer.insert_text(common + (" " if len(candidates) == 1 and self._ends_word(buffer, common) else ""))
                if len(candidates) == 1:
                    return True
                continue
            break
        items = list(self._completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        buffer.complete_state = CompletionState(buffer.document, items)
        buffer.on_completions_changed.fire()
        return True

    def _ends_word(self, buffer: Buffer, word: str) -> bool:
        """Whether a word that was completed is followed by a space: an argument, not a tool, a directory or `key=`."""
        text = buffer.document.text_before_cursor
        first = self._mode or (text.split(" ")[0] if " " in text else "")
        tool = self._completer.completion.tools.get(first) if self._completer.completion else None
        plain = word.endswith(("/", ":", "=", "/'"))
        return tool is not None and not (usage.is_raw(tool) or plain or buffer.document.text_after_cursor[:1] == " ")

    def _take_lines(self, buffer: Buffer, completion: Completion) -> None:
        """Start from the lines that the call replaces."""
        lines = completion.present_lines(buffer.text)
        if lines is None:
            self._notice = "there are no lines to start from; Enter starts an empty text"
            return
        head = len(buffer.text)
        buffer.text = buffer.text + "\n" + lines.removesuffix("\n") + f"\n{blocks.END}"
        buffer.cursor_position = head + 1

    def _show_form(self, buffer: Buffer, completion: Completion) -> None:
        form = usage.template(completion.tools[buffer.text.strip()])
        self._fields = form.fields
        buffer.text = form.text if form.fields else f"{form.text} "
        buffer.cursor_position = len(buffer.text)
        buffer.cursor_position = 0
        if not self._select_field(buffer):
            buffer.cursor_position = len(buffer.text)

    def _select_field(self, buffer: Buffer) -> bool:
        """Select the first field of the form that is not filled in, so that typing replaces it."""
        return any(self._select(buffer, word) for word, _ in self._fields)

    def _select(self, buffer: Buffer, word: str) -> bool:
        head = buffer.text.split("\n")[0]
        found = re.search(rf"(?<!\S){re.escape(word)}(?!\S)", head)
        if found is None:
            return False
        buffer.cursor_position = found.start()
        buffer.start_selection()
        if buffer.selection_state is not None:
            buffer.selection_state.enter_shift_mode()
        buffer.cursor_position = found.end()
        return True

    def _has_empty_field(self, buffer: Buffer) -> bool:
        """Whether a field that is needed is not filled in, which is selected then; others are taken away."""
        for word, required in self._fields:
            if required and self._select(buffer, word):
                self._notice = f"fill in {word}, or Ctrl-C"
                return True
        for word, _ in self._fields:
            head, newline, below = buffer.text.partition("\n")
            shorter = re.sub(rf" {re.escape(word)}(?!\S)", "", head, count=1)
            if shorter != head:
                position = buffer.cursor_position - (len(head) - len(shorter) if buffer.cursor_position else 0)
                buffer.exit_selection()
                buffer.text = shorter + newline + below
                buffer.cursor_position = max(0, min(position, len(buffer.text)))
        return False
