"""Of a long text only its start is tokenised, to the tokens that the whole of it begins with."""

import random
from typing import Any

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from cse_defaults.transformers.tokenizer import TextTokenizer
from tests.fixtures.tiny import sentences

SPECIAL = ["<unk>", "<pad>"]


def trained(kind: str) -> PreTrainedTokenizerFast:
    trainer: Any
    if kind == "bytes":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        letters = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=600, special_tokens=SPECIAL, initial_alphabet=letters, show_progress=False
        )
    elif kind == "unigram":
        made = Tokenizer(models.Unigram())
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=300, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
        )
    else:  # words are joined before they are merged
        made = Tokenizer(models.BPE(unk_token="<unk>"))
        made.normalizer = normalizers.Replace(" ", "▁")
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, show_progress=False)
    made.train_from_iterator(sentences(300), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", pad_token="<pad>")


@pytest.mark.parametrize("kind", ["bytes", "unigram", "joined"])
def test_a_start_has_the_tokens_of_the_whole(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draws, some = random.Random(0), sentences(60)
    texts = [
        " ".join(draws.choices(some, k=count)) for count in (1, 2, 5, 20, 80) for _ in range(9)
    ]
    texts += ["x" * 900, "a " * 900, "\n\n".join(some), "鸟在 天上飞翔。" * 90, " " * 900 + "end",
              "word\u00a0" * 300, "www.example.org/" * 60 + " end"]  # fmt: skip
    hf = trained(kind)
    backend, read = hf.backend_tokenizer, [0]
    for longest in (1, 3, 17):
        content = TextTokenizer(hf).content(texts, longest)
        backend.enable_truncation(longest)
        rows = backend.encode_batch(texts, add_special_tokens=False)
        assert content.ids.tolist() == [token for row in rows for token in row.ids]
        assert content.offsets.diff().tolist() == [len(row) for row in rows]
    tokenizer = TextTokenizer(hf)

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(backend, name)

        def encode_batch(self, given: list[str], **how: Any) -> Any:
            read[0] += sum(map(len, given))
            return backend.encode_batch(given, **how)

    monkeypatch.setattr(type(hf), "backend_tokenizer", property(lambda _: Counting()))
    tokenizer.content([" ".join(some * 50)], 17)
    assert 0 < read[0] < 1000
