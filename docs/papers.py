"""Tables of what is installed, and of what the five papers print and where it is entered."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from cse_study.definition.printed import FILE, read_printed

from cse_cli.terminal.markdown import markdown_table

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
PAPERS = {"hicl": "HiCL", "iscse": "IS-CSE", "infocse": "InfoCSE", "ifcl": "IFCL",
          "mocose": "MoCoSE"}  # fmt: skip


def distributions() -> str:
    """Return the distributions with what is in them, and the page of each method."""
    rows = []
    for path in [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]:
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        name, what = project["name"], project["description"]
        page = FOLDER / f"methods/{path.parent.name}.md"
        if page.is_file():
            what = f"[{what}](methods/{page.name})"
        elif path.parent != ROOT:
            what = f"[{what}](../plugins/{path.parent.name}/README.md)"
        rows.append([f"`{name}`", what])
    return markdown_table(["package", "contents"], rows)


def table_of_papers() -> str:
    """Return how many numbers each place of a paper prints, its study, and the page of our runs."""
    rows = []
    for paper, name in PAPERS.items():
        folder = ROOT / f"plugins/{paper}/cse_{paper}/studies"
        sources = {}
        for file in sorted(folder.glob("*.toml")):
            source = tomllib.loads(file.read_text(encoding="utf-8")).get("source", "")
            sources[source] = file.stem
        tables = read_printed(folder / FILE)
        texts = 0
        for place in dict.fromkeys(table.place for table in tables):
            cells = [cell for table in tables if table.place == place for cell in table.cells]
            if not re.match(r"(Table|Figure) [\w]+$", place):
                texts += len(cells)
                continue
            study = sources.get(place, "")
            page = FOLDER / f"studies/{paper}-{study}.md"
            ours = f"[runs](studies/{page.name})" if page.is_file() else "not run"
            spread = sum("±" in cell.text for cell in cells)
            rows.append(
                [name, place, f"`{paper}/{study}`", str(len(cells)), str(spread or ""), ours]
            )
        rows.append([name, "text", "", str(texts), "", ""])
    total = [sum(int(row[column] or 0) for row in rows) for column in (3, 4)]
    rows.append(["**all**", "", "", *(f"**{count:,}**" for count in total), ""])
    return markdown_table(["paper", "place", "study", "numbers", "deviations", "here"], rows)
