"""docs/gpu.md from the results."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from tests.gpu.setting import Section

HEAD = """# On a GPU

<!-- python -m tests.gpu writes this page -->

`make gpu` runs what only a GPU can show, within ten minutes and without a network, and writes this
page from `runs/gpu/results.json`. A section that runs longer than its share of the time is cut.
`make gpu WHEELS=FOLDER` installs what the machine lacks from a folder that
`make gpu-wheels WHEELS=FOLDER` has filled elsewhere. `make gpu SECTIONS="kernels parts"` runs some
sections alone, `CSE_GPU_DEVICE=cpu make gpu` all of them in a small form on the processor.
"""
NONE = "**Not yet run on a GPU.**\n"
MANY = ("losses", "waits", "values")
"""Checks of which there are many: those that hold are counted and not listed."""


def page(results: dict[str, Any], sections: Sequence[Section]) -> str:
    """Return the page."""
    about = [[name, str(value)] for name, value in results.get("about", {}).items()]
    parts = [HEAD, _table(("", ""), about) if results.get("sections") else NONE]
    parts += [_section(each, results.get("sections", {}).get(each.name)) for each in sections]
    return "\n".join(parts)


def _section(section: Section, result: dict[str, Any] | None) -> str:
    lines = [f"## {section.title}\n", f"{inspect.getdoc(section.run)}\n"]
    if result is None:
        return "\n".join([*lines, f"Not measured; `make gpu SECTIONS={section.name}`.\n"])
    checks = [line["ok"] for line in result["found"] if line["ok"] is not None]
    facts = f"{sum(checks)} of {len(checks)} checks hold; {result['seconds']} seconds"
    lines.append(f"{facts}{', cut there' * result['cut']}; code {result['code']}.\n")
    if result["failed"]:
        lines.append(f"It broke:\n\n```\n{result['failed'][-800:]}\n```\n")
    for kind in dict.fromkeys(line["check"] for line in result["found"]):
        rows = [line for line in result["found"] if line["check"] == kind]
        rows = [line for line in rows if kind not in MANY or not line["ok"]]
        names = list(dict.fromkeys(name for row in rows for name in row if name != "check"))
        if rows:
            cells = [[_cell(row.get(name)) for name in names] for row in rows]
            lines += [f"### {kind}\n", _table([name.replace("_", " ") for name in names], cells)]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value).replace("|", "/").replace("\n", " ").replace("<", "&lt;")


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
