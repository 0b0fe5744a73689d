"""What takes steps on the pretended device: every installed part, and some in chunks."""

from __future__ import annotations

from pathlib import Path

from cse_testkit import all_parts

from cse_core.records import Kind

KINDS: tuple[Kind, ...] = ("aug", "pool", "positives", "negatives", "branch", "loss")
CHUNKS = ("train.chunk_size=2",)
Case = tuple[Kind, str, tuple[str, ...]]
LEXICON = Path(__file__).parents[2] / "plugins/ifcl/tests/lexicon.tsv"
NEEDS = {"synonym": (f"aug.synonym.lexicon={LEXICON}",)}
"""Settings without which a part is refused."""
CASES: tuple[Case, ...] = (
    *((kind, found.name, NEEDS.get(found.name, ())) for kind in KINDS for found in all_parts(kind)),
    ("loss", "infonce", CHUNKS),
    ("loss", "twins", CHUNKS),
    ("negatives", "queue", CHUNKS),
    ("pool", "segments", CHUNKS),
    ("aug", "fgsm", CHUNKS),
)
JOINED = ("positives.labels",)
"""Views with unlike rows: titles, and documents of many sentences. The loss takes the rows that
both have; how many these are, only the keys on the device say."""


def named(case: Case) -> str:
    """Return a case's name."""
    kind, name, sets = case
    return " ".join((f"{kind}.{name}", *sets))
