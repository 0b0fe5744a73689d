"""What holds for every page: links resolve, tables are up to date, nothing of one machine in it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import tomllib

import pytest

from cse_cli.options.descriptions import describe
from cse_cli.plugins.directory import known_parts
from cse_core.capabilities import CAPABILITIES, CAPABILITY_PREFIXES, Role
from cse_core.options import (
    AugmenterOptions,
    BranchOptions,
    HeadOptions,
    LossOptions,
    MinerOptions,
    StoreOptions,
)
from cse_core.recipes.reading import _KEYS
from cse_core.recipes.settings import CORE_OPTIONS, ViewOptions
from cse_core.runtime.loading import load_factory
from cse_core.specs import HOOK_RECORDS
from docs import reference
from tests.docs.pages import DOCS, ROOT, Page, pages

PAGES = list(pages())
NAMED = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
EXPECTED = (
    "quickstart", "lifecycle", "authors", "reference", "options", "recipes", "combine",
    "security", "evaluation", "python",
)  # fmt: skip
PAPERS = sorted(each.parents[1].name for each in ROOT.glob("plugins/*/cse_*/recipes"))


@pytest.mark.parametrize("name", [*EXPECTED, *(f"methods/{paper}" for paper in PAPERS)])
def test_page_is_there(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith("# ") and len(text) > 1000


@NAMED
def test_relative_links_resolve(page: Page) -> None:
    for found in LINK.finditer(page.prose()):
        target, _, anchor = found["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = page.path.parent / target if target else page.path
        assert there.exists(), f"{page.name}: {found['target']}"
        if anchor and there.suffix == ".md":
            assert anchor in headings(Page(there)), f"{page.name}: {found['target']}"


def headings(page: Page) -> set[str]:
    """Return the anchors of a page's headings."""
    lines = re.findall(r"^#+ +(.+)$", page.prose(), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


@NAMED
def test_nothing_of_one_machine(page: Page) -> None:
    for word in ("/work/", "/home/", "/root/", "/tmp/", "C:\\", "localhost"):
        assert word not in page.text, f"{page.name} has {word}"


@NAMED
def test_toml_blocks_are_toml(page: Page) -> None:
    for block in page.blocks():
        if block.kind == "toml":
            tomllib.loads(block.text)


def test_generated_tables_are_up_to_date() -> None:
    generate = load_module()
    pages_out = [str(page.relative_to(ROOT)) for page in generate.outdated()]
    assert not pages_out, "run: python docs/generate.py"


def test_every_generated_table_is_on_a_page() -> None:
    generate = load_module()
    text = "\n".join(page.text for page in PAGES)
    for name in generate.TABLES:
        assert f"<!-- generated: {name} -->" in text


def load_module():  # type: ignore[no-untyped-def]
    """Import docs/generate.py, which is in no package."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODELS = {
    **{name: (name, options) for name, options in CORE_OPTIONS.items()},
    "views": ("views.NAME", ViewOptions),
    "aug": ("aug.NAME", AugmenterOptions),
    "head": ("pool.NAME", HeadOptions),
    "positives": ("positives.NAME", MinerOptions),
    "negatives": ("negatives.NAME", StoreOptions),
    "loss": ("loss.NAME", LossOptions),
    "branch": ("branch.NAME", BranchOptions),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_core_option_is_in_options(name: str) -> None:
    text = Page(DOCS / "options.md").text
    path, options = MODELS[name]
    for option in options.model_fields:
        (row,) = (line for line in text.splitlines() if line.startswith(f"| `{path}.{option}` |"))
        described = row.split(" | ")[-1].removesuffix(" |").strip()
        assert described, f"{path}.{option} has no description"
        assert describe(options, option), f"{options.__name__}.{option} has no docstring"


def test_every_key_of_a_recipe_is_explained() -> None:
    text = Page(DOCS / "recipes.md").text
    for key in set(_KEYS) - {"run", "versions"}:
        assert f"`{key}`" in text or f"`{key}.NAME`" in text, key


def test_every_token_is_in_the_guide_and_in_the_reference() -> None:
    table = Page(DOCS / "reference.md").section("Tokens")
    guide = Page(DOCS / "authors.md").text
    for token in (*CAPABILITIES, *(f"{prefix}:NAME" for prefix in CAPABILITY_PREFIXES)):
        assert f"| `{token}` |" in table
        assert f"`{token}`" in guide


def test_every_role_is_in_the_guide() -> None:
    from typing import get_args

    text = Page(DOCS / "authors.md").text
    for role in get_args(Role):
        assert f"`{role}`" in text


def test_every_status_of_a_plugin_is_in_the_guide() -> None:
    from typing import get_args

    from cse_core.registry.plugin_info import Status

    text = Page(DOCS / "authors.md").section("When a part is not called")
    for status in set(get_args(Status)) - {"active"}:
        assert f"`{status}`" in text


def test_every_field_of_the_reference_is_described() -> None:
    bare = [
        f"{name}.{field.name}"
        for name, node in reference.classes().items()
        for field in reference.fields(node)
        if not field.text
    ]
    assert not bare, "say in its docstring what it is"


DATACLASSES = (
    "types:TokenBatch", "types:View", "types:Embeddings", "types:Positives", "types:Negatives",
    "types:Batch", "types:StepContext", "types:LossOutput", "types:Round", "types:Hidden",
    "types:CorpusKeys", "parts:Setup", "parts:RoundContext", "records:RunInfo",
    *(f"records:{record.__name__}" for record in HOOK_RECORDS.values()),
)  # fmt: skip


@pytest.mark.parametrize("name", DATACLASSES)
def test_every_field_is_in_the_reference(name: str) -> None:
    kind = load_factory(f"cse_core.{name}")
    classes, found, left = reference.classes(), set[str](), [kind.__name__]
    while left:
        node = classes.get(left.pop())
        if node is not None:
            found |= {field.name for field in reference.fields(node)}
            left += [base.id for base in node.bases if isinstance(base, ast.Name)]
    assert {field.name for field in dataclasses.fields(kind)} == found


PARTS = (
    "Part", "Augmenter", "SlicePooler", "RowPooler", "Head", "PositiveMiner", "NegativeStore",
    "Loss", "Branch", "Metric",
)  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_every_method_of_a_part_is_in_the_reference(name: str) -> None:
    kind = load_factory(f"cse_core.parts:{name}")
    text = Page(DOCS / "reference.md").text
    section = text.split(f"### {name}\n")[1].split("\n### ")[0]
    for method, value in vars(kind).items():
        if inspect.isfunction(value):
            assert f"- `{method}(" in section and (value.__doc__ or "").strip(), method


def test_every_plugin_folder_is_in_requirements() -> None:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    folders = [path.parent for path in ROOT.glob("plugins/*/pyproject.toml")]
    assert folders
    for folder in folders:
        assert f"-e {folder.relative_to(ROOT)}" in lines


def test_every_plugin_folder_has_its_method_page_or_is_no_paper() -> None:
    papers = {each.stem for each in (DOCS / "methods").glob("*.md")}
    assert papers == set(PAPERS)


def test_every_plugin_is_in_the_table_of_parts() -> None:
    section = Page(DOCS / "combine.md").section("Which plugin brings what")
    for name in {part.distribution for part in known_parts()}:
        assert f"| {name} |" in section, name
