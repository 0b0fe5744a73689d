"""What holds for every page: links resolve, tables are up to date, nothing of one machine in it."""

from __future__ import annotations

import re
import tomllib

import pytest

from cse_cli.known_parts import known_parts
from cse_cli.option_texts import describe
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
from cse_core.vocabulary import PREFIXES, WORDS, Role
from tests.docs.pages import DOCS, ROOT, Page, pages

PAGES = list(pages())
NAMED = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
EXPECTED = (
    "quickstart", "lifecycle", "contracts", "hooks", "recipes", "write-a-plugin", "combine",
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
def test_every_core_option_is_in_recipes(name: str) -> None:
    text = Page(DOCS / "recipes.md").text
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


def test_every_token_is_in_contracts() -> None:
    text = Page(DOCS / "contracts.md").text
    for token in (*WORDS, *(f"{prefix}:NAME" for prefix in PREFIXES)):
        assert f"| `{token}` |" in text


def test_every_role_is_in_contracts() -> None:
    from typing import get_args

    text = Page(DOCS / "contracts.md").text
    for role in get_args(Role):
        assert f"`{role}`" in text


DATA_TYPES = (
    "TokenBatch", "View", "Embeddings", "Positives", "Negatives", "Batch", "StepContext",
    "LossOutput", "Round",
)  # fmt: skip


@pytest.mark.parametrize("name", DATA_TYPES)
def test_every_field_of_a_data_type_is_in_contracts(name: str) -> None:
    kind = load_factory(f"cse_core.types:{name}")
    text = Page(DOCS / "contracts.md").text
    start = text.index(f"### {name}") if f"### {name}\n" in text else text.index(f"`{name}(")
    for field in kind.__dataclass_fields__:
        assert re.search(rf"[`(, ]{field}[`(, )]", text[start:]), f"{name}.{field}"


METHODS = {
    "Part": (
        "prepare", "views", "after_step", "begin_round", "next_round", "state_dict",
        "load_state_dict",
    ),
    "Augmenter": ("__call__",),
    "SlicePooler": ("slices", "join"),
    "RowPooler": ("prompt", "content", "reads", "pool"),
    "Head": ("forward", "sentence_transformers"),
    "PositiveMiner": ("mine",),
    "NegativeStore": ("candidates", "weigh"),
    "Loss": ("__call__",),
    "Metric": ("compute",),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_every_contract_method_is_in_contracts_with_its_signature(name: str) -> None:
    import inspect

    kind = load_factory(f"cse_core.parts:{name}")
    text = " ".join(Page(DOCS / "contracts.md").text.split())
    methods = [method for method, value in vars(kind).items() if inspect.isfunction(value)]
    assert set(methods) == set(METHODS[name])
    for method in methods:
        signature = str(inspect.signature(getattr(kind, method))).replace("'", "")
        signature = re.sub(r"\btorch\.nn\.", "nn.", signature)
        wanted = f"def {method}{signature}: ..."
        assert wanted in text.replace("( self", "(self").replace(" ) ->", ") ->"), wanted


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
