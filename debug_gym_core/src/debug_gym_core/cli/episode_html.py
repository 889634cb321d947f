"""Episodes that were kept, as one page for a browser: it needs nothing but itself, and runs no script.

All that is in it was written by models and by programs that nobody trusts. It is escaped, characters that would be
obeyed are shown by their numbers, and the page's policy lets the browser load and run nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from debug_gym_core.cli import printable
from debug_gym_core.cli.episode_parts import Account, Part, job_of, parts_of
from debug_gym_core.cli.figures import count_text, money_text, plural

LONGEST = 1_000_000
"""Characters of one text that a page has; the trajectory has all."""

STYLE = """
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 20%, transparent);
  --soft: color-mix(in srgb, currentColor 6%, transparent) }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem; overflow-wrap: anywhere }
details { border-top: 1px solid var(--line) }
details.episode { border: 1px solid var(--line); border-radius: 6px; margin: .6rem 0; padding: 0 .8rem }
summary { cursor: pointer; padding: .35rem 0; overflow-wrap: anywhere }
details.episode > summary { font-weight: 600 }
summary code, pre { font: 13px/1.45 ui-monospace, monospace }
summary .number { display: inline-block; min-width: 2.2em }
.about { opacity: .65; font-weight: 400; margin-left: .6em }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--soft); padding: .6rem; margin: .2rem 0 .8rem;
  border-radius: 4px }
pre.action { border-left: 3px solid #4a8 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .4rem 0 1rem }
dt { opacity: .65 } dd { margin: 0; overflow-wrap: anywhere }
.state { border-radius: 4px; padding: 0 .4em; margin-right: .5em; color: #fff; background: #777; font-weight: 600 }
.resolved { background: #1a7f37 } .unresolved { background: #9a6700 } .error { background: #cf222e }
.playing { background: #0969da } .stopped { background: #8250df }
.call > summary { color: #a3a } .note { color: #9a6700; margin: .2rem 0 }
.added { color: #1a7f37 } .removed { color: #cf222e } .place { color: #0969da }
"""

POLICY = "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'"

DIFF = {"+": "added", "-": "removed", "@": "place"}


def page(name: str, accounts: Iterable[Account], tools: Mapping[str, type[Any]], *, prompts: bool) -> Iterator[str]:
    """A page, in pieces.

    Args:
        name: what its title says
        accounts: the episodes; one is shown open
        tools: that actions may name
        prompts: with the calls of the models
    """
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    yield "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY.format(digest)}">\n'
    yield "<meta name=viewport content='width=device-width, initial-scale=1'>\n"
    yield f"<title>{_text(name)}</title>\n<style>{STYLE}</style>\n<h1>{_text(name)}</h1>\n"
    found = list(accounts)
    if len(found) > 1:
        resolved = sum(account.state == "resolved" for account in found)
        yield f"<p>{plural(len(found), 'episode')}, {resolved} resolved</p>\n"
    for account in found:
        yield from _episode(account, tools, prompts=prompts, is_open=len(found) == 1)
    yield "</html>\n"


def _episode(account: Account, tools: Mapping[str, type[Any]], *, prompts: bool, is_open: bool) -> Iterator[str]:
    figures = [f"score {account.score}", plural(account.steps, "step")]
    figures += [f"{count_text(sum(account.tokens))} tokens"] if sum(account.tokens) else []
    figures += [money_text(account.cost)] if account.cost else []
    yield f"<details class=episode{' open' if is_open else ''}>\n<summary>"
    yield f"<span class='state {account.state}'>{account.state}</span>{_text(str(account.episode))}"
    yield f"<span class=about>{_text(', '.join(figures))}</span></summary>\n<dl>\n"
    for word, text in account.facts():
        yield f"<dt>{_text(word)}</dt><dd>{_text(text)}</dd>\n"
    yield "</dl>\n"
    for text in account.remarks():
        yield f"<p class=note>{_text(text)}</p>\n"
    for part in parts_of(account.trajectory, job_of(account.episode), tools, prompts=prompts):
        yield from _part(part)
    if patch := account.patch():
        lines = "\n".join(_diff_line(line) for line in patch[:LONGEST].rstrip("\n").split("\n"))
        yield f"<details open><summary>patch</summary>\n<pre>{lines}</pre></details>\n"
    yield "</details>\n"


def _part(part: Part) -> Iterator[str]:
    first, *further = part.head.split("\n")
    number = "" if part.number is None or part.kind != "step" else f"<span class=number>{part.number}</span>"
    about = f"<span class=about>{_text(part.about)}</span>" if part.about else ""
    is_open = " open" if part.kind in ("error", "grade") else ""
    yield f"<details class={part.kind}{is_open}><summary>{number}<code>{_text(first[:500])}</code>{about}</summary>\n"
    if further or len(first) > 500:
        yield f"<pre class=action>{_text(part.head)}</pre>\n"
    if part.body.strip("\n"):
        yield f"<pre>{_text(part.body)}</pre>\n"
    yield "</details>\n"


def _diff_line(line: str) -> str:
    kind = DIFF.get(line[:1]) if line[:3] not in ("+++", "---") else None
    return f"<span class={kind}>{_text(line)}</span>" if kind else _text(line)


def _text(text: str) -> str:
    """A text as the page shows it."""
    more = f"\n(... and {len(text) - LONGEST} more characters in the trajectory)" if len(text) > LONGEST else ""
    return escape(printable(text[:LONGEST])) + more


def name_of(accounts: Sequence[Account]) -> str:
    """What the page of some episodes is called."""
    if len(accounts) == 1:
        return str(accounts[0].episode)
    runs = list(dict.fromkeys(account.episode.run for account in accounts))
    return runs[0].name if len(runs) == 1 and runs[0] is not None else f"{len(runs)} runs"
