"""HTML: its title, the blocks of what it says, and how much of it says nothing.

What is left out: scripts, styles and drawings; what the page hides; landmarks of ARIA beside the
text (navigation, search, banner, footer, complementary); elements whose class or id names such a
thing; and what stands outside ``<main>``. libxml2 reads it, whose time and memory are linear but
for tags of thousands of attributes, which lose them here, and for tags in each other, which it
ends at 2,048.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cse_core.errors import CseError
from cse_defaults.documents.passages import Block, collapsed, indent, joined

if TYPE_CHECKING:
    from lxml.etree import _Element

SILENT = frozenset(
    "script style template noscript svg math canvas iframe object video audio select datalist "
    "button".split()
)
"""Elements whose text no page shows as text."""
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q rp rt ruby "
    "s samp small span strike strong sub sup time tt u var wbr img input".split()
)
_SCOPES = frozenset("article main section".split())
"""In which a header or footer is that of the text; elsewhere it is that of the page (ARIA)."""
_LANDMARKS = frozenset("header footer aside".split())
_ROLES = frozenset(
    "navigation banner contentinfo search complementary dialog alertdialog menu menubar "
    "toolbar".split()
)
_NAMES = frozenset(
    "ad ads advert advertisement banner breadcrumb breadcrumbs consent cookie cookies footer gdpr "
    "headerlink masthead menu menubar modal nav navbar navigation navbox newsletter pager "
    "pagination popup promo share sharing sidebar sidebarwrapper skip skiplink social "
    "sphinxsidebar toc toolbar".split()
)
"""Words in the class or id of what stands beside a text."""
_CONTENTS = "tableofcontents"
_PERMALINKS = frozenset("# ¶ § 🔗 ⚓".split())
"""What links to the place where they stand say."""
_BREAK = "\x1f"
"""Stands for the end of a line; it is a kind of space."""
_PROSE = frozenset("p div body article main section blockquote center li dd".split())
"""Elements in which two ends of lines begin a paragraph."""
_WORDS = re.compile(r"[A-Za-z]+")
_TAG = re.compile(r"(<[A-Za-z][^\s/>]*)((?:[^>=]++|=\s*+(?:\"[^\"]*+\"?|'[^']*+'?)?)*+)", re.DOTALL)
_MAX_TAG = 2**12
_MAX_SPARED = 8
_MAIN_SHARE = 0.25
"""Share of a page's text from which on ``<main>`` is all that it says."""


@dataclass(frozen=True)
class Page:
    """What a page says.

    Attributes:
        title: What ``<title>`` says.
        blocks: Its text.
        left_out: Letters of what is left out.
    """

    title: str
    blocks: tuple[Block, ...]
    left_out: int = 0


def read_html(text: str, where: str | None = None, *, whole: bool = True) -> Page:
    """Read a page; of a piece (not ``whole``) only ``SILENT`` elements are left out.

    ``where`` names it in errors.

    Raises:
        CseError: If elements stand too deep in each other.
    """
    from lxml import etree

    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True
    )
    short = _TAG.sub(lambda tag: tag[0] if len(tag[0]) < _MAX_TAG else tag[1], text)
    try:
        root = etree.fromstring(short.encode(), parser)
    except etree.XMLSyntaxError:  # nothing is in it
        root = None
    if root is None:
        return Page("", ())
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        what = "elements stand more than 2,000 deep in each other"
        raise CseError(what, where=where, hint="save its text")
    letters = _length(root)
    etree.strip_elements(root, *SILENT, with_tail=False)
    left_out = letters - _length(root)
    first = next(root.iter("title"), None) if whole else None
    title = "" if first is None else collapsed("".join(first.itertext()))
    if whole:
        etree.strip_elements(root, "title", with_tail=False)
    return _Reader(root, whole).page(title, left_out)


def _length(element: _Element) -> int:
    return len(collapsed("".join(element.itertext())))


class _Reader:
    """Collects the blocks of a page."""

    def __init__(self, root: _Element, whole: bool) -> None:
        self.root, self.whole = root, whole
        self.blocks: list[Block] = []
        self.words: list[str] = []
        self.line, self.lead, self.left_out = 1, "", 0
        self.is_broken = False
        self.lists: list[int | None] = []
        self.code = self.scopes = self.spared = 0
        self.half = _length(root) / 2

    def page(self, title: str, left_out: int) -> Page:
        """Read the elements in their order."""
        from lxml import etree

        root = self.root
        mains = root.xpath("//main|//*[@role='main']") if self.whole else []
        if len(mains) == 1 and _length(mains[0]) >= _MAIN_SHARE * 2 * self.half:
            root = mains[0]
            self.left_out += int(2 * self.half) - _length(root)
        walker = etree.iterwalk(root, events=("start", "end"))
        beside = None
        for event, element in walker:
            tag = str(element.tag)
            if event == "start":
                if self.whole and element is not root and self._is_beside(element, tag):
                    self.left_out += _length(element)
                    walker.skip_subtree()
                    beside = element
                    continue
                self._start(tag, element)
                self._say(element.text, element)
            else:
                if element is not beside:
                    self._end(tag, element)
                if element is not root:
                    self._say(element.tail, element)
        self._close()
        return Page(title, tuple(self.blocks), left_out + self.left_out)

    def _is_beside(self, element: _Element, tag: str) -> bool:
        """Tell whether an element is not part of the text; one with half of the page is."""
        if tag in ("body", "main", "article"):
            return False
        get = element.get
        if tag in ("nav", "dialog") or (tag in _LANDMARKS and not self.scopes):
            return True
        if get("role", "").lower() in _ROLES or get("aria-hidden") == "true":
            return True
        if get("hidden") is not None or "display:none" in get("style", "").replace(" ", ""):
            return True
        if tag == "a" and (element.text or "").strip() in _PERMALINKS and not len(element):
            return True
        names = _WORDS.findall(f"{get('class', '')} {get('id', '')}".lower())
        is_named = not _NAMES.isdisjoint(names) or _CONTENTS in "".join(names)
        if not is_named or self.spared >= _MAX_SPARED:
            return False
        if _length(element) < self.half:
            return True
        self.spared += 1
        return False

    def _say(self, text: str | None, element: _Element) -> None:
        if not text:
            return
        if not self.words and text.strip():
            self.line = int(element.sourceline or 1)
        if self.words or self.code or text.strip():
            self.words.append(text)
        self.is_broken &= not text.strip()

    def _close(self, level: int = 0) -> None:
        """End a block."""
        if not self.words:
            return
        said = "".join(self.words)
        self.words.clear()
        text = said.strip("\n").rstrip() if self.code else joined(said.split(_BREAK))
        if level:
            text = collapsed(text).strip("¶§ ")
        elif text and not self.code:
            text, self.lead = self.lead + text, indent(len(self.lists))
        if text:
            self.blocks.append(Block(text, self.line, level))

    def _start(self, tag: str, element: _Element) -> None:
        self.scopes += tag in _SCOPES
        if tag in ("td", "th") and self.words:
            self.words.append(" | ")
        elif tag == "pre":
            self._close()
            self.code += 1
        elif (self.code and tag not in _INLINE) or (tag == "br" and self.words):
            self.words.append("\n" if self.code else _BREAK)
            parent = element.getparent() if tag == "br" and not self.code else None
            if self.is_broken and parent is not None and parent.tag in _PROSE:
                self._close()
            self.is_broken = tag == "br"
        elif not self._is_in_line(element, tag):
            self._close()
            if tag in ("ul", "ol"):
                self.lists.append(1 if tag == "ol" else None)
            elif tag == "li":
                self._item()

    def _is_in_line(self, element: _Element, tag: str) -> bool:
        """Tell whether an element begins and ends no block: as a paragraph in a cell."""
        parent = element.getparent() if tag in ("p", "div") else None
        in_cell = parent is not None and parent.tag in ("td", "th")
        if in_cell and self.words:
            self.words.append(" ")
        return in_cell or tag in _INLINE or tag in ("td", "th", "br")

    def _item(self) -> None:
        number = self.lists[-1] if self.lists else None
        mark = "- " if number is None else f"{number}. "
        self.lead = indent(len(self.lists) - 1) + mark
        if number is not None:
            self.lists[-1] = number + 1

    def _end(self, tag: str, element: _Element) -> None:
        self.scopes -= tag in _SCOPES
        if tag == "pre":
            self._close()
            self.code -= 1
        elif tag in _HEADINGS:
            self._close(int(tag[1]))
        elif not self.code and not self._is_in_line(element, tag):
            self._close()
            if tag in ("ul", "ol"):
                self.lists.pop()
                self.lead = indent(len(self.lists))
