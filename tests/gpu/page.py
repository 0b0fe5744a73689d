"""docs/gpu.md from the results."""

from __future__ import annotations

import importlib.util
import inspect
import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from tests.gpu.sections import SECTIONS, Section

HEAD = """# On a GPU

<!-- python -m tests.gpu writes this page -->

`make gpu` runs what only a GPU can show, within ten minutes and without a network, and writes this
page from `runs/gpu/results.json`. A section that runs longer than its share of the time is cut and
says so. `make gpu WHEELS=FOLDER` installs what the machine lacks from a folder that
`make gpu-wheels WHEELS=FOLDER` has filled elsewhere. `make gpu SECTIONS="kernels parts"` runs some
sections alone, and `CSE_GPU_DEVICE=cpu make gpu` all of them in a small form on the processor.
`ARGS="--minutes 8 --out FOLDER --page FILE"` gives less time, and writes elsewhere.
"""
NONE = "\n**Nothing has been measured yet: this page waits for its first GPU.**\n"


def page(results: dict[str, Any]) -> str:
    """Return the page."""
    parts = [HEAD]
    if not results.get("sections"):
        parts.append(NONE)
    else:
        parts.append(_about(results["about"]))
    code = results.get("about", {}).get("code", "")
    parts += [_section(section, results.get("sections", {}), code) for section in SECTIONS]
    return "\n".join(parts)


def _about(about: dict[str, Any]) -> str:
    words = {**about.get("gpu", {"GPU": "none: everything is small"}), **about["machine"]}
    words |= {"code": about["code"], "date": about["date"]}
    return _table(("", ""), [[name, str(value)] for name, value in words.items()])


def _section(section: Section, found: dict[str, Any], code: str) -> str:
    said = _intent(section.name)
    lines = [f"## {section.title}\n", f"{said}\n"]
    result = found.get(section.name)
    if result is None:
        return "\n".join([*lines, f"Not measured; `make gpu SECTIONS={section.name}`.\n"])
    checks = [line for line in result["found"] if line["ok"] is not None]
    good = sum(line["ok"] for line in checks)
    facts = f"{good} of {len(checks)} checks hold; {result['seconds']} seconds"
    facts += ", cut there" * result["cut"]
    facts += f"; code {result['code']}" if result["code"] != code else ""
    lines.append(f"{facts}.\n")
    if result["failed"]:
        lines.append(f"It broke:\n\n```\n{result['failed'][-800:]}\n```\n")
    kinds: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in result["found"]:
        kinds[line["check"]].append(line)
    for kind, rows in kinds.items():
        if kind in _QUIET and all(row["ok"] for row in rows):
            continue
        shown = [row for row in rows if kind not in _QUIET or row["ok"] is not True]
        names = list(dict.fromkeys(name for row in shown for name in row if name != "check"))
        if all(row["ok"] is None for row in shown):
            names.remove("ok")
        cells = [[_cell(row.get(name)) for name in names] for row in shown]
        lines += [f"### {kind}\n", _table([name.replace("_", " ") for name in names], cells)]
    return "\n".join(lines)


_QUIET = ("losses", "waits", "values")
"""Checks of which there are many: those that hold are counted and not listed."""


def _intent(name: str) -> str:
    """Return what a section does, as its module says."""
    module = importlib.util.find_spec(f"tests.gpu.{name}")
    if module is None or module.origin is None:
        raise LookupError(name)
    with open(module.origin, encoding="utf-8") as file:
        text = file.read()
    return inspect.cleandoc(text.split('"""')[1])


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, list):
        return "; ".join(
            " ".join(map(str, each)) if isinstance(each, list) else _cell(each) for each in value
        )
    text = value if isinstance(value, str) else json.dumps(value)
    return text.replace("|", "/").replace("\n", " ").replace("<", "&lt;")


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
