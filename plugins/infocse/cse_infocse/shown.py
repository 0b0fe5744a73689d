"""Documents as the miners see them: studies ``infocse/figure-2`` and ``infocse/appendix-D``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SENTENCES = 8
"""Sentences of the document that is shown, at least."""
_ROWS = 5000
"""Rows that are looked through for it."""


def graph_of_document(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return the graph of one document, the edges that stay of it, and its clusters.

    Args:
        point: ``model``, which encodes its sentences without training; ``data``, documents, of
            which the first of at least ``SENTENCES`` different sentences is shown;
            ``neighbours``, edges that each sentence keeps (K).

    Returns:
        ``sentences``, ``similarities`` of all pairs, ``edges`` and ``clusters`` as numbers of
        sentences, and how many there are of each.

    Raises:
        CseError: If no document is long enough.
    """
    from cse import load
    from cse_cli.api import Installed, load_texts
    from cse_core.errors import CseError
    from cse_infocse.documents import Documents, documents_of
    from cse_infocse.graph import components, nearest_edges

    corpus = load_texts(point["data"], Installed([]), limit=_ROWS)
    documents = documents_of(corpus, "data")
    for one in documents.shards(1):
        if (count := int(one.lengths[0])) >= SENTENCES:
            break
    else:
        what = f"no document has {SENTENCES} different sentences"
        raise CseError(what, where="data", value=point["data"])
    texts = corpus.column("text").take(one.rows.tolist())
    import torch

    vectors = torch.from_numpy(load(point["model"]).encode(texts))
    document = Documents(one.rows, one.offsets)
    source, target = nearest_edges(vectors, document, point.get("neighbours", 1))
    labels = components(source, target, count).tolist()
    near = (vectors @ vectors.T).tolist()
    edges = sorted({(min(pair), max(pair)) for pair in zip(source.tolist(), target.tolist(),
                                                           strict=True)})  # fmt: skip
    groups = [[at for at, label in enumerate(labels) if label == kind] for kind in
              dict.fromkeys(labels)]  # fmt: skip
    return {
        "sentences": texts,
        "similarities": [[a, b, near[a][b]] for a in range(count) for b in range(a + 1, count)],
        "edges": [list(edge) for edge in edges],
        "clusters": groups,
        "sentence count": count,
        "pair count": count * (count - 1) // 2,
        "edge count": len(edges),
        "cluster count": len(groups),
    }


def clusters_of_rounds(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return the clusters of one document round by round, and the pairs that a round drops.

    Args:
        point: ``run``, the folder of a run with rounds of clusters; of its documents the first
            one is shown of which the last round has pairs.

    Returns:
        ``document``, ``rounds`` as ``cse data show-pairs --document`` shows them, and how many
        pairs each round has and has dropped since the one before.

    Raises:
        CseError: If it is not such a run, or no document has pairs.
    """
    from cse import CseError, open_run

    run = open_run(point["run"])
    names = list(dict.fromkeys(run.corpus.column("document")))
    for name in names[:100]:
        rounds = [{"round": number, **run.clusters(number, name)} for number in run.rounds]
        if rounds and rounds[-1]["pairs"]:
            break
    else:
        what = "no document has pairs in the last round"
        raise CseError(what, where="run", value=str(point["run"]))
    together = [
        {
            frozenset((one, other))
            for cluster in item["clusters"]
            for one in cluster
            for other in cluster
            if one != other
        }
        for item in rounds
    ]
    dropped = [len(before - after) for before, after in zip(together, together[1:], strict=False)]
    return {
        "document": name,
        "rounds": rounds,
        "pairs of a round": [len(pairs) for pairs in together],
        "dropped since": [0, *dropped],
    }
