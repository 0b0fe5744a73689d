"""How long the texts of a composition are."""

from __future__ import annotations

from cse_cli.plugins.installed import Installed
from cse_core.errors import CseError
from cse_core.recipes.composition import Composition
from cse_core.recipes.model_facts import find_model
from cse_core.runtime.model_files import model_folder

SAMPLE = 10_000
"""Texts that are counted, spread evenly over the data."""


def composition_lengths(composition: Composition, plugins: Installed) -> list[int]:
    """Return the tokens of a sample of the training texts, special ones among them.

    None are returned where the texts or the tokenizer are not here any more.
    """
    from tokenizers import Tokenizer

    from cse_core.data import load_corpus

    try:
        corpus = plugins.known_corpus(composition.data)
        if corpus is None:
            corpus = load_corpus(composition.data, datasets=plugins.datasets)
        folder = find_model(composition.model.name, plugins.registry)
        file = folder and model_folder(folder, composition.model.name) / "tokenizer.json"
    except CseError:
        return []
    if not len(corpus) or not file or not file.is_file():
        return []
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    count = min(SAMPLE, len(corpus))
    column = corpus.column("text")
    texts = [column[place * len(corpus) // count] for place in range(count)]
    return [len(row.ids) for row in tokenizer.encode_batch(texts)]
