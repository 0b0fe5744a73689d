"""Another model clusters for the first round, the encoder itself from the second on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cse_testkit import Rig, compose, tiny_corpus, tiny_encoder

from cse_core.errors import CseError


def clustered(own: Path, annotator: Path | None = None) -> list[set[tuple[int, int]]]:
    """Return the pairs of two rounds; no step between them changes a weight."""
    corpus = tiny_corpus(rows=40, columns=("document",), sentences=10)
    # An annotator reads whole sentences, so the encoder does, too.
    sets = ["model.max_length=500", "positives.idc.rounds=2", "positives.idc.similarity=cosine"]
    sets += [] if annotator is None else [f"positives.idc.annotator={annotator}"]
    kinds: Any = {"positives": ["~neighbour"]}
    made = compose(recipe="infocse", kinds=kinds, sets=sets, corpus=corpus, encoder=own)
    session, found = Rig(made).session.prepare(), []
    rounds = session._trainer.rounds
    found.append(session.rows.pairs)
    rounds.scores.append(None)
    for current in rounds.each(False):
        found.append(current.pairs)
        rounds.scores.append(None)
    assert len(found) == 2
    return [
        set(zip(*(list(pairs[name]) for name in ("text", "positive")), strict=True))
        for pairs in found
    ]


def test_round_one_is_its_clusters_and_round_two_the_encoders(tmp_path: Path) -> None:
    own, other = tiny_encoder(tmp_path / "own", seed=1), tiny_encoder(tmp_path / "other", seed=2)
    of_own, of_other = clustered(own), clustered(other)
    assert of_own[0] == of_own[1] != of_other[0]
    assert clustered(own, other) == [of_other[0], of_own[0]]
    with pytest.raises(CseError) as caught:
        clustered(own, tmp_path / "nothing")
    line = str(caught.value)
    assert line.startswith("positives.idc.annotator: ") and "\n" not in line
