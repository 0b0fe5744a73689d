"""The reference of what authors import, written from the docstrings of its modules.

Read by syntax alone: nothing is imported. A class has its own fields, each with the text of
``Attributes`` in its docstring or of the docstring under it, and its public methods. What it
inherits stands with the class that it is based on; what the core alone uses is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECTIONS: dict[str, tuple[str, ...]] = {
    "Records": ("cse_core.records", "cse_core.run_info"),
    "Options of parts": ("cse_core.options", "cse_core.schedule"),
    "Base classes of parts": ("cse_core.parts",),
    "Data of a step": ("cse_core.types", "cse_core.token_batch"),
    "Functions and memory": ("cse_core.functional", "cse_core.memory"),
    "Errors": ("cse_core.errors",),
    "Names": ("cse_core.capabilities",),
    "Evaluation suites": ("cse_core.suites",),
    "Reporters": ("cse_core.reporter",),
}
"""Sections of the page and the modules of each."""
HANDED: dict[str, tuple[str, ...]] = {
    "cse_core.protocols": ("Encoder", "Tokenizer", "Corpus", "Column", "Rows"),
    "cse_evaluation.pairs": ("PairSet", "ScoredPair"),
}
"""Classes of other packages, and of the suites, whose objects are handed to parts."""
IN_A_LINE: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "Files": (
        "cse_core.files",
        {
            "cse_core.files": (
                *("atomic_write", "atomic_file", "atomic_folder", "verify_checksums"),
                *("disk_errors", "writable_folder"),
            )
        },
    ),
    "Code and data of packages": (
        "cse_core.loading",
        {"cse_core.loading": ("load_factory", "package_path", "records_of_files")},
    ),
    "For tests": (
        "cse_testkit",
        {
            "cse_testkit.runs": ("run_steps", "compose", "Rig"),
            "cse_testkit.batches": ("make_batch", "make_context", "make_setup", "make_part"),
            "cse_testkit.checking": ("part_suites", "recipe_suites", "pairs"),
            "cse_testkit.completion": ("train_together",),
            "cse_testkit.promises": ("failures",),
        },
    ),
}
"""Sections of a line for each name: whence all of them are imported, and where they are defined."""
FOR_COMMANDS: dict[str, tuple[str, ...]] = {
    "cse_cli.terminal.console": (
        *("echo", "echo_err", "warn", "fail", "say_json", "plain_table", "say_table"),
    ),
    "cse_cli.training.choosing": ("choice_flags", "Choice", "SHOWN"),
    "cse_cli.options.completion": ("complete_data", "complete_model", "complete_suite"),
    "cse_cli.plugins.installed": ("installed", "Installed"),
    "cse_cli.plugins.folders": ("data_folder", "known_set", "DATA_VARIABLE"),
    "cse_cli.models.loading": (*("check_model", "ModelArgument", "Loading", "model_flags"),),
    "cse_cli.models.processes": ("shared",),
    "cse_cli.machine.out_files": ("out_file", "check_out_file", "check_out_folder"),
    "cse_cli.machine.processor": ("processor",),
    "cse_cli.cards.scores": ("keep_scores",),
    "cse_cli.training.resolving": (
        *("composition_of", "check_read", "absolute_path", "with_absolute_paths", "find_model"),
        *("CORE_OPTIONS", "format_value", "read_toml"),
    ),
    "cse_engine.compose.compose": ("resolve",),
    "cse_core.registry.registry": ("Registry", "Registered", "PluginInfo"),
    "cse_cli.options.descriptions": ("describe",),
    "cse_core.loading": ("is_hub_reachable",),
}
"""What commands use, all of it imported from ``cse_cli.api``, where the other functions are."""
DISTRIBUTIONS = {"cse_evaluation": "plugins/evaluation", "cse_testkit": "plugins/testkit"}
"""Folders of packages that are not at the top."""
HIDDEN = {
    "CseErrors",
    "collect_errors",
    "raise_all",
    "truncate",
    "truncate_repr",
    "visible",
    "COMPONENT_SPECS",
    "RECORDS",
    "NOUNS",
    "parse_needs",
    "CAPABILITIES",
    "CAPABILITY_PREFIXES",
}
"""Names of these modules that are not for authors, or have a table of their own."""
CORE_ONLY = {
    "CORE_VIEWS", "CURVES", "ComponentSpec.declared", "ComponentSpec.default_options",
    "ConfiguredSpec.options_class",
    "CseError.line",
    "ElsewhereError", "Embeddings.detach", "Embeddings.join", "Embeddings.owners",
    "Embeddings.take", "Fifo.after", "GROUP", "HOOK_RECORDS", "Held.part", "Hidden.selected_only",
    "INSTANCE", "LARGEST", "MAX_ERRORS_SHOWN", "MAX_LINE_CHARACTERS", "Negatives.join",
    "PATIENCE_FORM", "PairSet.file", "PairSet.fingerprint", "Part.owner", "Part.path", "PartError",
    "Rig.bad_gradients", "Rig.watch", "SLOTS_PER_TEXT", "Schedule.parse",
    "SlicePooler.slices_wrapped", "SuiteFiles.missing", "SuiteFiles.there", "SuiteScore.to_json",
    "Tiles", "TokenBatch.join", "TokenBatch.to", "TokenBatch.with_labels", "Tokenizer.end_rows",
    "Tokenizer.prompt_ids", "describe_fault", "is_location", "models_named",
}  # fmt: skip
"""What the core alone uses: it is not on the page."""
_ENTRY = re.compile(r"^(?P<name>[\w.*, ]+?): (?P<text>.*)$")


@dataclass(frozen=True)
class Text:
    """A docstring in its sections: free text, then entries by name."""

    body: str
    entries: dict[str, dict[str, str]]


@dataclass(frozen=True)
class Field:
    """A field of a class: its type, its default (empty without one) and what it is."""

    name: str
    type: str
    default: str
    text: str


def read(docstring: str) -> Text:
    """Read a docstring with sections ``Attributes``, ``Args``, ``Raises`` and ``Returns``."""
    pieces = re.split(r"^(Attributes|Args|Raises|Returns):\n", docstring, flags=re.M)
    entries = {
        name: dict(_entries(text)) for name, text in zip(pieces[1::2], pieces[2::2], strict=True)
    }
    behind = "".join(_behind(text) for text in pieces[2::2])
    return Text(_markdown(pieces[0] + behind), entries)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield the entries of a section, whose lines are indented by four."""
    lines = [line[4:] for line in text.split("\n") if line.startswith("    ")]
    joined = re.sub(r"\n +", " ", "\n".join(lines))
    for line in joined.splitlines():
        match = _ENTRY.match(line)
        if match is not None:
            yield match["name"], _markdown(match["text"])
        elif line.strip():
            yield "", _markdown(line)


def _behind(text: str) -> str:
    """Return the free text after a section's entries."""
    lines = text.split("\n")
    start = next((n for n, line in enumerate(lines) if line and line[0] != " "), len(lines))
    return "\n\n" + "\n".join(lines[start:]) if start < len(lines) else ""


def _markdown(text: str) -> str:
    """Return the text of a docstring as Markdown, paragraphs on one line each."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph.startswith(("    ", ">>>")):
            paragraphs.append("```python\n" + paragraph.replace("\n    ", "\n").strip() + "\n```")
        else:
            paragraphs.append(" ".join(paragraph.split()).replace("::", ":"))
    return "\n\n".join(paragraphs)


@cache
def tree(module: str) -> ast.Module:
    """Return the syntax of a module."""
    path = ROOT / DISTRIBUTIONS.get(module.split(".")[0], "") / Path(*module.split("."))
    return ast.parse(path.with_suffix(".py").read_text(encoding="utf-8"))


def classes() -> dict[str, ast.ClassDef]:
    """Return every class of the reference by its name."""
    named: dict[str, tuple[str, ...] | None] = {
        module: None for modules in SECTIONS.values() for module in modules
    }
    named |= HANDED | IN_A_LINE["For tests"][1]
    return {
        node.name: node
        for module, names in named.items()
        for node in tree(module).body
        if isinstance(node, ast.ClassDef)
        and _shown(node.name)
        and node.name in (names or {node.name})
    }


def _shown(name: str) -> bool:
    """Tell whether a name is for authors; hooks have a section of their own."""
    return not name.startswith(("_", "cse_")) and name not in HIDDEN


def fields(node: ast.ClassDef) -> list[Field]:
    """Return the fields that a class declares, and those that its docstring alone names."""
    known = classes()
    above = [field for base in node.bases for field in _of_base(base, known)]
    inherited = {entry.name: entry for entry in above}
    said = read(ast.get_docstring(node) or "").entries.get("Attributes", {})
    listed = {}
    for place, item in enumerate(node.body):
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        name, kind = item.target.id, ast.unparse(item.annotation)
        if name.startswith("_") or kind.startswith("ClassVar"):
            continue
        text = said.get(name) or _under(node, place)
        if not text and name in inherited:
            text = inherited[name].text
        listed[name] = Field(name, kind, _default(item.value), text)
    for name, text in said.items():
        if name not in listed:
            made = inherited.get(name, Field(name, "", "", ""))
            listed[name] = Field(name, made.type, made.default, text)
    return list(listed.values())


def _of_base(base: ast.expr, known: dict[str, ast.ClassDef]) -> list[Field]:
    """Return the fields of a base class, inherited ones too."""
    node = known.get(ast.unparse(base))
    if node is None:
        return []
    return [*(field for up in node.bases for field in _of_base(up, known)), *fields(node)]


def _under(node: ast.ClassDef, place: int) -> str:
    """Return the docstring under a field."""
    below = node.body[place + 1] if place + 1 < len(node.body) else None
    if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
        return _markdown(str(below.value.value))
    return ""


def _default(value: ast.expr | None) -> str:
    if value is None:
        return ""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("field", "Field"):
        words = {word.arg: ast.unparse(word.value) for word in value.keywords}
        made = words.get("default_factory", "")
        return words.get("default", {"dict": "{}", "list": "[]"}.get(made, made))
    return ast.unparse(value)


def methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """Return the public methods that a class defines, calls among them."""
    return [
        item
        for item in node.body
        if isinstance(item, ast.FunctionDef)
        and (not item.name.startswith("_") or item.name == "__call__")
        and not {"overload", "field_validator"} & set(map(_head, item.decorator_list))
    ]


def _head(decorator: ast.expr) -> str:
    return ast.unparse(decorator).split("(")[0].rpartition(".")[2]


def signature(node: ast.FunctionDef) -> str:
    """Return the call of a function in one line, without ``self``; a property's type alone."""
    returned = ast.unparse(node.returns) if node.returns is not None else "None"
    if {"property", "cached_property"} & set(map(_head, node.decorator_list)):
        return f"{node.name} -> {returned}"
    given = re.sub(r"^(self|cls)(, )?", "", ast.unparse(node.args))
    return f"{node.name}({given}) -> {returned}"


def _function(node: ast.FunctionDef) -> str:
    """Return a function as an item of a list."""
    text = read(ast.get_docstring(node) or "")
    words = [text.body.replace("\n\n", " ")] if text.body else []
    words += [f"`{name}`: {what}" for name, what in text.entries.get("Args", {}).items()]
    words += [what for what in text.entries.get("Returns", {}).values()]
    words += _raised(text)
    return f"- `{signature(node)}`<br>{' '.join(words)}"


def _raised(text: Text) -> list[str]:
    return [f"Raises `{name}`: {what}" for name, what in text.entries.get("Raises", {}).items()]


def _class(node: ast.ClassDef, module: str) -> str:
    """Return a class with its own fields and methods, without those that it inherits."""
    text = read(ast.get_docstring(node) or "")
    known = classes()
    bases = [name for base in node.bases if (name := ast.unparse(base)) != "Protocol"]
    headed = {base for base in bases if base in known and not base.endswith("Options")}
    linked = [
        f"[{base}](#{base.lower()})" if base in headed else f"`{base}`"
        for base in bases
        if base != "Part"  # the section says that all are parts
    ]
    inherited = {field.name for base in node.bases for field in _of_base(base, known)}
    blocks = [f"### {node.name}"]
    place = f"`{module}`. " if module in HANDED else ""
    based = f" Based on {', '.join(linked)}." if linked else ""
    blocks.append(f"{place}{text.body}{based}")
    made = [f"- `{name}`: {what}" for name, what in text.entries.get("Args", {}).items()]
    lines = [
        _field(entry)
        for entry in fields(node)
        if entry.name not in inherited and _listed(f"{node.name}.{entry.name}")
    ]
    lines += [_function(item) for item in methods(node) if _listed(f"{node.name}.{item.name}")]
    blocks += ["\n".join([*made, *lines]), " ".join(_raised(text))]
    return "\n\n".join(block for block in blocks if block)


def _field(field: Field) -> str:
    """Return a field as an item of a list, declared as in Python, or as it is called."""
    if field.text.startswith(f"`{field.name}("):
        return f"- {field.text}".replace("\n\n", " ")
    declared = field.name + (f": {field.type}" if field.type else "")
    declared += f" = {field.default}" if field.default else ""
    return f"- `{declared}`<br>{field.text}".replace("\n\n", " ")


def _listed(name: str) -> bool:
    return name not in CORE_ONLY


def _values(module: str) -> list[str]:
    """Return the documented names of a module, and the choices, that are no class or function."""
    lines: list[str] = []
    body = [*tree(module).body, ast.Pass()]
    for node, below in zip(body, body[1:], strict=False):
        name = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if not isinstance(name, ast.Name) or not _shown(name.id) or not _listed(name.id):
            continue
        value = ast.unparse(node.value) if isinstance(node, ast.Assign) else ""
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            lines.append(f"- `{name.id}`: {_markdown(str(below.value.value))}")
        elif value.startswith("Literal["):
            choices = value.removeprefix("Literal[").removesuffix("]")
            lines.append(f"- `{name.id}`: one of `{choices}`")
    return lines


def page() -> str:
    """Return the sections of the reference."""
    blocks = []
    for title, modules in SECTIONS.items():
        blocks.append(f"## {title}")
        for module in modules:
            blocks.append(f"`{module}`: {read(ast.get_docstring(tree(module)) or '').body}")
            blocks += _definitions(tree(module).body, module)
            values = _values(module)
            blocks += ["\n".join(values)] if values else []
    blocks.append("## Handed to parts")
    for module, names in HANDED.items():
        blocks += _definitions(_named(module, names), module)
    blocks.append("## For commands")
    blocks.append("`cse_cli.api`; `help(NAME)` says more.")
    public = [node for node in tree("cse_cli.api").body if isinstance(node, ast.FunctionDef)]
    lines = [
        f"- {', '.join(f'`{name}`' for name in names)}: {_first_line(tree(module))}"
        for module, names in FOR_COMMANDS.items()
    ]
    blocks.append("\n".join([*map(_in_a_line, public), *lines]))
    for title, (door, places) in IN_A_LINE.items():
        blocks.append(f"## {title}")
        blocks.append(f"`{door}`; `help(NAME)` says more.")
        lines = [_in_a_line(node) for named in places.items() for node in _named(*named)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _named(module: str, names: Sequence[str]) -> list[ast.stmt]:
    nodes = {getattr(node, "name", ""): node for node in tree(module).body}
    return [nodes[name] for name in names]


def _in_a_line(node: ast.stmt) -> str:
    """Return the purpose of a class or a function, the first line of its docstring."""
    assert isinstance(node, ast.ClassDef | ast.FunctionDef)
    methods_of = methods(node) if isinstance(node, ast.ClassDef) else []
    names = ", ".join(
        f"`{item.name}`" for item in methods_of if _listed(f"{node.name}.{item.name}")
    )
    return f"- `{node.name}`: {_first_line(node)}" + (f" Has {names}." if names else "")


def _first_line(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    return _markdown((ast.get_docstring(node) or "").splitlines()[0])


def _definitions(nodes: Sequence[ast.stmt], module: str) -> Iterator[str]:
    """Yield the classes of some nodes, then the functions in one list."""
    nodes = [node for node in nodes if _shown(name := getattr(node, "name", "_")) and _listed(name)]
    types = [node for node in nodes if isinstance(node, ast.ClassDef)]
    models = [node for node in types if node.name.endswith("Options")]
    yield from (_class(node, module) for node in types if node not in models)
    if models:
        names = ", ".join(f"`{node.name}`" for node in models)
        yield f"Models of options: {names}. [options.md](options.md#parts) has what each accepts."
    lines = [_function(node) for node in nodes if isinstance(node, ast.FunctionDef)]
    if lines:
        yield "\n".join(lines)
