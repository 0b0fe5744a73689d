"""Pre-train a small BERT by masked language modelling: plain text in, a model folder out.

Example:
    python plugins/starter/tools/pretrain.py data/wiki.jsonl.gz data/news.jsonl.gz \
        --out runs/mlm --minutes 80

OUT then holds model/ (config.json, model.safetensors in fp16, tokenizer), scores.jsonl (masked
loss on held-out text, Spearman on STS-B with --sts), log.jsonl, the tokenised texts and the last
checkpoint. The same command again continues a run that was stopped. The learning rate follows
the share of the budget that is used, so it reaches 0 in time whatever the speed.
"""

import argparse
import json
import math
import sys
import time
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from mlm.checkpoint import Progress, load_checkpoint, save_checkpoint
from mlm.gradient import GradientPool
from mlm.model import POSITIONS, MaskedLanguageModel, export, load_model, new_model
from mlm.options import layer_dtype, parse, row_shares, usable_device
from mlm.rows import Batch, Special, epoch_batches, mask_tokens, token_ids
from mlm.scores import masked_loss, sts_scores
from mlm.text import fingerprint, open_store, require_files, train_vocabulary
from mlm.word_vectors import open_vectors, word_weights
from tokenizers import Tokenizer

from cse_core.errors import CseError

# what a resumed run must share with the run it continues; the budget may be changed
KEPT = (
    "lengths",
    "mask_rate",
    "sentence_weight",
    "batch_tokens",
    "lr",
    "warmup",
    "weight_decay",
    "clip",
    "seed",
)


def learning_rate(fraction: float, peak: float, warmup: float) -> float:
    """Return the rate at a fraction of the budget: linear to `peak`, then linear to 0."""
    fraction = min(max(fraction, 0.0), 1.0)
    if fraction < warmup:
        return peak * fraction / warmup
    return peak * (1.0 - fraction) / (1.0 - warmup)


def used_fraction(options: argparse.Namespace, progress: Progress) -> float:
    """Return the used share of the budget."""
    if options.minutes is not None:
        return float(progress.seconds / (60 * options.minutes))
    if options.steps is not None:
        return float(progress.step / options.steps)
    return float(progress.tokens / options.tokens)


def make_optimizer(model: MaskedLanguageModel, lr: float, weight_decay: float) -> torch.optim.AdamW:
    """Return a fused AdamW without decay on biases and LayerNorms."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    return torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=lr,
        betas=(0.9, 0.98),
        eps=1e-6,
        fused=True,
    )


def make_tokenizer(options: argparse.Namespace) -> Tokenizer:
    """Load the tokenizer of --init, or train one (the vocabulary once a run)."""
    vocabulary = (options.init or options.out) / "tokenizer.json"
    if not vocabulary.is_file():
        beside = vocabulary.with_suffix(".new")
        train_vocabulary(options.texts, options.vocab_size).save(str(beside))
        beside.rename(vocabulary)
    tokenizer = Tokenizer.from_file(str(vocabulary))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


class Run:
    """One pre-training run in its folder."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Make model, tokens and optimiser, and resume where a checkpoint lies.

        Raises:
            CseError: A file, a folder or an option cannot serve.
        """
        self.options, self.out = options, options.out
        require_files(options.texts)
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CseError(
                f"cannot be made ({error.strerror})", where=f"--out {self.out}"
            ) from error
        initial = None if options.init is None else load_model(options.init)
        self.tokenizer = make_tokenizer(options)
        positions = POSITIONS if initial is None else initial.config.max_position_embeddings
        self.shares = row_shares(options.lengths, positions)
        self.store = open_store(self.out / "tokens", options.texts, self.tokenizer)
        self.special = Special.of(self.tokenizer)
        size = self.tokenizer.get_vocab_size()
        words = None
        if options.sentence_weight:
            hidden = options.hidden if initial is None else initial.config.hidden_size
            file = self.out / "words.safetensors"
            words = open_vectors(file, self.store, size, hidden, options.seed)
        self.model = initial or new_model(
            options.layers, options.hidden, options.heads, size, options.seed, words
        )
        device = usable_device(options.device)
        self.dtype = layer_dtype(device, options.precision)
        self.model.to(device)
        workers = options.threads or torch.get_num_threads()
        if words is not None:
            words = words * word_weights(self.store, size)[:, None]
        self.gradients = GradientPool(
            self.model, workers, self.dtype, words, options.sentence_weight
        )
        self.optimizer = make_optimizer(self.model, options.lr, options.weight_decay)
        self.settings = {key: getattr(options, key) for key in KEPT}
        config = self.model.config
        sizes = (config.num_hidden_layers, config.hidden_size, config.vocab_size)
        self.settings["layers x hidden, vocabulary"] = "{} x {}, {}".format(*sizes)
        self.settings["texts"] = fingerprint(options.texts, self.tokenizer)
        self.checkpoint = self.out / "checkpoint.safetensors"
        self.progress = Progress()
        if self.checkpoint.is_file():
            self.progress = load_checkpoint(
                self.checkpoint, self.model, self.optimizer, self.settings
            )
            print(f"resumed at step {self.progress.step}", flush=True)
        else:
            self.report()

    def batches(self) -> list[Batch]:
        """Return the batches of the current pass over the texts."""
        seed, epoch = self.options.seed, self.progress.epoch
        found = epoch_batches(self.store, self.shares, self.options.batch_tokens, seed, epoch)
        if not found:
            raise CseError("too little text to train on", hint="name larger files")
        return found

    def save(self) -> None:
        """Write the checkpoint."""
        save_checkpoint(self.checkpoint, self.model, self.optimizer, self.progress, self.settings)

    def report(self) -> dict[str, Any]:
        """Score the model, add the scores to scores.jsonl and return them."""
        scores: dict[str, Any] = asdict(self.progress)
        scores["masked_loss"] = masked_loss(self.model, self.store, self.special, self.dtype)
        if self.options.sts is not None:
            scores["stsb"] = sts_scores(self.model, self.tokenizer, self.special, self.options.sts)
        with (self.out / "scores.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(scores) + "\n")
        print(json.dumps(scores), flush=True)
        return scores

    def step(self, batch: Batch) -> tuple[float, float, float]:
        """Make one optimiser step; return masked loss, sentence loss and learning rate."""
        options, progress = self.options, self.progress
        rng = np.random.default_rng((options.seed, 1, progress.step))
        ids = token_ids(self.store, batch, self.special)
        rate = learning_rate(used_fraction(options, progress), options.lr, options.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss, sentence = self.gradients.fill(mask_tokens(ids, self.special, options.mask_rate, rng))
        if not math.isfinite(loss + sentence):
            raise CseError(f"loss became {loss} at step {progress.step}", hint="lower --lr")
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), options.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        progress.step += 1
        progress.batch += 1
        progress.tokens += ids.numel()
        return loss, sentence, rate

    def train(self) -> dict[str, Any]:
        """Train until the budget is used; export the model and return its scores."""
        options, progress = self.options, self.progress
        batches = self.batches()
        origin = time.monotonic() - progress.seconds
        saved = exported = progress.seconds
        losses: list[tuple[float, float]] = []
        window = (progress.seconds, progress.tokens)
        with (self.out / "log.jsonl").open("a", encoding="utf-8") as log:
            while used_fraction(options, progress) < 1.0:
                if progress.batch >= len(batches):
                    progress.epoch, progress.batch = progress.epoch + 1, 0
                    batches = self.batches()
                loss, sentence, rate = self.step(batches[progress.batch])
                progress.seconds = time.monotonic() - origin
                losses.append((loss, sentence))
                if progress.step % options.log_steps == 0:
                    line = {
                        **asdict(progress),
                        "masked_loss": sum(pair[0] for pair in losses) / len(losses),
                        "sentence_loss": sum(pair[1] for pair in losses) / len(losses),
                        "lr": rate,
                        "tokens_per_second": (progress.tokens - window[1])
                        / (progress.seconds - window[0]),
                    }
                    log.write(json.dumps(line) + "\n")
                    log.flush()
                    losses.clear()
                    window = (progress.seconds, progress.tokens)
                if progress.seconds - saved >= 60 * options.checkpoint_minutes:
                    self.save()
                    saved = progress.seconds
                if progress.seconds - exported >= 60 * options.export_minutes:
                    export(self.model, self.tokenizer.to_str(), self.out / "model")
                    self.report()
                    exported = progress.seconds = time.monotonic() - origin
        self.save()
        export(self.model, self.tokenizer.to_str(), self.out / "model")
        return self.report()


def main(arguments: list[str] | None = None) -> None:
    """Run the command; a user's mistake is one line and exit status 2."""
    try:
        Run(parse(__doc__ or "", arguments)).train()
    except CseError as error:
        print(f"pretrain: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
