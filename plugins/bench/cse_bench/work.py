"""How much a step of a composition has to do, known before anything heavy is loaded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cse_core.errors import CseError
from cse_core.recipes.composition import Composition
from cse_core.records import AugmenterSpec

if TYPE_CHECKING:
    from cse_core.data import Corpus
    from cse_core.registry.registry import Registry

FORWARD, INPUTS, ALL = 1, 2, 3
"""Products of a layer for a token: of its output; with the gradient of its input; and of its
weights."""
_SAMPLE, _SPECIAL = 512, 2


def work_of(composition: Composition, lengths: Mapping[str, float], rows: int) -> float:
    """Return the tokens of a step, each counted once for every product of a layer.

    Args:
        composition: The checked recipe.
        lengths: Mean tokens of a row by column, as :func:`mean_lengths` gives them.
        rows: Rows of a step.
    """
    columns = {view.name: view.column or "text" for view in composition.views}
    passes = zip(composition.passes, products_of(composition), strict=True)
    return rows * sum(
        count * sum(lengths.get(columns[view], lengths["text"]) for view in each.views)
        for each, count in passes
    )


def products_of(composition: Composition) -> list[int]:
    """Return for each pass how many products a layer makes of a token."""
    train, seen = composition.train, set()
    cached = train.chunk_size is not None and train.chunk_size < train.batch_size
    fresh = _has_fresh_gradients(composition)
    counts = []
    for each in composition.passes:
        count = FORWARD
        if each.gradient:
            # The first of two is the one for the gradient of the inputs (``plan_passes``).
            count = INPUTS if fresh and each.branch not in seen else ALL
            seen.add(each.branch)
        counts.append(count + (FORWARD if each.gradient and cached else 0))
    return counts


def _has_fresh_gradients(composition: Composition) -> bool:
    return any(
        cast(AugmenterSpec, part.spec).gradient_of(part.options) == "fresh"
        for part in composition.of("aug")
    )


def fingerprint(composition: Composition) -> str:
    """Return 12 hexadecimal digits that differ where a part, one of its options or a view does."""
    parts = [
        (part.path, part.use, part.distribution, part.options.model_dump(mode="json"))
        for part in composition.parts
    ]
    views = [(view.name, view.branch, view.column, view.augmenters) for view in composition.views]
    text = json.dumps([parts, views], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def mean_lengths(
    composition: Composition, corpus: Corpus, registry: Registry
) -> dict[str, float] | None:
    """Return the mean tokens of a row by column, special ones counted, from some of the rows.

    What augmenters, slices and prompts make of a row is left out.

    Args:
        composition: The checked recipe.
        corpus: Its rows.
        registry: Installed encoders.

    Returns:
        None where the texts are cut first, or the tokenizer's file is not on this machine.
    """
    import numpy as np
    from tokenizers import Tokenizer

    file = _tokenizer_file(composition.model.name, registry)
    if file is None or composition.data.split_tokens is not None:
        return None
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception:  # the library raises nothing more exact; loading the model will say it
        return None
    longest = composition.model.max_length - _SPECIAL
    tokenizer.no_padding()
    tokenizer.enable_truncation(max(longest, 1))
    rows = np.unique(np.linspace(0, len(corpus) - 1, _SAMPLE).astype(int))
    wanted = {"text", *(view.column for view in composition.views if view.column)}
    lengths = {}
    for name in sorted(wanted & set(corpus.names)):
        texts = corpus.column(name).take(rows)
        encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        lengths[name] = sum(len(each.ids) for each in encoded) / len(texts) + _SPECIAL
    return lengths


def _tokenizer_file(name: str, registry: Registry) -> Path | None:
    from cse_core.registry.loading import package_path
    from cse_core.runtime.model_files import model_folder

    file: Path | None = None
    try:
        if registry.has("encoder", name):
            file = package_path(registry.encoder(name).spec.path) / "tokenizer.json"
        elif Path(name).expanduser().exists():
            file = model_folder(Path(name).expanduser(), name) / "tokenizer.json"
        else:
            file = _cached(name)
    except CseError:
        return None
    return file if file is not None and file.is_file() else None


def _cached(name: str) -> Path | None:
    """Return the tokenizer's file of a model of the hub that was fetched before."""
    import huggingface_hub as hub

    try:
        return Path(hub.hf_hub_download(name, "tokenizer.json", local_files_only=True))
    except Exception:  # not fetched, or no name of the hub
        return None
