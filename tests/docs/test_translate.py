"""The page on translations runs, and continues where it was interrupted."""

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

from tests.docs.pages import DOCS, Page


def make_translator(folder: Path) -> None:
    """Save a Marian model of random weights with a tokenizer of a few words."""
    words = {word: n for n, word in enumerate(("<pad>", "</s>", "<unk>", "one", "two", "zwei"))}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        model_max_length=16,
    ).save_pretrained(folder)  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = MarianConfig(
            vocab_size=len(words), d_model=16, encoder_layers=1, decoder_layers=1, pad_token_id=0,
            encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32,
            decoder_ffn_dim=32, max_position_embeddings=16, decoder_start_token_id=0,
            eos_token_id=1, forced_eos_token_id=1, init_std=1.0,
        )  # fmt: skip
        MarianMTModel(config).save_pretrained(folder)


def test_the_code_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_translator(tmp_path / "model")
    (block,) = Page(DOCS / "translate.md").blocks()
    code = block.text.replace("Helsinki-NLP/opus-mt-en-de", "model").replace("=256", "=8")
    texts = [("one two " * (n % 3 + 1)).strip() for n in range(70)]
    Path("texts.txt").write_text("\n".join(texts) + "\n")
    exec(compile(code, "translate.md", "exec"), {})
    whole = Path("parallel.jsonl").read_text()
    rows = [json.loads(line) for line in whole.splitlines()]
    assert [row["text"] for row in rows] == texts
    assert all(isinstance(row["fraternal"], str) for row in rows)
    Path("parallel.jsonl").write_text("".join(whole.splitlines(keepends=True)[:32]))
    exec(compile(code, "translate.md", "exec"), {})
    assert Path("parallel.jsonl").read_text() == whole
