"""Write what the code itself knows into these pages: options, the reference, plugins, pictures.

    python docs/generate.py            rewrites what stands between the markers
    python docs/generate.py --check    only tells which pages are out of date; exit 1 if any is

A marked place begins with ``<!-- generated: NAME -->`` and ends with ``<!-- end of NAME -->``.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from cse_cli.options.descriptions import describe
from cse_core import capabilities, hookspecs
from cse_core.hookspecs import COMPONENT_SPECS, HOOK_RECORDS
from cse_core.loading import load_factory
from cse_core.options import HeadOptions, Options
from cse_core.records import ComponentSpec
from cse_core.texts import DataOptions
from cse_defaults.basics import plugin as basics
from cse_defaults.texts.columns import KNOWN_COLUMNS, PARTNERS
from cse_engine.compose.settings import InferenceOptions, ModelOptions, TrainOptions, ViewOptions
from cse_engine.compose.values import describe_type, format_value

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))  # run as a file, it finds docs.packages too

from cse_cli.terminal.markdown import markdown_table as table  # noqa: E402
from docs import papers, pictures, reference, skill  # noqa: E402
from docs.packages import PACKAGES, folder, package_imports, purpose  # noqa: E402

OPTION_HEAD = ("option", "accepts", "default", "what it does")
MARKED = re.compile(
    r"(?P<head><!-- generated: (?P<name>[\w-]+) -->\n).*?(?P<foot><!-- end of (?P=name) -->)",
    re.DOTALL,
)


def options_rows(
    options: type[Options], path: str, *, without: type[Options] | None = None
) -> Iterator[tuple[str, str, str, str]]:
    """Yield the options of a model, without those that it has as another one has them."""
    inherited = without.model_fields if without is not None else {}
    for name, info in options.model_fields.items():
        default = info.get_default(call_default_factory=True)
        if name in inherited and default == inherited[name].get_default(call_default_factory=True):
            continue
        words = "required" if info.is_required() else f"`{format_value(default)}`"
        yield (
            f"`{path}.{name}`",
            describe_type(info),
            "empty" if default == "" else words,
            describe(options, name),
        )


def options_table(options: type[Options], path: str) -> str:
    """Return the options of a model."""
    return table(OPTION_HEAD, options_rows(options, path))


def kinds_table() -> str:
    """Return the options that every part of a kind has."""
    rows = []
    for kind, record in COMPONENT_SPECS.items():
        options = HeadOptions if kind == "pool" else load_factory(record.options)
        rows += options_rows(options, f"{kind}.NAME")
    return table(OPTION_HEAD, rows)


def capabilities_table() -> str:
    """Return the table of values for ``requires`` and ``provides``."""
    forms = [f"{prefix}:NAME" for prefix in sorted(capabilities.CAPABILITY_PREFIXES)]
    forms += sorted(capabilities.CAPABILITIES)
    meaning = {**capabilities.CAPABILITY_PREFIXES, **capabilities.CAPABILITIES}
    rows = [(f"`{form}`", meaning[form.removesuffix(":NAME")]) for form in forms]
    return table(("capability", "meaning"), rows)


def hooks_text() -> str:
    """Return each hook with its record and first sentence; the guide has the examples."""
    texts = []
    for hook, records in HOOK_RECORDS.items():
        links = " or ".join(
            f"[{name}](#{name.lower()})" for name in (record.__name__ for record in records)
        )
        what = str(inspect.getdoc(getattr(hookspecs, hook))).split("\n\n")[0]
        what = re.sub(r"``([^`]*)``", r"`\1`", what)
        texts.append(f"### {hook}: {links}\n\n{what}")
    return "\n\n".join(texts)


def builtins_table() -> str:
    """Return the built-in parts that have options of their own, with these."""
    rows = []
    records: list[ComponentSpec] = [
        *basics.cse_poolers(),
        *basics.cse_losses(),
        *basics.cse_branches(),
    ]
    for record in records:
        path = f"{record.kind}.{record.name}"
        rows += options_rows(record.options_class, path, without=load_factory(type(record).options))
    return table(OPTION_HEAD, rows)


def packages_table() -> str:
    """List the packages of the inner rooms, and what each imports of the others."""
    imports = package_imports()
    rows = [
        [f"`{folder(package)}`", purpose(package), ", ".join(sorted(imports[package])) or "–"]
        for package in PACKAGES
    ]
    return table(["where", "what it is for", "imports"], rows)


def columns_table() -> str:
    """Return the table of column names in files."""
    rows = [[f"`{name}`", ", ".join(known)] for name, known in KNOWN_COLUMNS.items()]
    beside: dict[str, list[str]] = {}
    for text, partners in PARTNERS.items():
        beside.setdefault(", ".join(sorted(partners)), []).append(text)
    pairs = (f"{partners} ({', '.join(texts)})" for partners, texts in beside.items())
    rows.insert(2, ["`positive` (of this text)", "; ".join(pairs)])
    return table(["here", "in files"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "columns": columns_table,
    "packages": packages_table,
    "distributions": papers.distributions,
    "papers": papers.table_of_papers,
    "hooks": hooks_text,
    "capabilities": capabilities_table,
    "reference": reference.page,
    "kinds": kinds_table,
    "builtins": builtins_table,
    "model": lambda: options_table(ModelOptions, "model"),
    "data": lambda: options_table(DataOptions, "data"),
    "train": lambda: options_table(TrainOptions, "train"),
    "views": lambda: options_table(ViewOptions, "views.NAME"),
    "inference": lambda: options_table(InferenceOptions, "inference"),
    "skill-commands": skill.commands,
    "skill-mistakes": skill.mistakes,
}


def generated(text: str) -> str:
    """Return a page with its marked places rewritten."""

    def fill(match: re.Match[str]) -> str:
        return f"{match['head']}\n{TABLES[match['name']]()}\n\n{match['foot']}"

    return MARKED.sub(fill, text)


def outdated() -> dict[Path, str]:
    """Return the pages that are not what the code says, with what it says."""
    pages = {}
    for page in (*sorted(FOLDER.rglob("*.md")), skill.PAGE):
        text = page.read_text(encoding="utf-8")
        if (wanted := generated(text)) != text:
            pages[page] = wanted
    drawn = {file: text for file, text in pictures.pictures() if not file.is_file()
             or file.read_text(encoding="utf-8") != text}  # fmt: skip
    return pages | drawn


def main() -> int:
    """Rewrite or check the pages."""
    parser = argparse.ArgumentParser(description="Write the generated tables of docs/.")
    parser.add_argument("--check", action="store_true", help="only tell what is out of date")
    check = parser.parse_args().check
    pages = outdated()
    for page, text in pages.items():
        print(f"{page.relative_to(FOLDER.parent)} {'is out of date' if check else 'rewritten'}")
        if not check:
            page.write_text(text, encoding="utf-8")
    return int(check and bool(pages))


if __name__ == "__main__":
    sys.exit(main())
