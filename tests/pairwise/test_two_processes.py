"""Every part of this repository over two processes, in one start of two."""

from pathlib import Path

from cse_testkit import installed_registry
from cse_testkit.processes import difference

LEXICON = str(Path(__file__).parents[2] / "plugins/ifcl/tests/lexicon.tsv")
OPTIONS = {
    "aug.synonym": {"lexicon": LEXICON},  # it has no synonyms by default
    # Buffers that are full, and keys that are encoded again, within the steps of the kit.
    "negatives.queue": {"size": 6, "first_fill": 2, "update": "latest"},
    "positives.knn-smoothing": {"size": 6, "k": 3},
    "positives.kmeans-smoothing": {"size": 6, "clusters": 3},
    "positives.mined": {"margin": -1.0},  # an encoder that was never trained has nothing farther
}


def test_two_processes_train_every_part_as_one() -> None:
    parts = [(p.spec.kind, p.name) for p in installed_registry().parts() if p.spec.kind != "metric"]
    given = {path: {"options": options} for path, options in OPTIONS.items()}
    assert len(parts) > 50 and difference(parts, given) == ""
