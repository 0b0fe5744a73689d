"""The parts of this repository over two processes, in one start of two.

Those that keep rows of earlier steps are asked always, the others under ``slow``.
"""

from pathlib import Path

import pytest
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


MEMORIES = ("positives", "negatives", "branch")


def differ(*kinds: str) -> str:
    """Describe how two processes differ from one in a part of some kinds; "" where they do not."""
    parts = [(p.spec.kind, p.name) for p in installed_registry().parts() if p.spec.kind in kinds]
    assert len(parts) > 5 * len(kinds)
    return difference(parts, {path: {"options": options} for path, options in OPTIONS.items()})


def test_two_processes_train_every_memory_as_one() -> None:
    assert differ(*MEMORIES) == ""


@pytest.mark.slow
def test_two_processes_train_every_other_part_as_one() -> None:
    assert differ("aug", "pool", "transform", "sampler", "loss", "adapter") == ""
