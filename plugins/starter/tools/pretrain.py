"""Pre-train the starter encoder: plain texts in, a model folder out.

Two objectives at once: masked words, and the cosine distance of a row's mean state and of its
[CLS] state to the weighted sum of its words' vectors, which trains what pooling reads and masked
words alone leave to chance.

    python plugins/starter/tools/pretrain.py wiki.jsonl.gz books.txt.gz --out runs/starter

OUT then holds model/ and log.jsonl (losses, the masked loss of held-out texts).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from pretraining_texts import (
    Batch,
    Tokens,
    batch_rows,
    cut_rows,
    tokenize,
    train_vocabulary,
    word_vectors,
)
from tokenizers import BertWordPieceTokenizer
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

from cse_core.errors import CseError


@dataclass(frozen=True)
class Settings:
    """Those of the starter encoder; an encoder of another size has others.

    Attributes:
        lengths: Row length with its special tokens -> share of all tokens.
        positions: Places of a batch, special tokens included.
        sentence_weight: Weight of the second objective.
        warmup: Share of the steps in which the rate rises to ``lr``; then it falls to 0.
        tokens: Places to train on.
    """

    layers: int = 4
    hidden: int = 256
    heads: int = 4
    vocabulary: int = 9_600
    lengths: dict[int, float] = field(
        default_factory=lambda: {32: 0.35, 64: 0.35, 128: 0.2, 512: 0.1}
    )
    positions: int = 8_192
    mask_rate: float = 0.2
    sentence_weight: float = 4.0
    lr: float = 1e-3
    warmup: float = 0.03
    weight_decay: float = 0.01
    tokens: int = 42_000_000
    seed: int = 1
    log_steps: int = 50
    evaluate_steps: int = 500


class Masked(NamedTuple):
    """A masked batch.

    Attributes:
        ids: Token ids ``[R, L]``, masked.
        places: Flat places in ``ids`` that are scored ``[M]``, ascending.
        labels: The ids that stood there ``[M]``.
    """

    ids: Tensor
    places: Tensor
    labels: Tensor


def masked_rows(
    tokens: Tokens,
    batch: Batch,
    tokenizer: BertWordPieceTokenizer,
    rate: float,
    rng: np.random.Generator,
) -> Masked:
    """Return a batch's rows with their special tokens, some of their words to be predicted.

    The rule of BERT (Devlin et al. 2019, section 3.1): of the chosen 80 % become [MASK], 10 % a
    random token, 10 % stay. A batch has one chosen token at least.
    """
    cls, sep, mask = (tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]", "[MASK]"))
    ids = np.pad(tokens.ids[batch.starts[:, None] + np.arange(batch.length)], ((0, 0), (1, 1)))
    ids[:, 0], ids[:, -1] = cls, sep
    chosen = rng.random(ids.shape, dtype=np.float32) < rate
    chosen[:, 0] = chosen[:, -1] = False
    chosen[0, 1] |= not chosen.any()
    places = np.flatnonzero(chosen)
    flat = ids.reshape(-1)
    labels = flat[places]
    fate = rng.random(len(places), dtype=np.float32)
    flat[places[fate < 0.8]] = mask
    swapped = places[fate >= 0.9]
    flat[swapped] = rng.integers(mask + 1, tokenizer.get_vocab_size(), len(swapped))
    return Masked(*(torch.from_numpy(each) for each in (ids, places, labels)))


def losses(
    model: BertForMaskedLM, masked: Masked, words: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the masked loss (nats a token) and the sentence loss of a batch.

    Args:
        model: The model, without dropout.
        masked: The rows.
        words: Weighted vectors of the words ``[V, H]``; None leaves the second out.

    Returns:
        Mean cross-entropy of the masked tokens; and 1 - cosine to the sum of a row's words, a mean
        over rows, of the mean state plus that of [CLS]'s state.
    """
    ids, places, labels = masked
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=_fast()):
        last = model.bert(ids).last_hidden_state
        logits = model.cls(last.flatten(0, 1).index_select(0, places))
    loss = F.cross_entropy(logits.float(), labels)
    if words is None:
        return loss, loss.new_zeros(())
    whole = ids.flatten().index_copy(0, places, labels).view_as(ids)[:, 1:-1]
    target = F.embedding_bag(whole, words, mode="sum")
    near = [F.cosine_similarity(v.float(), target).mean() for v in (last.mean(1), last[:, 0])]
    return loss, 2.0 - near[0] - near[1]


def _fast() -> bool:
    """Return whether the processor multiplies in bf16, which else is slower than fp32."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def new_model(settings: Settings, words: Tensor) -> BertForMaskedLM:
    """Return a random model whose word embeddings start from the words' vectors ``[V, H]``.

    It has no dropout: a small model underfits a few passes.
    """
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=settings.hidden,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        intermediate_size=4 * settings.hidden,
        max_position_embeddings=512,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = BertForMaskedLM(config)
    model.bert.embeddings.word_embeddings.weight.data.copy_(0.5 * words)
    return model


def rate(settings: Settings, done: int) -> float:
    """Return the learning rate after so many tokens: linear up, then linear down to 0."""
    part = min(done / settings.tokens, 1.0)
    if part < settings.warmup:
        return settings.lr * part / settings.warmup
    return settings.lr * (1.0 - part) / (1.0 - settings.warmup)


def batches(tokens: Tokens, settings: Settings) -> Iterator[Batch]:
    """Yield the batches of one pass over the training texts after the other.

    Raises:
        CseError: The texts are too short for any row.
    """
    epoch = 0
    while True:
        rng = np.random.default_rng((settings.seed, epoch))
        found = batch_rows(*cut_rows(tokens, False, settings.lengths, rng), settings.positions, rng)
        if not found:
            raise CseError("too little text to train on", hint="name larger files")
        yield from found
        epoch += 1


@torch.no_grad()
def held_out_loss(
    model: BertForMaskedLM, tokens: Tokens, tokenizer: BertWordPieceTokenizer
) -> float:
    """Return the masked loss (nats a token) of held-out rows: 15 % masked, always the same."""
    rng = np.random.default_rng(0)
    rows = batch_rows(*cut_rows(tokens, True, {128: 1.0}, rng), 8_192, rng)[:20]
    found = [masked_rows(tokens, each, tokenizer, 0.15, rng) for each in rows]
    total = sum(float(losses(model, each)[0]) * len(each.labels) for each in found)
    return total / max(1, sum(len(each.labels) for each in found))


def export(model: BertForMaskedLM, tokenizer: BertWordPieceTokenizer, folder: Path) -> None:
    """Write a folder that ``AutoModel`` and ``AutoTokenizer`` load, fp16, with BERT's dropout."""
    model.half().save_pretrained(folder)
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config |= {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    vocabulary = BertTokenizerFast(tokenizer_object=tokenizer._tokenizer, model_max_length=512)
    vocabulary.save_pretrained(folder)


def pretrain(files: Sequence[Path], out: Path, settings: Settings) -> BertForMaskedLM:
    """Train on files and write what came out; returns the model, in fp16.

    Raises:
        CseError: A file cannot be read, or there is too little text.
    """
    tokenizer = train_vocabulary(files, settings.vocabulary)
    tokens = tokenize(files, tokenizer)
    size = tokenizer.get_vocab_size()
    words, weights = word_vectors(tokens, size, settings.hidden, settings.seed)
    model = new_model(settings, words)
    plain = [each for each in model.parameters() if each.ndim <= 1]
    groups: list[dict[str, Any]] = [
        {"params": [each for each in model.parameters() if each.ndim > 1]},
        {"params": plain, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        groups, betas=(0.9, 0.98), eps=1e-6, weight_decay=settings.weight_decay, fused=True
    )
    out.mkdir(parents=True, exist_ok=True)
    done = step = 0
    with (out / "log.jsonl").open("w", encoding="utf-8") as log:
        for batch in batches(tokens, settings):
            rng = np.random.default_rng((settings.seed, 1, step))
            masked = masked_rows(tokens, batch, tokenizer, settings.mask_rate, rng)
            for group in optimizer.param_groups:
                group["lr"] = rate(settings, done)
            loss, sentence = losses(model, masked, weights[:, None] * words)
            (loss + settings.sentence_weight * sentence).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step, done = step + 1, done + masked.ids.numel()
            line = {
                "step": step,
                "tokens": done,
                "masked": float(loss.detach()),
                "sentence": float(sentence.detach()),
            }
            last = done >= settings.tokens
            if last or step % settings.evaluate_steps == 0:
                line["held_out"] = held_out_loss(model, tokens, tokenizer)
            if last or step % settings.log_steps == 0:
                log.write(json.dumps(line) + "\n")
                log.flush()
            if last:
                break
    export(model, tokenizer, out / "model")
    return model


def main(words: Sequence[str] | None = None) -> None:
    """Run the command; a user's mistake is one line and exit status 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", nargs="+", type=Path, help=".txt or .jsonl files (.gz allowed)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--tokens", type=int, default=Settings.tokens, help="tokens to train on")
    parser.add_argument("--seed", type=int, default=Settings.seed)
    given = parser.parse_args(words)
    try:
        pretrain(given.texts, given.out, Settings(tokens=given.tokens, seed=given.seed))
    except CseError as error:
        print(f"pretrain: {error.line()}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
