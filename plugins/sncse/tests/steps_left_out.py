"""Steps of a run that leaves sentences without a soft negative."""

from pathlib import Path

from cse_testkit import Rig, compose, tiny_corpus

from cse_defaults.texts import Corpus

UNSURE = "How to paint the boat number {}?"
"""A text that the rules leave out."""


def mixed(rows: int = 26) -> Corpus:
    """Return texts of which the first eight, then every other one, are left out."""
    texts = enumerate(tiny_corpus(rows).column("text"))
    return Corpus.from_columns(
        {"text": [UNSURE.format(n) if n < 8 or n % 2 == 0 else text for n, text in texts]}
    )


def run(encoder: str, recipe: str, *sets: str) -> list[dict[str, float]]:
    """Return losses and shares of steps of unequal batches, the first without soft negatives."""
    corpus = mixed(32)
    sets = ("model.dropout=0", "train.batch_size=8", "train.lr=1e-6", *sets)
    rig = Rig(compose(recipe=recipe, sets=list(sets), encoder=Path(encoder), corpus=corpus))
    results = [rig.step(1, rows=size)[0] for size in (8, 5, 1, 8)]
    return [
        {"loss": float(result.loss), **{key: float(value) for key, value in result.parts.items()}}
        for result in results
    ]
