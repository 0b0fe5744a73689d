"""docs/performance.md: the machine, one table of all comparisons, and the details of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.benchmarks.rows import ROWS, Row
from tests.benchmarks.sections import SECTIONS, Section

Found = Mapping[str, Any]
NOT_YET = "not measured yet"
QUIET = 0.1
"""Share of the processor that others may use before the page warns."""
HEAD = """# Performance

Written by `make bench DATA=FILE ARTICLES=FILE` (`python -m tests.benchmarks`), not by hand. DATA is
a file of sentences, ARTICLES one of documents, by default the starter's synthetic texts. The peer,
sentence-transformers, is a dependency of the benchmarks alone.

What is compared runs on one machine, in one process in turn, or each in a process of its own where
memory or start-up is measured. Each repeat gives one ratio of what was measured side by side; a
repeat before them warms up. Tables have the median of the ratios and, in brackets, the least and
the largest. Of speeds more is better for cse; of seconds, memory and shares less is.
"""
QUICK = """
**A smoke run with tiny sizes: it shows that everything runs; its numbers mean nothing.**
"""


def page(results: Sequence[Found], *, quick: bool = False) -> str:
    """Return the page.

    Args:
        results: What was found, as ``Report.as_dict`` gives it and with its ``command``; the last
            one of a section counts, and those of the machine of the last one alone.
        quick: Whether it was a smoke run.
    """
    found = latest(results)
    lines = [HEAD + (QUICK if quick else ""), "## Machine", "", _machine(found), ""]
    lines += ["## Comparisons", "", _comparisons(found), ""]
    for section in SECTIONS:
        lines += [f"## {section.title}", "", _details(section, found.get(section.name)), ""]
    return "\n".join(lines).rstrip() + "\n"


def latest(results: Sequence[Found]) -> dict[str, Found]:
    """Return the last result of each section on the machine of the last of all."""
    if not results:
        return {}
    here = results[-1]["machine"]
    return {each["section"]: each for each in results if each["machine"] == here}


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
    )


def _machine(found: Mapping[str, Found]) -> str:
    if not found:
        return "Nothing is measured yet."
    results = list(found.values())
    facts = {**results[-1]["machine"]}
    facts["threads"] = ", ".join(dict.fromkeys(str(each["threads"]) for each in results))
    return table(("", ""), list(facts.items()))


def _comparisons(found: Mapping[str, Found]) -> str:
    lines = [_comparison(row, found.get(row.section)) for row in ROWS]
    return table(("what", "against", "median [range]", "aim", "met"), lines)


def _comparison(row: Row, result: Found | None) -> list[str]:
    aim = row.say_aim()
    if result is None:
        return [row.what, row.against, NOT_YET, aim, "-"]
    values = result["values"].get(row.key)
    if values is None:
        why = result["skipped"].get(row.key)
        printed = f"left out: {why}" if why else NOT_YET
        return [row.what, row.against, printed, aim, "-"]
    note = result["notes"].get(row.key)
    what = f"{row.what} ({note})" if note else row.what
    return [what, row.against, row.say(values), aim, row.say_met(values)]


def _details(section: Section, result: Found | None) -> str:
    if result is None:
        command = section.command(quick=False, texts=None, articles=None)
        return f"{NOT_YET.capitalize()}.\n\n`{command}`"
    lines = [f"`{result['command']}`", "", " ".join(result["said"])]
    lines.append(
        f"Measured on {result['began']} in {result['seconds'] / 60:.1f} minutes, "
        f"commit {result['code']}."
    )
    busy = result["busy"]
    if busy is not None and busy > QUIET:
        lines.append(
            f"**Others used {busy:.0%} of the processor when it began: measure it again.**"
        )
    for each in result["tables"]:
        lines += ["", f"{each['title']}:", "", table(each["head"], each["lines"])]
    return "\n".join(lines)
