"""Scores of the pre-training tool: masked loss on held-out text and Spearman on STS-B."""

import csv
import gzip
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from tokenizers import Tokenizer
from torch import Tensor

from cse_core.errors import CseError
from mlm.model import MaskedLanguageModel
from mlm.rows import Special, held_out_batches, mask_tokens, token_ids
from mlm.text import TokenStore

POOLINGS = ("cls", "mean", "first-last")


@torch.no_grad()
def masked_loss(
    model: MaskedLanguageModel,
    store: TokenStore,
    special: Special,
    dtype: torch.dtype,
    limit: int = 150_000,
) -> float:
    """Return the mean masked loss (nats) on held-out rows: 15 % masked, fixed rows and masks."""
    rng = np.random.default_rng(0)
    device = next(model.parameters()).device
    positions = model.config.max_position_embeddings
    total, count = 0.0, 0
    for batch in held_out_batches(store, min(128, positions), 8192, limit):
        masked = mask_tokens(token_ids(store, batch, special), special, 0.15, rng)
        loss, _ = model(*(part.to(device) for part in masked), dtype)
        total += float(loss) * len(masked.labels)
        count += len(masked.labels)
    return total / count if count else float("nan")


def read_pairs(path: Path) -> tuple[list[float], list[str], list[str]]:
    """Read `score`, `sentence1`, `sentence2` of a tab-separated pair file (.gz allowed)."""
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    wanted = ("score", "sentence1", "sentence2")
    if not rows or any(name not in rows[0] for name in wanted):
        raise CseError(
            "no pairs in it", where=str(path), hint=f"need a header line with {', '.join(wanted)}"
        )
    return (
        [float(row["score"]) for row in rows],
        [row["sentence1"] for row in rows],
        [row["sentence2"] for row in rows],
    )


@torch.no_grad()
def encode(
    model: MaskedLanguageModel, tokenizer: Tokenizer, special: Special, texts: list[str]
) -> dict[str, Tensor]:
    """Return the vectors `[N, H]` (fp32) of texts cut to 128 tokens, for each pooling.

    `mean` is over all tokens of the last layer, special ones included; `first-last` is the mean
    of that of the first layer and that of the last.
    """
    device = next(model.parameters()).device
    longest = min(128, model.config.max_position_embeddings) - 2
    rows = [item.ids[:longest] for item in tokenizer.encode_batch(texts, add_special_tokens=False)]
    lengths = np.array([len(row) for row in rows])
    size = model.config.hidden_size
    vectors = {name: torch.empty(len(rows), size) for name in POOLINGS}
    for length in np.unique(lengths):
        for group in np.array_split(
            found := np.flatnonzero(lengths == length), len(found) // 256 + 1
        ):
            ids = torch.tensor([[special.cls, *rows[i], special.sep] for i in group])
            states, _ = model.hidden_states(ids.to(device))
            vectors["cls"][group] = states[-1][:, 0].cpu()
            vectors["mean"][group] = states[-1].mean(1).cpu()
            vectors["first-last"][group] = (0.5 * (states[1] + states[-1])).mean(1).cpu()
    return vectors


def sts_scores(
    model: MaskedLanguageModel, tokenizer: Tokenizer, special: Special, folder: Path
) -> dict[str, dict[str, float]]:
    """Return Spearman x 100 of cosines on STS-B dev and test: split -> pooling -> score.

    Raises:
        CseError: The folder holds neither stsb.dev.tsv(.gz) nor stsb.test.tsv(.gz).
    """
    scores: dict[str, dict[str, float]] = {}
    for split in ("dev", "test"):
        for path in sorted(folder.glob(f"stsb.{split}.tsv*"))[:1]:
            gold, left, right = read_pairs(path)
            a = encode(model, tokenizer, special, left)
            b = encode(model, tokenizer, special, right)
            scores[split] = {
                name: 100
                * float(spearmanr(gold, torch.cosine_similarity(a[name], b[name])).statistic)
                for name in POOLINGS
            }
    if not scores:
        raise CseError("no stsb.dev.tsv or stsb.test.tsv (.gz allowed)", where=f"--sts {folder}")
    return scores
