"""Tiny random encoders with a vocabulary made on the spot, so that tests need no network."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from cse_cli.terminal.quiet import libraries_quiet
from cse_testkit.corpora import WORDS

Family = Literal["bert", "roberta", "electra", "distilbert", "mpnet"]
POSITIONS = 512
"""Tokens of the longest row that a tiny encoder takes."""


@dataclass(frozen=True)
class _Marks:
    """Special tokens of a family, in the order of their ids."""

    pad: str
    unknown: str
    start: str
    end: str
    mask: str

    def in_order(self, pad_id: int) -> list[str]:
        others = [self.unknown, self.start, self.end, self.mask]
        return [*others[:pad_id], self.pad, *others[pad_id:]]


_BERT = _Marks("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_ROBERTA = _Marks("<pad>", "<unk>", "<s>", "</s>", "<mask>")


def tiny_encoder(
    folder: Path,
    cased: bool = False,
    family: Family = "bert",
    hidden: int = 32,
    layers: int = 2,
    dropout: float = 0.1,
    seed: int = 0,
) -> Path:
    """Write a random encoder and its tokenizer to a folder.

    The vocabulary is WordPiece: some words of ``tiny_corpus`` whole, every letter for the others;
    it has a mask token. Rows may have 512 tokens.

    Args:
        folder: Where; made if it is not there.
        cased: Whether the vocabulary keeps capital letters.
        family: Model type. ``mpnet`` cannot be packed, so it is padded.
        hidden: Hidden size, a multiple of 2.
        layers: Transformer layers.
        dropout: Every dropout probability.
        seed: Of the weights.

    Returns:
        The folder, which ``AutoModel`` and ``AutoTokenizer`` load.
    """
    marks = _BERT if family in ("bert", "electra", "distilbert") else _ROBERTA
    pad_id = 0 if marks is _BERT else 1
    tokenizer = _tokenizer(marks, pad_id, cased)
    config = _config(family, len(tokenizer), pad_id, hidden, layers, dropout)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModel.from_config(config)
        # Weights as drawn for BERT give almost equal vectors for all texts; these tell them apart.
        for parameter in model.parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.1)
    folder.mkdir(parents=True, exist_ok=True)
    with libraries_quiet():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@cache
def shared_encoder(cased: bool = False, family: Family = "bert", hidden: int = 32) -> Path:
    """Return a tiny encoder's folder that lasts as long as the process; do not write to it."""
    folder = Path(tempfile.mkdtemp(prefix="cse-tiny-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return tiny_encoder(folder / family, cased=cased, family=family, hidden=hidden)


def _tokenizer(marks: _Marks, pad_id: int, cased: bool) -> Any:
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    letters += list("0123456789.,:;?!'-äöüß")
    whole = [word for place, word in enumerate(WORDS) if place % 2 == 0]
    if cased:
        letters += [letter.upper() for letter in letters if letter.upper() != letter]
        whole += [word.title() for word in whole] + [word.upper() for word in whole]
    pieces = [*marks.in_order(pad_id), *letters, *(f"##{letter}" for letter in letters), *whole]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token=marks.unknown))
    made.normalizer = normalizers.BertNormalizer(lowercase=not cased, strip_accents=False)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single=f"{marks.start} $A {marks.end}",
        pair=f"{marks.start} $A {marks.end} $B {marks.end}",
        special_tokens=[(mark, vocabulary[mark]) for mark in (marks.start, marks.end)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        model_max_length=POSITIONS,
        do_lower_case=not cased,
        pad_token=marks.pad,
        unk_token=marks.unknown,
        cls_token=marks.start,
        sep_token=marks.end,
        mask_token=marks.mask,
    )


def _config(
    family: Family, vocabulary: int, pad_id: int, hidden: int, layers: int, dropout: float
) -> Any:
    # RoBERTa and MPNet count positions from behind the padding token's id.
    positions = POSITIONS + (pad_id + 1 if pad_id else 0)
    if family == "distilbert":
        return AutoConfig.for_model(
            family,
            vocab_size=vocabulary,
            dim=hidden,
            n_layers=layers,
            n_heads=2,
            hidden_dim=2 * hidden,
            max_position_embeddings=positions,
            dropout=dropout,
            attention_dropout=dropout,
            pad_token_id=pad_id,
        )
    more = {"embedding_size": hidden // 2} if family == "electra" else {}
    return AutoConfig.for_model(
        family,
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * hidden,
        max_position_embeddings=positions,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        pad_token_id=pad_id,
        **more,
    )
