"""Every part of this repository over two processes, in one start of two."""

from pathlib import Path

from cse_testkit import installed_registry
from cse_testkit.processes import difference

LEXICON = str(Path(__file__).parents[2] / "plugins/ifcl/tests/lexicon.tsv")


def test_two_processes_train_every_part_as_one() -> None:
    parts = [(p.spec.kind, p.name) for p in installed_registry().parts() if p.spec.kind != "metric"]
    given = {"aug.synonym": {"options": {"lexicon": LEXICON}}}  # it has no synonyms by default
    assert len(parts) > 50 and difference(parts, given) == ""
