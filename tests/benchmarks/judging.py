"""What a pool of texts, and passages of each document in it, show of a gain that is there.

    python -m tests.benchmarks.judging FOLDER START TRAINED

FOLDER is documents with titles, START and TRAINED are encoders, the second trained on documents of
FOLDER but those that ``adapt`` holds out. The titles of these judge both, as in ``adapt``, with so
many passages of each document (drawn) among so many texts. z is the mean change of nDCG@10 over
its standard error, both means of draws.
"""

import argparse
from collections.abc import Sequence

import numpy as np

ALL = 10**6
"""More passages than a document has, and more texts than there are."""
POOLS = {
    1: (600, 1_500, 5_000),
    2: (600, 1_500, 5_000),
    3: (1_500, 5_000),
    ALL: (1_500, 5_000, ALL),
}
DRAWS = 10


def main(words: Sequence[str] | None = None) -> None:
    """Encode all texts by both encoders, and print a table."""
    import cse_adapt.held_out as adapt

    from cse import TextEncoder, load, questions
    from cse_cli.api import Installed
    from cse_core.texts import DataOptions

    raw = argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser("tests.benchmarks.judging", description=__doc__,
                                   formatter_class=raw)  # fmt: skip
    for name in ("folder", "start", "trained"):
        made.add_argument(name)
    made.add_argument("--max-length", type=int, default=128, help="tokens; 128 by default")
    options, plugins = made.parse_args(words), Installed()
    corpus = plugins.read(DataOptions(path=(options.folder,), held_out=1_000)).corpus()
    assert corpus.held_out is not None
    every, some = questions.some_of_each, adapt.questions
    adapt.POOL = len(corpus) + len(corpus.held_out)
    some.some_of_each = lambda parts: every(parts, len(parts))  # type: ignore[assignment]
    asked = adapt.HeldOutSet.of(corpus.held_out, corpus).judges
    scores = []
    for name in (options.start, options.trained):
        model = load(name, max_length=options.max_length, precision="auto", plugins=plugins)
        encode = TextEncoder(model.loaded)
        scores.append(asked.scores(encode, asked.vectors(encode)))
    owners, draws = np.array(asked.owners), np.random.default_rng(0)
    rows = [np.flatnonzero(owners == number) for number, _ in asked.asked]
    others = np.flatnonzero(owners < 0)
    print("| passages | texts | at the start | gain | z |")
    print("|---|---|---|---|---|")
    for most, size in ((most, size) for most, sizes in POOLS.items() for size in sizes):
        found = []
        for _ in range(DRAWS):
            kept = np.concatenate([draws.permutation(of_one)[:most] for of_one in rows])
            beside = draws.permutation(others)[: max(0, size - len(kept))]
            chosen = np.concatenate([kept, beside])
            part = asked._replace(
                texts=tuple(asked.texts[row] for row in chosen), owners=tuple(owners[chosen])
            )
            before, after = (
                questions.measures(part.ranks(of_all[:, chosen]))["ndcg@10"] for of_all in scores
            )
            change = 100 * (after - before)
            error = change.std() / len(change) ** 0.5
            found.append((len(chosen), 100 * before.mean(), change.mean(), change.mean() / error))
        count, start, gain, z = np.mean(found, axis=0)
        print(f"| {'all' if most == ALL else most} | {count:,.0f} | {start:.2f} | {gain:+.2f} "
              f"| {z:.1f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
