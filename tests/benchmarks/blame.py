"""How well ``cse blame`` ranks rows: beside training again without each of them.

    python -m tests.benchmarks.blame [--recipe NAME] [--dropout P] [--rows N] [--left-out N]

A small run of the starter's encoder on rows of its texts, text and translation. Then, for each of
20 pairs of texts, Spearman's correlation over the rows that were left out, of what ``cse blame``
says that a row moved the similarity with what it moved: the similarity in the run, less that of a
training without the row.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

PAIRS = 20
UPDATES = ("adamw", "sgd")


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser(
        "tests.benchmarks.blame", description=__doc__, formatter_class=raw
    )
    made.add_argument("--recipe", default="pairs", help="pairs by default; simcse reads text alone")
    made.add_argument("--dropout", type=float, default=0.0, help="0 by default")
    made.add_argument("--rows", type=int, default=48, help="of the run; 48 by default")
    made.add_argument("--batch", type=int, default=8, help="rows of a batch; 8 by default")
    made.add_argument("--left-out", type=int, default=24, help="rows left out; 24 by default")
    return made.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Train, blame, train again, and print the correlations."""
    import torch
    from cse_blame.blaming import blame
    from cse_blame.products import Pair
    from cse_blame.proof import Again

    import cse
    from cse_cli.api import Installed, load_texts

    options, began, draws = arguments(words), time.process_time(), random.Random(1)
    torch.set_num_threads(1)
    plugins = Installed()
    corpus = load_texts("starter", plugins, limit=4000)
    chosen = draws.sample(range(len(corpus)), options.rows + 2 * PAIRS)
    texts, others = corpus.column("text").take(chosen), corpus.column("fraternal").take(chosen)
    trained = slice(0, options.rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [
            "text\tpositive",
            *map("\t".join, zip(texts[trained], others[trained], strict=True)),
        ]
        (folder / "rows.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        settings = {
            "train.precision": "fp32", "train.threads": 1, "train.device": "cpu",
            "train.batch_size": options.batch, "train.epochs": 2, "train.save_steps": 3,
            "model.dropout": options.dropout,
        }  # fmt: skip
        run = cse.train(options.recipe, data=folder / "rows.tsv", dev="none", quiet=True,
                        out=folder / "run", options=settings)  # fmt: skip
        steps = run.outcome.steps
        # Half of the queries are texts of the run; every other text is not.
        asked = [draws.choice(texts[trained]) if n % 2 else texts[-1 - n] for n in range(PAIRS)]
        pairs = [Pair(query, texts[-1 - PAIRS - n], "cosine") for n, query in enumerate(asked)]
        said = {update: np.zeros((options.rows, PAIRS)) for update in UPDATES}
        moved = np.zeros((2, PAIRS))
        for n, pair in enumerate(pairs):
            for update in UPDATES:
                made = blame(plugins, run.folder, pair.query, pair.document, top=options.rows,
                             update=update)  # fmt: skip
                for row in (*made.raised, *made.lowered):
                    said[update][row.row, n] = row.moved
                if update == "adamw":
                    moved[:, n] = made.moved, made.end - (made.start or 0)
        again = Again(run.folder, plugins, pairs[0], steps)
        left = sorted(draws.sample(range(options.rows), options.left_out))
        ends = []
        for rows in ((), *((row,) for row in left)):
            with again.trained(rows) as session:
                ends.append([pair.similarity(session) for pair in pairs])
    fell = np.array(ends[0]) - np.array(ends[1:])  # [left out, pairs]
    print(f"{options.rows} rows, {steps} steps of {options.batch}, {options.left_out} left out")
    print(f"similarities change by {np.abs(moved[1]).mean():.4f} in the run, "
          f"by {np.abs(fell).mean():.5f} without a row")  # fmt: skip
    for update, of_rows in said.items():
        ranks = [spearmanr(of_rows[left, n], fell[:, n]).statistic for n in range(PAIRS)]
        mean, median = np.mean(ranks), np.median(ranks)
        print(f"{update}: rank correlation {mean:.3f} in the mean of {PAIRS} pairs, "
              f"{median:.3f} in the median, {min(ranks):.3f} to {max(ranks):.3f}")  # fmt: skip
    both = np.corrcoef(moved)[0, 1]
    print(f"what the batches moved beside the change of each pair: correlation {both:.3f}")
    print(f"{time.process_time() - began:.0f} seconds of processor")


if __name__ == "__main__":
    main()
