"""The site of the pages, without MkDocs: every page is on it once, and its links lead to pages."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from docs import mkdocs_hooks as site
from tests.docs.pages import ROOT, pages
from tests.docs.test_pages import LINK, headings

PAGES = [page for page in pages() if page.name in site.site_pages()]


def _named(entries: list[Any]) -> list[str]:
    found = []
    for entry in entries:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found += _named(value) if isinstance(value, list) else [value]
    return found


def test_every_page_is_in_the_navigation_once() -> None:
    named = _named(site.navigation())
    assert sorted(named) == sorted({*site.site_pages().values(), *site.reference()})
    assert len(PAGES) == len(site.site_pages())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_pages_of_the_site(page: Any) -> None:
    there = site.site_pages()
    own = there[page.name]
    by_site = {there[each.name]: each for each in PAGES}
    text = site.for_the_site(page.text, page.name)
    assert len(text.splitlines()) == len(page.text.splitlines())
    for found in LINK.finditer(re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.M)):
        target, _, anchor = found["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        path = os.path.normpath((PurePosixPath(own).parent / target).as_posix()) if target else own
        if path not in by_site:
            assert (ROOT / "docs" / path).is_file(), found[0]
        elif anchor:
            assert anchor in headings(by_site[path]), found[0]


def test_a_link_to_a_file_without_a_page_needs_the_repository() -> None:
    text = "See [the licence](../LICENSE) and\n```\n[not](../LICENSE)\n```\n"
    plain = site.for_the_site(text, "docs/authors.md")
    assert plain == "See the licence and\n```\n[not](../LICENSE)\n```\n"
    linked = site.for_the_site(text, "docs/authors.md", "https://example.org/cse/")
    assert "[the licence](https://example.org/cse/LICENSE)" in linked


def test_the_reference_names_modules_that_there_are() -> None:
    for name in site.MODULES:
        assert find_spec(name) is not None, name


def test_mkdocs_reads_these_hooks_and_stops_at_a_broken_link() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["strict"] is True and settings["hooks"] == ["docs/mkdocs_hooks.py"]
    assert settings["validation"]["links"]["anchors"] == "warn"
    # A reader of cse installs none of it.
    ours = (ROOT / "requirements.txt").read_text(encoding="utf-8") + "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml"))
    )
    assert "mkdocs" not in ours
