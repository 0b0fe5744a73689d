"""A static model of a transformer: what it makes of each token of its vocabulary, alone.

The method is that of model2vec (Tulkens and van Dongen, 2024): the vectors of all tokens, their
first principal components, and less weight for frequent tokens, whose probabilities are taken from
their place in the vocabulary (Zipf) and weighed as in SIF (Arora et al., ICLR 2017).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Tokenizer as FastTokenizer
from torch import Tensor

import cse
from cse_core.errors import CseError
from cse_core.files import atomic_folder
from cse_core.types import TokenBatch
from cse_static.folders import write

if TYPE_CHECKING:
    from cse_cli.api import Installed

_AT_ONCE = 1024


def distil(
    plugins: Installed | None,
    model: str,
    out: str | Path,
    *,
    dimension: int | None = 256,
    smoothing: float = 1e-4,
) -> Path:
    """Write a static model of a transformer.

    Args:
        plugins: The installed plugins.
        model: As ``--model`` takes it.
        out: Folder to write, which is not there yet.
        dimension: Principal components to keep; None keeps the vectors as they are.
        smoothing: ``a`` of SIF's weights ``a / (a + p)``; 0 weighs all tokens the same.

    Returns:
        The folder.

    Raises:
        CseError: If the model is missing, or is static itself, or the folder is there.
    """
    if Path(out).exists():
        hint = "name another folder"
        raise CseError("is there already", where="--out", value=str(out), hint=hint)
    loaded: Any = cse.load(model)
    encoding = loaded.loaded.sentence_encoder
    hf = getattr(encoding.tokenizer.hf, "backend_tokenizer", None)
    if hf is None:
        raise CseError("is not a transformer", where="MODEL", value=model,
                       hint="name a transformer, such as bert-base-uncased")  # fmt: skip
    vectors = token_vectors(encoding, hf.get_vocab_size())
    if dimension is not None:
        vectors = principal(vectors, dimension)
    if smoothing:
        vectors = vectors * zipf_weights(len(vectors), smoothing)[:, None]
    tokenizer = FastTokenizer.from_str(hf.to_str())
    with atomic_folder(Path(out)) as folder:
        write(folder, vectors, tokenizer, normalize=True, model2vec=False)
    return Path(out)


@torch.no_grad()
def token_vectors(encoding: Any, count: int) -> Tensor:
    """Encode each token of a vocabulary as a text of its own: ``[count, D]``."""
    parts = []
    for start in range(0, count, _AT_ONCE):
        ids = torch.arange(start, min(start + _AT_ONCE, count))
        rows, zero = torch.arange(len(ids)), torch.zeros(len(ids), dtype=torch.long)
        content = TokenBatch(
            ids=ids, positions=zero, source=zero, word=zero, special=zero.bool(),
            offsets=torch.arange(len(ids) + 1), owner=rows, slot=zero,
        )  # fmt: skip
        levels = encoding.embed(encoding.rows(content, "anchor"), torch.device("cpu"), len(ids))
        parts.append(levels["sentence"].vectors.float())
    return torch.cat(parts)


def principal(vectors: Tensor, dimension: int) -> Tensor:
    """Project ``[N, D]`` vectors, less their mean, on their first principal components."""
    centred = vectors - vectors.mean(dim=0)
    _, axes = torch.linalg.eigh(centred.T @ centred)
    components: Tensor = axes.flip(1)[:, : min(dimension, vectors.shape[1])]
    return centred @ components


def zipf_weights(count: int, smoothing: float) -> Tensor:
    """Weigh ``[count]`` tokens in order of frequency: ``a / (a + p)``, ``p`` as ``1 / rank``."""
    inverse = 1 / torch.arange(2, count + 2, dtype=torch.float64)
    share = inverse / inverse.sum()
    return (smoothing / (smoothing + share)).float()
