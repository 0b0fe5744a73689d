"""Every page: links, names and commands in it hold, and its generated tables are up to date."""

import ast
import dataclasses
import inspect
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any, get_args

import pytest
import typer

from cse_cli.main import build_app
from cse_cli.options import flags
from cse_cli.options.descriptions import describe
from cse_cli.plugins.directory import known_parts
from cse_cli.plugins.installed import Installed
from cse_cli.training import choosing
from cse_core import hookspecs
from cse_core.capabilities import CAPABILITIES, CAPABILITY_PREFIXES, Role
from cse_core.hookspecs import COMPONENT_SPECS, HOOK_RECORDS, RECORDS
from cse_core.loading import load_factory
from cse_core.options import HeadOptions
from cse_core.registry.plugin_info import Status
from cse_engine.compose.reading import _KEYS
from cse_engine.compose.settings import CORE_OPTIONS, ViewOptions
from docs import generate, reference
from docs import mkdocs_hooks as site
from tests.docs.pages import DOCS, ROOT, SKILL, Page, pages

PAGES = {page.name: page for page in pages()}
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
INLINE = re.compile(r"`(cse [a-z][^`\n]*)`")
EXAMPLE = "count-words"
"""The command that docs/authors.md makes: its lines run in tests/docs/test_authors.py."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page(name: str) -> None:
    page = PAGES[name]
    found = [f"has {word}" for word in ("/work/", "/home/", "/root/", "/tmp/", "C:\\", "localhost")
             if word in page.text]  # fmt: skip
    found += broken_links(page)
    for block in page.blocks():
        if block.kind == "toml":
            tomllib.loads(block.text)
        if block.path.endswith("plugin.py"):  # listings would load it
            assert not re.search(r"^\s*(import|from) (torch|transformers)", block.text, re.M)
        for words in block.commands():
            if words[0] == "cse" and words[1] != EXAMPLE:
                parse(words)
                found += unknown_options(words)
    for line in INLINE.findall(page.prose()):
        try:
            parse(shlex.split(line) if "…" not in line else ["cse", "--help"])
        except Exception as error:
            if "missing" not in str(error).lower():
                found.append(f"{line}: {error}")
    assert not found


def broken_links(page: Page) -> Iterator[str]:
    """Yield the links that lead nowhere, in the repository and on the site."""
    for found in LINK.finditer(page.prose()):
        target, _, anchor = found["target"].partition("#")
        there = page.path.parent / target if target else page.path
        if re.match(r"[a-z]+:", target):
            continue
        if not there.exists() or anchor and anchor not in headings(Page(there)):
            yield f"link to {found['target']}"
    own = site.site_pages().get(page.name)
    if own is None:
        return
    on_site = {there: PAGES[source] for source, there in site.site_pages().items()}
    text = site.for_the_site(page.text, page.name)
    assert len(text.splitlines()) == len(page.text.splitlines())
    for found in LINK.finditer(re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.M)):
        target, _, anchor = found["target"].partition("#")
        path = os.path.normpath((PurePosixPath(own).parent / target).as_posix()) if target else own
        if re.match(r"[a-z]+:", target) or (path not in on_site and (DOCS / path).is_file()):
            continue
        if path not in on_site or anchor and anchor not in headings(on_site[path]):
            yield f"link on the site to {found['target']}"


def headings(page: Page) -> set[str]:
    lines = re.findall(r"^#+ +(.+)$", page.prose(), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


installed_without = cache(lambda *left_out: Installed(left_out))
"""The installed plugins, loaded once for all command lines."""


def parse(words: Sequence[str]) -> None:
    """Parse a command line as ``cse`` does, down to the last flag, without running it."""
    rest, left_out = flags.take_no_plugin(words[1:])
    installed = installed_without(*left_out)
    chosen = installed.commands.chosen(rest)
    rest, topic = choosing.take_topic(rest, chosen)
    rest = choosing.with_settings(rest, chosen)
    command: Any = typer.main.get_command(build_app(rest, installed, topic))
    name = "cse"
    while True:
        try:
            context = command.make_context(name, list(rest))
        except typer.Exit:
            return
        if not hasattr(command, "resolve_command"):
            return
        rest = [*getattr(context, "_protected_args", []), *context.args]
        name, command, rest = command.resolve_command(context, rest)


def unknown_options(words: Sequence[str]) -> Iterator[str]:
    """Yield the options of the core in a command line that are none."""
    for path in (text.partition("=")[0] for text in flags.peek(words[1:]).sets):
        head, _, rest = path.partition(".")
        options = {**CORE_OPTIONS, "views": ViewOptions}.get(head)
        option = rest.split(".")[1 if head == "views" else 0]
        if options is not None and option not in options.model_fields:
            yield f"option {path}"


def test_parse_notices_mistakes() -> None:
    for line in ("cse train --recipee x", "cse data lisst", "cse trian", "cse eval"):
        with pytest.raises(Exception, match=r"(?i)no such|missing"):
            parse(line.split())
    assert list(unknown_options("cse train --train.lrr 1".split())) == ["option train.lrr"]


def test_options_and_tables() -> None:
    assert not generate.outdated(), "run: python docs/generate.py"
    for name in generate.TABLES:
        assert any(f"<!-- generated: {name} -->" in page.text for page in PAGES.values()), name
    assert len(PAGES[SKILL].text.split()) <= 600, "an agent reads all of it for every task"
    kinds = (load_factory(record.options) for record in COMPONENT_SPECS.values())
    models = [*CORE_OPTIONS.values(), ViewOptions, *kinds]
    for options in (*models, HeadOptions):
        for option in options.model_fields:
            assert describe(options, option), f"{options.__name__}.{option} has no docstring"


def test_what_there_is_has_its_place() -> None:
    guide, hooks = PAGES["docs/authors.md"], PAGES["docs/reference.md"].section("Hooks")
    wanted = [(f"`{key}", PAGES["docs/recipes.md"].text) for key in {*_KEYS} - {"run", "versions"}]
    for hook, records in HOOK_RECORDS.items():
        assert not inspect.signature(getattr(hookspecs, hook)).parameters
        names = [record.__name__ for record in records]
        links = " or ".join(f"[{name}](#{name.lower()})" for name in names)
        wanted.append((f"### {hook}: {links}\n\nReturn ", hooks))
        wanted.append((f"`{hook}`", guide.section("What do you want to change?")))
    for capability in (*CAPABILITIES, *(f"{prefix}:NAME" for prefix in CAPABILITY_PREFIXES)):
        wanted.append((f"| `{capability}` |", PAGES["docs/reference.md"].section("Capabilities")))
    wanted += [(f"`{role}`", guide.text) for role in get_args(Role)]
    not_called = guide.section("When a part is not called")
    wanted += [(f"`{status}`", not_called) for status in {*get_args(Status)} - {"active"}]
    listed = PAGES["docs/contents.md"].text
    wanted += [(f"| `{part.distribution}` |", listed) for part in known_parts()]
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    for path in ROOT.glob("plugins/*/pyproject.toml"):
        wanted.append((f"-e {path.parent.relative_to(ROOT)}\n", requirements))
    assert [what for what, text in wanted if what not in text] == []
    for path in re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.py)`", PAGES["docs/architecture.md"].text):
        assert (ROOT / path).is_file(), path
    papers = {each.parents[1].name for each in ROOT.glob("plugins/*/cse_*/recipes")}
    assert {each.stem for each in (DOCS / "methods").glob("*.md")} == papers


# -- the reference --------------------------------------------------------------------------------

DATACLASSES = (
    "types:TokenBatch", "types:View", "types:Embeddings", "types:Positives", "types:Negatives",
    "types:Batch", "types:StepContext", "types:LossOutput", "types:Round", "types:Hidden",
    "types:CorpusKeys", "parts:Setup", "parts:RoundContext", "run_info:RunInfo",
    *(f"records:{record.__name__}" for record in RECORDS),
)  # fmt: skip
PARTS = (
    "Part", "Augmenter", "SlicePooler", "RowPooler", "Head", "PositiveMiner", "NegativeStore",
    "Loss", "Branch", "Adapter", "Metric",
)  # fmt: skip


def test_every_field_and_method_is_in_the_reference() -> None:
    classes, page = reference.classes(), PAGES["docs/reference.md"].text
    fields = {name: reference.fields(node) for name, node in classes.items()}
    bare = [f"{name}.{f.name}" for name, found in fields.items() for f in found if not f.text]
    assert not bare, "say in its docstring what it is"
    for name in DATACLASSES:
        kind = load_factory(f"cse_core.{name}")
        found, left = set[str](), [kind.__name__]
        while left:
            node = classes.get(left.pop())
            if node is not None:
                found |= {field.name for field in fields[node.name]}
                left += [base.id for base in node.bases if isinstance(base, ast.Name)]
        assert {field.name for field in dataclasses.fields(kind)} == found
    for name in PARTS:
        section = page.split(f"### {name}\n")[1].split("\n### ")[0]
        for method, value in vars(load_factory(f"cse_core.parts:{name}")).items():
            if inspect.isfunction(value) and method != "__init__":
                assert f"- `{method}(" in section and (value.__doc__ or "").strip(), method


# -- the site -------------------------------------------------------------------------------------


def test_the_site() -> None:
    def named(entries: list[Any]) -> Iterator[str]:
        for entry in entries:
            value = next(iter(entry.values())) if isinstance(entry, dict) else entry
            yield from named(value) if isinstance(value, list) else [value]

    there = site.site_pages()
    assert sorted(named(site.navigation())) == sorted({*there.values(), *site.reference()})
    assert {*there} == {name for name in PAGES if name in there}
    assert all(import_module(name) for name in site.MODULES)
    text = "See [the licence](../LICENSE) and\n```\n[not](../LICENSE)\n```\n"
    plain = site.for_the_site(text, "docs/authors.md")
    assert plain == "See the licence and\n```\n[not](../LICENSE)\n```\n"
    linked = site.for_the_site(text, "docs/authors.md", "https://example.org/cse/")
    assert "[the licence](https://example.org/cse/LICENSE)" in linked
