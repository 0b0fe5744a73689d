"""Markdown: its blocks and the title in its front matter."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from html import escape
from typing import Any

from cse_core.errors import CseError
from cse_defaults.documents.html import SILENT, read_html
from cse_defaults.documents.passages import Block, collapsed, indent

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?\n)??\1[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title[ \t]*[:=](.*)$", re.MULTILINE)
_MAX_FRONT_MATTER = 2**13
"""Letters of front matter that is parsed; tomllib's time grows with the square of a dotted key."""
_FORMATS = re.compile(
    r"<!--.*?-->|</?(?:a|abbr|b|bdi|bdo|big|br|cite|code|del|dfn|em|font|i|img|ins|kbd|mark|q|s|samp"
    r"|small|span|strike|strong|sub|sup|tt|u|var|wbr)(?:\s[^<>]*)?/?>",
    re.DOTALL | re.IGNORECASE,
)
"""Tags in a paragraph that change how it looks; others, as ``<script>``, are what it is about."""
_RAW = re.compile(
    r"^((?:[ \t>*+-]|\d{1,9}[.)][ \t])*)<(?=(script|style|pre|textarea|!--|\?|!\[CDATA\[|![a-z]))",
    re.MULTILINE | re.IGNORECASE,
)
"""What begins a block of HTML that blank lines do not end."""
_ENDS = {"!--": "-->", "?": "?>", "![cdata[": "]]>"}
_CODE_BEHIND = re.compile(r"<(script|style)\b[^>\n]*>[ \t]*(?:\n|\Z|.*</\1)", re.IGNORECASE)
_LITERAL = "\ufdd0"
"""Stands before ``<`` that begins no tag; no text has this letter."""
_OPENED = re.compile(
    rf"<(title|head|body|html|nav|header|footer|aside|main|{'|'.join(sorted(SILENT))})\b",
    re.IGNORECASE,
)


def front_matter(text: str) -> tuple[str, str]:
    """Return the title that YAML or TOML before a text gives, and the text without it.

    What is too long or too deep is searched for a line with the title, not parsed.
    """
    if (front := _FRONT_MATTER.match(text)) is None:
        return "", text
    inside = front[2] or ""
    title: str | None = ""
    try:
        if len(inside) > _MAX_FRONT_MATTER:
            raise ValueError
        if front[1] == "---":
            title = _yaml_title(inside)
        else:
            title = tomllib.loads(inside).get("title", "")
    except Exception:  # of two libraries; a colon in a title is enough
        line = _TITLE.search(inside)
        title = line[1].strip().strip("\"'") if line else ""
    if title is None:  # a text between two lines
        return "", text
    return collapsed(title) if isinstance(title, str) else "", text[front.end() :]


def _yaml_title(text: str) -> str | None:
    """Return the value of ``title``, empty without one; None of what is not a mapping.

    Events are read one by one: a tree of them could be too deep for Python, or for C.
    """
    import yaml

    depth, key, is_value, title = 0, "", False, ""
    for event in yaml.parse(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader)):
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.NodeEvent):
            value = getattr(event, "value", "")
            if not depth and not isinstance(event, yaml.MappingStartEvent):
                return None
            if depth == 1 and is_value and key == "title":
                title = "" if value in ("~", "null") else str(value)
            if depth == 1:
                key, is_value = value, not is_value
            depth += isinstance(event, yaml.CollectionStartEvent)
    return title


def read_markdown(text: str, line: int = 1) -> Iterator[Block]:
    """Yield the blocks of Markdown whose first line has a number."""
    from pyromark import Markdown, Options

    guarded = _guarded(text)
    data, at = guarded.encode(), 0
    words: list[str] = []
    lists: list[int | None] = []
    html: list[tuple[int, str]] = []
    lead, begin = "", line

    def taken() -> str:
        text = "".join(words).replace(_LITERAL, "")
        words.clear()
        return text

    def paragraph(level: int = 0) -> Iterator[Block]:
        nonlocal lead
        if text := collapsed(taken()):
            yield Block(text if level else lead + text, begin, level)
            lead = indent(len(lists))

    options = Options.ENABLE_TABLES | Options.ENABLE_FOOTNOTES | Options.ENABLE_HEADING_ATTRIBUTES
    for event, place in Markdown(options=options).events_with_range(guarded):
        kind, value = _named(event)
        if kind in ("Text", "Code", "Html"):
            words.append(value)
        elif kind == "InlineHtml":
            words.append(_FORMATS.sub(" " if value[:3].lower() == "<br" else "", value))
        elif kind in ("SoftBreak", "HardBreak"):
            words.append(" ")
        elif kind in ("Start", "End"):
            tag, about = _named(value)
            if tag == "TableCell":
                if kind == "Start" and words:
                    words.append(" | ")
            elif kind == "Start" and tag in _BLOCKS:
                yield from paragraph()
                if tag != "HtmlBlock":
                    yield from _html_blocks(html)
                line += data.count(b"\n", at, place["start"])
                at, begin = place["start"], line
                if tag == "List":
                    lists.append(about)
                elif tag == "Item":
                    number = lists[-1]
                    lead = indent(len(lists) - 1) + ("- " if number is None else f"{number}. ")
                    lists[-1] = None if number is None else number + 1
                elif not lists:
                    lead = ""
            elif tag == "Heading":
                yield from paragraph(int(about[1]))
            elif tag == "CodeBlock":
                fenced = data[place["start"] : place["start"] + 1] in (b"`", b"~")
                yield Block(taken().strip("\n"), begin + fenced)
            elif tag == "HtmlBlock":
                html.append((begin, taken()))
            elif tag in _BLOCKS:
                yield from paragraph()
                if tag == "List":
                    lists.pop()
    yield from paragraph()
    yield from _html_blocks(html)


_BLOCKS = frozenset(
    "Paragraph Heading BlockQuote CodeBlock HtmlBlock List Item FootnoteDefinition TableHead "
    "TableRow".split()
)


def _named(event: Any) -> tuple[str, Any]:
    """Return the name of an event or a tag of pyromark, and what it holds."""
    return (event, None) if isinstance(event, str) else next(iter(event.items()))


def _html_blocks(parts: list[tuple[int, str]]) -> Iterator[Block]:
    """Yield the blocks of HTML that blank lines divide, each part behind its line; they are taken.

    A part that begins with a tag which nothing in it ends is prose.
    """
    line = first = parts[0][0] if parts else 1
    made = []
    for begin, html in parts:
        opened = _OPENED.search(html)
        if opened and f"</{opened[1]}".lower() not in html.lower():
            made.append("\n" * (begin - line) + f"<p>{escape(html)}</p>")
        else:
            made.append("\n" * (begin - line) + html)
        line = begin + html.count("\n")
    parts.clear()
    whole = "".join(made)
    if not re.sub(r"<[^>]*>", "", whole).strip():
        return
    try:
        blocks = read_html(whole, whole=False).blocks
    except CseError:  # too deep
        blocks = (Block(collapsed(whole), 1),)
    for block in blocks:
        yield block._replace(line=first + block.line - 1)


def _guarded(text: str) -> str:
    """Return Markdown in which ``<script>`` and the like begin no block where they are prose.

    That is where nothing ends the block, which would take the rest of the text along, or where a
    sentence goes on behind the tag.
    """
    lowered = text.lower()
    last = {end: lowered.rfind(end) for end in (*_ENDS.values(), ">")}
    tags = max(lowered.rfind(f"</{tag}>") for tag in ("script", "style", "pre", "textarea"))

    def guard(match: re.Match[str]) -> str:
        tag = match[2].lower()
        if tag in ("script", "style", "pre", "textarea"):
            ends = tags > match.start()
            if tag in ("script", "style"):
                ends = ends and _CODE_BEHIND.match(text, match.end() - 1) is not None
        else:
            ends = last[_ENDS.get(tag, ">")] > match.start()
        return match[0] if ends else f"{match[1]}{_LITERAL}<"

    return _RAW.sub(guard, text)
