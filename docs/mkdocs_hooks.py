"""What the site has beside ``docs/``: the README as first page, plugins' READMEs, Python's modules.

MkDocs reads one folder. This module adds the other pages, turns links between all of them into
links of the site, and makes the navigation; it can be imported without MkDocs, and tests do.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).parents[1]
FIRST = {
    "Get started": ("quickstart", "combine", "tutorial"),
    "How to": (
        "domains",
        "adapting",
        "evaluation",
        "mteb",
        "studies",
        "pages",
        "blame",
        "authors",
        "scale",
        "speed",
        "translate",
    ),
    "Reference": ("options", "recipes", "python", "reference", "contents", "plugin-policy"),
    "Background": ("lifecycle", "architecture", "reliability", "security"),
    "Measurements": ("results", "papers", "performance", "gpu"),
}
"""Sections of the navigation and their pages in order; pages that are in none follow under More."""
ELSEWHERE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
ELSEWHERE["CHANGELOG.md"] = "changelog.md"
"""Pages of the site that lie outside ``docs/``, beside the plugins' READMEs."""
MODULES = ("cse", "cse_cli.models.saved_model")
"""Modules of Python's own pages, in order; docs/reference.md has what authors import."""
_LINK = re.compile(r"\[(?P<words>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_FENCE = re.compile(r"(^ *```.*?^ *```)", re.DOTALL | re.M)


def site_pages() -> dict[str, str]:
    """Return the page of the site for each Markdown file of the repository that has one."""
    pages = {
        f"docs/{path.relative_to(ROOT / 'docs').as_posix()}": path.relative_to(
            ROOT / "docs"
        ).as_posix()
        for path in sorted((ROOT / "docs").rglob("*.md"))
    }
    for path in sorted(ROOT.glob("plugins/*/README.md")):
        pages[path.relative_to(ROOT).as_posix()] = f"plugins/{path.parent.name}.md"
    return pages | ELSEWHERE


def for_the_site(text: str, source: str, url: str = "") -> str:
    """Return the text of a page with its relative links as links of the site.

    A link to a file without a page leads to the repository, or is plain text without its address.

    Args:
        text: The page.
        source: Its path in the repository.
        url: Address of the repository's files on the web, empty where there is none.
    """
    pages = site_pages()
    here = PurePosixPath(pages[source]).parent.as_posix()

    def turned(match: re.Match[str]) -> str:
        target, mark, anchor = match["target"].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        path = os.path.normpath((PurePosixPath(source).parent / target).as_posix())
        if path in pages:
            return f"[{match['words']}]({os.path.relpath(pages[path], here)}{mark}{anchor})"
        if path.startswith("docs/"):  # a picture, which a page outside docs/ may show too
            file = os.path.relpath(path.removeprefix("docs/"), here)
            return f"[{match['words']}]({file}{mark}{anchor})"
        return f"[{match['words']}]({url.rstrip('/')}/{path})" if url else match["words"]

    pieces = _FENCE.split(text)  # every second one is a block of code
    pieces[::2] = [_LINK.sub(turned, piece) for piece in pieces[::2]]
    return "".join(pieces)


def reference() -> dict[str, str]:
    """Return the pages of Python's modules, written from docstrings, by their name on the site."""
    return {f"modules/{name}.md": f"# {name}\n\n::: {name}\n" for name in MODULES}


def navigation() -> list[Any]:
    """Return the pages of the site in sections."""
    pages = site_pages()

    def of(folder: str) -> list[str]:
        return [page for page in sorted(pages.values()) if page.startswith(f"{folder}/")]

    named = {page for names in FIRST.values() for page in (f"{name}.md" for name in names)}
    more = [page for page in sorted(pages.values()) if "/" not in page]
    more = [page for page in more if page not in {*named, *ELSEWHERE.values()}]
    return [
        {"Overview": "index.md"},
        *({section: [f"{name}.md" for name in names]} for section, names in FIRST.items()),
        {"Methods": of("methods")},
        {"Study tables": [{PurePosixPath(page).stem: page} for page in of("studies")]},
        {"Packages": of("plugins")},
        {"Python modules": [{name: f"modules/{name}.md"} for name in MODULES]},
        {"Project": ["contributing.md", "changelog.md"]},
        *([{"More": more}] if more else []),
    ]


def on_config(config: Any) -> Any:
    """Set the navigation, which follows the files that there are."""
    config.nav = navigation()
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie outside ``docs/``, and those of Python's modules."""
    from mkdocs.structure.files import File

    made = reference()
    for source, page in site_pages().items():
        if not source.startswith("docs/"):
            made[page] = (ROOT / source).read_text(encoding="utf-8")
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn the links of a page into links of the site."""
    sources = {target: source for source, target in site_pages().items()}
    source = sources.get(page.file.src_uri)
    return markdown if source is None else for_the_site(markdown, source, config.repo_url or "")
